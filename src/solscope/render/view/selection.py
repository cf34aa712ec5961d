"""Which rows, in which order, and what they lack together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from solscope.model.finding import Absence, Finding, Severity
from solscope.render.view.page import Page
from solscope.render.view.rows import Row

SORTS = ("time", "name", "sol", "intensity", "launches")
_NUMBER = re.compile(r"\d+(\.\d+)?")


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
    """What is missing, each absence once, with the kernels (``#1, #4``) that lack it.

    Reasons that differ by a number only are one; the first stands for all, and it is said.
    """
    groups: dict[tuple[str, str, str | None], list[tuple[int, Absence]]] = {}
    for row in page.rows:
        for absence in row.absences if row.rank in ranks else ():
            key = (absence.field, _NUMBER.sub("0", absence.reason), absence.remedy)
            groups.setdefault(key, []).append((row.rank, absence))
    for absence in page.absences:
        yield absence, "whole report"
    for members in groups.values():
        first_rank, first = members[0]
        kernels = _ranks([rank for rank, _ in members], len(ranks))
        if any(absence.reason != first.reason for _, absence in members):
            kernels += f"; numbers of #{first_rank}"
        yield first, kernels


def grouped_findings(page: Page, ranks: Collection[int]) -> Iterator[tuple[Finding, str]]:
    """What bears on decisions, each fact once, with the kernels it is about."""
    groups: dict[tuple[Severity, str, str], list[tuple[int, Finding]]] = {}
    for row in page.rows:
        for finding in row.findings if row.rank in ranks else ():
            key = (finding.severity, finding.fact, finding.remedy)
            groups.setdefault(key, []).append((row.rank, finding))
    for members in groups.values():
        yield members[0][1], _ranks([rank for rank, _ in members], len(ranks))


def _ranks(missing: Sequence[int], of: int) -> str:
    unique = list(dict.fromkeys(missing))
    if len(unique) == of and of > 1:
        return "all kernels"
    shown = ", ".join(f"#{rank}" for rank in unique[:6])
    return shown if len(unique) <= 6 else f"{shown} and {len(unique) - 6} more"
