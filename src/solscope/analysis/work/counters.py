"""Scalar work, bytes and time of one launch, from whichever form of a counter was stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from solscope.analysis.work.opcodes import Opcodes, without_counter
from solscope.model.finding import Absence
from solscope.model.report import KernelLaunch, Metrics

BYTES_PER_SECTOR = 32
BYTES_PER_L1_WRITEBACK = 128

ROUNDING = 0.005
"""A printed rate per cycle makes a total only where its last digit hides less than this share."""

PACKED_FP32_CAPABILITIES = frozenset({(10, 0), (10, 3)})
"""Chips that have the packed fadd2/fmul2/ffma2 families, which the scalar ones do not contain."""

_DURATIONS = (
    "gpu__time_duration.sum",
    "gpu__time_duration.max",
    "gpu__time_duration.avg",
    "gpu__time_duration_measured_user.sum",
    "gpu__time_duration_measured_wallclock.sum",
    "gpu__time_duration",
)

_NO_COUNTER = "no {} operation counter was collected"
_FLOP_REMEDY = (
    "collect `--section SpeedOfLight_RooflineChart` (FP32 and FP64), or `--metrics "
    "smsp__sass_thread_inst_executed_op_{fadd,fmul,ffma,hadd,hmul,hfma,dadd,dmul,dfma}_pred_on.sum`"
)
_OPERATIONS = ("add", "mul", "fma")
_CYCLES_REMEDY = "collect `--metrics gpu__time_duration.sum` or `--section SpeedOfLight` too"
_DIGITS_REMEDY = "read the report itself (.ncu-rep), or collect the counters' .sum"
_DRAM_REMEDY = "collect `--metrics dram__bytes_read.sum,dram__bytes_write.sum`"
_DRAM_REMEDY_CC12 = "collect `--metrics dram__bytes_op_read.sum,dram__bytes_op_write.sum`"


@dataclass(slots=True)
class Ledger:
    """Why quantities of one launch are missing, and how others were obtained."""

    absences: list[Absence] = field(default_factory=list)

    def miss(self, name: str, reason: str, remedy: str | None = None) -> None:
        """Note that a quantity is absent."""
        self.absences.append(Absence(field=name, reason=reason, remedy=remedy))


def number(metrics: Metrics, name: str) -> float | None:
    """A finite number under exactly this name, else ``None`` (``nan`` counts as absent)."""
    value = metrics.get(name)
    if value is None or isinstance(value, str):
        return None
    return float(value) if math.isfinite(value) else None


def first(metrics: Metrics, names: Sequence[str]) -> float | None:
    """The first of these names that holds a finite number."""
    for name in names:
        value = number(metrics, name)
        if value is not None:
            return value
    return None


def duration_ns(metrics: Metrics) -> float | None:
    """GPU time of the launch in ns; a duration of zero or less counts as absent."""
    value = first(metrics, _DURATIONS)
    return value if value is not None and value > 0 else None


def cycles(metrics: Metrics, unit: str, time_ns: float | None) -> float | None:
    """Elapsed cycles of a hardware unit: stored, or clock x time."""
    stored = number(metrics, f"{unit}__cycles_elapsed.avg")
    if stored is not None:
        return stored
    clock = number(metrics, f"{unit}__cycles_elapsed.avg.per_second")
    return None if clock is None or time_ns is None else clock * time_ns * 1e-9


def counter_sum(metrics: Metrics, counter: str, time_ns: float | None) -> float | None:
    """Device-wide total of a counter, by whichever rollup was stored.

    ``X.sum``; else ``X.sum.per_cycle_elapsed`` x cycles of X's unit (exact where it is stored
    whole: it gives back the integer; left out where a page printed too few digits of it); else
    ``X.sum.per_second`` x time.
    """
    total, per_cycle_name, per_second_name, unit = _rollups(counter)
    stored = number(metrics, total)
    if stored is not None:
        return stored
    per_cycle = number(metrics, per_cycle_name)
    if per_cycle is not None and _has_digits(metrics, per_cycle_name, per_cycle):
        if per_cycle == 0:
            return 0.0
        elapsed = cycles(metrics, unit, time_ns)
        if elapsed is not None:
            return _integral(per_cycle * elapsed)
    rate = number(metrics, per_second_name)
    if rate is not None and time_ns is not None:
        return _integral(rate * time_ns * 1e-9)
    return None


def _has_digits(metrics: Metrics, name: str, value: float) -> bool:
    """Whether a printed value tells its total: 0.00 may be anything below half a hundredth."""
    return metrics.half_digit(name) <= ROUNDING * abs(value)


def _no_counter(
    metrics: Metrics, letter: str, precision: str, histogram: Opcodes
) -> tuple[str, str]:
    """(reason, remedy) for a scalar precision without a total."""
    names = [
        name
        for name in metrics.starting("smsp__sass_thread_inst_executed_op_" + letter)
        if name.endswith(".per_cycle_elapsed")
    ]
    rates = {name: value for name in names if (value := number(metrics, name)) is not None}
    if len(rates) >= len(_OPERATIONS) and all(
        _has_digits(metrics, name, value) for name, value in rates.items()
    ):
        reason = (
            f"the {precision} operations were counted per cycle, but not the cycles or the time"
        )
        return without_counter(reason, _CYCLES_REMEDY, histogram)
    if any(metrics.half_digit(name) for name in names):
        reason = f"the {precision} operation counters were printed with too few digits per cycle"
        return without_counter(reason, _DIGITS_REMEDY, histogram)
    return without_counter(_NO_COUNTER.format(precision), _FLOP_REMEDY, histogram)


@lru_cache(maxsize=1024)
def _rollups(counter: str) -> tuple[str, str, str, str]:
    """(total, per cycle, per second, hardware unit) of a counter; the names are asked for often."""
    unit = counter.split("__", 1)[0]
    total = f"{counter}.sum"
    return total, f"{total}.per_cycle_elapsed", f"{total}.per_second", unit


def _integral(value: float) -> float:
    """Counts are integers: take off the rounding of the stored rate, and nothing more."""
    nearest = round(value)
    return float(nearest) if abs(value - nearest) <= 1e-6 * max(1.0, abs(value)) else value


def sass(metrics: Metrics, operation: str, time_ns: float | None) -> float | None:
    """Thread-level count of one SASS operation (``ffma``, ``hadd`` ...), predicated-on threads."""
    for unit in ("smsp", "sm"):
        if not metrics.starting(f"{unit}__sass_thread_inst_executed_op_"):
            continue
        counter = f"{unit}__sass_thread_inst_executed_op_{operation}_pred_on"
        value = counter_sum(metrics, counter, time_ns)
        if value is not None:
            return value
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """Scalar work of a launch in FLOP, by precision; ``hfma2_only`` marks the constant trap."""

    fp64: float | None
    fp32: float | None
    fp16: float | None
    hfma2_only: bool = False
    hfma2_count: float = 0.0


def scalar_work(launch: KernelLaunch, time_ns: float | None, ledger: Ledger) -> Scalar:
    """FLOP of the CUDA cores: adds + multiplies + 2 x FMAs, packed forms by their lanes.

    The opcode histogram stands in where the counters were not collected: its thread counts are
    the same (predicate true), and it exists in full sets of every release.
    """
    metrics = launch.metrics
    histogram = Opcodes(metrics, "sass__thread_inst_executed_true_per_opcode")
    fp64 = _family(metrics, "d", time_ns, histogram, ("DADD", "DMUL", "DFMA"), 1.0)
    fp32 = _family(metrics, "f", time_ns, histogram, ("FADD", "FMUL", "FFMA"), 1.0)
    if fp32 is not None and launch.device.compute_capability in PACKED_FP32_CAPABILITIES:
        fp32 = _with_packed(metrics, fp32, time_ns, histogram, ledger)
    elif fp32 is None:
        ledger.miss("flop.fp32", *_no_counter(metrics, "f", "FP32", histogram))
    if fp64 is None:
        ledger.miss("flop.fp64", *_no_counter(metrics, "d", "FP64", histogram))
    return _with_fp16(metrics, time_ns, histogram, ledger, fp64=fp64, fp32=fp32)


def _family(
    metrics: Metrics,
    letter: str,
    time_ns: float | None,
    histogram: Opcodes,
    names: tuple[str, str, str],
    lanes: float,
) -> float | None:
    counts = [sass(metrics, f"{letter}{op}", time_ns) for op in _OPERATIONS]
    add, mul, fma = counts
    if add is None or mul is None or fma is None:
        if not histogram:
            return None
        add, mul, fma = (histogram.total(name) for name in names)
    return lanes * (add + mul + 2 * fma)


def _with_packed(
    metrics: Metrics,
    fp32: float,
    time_ns: float | None,
    histogram: Opcodes,
    ledger: Ledger,
) -> float | None:
    packed = [sass(metrics, f"f{op}2", time_ns) for op in _OPERATIONS]
    add, mul, fma = packed
    if add is None or mul is None or fma is None:
        if not histogram:
            ledger.miss(
                "flop.fp32",
                "the packed FP32 counters (fadd2, fmul2, ffma2) of this chip were not collected; "
                "the others alone would under-count",
                "collect `--metrics smsp__sass_thread_inst_executed_op_{fadd2,fmul2,ffma2}"
                "_pred_on.sum` too",
            )
            return None
        add, mul, fma = (histogram.total(n) for n in ("FADD2", "FMUL2", "FFMA2"))
    return fp32 + 2 * add + 2 * mul + 4 * fma


def _with_fp16(
    metrics: Metrics,
    time_ns: float | None,
    histogram: Opcodes,
    ledger: Ledger,
    *,
    fp64: float | None,
    fp32: float | None,
) -> Scalar:
    add, mul, fma = (sass(metrics, f"h{op}", time_ns) for op in _OPERATIONS)
    if (add is None or mul is None or fma is None) and histogram:
        # Histogram keys are bare opcodes (HFMA2) or carry the pipe (HFMA2.MMA).
        add = histogram.total("HADD2", "HADD2_32")
        mul = histogram.total("HMUL2")
        fma = histogram.total("HFMA2", "HFMA2.MMA")
    if add is None or mul is None or fma is None:
        ledger.miss("flop.fp16", *_no_counter(metrics, "h", "FP16", histogram))
        return Scalar(fp64=fp64, fp32=fp32, fp16=None)
    # Compilers materialise constants with HFMA2: FMAs without one FP16 add or multiply, in a
    # kernel whose FP32 work outweighs them, are that and not arithmetic.
    looks_constant = fma > 0 and add == 0 and mul == 0 and (fp32 or 0.0) > 4 * fma
    if looks_constant:
        ledger.miss(
            "flop.fp16",
            f"{fma:.0f} HFMA2 thread instructions and no HADD2 or HMUL2: likely constant moves, "
            "not counted as work",
        )
        return Scalar(fp64=fp64, fp32=fp32, fp16=None, hfma2_only=True, hfma2_count=fma)
    return Scalar(fp64=fp64, fp32=fp32, fp16=2 * add + 2 * mul + 4 * fma)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes moved by a launch. ``estimate_bytes_per_s`` is a percentage times a peak."""

    read: float | None
    write: float | None
    total: float | None
    l2: float | None
    l1: float | None
    estimate_bytes_per_s: float | None = None


