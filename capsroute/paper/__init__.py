"""The paper as data and programs: its tables, the runs that fill them, the report."""
