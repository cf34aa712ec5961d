"""The rooflines of a cell; kernels with percentages alone stand at a height that is said."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from solscope.model.campaign import Cell
from solscope.model.roofline import Ceiling
from solscope.model.verdict import Analysis, KernelVerdict
from solscope.render import figure
from solscope.render.figure.panels import Panel, panels
from solscope.render.view import numbers
from solscope.render.view import page as view

MOST_HEIGHTS = 24
"""Kernels of a ceiling whose heights a caption lists: about three lines."""

PLACEHOLDER = "x is a placeholder: intensity unmeasured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Charts of one cell, with one Vega-Lite definition each.

    ``placed_by_percent`` says which heights are no rates; or is empty.
    """

    cell: str
    panels: tuple[Panel, ...]
    definitions: tuple[dict[str, Any], ...]
    placed_by_percent: str


def of_cell(cell: Cell, category_ceilings: Mapping[str, str]) -> Scatter:
    """The charts of a cell. ``category_ceilings`` names a chip's ceiling by kernel category."""
    rows: list[KernelVerdict] = []
    heights: dict[int, tuple[str, str]] = {}
    for rank, row in enumerate(cell.analysis.kernels, start=1):
        ceiling = _ceiling(row, category_ceilings)
        if ceiling is None or row.totals.sm_busy_pct is None:
            rows.append(row)
            continue
        heights[rank] = (f"#{rank} {numbers.percent(row.totals.sm_busy_pct)}", ceiling.key)
        rate = row.totals.sm_busy_pct / 100 * ceiling.peak
        rows.append(dataclasses.replace(row, point=dataclasses.replace(row.point, flop_per_s=rate)))
    shown = dataclasses.replace(cell.analysis, kernels=tuple(rows))
    drawn = tuple(_said(panel, heights) for panel in _panels(shown))
    return Scatter(
        cell=cell.id,
        panels=drawn,
        definitions=tuple(figure.of_panels([panel]) for panel in drawn),
        placed_by_percent=_caption(heights),
    )


def _panels(shown: Analysis) -> tuple[Panel, ...]:
    return figure.limited(panels(shown, view.page(shown)))


def _ceiling(row: KernelVerdict, category_ceilings: Mapping[str, str]) -> Ceiling | None:
    """The compute ceiling of the kernel's category, where its own FLOP were not counted.

    What the counters say of its tensor work goes before: without any, or on another type, the
    category's roof is not the kernel's.
    """
    if row.point.flop_per_s is not None or row.chip is None:
        return None
    name = category_ceilings.get(row.identity.category, "")
    # A family that streams from memory computes on the scalar pipes.
    ceiling = row.chip.ceilings.get("fp32_tflops" if name == "dram" else name)
    if ceiling is None or not ceiling.units.endswith(("FLOP/s", "OP/s")):
        return None
    return row.chip.ceilings.get(_own(row, "_dense_" in name), ceiling)


def _own(row: KernelVerdict, is_tensor_family: bool) -> str:
    """The ceiling of the type that its tensor cores ran on, of FP32 where they did nothing.

    Where that was not counted, of the type that its name bears, if its family is one that runs on
    tensor cores.
    """
    if row.totals.tensor_engagement == "none":
        return "fp32_tflops"
    types = [
        standing.resource.removeprefix("tensor:").removesuffix("_fp16acc")
        for standing in sorted(row.point.profiled, key=lambda s: -s.value)
        if standing.resource.startswith("tensor:")
    ]
    if not types and is_tensor_family and row.identity.dtype is not None:
        types = [row.identity.dtype]
    unit = "pops" if types and types[0].startswith("int") else "pflops"
    return f"{types[0]}_dense_{unit}" if types else ""


def _said(panel: Panel, heights: Mapping[int, tuple[str, str]]) -> Panel:
    if not any(row.rank in heights for row, _ in panel.members):
        return panel
    line = "No FLOP counted for hollow markers: SM busy % of a ceiling, not a rate"
    return dataclasses.replace(panel, subtitle=(*panel.subtitle, line), strip=PLACEHOLDER)


def _caption(heights: Mapping[int, tuple[str, str]]) -> str:
    """Every height where there are few; else the first, and how many more there are."""
    if not heights:
        return ""
    by_ceiling: dict[str, list[str]] = {}
    for height, key in heights.values():
        by_ceiling.setdefault(key, []).append(height)
    said = []
    for key, found in by_ceiling.items():
        more = len(found) - MOST_HEIGHTS
        listed = ", ".join(found[:MOST_HEIGHTS]) + (f" and {more} more" if more > 0 else "")
        said.append(f"{listed} of {key}")
    return f"Heights that are SM busy percentages, not rates: {'; '.join(said)}."
