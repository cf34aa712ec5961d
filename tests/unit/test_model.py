"""Nouns: what they promise."""

from __future__ import annotations

import pytest

from solscope.errors import CaptureError, ReportError, SolscopeError, UsageError
from solscope.model.finding import Finding, Severity
from solscope.model.report import (
    Device,
    Instance,
    NvtxRange,
    PlainDetails,
    PlainMetrics,
    RuleAdvice,
    Section,
)


def test_plain_metrics_are_a_mapping_that_keeps_absent_and_zero_apart() -> None:
    metrics = PlainMetrics({"a": 0, "b.sum": 2.5}, {"a": (Instance("x", 1),)}, ("gone",))
    assert metrics["a"] == 0
    assert metrics.get("gone") is None
    assert "gone" not in metrics
    assert list(metrics) == ["a", "b.sum"]
    assert len(metrics) == 2
    assert dict(metrics.items()) == {"a": 0, "b.sum": 2.5}
    assert metrics.starting("b.") == ("b.sum",)
    assert metrics.instances("a") == (Instance("x", 1),)
    assert metrics.instances("b.sum") == ()
    assert metrics.valueless() == ("gone",)


def test_plain_details_give_back_what_they_hold() -> None:
    section = Section(identifier="s", display_name="S")
    rule = RuleAdvice(rule="r", name="r", section=None, message="m", kind="ok")
    nvtx = NvtxRange(domain="d", name="n")
    details = PlainDetails((section,), (rule,), (nvtx,))
    assert details.sections() == (section,)
    assert details.rules() == (rule,)
    assert details.nvtx() == (nvtx,)


@pytest.mark.parametrize(
    ("khz", "bits", "peak"),
    [
        (1_593_000, 5120, 2.03904e12),  # H100 PCIe
        (3_201_000, 6016, 4.814304e12),  # H200
        (3_996_000, 7680, 7.67232e12),  # B200
        (None, 5120, None),
        (1_593_000, None, None),
    ],
)
def test_bandwidth_is_twice_the_memory_clock_times_the_bus(
    khz: float | None, bits: int | None, peak: float | None
) -> None:
    device = Device(
        name="x", compute_capability=None, max_memory_clock_khz=khz, memory_bus_width_bits=bits
    )
    assert device.dram_bytes_per_s == peak


def test_a_finding_blocks_only_by_its_severity() -> None:
    finding = Finding(code="c", severity=Severity.BLOCKS, where="w", fact="f", remedy="r")
    assert finding.blocks


def test_errors_say_what_where_and_what_next() -> None:
    assert str(SolscopeError("what")) == "what"
    assert str(UsageError("what", where="here", hint="do this")) == "here: what\n  next: do this"
    assert CaptureError("x", receipt="03").receipt == "03"
    assert [e.exit_code for e in (UsageError, ReportError, CaptureError)] == [2, 3, 5]
