"""A reproduction from its plan to its report."""

from collections.abc import Callable
from pathlib import Path

from capsroute.paper.claims import check_claims
from capsroute.paper.drawings import draw_all, save_all
from capsroute.paper.plan import Plan
from capsroute.paper.report import Report
from capsroute.paper.tables import collect, fill_tables
from capsroute.sweeps.driver import Engine, run_sweep
from capsroute.sweeps.monitor import Monitor
from capsroute.sweeps.records import Record, load_records


def do_runs(plan: Plan, engine: Callable[[], Engine], monitor: Monitor, command: str) -> list[tuple[str, str]]:
    """Do what is not done of the plan; the runs that failed, and why."""
    jobs = [run.job for run in plan.runs]
    if all(job.done for job in jobs):
        return []
    with monitor:
        state = run_sweep(jobs, engine(), monitor, command)
    return [(f"{job.title}, seed {job.config.seed}", message) for job, message in state.failed]


def records_of(plan: Plan, archive: Path | None) -> list[Record]:
    """The plan's finished runs: of its store, or of an archive of records."""
    if archive is not None:
        return load_records(archive)
    stores = dict.fromkeys(run.job.folder.parent for run in plan.runs)
    return [record for store in stores if store.is_dir() for record in load_records(store)]


def make_report(
    plan: Plan, folder: Path, failures: list[tuple[str, str]], command: str, archive: Path | None = None
) -> tuple[Report, Path]:
    """Tables, claims and figures of what is there, written to the folder; the report and its page."""
    results = collect(plan, records_of(plan, archive))
    drawings = save_all(draw_all(plan, results), folder / "figures")
    report = Report(plan, results, fill_tables(plan, results), check_claims(results), drawings, failures, command)
    return report, report.save(folder)
