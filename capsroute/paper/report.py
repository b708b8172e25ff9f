"""The report: tables beside the paper's, claims, figures; as a page, as Markdown, CSV and LaTeX."""

import base64
import csv
import html
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capsroute.checkpoint import write_atomically
from capsroute.errors import DataError
from capsroute.figures.drawing import Drawing
from capsroute.paper.cells import LAYERS
from capsroute.paper.claims import Verdict
from capsroute.paper.page import PAGE
from capsroute.paper.plan import Plan
from capsroute.paper.tables import NOTHING, FilledTable, Results
from capsroute.sweeps.records import Measured, Record

PAPER = "Ren, Shang, He: Adaptive Routing Between Capsules, 2019, https://arxiv.org/abs/1911.08119"

LEGIBLE_REM = 5.0  # of the page for an inch of a figure


@dataclass(frozen=True)
class Report:
    """All that a reproduction found."""

    plan: Plan
    results: Results
    tables: list[FilledTable]
    verdicts: list[Verdict]
    drawings: list[Drawing]
    failures: list[tuple[str, str]]  # run and what was wrong
    command: str

    def save(self, folder: Path) -> Path:
        """Write every form of it; the page's path."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{folder}: cannot be made ({error.strerror or error})") from error
        for table in self.tables:
            write_atomically(folder / f"{table.name}.csv", as_csv(table).encode())
            write_atomically(folder / f"{table.name}.tex", as_latex(table, self.note()).encode())
            write_atomically(folder / f"{table.name}.md", as_markdown(table, self.note()).encode())
        write_atomically(folder / "report.md", self.markdown().encode())
        page = folder / "report.html"
        write_atomically(page, self.page().encode())
        return page

    def note(self) -> str:
        """What every table says of how it was made."""
        return table_note(self.plan)

    def others(self) -> list[tuple[str, Measured]]:
        """Settings that were measured and are in no table."""
        in_tables = {filled.cell.setting for table in self.tables for filled in table.cells.values()}
        return [
            (f"{self.plan.runs_of(setting)[0].job.title} {LAYERS[setting.layers]}", measured)
            for setting, measured in self.results.items()
            if setting not in in_tables
        ]

    def machines(self) -> list[str]:
        """Where and with what the runs were made, each combination once, with how many."""
        counted: dict[str, int] = {}
        for measured in self.results.values():
            for record in measured.records:
                told = _made_with(record)
                counted[told] = counted.get(told, 0) + 1
        return [f"{count} runs: {told}" for told, count in counted.items()]

    def markdown(self) -> str:
        """The report as Markdown, with the figures beside it."""
        parts = ["# Adaptive Routing Between Capsules, reproduced", f"{PAPER}.", f"Made by `{self.command}`."]
        parts += [as_markdown(table, self.note()) for table in self.tables]
        if self.others():
            rows = "\n".join(
                f"| {title} | {measured.text()} | {', '.join(measured.states) or 'ok'} |"
                for title, measured in self.others()
            )
            parts.append(
                f"## Runs beside the tables\n\n| run | accuracy | state |\n|---|---|---|\n{rows}\n\n{self.note()}"
            )
        if self.verdicts:
            rows = "\n".join(f"| {v.claim} | **{v.verdict}** | {v.numbers} |" for v in self.verdicts)
            parts.append(f"## Claims of the paper\n\n| claim | verdict | numbers |\n|---|---|---|\n{rows}")
        if self.failures:
            lines = [f"- {run}: {' '.join(why.split())}" for run, why in self.failures]  # why may be of several lines
            parts.append("## Failed runs\n\n" + "\n".join(lines))
        for drawing in self.drawings:
            parts.append(f"## {drawing.title}\n\n![{drawing.title}](figures/{drawing.name}.svg)\n\n{drawing.caption}")
        parts.append("## Machines\n\n" + "\n".join(f"- {line}" for line in self.machines()))
        return "\n\n".join(parts) + "\n"

    def page(self) -> str:
        """The report as one file of HTML that needs no other."""
        parts = [f"<p>{html.escape(PAPER)}. Made by <code>{html.escape(self.command)}</code>.</p>"]
        parts += [_table_html(table, self.note()) for table in self.tables]
        if self.others():
            rows = [[title, measured.text(), ", ".join(measured.states) or "ok"] for title, measured in self.others()]
            parts.append(_plain_table("Runs beside the tables", ["run", "accuracy", "state"], rows, self.note()))
        if self.verdicts:
            parts.append(_verdicts_html(self.verdicts))
        if self.failures:
            rows = [list(row) for row in self.failures]
            parts.append(_plain_table("Failed runs", ["run", "what was wrong"], rows, kind="text"))
        parts += [_figure_html(drawing) for drawing in self.drawings]
        machines = "".join(f"<li>{html.escape(line)}</li>" for line in self.machines())
        parts.append(f"<h2>Machines</h2><ul>{machines}</ul>")
        return PAGE.substitute(title="Adaptive Routing Between Capsules, reproduced", body="\n".join(parts))


def table_note(plan: Plan) -> str:
    """How the numbers of a table were made."""
    parts = [plan.text[0].upper() + plan.text[1:]]
    parts += [
        f"the {used} of Fashion-MNIST, 6,000 training and 1,000 test images, stands in for {dataset}"
        for dataset, used in plan.stand_ins.items()
    ]
    return "; ".join(parts) + ". Accuracy in percent on the test split after the last epoch."


def as_csv(table: FilledTable) -> str:
    """A row a cell."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["row", "column", "accuracy", "std", "runs", "paper", "difference", "note"])
    for (row, column), filled in table.cells.items():
        measured = filled.measured
        ours: list[Any] = ["", "", 0]
        difference = ""
        if measured is not None:
            ours = [f"{measured.mean:.4f}", f"{measured.std:.4f}" if measured.count > 1 else "", measured.count]
            difference = filled.difference
        writer.writerow([row, column, *ours, filled.cell.printed, difference, filled.note])
    return text.getvalue()


