"""Gates on a kernel comparison: the rubric, a fair baseline, like with like, H and P.

The floors of P are conventions, not physics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from solscope.analysis.gates.results import (
    DECIDING_SHARE,
    draft,
    matching,
    passed,
    refuted,
    time_share,
)
from solscope.model.campaign import Arm, Campaign, Cell, GateResult
from solscope.model.conditions import Conditions, matched_sets
from solscope.model.context import Trials
from solscope.model.kernel import KernelKey, KernelTotals
from solscope.model.verdict import KernelVerdict, conditions_of

P_FLOORS = {4: 0.60, 3: 0.40, 2: 0.10, 1: 0.0}
"""The least speed of light that a declared P can stand on; 0.60 is where a roof is near."""

WARPGROUP_SINCE = (9, 0)
"""From this compute capability on, warp-level MMA is not the chip's own tensor path."""

_Measured = tuple[Cell, tuple[KernelVerdict, ...]]
FIXED = ("workload.", "regime.")
"""What two arms may never differ in."""


def rubric(campaign: Campaign) -> Iterator[GateResult]:
    config = campaign.config
    if config.krhpa_problems:
        yield draft("rubric", "; ".join(config.krhpa_problems), "krhpa", "mend config.yaml")
    elif config.candidate is not None and config.baseline is not None:
        yield passed(
            "rubric", f"{config.candidate.text()} against {config.baseline.text()}", "krhpa"
        )
    elif config.krhpa_exempt_reason:
        yield passed("rubric", f"exempt: {config.krhpa_exempt_reason}", "krhpa_exempt_reason")
    else:
        yield draft(
            "rubric",
            "neither krhpa nor krhpa_exempt_reason is there",
            "krhpa",
            "grade candidate and baseline K, R, H, P, A from 1 to 4 and name both",
        )


def fairness(campaign: Campaign) -> Iterator[GateResult]:
    """A win over a baseline of lower H or R proves nothing; nor can H1 beat H3 on a hard op."""
    candidate, baseline = campaign.config.candidate, campaign.config.baseline
    if candidate is None or baseline is None:
        yield from _uncompared("fairness", campaign)
        return
    promote = "compare with the library that production runs, on its own tensor path"
    reasons = [
        f"the baseline {baseline.name} is {axis}{baseline.axes[axis]}, the candidate "
        f"{axis}{candidate.axes[axis]}: a win over it proves nothing"
        for axis in ("H", "R")
        if baseline.axes[axis] < candidate.axes[axis]
    ]
    hard = min(candidate.axes["K"], baseline.axes["K"]) >= 3
    if hard and candidate.axes["H"] == 1 and baseline.axes["H"] >= 3:
        reasons.append(
            f"an H1 candidate does not beat an H{baseline.axes['H']} baseline on K3 or K4 work by "
            "scheduling: a measured win comes from something else than GPU work"
        )
    for reason in reasons:
        yield draft("fairness", reason, "krhpa", promote)
    if not reasons:
        yield passed("fairness", "the baseline's H and R are not below the candidate's", "krhpa")


def comparison(campaign: Campaign) -> Iterator[GateResult]:
    """Two arms were measured alike: context, ncu, clocks, caches, replay."""
    candidate, baseline = campaign.config.candidate, campaign.config.baseline
    if candidate is None or baseline is None:
        yield from _uncompared("comparison", campaign)
        return
    ours, theirs = _measured(campaign, candidate), _measured(campaign, baseline)
    if isinstance(ours, str) or isinstance(theirs, str):
        reason = "; ".join(r for r in (ours, theirs) if isinstance(r, str))
        yield draft("comparison", reason, "krhpa", "name each arm's cell, and kernel if needed")
        return
    if _is_one_measurement(ours, theirs):
        yield draft(
            "comparison",
            "both arms hold the same kernels of the same report",
            "krhpa",
            "name each arm's cell, and kernel if needed",
        )
        return
    yield from _alike(ours, theirs, campaign.config.varies)


