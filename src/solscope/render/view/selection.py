"""Which rows, in which order, and what they lack together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from solscope.model.finding import Absence
from solscope.render.view.page import Page
from solscope.render.view.rows import Row

SORTS = ("time", "name", "sol", "intensity", "launches")


def select(rows: Sequence[Row], *, sort: str = "time", top: int | None = None) -> tuple[Row, ...]:
    """Rows in order; numbers from the largest, absent ones last, names from A."""
    if sort == "name":
        ordered = sorted(rows, key=lambda r: (r.name.casefold(), r.rank))
    else:
        ordered = sorted(rows, key=lambda r: (-_number(r, sort), r.rank))
    return tuple(ordered[:top])


def _number(row: Row, sort: str) -> float:
    cell = {
        "sol": row.profiled.cell,
        "intensity": row.intensity,
        "launches": row.launches,
    }.get(sort, row.time)
    return float("-inf") if cell.raw is None else cell.raw


def grouped_absences(page: Page, ranks: Collection[int]) -> Iterator[tuple[Absence, str]]:
    """What is missing, each absence once, with the kernels (``#1, #4``) that lack it."""
    groups: dict[Absence, list[int]] = {}
    for row in page.rows:
        if row.rank in ranks:
            for absence in row.absences:
                groups.setdefault(absence, []).append(row.rank)
    for absence in page.absences:
        yield absence, "whole report"
    for absence, missing in groups.items():
        yield absence, _ranks(missing, len(ranks))


def _ranks(missing: Sequence[int], of: int) -> str:
    if len(missing) == of and of > 1:
        return "all kernels"
    shown = ", ".join(f"#{rank}" for rank in missing[:6])
    return shown if len(missing) <= 6 else f"{shown} and {len(missing) - 6} more"
