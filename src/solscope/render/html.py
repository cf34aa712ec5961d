"""One HTML file that needs nothing else: no server, no network, no second file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from solscope.model.verdict import Analysis
from solscope.render import figure
from solscope.render.figure.theme import config
from solscope.render.view import bounds
from solscope.render.view import page as view
from solscope.render.view.columns import cell, chosen
from solscope.render.view.selection import grouped_absences

_TEMPLATES = "templates"
_EXPORT = "window.vegaEmbed = vegaEmbed;"


def page(analysis: Analysis, *, show_session: bool = False) -> str:
    """The analysis as one HTML document.

    Everything that comes from a report is escaped; the browser is told to run only the three
    scripts that were written here, known by their digests, and to fetch nothing.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    shown = view.page(analysis, show_session=show_session)
    environment = Environment(
        loader=PackageLoader("solscope.render", _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = prose
    environment.filters["breaks"] = breaks
    specs = figure.of_page(analysis, shown)
    columns = chosen(shown.rows, is_narrow=True)
    scripts = [_bundle(figure.version()), _read("page.js")]
    text: str = environment.get_template("page.html.jinja").render(
        page=shown,
        columns=columns,
        cell=cell,
        busy_stands_in=any(column.is_busy for column in columns),
        bounds=tuple(bounds.STYLES.values()),
        figures=len(specs),
        no_figure=f"{figure.NOTHING_TO_DRAW} {figure.NEXT_STEP}",
        missing=list(grouped_absences(shown, {row.rank for row in shown.rows})),
        has_estimate=any(row.dram_rate.note for row in shown.rows),
        css=Markup(_read("page.css")),
        scripts=[Markup(script) for script in scripts],
        figures_json=Markup(_json({"specs": specs, "light": config(), "dark": config(dark=True)})),
        policy=_policy(scripts),
    )
    return text


def prose(text: str) -> str:
    """Escaped text in which `code` is shown as code.

    >>> str(prose("use `--set full` & <b>"))
    'use <code>--set full</code> &amp; &lt;b&gt;'
    """
    from markupsafe import Markup, escape

    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    shown = [Markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(parts)]
    return Markup("").join(shown)


def breaks(name: str) -> str:
    """An escaped name that may break into lines where its parts meet.

    >>> str(breaks("rms_norm<T>"))
    'rms_<wbr>norm&lt;T&gt;'
    """
    from markupsafe import Markup, escape

    parts = re.split(r"(?<=[_:,])|(?<=[a-z])(?=[A-Z])", name)
    return Markup("<wbr>").join(escape(part) for part in parts)


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in, whatever the names hold."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _bundle(version: str) -> str:
    """Vega, Vega-Lite and vega-embed as one script, out of vl-convert."""
    import vl_convert

    text: str = vl_convert.javascript_bundle(_EXPORT, vl_version=version)
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _read(name: str) -> str:
    return (files("solscope.render") / _TEMPLATES / name).read_text("utf-8")


def _policy(scripts: list[str]) -> str:
    """A content security policy: these scripts by their digest, inline style, nothing fetched."""
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'"
        for s in scripts
    )
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
