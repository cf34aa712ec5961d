"""The HTML page as a browser shows it, with the network off."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.analyses import a_decode_step, a_hostile_analysis
from tests.faces.chromium import Browser, find

from solscope.render import html

pytestmark = pytest.mark.browser

FIRST = "[...document.querySelectorAll('#table tbody th a')].map(a => a.textContent)"
SYMBOLS = "document.querySelectorAll('.chart svg .mark-symbol.role-mark path').length"


def _browser(folder: Path) -> Browser:
    path = find()
    if path is None:
        if os.environ.get("SOLSCOPE_REQUIRE_CORPUS") == "1":
            pytest.fail("no Chromium found, and everything is required here")
        pytest.skip("no Chromium found (set SOLSCOPE_CHROMIUM)")
    return Browser(path, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("chromium")


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Browser]:
    file = folder / "page.html"
    file.write_text(html.page(a_decode_step()), "utf-8")
    with _browser(folder / "profile") as browser:
        browser.open(file)
        yield browser


def test_nothing_but_the_file_is_requested(page: Browser) -> None:
    assert [url for url in page.requests if not url.startswith("file://")] == []
    assert len([url for url in page.requests if url.startswith("file://")]) == 1


def test_every_kernel_with_a_rate_is_a_symbol_of_the_chart(page: Browser) -> None:
    # Nine kernels, one of which has neither FLOP nor bytes and stands below the chart.
    assert page.value(SYMBOLS) == 8


def test_a_click_on_a_head_sorts_and_unmeasured_rows_stay_last(page: Browser) -> None:
    head = "document.querySelectorAll('#table thead button')[7]"
    page.value(f"{head}.click()")
    names = page.value(FIRST)
    assert names[0].startswith("nvjet")
    assert names[-3:] == [
        "topkGatingSoftmax",
        "reshape_and_cache_flash_kernel",
        "rotary_embedding_kernel",
    ]
    page.value(f"{head}.click()")
    names = page.value(FIRST)
    assert names[0] == "apply_penalties_kernel"
    assert names[-1] == "rotary_embedding_kernel"


def test_a_key_sorts_too(page: Browser) -> None:
    page.value("document.querySelectorAll('#table thead button')[1].focus()")
    page.press("Enter", 13)
    names = page.value(FIRST)
    assert names == sorted(names, key=str.lower)
    sort = "document.querySelectorAll('#table thead th')[1].getAttribute('aria-sort')"
    assert page.value(sort) == "ascending"


def test_the_filter_leaves_what_matches(page: Browser) -> None:
    page.value(
        "(() => { const f = document.getElementById('filter'); f.value = 'RMSNorm';"
        " f.dispatchEvent(new Event('input')); })()"
    )
    shown = "[...document.querySelectorAll('#table tbody tr')].filter(r => !r.hidden).length"
    assert page.value(shown) == 1
    assert page.value("document.getElementById('matches').textContent") == "1 of 9 kernels"
    page.value(
        "(() => { const f = document.getElementById('filter'); f.value = '';"
        " f.dispatchEvent(new Event('input')); })()"
    )
    assert page.value(shown) == 9


def test_pointing_at_a_marker_shows_its_full_name_and_units(page: Browser) -> None:
    page.value("document.querySelector('.chart').scrollIntoView({block: 'center'})")
    box = page.value(
        "(() => { const r = document.querySelectorAll('.chart svg .mark-symbol.role-mark path')[1]"
        ".getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )
    page.move(*box)
    page.wait_for("document.querySelector('#vg-tooltip-element.visible') !== null")
    text = page.value("document.querySelector('#vg-tooltip-element').textContent")
    assert "flashinfer::BatchDecodeWithPagedKVCacheKernel<" in text
    assert "5.68 FLOP/B" in text
    assert "17.2 TFLOP/s" in text


def test_a_link_opens_the_detail(page: Browser) -> None:
    page.value("document.querySelector('a[href=\"#k4\"]').click()")
    page.wait_for("document.getElementById('k4').open")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (400, "light")])
def test_the_page_never_scrolls_sideways_in_any_scheme(
    page: Browser, folder: Path, width: int, scheme: str
) -> None:
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=2200,
        deviceScaleFactor=1,
        mobile=width < 600,
    )
    page.call(
        "Emulation.setEmulatedMedia",
        features=[{"name": "prefers-color-scheme", "value": scheme}],
    )
    page.value("window.scrollTo(0, 0)")
    assert page.value("document.documentElement.scrollWidth") <= width
    (folder / f"page-{width}-{scheme}.png").write_bytes(shot := page.screenshot())
    assert shot.startswith(b"\x89PNG")
    assert len(shot) > 50_000


def test_hostile_names_run_nothing_and_the_console_is_silent(folder: Path) -> None:
    file = folder / "hostile.html"
    file.write_text(html.page(a_hostile_analysis()), "utf-8")
    with _browser(folder / "profile-2") as browser:
        browser.open(file)
        shown = browser.value("document.querySelector('#table tbody th a').textContent")
        assert shown.startswith("nvjet")
        assert browser.value(SYMBOLS) == 2
        assert "<script>alert(1)</script>" in browser.value("document.body.innerText")
        assert browser.complaints == []


def test_the_console_was_silent_all_along(page: Browser) -> None:
    page.value("1")
    assert page.complaints == []
