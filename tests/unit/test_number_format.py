"""The decimal mark is proved by the file's numbers, named by the user, or asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solscope.errors import ReportError, UsageError
from solscope.reports.printed.number_format import detect, of_locale


@pytest.mark.parametrize(
    ("cells", "plain"),
    [
        (("63,343", "41.70"), ("63343", "41.70")),
        (("63.343", "41,70"), ("63343", "41.70")),
        (("63 343", "41,70"), ("63343", "41.70")),
        (("63\u202f343", "41,7"), ("63343", "41.7")),
        (("63'343", "41.70"), ("63343", "41.70")),
        (("63'343", "1.234"), ("63343", "1.234")),
        (("25,170,176", "89,728"), ("25170176", "89728")),
        (("25.170.176", "89.728"), ("25170176", "89728")),
        (("12,34,567.1", "89,728"), ("1234567.1", "89728")),
        (("153.184", "3.354448"), ("153.184", "3.354448")),
        (("0.123", "63.343"), ("0.123", "63.343")),
        (("1.234.567,891",), ("1234567.891",)),
        (("25170176", "89.728"), ("25170176", "89.728")),
        (("12", "CachePreferNone", "550.54.15"), ("12", "CachePreferNone", "550.54.15")),
    ],
)
def test_one_number_decides_for_all(cells: tuple[str, ...], plain: tuple[str, ...]) -> None:
    numbers = detect(cells, where="x.csv")
    assert tuple(numbers.plain(cell) for cell in cells) == plain


@pytest.mark.parametrize(
    "cells",
    [("63.343",), ("63,343",), ("-1.234", "12"), ("63,343", "1.234"), ("25170176", "89,728")],
)
def test_an_undecided_number_is_refused_and_the_locale_asked_for(cells: tuple[str, ...]) -> None:
    with pytest.raises(ReportError, match="decimal or as thousands") as caught:
        detect(cells, where="x.csv")
    assert "--locale" in str(caught.value.hint)


@pytest.mark.parametrize("cells", [("41.5", "3,25"), ("1,234.5", "1.234,5"), ("1.5", "1.234.567")])
def test_two_formats_in_one_file_are_refused(cells: tuple[str, ...]) -> None:
    with pytest.raises(ReportError, match="two formats"):
        detect(cells, where="x.csv")


def test_a_number_that_is_known_otherwise_decides() -> None:
    numbers = detect(("4.096", "63.343"), where="x.csv", known=[("4.096", 4096)])
    assert numbers.plain("63.343") == "63343"


@pytest.mark.parametrize(
    ("locale", "printed"),
    [
        ("de_DE", "1.234,5"),
        ("de_DE.UTF-8", "1.234,5"),
        ("fr_FR", "1 234,5"),
        ("pt-BR", "1.234,5"),
        ("de_CH", "1'234.5"),
        ("en_US", "1,234.5"),
        ("C", "1234.5"),
    ],
)
def test_a_named_locale_needs_no_proof(locale: str, printed: str) -> None:
    assert of_locale(locale).plain(printed) == "1234.5"


def test_an_unknown_locale_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no locale"):
        of_locale("germany!")


@given(
    st.lists(st.integers(0, 10**12), min_size=1, max_size=20),
    st.floats(0, 1e6).map(lambda x: round(x, 2)),
    st.sampled_from([(",", "."), (".", ","), (" ", ","), ("'", "."), ("\u202f", ",")]),
)
def test_whatever_is_grouped_comes_back(
    whole: list[int], part: float, marks: tuple[str, str]
) -> None:
    group, decimal = marks

    def printed(text: str) -> str:
        return text.replace(",", "\0").replace(".", decimal).replace("\0", group)

    cells = [*(printed(f"{n:,}") for n in whole), printed(f"{part:,.2f}")]
    numbers = detect(cells, where="x.csv")
    assert [int(numbers.plain(cell)) for cell in cells[:-1]] == whole
    assert float(numbers.plain(cells[-1])) == part
