"""Numbers and rows: worded once, absent ones as absent."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.analyses import (
    H100,
    a_decode_step,
    a_gemm,
    a_hostile_analysis,
    a_kernel,
    a_report,
    an_analysis,
    flop_totals,
)

from solscope.model.finding import Absence
from solscope.model.report import RuleAdvice
from solscope.model.roofline import Standing
from solscope.model.verdict import Analysis, KernelVerdict
from solscope.render import data, figure, html, markdown, pdf, terminal
from solscope.render.view import bounds, numbers, rows
from solscope.render.view.page import base_name, page
from solscope.render.view.selection import grouped_absences, select
from solscope.render.view.speeds import over_reason


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


def test_reasons_that_differ_by_a_number_are_listed_once() -> None:
    def lacking(name: str, us: float, busy: float) -> KernelVerdict:
        absence = Absence(field="flop.tensor", reason=f"not counted ({busy} % busy)", remedy="do")
        return a_kernel(name, us=us, bound="unmeasured", absences=(absence,))

    shown = page(an_analysis(lacking("a", 9, 2.4), lacking("b", 8, 1.8), a_gemm()))
    ((absence, kernels),) = grouped_absences(shown, {1, 2, 3})
    assert absence.reason == "not counted (2.4 % busy)"
    assert kernels == "#2, #3; numbers of #2"


def test_ncu_links_are_words_on_our_pages() -> None:
    rule = RuleAdvice(
        rule="R",
        name="R",
        section=None,
        message="See @section:LaunchStats:Launch Statistics@ and @url:Guide:https://x.y/#z@.",
        kind="warning",
    )
    (advice,) = page(an_analysis(a_gemm(rules=(rule,)))).rows[0].advice
    assert advice.message == "See Launch Statistics and Guide."


@pytest.mark.parametrize(
    "face", ["terminal", "markdown", "json", "csv", "html", "pdf", "png", "svg"]
)
def test_an_analysis_without_kernels_has_every_face(face: str) -> None:
    empty = Analysis(reports=(a_report(),), kernels=(), chips=(None,))
    faces = {
        "terminal": lambda: terminal.table(empty),
        "markdown": lambda: markdown.page(empty),
        "json": lambda: data.as_json(empty),
        "csv": lambda: data.as_csv(empty),
        "html": lambda: html.page(empty),
        "pdf": lambda: pdf.document(empty),
        "png": lambda: figure.png(empty),
        "svg": lambda: figure.svg(empty),
    }
    assert faces[face]()


def test_a_percentage_of_ncu_above_100_has_its_reason_and_clock() -> None:
    (line,) = page(an_analysis(a_gemm(achieved_occupancy_pct=100.5))).over
    assert line.startswith("#1 occupancy 100.5 %: ncu's own percentage")
    assert "1.755 GHz" in line


def test_a_ceiling_whose_clock_differed_is_one_line_with_its_range() -> None:
    slow = a_kernel(
        "slow",
        us=9,
        bound="fp32",
        clock=1.7e9,
        flop_total=1e8,
        dram_read=1e6,
        dram_write=1e6,
        rates={"fp32": 11e12},
    )
    fast = a_kernel(
        "fast",
        us=8,
        bound="fp32",
        flop_total=1e8,
        dram_read=1e6,
        dram_write=1e6,
        rates={"fp32": 12e12},
    )
    shown = page(an_analysis(slow, fast)).ceilings
    (profiled,) = [c for c in shown if c.basis == "report"]
    # 59.3 TFLOP/s at 1.755 GHz is 57.4 at 1.7 GHz.
    assert profiled.peak == "57.4 to 59.3 TFLOP/s"
    assert profiled.clock == "1.700 to 1.755 GHz"
    assert profiled.ranks == {1, 2}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dram_read": 1e6, "dram_write": 1e6}, "no FLOP were counted"),
        (
            {
                "dram_read": 1e6,
                "dram_write": 1e6,
                "flop": flop_totals(
                    fp64=None, fp32=None, fp16=None, tensor={"bf16": 1e9}, total=None
                ),
            },
            "not all FLOP were counted",
        ),
        ({"flop_total": 1e9}, "DRAM bytes were not counted"),
        (
            {"dram_read": 1e6, "dram_write": 1e6, "flop_total": 1e9},
            "only a busy percentage is near a roof",
        ),
        ({}, "neither FLOP nor bytes were counted"),
    ],
)
def test_a_roof_that_is_not_claimed_says_what_was_not_counted(
    changes: dict[str, Any], words: str
) -> None:
    shown = rows.row(a_kernel("k", us=10, bound="l2", **changes), 1, "r.ncu-rep")
    assert shown.at_roof == f"not claimed: {words}"


def test_integer_work_is_counted_in_operations_and_not_in_flop() -> None:
    work = flop_totals(fp64=0.0, fp32=1e9, fp16=0.0, tensor={"int8": 80e9}, total=81e9)
    kernel = a_kernel(
        "igemm",
        us=100,
        bound="tensor:int8",
        flop=work,
        flop_total=81e9,
        dram_read=50e6,
        dram_write=31e6,
        rates={"dram": 0.81e12},
        totals={"intensity_pair": (81e9, 81e6)},
    )
    (row,) = page(an_analysis(kernel)).rows
    assert row.flop_rate.text == "810 TOP/s"
    assert row.intensity.text == "1,000 OP/B"
