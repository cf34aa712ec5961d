"""The campaign as a PDF: summary, context, kernels, stalls, roofline on page 5, then the rest."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

from solscope.render import figure
from solscope.render.campaign.scatter import Scatter
from solscope.render.view import fonts

ROOFLINE_PAGE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfCheck:
    """What opening the PDF again showed: how many pages, and which begins with which heading."""

    page_count: int
    first_page_of: Mapping[str, int]


HEADINGS = (
    "Next lever",
    "Context",
    "Kernels",
    "Stalls and occupancy",
    "Roofline",
    "Cells compared",
    "Observations",
    "Mechanisms",
    "Gates",
    "Provenance",
)


def document(content: dict[str, Any], scatters: Sequence[Scatter]) -> bytes:
    """The PDF. Everything from a report enters as data, never as Typst markup."""
    import typst

    with tempfile.TemporaryDirectory(prefix="solscope-pdf-") as folder:
        root = Path(folder)
        figures = _figures(root, scatters)
        no_cell = "the campaign has no cell"
        no_figures = "no FLOP were counted and no roof is known" if scatters else no_cell
        shown = {**content, "figures": figures, "no_figures": no_figures}
        source = (files("solscope.render") / "templates" / "campaign.typ").read_bytes()
        (root / "campaign.typ").write_bytes(source)
        drawn = fonts.shown(shown)
        drawn["note"] = fonts.NOTE + " report.html has them." if drawn != shown else ""
        (root / "campaign.json").write_text(json.dumps(drawn), "utf-8")
        # System fonts would make the same campaign look different from machine to machine.
        pages: bytes = typst.compile(root / "campaign.typ", root=root, ignore_system_fonts=True)
    return pages


def _figures(root: Path, scatters: Sequence[Scatter]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for scatter in scatters:
        for definition in scatter.definitions:
            name = f"figure-{len(found)}.pdf"
            (root / name).write_bytes(figure.pdf(fonts.shown(definition)))
            found.append({"cell": scatter.cell, "file": name, "placed": ""})
        if scatter.panels:
            found[-1]["placed"] = scatter.placed_by_percent
    return found


def check(pages: bytes) -> PdfCheck:
    """Open a PDF again, count its pages and find its headings."""
    from pypdf import PdfReader

    found: dict[str, int] = {}
    reader = PdfReader(BytesIO(pages))
    for number, page in enumerate(reader.pages, start=1):
        lines = {line.strip() for line in page.extract_text().splitlines()}
        for heading in HEADINGS:
            if heading not in found and any(line.startswith(heading) for line in lines):
                found[heading] = number
    return PdfCheck(page_count=len(reader.pages), first_page_of=found)
