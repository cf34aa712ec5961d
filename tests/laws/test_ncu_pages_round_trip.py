"""Whatever we print as ncu would, we read back within the digits printed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from solscope.model.metric_units import unit_of
from solscope.model.report import (
    Device,
    KernelLaunch,
    PlainMetrics,
    Provenance,
    Report,
    WorkloadKind,
)
from solscope.render import ncu_pages
from solscope.render.ncu_pages import Spelling, Units
from solscope.reports import ncu_csv

NAMES = (
    "dram__bytes_read.sum",
    "dram__bytes.sum.per_second",
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.avg.per_second",
    "lts__t_sectors.sum.per_second",
    "launch__shared_mem_per_block",
    "smsp__inst_executed.sum",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "launch__waves_per_multiprocessor",
)
VALUES = st.one_of(
    st.integers(0, 10**15), st.floats(0, 1e15, allow_nan=False, allow_infinity=False)
)
LAUNCHES = st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES, min_size=1), min_size=1)
KERNELS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=30)


def a_report(launches: list[dict[str, float]], kernel: str) -> Report:
    device = Device(name=None, compute_capability=(9, 0), ordinal=0)
    provenance = Provenance(
        path="x", sha256="0", size_bytes=0, format="x", tool_name=None, tool_version=None
    )
    made = [
        KernelLaunch(
            index=i,
            kind=WorkloadKind.KERNEL,
            name=kernel,
            name_full=kernel,
            metrics=PlainMetrics(values),
            device=device,
            grid=(1, 2, 3),
            block=(32, 1, 1),
            process_id=1,
        )
        for i, values in enumerate(launches)
    ]
    return Report(provenance=provenance, launches=made)


def last_digit(name: str, launches: list[dict[str, float]], units: Units) -> float:
    """Half of what the last printed digit is worth, in base units."""
    if units is Units.BASE or not unit_of(name):
        return 0.005
    largest = max(values.get(name, 0) for values in launches)
    steps = 0
    while steps < 4 and largest >= 1000.0 ** (steps + 1):
        steps += 1
    scaled = unit_of(name) not in ("inst", "%")
    return 0.5e-6 * (1000.0**steps if scaled else 1.0)


@given(LAUNCHES, KERNELS, st.sampled_from(list(Units)), st.sampled_from(list(Spelling)))
def test_a_raw_page_comes_back(
    launches: list[dict[str, float]], kernel: str, units: Units, spelling: Spelling
) -> None:
    report = a_report(launches, kernel)
    text = "".join(ncu_pages.raw_csv(report, units=units, spelling=spelling))
    back = ncu_csv.read("x.csv", text.encode(), "0")
    assert len(back.launches) == len(launches)
    for ours, values in zip(back.launches, launches, strict=True):
        assert ours.name_full == kernel
        assert ours.grid == (1, 2, 3)
        assert sorted(ours.metrics) == sorted(values)
        for name, value in values.items():
            error = abs(float(ours.metrics[name]) - value)
            assert error <= 1.01 * last_digit(name, launches, units) + 1e-9 * value
