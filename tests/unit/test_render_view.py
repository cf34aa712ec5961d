"""Numbers and rows: worded once, absent ones as absent."""

from __future__ import annotations

import dataclasses

import pytest
from tests.analyses import H100, a_decode_step, a_gemm, a_hostile_analysis, a_report, an_analysis

from solscope.model.roofline import Standing
from solscope.render.view import bounds, numbers
from solscope.render.view.page import base_name, page
from solscope.render.view.rows import over_reason
from solscope.render.view.selection import select


def test_an_absent_number_is_a_dash_and_a_zero_is_a_zero() -> None:
    assert numbers.amount(None, "B") == "–"
    assert numbers.amount(0, "B") == "0 B"
    assert numbers.percent(None) == "–"
    assert numbers.percent(0) == "0 %"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.905248, "90.5 %"), (1.0037, "100.4 %"), (0.0000034, "<0.01 %"), (0.0341, "3.41 %")],
)
def test_a_fraction_reads_as_a_percentage_of_three_digits(value: float, text: str) -> None:
    assert numbers.fraction(value) == text


def test_a_row_says_every_number_of_the_gemm_with_its_unit() -> None:
    row = page(an_analysis(a_gemm())).rows[0]
    # 206.2 GFLOP in 240 µs over 354 MB; 858.99 of 948.9 and of 989.4 TFLOP/s.
    assert row.time.text == "240 µs"
    assert row.intensity.text == "582 FLOP/B"
    assert row.flop_rate.text == "859 TFLOP/s"
    assert row.profiled.cell.text == "90.5 %"
    assert row.sheet.cell.text == "86.8 %"
    assert row.sheet.ceiling == "h100_sxm.bf16_dense_pflops"
    assert row.sheet.clock == "1.830 GHz"
    assert row.profiled.clock == "1.755 GHz"


def test_an_estimate_is_never_worded_like_a_measurement() -> None:
    rows = {row.name: row for row in page(a_decode_step()).rows}
    estimated = rows["reshape_and_cache_flash_kernel"].dram_rate
    assert estimated.text == "≈2.04 TB/s"
    assert "estimate" in estimated.note
    assert rows["fused_add_rms_norm_kernel"].dram_rate.text == "2.69 TB/s"


def test_a_kernel_out_of_l2_has_no_intensity() -> None:
    rows = {row.name: row for row in page(a_decode_step()).rows}
    assert rows["rotary_embedding_kernel"].intensity.text == "L2-resident"
    assert rows["rotary_embedding_kernel"].intensity.raw is None


def test_a_share_above_one_names_the_ceiling_its_clock_and_a_reason() -> None:
    over = page(a_decode_step()).over
    assert any(
        line.startswith("#5 100.4 % of dram__bytes.sum.peak_sustained") and "2.619 GHz" in line
        for line in over
    )


def test_above_the_data_sheet_because_the_profile_ran_faster() -> None:
    standing = Standing(
        resource="tensor:bf16",
        value=1.05,
        achieved=1039e12,
        peak=989.4e12,
        ceiling="h100_sxm.bf16_dense_pflops",
        clock_hz=1.83e9,
    )
    assert over_reason(standing, H100, 1.98e9) == (
        "h100_sxm.bf16_dense_pflops is quoted at 1.830 GHz; the profile ran at 1.980 GHz"
    )


def test_l2_has_a_busy_percentage_but_no_peak() -> None:
    rows = {row.name: row for row in page(a_decode_step()).rows}
    (l2,) = [s for s in rows["rotary_embedding_kernel"].standings if s.resource == "L2"]
    assert l2.peak == ""
    assert "not counted work" in l2.basis


def test_shares_of_bounds_add_up_to_one() -> None:
    assert sum(s.share for s in page(a_decode_step()).shares) == pytest.approx(1.0)


def test_an_incomplete_report_is_said_by_name() -> None:
    shown = page(an_analysis(a_gemm(), reports=(a_report("/x/cut.ncu-rep", complete=False),)))
    assert not shown.complete
    assert shown.incomplete_text.startswith("INCOMPLETE: cut.ncu-rep was cut")


def test_paths_are_cut_to_their_base_names_unless_the_session_is_shown() -> None:
    analysis = a_hostile_analysis()
    hidden = page(analysis).reports[0]
    assert "someone" not in repr(hidden)
    shown = page(analysis, show_session=True).reports[0]
    assert dict(shown.session)["host"] == "node-17.private.example"


def test_base_names_of_both_kinds_of_system() -> None:
    assert base_name(r"C:\Users\someone\a.ncu-rep") == "a.ncu-rep"
    assert base_name("runs/a.ncu-rep") == "a.ncu-rep"


def test_control_and_direction_marks_become_visible() -> None:
    assert numbers.clean("a\x1b[2Jb\u202ec") == "a\\x1b[2Jb\\u202ec"


def test_absent_numbers_sort_last() -> None:
    rows = page(a_decode_step()).rows
    names = [row.name for row in select(rows, sort="intensity")]
    assert names[0].startswith("nvjet")
    assert set(names[-3:]) == {
        "topkGatingSoftmax",
        "reshape_and_cache_flash_kernel",
        "rotary_embedding_kernel",
    }


def test_a_bound_that_is_not_known_still_has_a_style() -> None:
    assert bounds.style("something-new").key == "unmeasured"
    assert bounds.label("something-new") == "something-new"


@pytest.mark.parametrize("paper", ["#ffffff", "#14181d"])
def test_every_colour_has_contrast_on_light_and_dark(paper: str) -> None:
    for style in bounds.STYLES.values():
        assert _contrast(style.colour, paper) >= 3.0, style.key


def _contrast(a: str, b: str) -> float:
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_kernel_without_duration_has_no_share_and_does_not_break_the_page() -> None:
    kernel = a_gemm(duration_ns=None, duration_min_ns=None, duration_max_ns=None)
    analysis = an_analysis(a_gemm(), kernel)
    analysis = dataclasses.replace(
        analysis,
        kernels=tuple(
            dataclasses.replace(k, time_share=None) if k.totals.duration_ns is None else k
            for k in analysis.kernels
        ),
    )
    assert page(analysis).rows[1].share.text == "–"
