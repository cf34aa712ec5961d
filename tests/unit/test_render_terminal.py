"""The table: 100 columns, no colour needed, nothing that a name can break."""

from __future__ import annotations

import pytest
from tests.analyses import (
    a_decode_step,
    a_gemm,
    a_hostile_analysis,
    a_kernel,
    a_report,
    an_analysis,
)

from solscope.render import terminal


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = terminal.table(a_decode_step(), width=width).splitlines()
    assert max(len(line) for line in lines) <= width


def test_at_100_columns_no_number_is_cut() -> None:
    text = terminal.table(a_decode_step(), width=100)
    table = text.split("\n\n")[1]
    assert "…" not in table
    for number in ("240 µs", "90.5", "86.8", "582", "859 T", "1.48 T", "18.4", "≈2.04 T"):
        assert number in table


def test_without_colour_there_is_no_escape_sequence() -> None:
    assert "\x1b" not in terminal.table(a_decode_step(), color=False)
    assert "\x1b" in terminal.table(a_decode_step(), color=True)


def test_a_hostile_name_reaches_the_terminal_as_text() -> None:
    text = terminal.table(a_hostile_analysis(), width=200)
    assert "\x1b" not in text
    assert "\\x1b[31m[bold]" in text.replace("\n", "")


def test_every_percentage_names_its_ceiling_and_clock() -> None:
    text = terminal.table(a_decode_step())
    assert "tensor bf16 989 TFLOP/s at 1.830 GHz: h100_sxm.bf16_dense_pflops" in text
    assert "dram__bytes.sum.peak_sustained" in text


def test_top_says_how_many_it_leaves_out() -> None:
    text = terminal.table(a_decode_step(), top=2)
    assert "7 more kernels are not shown" in text
    assert "apply_penalties" not in text


def test_sorting_by_name_begins_with_a() -> None:
    lines = terminal.table(a_decode_step(), sort="name").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("──")) + 1
    assert "act_and_mul_kernel" in lines[first]


def test_incomplete_is_said_above_and_below() -> None:
    text = terminal.table(an_analysis(a_gemm(), reports=(a_report(complete=False),)))
    assert text.count("INCOMPLETE: decode.ncu-rep was cut") == 2


def test_what_was_not_measured_is_listed_with_its_remedy() -> None:
    text = " ".join(terminal.table(a_decode_step()).split())
    assert "not measured: dram_bytes (#7): collected with the basic set" in text
    assert "→ collect `--metrics dram__bytes_read.sum,dram__bytes_write.sum`" in text


def test_no_name_of_a_machine_or_user_is_shown() -> None:
    text = terminal.table(a_hostile_analysis())
    for secret in ("someone", "node-17", "10.20.30.40", "hunter2"):
        assert secret not in text


def test_a_warning_is_printed_with_its_remedy_and_the_kernels() -> None:
    text = " ".join(terminal.table(a_decode_step()).split())
    assert "warning (#3): a collective profiled by kernel replay" in text
    assert "→ profile with range replay on all ranks" in text


def test_the_session_is_printed_only_where_asked_for() -> None:
    assert "hunter2" not in terminal.table(a_decode_step())
    assert "host: node-17.private.example" in terminal.table(a_decode_step(), show_session=True)


def test_where_no_work_was_counted_busy_percentages_stand_in_and_are_called_so() -> None:
    kernel = a_kernel(
        "k",
        us=5,
        bound="unmeasured",
        totals={
            "sm_busy_pct": 14.0,
            "dram_pct": 61.0,
            "tensor_pipe_pct": 0.0,
            "occupancy_limiter": ("registers", "shared_mem", "warps"),
        },
    )
    text = terminal.table(an_analysis(kernel))
    (line,) = [line for line in text.splitlines() if line.startswith("1 k ")]
    assert line.split()[-5:] == ["unmeasured", "14.0", "61.0", "0", "regs+smem+1"]
    assert "no distance to a roof" in " ".join(text.split())


def test_an_estimate_of_bandwidth_is_not_called_counted_work() -> None:
    estimated = a_kernel(
        "k", us=5, bound="unmeasured", totals={"dram_bytes_per_s_estimate": 2.045e12}
    )
    text = terminal.table(an_analysis(estimated))
    assert "≈" in text
    assert "No work was counted" in text
    assert "for what was counted" not in text


def test_with_several_reports_each_row_names_its_own() -> None:
    other = a_kernel("other", us=5, bound="unmeasured", report=1)
    text = terminal.table(an_analysis(a_gemm(), other, reports=(a_report(), a_report("b.ncu-rep"))))
    assert "[2] b.ncu-rep: NVIDIA H100" in text
    (line,) = [line for line in text.splitlines() if line.startswith("2 other")]
    assert "[2]" in line
