"""Summaries (``--print-summary``): minimum, maximum and mean over launches, which are not here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from solscope.model.summary import LaunchSummary
from solscope.reports.ncu_csv.layout import FIXED_COLUMNS, Table
from solscope.reports.ncu_csv.rows import Columns
from solscope.reports.printed.labels import era_of
from solscope.reports.printed.launches import Identity
from solscope.reports.printed.notes import Notes
from solscope.reports.printed.number_format import NumberFormat
from solscope.reports.printed.summaries import SummaryRow, summarise

_ROLLUPS = ("Minimum", "Maximum", "Average")
_OF_A_ROW = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit", *_ROLLUPS)
# Any other column says of what this is a summary, as the range of --print-summary per-nvtx.
_KNOWN = FIXED_COLUMNS | {"Invocations", *_OF_A_ROW}


@dataclass(slots=True)
class SummaryRows:
    """Rows of a summary, by what they summarise."""

    groups: dict[tuple[Identity, str, str], list[SummaryRow]] = field(default_factory=dict)

    def number_texts(self) -> Iterator[str]:
        """All value cells, to find out how numbers are written."""
        for rows in self.groups.values():
            for _, _, _, cells in rows:
                yield from cells


def gather(table: Table, notes: Notes) -> SummaryRows:
    """The rows of a summary."""
    columns = Columns(table.header)
    found = SummaryRows()
    needed = max(columns.position.get(name, 0) for name in (*_ROLLUPS, "Metric Name"))
    has_units = "Metric Unit" in columns.position
    others = [name for name in columns.position if name and name not in _KNOWN]
    for row in table.rows():
        label = columns.cell(row, "Metric Name")
        if len(row) <= needed or label in ("", "Metric Name"):
            if any(row) and label != "Metric Name":
                notes.stray(row)
            continue
        columns.refuse_moved(row)
        around = ", ".join(filter(None, (columns.cell(row, name).strip() for name in others)))
        key = (columns.identity(row), columns.cell(row, "Invocations").strip(), around)
        found.groups.setdefault(key, []).append(
            (
                columns.cell(row, "Section Name"),
                label,
                columns.cell(row, "Metric Unit").strip() if has_units else None,
                tuple(columns.cell(row, name) for name in _ROLLUPS),
            )
        )
    notes.cut = table.is_cut_in_a_cell
    return found


def summaries(rows: SummaryRows, numbers: NumberFormat, notes: Notes) -> tuple[LaunchSummary, ...]:
    """What the page says of each kernel. Raises UnknownUnit."""
    era = era_of((row[1], row[2] or "") for group in rows.groups.values() for row in group)
    return tuple(
        summarise(identity, invocations, group, numbers, notes, era=era, around=around)
        for (identity, invocations, around), group in rows.groups.items()
    )