def hardware(campaign: Campaign) -> Iterator[GateResult]:
    yield from _per_arm("hardware", campaign, _hardware_of)


def performance(campaign: Campaign) -> Iterator[GateResult]:
    yield from _per_arm("performance", campaign, _performance_of)


def _uncompared(gate: str, campaign: Campaign) -> Iterator[GateResult]:
    """Only a stated exemption says that there is nothing to compare."""
    if campaign.config.krhpa_exempt_reason and not campaign.config.krhpa_problems:
        yield passed(gate, "nothing is compared: the campaign is exempt", "krhpa_exempt_reason")
    else:
        yield draft(gate, "no two arms to compare", "krhpa", "state krhpa, or why it is exempt")


def _is_one_measurement(ours: _Measured, theirs: _Measured) -> bool:
    """Whether the arms share a kernel of one file, wherever it stands among the files of a cell,
    or one whose every number is the same: a copy under another name, packed or printed anew."""
    if _sources(*ours) & _sources(*theirs):
        return True
    known: dict[KernelKey, list[KernelTotals]] = {}
    for row in theirs[1]:
        totals = _without_place(row.totals)
        known.setdefault(totals.key, []).append(totals)
    mine = [_without_place(row.totals) for row in ours[1]]
    return any(totals in known.get(totals.key, ()) for totals in mine)


def _sources(cell: Cell, rows: Sequence[KernelVerdict]) -> set[tuple[str, KernelKey]]:
    """Which kernels of which file an arm consists of."""
    digests = [report.provenance.sha256 for report in cell.analysis.reports]
    return {(digests[row.totals.key.report], _without_place(row.totals).key) for row in rows}


def _without_place(totals: KernelTotals) -> KernelTotals:
    return replace(totals, key=replace(totals.key, report=0))


def _alike(ours: _Measured, theirs: _Measured, varies: Sequence[str]) -> Iterator[GateResult]:
    one, other = ours[0].context, theirs[0].context
    where = f"{ours[0].id} against {theirs[0].id}"
    forbidden = [name for name in varies if name.startswith(FIXED)]
    differing = [name for name in one.differences(other) if name not in varies or name in forbidden]
    facts = tuple(matched_sets(_conditions(*ours), _conditions(*theirs), same_problem=True))
    differing += [
        f"{fact.name} ({fact.a} against {fact.b})" for fact in facts if fact.state == "differs"
    ]
    if one.grounding.same_node is False or other.grounding.same_node is False:
        differing.append("the node")
    unknown = [fact.name for fact in facts if fact.state == "unknown"]
    said = [f"the arms differ in {', '.join(differing)}"] if differing else []
    said += [f"not known of both arms: {', '.join(unknown)}"] if unknown else []
    if _names(ours[1]) == _names(theirs[1]) and not one.differences(other):
        said.append("both run the same kernels in the same context: nothing tells them apart")
    if ours[0].id != theirs[0].id:
        said += _trials(one.grounding.trials, other.grounding.trials)
    if said:
        yield draft(
            "comparison",
            "; ".join(said),
            where,
            "measure both arms alike, with ncu's own report files, or name what the comparison "
            "changes in varies",
        )
    else:
        yield passed("comparison", _passing(ours[0], theirs[0]), where)


def _passing(ours: Cell, theirs: Cell) -> str:
    """What two arms that are alike have in common, what was changed, and what their trials say."""
    one, other = ours.context, theirs.context
    values, others = dict(one.values()), dict(other.values())
    changed = [f"{name} ({values[name]} against {others[name]})" for name in one.differences(other)]
    but = f" but for {', '.join(changed)}" if changed else ""
    shown = (
        "" if ours.id == theirs.id else _difference(one.grounding.trials, other.grounding.trials)
    )
    return f"same context{but}, same way of profiling{shown}"


