"""The roofline: one chart definition for Vega-Lite, SVG, PNG, PDF and the HTML page."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from solscope.model.verdict import Analysis
from solscope.render.figure.panels import Panel, panels
from solscope.render.view.page import Page, page

NOTHING_TO_DRAW = "No roofline: no FLOP were counted and no roof is known."
NEXT_STEP = "Name the GPU with --chip to see its roofs."

MOST_PANELS = 12
"""Charts in one figure; the HTML page draws each on its own and has no limit."""


def spec(analysis: Analysis, *, dark: bool = False) -> dict[str, Any]:
    """The Vega-Lite definition of the figure, all data inside; a sentence where there is neither
    a roof nor a kernel to draw."""
    drawn = limited(panels(analysis, page(analysis)))
    return of_panels(drawn, dark=dark) if drawn else _nothing(dark=dark)


def _nothing(*, dark: bool) -> dict[str, Any]:
    import altair as alt

    from solscope.render.figure.theme import config

    said = alt.TitleParams(text=NOTHING_TO_DRAW, subtitle=NEXT_STEP, anchor="start")
    data = alt.InlineData(values=[{}])
    blank = alt.Chart(data, width=480, height=1, title=said).mark_text(text="")
    definition: dict[str, Any] = blank.to_dict()
    definition["config"] = config(dark=dark)
    return definition


def limited(found: Sequence[Panel]) -> tuple[Panel, ...]:
    """The first charts; the kernels of the others are listed below the last one."""
    shown, left = found[:MOST_PANELS], found[MOST_PANELS:]
    if not left:
        return tuple(shown)
    rows = [*shown[-1].elsewhere, *(row for p in left for row, _ in p.members)]
    rows += [row for p in left for row in p.elsewhere]
    return (
        *shown[:-1],
        dataclasses.replace(shown[-1], elsewhere=tuple(rows), is_last_of_more=True),
    )


def of_panels(drawn: Sequence[Panel], *, dark: bool = False) -> dict[str, Any]:
    """The definition of a figure that holds these panels, one below the other."""
    import altair as alt

    from solscope.render.figure.chart import chart
    from solscope.render.figure.scene import lay_out
    from solscope.render.figure.theme import config

    charts = [chart(lay_out(panel)) for panel in drawn]
    figure: alt.LayerChart | alt.VConcatChart
    if len(charts) == 1:
        figure = charts[0]
    else:
        figure = alt.vconcat(*charts, spacing=36).resolve_scale(
            color="independent", shape="independent", strokeDash="independent"
        )
    definition: dict[str, Any] = figure.to_dict()
    definition["config"] = config(dark=dark)
    return definition


def of_page(analysis: Analysis, shown: Page) -> tuple[dict[str, Any], ...]:
    """One definition per panel, for a page that places them itself."""
    return tuple(of_panels([panel]) for panel in panels(analysis, shown))


def svg(analysis: Analysis) -> bytes:
    """The figure as SVG; its text is text."""
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(json.dumps(spec(analysis)), vl_version=version())
    return text.encode()


def png(analysis: Analysis, *, scale: float = 2.0) -> bytes:
    """The figure as PNG."""
    import vl_convert

    image: bytes = vl_convert.vegalite_to_png(
        json.dumps(spec(analysis)), vl_version=version(), scale=scale
    )
    return image


def pdf(definition: dict[str, Any]) -> bytes:
    """A definition as a vector page with its fonts inside."""
    import vl_convert

    document: bytes = vl_convert.vegalite_to_pdf(json.dumps(definition), vl_version=version())
    return document


def version() -> str:
    """The Vega-Lite version of the definition, as vl-convert names it, such as ``6.4``."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
