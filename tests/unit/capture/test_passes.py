"""Metric list and chip in, replay passes out."""

from __future__ import annotations

import pytest
from tools import make_passes_table

from solscope.capture import metriclists, passes
from solscope.capture.passes import estimate, library, table
from solscope.errors import CaptureError, UsageError
from solscope.model.plan import Level, MetricList, PassMethod

needs_library = pytest.mark.skipif(
    passes.installed() is None, reason="nvidia-cuda-cupti (extra `passes`) is not installed"
)
# Four generations; the whole table is compared by `make passes-table CHECK=1`.
SOME_CHIPS = ("GA100", "GH100", "GB100", "GB202")
TIME_AND_BYTES = ("gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum")


def a_list(*metrics: str, chip: str = "GH100", name: str = "mine") -> MetricList:
    return MetricList(name=name, chip=chip, metrics=metrics)


@needs_library
@pytest.mark.parametrize("chip", SOME_CHIPS)
def test_time_and_dram_bytes_take_one_counter_pass_on_every_chip(chip: str) -> None:
    counters = passes.counters_of(chip)
    names = [m for m in TIME_AND_BYTES if counters.has(m)]
    assert estimate.counter_passes(names, counters) == 1


@needs_library
def test_instrumented_instructions_take_a_pass_of_their_own_however_many() -> None:
    counters = passes.counters_of("GH100")
    stem = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
    nine = [stem.format(op + kind) for op in "fhd" for kind in ("add", "mul", "fma")]
    assert estimate.counter_passes(nine[:1], counters) == 1
    assert estimate.counter_passes(nine, counters) == 1
    assert estimate.counter_passes([*TIME_AND_BYTES, *nine], counters) == 2


@needs_library
def test_a_throughput_is_dearer_than_the_counts_that_it_can_be_derived_from() -> None:
    counters = passes.counters_of("GH100")
    throughput = ["sm__throughput.avg.pct_of_peak_sustained_elapsed"]
    assert estimate.counter_passes(throughput, counters) >= 6


@needs_library
def test_what_belongs_to_the_launch_costs_nothing() -> None:
    counters = passes.counters_of("GH100")
    free = a_list("launch__registers_per_thread", *TIME_AND_BYTES)
    assert passes.of_list(free, counters, family="GH100").counter_passes == 1


@needs_library
@pytest.mark.parametrize("chip", SOME_CHIPS)
def test_the_shipped_table_is_what_the_library_gives(chip: str) -> None:
    made = table.document()
    if made["library"] != library.version():
        pytest.skip(f"another library is installed than the table's {made['library']}")
    counters = library.ChipCounters(passes.load_library(), chip)
    assert made["chips"][chip] == make_passes_table.chip_entry(chip, counters)


@needs_library
@pytest.mark.parametrize("chip", SOME_CHIPS)
def test_table_and_library_know_the_same_metrics(chip: str) -> None:
    by_table, by_library = table.TableCounters(chip), passes.counters_of(chip)
    assert by_table.base_names == by_library.base_names
    for metric in (
        "dram__bytes.sum.per_second",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "smsp__average_warp_latency_per_inst_issued.ratio",
        "sm__cycles_elapsed.sum.nonsense",
        "sm__cycles_elapsed.ratio",
        "sm__throughput.sum",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "smsp__average_warp_latency_per_inst_issued.sum",
        "sm__cycles_elapsed",
        "dram__bytes_nonsense.sum",
    ):
        assert by_table.has(metric) == by_library.has(metric), metric


@needs_library
@pytest.mark.parametrize("chip", SOME_CHIPS)
def test_the_estimate_without_library_is_within_a_third(chip: str) -> None:
    by_table, by_library = table.TableCounters(chip), passes.counters_of(chip)
    names = by_table.base_names
    for level in (Level.TIME, Level.ROOFLINE, Level.WHY):
        metrics = metriclists.for_level(level, chip=chip, dtype=None, base_names=names).metrics
        counted = estimate.scheduled(metrics)
        real = estimate.counter_passes(counted, by_library)
        assert abs(by_table.estimate(counted) - real) <= max(1, real / 3), level


