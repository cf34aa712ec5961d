"""Campaigns at the edges: many kernels, many cells, names that no font has, numbers as stated."""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader
from tests.analyses import a_chip
from tests.campaigns import (
    a_busy_kernel,
    a_cell,
    a_comparison,
    a_fma_kernel,
    a_tensor_kernel,
    grounded,
)

from solscope.analysis import frontier
from solscope.evidence.campaign import folder as folders
from solscope.flows import gate, report
from solscope.flows.world import World
from solscope.model.campaign import Cell
from solscope.model.context import Regime, Trials
from solscope.model.finding import Finding, Severity
from solscope.render.campaign import content, pdf, scatter
from solscope.render.campaign import html as html_page
from solscope.render.view import page as view


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    place = folders.named("campaigns", "dec")
    folders.init(place, b"name: Decode\nkrhpa_exempt_reason: stock engine\n")
    return tmp_path


def render(*cells: Cell) -> dict[str, Any]:
    for cell in cells:
        folders.write_cell(folders.named("campaigns", "dec"), cell, None)
    state: dict[str, Any] = report.run(report.ReportRequest(slug="dec"), World()).value
    return state


def html() -> str:
    return Path("campaigns/dec/report.html").read_text("utf-8")


def pages() -> list[Any]:
    return list(PdfReader(BytesIO(Path("campaigns/dec/report.pdf").read_bytes())).pages)


def pdf_text() -> str:
    said = " ".join(page.extract_text() for page in pages())
    return " ".join(said.replace("\u200b", "").split())


def section(begin: str, end: str) -> str:
    page = html()
    return page[page.index(f'id="{begin}"') : page.index(f'id="{end}"')]


def test_the_one_file_page_shows_every_kernel_in_every_table(home: Path) -> None:
    render(a_cell(*(a_fma_kernel(us=100 + i, name=f"k{i:02}") for i in range(30))))
    for begin, end in (
        ("kernels", "warps"),
        ("warps", "context"),
        ("observations", "mechanisms"),
        ("mechanisms", "gates"),
        ("frontier", "provenance"),
    ):
        found = set(re.findall(r"\bk\d\d\b", section(begin, end).replace("<wbr>", "")))
        assert len(found) == 30, begin
    # What the typeset pages leave out is said on each of them.
    assert pdf_text().count("8 more shorter kernels are in report.html") == 3


def test_a_caption_of_many_heights_stays_short(home: Path) -> None:
    kernels = [a_busy_kernel(busy=i / 4, name=f"k{i}", category="cuBLAS") for i in range(1, 300)]
    render(a_cell(*kernels))
    cell = folders.read(folders.named("campaigns", "dec")).cells[0]
    said = scatter.of_cell(cell, {"cuBLAS": "bf16_dense_pflops"}).placed_by_percent
    assert said.endswith(f"and {299 - scatter.MOST_HEIGHTS} more of h100_sxm.bf16_dense_pflops.")
    assert len(said) < 600
    assert "Hollow markers: intensity was not measured" in pdf_text()


def test_a_name_without_joints_stays_in_its_column(home: Path) -> None:
    render(a_cell(a_fma_kernel(name="x" * 2000), a_fma_kernel(name="y" * 300, us=1)))
    for page in pages():
        right = float(page.mediabox.right)
        rightmost: list[float] = []

        def note(
            text: str, _cm: Any, at: Any, _font: Any, size: float, found: list[float] = rightmost
        ) -> None:
            if "xxx" in text or "yyy" in text:
                found.append(at[4] + len(text.strip("\n")) * size * 0.5)

        page.extract_text(visitor_text=note)
        assert all(end < right for end in rightmost)


