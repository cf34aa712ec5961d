"""Gates on what was measured: cells, contexts, trials, captures, rigor, claims, baselines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from solscope.analysis.gates.results import (
    DECIDING_SHARE,
    draft,
    matching,
    passed,
    refuted,
    things,
    time_share,
)
from solscope.model.campaign import Campaign, Cell, Claim, GateResult
from solscope.model.context import RIGORS
from solscope.model.roofline import Chip
from solscope.model.verdict import KernelVerdict

LEAST_TRIALS = 3
MOST_OF_A_ROOF = 1.10
"""A convention: counters of different passes can explain a few percent above a roof, not a tenth.
No kernel of the real reports that the tests read stands above 0.96."""
LEAST_SHARE = 0.01
"""Below 1 % of the time kernels are too short for their passes to agree."""
# Words of products that say nothing of the model: a maker, a line, a form factor, a memory.
_NO_MODEL = re.compile(
    r"nvidia|geforce|quadro|tesla|rtx|gtx|pro|gpu|graphics|laptop|sxm\d*|pcie|nvl\d*|hbm\d*e?"
    r"|\d+gb|sm\d+"
)
_COUNT = re.compile(r"^\s*\d+\s*[x×]\s*|\s+[x×]\s*\d+\s*$", re.IGNORECASE)


def cells(campaign: Campaign) -> Iterator[GateResult]:
    for cell in campaign.cells:
        count = len(cell.analysis.kernels)
        if count == 0:
            yield draft("cells", "no kernel in this cell", cell.id, "import a bundle with results")
        elif "ncu" not in cell.captured_sources:
            yield draft("cells", "ncu is no source of this cell", cell.id, "capture with ncu")
        else:
            yield passed("cells", things(count, "kernel"), cell.id)


def context(campaign: Campaign) -> Iterator[GateResult]:
    for cell in campaign.cells:
        missing, refused = cell.context.missing(), cell.context.refused
        if missing or refused:
            parts = (
                [f"{things(len(missing), 'field')} missing: {', '.join(cell.context.gaps())}"]
                if missing
                else []
            )
            parts += [f"{name}: {why}" for name, why in refused.items()]
            yield draft(
                "context",
                "; ".join(parts),
                cell.id,
                "state them in the cell's context.yaml",
            )
        else:
            yield passed("context", f"complete: {cell.context.shape()}", cell.id)


def ceiling(campaign: Campaign) -> Iterator[GateResult]:
    """The chip and the ceilings that the context names are those that were measured."""
    for cell in campaign.cells:
        chips = {row.chip.key: row.chip for row in cell.analysis.kernels if row.chip is not None}
        used = set(chips)
        stated, _, metric = (cell.context.grounding.ceiling_key or "").partition(".")
        hardware = cell.context.identity.hardware
        if impossible := _above_its_roof(cell):
            yield refuted(
                "ceiling",
                impossible,
                cell.id,
                "capture it again; or correct --hw-key, or lay ceilings of this device over ours",
            )
        elif not used:
            yield draft(
                "ceiling",
                "the device is in no ceilings table: nothing stands against a data sheet",
                cell.id,
                "name its chip with --hw-key, or add it with --ceilings",
            )
        elif not stated:
            yield draft("ceiling", "no ceiling key stated", cell.id, "state grounding.ceiling_key")
        elif used != {stated}:
            yield refuted(
                "ceiling",
                f"the context names {stated}, the percentages are of {', '.join(sorted(used))}",
                cell.id,
                "correct grounding.ceiling_key, or import again with --hw-key",
            )
        elif differing := _differing(cell):
            yield refuted(
                "ceiling",
                differing,
                cell.id,
                "import again without --hw-key, or lay ceilings of this device over ours with "
                "--ceilings",
            )
        elif metric and metric not in chips[stated].ceilings:
            yield refuted(
                "ceiling",
                f"{stated} has no ceiling {metric}",
                cell.id,
                f"name the chip alone, or one of {', '.join(sorted(chips[stated].ceilings))}",
            )
        elif hardware is not None and not _names(hardware, cell, chips[stated]):
            yield refuted(
                "ceiling",
                f"the context says that it ran on {hardware}, the reports are of {stated}",
                cell.id,
                "correct identity.hardware, or import the reports of that hardware",
            )
        else:
            yield passed("ceiling", f"percentages are of {stated}", cell.id)


def _above_its_roof(cell: Cell) -> str:
    """A kernel that stands where none can, and that matters; empty where there is none."""
    found = [
        (row, best)
        for row in cell.analysis.kernels
        if (best := row.point.profiled_binding) is not None and best.value > MOST_OF_A_ROOF
    ]
    if not found or sum(row.time_share or 0.0 for row, _best in found) < LEAST_SHARE:
        return ""
    row, best = found[0]
    return (
        f"{row.totals.name} stands at {best.value:.1%} of {best.ceiling}: nothing runs there, so "
        "its work, its time or its chip is wrong"
    )


def _differing(cell: Cell) -> str:
    """How the device is not the product that the percentages are of; empty where it is."""
    facts = [
        finding.fact
        for row in cell.analysis.kernels
        for finding in row.findings
        if finding.code == "device-differs"
    ]
    return facts[0] if facts else ""


def _names(hardware: str, cell: Cell, chip: Chip) -> bool:
    """Whether every word of it is one of the chip's key, its name or the device's own name.

    How many there are, as in ``8x H200``, is no name; nor is ``NVIDIA`` or ``SXM``.
    """
    devices = {row.totals.device.name or "" for row in cell.analysis.kernels}
    known = {word for name in (chip.key, chip.name, *devices) for word in _words(name)}
    said = set(_words(_COUNT.sub(" ", hardware)))
    return said <= known and any(_NO_MODEL.fullmatch(word) is None for word in said)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())


def trials(campaign: Campaign) -> Iterator[GateResult]:
    promote = f"repeat the run to n >= {LEAST_TRIALS} and state mean and standard deviation"
    for cell in campaign.cells:
        trials = cell.context.grounding.trials
        if trials is None:
            yield draft("trials", "no trials stated", cell.id, promote)
        elif trials.n < LEAST_TRIALS:
            yield draft("trials", f"n = {trials.n}, below {LEAST_TRIALS}", cell.id, promote)
        elif not (math.isfinite(trials.mean) and math.isfinite(trials.std) and trials.std > 0):
            yield draft(
                "trials",
                f"{trials.spread()} is no spread that was measured",
                cell.id,
                promote,
            )
        elif trials.std >= trials.mean:
            yield draft(
                "trials",
                f"{trials.spread()}: the spread is no smaller than the mean, so nothing is known",
                cell.id,
                promote,
            )
        else:
            yield passed("trials", trials.text(), cell.id)


def capture(campaign: Campaign) -> Iterator[GateResult]:
    for cell in campaign.cells:
        problems = cell.capture.problems
        if problems:
            yield refuted("capture", "; ".join(problems), cell.id, "capture again, whole")
        elif not cell.analysis.reports:
            yield draft("capture", "no report is named", cell.id, "import the bundle again")
        else:
            seal = "sealed, digests agree" if cell.capture.is_sealed else "whole, not sealed"
            yield passed(
                "capture", f"{things(len(cell.analysis.reports), 'report')}, {seal}", cell.id
            )


def rigor(campaign: Campaign) -> Iterator[GateResult]:
    """L4 says that FLOP and bytes were counted; L3 that ncu's percentages were."""
    for cell in campaign.cells:
        stated = cell.context.grounding.sol_rigor
        counted = time_share(cell.analysis.kernels, lambda k: k.totals.intensity_pair is not None)
        busy = time_share(cell.analysis.kernels, _has_percentages)
        if stated is None:
            yield draft("rigor", "no sol_rigor stated", cell.id, "state grounding.sol_rigor")
        elif stated == "L4" and counted < DECIDING_SHARE:
            yield refuted(
                "rigor",
                f"L4 is stated and FLOP and DRAM bytes were counted for {counted:.0%} of the "
                "kernel time: percentages alone carry L3",
                cell.id,
                "capture with `solscope plan --level roofline`, or state L3",
            )
        elif stated == "L3" and max(busy, counted) < DECIDING_SHARE:
            yield refuted(
                "rigor",
                f"L3 is stated and ncu's percentages of peak are there for {busy:.0%} of the "
                "kernel time: times alone carry L2",
                cell.id,
                "capture with `solscope plan`, or state L2",
            )
        else:
            yield passed("rigor", f"{stated}; counted for {counted:.0%} of the time", cell.id)


