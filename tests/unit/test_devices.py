"""One kernel on several GPUs: the slower one is named, and times are not taken for one GPU's."""

from __future__ import annotations

from dataclasses import replace

from tests.launches import H100, launch

from solscope.flows.analyze import analyze
from solscope.model.finding import Severity
from solscope.model.report import Provenance, Report
from solscope.model.verdict import Analysis
from solscope.render import terminal

DURATION = "gpu__time_duration.sum"


def ranks(*times: tuple[int, int], name: str = "gemm") -> Analysis:
    """One launch for each (device, ns)."""
    launches = [
        replace(
            launch({DURATION: time}, device=replace(H100, ordinal=device)),
            name=name,
            name_full=name,
            process_id=100 + device,
        )
        for device, time in times
    ]
    origin = Provenance(
        path="r", sha256="0", size_bytes=1, format="ncu-csv", tool_name="ncu", tool_version=None
    )
    return analyze([Report(provenance=origin, launches=launches)])


def test_the_slower_device_is_named_with_both_times() -> None:
    slow, fast = ranks((0, 100_000), (1, 160_000)).kernels
    (finding,) = [f for f in slow.findings if f.code == "device-slower"]
    assert finding.fact == "device 1 slower than device 0: 160 µs a launch against 100 µs"
    assert finding.severity is Severity.WARNING
    assert not [f for f in fast.findings if f.code == "device-slower"]


def test_a_few_percent_are_no_difference() -> None:
    assert not any(k.findings for k in ranks((0, 100_000), (1, 104_000)).kernels)


def test_one_device_in_two_processes_is_not_compared() -> None:
    assert not any(k.findings for k in ranks((0, 100_000), (0, 160_000)).kernels)


def test_a_collective_waits_for_the_slowest_and_is_only_noted() -> None:
    rows = ranks((0, 100_000), (1, 160_000), name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
    (finding,) = [f for k in rows.kernels for f in k.findings if f.code == "device-slower"]
    assert finding.severity is Severity.INFO


def test_the_page_says_over_how_many_gpus_it_sums() -> None:
    page = terminal.table(ranks((0, 100_000), (1, 160_000)))
    assert "260 µs in kernels, summed over 2 GPUs" in page
    assert "summed" not in terminal.table(ranks((0, 100_000)))