def test_a_long_name_of_a_cell_stays_in_its_column(home: Path) -> None:
    render(a_cell(a_fma_kernel(name="qqq"), cell_id="zzz" * 20))
    found: list[tuple[str, float, float]] = []

    def note(text: str, cm: Any, at: Any, _font: Any, size: float) -> None:
        begin = cm[4] + cm[0] * at[4]
        word = text.strip().replace("\u200b", "")
        found.append((word, begin, begin + len(word) * size * 0.602))  # DejaVu Sans Mono

    (observed,) = [page for page in pages() if "Observations" in page.extract_text()]
    observed.extract_text(visitor_text=note)
    before = found[: [word for word, _begin, _end in found].index("Gates")]
    cells = [end for word, _begin, end in before if set(word) == {"z"}]
    kernels = [begin for word, begin, _end in before if word == "qqq"]
    assert max(cells) < min(kernels)


def test_letters_that_no_font_of_the_page_has_stand_as_their_code(home: Path) -> None:
    render(a_cell(a_fma_kernel(name="核_kernel"), a_fma_kernel(name="µ_ядро", us=1)))
    said = pdf_text()
    assert "\\u6838_kernel" in said
    assert "µ_ядро" in said
    assert "report.html has them" in said
    assert "核_" in html()


def test_a_page_of_plain_letters_says_nothing_of_fonts(home: Path) -> None:
    render(a_cell(a_fma_kernel()))
    assert "fonts lack" not in pdf_text()


def test_cells_that_were_not_measured_alike_say_in_what(home: Path) -> None:
    fast = a_cell(a_tensor_kernel(us=100), cell_id="a")
    same = a_cell(a_tensor_kernel(us=110), cell_id="b")
    other = a_cell(a_tensor_kernel(us=200, clock=1.2e9), cell_id="c")
    render(fast, same, other)
    compared = section("compared", "observations")
    assert compared.count("unlike a in SM clock") == 1
    assert "unlike a in SM clock" in pdf_text()
    assert "is not like with like" in compared


def test_many_cells_are_compared_a_few_beside_each_other(home: Path) -> None:
    cells = [a_cell(a_tensor_kernel(us=100 + i), cell_id=f"cell-{i:02}") for i in range(12)]
    state = render(*cells)
    assert next(p for p in state["pages"] if p["name"] == "cells compared")["is_there"]
    compared = section("compared", "observations")
    tables = re.findall(r"<thead>(.*?)</thead>", compared)
    assert [table.count("<code>") for table in tables] == [5, 5, 4]
    assert all("cell-00" in table for table in tables)
    assert {f"cell-{i:02}" for i in range(12)} == set(re.findall(r"cell-\d\d", " ".join(tables)))


def test_numbers_of_the_context_stand_as_they_were_stated(home: Path) -> None:
    stated = grounded(
        trials=Trials(n=3, mean=1234567.8, std=12.5, quantity="throughput", unit="tok/s")
    )
    stated = replace(stated, workload=replace(stated.workload, input_tokens=1048576.0))
    cell = a_cell(a_tensor_kernel(), context=stated)
    assert content._value(stated.grounding.trials) == "throughput 1234567.8 ± 12.5 tok/s, n = 3"
    assert content._value(stated.workload.input_tokens) == "1048576"
    assert cell.context.shape() == "random, 1048576 in / 256 out, c=64, warm throughput"


