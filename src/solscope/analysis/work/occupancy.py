"""What limits residency, and why warps wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from solscope.analysis.work.counters import number
from solscope.model.kernel import StallShare
from solscope.model.report import KernelLaunch, Metrics

LIMITS: Mapping[str, str] = {
    "registers": "launch__occupancy_limit_registers",
    "shared_mem": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
    "barriers": "launch__occupancy_limit_barriers",
}

REASONS = (
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "gmma",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "misc",
    "no_instruction",
    "not_selected",
    "selected",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
)
_NOT_STALLS = ("selected",)
_SAMPLED_NAMES = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}


def limiter(metrics: Metrics) -> tuple[tuple[str, ...], float | None]:
    """(what allows the fewest blocks per SM, that number of blocks)."""
    limits = {
        name: value
        for name, metric in LIMITS.items()
        if (value := number(metrics, metric)) is not None and value > 0
    }
    if not limits:
        return (), None
    least = min(limits.values())
    return tuple(name for name, value in limits.items() if value == least), least


def stalls(launches: Sequence[KernelLaunch]) -> tuple[tuple[StallShare, ...], bool]:
    """(share of each stall reason, whether sampled). Largest first.

    Counted reasons are warp cycles per issued instruction, so launches are weighted by their
    issued instructions; where that is unknown the launches must agree in number of one. Sampled
    reasons are samples and add up.
    """
    counted = _counted(launches)
    if counted:
        return _shares(counted), False
    sampled = _sampled(launches)
    return _shares(sampled), bool(sampled)


def _counted(launches: Sequence[KernelLaunch]) -> dict[str, float]:
    sums: dict[str, float] = {}
    weights = [_issued(launch.metrics) for launch in launches]
    if any(weight is None for weight in weights):
        # Without a common weight only one launch can speak: the longest.
        launches = launches[:1]
        weights = [1.0]
    for launch, weight in zip(launches, weights, strict=True):
        for reason in REASONS:
            value = number(
                launch.metrics,
                f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",
            )
            if value is not None and weight is not None:
                sums[reason] = sums.get(reason, 0.0) + value * weight
    return sums


def _issued(metrics: Metrics) -> float | None:
    for name in ("smsp__inst_issued.sum", "smsp__issue_active.sum", "smsp__inst_executed.sum"):
        value = number(metrics, name)
        if value is not None:
            return value
    return None


def _sampled(launches: Sequence[KernelLaunch]) -> dict[str, float]:
    sums: dict[str, float] = {}
    prefix = "smsp__pcsamp_warps_issue_stalled_"
    for launch in launches:
        for name in launch.metrics.starting(prefix):
            if name.endswith("_not_issued"):
                continue
            value = number(launch.metrics, name)
            if value is not None:
                raw = name.removeprefix(prefix)
                reason = _SAMPLED_NAMES.get(raw, raw)
                sums[reason] = sums.get(reason, 0.0) + value
    return sums


def _shares(sums: Mapping[str, float]) -> tuple[StallShare, ...]:
    waiting = {r: v for r, v in sums.items() if r not in _NOT_STALLS and v > 0}
    total = sum(waiting.values())
    ranked = sorted(waiting.items(), key=lambda item: -item[1])
    return tuple(StallShare(reason=reason, share=value / total) for reason, value in ranked)
