"""A reproduction from its plan to its report."""

from collections.abc import Callable
from pathlib import Path

from capsroute.paper.claims import check_claims
from capsroute.paper.drawings import draw_all, save_all
from capsroute.paper.plan import Plan, Run
from capsroute.paper.report import Report
from capsroute.paper.tables import collect, fill_tables
from capsroute.sweeps.driver import Engine, run_sweep
from capsroute.sweeps.monitor import Monitor
from capsroute.sweeps.records import Record, read_run


def runs_to_do(plan: Plan, elsewhere: list[Record]) -> list[Run]:
    """The runs of the plan that are finished neither in its store nor among the records from elsewhere."""
    names = {record.name for record in elsewhere}
    return [run for run in plan.runs if not run.job.done and run.job.folder.name not in names]


def do_runs(runs: list[Run], engine: Callable[[], Engine], monitor: Monitor, command: str) -> list[tuple[str, str]]:
    """Do these runs; the ones that failed, and why."""
    if not runs:
        return []
    with monitor:
        state = run_sweep([run.job for run in runs], engine(), monitor, command)
    return [(f"{job.title}, seed {job.config.seed}", message) for job, message in state.failed]


def records_of(plan: Plan, elsewhere: list[Record]) -> list[Record]:
    """The plan's finished runs, in its order: those of its store, and those from elsewhere."""
    by_name = {record.name: record for record in elsewhere}
    for run in plan.runs:
        record = read_run(run.job.folder)
        if record is not None:
            by_name[record.name] = record
    return [by_name[name] for run in plan.runs if (name := run.job.folder.name) in by_name]


def make_report(
    plan: Plan, records: list[Record], folder: Path, failures: list[tuple[str, str]], command: str
) -> tuple[Report, Path]:
    """Tables, claims and figures of these records, written to the folder; the report and its page."""
    results = collect(plan, records)
    drawings = save_all(draw_all(plan, results), folder / "figures")
    report = Report(plan, results, fill_tables(plan, results), check_claims(results), drawings, failures, command)
    return report, report.save(folder)