@needs_library
def test_a_library_that_cannot_be_loaded_is_a_named_error(tmp_path) -> None:
    broken = tmp_path / "libnvperf_host.so"
    broken.write_bytes(b"not a library")
    with pytest.raises(CaptureError, match="cannot be loaded"):
        passes.load_library(broken)


def test_without_the_library_the_loader_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setattr(estimate, "installed", lambda: None)
    with pytest.raises(CaptureError, match=r"solscope\[passes\]"):
        passes.load_library()
    assert isinstance(passes.counters_of("GH100"), passes.TableCounters)


def test_a_chip_that_nothing_covers_is_refused_not_guessed() -> None:
    with pytest.raises(UsageError, match="no pass is known"):
        passes.counters_of("GV100", prefer_table=True)


def test_an_unknown_name_comes_back_with_the_chips_nearest() -> None:
    counters = table.TableCounters("GB202")
    checked = passes.check(("dram__bytes_read.sum", "dram__bytes.sum"), counters)
    assert checked.known == ("dram__bytes.sum",)
    (unknown,) = checked.unknown
    assert unknown.nearest[0] == "dram__bytes_op_read.sum"  # the name of CC 12


def test_a_name_without_suffix_is_answered_with_its_suffixes() -> None:
    checked = passes.check(("sm__throughput",), table.TableCounters("GH100"))
    assert checked.unknown[0].nearest == ("sm__throughput.avg.pct_of_peak_sustained_elapsed",)


def test_the_full_set_of_gh100_is_predicted_as_real_reports_show_it() -> None:
    full = MetricList(name="full", chip="GH100", section_set="full")
    found = passes.of_list(full, table.TableCounters("GH100"), family="GH100")
    assert found.method is PassMethod.REPORTS
    assert 39 <= found.predicted <= 40
    assert found.counter_passes + found.other_passes == 40  # 35 + 1 + 2 + 2


def test_a_set_never_seen_on_a_chip_is_scheduled_and_given_a_band() -> None:
    full = MetricList(name="full", chip="GB100", section_set="full")
    found = passes.of_list(full, table.TableCounters("GB100"), family="GB100")
    assert found.method is PassMethod.TABLE
    assert found.low < found.predicted < found.high
    assert found.other_passes == 5  # 1 + 2 source counters + 2 PM sampling


def test_an_unknown_set_is_an_error_with_the_known_ones() -> None:
    wrong = MetricList(name="x", chip="GH100", section_set="ful")
    with pytest.raises(UsageError, match="full"):
        passes.of_list(wrong, table.TableCounters("GH100"), family="GH100")


def test_the_table_says_which_library_made_it() -> None:
    mine = a_list("dram__bytes.sum")
    found = passes.of_list(mine, table.TableCounters("GH100"), family="GH100")
    assert found.method is PassMethod.ESTIMATE
    assert library.PACKAGE in found.source


def test_a_regular_expression_is_costed_by_what_it_selects() -> None:
    counters = table.TableCounters("GH100")
    narrow = passes.check((r"regex:sm__inst_executed\.(sum|avg)$",), counters)
    assert narrow.known == ("sm__inst_executed.sum",)
    wide = passes.check(("regex:^sm__inst_executed",), counters)
    assert len(wide.known) > 10
    with pytest.raises(UsageError, match="no metric of this chip"):
        passes.check(("regex:^nothing__",), counters)
    with pytest.raises(UsageError, match="not a regular expression"):
        passes.check(("regex:(",), counters)


def test_sampling_and_breakdowns_are_known_and_costed() -> None:
    counters = table.TableCounters("GH100")
    sampled = "group:smsp__pcsamp_warp_stall_reasons"
    throughput = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    checked = passes.check((sampled, f"breakdown:{throughput}"), counters)
    assert checked.unknown == ()
    assert estimate.scheduled(checked.known) == [throughput]
    found = passes.of_list(a_list(*checked.known), counters, family="GH100")
    assert found.other_passes == 3  # one as always, two for sampling warps


def test_a_group_that_nobody_can_cost_is_said_to_be_left_out() -> None:
    found = passes.of_list(
        a_list("group:memory__chart"), table.TableCounters("GH100"), family="GH100"
    )
    assert any("not counted" in part for part in found.basis)
