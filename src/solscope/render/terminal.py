"""A table for the terminal: 100 columns, readable without colour."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from solscope.model.verdict import Analysis
from solscope.render.view import numbers
from solscope.render.view.page import Page, page
from solscope.render.view.rows import Row
from solscope.render.view.selection import grouped_absences, select

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

LEAST_WIDTH = 60
LEAST_NAME = 12

# Columns from the left, each with the least width of the terminal at which it is shown.
_COLUMNS: Sequence[tuple[str, str, int]] = (
    ("time", "time", 0),
    ("share", "time\n%", 0),
    ("bound", "bound by", 0),
    ("profiled", "SoL %\nprofile", 0),
    ("sheet", "SoL %\nsheet", 80),
    ("intensity", "FLOP/B", 80),
    ("flop_rate", "FLOP/s", 90),
    ("dram_rate", "DRAM\nB/s", 90),
    ("occupancy", "occ.\n%", 100),
)


def table(
    analysis: Analysis,
    *,
    width: int = 100,
    color: bool = False,
    top: int | None = None,
    sort: str = "time",
) -> str:
    """The analysis as text. ``sort`` is time, name, sol, intensity or launches."""
    from rich.console import Console

    shown = page(analysis)
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
    _print(console, _head(shown))
    console.print()
    console.print(_table(rows, width))
    console.print()
    _print(console, _foot(shown, rows))
    lines = out.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines)


def _head(shown: Page) -> Iterator[tuple[str, str]]:
    """(line, style) of what stands above the table."""
    for report in shown.reports:
        parts = (report.device, f"ceilings {report.chip}", report.tool, report.context)
        yield f"{report.file}: " + " · ".join(part for part in parts if part), "bold"
        for issue in report.issues:
            where = f" ({issue.where})" if issue.where else ""
            yield f"  {issue.severity.value}: {issue.what}{where}", "yellow"
    if shown.incomplete_text:
        yield shown.incomplete_text, "bold red"
    yield (
        f"{shown.kernel_count} kernels, {shown.launch_count} launches, {shown.total_time} in "
        "kernels, bound by " + ", ".join(f"{s.style.label} {s.text}" for s in shown.shares),
        "",
    )


def _print(console: Console, lines: Iterable[tuple[str, str]]) -> None:
    from rich.text import Text

    for line, style in lines:
        for part in textwrap.wrap(
            line, console.width, subsequent_indent="    ", break_on_hyphens=False
        ):
            console.print(Text(part, style=style), soft_wrap=True)


def _table(rows: Sequence[Row], width: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False, expand=False)
    columns = [column for column in _COLUMNS if width >= column[2]]
    cells = [[_cell(row, column[0]) for column in columns] for row in rows]
    widths = [
        max([len(line[index]) for line in cells] + [len(p) for p in column[1].split("\n")])
        for index, column in enumerate(columns)
    ]
    rank_width = max([len(str(row.rank)) for row in rows] or [1])
    # Every number is shown whole; names take what is left. Each costs a blank.
    name_width = max(width - sum(widths) - rank_width - len(widths) - 1, LEAST_NAME)
    grid.add_column("#", justify="right", no_wrap=True, width=rank_width)
    grid.add_column("kernel", width=name_width, no_wrap=True)
    for (name, title, _least), column_width in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "left" if name == "bound" else "right"
        grid.add_column(title, justify=justify, no_wrap=True, width=column_width)
    for row, values in zip(rows, cells, strict=True):
        grid.add_row(Text(str(row.rank)), _name(row, name_width), *values)
    return grid


def _cell(row: Row, name: str) -> Text:
    """A number without its unit, which the head of the column gives."""
    from rich.text import Text

    if name == "bound":
        return Text(row.bound_label, style=row.bound_style.ansi)
    if name in {"profiled", "sheet"}:
        speed = row.profiled if name == "profiled" else row.sheet
        return Text(speed.cell.text.removesuffix(" %") + ("*" if speed.over else ""))
    text = str(getattr(row, name))
    if text == "L2-resident":
        return Text("in L2")
    for unit in (" %", " FLOP/B", "FLOP/s", "B/s"):
        text = text.removesuffix(unit)
    return Text(text.rstrip())


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


def _foot(shown: Page, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """(line, style) of what stands below the table."""
    hidden = len(shown.rows) - len(rows)
    if hidden:
        yield f"{hidden} more kernels are not shown (--top).", ""
    yield (
        "SoL: achieved over the nearest counted roof, at the clock of the profile | of the data "
        "sheet.  –: not measured.",
        "",
    )
    for ceiling in shown.ceilings:
        clock = "" if ceiling.clock == numbers.ABSENT else f" at {ceiling.clock}"
        yield f"  {ceiling.resource} {ceiling.peak}{clock}: {ceiling.key}", ""
    for row in rows:
        for speed in (row.profiled, row.sheet):
            if speed.over:
                yield f"* #{row.rank} {speed.cell.text} of {speed.ceiling}: {speed.over}", ""
    if any(row.dram_rate.text.startswith("≈") for row in rows):
        yield "≈ an estimate: ncu's percent of peak × peak; the bytes were not counted.", ""
    if shown.unknown_share:
        yield f"family unknown: {shown.unknown_share} of the time", ""
    for absence, missing in grouped_absences(shown, {row.rank for row in rows}):
        remedy = f" → {absence.remedy}" if absence.remedy else ""
        yield f"not measured: {absence.field} ({missing}): {absence.reason}{remedy}", ""
    if shown.incomplete_text:
        yield shown.incomplete_text, "bold red"