@pytest.mark.parametrize(
    ("totals", "rates", "dtype", "height"),
    [
        ({}, {}, None, "90.0 % of h100_sxm.fp8_dense_pflops"),
        ({"tensor_engagement": "none"}, {}, "int8", "90.0 % of h100_sxm.fp32_tflops"),
        ({}, {"tensor:bf16": 1e12}, "int8", "90.0 % of h100_sxm.bf16_dense_pflops"),
        ({}, {}, "int8", "90.0 % of h100_sxm.int8_dense_pops"),
    ],
    ids=["nothing known", "no tensor work", "tensor work in BF16", "INT8 by its name"],
)
def test_a_height_is_of_the_ceiling_that_the_kernel_can_reach(
    totals: dict[str, Any], rates: dict[str, float], dtype: str | None, height: str
) -> None:
    busy = {"sm_busy_pct": 90.0, **totals}
    cell = a_cell(a_busy_kernel(category="MoE", totals=busy, rates=rates, dtype=dtype))
    chip = a_chip()
    of = chip.ceilings["bf16_dense_pflops"]
    more = {
        name: replace(of, key=f"h100_sxm.{name}")
        for name in ("fp8_dense_pflops", "int8_dense_pops")
    }
    chip = replace(chip, ceilings={**chip.ceilings, **more})
    (row,) = cell.analysis.kernels
    cell = replace(cell, analysis=replace(cell.analysis, kernels=(replace(row, chip=chip),)))
    said = scatter.of_cell(cell, {"MoE": "fp8_dense_pflops"}).placed_by_percent
    assert height in said


def test_a_family_that_streams_is_drawn_by_its_percentage_too(home: Path) -> None:
    state = render(a_cell(a_busy_kernel(40.0, name="triton_poi_fused", category="Triton-fused")))
    assert next(p for p in state["pages"] if p["name"] == "roofline")["is_there"]
    assert "40.0 % of h100_sxm.fp32_tflops" in pdf_text()


def test_the_whole_shape_stands_beside_each_number() -> None:
    long = grounded()
    long = replace(long, workload=replace(long.workload, dataset="sharegpt-v3", input_tokens=16384))
    cell = a_cell(a_tensor_kernel(), context=long)
    brief = content._brief(cell, view.page(cell.analysis).rows[0])
    assert brief["shape"] == "sharegpt-v3, 16384 in / 256 out, c=64, warm throughput"


def test_a_percentage_above_100_says_of_which_clock_and_ceiling(home: Path) -> None:
    fact = "tensor BF16 104.0 % of 949 TFLOP/s at 1.75 GHz: above 100 % because of clocks"
    over = Finding(code="above-100", severity=Severity.WARNING, where="k", fact=fact, remedy="see")
    kernels = [replace(a_tensor_kernel(us=100 + i), findings=(over,)) for i in range(2)]
    render(a_cell(*kernels))
    assert section("observations", "mechanisms").count(fact) == 1
    assert fact in pdf_text()


def test_a_verdict_on_two_arms_says_what_it_is_on_the_first_page() -> None:
    compared = a_comparison()
    shown = content.content(compared, gate.judge(compared, World()), frontier.rank(compared))
    said = "TPOT 12.1 ± 0.3 ms against 14 ± 0.2 ms: 13.6% lower, beyond their spreads"
    assert shown["headline"].startswith("my GEMM against cuBLAS nvjet: same context")
    assert said in shown["headline"]
    assert [(row["took"], row["trials"]) for row in shown["rubric"]] == [
        ("240 µs in 1 launch", "TPOT 12.1 ± 0.3 ms, n = 5"),
        ("240 µs in 1 launch", "TPOT 14 ± 0.2 ms, n = 5"),
    ]
    scatters = [scatter.of_cell(cell, {}) for cell in compared.cells]
    drawn = {**shown, "drawn": 1}
    first = PdfReader(BytesIO(pdf.document(drawn, scatters))).pages[0].extract_text()
    first = " ".join(first.replace("\u200b", "").split())
    assert said in first
    assert "TPOT 14 ± 0.2 ms, n = 5" in first
    assert html_page.page(drawn, scatters).count(said) >= 2


def test_arms_that_are_not_alike_have_no_headline() -> None:
    theirs = a_cell(a_tensor_kernel(), cell_id="baseline", context=grounded(trials=None))
    theirs = replace(theirs, context=replace(theirs.context, regime=Regime(state="cold")))
    other = a_comparison(theirs=theirs)
    shown = content.content(other, gate.judge(other, World()), frontier.rank(other))
    assert shown["headline"] == ""
    assert shown["rubric"][1]["trials"] == "–"
