"""The campaign as one HTML file without scripts: nothing is fetched, nothing runs."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from solscope.render import figure
from solscope.render.campaign.scatter import Scatter
from solscope.render.html import breaks, prose

SECTIONS = (
    ("measured", "Measured"),
    ("roofline", "Roofline"),
    ("kernels", "Kernels"),
    ("warps", "Stalls"),
    ("context", "Context"),
    ("compared", "Compared"),
    ("observations", "Observations"),
    ("mechanisms", "Mechanisms"),
    ("gates", "Gates"),
    ("frontier", "Frontier"),
    ("provenance", "Provenance"),
)


def page(content: dict[str, Any], scatters: Sequence[Scatter]) -> str:
    """The document. Everything that comes from a report is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("solscope.render", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = prose
    environment.filters["breaks"] = breaks
    css = (files("solscope.render") / "templates" / "page.css").read_text("utf-8")
    text: str = environment.get_template("campaign.html.jinja").render(
        d=content, figures=_figures(scatters), sections=SECTIONS, css=Markup(css)
    )
    return text


def _figures(scatters: Sequence[Scatter]) -> list[dict[str, Any]]:
    found = []
    for scatter in scatters:
        last = len(scatter.panels) - 1
        found += [
            {
                "cell": scatter.cell,
                "source": _data_url(definition),
                "placed": scatter.placed_by_percent if index == last else "",
            }
            for index, definition in enumerate(scatter.definitions)
        ]
    return found


def _data_url(definition: dict[str, Any]) -> str:
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(json.dumps(definition), vl_version=figure.version())
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
