"""Totals and ceilings in, points out: intensity, rates, and both speed-of-light values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from solscope.model.finding import Absence
from solscope.model.kernel import KernelTotals
from solscope.model.roofline import Ceiling, Chip, RooflinePoint, Standing

L2_RESIDENT_SHARE = 0.01
"""DRAM bytes under this share of the L2 traffic: the kernel runs out of L2."""

DRAM_LEAST_BYTES = 32.0
"""One sector. Less than that per launch cannot be traffic of the kernel."""

SCALAR = ("fp64", "fp32", "fp16")

_LEAST_SHARE = 0.1
_LEAST_SHARES: Mapping[str, float] = {"fp64": 0.01}
"""Less of a kernel's work cannot be what holds it; FP64 runs at 1/64 of FP32 on some chips."""

FP16_ACCUMULATE = "_fp16acc"

# Lanes that do an FMA each cycle, per SM: FP32 by compute capability (64 up to 8.0, then 128).
_FP32_LANES: Mapping[tuple[int, int], int] = {
    (7, 0): 64,
    (7, 2): 64,
    (7, 5): 64,
    (8, 0): 64,
    (8, 6): 128,
    (8, 7): 128,
    (8, 9): 128,
    (9, 0): 128,
    (10, 0): 128,
    (10, 3): 128,
    (11, 0): 128,
    (12, 0): 128,
    (12, 1): 128,
}


def place(totals: KernelTotals, chip: Chip | None) -> RooflinePoint:
    """The point of one kernel. ``chip`` gives the data-sheet ceilings, or ``None``."""
    flop_per_s = _rate(totals.flop_rate_pair)
    bytes_per_s = _rate(totals.dram_rate_pair)
    is_resident = is_l2_resident(totals)
    absences: list[Absence] = []
    intensity = _intensity(totals, is_resident, absences)
    profiled = tuple(_profiled(totals, chip))
    datasheet = tuple(_datasheet(totals, chip)) if chip is not None else ()
    if not profiled:
        absences.append(_no_profiled(totals, chip))
    if chip is not None and not datasheet:
        absences.append(
            Absence(
                field="speed_of_light.datasheet",
                reason=_why_not_counted(totals)
                or f"no ceiling of {chip.key} is for what was counted",
                remedy="collect FLOP and DRAM byte counters",
                is_derived=True,
            )
        )
    return RooflinePoint(
        intensity=intensity,
        flop_per_s=flop_per_s,
        dram_bytes_per_s=bytes_per_s,
        profiled=profiled,
        datasheet=datasheet,
        is_l2_resident=is_resident,
        absences=tuple(absences),
        roofless=_roofless(totals, profiled),
    )


def ridge_point(peak_flop_per_s: float, peak_bytes_per_s: float) -> float:
    """Intensity (FLOP/byte) above which DRAM is no longer the limit.

    >>> ridge_point(8.0, 2.0)
    4.0
    """
    return peak_flop_per_s / peak_bytes_per_s


def is_l2_resident(totals: KernelTotals) -> bool:
    """Whether DRAM traffic is so small beside the L2 traffic that L2 is where the data lives."""
    if totals.dram_bytes is None:
        return False
    if totals.dram_bytes < DRAM_LEAST_BYTES * totals.launches:
        return True
    return bool(totals.l2_bytes) and totals.dram_bytes < L2_RESIDENT_SHARE * (totals.l2_bytes or 0)


def _roofless(totals: KernelTotals, profiled: Sequence[Standing]) -> tuple[str, ...]:
    """Resources that did a part of the work that matters and whose roof is not known, the one
    that did most first."""
    known = {standing.resource for standing in profiled}
    if not totals.duration_ns:
        return ()
    rates = dict(_work_rates(totals))
    whole = max(sum(rates.values()), (totals.flop.total or 0.0) / totals.duration_ns * 1e9)
    found = [
        name
        for name, rate in rates.items()
        if name not in known and rate > _LEAST_SHARES.get(name, _LEAST_SHARE) * whole
    ]
    return tuple(sorted(found, key=lambda name: -rates[name]))


def _rate(pair: tuple[float, float] | None) -> float | None:
    if pair is None or pair[1] <= 0:
        return None
    return pair[0] / pair[1] * 1e9


