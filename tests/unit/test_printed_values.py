"""Cells, units, labels and names, one by one."""

from __future__ import annotations

import doctest

import pytest

from solscope.errors import UnknownUnit
from solscope.model import kernel_name, metric_units, units
from solscope.model.metric_units import unit_of
from solscope.model.units import PrintedUnit, is_old_spelling, printed_unit
from solscope.reports.printed import values
from solscope.reports.printed.labels import Era, era_of, metric_of
from solscope.reports.printed.launches import nvtx_ranges
from solscope.reports.printed.number_format import PLAIN, of_locale
from solscope.reports.printed.values import Absent, Instanced, column_values, value_of


@pytest.mark.parametrize("module", [units, metric_units, kernel_name, values])
def test_the_examples_run(module: object) -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("old", "new", "base", "exponent"),
    [
        ("nsecond", "ns", "ns", 0),
        ("usecond", "us", "ns", 3),
        ("msecond", "ms", "ns", 6),
        ("second", "s", "ns", 9),
        ("cycle/second", "hz", "hz", 0),
        ("cycle/usecond", "Mhz", "hz", 6),
        ("cycle/nsecond", "Ghz", "hz", 9),
        ("Tbyte/second", "Tbyte/s", "byte/s", 12),
        ("sector/nsecond", "sector/ns", "sector/s", 9),
        ("/nsecond", "/ns", "/s", 9),
        ("Kbyte/block", "Kbyte/block", "byte/block", 3),
        ("%/Kbyte", "%/Kbyte", "%/byte", 3),
        ("inst/cycle", "inst/cycle", "inst/cycle", 0),
        ("register/thread", "register/thread", "register/thread", 0),
        ("", "", "", 0),
    ],
)
def test_both_spellings_mean_one_unit(old: str, new: str, base: str, exponent: int) -> None:
    assert printed_unit(old) == printed_unit(new) == PrintedUnit(base=base, exponent=exponent)


@pytest.mark.parametrize("unit", ["Mb", "GB/s", "microsec", "furlong", "byte/furlong", "KHz"])
def test_an_unknown_unit_is_never_guessed(unit: str) -> None:
    with pytest.raises(UnknownUnit, match="no factor"):
        printed_unit(unit)


def test_the_spelling_tells_the_age() -> None:
    assert is_old_spelling("Gbyte/second")
    assert not is_old_spelling("Gbyte/s")


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("dram__bytes_read.sum", "byte"),
        ("dram__bytes.sum.peak_sustained", "byte/cycle"),
        ("gpu__time_duration.sum", "ns"),
        ("smsp__inst_executed.avg.per_cycle_active", "inst/cycle"),
        ("smsp__warps_active.avg.per_cycle_active", "warp"),
        ("sm__ops_path_tensor_src_fp8.sum.per_second", "/s"),
        ("launch__occupancy_limit_warps", "block"),
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "%"),
        ("who__knows.sum", None),
        ("nonsense", None),
    ],
)
def test_the_name_gives_the_unit(metric: str, unit: str | None) -> None:
    assert unit_of(metric) == unit


@pytest.mark.parametrize(
    ("cell", "exponent", "value"),
    [
        ("25.170176", 6, 25170176.0),
        ("89.728000", 3, 89728.0),
        ("131801607882752", 0, 131801607882752),
        ("-0.5", 3, -500.0),
        ("1.5e+3", 3, 1500000.0),
        ("CachePreferNone", 0, "CachePreferNone"),
        ("Tesla (T4)", 0, "Tesla (T4)"),
        ("", 0, Absent.NOT_COLLECTED),
        ("no data", 0, Absent.NOT_AVAILABLE),
        ("(!) n/a", 0, Absent.NOT_AVAILABLE),
        ("(!) nan", 0, Absent.NOT_FINITE),
        ("inf", 0, Absent.NOT_FINITE),
        ("1e999", 0, Absent.NOT_FINITE),
        ("0", 0, 0),
    ],
)
def test_a_cell_is_a_number_a_text_or_an_absence(cell: str, exponent: int, value: object) -> None:
    assert value_of(cell, exponent, PLAIN) == value
    assert column_values([cell, "1"], exponent, PLAIN)[0] == value


