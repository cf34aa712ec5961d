"""Several pages whose text is text."""

from __future__ import annotations

import io

import pypdf
import pytest
from tests.analyses import a_decode_step, a_hostile_analysis

from solscope.render import pdf


def _pages(document: bytes) -> list[str]:
    reader = pypdf.PdfReader(io.BytesIO(document))
    return [page.extract_text().replace("\u200b", "") for page in reader.pages]


@pytest.fixture(scope="module")
def pages() -> list[str]:
    return _pages(pdf.document(a_decode_step()))


def test_there_are_several_pages_with_chart_table_and_details(pages: list[str]) -> None:
    assert len(pages) >= 3
    assert "arithmetic intensity, FLOP per DRAM byte" in pages[0]
    text = "\n".join(pages)
    for word in ("h100_sxm.bf16_dense_pflops", "fused_add_rms_norm_kernel", "90.5 %", "1.83"):
        assert word in text


def test_markup_in_names_is_shown_as_it_is() -> None:
    text = "".join("\n".join(_pages(pdf.document(a_hostile_analysis()))).split())
    assert "<script>alert(1)</script>" in text
    assert "#text()`*_$" in text


def test_incomplete_is_on_every_page() -> None:
    assert all("INCOMPLETE" in page for page in _pages(pdf.document(a_hostile_analysis())))


def test_the_session_is_hidden_unless_asked_for(pages: list[str]) -> None:
    assert "hunter2" not in "".join(pages)
    shown = "".join(_pages(pdf.document(a_decode_step(), show_session=True)))
    assert "hunter2" in shown.replace("\n", "")
