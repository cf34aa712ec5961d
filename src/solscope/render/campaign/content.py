"""A campaign as the plain values that its pages show: HTML and PDF say the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solscope.model.campaign import (
    Campaign,
    CampaignVerdict,
    Cell,
    Frontier,
    GateResult,
    Lever,
    Standing,
)
from solscope.model.context import SECTIONS, Trials, exact
from solscope.model.finding import Severity
from solscope.render.campaign import arms, comparison
from solscope.render.campaign.frontier import win
from solscope.render.view import numbers
from solscope.render.view import page as view
from solscope.render.view.numbers import ABSENT, clean
from solscope.render.view.rows import Row

MOST_ROWS = 22
"""Kernels on pages 3 and 4, which are one page each; all of them stand in the appendix."""

MOST_COMPARED = 60
"""Kernels that several cells share, longest first."""

MOST_CELLS = 4
"""Contexts beside each other on page 2; the others stand in the appendix."""

MOST_GATES, MOST_LEVERS = 14, 5
MOST_PLACES = 44
"""Characters of cells' names that lack the same."""


def content(campaign: Campaign, verdict: CampaignVerdict, frontier: Frontier) -> dict[str, Any]:
    """Everything that the pages say, but for the charts."""
    pages = [(cell, view.page(cell.analysis)) for cell in campaign.cells]
    rows = [(cell, row) for cell, page in pages for row in page.rows]
    rows.sort(key=lambda pair: -(pair[1].time.raw or 0.0))
    failed = [result for result in verdict.results if not result.passes]
    reasons = _by_reason(failed)
    contexts = [_contexts(group) for group in _groups(campaign.cells)]
    return {
        "title": clean(campaign.config.name),
        "slug": campaign.slug,
        "description": clean(campaign.config.description),
        "focus": clean(campaign.config.focus or ""),
        "tier": verdict.tier.value,
        "rigor": verdict.sol_rigor or "not stated",
        "taken_at": verdict.taken_at,
        "incomplete": " ".join(page.incomplete_text for _, page in pages if page.incomplete_text),
        "cells": [_cell(cell, page) for cell, page in pages],
        "checks": len(verdict.results),
        "failed_checks": len(failed),
        "failed": [_gate(result) for result in reasons[:MOST_GATES]],
        "more_failed": max(len(reasons) - MOST_GATES, 0),
        "gates": [_gate(result) for result in verdict.results],
        "next": _next(campaign, frontier),
        "levers": [_lever(lever) for lever in frontier.open[:MOST_LEVERS]],
        "all_levers": [_lever(lever) for lever in frontier.open],
        "refuted": [{"title": clean(f.title), "why": clean(f.why or "")} for f in frontier.refuted],
        "contexts": contexts[:1],
        "more_contexts": contexts[1:],
        "kernels": [_brief(cell, row) for cell, row in rows[:MOST_ROWS]],
        "all_kernels": [_kernel(cell, row) for cell, row in rows],
        "more_kernels": max(len(rows) - MOST_ROWS, 0),
        "most": MOST_ROWS,
        "warps": [_short(_warps(cell, row), _WARP_WIDTHS) for cell, row in rows[:MOST_ROWS]],
        "all_warps": [_warps(cell, row) for cell, row in rows],
        "comparison": comparison.content(pages, MOST_COMPARED),
        "observations": list(_observations(rows)),
        "cautions": list(_cautions(campaign.cells)),
        "mechanisms": [_mechanism(cell, row) for cell, row in rows],
        "provenance": [_source(cell, page) for cell, page in pages],
        "ceilings": _ceilings(pages),
        "rubric": list(arms.rows(campaign)),
        "headline": arms.headline(campaign, verdict),
        "exempt": clean(campaign.config.krhpa_exempt_reason or "").rstrip("."),
    }


def _groups(cells: Sequence[Cell]) -> Iterator[Sequence[Cell]]:
    for begin in range(0, len(cells), MOST_CELLS):
        yield cells[begin : begin + MOST_CELLS]


def _by_reason(failed: Sequence[GateResult]) -> list[GateResult]:
    """What several cells lack alike is said once, with all their names."""
    groups: dict[tuple[str, ...], list[GateResult]] = {}
    for result in failed:
        key = (result.gate, result.standing.value, result.reason, result.promote)
        groups.setdefault(key, []).append(result)
    return [
        dataclasses.replace(found[0], where=_places([result.where for result in found]))
        for found in groups.values()
    ]


