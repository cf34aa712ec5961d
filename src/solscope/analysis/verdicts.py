"""Points in, claims with their grounds out.

The thresholds are conventions, not physics: 60 % is where ncu's own rules begin to call a
resource a bottleneck, 80 % where they call it close to its limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from solscope.model.finding import Finding, Severity
from solscope.model.kernel import KernelIdentity, KernelTotals
from solscope.model.roofline import RooflinePoint, Standing
from solscope.model.verdict import Verdict

NEAR = 0.60
AT_ROOF = 0.80
L2_MARGIN = 0.15
TINY_NS = 5_000.0
"""Below this a launch is mostly ramp-up and drain."""


def judge(identity: KernelIdentity, totals: KernelTotals, point: RooflinePoint) -> Verdict:
    """What binds one kernel, and why one may believe it."""
    if identity.is_collective:
        return Verdict(bound="peers", grounds=tuple(_peers(totals, point)))
    binding = _binding(point)
    if binding is not None:
        return _at_a_roof(binding, totals, point)
    if _is_too_small(totals):
        return Verdict(
            bound="too-small", grounds=tuple(_too_small(totals, point)), is_at_roof=_far(point)
        )
    by_percent = _by_percentages(totals, point) or _at_an_unknown_roof(totals, point)
    if by_percent is not None:
        return by_percent
    if _nothing_measured(totals, point):
        return Verdict(bound="unmeasured", grounds=tuple(_unmeasured(totals, point)))
    return Verdict(bound="latency", grounds=tuple(_latency(totals, point)), is_at_roof=_far(point))


def _binding(point: RooflinePoint) -> Standing | None:
    """The nearest roof, if one is near.

    A kernel that streams from DRAM drives L2 as hard; DRAM is then the cause, unless L2 is
    clearly busier.
    """
    near = {s.resource: s for s in point.profiled if s.value >= NEAR}
    if not near:
        return None
    nearest = max(near.values(), key=lambda s: s.value)
    dram = near.get("dram")
    if nearest.resource == "l2" and dram is not None and nearest.value < dram.value + L2_MARGIN:
        return dram
    return nearest


def _far(point: RooflinePoint) -> bool | None:
    """Not at the roof, as far as that was measured: both sides must have been counted, and the
    roofs of all work be known."""
    if point.roofless:
        return None
    return False if point.intensity is not None or point.is_l2_resident else None


def _at_a_roof(binding: Standing, totals: KernelTotals, point: RooflinePoint) -> Verdict:
    grounds = [_standing_text(binding)]
    grounds.extend(
        _standing_text(other)
        for other in sorted(point.profiled, key=lambda s: -s.value)
        if other is not binding and other.value >= 0.3
    )
    if totals.tensor_engagement == "legacy-mma" and binding.resource.startswith("tensor"):
        grounds.append("warp-level MMA: the warpgroup path of this chip is faster")
    # L2 is judged by a busy percentage, which carries no claim of a roof.
    counted = binding.resource != "l2"
    return Verdict(
        bound=binding.resource.removesuffix("_fp16acc"),
        grounds=tuple(grounds),
        is_at_roof=binding.value >= AT_ROOF if counted else None,
    )


_RATE_UNITS = {"dram": "B/s", "l2": "B/s"}


def _standing_text(standing: Standing) -> str:
    percent = f"{100 * standing.value:.1f} %"
    if standing.resource == "l2":
        return f"L2 busy {percent} ({_si(standing.achieved)}B/s of L2 traffic)"
    work = "OP/s" if standing.resource.startswith("tensor:int") else "FLOP/s"
    unit = _RATE_UNITS.get(standing.resource, work)
    clock = f" at {standing.clock_hz / 1e9:.2f} GHz" if standing.clock_hz else ""
    return (
        f"{_label(standing.resource)} {percent} of {_si(standing.peak)}{unit}{clock} "
        f"({_si(standing.achieved)}{unit})"
    )


def _label(resource: str) -> str:
    kind, _, dtype = resource.partition(":")
    if not dtype:
        return kind.upper()
    label = f"tensor {dtype.removesuffix('_fp16acc').upper()}"
    return f"{label} (FP16 accumulate)" if dtype.endswith("_fp16acc") else label


def _si(value: float) -> str:
    for limit, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= limit:
            return f"{value / limit:.3g} {prefix}"
    return f"{value:.3g} "


def _is_too_small(totals: KernelTotals) -> bool:
    waves = totals.waves_per_sm
    mean_ns = totals.duration_ns / totals.launches if totals.duration_ns else None
    if mean_ns is not None and mean_ns < TINY_NS:
        return True
    if waves is not None:
        return waves < 1 and not _fills_every_sm(totals)
    return False


def _fills_every_sm(totals: KernelTotals) -> bool:
    """A persistent kernel launches one block per SM (or cluster) on purpose."""
    grid, sms = totals.key.grid, totals.device.sm_count
    if grid is None or not sms:
        return False
    return grid[0] * grid[1] * grid[2] >= 0.9 * sms


def _too_small(totals: KernelTotals, point: RooflinePoint) -> Iterator[str]:
    grid, sms = totals.key.grid, totals.device.sm_count
    blocks = grid[0] * grid[1] * grid[2] if grid else None
    if totals.waves_per_sm is not None and blocks is not None and totals.waves_per_sm < 1:
        per_sm = f" x {totals.blocks_per_sm:.0f} blocks/SM" if totals.blocks_per_sm else ""
        have = f"{sms} SMs{per_sm}" if sms else "the GPU"
        noun = "block" if blocks == 1 else "blocks"
        yield f"{blocks} {noun} for {have}: {totals.waves_per_sm:.2f} waves"
    if totals.duration_ns:
        mean_us = totals.duration_ns / totals.launches / 1e3
        if mean_us < TINY_NS / 1e3:
            yield f"{mean_us:.1f} µs a launch: ramp-up and drain are a large part of it"
    yield from _best_standing(point)


def _best_standing(point: RooflinePoint) -> Iterator[str]:
    best = point.profiled_binding
    if best is not None:
        yield f"nearest roof: {_standing_text(best)}"


def _peers(totals: KernelTotals, point: RooflinePoint) -> Iterator[str]:
    yield "a collective: its time includes waiting for other GPUs, which no counter separates"
    yield from _best_standing(point)
    if totals.launches > 1 and totals.duration_min_ns and totals.duration_max_ns:
        yield (
            f"launches take {totals.duration_min_ns / 1e3:.1f} to "
            f"{totals.duration_max_ns / 1e3:.1f} µs"
        )


def _by_percentages(totals: KernelTotals, point: RooflinePoint) -> Verdict | None:
    """Where nothing was counted, ncu's busy percentages can still say what is busy."""
    if point.intensity is not None:
        return None
    stands = any(s.resource == "dram" for s in point.profiled)
    dram, l2, busy = totals.dram_pct, totals.l2_pct, totals.sm_busy_pct
    if dram is not None and dram >= 100 * NEAR and not stands:
        return Verdict(
            bound="dram",
            grounds=tuple(_dram_busy(dram, totals, point)),
        )
    if l2 is not None and l2 >= 100 * NEAR:
        return Verdict(bound="l2", grounds=(f"L2 busy {l2:.1f} % of its peak (a percentage)",))
    memory = totals.memory_pct
    if memory is not None and memory >= 100 * NEAR and (dram is None or l2 is None):
        return Verdict(
            bound="unmeasured",
            grounds=(
                f"memory busy {memory:.1f} % of its peak (a percentage): whether that is DRAM, L2 "
                "or L1 was not collected",
            ),
        )
    tensor = totals.tensor_pipe_pct
    if tensor is not None and tensor >= 100 * NEAR and totals.flop_rate_pair is None:
        return Verdict(
            bound="tensor",
            grounds=(
                f"tensor pipe busy {tensor:.1f} % (a percentage; the operations and their data "
                "type were not counted: no claim of the roof)",
            ),
        )
    if busy is not None and busy >= 100 * NEAR and totals.flop_rate_pair is None:
        member = f" (its busiest unit: {totals.sm_busy_member})" if totals.sm_busy_member else ""
        return Verdict(
            bound="unmeasured",
            grounds=(
                f"SM busy {busy:.1f} %{member}: issue slots and pipes are busy, which says "
                "nothing about FLOP/s: tensor or FLOP counters were not collected",
            ),
        )
    return None


