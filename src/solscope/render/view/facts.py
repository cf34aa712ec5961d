"""The numbers of a kernel's detail, with their units, in reading order."""

from __future__ import annotations

from solscope.model.kernel import KernelTotals
from solscope.model.roofline import Chip
from solscope.render.view import bounds, numbers
from solscope.render.view.numbers import ABSENT


def facts(totals: KernelTotals, chip: Chip | None) -> tuple[tuple[str, str], ...]:
    """The numbers of a kernel's detail, with their units, in reading order."""
    return (
        *_work_facts(totals),
        *_percent_facts(totals),
        *_launch_facts(totals),
        ("clocks of the profile", _clocks(totals)),
        ("data sheet used", ABSENT if chip is None else f"{chip.name} ({chip.key})"),
    )


def _work_facts(totals: KernelTotals) -> list[tuple[str, str]]:
    flop = totals.flop
    shown = [
        ("FP64", numbers.amount(flop.fp64, "FLOP")),
        ("FP32", numbers.amount(flop.fp32, "FLOP")),
        ("FP16", numbers.amount(flop.fp16, "FLOP")),
    ]
    if flop.tensor is None:
        shown.append(("tensor work", ABSENT))
    elif not flop.tensor:
        shown.append(("tensor work", "none"))
    else:
        shown += [
            (f"tensor {kind}", numbers.amount(n, bounds.unit(f"tensor:{kind}")))
            for kind, n in sorted(flop.tensor.items())
        ]
    shown += [
        (f"tensor {kind}, 2:4-sparse", numbers.amount(n, bounds.unit(f"tensor:{kind}")))
        for kind, n in sorted(flop.tensor_sparse.items())
        if n
    ]
    read, write = totals.dram_read_bytes, totals.dram_write_bytes
    return [
        *shown,
        ("DRAM read + write", f"{numbers.amount(read, 'B')} + {numbers.amount(write, 'B')}"),
        ("L2 traffic", numbers.amount(totals.l2_bytes, "B")),
        ("L1 traffic", numbers.amount(totals.l1_bytes, "B")),
    ]


def _percent_facts(totals: KernelTotals) -> list[tuple[str, str]]:
    member = f" ({totals.sm_busy_member})" if totals.sm_busy_member else ""
    return [
        ("SM busy", numbers.percent(totals.sm_busy_pct) + member),
        ("DRAM busy", numbers.percent(totals.dram_pct)),
        ("L2 busy", numbers.percent(totals.l2_pct)),
        ("L1 busy", numbers.percent(totals.l1_pct)),
        ("tensor pipe busy", numbers.percent(totals.tensor_pipe_pct)),
        ("tensor engagement", totals.tensor_engagement or ABSENT),
    ]


def _launch_facts(totals: KernelTotals) -> list[tuple[str, str]]:
    achieved = numbers.percent(totals.achieved_occupancy_pct)
    if totals.theoretical_occupancy_pct is not None:
        achieved += f" of {numbers.percent(totals.theoretical_occupancy_pct)}"
    per_sm, waves = totals.blocks_per_sm, totals.waves_per_sm
    return [
        ("occupancy, achieved of theoretical", achieved),
        ("occupancy limited by", ", ".join(totals.occupancy_limiter) or ABSENT),
        ("registers per thread", numbers.count(totals.registers_per_thread)),
        ("shared memory per block", numbers.amount(totals.smem_per_block_bytes, "B")),
        ("blocks per SM", ABSENT if per_sm is None else f"{per_sm:g}"),
        ("waves", ABSENT if waves is None else numbers.plain(waves)),
    ]


def _clocks(totals: KernelTotals) -> str:
    peaks = totals.peaks
    return f"SM {numbers.clock(peaks.sm_clock_hz)}, DRAM {numbers.clock(peaks.dram_clock_hz)}"