def _places(names: Sequence[str]) -> str:
    """As many names as fit on a line, at least one, and how many more there are."""
    shown = tuple(names[:1])
    for name in names[1:]:
        if len(", ".join((*shown, name))) > MOST_PLACES:
            break
        shown = (*shown, name)
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _gate(result: GateResult) -> dict[str, Any]:
    return {
        "gate": result.gate,
        "passes": result.passes,
        "standing": {"pass": "pass", "draft": "DRAFT", "refuted": "FAIL"}[result.standing.value],
        "is_refuted": result.standing is Standing.REFUTED,
        "where": clean(result.where),
        "reason": clean(result.reason),
        "promote": clean(result.promote),
    }


def _next(campaign: Campaign, frontier: Frontier) -> dict[str, str]:
    """The next lever, as stated, else the frontier's first, else the wall."""
    stated = campaign.config.next_lever
    if stated is not None:
        values = (stated.what, stated.unlock, stated.gate)
    elif frontier.open:
        first = frontier.open[0]
        values = (first.what, _unlock(first), first.gate)
    elif campaign.config.wall:
        values = ("none: the frontier is empty", campaign.config.wall, "the documented wall")
    else:
        values = ("none is known", ABSENT, ABSENT)
    return dict(zip(("what", "unlock", "gate"), map(clean, values), strict=True))


def _unlock(lever: Lever) -> str:
    if lever.max_win is not None:
        return f"at most {win(lever)} of {lever.basis}"
    if lever.share is None:
        return "how much is not known"
    share = numbers.fraction(lever.share)
    return f"how much is not known: less than the {share} of {lever.basis} that it takes"


def _lever(lever: Lever) -> dict[str, str]:
    return {
        "what": clean(f"{lever.cell}: {lever.what}" if lever.cell else lever.what),
        "win": win(lever),
        "basis": lever.basis,
        "cost": lever.cost or ABSENT,
        "confidence": lever.confidence,
        "gate": clean(lever.gate) or ABSENT,
        "rests_on": clean(lever.rests_on),
    }


def _cell(cell: Cell, page: view.Page) -> dict[str, Any]:
    rigor = cell.context.grounding.sol_rigor
    trials = cell.context.grounding.trials
    return {
        "id": cell.id,
        "hardware": cell.hw_key or "unknown",
        "shape": clean(cell.context.shape()),
        "kernels": page.kernel_count,
        "time": page.total_time,
        "rigor": rigor or "not stated",
        "trials": _value(trials),
        "has_trials": trials is not None,
        "complete": "yes" if page.complete else "no",
    }


def _value(value: object) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Trials):
        return clean(value.text())
    if isinstance(value, float):
        return exact(value)
    return clean(str(value))


def _contexts(cells: Sequence[Cell]) -> dict[str, Any]:
    stated = [dict(cell.context.values()) for cell in cells]
    sections = []
    for section in SECTIONS:
        names = [name for name in stated[0] if name.startswith(f"{section}.")]
        sections.append(
            {
                "name": section,
                "fields": [
                    {
                        "name": name.partition(".")[2].replace("_", " "),
                        "values": [_value(values[name]) for values in stated],
                    }
                    for name in names
                ],
            }
        )
    return {"cells": [cell.id for cell in cells], "sections": sections}


def _kernel(cell: Cell, row: Row) -> dict[str, str]:
    return {
        "cell": cell.id,
        "shape": clean(cell.context.shape()),
        "name": row.name,
        "family": row.family,
        "launches": row.launches_text,
        "colour": row.bound_style.colour,
        "bound": row.bound_label,
        "time": row.time.text,
        "share": row.share.text,
        "intensity": row.intensity.text,
        "rate": row.flop_rate.text,
        "dram": row.dram_rate.text,
        "profile": row.profiled.cell.text,
        "sheet": row.sheet.cell.text,
        "at_roof": row.at_roof,
    }


def _brief(cell: Cell, row: Row) -> dict[str, str]:
    """The same on two lines at most, for a table that is one page."""
    return _short(_kernel(cell, row), {"name": 40, "shape": 80, "family": 20, "cell": 26})