def _intensity(totals: KernelTotals, is_resident: bool, absences: list[Absence]) -> float | None:
    pair = totals.intensity_pair
    if pair is None:
        missing = [
            name
            for name, value in (("FLOP", totals.flop_rate_pair), ("DRAM bytes", totals.dram_bytes))
            if value is None
        ]
        absences.append(
            Absence(
                field="arithmetic_intensity",
                reason=f"{' and '.join(missing) or 'FLOP and bytes together'} not measured",
                remedy="collect both in one capture: `solscope plan --level roofline`",
                is_derived=True,
            )
        )
        return None
    if is_resident or pair[1] <= 0:
        traffic = f" of {totals.l2_bytes:.0f} B L2 traffic" if totals.l2_bytes else ""
        absences.append(
            Absence(
                field="arithmetic_intensity",
                reason=f"L2-resident: {pair[1]:.0f} B DRAM{traffic}",
                remedy="judge it against L2, or profile with caches flushed (--cache-control all)",
            )
        )
        return None
    return pair[0] / pair[1]


def _why_not_counted(totals: KernelTotals) -> str | None:
    """What keeps a kernel from every roof; ``None`` where work and time were counted."""
    if totals.duration_ns is None:
        return "no duration was collected"
    if totals.dram_rate_pair is None and not any(True for _ in _work_rates(totals)):
        return "neither FLOP nor DRAM bytes were counted"
    return None


def _no_profiled(totals: KernelTotals, chip: Chip | None) -> Absence:
    """Why nothing stands at the clock of the profile: no work, or no peak to set it against."""
    field, missing = "speed_of_light.profiled", _why_not_counted(totals)
    if missing is not None:
        return Absence(
            field=field,
            reason=missing,
            remedy="collect FLOP and DRAM byte counters: `--set roofline` with ncu 2025.1 "
            "or newer, or `solscope plan --level roofline`",
            is_derived=True,
        )
    metrics: list[str] = []
    if totals.dram_rate_pair is not None:
        metrics += ["dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second"]
    has_flop = any(True for _ in _work_rates(totals))
    if has_flop and totals.peaks.sm_clock_hz is None:
        metrics.append("sm__cycles_elapsed.avg.per_second")
    lacks_size = has_flop and not totals.device.sm_count and chip is None
    lacks = [*(["the clock"] if metrics else []), *(["the number of SMs"] if lacks_size else [])]
    remedies = [f"collect `--metrics {','.join(metrics)}`"] if metrics else []
    return Absence(
        field=field,
        reason="work was counted, but the peak at the clock of the profile is not known: "
        + (f"it needs {' and '.join(lacks)}" if lacks else "no table holds it"),
        remedy="; ".join([*remedies, *(["say the chip with --chip"] if lacks_size else [])])
        or None,
    )


def _work_rates(totals: KernelTotals) -> Iterator[tuple[str, float]]:
    """(resource, FLOP/s) of every precision that did work. Needs the total duration."""
    time_ns = totals.duration_ns
    if time_ns is None:
        return
    for precision in SCALAR:
        work = getattr(totals.flop, precision)
        if work:
            yield precision, work / time_ns * 1e9
    for label, work in totals.flop.tensor_paths.items():
        yield f"tensor:{label}", work / time_ns * 1e9


def _profiled(totals: KernelTotals, chip: Chip | None) -> Iterator[Standing]:
    """Standings at the clock of the profile: peaks of the report first, then rate x clock."""
    bandwidth = _rate(totals.dram_rate_pair)
    if bandwidth is not None:
        limit = _profiled_dram(totals)
        if limit is not None:
            yield _standing("dram", bandwidth, *limit)
    l2 = _l2_standing(totals)
    if l2 is not None:
        yield l2
    for resource, rate in _work_rates(totals):
        limit = _profiled_compute(totals, chip, resource)
        if limit is not None:
            yield _standing(resource, rate, *limit)


_Limit = tuple[float, str, float | None, str]  # peak, name, clock, basis


def _standing(
    resource: str, achieved: float, peak: float, name: str, clock: float | None, basis: str
) -> Standing:
    return Standing(
        resource=resource,
        value=achieved / peak,
        achieved=achieved,
        peak=peak,
        ceiling=name,
        clock_hz=clock,
        basis=basis,
    )


def _profiled_dram(totals: KernelTotals) -> _Limit | None:
    peaks = totals.peaks
    if peaks.dram_bytes_per_s is not None:
        return (
            peaks.dram_bytes_per_s,
            "dram__bytes.sum.peak_sustained",
            peaks.dram_clock_hz,
            "report",
        )
    from_attributes = totals.device.dram_bytes_per_s
    if from_attributes is None:
        return None
    clock = totals.device.max_memory_clock_khz
    return (
        from_attributes,
        "device attributes: 2 x memory clock x bus width",
        None if clock is None else clock * 1e3,
        "attributes",
    )