def _at_an_unknown_roof(totals: KernelTotals, point: RooflinePoint) -> Verdict | None:
    """Where no roof is known for the work that was done, its pipe may be the nearest one."""
    unknown = point.roofless
    if not unknown or not point.profiled:
        return None
    tensor, busy = totals.tensor_pipe_pct, totals.sm_busy_pct
    types = [name for name in unknown if name.startswith("tensor")]
    if types and tensor is not None and tensor >= 100 * NEAR:
        return Verdict(
            bound=types[0].removesuffix("_fp16acc"),
            grounds=(
                f"tensor pipe busy {tensor:.1f} % (a percentage; {_no_roof(unknown)}: no claim of "
                "the roof)",
                *_best_standing(point),
            ),
        )
    # Every pipe is a part of SM busy: below that, none is near its peak.
    by_tensor = len(types) == len(unknown) and tensor is not None
    shown = tensor if by_tensor else busy
    if shown is None or shown >= 100 * NEAR:
        return Verdict(bound="unmeasured", grounds=(_no_roof(unknown), *_best_standing(point)))
    return None


def _no_roof(unknown: tuple[str, ...]) -> str:
    names = " and ".join(_label(name) for name in unknown)
    return f"the peak of {names} at the clock of the profile is not known"


def _dram_busy(percent: float, totals: KernelTotals, point: RooflinePoint) -> Iterator[str]:
    missing = (
        "the bytes were not counted"
        if totals.dram_bytes is None
        else "bytes were counted, the peak at the clock of the profile is not known"
    )
    yield f"DRAM busy {percent:.1f} % of its peak (a percentage; {missing}: no claim of the roof)"
    rates = [launch.metrics.get("dram__bytes.sum.per_second") for launch in totals.members]
    if totals.dram_bytes is None and len(rates) == 1 and isinstance(rates[0], int | float):
        peak = 100 * rates[0] / percent
        yield f"{_si(rates[0])}B/s moved: by that percentage its peak is {_si(peak)}B/s"
    for standing in point.datasheet:
        if standing.resource == "dram":
            yield f"by the data sheet: {_standing_text(standing)}"


