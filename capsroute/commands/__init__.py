"""The commands, one file a group: dataclasses whose fields are options and whose `run` does the work."""