def _names(rows: Sequence[KernelVerdict]) -> set[str]:
    return {row.totals.key.name_full for row in rows}


def _trials(one: Trials | None, other: Trials | None) -> Iterator[str]:
    """Why the trials of two arms cannot be held against each other."""
    if one is None or other is None:
        return  # the gate of trials says so
    if _tried(one) != _tried(other):
        yield (
            f"their trials are of {one.quantity} in {one.unit} and of {other.quantity} in "
            f"{other.unit}"
        )
    elif (one.n, one.mean, one.std) == (other.n, other.mean, other.std):
        yield f"both state the same trials ({one.text()}), and each arm has its own"


def _tried(trials: Trials) -> tuple[str, str]:
    # ms and Ms are two units: only a quantity's case is nobody's business.
    return " ".join(trials.quantity.lower().split()), trials.unit.strip()


def _difference(one: Trials | None, other: Trials | None) -> str:
    """What the trials say of the candidate; a difference within their spreads is none."""
    if one is None or other is None:
        return ""
    change = one.mean / other.mean - 1.0 if other.mean else 0.0
    is_beyond = abs(one.mean - other.mean) > one.std + other.std
    word = "beyond their spreads" if is_beyond else "within their spreads: no difference is shown"
    return (
        f"; {one.quantity} {one.spread()} against {other.spread()}: {abs(change):.1%} "
        f"{'lower' if change < 0 else 'higher'}, {word}"
    )


def _conditions(cell: Cell, rows: Sequence[KernelVerdict]) -> tuple[Conditions, ...]:
    """How each kernel of an arm was profiled. Its launch shape is the arm's own affair."""
    return tuple(conditions_of(row, cell.analysis.reports[row.totals.key.report]) for row in rows)


def _per_arm(
    gate: str,
    campaign: Campaign,
    of: Callable[[str, Arm, Cell, Sequence[KernelVerdict]], GateResult],
) -> Iterator[GateResult]:
    candidate, baseline = campaign.config.candidate, campaign.config.baseline
    if candidate is None or baseline is None:
        yield from _uncompared(gate, campaign)
        return
    for side, arm in (("candidate", candidate), ("baseline", baseline)):
        measured = _measured(campaign, arm)
        if isinstance(measured, str):
            yield draft(gate, measured, f"krhpa.{side}", "add the arm's cell and name it")
        else:
            yield of(f"krhpa.{side}", arm, *measured)


def _measured(campaign: Campaign, arm: Arm) -> _Measured | str:
    """The arm's cell and kernels; a sentence where there are none."""
    if arm.cell is None and len(campaign.cells) != 1:
        return f"{arm.name}: no cell is named and the campaign has {len(campaign.cells)}"
    cell = campaign.cells[0] if arm.cell is None else campaign.cell(arm.cell)
    if cell is None:
        return f"{arm.name}: there is no cell {arm.cell}"
    rows = matching(cell.analysis.kernels, arm.kernel)
    if not rows:
        return f"{arm.name}: no kernel of {cell.id} matches {arm.kernel!r}"
    return cell, rows


def is_engaged(row: KernelVerdict) -> bool | None:
    """Whether the kernel's work is the tensor cores'. ``None`` where that was not measured.

    A kernel that issues a few tensor operations beside more scalar work is not engaged.
    """
    engagement, flop = row.totals.tensor_engagement, row.totals.flop
    if engagement is None:
        return None
    if engagement == "none":
        return False
    if flop.tensor is None or flop.fp32 is None:
        return True
    tensor = sum(flop.tensor.values()) + sum(flop.tensor_sparse.values())
    return tensor > flop.fp32 + (flop.fp16 or 0.0) + (flop.fp64 or 0.0)