def _nothing_measured(totals: KernelTotals, point: RooflinePoint) -> bool:
    if point.profiled and (point.intensity is not None or point.is_l2_resident):
        return False
    return totals.sm_busy_pct is None or (totals.memory_pct is None and totals.dram_pct is None)


def _unmeasured(totals: KernelTotals, point: RooflinePoint) -> Iterator[str]:
    if point.is_l2_resident:
        yield "DRAM traffic is negligible: the kernel works in L2, and its roof there is not known"
    reasons = {a.field: a.reason for a in totals.absences}
    for name in ("duration_ns", "flop.fp32", "flop.tensor", "dram_bytes"):
        if name in reasons:
            yield reasons[name]
    if totals.dram_pct is not None:
        yield f"DRAM busy {totals.dram_pct:.1f} %"


def _latency(totals: KernelTotals, point: RooflinePoint) -> Iterator[str]:
    best = point.profiled_binding
    unknown = point.roofless
    if best is not None and unknown:
        pipes = [("tensor pipe", totals.tensor_pipe_pct), ("SM", totals.sm_busy_pct)]
        busy = [f"{name} busy {pct:.1f} %" for name, pct in pipes if pct is not None]
        yield f"no known roof is near; nearest: {_standing_text(best)}"
        yield "; ".join([_no_roof(unknown), *busy])
    elif best is not None:
        yield f"no roof is near; nearest: {_standing_text(best)}"
    else:
        yield (
            f"neither is busy: compute {totals.sm_busy_pct:.1f} %, {_memory_text(totals)} "
            f"(percentages; {_uncounted(totals)})"
        )
    if totals.stalls:
        top = ", ".join(f"{s.reason} {100 * s.share:.0f} %" for s in totals.stalls[:3])
        kind = "sampled" if totals.stalls_are_sampled else "of stalled warp cycles"
        yield f"warps wait on {top} ({kind})"
    yield from _occupancy(totals)


def _memory_text(totals: KernelTotals) -> str:
    if totals.memory_pct is not None:
        return f"memory {totals.memory_pct:.1f} %"
    unknown = " and ".join(
        name for name, pct in (("L2", totals.l2_pct), ("L1", totals.l1_pct)) if pct is None
    )
    return f"DRAM {totals.dram_pct:.1f} %" + (f", {unknown} not collected" if unknown else "")


def _uncounted(totals: KernelTotals) -> str:
    """What a percentage stands in for."""
    has_flop, has_bytes = totals.flop_rate_pair is not None, totals.dram_bytes is not None
    if has_flop and has_bytes:
        return "the peaks at the clock of the profile are not known"
    if has_flop or has_bytes:
        return f"no {'bytes' if has_flop else 'FLOP'} were counted"
    return "no FLOP or bytes were counted"


