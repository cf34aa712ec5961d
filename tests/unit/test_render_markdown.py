"""Markdown that no name can turn into markup."""

from __future__ import annotations

from markdown_it import MarkdownIt
from tests.analyses import a_decode_step, a_gemm, a_hostile_analysis, a_report, an_analysis

from solscope.render import markdown


def test_the_table_has_a_row_per_kernel() -> None:
    html = MarkdownIt().enable("table").render(markdown.page(a_decode_step()))
    assert html.count("<tr>") == 10
    assert "<code>nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT</code>" in html


def test_a_hostile_name_stays_text() -> None:
    html = MarkdownIt().enable("table").render(markdown.page(a_hostile_analysis()))
    assert "<script" not in html
    assert "<img" not in html
    assert html.count("<tr>") == 3


def test_both_speeds_of_light_name_their_ceilings() -> None:
    text = markdown.page(an_analysis(a_gemm()))
    assert "`h100_sxm.bf16_dense_pflops`, at 1.830 GHz" in text
    assert "sparsity_off.sum.peak_sustained`, at 1.755 GHz" in text


def test_ncu_estimates_are_called_ncus_own() -> None:
    assert "(ncu's own estimate, global: 8.70 % speed-up)" in markdown.page(an_analysis(a_gemm()))


def test_incomplete_stands_at_both_ends() -> None:
    text = markdown.page(an_analysis(a_gemm(), reports=(a_report(complete=False),)))
    assert text.count("INCOMPLETE") == 2


def test_top_leaves_out_and_says_so() -> None:
    text = markdown.page(a_decode_step(), top=1)
    assert "8 more kernels are not shown." in text
    assert "topkGatingSoftmax" not in text