_WARP_WIDTHS = {"name": 48, "cell": 26}


def _short(shown: dict[str, str], widths: Mapping[str, int]) -> dict[str, str]:
    return {**shown, **{key: numbers.shorten(shown[key], most) for key, most in widths.items()}}


def _warps(cell: Cell, row: Row) -> dict[str, str]:
    stalls = ", ".join(f"{s.reason} {s.text}" for s in row.stalls[:3])
    facts = dict(row.facts)
    return {
        "cell": cell.id,
        "name": row.name,
        "occupancy": row.occupancy.text,
        "limiter": row.limiter or ABSENT,
        "registers": facts.get("registers per thread", facts.get("registers", ABSENT)),
        "tensor": row.tensor_pipe.text,
        "stalls": stalls or "not measured",
        "source": row.stalls_source if stalls else "",
    }


def _observations(rows: Sequence[tuple[Cell, Row]]) -> Iterator[dict[str, str]]:
    """What was measured, and nothing else."""
    for cell, row in rows:
        facts = [f"{row.time.text} in {row.launches_text}"]
        if row.profiled.cell.raw is not None:
            facts.append(row.profiled.basis)
        if row.intensity.raw is not None:
            facts.append(f"intensity {row.intensity.text}")
        if row.occupancy.raw is not None:
            facts.append(f"occupancy {row.occupancy.text}")
        if row.sm_busy.raw is not None and row.profiled.cell.raw is None:
            facts.append(f"SM busy {row.sm_busy.text} (a percentage; no work was counted)")
        yield {"cell": cell.id, "name": row.name, "text": "; ".join(facts)}


def _cautions(cells: Sequence[Cell]) -> Iterator[dict[str, str]]:
    """What a reader must know of a number, such as why one is above 100 %; each fact once."""
    for cell in cells:
        found: dict[tuple[str, str], list[str]] = {}
        for row in cell.analysis.kernels:
            for finding in row.findings:
                if finding.severity is not Severity.INFO:
                    key = (finding.fact, finding.remedy)
                    found.setdefault(key, []).append(row.totals.name)
        for (fact, remedy), names in found.items():
            yield {
                "cell": cell.id,
                "name": clean(_places(list(dict.fromkeys(names)))),
                "text": clean(f"{fact}: {remedy}"),
            }


def _mechanism(cell: Cell, row: Row) -> dict[str, str]:
    """What the verdict concludes, and how sure it is."""
    counted = row.profiled.cell.raw is not None
    text = "; ".join(row.grounds) or "nothing can be concluded"
    if row.bound != "peers":  # of a collective no roof is claimed
        text += f". At the roof: {row.at_roof}"
    return {
        "cell": cell.id,
        "name": row.name,
        "bound": row.bound_label,
        "text": text,
        "confidence": "counted work" if counted else "percentages only",
    }


def _source(cell: Cell, page: view.Page) -> dict[str, Any]:
    reports = [
        {
            "file": shown.file,
            "sha256": report.provenance.sha256,
            "tool": shown.tool,
            "device": shown.device,
            "ceilings": shown.chip,
            "how": f"taken with {shown.context}" if shown.context else "controls not stated",
            "complete": "whole" if report.complete else "cut",
            "notes": [f"{i.severity.value}: {i.what}" for i in shown.issues],
        }
        for shown, report in zip(page.reports, cell.analysis.reports, strict=True)
    ]
    return {
        "id": cell.id,
        "run": clean(cell.run_id),
        "added": cell.added_at,
        "seal": "sealed, digests agree"
        if cell.capture.is_sealed and not cell.capture.problems
        else "not sealed",
        "problems": [clean(problem) for problem in cell.capture.problems],
        "reports": reports,
    }


def _ceilings(pages: Sequence[tuple[Cell, view.Page]]) -> list[dict[str, str]]:
    seen: dict[tuple[str, str, str], dict[str, str]] = {}
    for _cell, page in pages:
        for row in page.ceilings:
            seen.setdefault(
                (row.key, row.peak, row.clock),
                {
                    "key": row.key,
                    "resource": row.resource,
                    "peak": row.peak,
                    "clock": row.clock,
                    "source": row.source,
                },
            )
    return list(seen.values())