def _hardware_of(where: str, arm: Arm, cell: Cell, rows: Sequence[KernelVerdict]) -> GateResult:
    grade = arm.axes["H"]
    known = time_share(rows, lambda row: is_engaged(row) is not None)
    engaged = time_share(rows, lambda row: bool(is_engaged(row)))
    legacy = time_share(rows, _is_behind_its_chip)
    said = f"tensor cores do the work in {engaged:.0%} of {arm.name}'s kernel time"
    if known < 1.0:
        said += f" (not measured in {1.0 - known:.0%} of it)"
    if grade <= 2:
        return _graded_low(where, grade, known, engaged, said)
    if engaged + (1.0 - known) < DECIDING_SHARE:
        return refuted(
            "hardware",
            f"H{grade} is declared in {cell.id} and {said}",
            where,
            "grade it H1, or show the kernel that runs on tensor cores",
        )
    if engaged < DECIDING_SHARE:
        return draft(
            "hardware",
            f"H{grade} is declared and tensor engagement was measured for {known:.0%} of the time",
            where,
            "collect tensor operations: `solscope plan --level roofline`",
        )
    if grade == 4 and legacy > DECIDING_SHARE:
        return refuted(
            "hardware",
            f"H4 is declared and {legacy:.0%} of the time is warp-level MMA, which is not this "
            "chip's own tensor path",
            where,
            "grade it H3, or use the warpgroup path",
        )
    return passed("hardware", f"H{grade}: {said}", where)


def _graded_low(where: str, grade: int, known: float, engaged: float, said: str) -> GateResult:
    """H1 and H2 claim no tensor path: graded down, an arm would look fair beside a slow one."""
    if engaged >= DECIDING_SHARE:
        return refuted("hardware", f"H{grade} is declared and {said}", where, "grade by what ran")
    if engaged + (1.0 - known) >= DECIDING_SHARE:
        return draft(
            "hardware",
            f"H{grade} is declared and tensor engagement was measured for {known:.0%} of the time",
            where,
            "collect tensor operations: `solscope plan --level roofline`",
        )
    return passed("hardware", f"H{grade} claims no tensor path; {said}", where)


def _is_behind_its_chip(row: KernelVerdict) -> bool:
    capability = row.totals.device.compute_capability
    return (
        row.totals.tensor_engagement == "legacy-mma"
        and capability is not None
        and capability >= WARPGROUP_SINCE
    )


def _performance_of(where: str, arm: Arm, cell: Cell, rows: Sequence[KernelVerdict]) -> GateResult:
    """Time at the speed of light over time taken, of the kernels whose work was counted."""
    grade = arm.axes["P"]
    floor = P_FLOORS[grade]
    speed, counted = speed_of_light(rows)
    if floor == 0:
        return passed("performance", f"P{grade} claims no speed", where)
    if speed is None or counted < DECIDING_SHARE:
        return draft(
            "performance",
            f"P{grade} is declared in {cell.id} and work was counted against a known roof for "
            f"{counted:.0%} of {arm.name}'s kernel time: busy percentages are no speed of light",
            where,
            "count FLOP and DRAM bytes: `solscope plan --level roofline`",
        )
    said = f"{arm.name} stands at {speed:.1%} of the speed of light"
    if speed < floor:
        return refuted(
            "performance",
            f"P{grade} is declared and {said}, below {floor:.0%}",
            where,
            "grade P by what was measured",
        )
    return passed("performance", f"P{grade}: {said}", where)


def speed_of_light(rows: Sequence[KernelVerdict]) -> tuple[float | None, float]:
    """(time at the speed of light over time taken, the share of time that this covers).

    Only kernels whose work was counted, and all of it against a roof, enter; ``None`` where there
    is none.
    """
    ideal = taken = 0.0
    for row in rows:
        best, time = row.point.profiled_binding, row.totals.duration_ns
        if best is not None and time is not None and not row.point.roofless:
            ideal += min(best.value, 1.0) * time
            taken += time
    counted = time_share(
        rows,
        lambda row: row.point.profiled_binding is not None and not row.point.roofless,
    )
    return (ideal / taken if taken else None), counted