def _has_percentages(row: KernelVerdict) -> bool:
    return row.totals.sm_busy_pct is not None or row.totals.dram_pct is not None


def carried_rigor(cell: Cell) -> str | None:
    """The stated rigor, no higher than what was measured carries; ``None`` where none is stated."""
    stated = cell.context.grounding.sol_rigor
    if stated is None:
        return None
    rows = cell.analysis.kernels
    if time_share(rows, lambda k: k.totals.intensity_pair is not None) >= DECIDING_SHARE:
        most = "L4"
    else:
        most = "L3" if time_share(rows, _has_percentages) >= DECIDING_SHARE else "L2"
    return min(stated, most, key=RIGORS.index)


def claims(campaign: Campaign) -> Iterator[GateResult]:
    if not campaign.config.claims:
        if campaign.cells:
            yield passed("claims", "no claim of a roof is made", campaign.slug)
        return
    for claim in campaign.config.claims:
        yield from _claim(campaign, claim)


def _claim(campaign: Campaign, claim: Claim) -> Iterator[GateResult]:
    what = f"at-roof of {claim.kernel or 'every kernel'}"
    rows = [
        (cell, row)
        for cell in campaign.cells
        if claim.cell in (None, cell.id)
        for row in matching(cell.analysis.kernels, claim.kernel)
    ]
    if not rows:
        yield draft(
            "claims", f"{what}: no kernel matches", "claims", "correct claims.kernel or claims.cell"
        )
    for cell, row in rows:
        yield _at_roof(cell, row)


