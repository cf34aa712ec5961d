"""A campaign in, gate results out. Nothing passes because nothing was there to check.

``evidence`` judges what was measured, ``arms`` what is compared; ``results`` words them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from solscope.analysis.gates import arms, evidence
from solscope.analysis.gates.results import draft, passed
from solscope.model.campaign import (
    Campaign,
    CampaignVerdict,
    Frontier,
    GateResult,
    Lever,
    Tier,
    is_nothing,
)
from solscope.model.context import RIGORS

_NEXT = "name the next lever: what, unlock, gate"

GATES: dict[str, Callable[[Campaign], Iterator[GateResult]]] = {
    "cells": evidence.cells,
    "context": evidence.context,
    "ceiling": evidence.ceiling,
    "trials": evidence.trials,
    "capture": evidence.capture,
    "rigor": evidence.rigor,
    "claims": evidence.claims,
    "baseline": evidence.baseline,
    "rubric": arms.rubric,
    "fairness": arms.fairness,
    "comparison": arms.comparison,
    "hardware": arms.hardware,
    "performance": arms.performance,
}
"""Every gate by its name; ``next-lever`` comes last and needs the frontier."""


def check(campaign: Campaign, frontier: Frontier) -> tuple[GateResult, ...]:
    """Every gate on a campaign, in the order of ``GATES``; each yields at least one result."""
    results: list[GateResult] = []
    found_by = {name: tuple(gate(campaign)) for name, gate in GATES.items()}
    found_by["next-lever"] = tuple(_next_lever(campaign, frontier))
    for name, found in found_by.items():
        results += found or (
            draft(name, "nothing was there to check", campaign.slug, "add a cell to the campaign"),
        )
    return tuple(results)


def judge(campaign: Campaign, frontier: Frontier, taken_at: str) -> CampaignVerdict:
    """The tier that the gates allow: VERDICT where every one passes, else DRAFT."""
    results = check(campaign, frontier)
    passes = bool(results) and all(result.passes for result in results)
    rigors = [evidence.carried_rigor(cell) for cell in campaign.cells]
    known = [rigor for rigor in rigors if rigor is not None]
    return CampaignVerdict(
        slug=campaign.slug,
        tier=Tier.VERDICT if passes else Tier.DRAFT,
        results=results,
        sol_rigor=min(known, key=RIGORS.index) if known and len(known) == len(rigors) else None,
        taken_at=taken_at,
    )


def _is_whole(lever: Lever) -> bool:
    """Whether a lever says what it may unlock, and how that would be proved."""
    return not is_nothing(lever.gate) and (lever.max_win is not None or lever.share is not None)


def _next_lever(campaign: Campaign, frontier: Frontier) -> Iterator[GateResult]:
    config = campaign.config
    if config.next_lever is not None:
        lever = config.next_lever
        blank = [
            name
            for name, value in (
                ("what", lever.what),
                ("unlock", lever.unlock),
                ("gate", lever.gate),
            )
            if is_nothing(value)
        ]
        if blank:
            yield draft("next-lever", f"next_lever says no {', '.join(blank)}", "next_lever", _NEXT)
        else:
            yield passed("next-lever", f"{lever.what} ({lever.unlock})", "next_lever")
    elif frontier.open:
        whole = [lever for lever in frontier.open if _is_whole(lever)]
        if whole:
            yield passed("next-lever", whole[0].what, "frontier")
        else:
            yield draft(
                "next-lever",
                "no open lever says what it may win and which measurement would prove it",
                "frontier",
                "give findings in value-findings.yaml max_win and gate, or name next_lever",
            )
    elif not campaign.cells:
        return
    elif config.wall:
        yield passed("next-lever", f"the frontier is empty; the wall: {config.wall}", "wall")
    else:
        yield draft(
            "next-lever",
            "the frontier is empty and no wall is documented",
            "next_lever",
            f"{_NEXT}; or document the wall in wall",
        )