def traffic(launch: KernelLaunch, time_ns: float | None, ledger: Ledger) -> Traffic:
    """DRAM, L2 and L1 bytes by the names of the chip."""
    metrics = launch.metrics
    read, write, total = _dram(metrics, time_ns)
    estimate = None
    if total is None:
        estimate = _estimate(launch)
        is_cc12 = (launch.device.compute_capability or (0, 0))[0] == 12
        ledger.miss(
            "dram_bytes",
            _no_bytes(metrics),
            _DRAM_REMEDY_CC12 if is_cc12 else _DRAM_REMEDY,
        )
    return Traffic(
        read=read,
        write=write,
        total=total,
        l2=_l2(metrics, time_ns),
        l1=_l1(metrics, time_ns),
        estimate_bytes_per_s=estimate,
    )


def _no_bytes(metrics: Metrics) -> str:
    """Why there are no DRAM bytes; a counter that was asked for and gave no value was collected."""
    empty = [name for name in metrics.valueless() if name.startswith("dram__bytes")]
    if empty:
        return f"{empty[0]} was asked for and is not available in this report (which is no 0)"
    return "no DRAM byte counter was collected" + _set_note(metrics)


def _set_note(metrics: Metrics) -> str:
    has_percent = number(metrics, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")
    return "" if has_percent is None else " (only DRAM busy percentages, as the basic set gives)"


def _dram(
    metrics: Metrics, time_ns: float | None
) -> tuple[float | None, float | None, float | None]:
    read = first_counter(metrics, ("dram__bytes_read", "dram__bytes_op_read"), time_ns)
    write = first_counter(metrics, ("dram__bytes_write", "dram__bytes_op_write"), time_ns)
    if read is None and write is None:
        sectors = [
            counter_sum(metrics, f"dram__sectors_{way}", time_ns) for way in ("read", "write")
        ]
        read, write = (None if s is None else s * BYTES_PER_SECTOR for s in sectors)
    total = number(metrics, "dram__bytes.sum")
    if total is None and read is not None and write is not None:
        total = read + write
    if total is None:
        total = counter_sum(metrics, "dram__bytes", time_ns)
    return read, write, total


def first_counter(metrics: Metrics, counters: Sequence[str], time_ns: float | None) -> float | None:
    """The first of these counters that was stored in any form."""
    for counter in counters:
        value = counter_sum(metrics, counter, time_ns)
        if value is not None:
            return value
    return None


def _estimate(launch: KernelLaunch) -> float | None:
    """Bandwidth as DRAM busy % x the device's peak: an estimate, always labelled as one."""
    percent = first(
        launch.metrics,
        (
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        ),
    )
    peak = number(launch.metrics, "dram__bytes.sum.peak_sustained")
    clock = number(launch.metrics, "dram__cycles_elapsed.avg.per_second")
    bandwidth = peak * clock if peak is not None and clock is not None else None
    bandwidth = bandwidth if bandwidth is not None else launch.device.dram_bytes_per_s
    return None if percent is None or bandwidth is None else percent / 100 * bandwidth


def _l2(metrics: Metrics, time_ns: float | None) -> float | None:
    sectors = counter_sum(metrics, "lts__t_sectors", time_ns)
    if sectors is not None:
        return sectors * BYTES_PER_SECTOR
    return counter_sum(metrics, "lts__t_bytes", time_ns)


def _l1(metrics: Metrics, time_ns: float | None) -> float | None:
    stored = counter_sum(metrics, "l1tex__t_bytes", time_ns)
    if stored is not None:
        return stored
    sectors = counter_sum(metrics, "l1tex__t_sectors", time_ns)
    if sectors is not None:
        return sectors * BYTES_PER_SECTOR
    # The counter of ncu's own L1 roofline, by its name on the chip's generation.
    for suffix in ("_mem_lgds", "_mem_lg", ""):
        writebacks = counter_sum(metrics, f"l1tex__lsu_writeback_active{suffix}", time_ns)
        if writebacks is not None:
            return writebacks * BYTES_PER_L1_WRITEBACK
    return None
