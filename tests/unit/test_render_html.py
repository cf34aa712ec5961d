"""One offline file that trusts nothing it was given."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from tests.analyses import a_decode_step, a_gemm, a_hostile_analysis, a_report, an_analysis

from solscope.render import html


class _Outline(HTMLParser):
    """Elements by name, with the attributes of each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def text() -> str:
    return html.page(a_decode_step())


@pytest.fixture(scope="module")
def hostile() -> str:
    return html.page(a_hostile_analysis())


def _own(text: str) -> str:
    """The page without the charting library."""
    return re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


def test_nothing_is_fetched(text: str) -> None:
    outline = _Outline(text)
    assert not outline.all("link")
    assert not outline.all("img")
    assert not any("src" in attrs for attrs in outline.all("script"))
    assert "url(" not in _own(text)
    (policy,) = [m for m in outline.all("meta") if "http-equiv" in m]
    assert "default-src 'none'" in (policy["content"] or "")
    assert "unsafe-eval" not in (policy["content"] or "")


def test_hostile_names_add_no_element(hostile: str) -> None:
    outline = _Outline(hostile)
    assert len(outline.all("script")) == 3
    assert not outline.all("img")
    assert not outline.all("i")
    assert not any(k.startswith("on") for _, attrs in outline.elements for k in attrs)


def test_hostile_names_cannot_end_the_embedded_json(hostile: str) -> None:
    match = re.search(r'<script id="figures" type="application/json">(.*?)</script>', hostile)
    assert match is not None
    assert "<" not in match[1]
    specs = json.loads(match[1])["specs"]
    assert "<script>alert(1)" in json.dumps(specs)


def test_every_kernel_has_a_row_and_a_detail(text: str) -> None:
    outline = _Outline(text)
    details = [a["id"] for a in outline.all("details")]
    assert details == [f"k{rank}" for rank in range(1, 10)]
    assert [a["href"] for a in outline.all("a") if (a["href"] or "").startswith("#k")][1:] == [
        f"#k{rank}" for rank in range(1, 10)
    ]


def test_table_heads_are_buttons_in_scoped_heads(text: str) -> None:
    outline = _Outline(text)
    assert all("scope" in attrs for attrs in outline.all("th"))
    assert next(a.get("aria-sort") for a in outline.all("th")) == "ascending"


def test_unmeasured_cells_sort_last_and_have_reasons(text: str) -> None:
    assert 'data-v="">–</td>' in text
    assert "no DRAM byte counter" in text
    assert "<code>--metrics dram__bytes_read.sum,dram__bytes_write.sum</code>" in text


def test_ncu_estimates_are_called_ncus_own(text: str) -> None:
    assert "ncu&#39;s own estimate, global: 8.70 % speed-up" in text


def test_the_session_is_hidden_unless_asked_for(text: str) -> None:
    for secret in ("someone", "hunter2", "node-17", "10.20.30.40"):
        assert secret not in _own(text)
    shown = html.page(an_analysis(a_gemm()), show_session=True)
    assert "hunter2" in shown


def test_incomplete_is_said_at_the_top_and_at_the_end() -> None:
    text = html.page(an_analysis(a_gemm(), reports=(a_report(complete=False),)))
    assert _own(text).count("INCOMPLETE: decode.ncu-rep was cut") >= 2


def test_a_page_is_the_same_twice() -> None:
    assert html.page(an_analysis(a_gemm())) == html.page(an_analysis(a_gemm()))
