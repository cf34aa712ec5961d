"""Kernels by name across cells, each with what keeps it from being like with like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from solscope.model.campaign import Cell
from solscope.model.conditions import Conditions, matched
from solscope.model.verdict import conditions_of
from solscope.render.view import numbers
from solscope.render.view import page as view
from solscope.render.view.numbers import ABSENT, clean
from solscope.render.view.rows import Row

MOST_COLUMNS = 5
"""Cells of one table: more do not fit beside each other on a page."""

_Found = dict[str, Row]


def content(pages: Sequence[tuple[Cell, view.Page]], most: int) -> dict[str, Any]:
    """Time a launch and speed of light of each kernel that is in more than one cell.

    Each kernel stands with its longest launch shape. The first cell that holds it is what the
    others are held against: ``unlike`` names the conditions in which they differ from it. ``more``
    counts the kernels beyond ``most``.
    """
    names: dict[str, _Found] = {}
    for cell, page in pages:
        for row in page.rows:
            names.setdefault(row.name, {}).setdefault(cell.id, row)
    several = {name: found for name, found in names.items() if len(found) > 1}
    shown = list(several.items())[:most]
    return {
        "tables": [_table(group, shown) for group in _groups(pages)] if shown else [],
        "more": len(several) - len(shown),
    }


def _groups(pages: Sequence[tuple[Cell, view.Page]]) -> Iterator[Sequence[Cell]]:
    """The first cell stands in every table, for the others to be held against."""
    cells = [cell for cell, _page in pages]
    step = MOST_COLUMNS - 1
    for begin in range(1, len(cells), step):
        yield [cells[0], *cells[begin : begin + step]]


def _table(cells: Sequence[Cell], names: Sequence[tuple[str, _Found]]) -> dict[str, Any]:
    by_id = {cell.id: cell for cell in cells}
    rows = [
        {"name": name, "values": [_value(cell, found, by_id) for cell in cells]}
        for name, found in names
        if any(cell.id in found for cell in cells)
    ]
    return {
        "cells": [cell.id for cell in cells],
        "shapes": [clean(cell.context.shape()) for cell in cells],
        "rows": rows,
    }


def _value(cell: Cell, found: _Found, cells: dict[str, Cell]) -> dict[str, str]:
    if cell.id not in found:
        return {"text": ABSENT, "unlike": ""}
    row = found[cell.id]
    first = next(cells[name] for name in found if name in cells)
    unlike = ""
    if first.id != cell.id:
        facts = tuple(matched(_conditions(first, found[first.id]), _conditions(cell, row)))
        differs = [fact.name for fact in facts if fact.state == "differs"]
        unknown = [fact.name for fact in facts if fact.state == "unknown"]
        said = [f"unlike {first.id} in {', '.join(differs)}"] if differs else []
        said += [f"not known alike: {', '.join(unknown)}"] if unknown else []
        unlike = "; ".join(said)
    return {"text": f"{_each(row)} · {row.profiled.cell.text}", "unlike": unlike}


def _conditions(cell: Cell, row: Row) -> Conditions:
    verdict = cell.analysis.kernels[row.rank - 1]
    return conditions_of(verdict, cell.analysis.reports[verdict.totals.key.report])


def _each(row: Row) -> str:
    if row.time.raw is None or not row.launches.raw:
        return ABSENT
    return numbers.duration(row.time.raw / row.launches.raw)