def _l2_standing(totals: KernelTotals) -> Standing | None:
    """L2 by its own busy percentage: its bytes have no single peak that holds both ways."""
    if totals.l2_pct is None or totals.l2_bytes is None or not totals.duration_ns:
        return None
    value = totals.l2_pct / 100
    achieved = totals.l2_bytes / totals.duration_ns * 1e9
    if value <= 0:
        return None
    return Standing(
        resource="l2",
        value=value,
        achieved=achieved,
        peak=achieved / value,
        ceiling="lts__throughput",
        clock_hz=None,
        basis="report",
    )


def _profiled_compute(totals: KernelTotals, chip: Chip | None, resource: str) -> _Limit | None:
    peaks, device = totals.peaks, totals.device
    clock = peaks.sm_clock_hz
    if resource in SCALAR:
        stored = getattr(peaks, f"{resource}_flop_per_s")
        if stored is not None:
            operation = {"fp64": "dfma", "fp32": "ffma", "fp16": "hfma"}[resource]
            name = f"sm__sass_thread_inst_executed_op_{operation}_pred_on.sum.peak_sustained"
            return stored, name, clock, "report"
    else:
        label = resource.partition(":")[2]
        stored = _tensor_peak(peaks.tensor_flop_per_s, label)
        if stored is not None:
            return stored, f"sm__ops_path_tensor src_{label} dense peak_sustained", clock, "report"
    count = device.sm_count or (None if chip is None else chip.sm_count)
    if clock is None or not count:
        return None
    per_sm = _rate_per_sm(resource, chip, device.compute_capability)
    if per_sm is None:
        return None
    rate, source = per_sm
    if not device.sm_count and chip is not None:
        source += f", its {count} SMs (the report does not say how many the device has)"
    return rate * count * clock, source, clock, "table"


def _tensor_peak(stored: Mapping[str, float], label: str) -> float | None:
    """A type's stored peak; that of FP32 accumulation where FP16's own was not stored."""
    return stored.get(label, stored.get(label.removesuffix(FP16_ACCUMULATE)))


def _rate_per_sm(
    resource: str, chip: Chip | None, capability: tuple[int, int] | None
) -> tuple[float, str] | None:
    """(operations per SM and cycle, where that is from)."""
    label = resource.partition(":")[2] or resource
    if chip is not None:
        rates = chip.dense_ops_per_clk_per_sm
        names = (
            ("fp16_nontensor",)
            if resource == "fp16"
            else ("fp64_tensor",)
            if resource == "tensor:fp64"
            else _spellings(label)
        )
        for name in names:
            if name in rates:
                return rates[name], f"{chip.key}: {name} per SM and clock"
    if resource == "fp32" and capability is not None and capability in _FP32_LANES:
        lanes = _FP32_LANES[capability]
        return 2.0 * lanes, f"{lanes} FP32 lanes per SM x 2"
    return None


def _spellings(label: str) -> tuple[str, ...]:
    """The names under which a type's rate stands, the most exact first."""
    if label.endswith(FP16_ACCUMULATE):
        return label, label.removesuffix(FP16_ACCUMULATE)
    return label, f"{label}_fp32acc"


def datasheet_ceiling(chip: Chip, resource: str) -> Ceiling | None:
    """The data-sheet ceiling of a resource: dense, FP32-accumulate where the chip tells apart."""
    if resource == "dram":
        return next((c for name, c in chip.ceilings.items() if name.endswith("_tbps")), None)
    label = resource.partition(":")[2]
    names = {
        "fp32": ("fp32_tflops",),
        "fp64": ("fp64_tflops",),
        "fp16": ("fp16_nontensor_tflops",),
        "tensor:fp64": ("fp64_tensor_tflops",),
    }.get(
        resource,
        tuple(f"{name}_dense_{unit}" for name in _spellings(label) for unit in ("pflops", "pops")),
    )
    return next((chip.ceilings[name] for name in names if name in chip.ceilings), None)


def _datasheet(totals: KernelTotals, chip: Chip) -> Iterator[Standing]:
    rates = list(_work_rates(totals))
    bandwidth = _rate(totals.dram_rate_pair)
    if bandwidth is not None:
        rates.insert(0, ("dram", bandwidth))
    for resource, rate in rates:
        ceiling = datasheet_ceiling(chip, resource)
        if ceiling is not None:
            yield _standing(
                resource, rate, ceiling.peak, ceiling.key, ceiling.clock_hz, "datasheet"
            )