def as_markdown(table: FilledTable, note: str) -> str:
    """Ours, the paper's, and the difference in each cell."""
    lines = [
        f"## {table.title}",
        "",
        "| | " + " | ".join(table.columns) + " |",
        "|---" * (len(table.columns) + 1) + "|",
    ]
    for row in table.rows:
        cells = []
        for column in table.columns:
            filled = table.cells.get((row, column))
            if filled is None:
                cells.append(NOTHING)
                continue
            remark = f"<br>{filled.note}" if filled.note else ""
            cells.append(f"{filled.ours}<br>paper {filled.cell.printed:.2f}, {filled.difference}{remark}")
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", note])


def as_latex(table: FilledTable, note: str) -> str:
    """A tabular for a paper of one's own; ours above, the printed number below."""
    lines = [
        f"% {note}",
        "\\begin{tabular}{l" + "c" * len(table.columns) + "}",
        "\\hline",
        " & " + " & ".join(_latex(column) for column in table.columns) + " \\\\",
        "\\hline",
    ]
    for row in table.rows:
        filled = [table.cells.get((row, column)) for column in table.columns]
        ours = [NOTHING if cell is None else cell.ours for cell in filled]
        printed = [NOTHING if cell is None else f"({cell.cell.printed:.2f})" for cell in filled]
        lines.append(f"{_latex(row)} & " + " & ".join(map(_latex, ours)) + " \\\\")
        lines.append(" & " + " & ".join(map(_latex, printed)) + " \\\\")
    return "\n".join([*lines, "\\hline", "\\end{tabular}", ""])


def _latex(text: str) -> str:
    for plain, command in (("±", "$\\pm$"), ("λ", "$\\lambda$"), ("–", "--"), ("%", "\\%")):
        text = text.replace(plain, command)
    return text


def _table_html(table: FilledTable, note: str) -> str:
    head = "".join(f"<th scope=col>{html.escape(column)}</th>" for column in table.columns)
    body = []
    for row in table.rows:
        cells = []
        for column in table.columns:
            filled = table.cells.get((row, column))
            if filled is None:
                cells.append(f"<td>{NOTHING}</td>")
                continue
            remark = f"<span class=note>{html.escape(filled.note)}</span>" if filled.note else ""
            cells.append(
                f"<td><b>{html.escape(filled.ours)}</b>"
                f"<span class=paper>paper {filled.cell.printed:.2f}, {filled.difference}</span>{remark}</td>"
            )
        body.append(f"<tr><th scope=row>{html.escape(row)}</th>{''.join(cells)}</tr>")
    return (
        f"<h2>{html.escape(table.name[:5].title())} {table.name[5:]}: {html.escape(table.title)}</h2><div class=wide>"
        f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
        f"<p class=note>{html.escape(note)}</p>"
    )


def _plain_table(title: str, columns: list[str], rows: list[list[str]], note: str = "", kind: str = "") -> str:
    head = "".join(f"<th scope=col>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    below = f"<p class=note>{html.escape(note)}</p>" if note else ""
    return (
        f"<h2>{html.escape(title)}</h2><div class=wide><table class='{kind}'><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{below}"
    )


def _verdicts_html(verdicts: list[Verdict]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(v.claim)}</td><td><b class='{v.verdict.replace(' ', '-')}'>{v.verdict}</b></td>"
        f"<td>{html.escape(v.numbers)}</td></tr>"
        for v in verdicts
    )
    head = "<th scope=col>claim</th><th scope=col>verdict</th><th scope=col>numbers</th>"
    return (
        f"<h2>Claims of the paper</h2><div class=wide><table class=text><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _figure_html(drawing: Drawing) -> str:
    # As a picture of its own, so that no two figures share names of their parts.
    data = base64.b64encode(drawing.content("svg")).decode()
    # On a narrow screen it scrolls: any smaller, and nobody could read it.
    least = f"{LEGIBLE_REM * drawing.figure.get_figwidth():.0f}rem"
    return (
        f"<h2>{html.escape(drawing.title)}</h2><figure><img alt='{html.escape(drawing.title)}. "
        f"{html.escape(drawing.caption)}' style='min-width: {least}' src='data:image/svg+xml;base64,{data}'></figure>"
    )


def _made_with(record: Record) -> str:
    result = record.result
    commit = result["commit"]["id"]
    told = (
        "unknown commit"
        if commit is None
        else f"commit {commit[:12]}" + (" with changes" * bool(result["commit"]["dirty"]))
    )
    hardware = result["hardware"]
    where = (
        ", ".join(hardware["gpus"]) if result["device"] == "cuda" else f"{hardware['cpu']}, {hardware['cores']} cores"
    )
    return f"{told}, torch {result['versions']['torch']}, {where}, {result['precision']}"