def _occupancy(totals: KernelTotals) -> Iterator[str]:
    achieved, possible = totals.achieved_occupancy_pct, totals.theoretical_occupancy_pct
    if achieved is None:
        return
    text = f"occupancy {achieved:.1f} %"
    if possible is not None:
        text += f" of {possible:.1f} % possible"
    if totals.occupancy_limiter and (possible is None or possible < 100):
        text += f", limited by {' and '.join(totals.occupancy_limiter)}"
    yield text


def findings(
    totals: KernelTotals, point: RooflinePoint, mismatch: str | None = None
) -> Iterator[Finding]:
    """What a reader of the numbers must know: traps, and values above 100 %.

    ``mismatch`` says where the device and its data sheet disagree.
    """
    where = totals.name
    if mismatch is not None:
        yield Finding(
            code="device-differs",
            severity=Severity.WARNING,
            where=where,
            fact=f"the device is not the product of the data sheet: {mismatch}",
            remedy="a partition (MIG), another bin, or a wrong --chip: read the profiled value",
        )
    if totals.hfma2_only:
        yield Finding(
            code="hfma2-constants",
            severity=Severity.INFO,
            where=where,
            fact="the only FP16 instructions are HFMA2 that look like constant moves",
            remedy="none needed: they are not counted as FP16 work",
        )
    yield from _persistent(totals)
    yield from _warpgroup(totals)
    for standing in (*point.profiled, *point.datasheet):
        if standing.value > 1.0:
            yield _above(standing, totals)


_LOW_OCCUPANCY_PCT = 30.0


def _persistent(totals: KernelTotals) -> Iterator[Finding]:
    """One wave of few warps that keep a pipe busy: occupancy is low by design."""
    waves, occupancy, tensor = (
        totals.waves_per_sm,
        totals.achieved_occupancy_pct,
        totals.tensor_pipe_pct,
    )
    if waves is None or occupancy is None or tensor is None:
        return
    if 0.9 <= waves <= 1.0 and occupancy < _LOW_OCCUPANCY_PCT and tensor >= 100 * NEAR:
        yield Finding(
            code="persistent",
            severity=Severity.INFO,
            where=totals.name,
            fact=f"{waves:.2f} waves, occupancy {occupancy:.1f} %, tensor pipe {tensor:.1f} % "
            "busy: a persistent kernel, whose few warps are its design",
            remedy="judge it by its tensor work; ncu's estimates for occupancy do not apply",
        )


def _warpgroup(totals: KernelTotals) -> Iterator[Finding]:
    """Warpgroup MMA ran while the hmma path counter, which leaves it out, reads zero."""
    metrics = [launch.metrics for launch in totals.members]
    hmma = [m[n] for m in metrics for n in m.starting("sm__ops_path_tensor_op_hmma")]
    gmma = [
        value
        for m in metrics
        for n in m.starting("sm__inst_executed_pipe_tensor_op_gmma")
        if isinstance(value := m[n], int | float)
    ]
    if hmma and not any(hmma) and sum(gmma) > 0:
        yield Finding(
            code="hmma-leaves-out-wgmma",
            severity=Severity.WARNING,
            where=totals.name,
            fact=f"{sum(gmma):,.0f} wgmma instructions ran on the tensor cores; the hmma counter "
            "does not cover them, so its 0 is no statement about tensor work",
            remedy="collect the hgmma or `sm__ops_path_tensor_src_*` counters",
        )


def _above(standing: Standing, totals: KernelTotals) -> Finding:
    clock = totals.peaks.sm_clock_hz
    if standing.basis == "datasheet" and standing.clock_hz and clock and clock > standing.clock_hz:
        reason = (
            f"the data sheet quotes {standing.clock_hz / 1e9:.2f} GHz and the profile ran at "
            f"{clock / 1e9:.2f} GHz"
        )
    elif standing.resource == "dram":
        reason = (
            "the memory clock during the pass, or bytes and time of different passes, explain "
            "a few percent"
        )
    else:
        reason = "work and time were measured in different passes, at slightly different clocks"
    return Finding(
        code="above-100",
        severity=Severity.WARNING,
        where=totals.name,
        fact=f"{_standing_text(standing)} by {standing.ceiling}: above 100 % because {reason}",
        remedy="compare at the clock of the profile",
    )