def _at_roof(cell: Cell, row: KernelVerdict) -> GateResult:
    where = f"{cell.id}: {row.totals.name}"
    best = row.point.profiled_binding
    busy = row.totals.sm_busy_pct
    beside = "" if busy is None else f" (SM busy {busy:.1f} % says nothing about FLOP/s)"
    if row.verdict.is_at_roof:
        stands = "" if best is None else f"{best.resource} {best.value:.1%} of {best.ceiling}"
        return passed("claims", f"at the roof: {stands}", where)
    unknown = row.point.roofless
    if row.verdict.is_at_roof is None or best is None or unknown:
        counted = "no work was counted that could show it"
        if best is not None:
            counted = (
                f"counted are {best.value:.1%} of {best.ceiling}; what may stand nearer was not "
                "counted"
            )
        if unknown:
            counted = f"the roof of a part of its work ({', '.join(unknown)}) is not known"
        return draft(
            "claims",
            f"claimed at the roof, and {counted}{beside}",
            where,
            "count FLOP and DRAM bytes: `solscope plan --level roofline`",
        )
    return refuted(
        "claims",
        f"claimed at the roof, and it stands at {best.value:.1%} of {best.ceiling}{beside}",
        where,
        "withdraw the claim: there is room",
    )


def baseline(campaign: Campaign) -> Iterator[GateResult]:
    promote = "measure against what production runs and state grounding.baseline_is_production"
    for cell in campaign.cells:
        grounding = cell.context.grounding
        if not grounding.baseline:
            yield draft("baseline", "no baseline named", cell.id, promote)
        elif not grounding.baseline_is_production:
            yield draft(
                "baseline",
                f"{grounding.baseline} is not said to be what production runs",
                cell.id,
                promote,
            )
        elif other := _other_baseline(campaign, cell):
            yield draft(
                "baseline",
                f"the context names {grounding.baseline} as the baseline, the rubric compares with "
                f"{other}",
                cell.id,
                "compare with what production runs, and name it alike in both",
            )
        else:
            yield passed("baseline", f"{grounding.baseline}, as in production", cell.id)


def _other_baseline(campaign: Campaign, cell: Cell) -> str:
    """The rubric's baseline where the candidate's context names another one; else empty.

    One name may say more than the other, as a library's does with one of its kernels.
    """
    candidate, baseline = campaign.config.candidate, campaign.config.baseline
    if candidate is None or baseline is None or candidate.cell not in (None, cell.id):
        return ""
    ours, theirs = set(_words(cell.context.grounding.baseline or "")), set(_words(baseline.name))
    return "" if ours <= theirs or theirs <= ours else baseline.name
