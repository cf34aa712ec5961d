"""Colours and type of the chart, for the light and the dark scheme."""

from __future__ import annotations

from typing import Any

_FONT = "Liberation Sans, Helvetica Neue, Helvetica, Arial, sans-serif"
_MONO = "Liberation Mono, SFMono-Regular, Menlo, Consolas, monospace"


def config(*, dark: bool = False) -> dict[str, Any]:
    """The Vega-Lite configuration of one scheme; the chart itself names styles only."""
    ink, quiet, faint, paper, strip = (
        ("#e6e9ee", "#a7afba", "#2c333d", "#14181d", "#1f252d")
        if dark
        else ("#1b2028", "#566070", "#e3e7ec", "#ffffff", "#f1f3f6")
    )
    line = "#c8ced6" if dark else "#3a4350"
    return {
        "background": paper,
        "font": _FONT,
        "padding": 12,
        "view": {"stroke": None},
        "title": {
            "color": ink,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleColor": quiet,
            "subtitleFontSize": 11.5,
            "subtitlePadding": 4,
            "offset": 10,
        },
        "axis": {
            "labelColor": quiet,
            "titleColor": ink,
            "titleFontWeight": 500,
            "titleFontSize": 12,
            "labelFontSize": 11,
            "gridColor": faint,
            "domainColor": quiet,
            "tickColor": quiet,
            "titlePadding": 8,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": quiet,
            "labelFontSize": 11.5,
            "titleFontSize": 11.5,
            "titleFontWeight": 400,
            "symbolStrokeWidth": 1.7,
            "titleOrient": "left",
            "titleAnchor": "middle",
            "columnPadding": 14,
            "offset": 8,
        },
        "style": {
            "roof": {"color": line, "strokeWidth": 1.7},
            "leader": {"color": quiet, "strokeWidth": 0.8},
            "roof-title": {"color": ink, "fontSize": 11.5, "fontWeight": 600},
            "roof-source": {"color": quiet, "fontSize": 10, "font": _MONO},
            "slope": {"color": quiet, "fontSize": 10.5},
            "strip": {"color": strip},
            "strip-title": {"color": quiet, "fontSize": 11, "fontStyle": "italic"},
            "kernel": {"opacity": 0.95, "stroke": paper, "strokeWidth": 1},
            "hollow": {"opacity": 1, "strokeWidth": 2},
            "halo": {"color": paper, "stroke": paper, "strokeWidth": 3.5, "fontSize": 11},
            "name": {"color": ink, "fontSize": 11},
            "rank": {"color": "#ffffff", "fontSize": 11, "fontWeight": 700},
            "note": {"color": quiet, "fontSize": 11},
        },
    }
