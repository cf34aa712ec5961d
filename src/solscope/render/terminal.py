"""A table for the terminal: 100 columns, readable without colour."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from solscope.model.finding import Severity
from solscope.model.verdict import Analysis
from solscope.render.view import numbers
from solscope.render.view.columns import Column, cell, chosen
from solscope.render.view.page import Page, over_lines, page
from solscope.render.view.rows import Row
from solscope.render.view.selection import grouped_absences, grouped_findings, select

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

LEAST_WIDTH = 60
LEAST_NAME = 12
MOST_ABSENCES = 12
MOST_WHY = 3
"""Kernels whose grounds are said; HTML, Markdown and JSON say them for each."""

# The least width of the terminal at which a column is shown; names need the room.
_LEAST_WIDTHS = {
    "sheet": 80,
    "intensity": 80,
    "flop_rate": 90,
    "dram_rate": 90,
    "occupancy": 100,
    "limiter": 100,
}
_WIDE = 125  # from here on busy percentages stand beside speeds of light


def table(
    analysis: Analysis,
    *,
    width: int = 100,
    color: bool = False,
    top: int | None = None,
    sort: str = "time",
    show_session: bool = False,
) -> str:
    """The analysis as text. ``sort`` is time, name, sol, intensity or launches."""
    from rich.console import Console

    shown = page(analysis, show_session=show_session)
    rows = select(shown.rows, sort=sort, top=top)
    width = max(width, LEAST_WIDTH)
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    _print(console, _head(shown, rows))
    console.print()
    console.print(_table(rows, width, several=len(shown.reports) > 1))
    console.print()
    _print(console, _foot(shown, rows))
    lines = out.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines)


def _head(shown: Page, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """(line, style) of what stands above the table."""
    used = {row.report for row in rows}
    for number, report in enumerate(shown.reports, start=1):
        if number - 1 not in used and report.complete and not report.issues and used:
            continue
        mark = f"[{number}] " if len(shown.reports) > 1 else ""
        parts = (report.device, f"ceilings {report.chip_key}", report.tool, report.context)
        yield f"{mark}{report.file}: " + " · ".join(part for part in parts if part), "bold"
        for name, value in report.session:
            yield f"  {name}: {value}", ""
        for issue in report.issues:
            where = f" ({issue.where})" if issue.where else ""
            yield f"  {issue.severity.value}: {issue.what}{where}", "yellow"
    if shown.incomplete_text:
        yield shown.incomplete_text, "bold red"
    shares = ", ".join(f"{s.style.label} {s.text}" for s in shown.shares)
    several = f"{len(shown.reports)} reports, " if len(shown.reports) > 1 else ""
    yield f"{several}{shown.lead}, bound by {shares}", ""


def _print(console: Console, lines: Iterable[tuple[str, str]]) -> None:
    from rich.text import Text

    for line, style in lines:
        whole = line.replace(" %", "\u00a0%")  # a number and its unit stay on one line
        for part in textwrap.wrap(
            whole, console.width, subsequent_indent="    ", break_on_hyphens=False
        ):
            console.print(Text(part.replace("\u00a0", " "), style=style), soft_wrap=True)


def _table(rows: Sequence[Row], width: int, *, several: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False, expand=False)
    columns = _columns(rows, width, several=several)
    cells = [[_cell(row, column) for column in columns] for row in rows]
    widths = [
        max([len(line[index]) for line in cells] + [len(p) for p in column.short.split("\n")])
        for index, column in enumerate(columns)
    ]
    rank_width = max([len(str(row.rank)) for row in rows] or [1])
    # Every number is shown whole; names take what is left. Each costs a blank.
    name_width = max(width - sum(widths) - rank_width - len(widths) - 1, LEAST_NAME)
    grid.add_column("#", justify="right", no_wrap=True, width=rank_width)
    grid.add_column("kernel", width=name_width, no_wrap=True)
    for column, column_width in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        grid.add_column(column.short, justify=justify, no_wrap=True, width=column_width)
    for row, values in zip(rows, cells, strict=True):
        grid.add_row(Text(str(row.rank)), _name(row, name_width), *values)
    return grid


_LETTERS = {"registers": "regs", "shared_mem": "smem", "shared memory": "smem"}
_REPORT = Column(key="file", title="in", short="in", meaning="the report")


def _columns(rows: Sequence[Row], width: int, *, several: bool) -> list[Column]:
    found = chosen(rows, is_narrow=width < _WIDE)
    columns = [c for c in found if width >= _LEAST_WIDTHS.get(c.key, 0)]
    return [_REPORT, *columns] if several else columns


def _cell(row: Row, column: Column) -> Text:
    """A number without its unit, which the head of the column gives."""
    from rich.text import Text

    if column is _REPORT:
        return Text(f"[{row.report + 1}]")
    if column.key == "bound_label":
        return Text(row.bound_label, style=row.bound_style.ansi)
    shown = cell(row, column)
    if shown.text == "L2-resident":
        return Text("in L2")
    if column.key == "limiter":
        return Text(_limiter(shown.text))
    text = shown.text
    for unit in (" %", " FLOP/B", "FLOP/s", "B/s"):
        text = text.removesuffix(unit)
    return Text(text.rstrip() + ("*" if shown.over else ""))


def _limiter(text: str) -> str:
    """Two limiters at most, in few letters.

    >>> _limiter("registers, shared_mem, warps")
    'regs+smem+1'
    """
    parts = [_LETTERS.get(part, part) for part in text.split(", ")]
    more = f"+{len(parts) - 2}" if len(parts) > 2 else ""
    return "+".join(parts[:2]) + more


def _name(row: Row, width: int) -> Text:
    """A name on up to two lines, broken where its parts meet."""
    from rich.text import Text

    text = row.name
    if len(text) <= width:
        return Text(text)
    breaks = [
        i
        for i in range(1, width + 1)
        if text[i - 1] in "_:,< " or (text[i].isupper() and text[i - 1].islower())
    ]
    cut = breaks[-1] if breaks and breaks[-1] > width // 2 else width
    return Text(f"{text[:cut]}\n{numbers.shorten(text[cut:], width)}")


def _is_counted(row: Row) -> bool:
    """Whether FLOP or bytes were counted; a rate estimated from a percentage is not."""
    return row.flop_rate.raw is not None or (
        row.dram_rate.raw is not None and not row.dram_rate.text.startswith("≈")
    )


def _why(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """The grounds of the first verdicts; what is absent is said once, below."""
    for row in rows[:MOST_WHY]:
        absent = {absence.reason for absence in row.absences}
        grounds = [ground for ground in row.grounds if ground not in absent]
        if grounds:
            yield f"#{row.rank} {row.bound_label}: {'; '.join(grounds)}", ""
        for finding in row.findings:
            if finding.severity is Severity.INFO:
                yield f"info (#{row.rank}): {finding.fact} → {finding.remedy}", ""


def _foot(shown: Page, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """(line, style) of what stands below the table."""
    hidden = len(shown.rows) - len(rows)
    if hidden:
        yield f"{hidden} more kernels are not shown (--top).", ""
    if shown.ceilings:
        yield (
            "SoL: achieved over the nearest counted roof, at the clock of the profile | of the "
            "data sheet.  –: not measured.",
            "",
        )
    elif any(_is_counted(row) for row in rows):
        yield (
            "No roof is known for what was counted: SM, DRAM and tensor are ncu's busy "
            "percentages, no distance to a roof.  –: not measured.",
            "",
        )
    else:
        yield (
            "No work was counted: SM, DRAM and tensor are ncu's busy percentages, no distance to "
            "a roof.  –: not measured.",
            "",
        )
    yield from _why(rows)
    ranks = {row.rank for row in rows}
    for ceiling in (c for c in shown.ceilings if c.ranks & ranks):
        clock = "" if ceiling.clock == numbers.ABSENT else f" at {ceiling.clock}"
        device = f"{ceiling.device}: " if shown.has_several_devices else ""
        yield f"  {device}{ceiling.resource} {ceiling.peak}{clock}: {ceiling.key}", ""
    for line in over_lines(rows):
        yield f"* {line}", ""
    if any(row.dram_rate.text.startswith("≈") for row in rows):
        yield "≈ an estimate: ncu's percent of peak × peak; the bytes were not counted.", ""
    if shown.unknown_share:
        yield f"family unknown: {shown.unknown_share} of the time", ""
    for finding, where in grouped_findings(shown, ranks):
        if finding.severity is not Severity.INFO:
            yield f"{finding.severity.value} ({where}): {finding.fact} → {finding.remedy}", "yellow"
    groups = list(grouped_absences(shown, ranks))
    for absence, missing in groups[:MOST_ABSENCES]:
        remedy = f" → {absence.remedy}" if absence.remedy else ""
        yield f"not measured: {absence.field} ({missing}): {absence.reason}{remedy}", ""
    if len(groups) > MOST_ABSENCES:
        yield (
            f"and {len(groups) - MOST_ABSENCES} more kinds of absence: --format json or --html",
            "",
        )
    derived = {a.field for row in rows for a in row.absences if a.is_derived}
    if derived and groups:
        what = "intensity" if "arithmetic_intensity" in derived else "speed of light"
        yield (
            f"without these, no {what}: `solscope plan --level roofline` writes the ncu command "
            "that collects them in one capture",
            "",
        )
    if shown.incomplete_text:
        yield shown.incomplete_text, "bold red"