def test_instances_are_read_beside_their_aggregate() -> None:
    found = value_of("6551.77 (0; 32; n/a)", 0, PLAIN)
    assert isinstance(found, Instanced)
    assert found.aggregate == 6551.77
    assert [one.value for one in found.instances] == [0, 32, None]


def test_instances_with_ids_and_without_an_aggregate() -> None:
    found = value_of("(FADD: 1.024; FFMA: 2)", 0, of_locale("de_DE"))
    assert isinstance(found, Instanced)
    assert found.aggregate is Absent.NOT_COLLECTED
    assert [(one.correlation_id, one.value) for one in found.instances] == [
        ("FADD", 1024),
        ("FFMA", 2),
    ]


def test_a_label_means_nothing_without_its_section() -> None:
    sol, memory = "GPU Speed Of Light Throughput", "Memory Workload Analysis"
    percent = metric_of(sol, "", "Memory Throughput", "%", era=Era.UNCLEAR)
    rate = metric_of(memory, "", "Memory Throughput", "Gbyte/s", era=Era.UNCLEAR)
    assert percent == "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
    assert rate == "dram__bytes.sum.per_second"
    assert metric_of("Somebody's section", "", "Memory Throughput", "%", era=Era.UNCLEAR) is None


def test_a_label_that_changed_its_meaning_needs_the_age_of_the_file() -> None:
    section = "Compute Workload Analysis"
    old = metric_of(section, "", "SM Busy", "%", era=Era.OLD)
    assert old == "sm__instruction_throughput.avg.pct_of_peak_sustained_active"
    assert metric_of(section, "", "SM Busy", "%", era=Era.UNCLEAR) is None
    recent = era_of([("Duration", "us"), ("Local Memory Spilling Requests", "")])
    assert metric_of(section, "", "SM Busy", "%", era=recent) == (
        "sm__instruction_throughput.avg.pct_of_peak_sustained_elapsed"
    )
    assert era_of([("Duration", "usecond")]) is Era.OLD


def test_the_chip_tells_which_unit_compresses() -> None:
    section, label = "Memory Workload Analysis", "L2 Compression Success Rate"
    names = [
        metric_of(section, "", label, "%", era=Era.UNCLEAR, capability=chip)
        for chip in ((8, 9), (9, 0), None)
    ]
    assert names == [
        "lts__average_gcomp_input_sector_success_rate.pct",
        "lrc__average_ilc_input_sector_success_rate.pct",
        None,
    ]


def test_the_unit_tells_two_metrics_of_one_label_apart() -> None:
    section, label = "PM Sampling", "Maximum Sampling Interval"
    assert metric_of(section, "", label, "cycle", era=Era.OLD) == (
        "profiler__pmsampler_interval_cycles"
    )
    assert (
        metric_of(section, "", label, "us", era=Era.UNCLEAR) == "profiler__pmsampler_interval_time"
    )


def test_a_printed_name_is_the_name() -> None:
    name = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    assert metric_of("x", "", name, "%", era=Era.UNCLEAR) == name
    assert metric_of("x", "", f"Compute ({name})", "%", era=Era.UNCLEAR) == name
    assert metric_of("x", "", "memory_access_type", "", era=Era.UNCLEAR) == "memory_access_type"


def test_a_label_in_the_manner_of_a_name_is_a_label_where_the_section_has_it() -> None:
    assert metric_of("Source Counters", "", "stall_math", "warp", era=Era.OLD) == (
        "smsp__pcsamp_warps_issue_stalled_math_pipe_throttle"
    )


def test_nvtx_cells_of_old_and_new_titles() -> None:
    new = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    cell = '63122  "<default domain>:decode:step 3:none:none:none:none:none:none" '
    (one,) = nvtx_ranges(new, cell)
    assert (one.domain, one.name, one.thread_id) == ("<default domain>", "decode:step 3", 63122)
    old = "thread Domain:Push/Pop_Range:PL_Type:PL_Value"
    (two,) = nvtx_ranges(old, '1  "<default domain>:decode:none:none" ')
    assert two.name == "decode"
    started = nvtx_ranges("Id:Domain:Start/Stop_Range:PL_Type:PL_Value", '4 "d:load:none:none" ')
    assert not started[0].is_push_pop
