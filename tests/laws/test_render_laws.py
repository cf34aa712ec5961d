"""Whatever a kernel is called, pages show it as text and as nothing else."""

from __future__ import annotations

import json
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.analyses import HOSTILE, a_kernel, an_analysis

from solscope.model.verdict import Analysis
from solscope.render import figure, html, markdown, terminal
from solscope.render.view import numbers

NAMES = st.text(min_size=1, max_size=60) | st.text(
    alphabet="<>&\"'`|_*[](){}\\$#@!- \n", max_size=40
)
FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def _analysis(name: str) -> Analysis:
    return an_analysis(
        a_kernel(name, us=10, bound="dram", flop_total=1e6, dram_read=1e6, dram_write=1e6)
    )


@cache
def _plain() -> list[str]:
    return _elements("k")


def _elements(name: str) -> list[str]:
    return sorted(tag for tag in _Tags(html.page(_analysis(name))).tags if tag != "wbr")


@given(NAMES)
@example(HOSTILE)
@example("</script><!--<script>")
@FEW
def test_no_name_adds_an_element_to_the_page(name: str) -> None:
    assert _elements(name) == _plain()


@given(NAMES)
@example(HOSTILE)
@FEW
def test_no_name_breaks_the_svg(name: str) -> None:
    ElementTree.fromstring(figure.svg(_analysis(name)))


@given(NAMES)
@example(HOSTILE)
@FEW
def test_no_name_sends_a_control_code_to_the_terminal(name: str) -> None:
    text = terminal.table(_analysis(name))
    assert all(char.isprintable() or char == "\n" for char in text)


@given(NAMES)
@example("`<b>`|x")
@example(HOSTILE)
@FEW
def test_no_name_becomes_markup_in_markdown(name: str) -> None:
    rendered = MarkdownIt().enable("table").render(markdown.page(_analysis(name)))
    tags = set(_Tags(rendered).tags)
    assert not tags & {"script", "img", "a", "b", "i", "em"}
    assert rendered.count("<tr>") == 2


@given(st.text())
def test_clean_text_is_printable_and_clean_again(text: str) -> None:
    once = numbers.clean(text)
    assert once.isprintable()
    assert numbers.clean(once) == once


@given(st.text(), st.integers(min_value=4, max_value=80))
def test_shortened_text_fits_and_keeps_its_ends(text: str, width: int) -> None:
    short = numbers.shorten(text, width)
    assert len(short) <= width
    assert short[:1] == text[:1]


@given(st.floats(min_value=1e-9, max_value=1e21))
def test_every_number_has_at_most_three_digits_and_its_unit(value: float) -> None:
    text = numbers.amount(value, "FLOP")
    assert text.endswith("FLOP")
    mantissa = text.split()[0].partition("e")[0].replace(",", "").replace(".", "").lstrip("0")
    assert len(mantissa) <= 7


def test_the_json_in_the_page_is_the_figure_itself() -> None:
    text = html.page(_analysis("k<&>"))
    start = text.index('<script id="figures" type="application/json">') + 45
    shown = json.loads(text[start : text.index("</script>", start)])
    assert "k<&>" in json.dumps(shown["specs"], ensure_ascii=False)
