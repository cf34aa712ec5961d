"""Report -> our raw CSV in base units -> read again: the same analysis.

Printed with its instances (opcode histograms), the page gives all that the report does, within
its two decimals. Without them, which is what ncu prints unless told otherwise, whatever the page
cannot give must be missing afterwards; no number may become another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests import corpus

from solscope.errors import ReportError
from solscope.flows.analyze import analyze
from solscope.model.kernel import KernelTotals
from solscope.model.report import Report
from solscope.model.roofline import RooflinePoint
from solscope.model.verdict import KernelVerdict
from solscope.render import ncu_pages
from solscope.render.ncu_pages import Instances, Units
from solscope.reports import formats, ncu_csv

pytestmark = pytest.mark.corpus

AMOUNTS = ("duration_ns", "dram_read_bytes", "dram_write_bytes", "dram_bytes", "l2_bytes")
PERCENTAGES = (
    "sm_busy_pct", "memory_pct", "dram_pct", "l2_pct", "l1_pct", "tensor_pipe_pct",
    "achieved_occupancy_pct", "theoretical_occupancy_pct",
)  # fmt: skip
EXACT = ("launches", "registers_per_thread", "occupancy_limiter", "kind")
ROUNDED = 0.01
"""Totals made of rates per cycle in two decimals carry the rounding of up to 0.5 %."""


def round_trip(report: Report, instances: Instances = Instances.NONE) -> Report:
    text = "".join(ncu_pages.raw_csv(report, units=Units.BASE, instances=instances))
    return ncu_csv.read("x.csv", text.encode(), "0")


def pairs(report: Report, back: Report) -> Iterator[tuple[KernelVerdict, KernelVerdict]]:
    """The same kernels before and after, in the order of their first launch."""

    def order(found: KernelVerdict) -> int:
        return min(launch.index for launch in found.totals.members)

    before = sorted(analyze([report]).kernels, key=order)
    after = sorted(analyze([back]).kernels, key=order)
    yield from zip(before, after, strict=True)


def kept(before: float | None, after: float | None, *, absolute: float = 0.0) -> bool:
    """The same number within the printed digits, or none."""
    if after is None:
        return True
    return before is not None and after == pytest.approx(before, rel=ROUNDED, abs=absolute)


def wrong_totals(before: KernelTotals, after: KernelTotals) -> Iterator[str]:
    for name in AMOUNTS:
        if not kept(getattr(before, name), getattr(after, name), absolute=0.5):
            yield name
    for name in PERCENTAGES:
        if not kept(getattr(before, name), getattr(after, name), absolute=0.0051):
            yield name
    yield from (n for n in EXACT if getattr(before, n) != getattr(after, n))
    for name in ("fp16", "fp32", "fp64"):
        if not kept(getattr(before.flop, name), getattr(after.flop, name)):
            yield name
    for dtype, work in (after.flop.tensor or {}).items():
        if not kept((before.flop.tensor or {}).get(dtype), work):
            yield dtype
    # FP16 that only the histogram has is missing, which is said; the rest is a sum.
    is_whole = after.flop.fp16 is not None or not before.flop.fp16
    if is_whole and not kept(before.flop.total, after.flop.total):
        yield "flop.total"


def wrong_speeds(before: RooflinePoint, after: RooflinePoint) -> Iterator[str]:
    for name in ("profiled", "datasheet"):
        known = {s.resource: s.value for s in getattr(before, name)}
        for standing in getattr(after, name):
            if not kept(known.get(standing.resource), standing.value, absolute=5.1e-5):
                yield f"{name} {standing.resource}"


def wrong_bound(before: KernelVerdict, after: KernelVerdict) -> Iterator[str]:
    """Another bound only where something that the verdict rests on has become absent."""
    lost = {a.field for a in after.absences} - {a.field for a in before.absences}
    if before.verdict.bound != after.verdict.bound and not lost:
        yield f"{before.verdict.bound} became {after.verdict.bound}"


def name(record: dict[str, Any]) -> str:
    return str(record["file"])


def readable(record: dict[str, Any]) -> Report:
    try:
        report = formats.read(str(corpus.CORPUS / record["file"]))
    except ReportError as error:
        pytest.skip(f"no report: {error.what}")
    if not isinstance(report, Report) or not report.launches:
        pytest.skip("the report holds no launch")
    return report


@pytest.mark.parametrize("record", corpus.records("ncu-rep"), ids=name)
def test_an_analysis_survives_the_raw_page_or_says_what_it_lost(record: dict[str, Any]) -> None:
    report = readable(record)
    back = round_trip(report)
    assert len(back.launches) == len(report.launches)
    wrong = [
        f"{before.totals.name}: {what}"
        for before, after in pairs(report, back)
        for what in (
            *wrong_totals(before.totals, after.totals),
            *wrong_speeds(before.point, after.point),
            *wrong_bound(before, after),
        )
    ]
    assert wrong == []
    for launch in back.launches:
        assert not launch.details.rules()  # a raw page has none, and none is made up


@pytest.mark.parametrize("record", corpus.records("ncu-rep"), ids=name)
def test_an_analysis_is_the_same_by_the_raw_page_with_instances(record: dict[str, Any]) -> None:
    report = readable(record)
    back = round_trip(report, Instances.DETAILS)
    for before, after in pairs(report, back):
        assert after.verdict.bound == before.verdict.bound
        assert {a.field for a in after.absences} == {a.field for a in before.absences}
        assert not [*wrong_totals(before.totals, after.totals)]
        assert not [*wrong_speeds(before.point, after.point)]
        assert known(after.totals) == known(before.totals)
        assert kept(before.totals.flop.total, after.totals.flop.total)


def known(totals: KernelTotals) -> set[str]:
    """Names of what has a number."""
    flop = totals.flop
    return {
        *(n for n in (*AMOUNTS, *PERCENTAGES) if getattr(totals, n) is not None),
        *(n for n in ("fp16", "fp32", "fp64", "total") if getattr(flop, n) is not None),
        *(flop.tensor or {"no tensor work known"}),
    }


def test_a_page_without_opcodes_says_how_to_print_them() -> None:
    report = readable({"file": str(corpus.find("384.ncu-rep").relative_to(corpus.CORPUS))})
    kernels = analyze([round_trip(report)]).kernels
    lost = [a for k in kernels for a in k.absences if a.field in ("flop.fp16", "flop.tensor")]
    assert lost
    for absence in lost:
        assert "opcodes" in absence.reason
        assert "--print-metric-instances details" in (absence.remedy or "")


def test_the_printed_instances_come_back_with_their_keys() -> None:
    report = readable({"file": str(corpus.find("silu-triton").relative_to(corpus.CORPUS))})
    (launch, *_), (plain, *_) = report.launches, round_trip(report).launches
    keyed = [n for n in launch.metrics if len(launch.metrics.instances(n)) > 2]
    assert keyed
    (full, *_) = round_trip(report, Instances.DETAILS).launches
    for name in keyed:
        assert not plain.metrics.instances(name)  # not printed: none is made up
        before = [i.value for i in launch.metrics.instances(name)]
        after = [i.value for i in full.metrics.instances(name)]
        assert after == pytest.approx(before, rel=ROUNDED, abs=0.005)
