"""A campaign in, its pages out; each is opened again after it was written."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from solscope.analysis import frontier
from solscope.errors import ReportError
from solscope.evidence.campaign import folder as folders
from solscope.evidence.campaign import text
from solscope.flows import gate
from solscope.flows import next as next_flow
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.reports import tables

HTML, PDF, STATUS = "report.html", "report.pdf", "report_status.json"


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """Write a campaign's pages: report.html, report.pdf, report_status.json.

    The PDF has a summary with tier and next lever, the context, kernels, stalls and occupancy,
    the roofline on page 5, cells compared, observations apart from mechanisms, gates and
    provenance with digests. Also writes verdict.json and keeps HANDOFF.md.
    """

    slug: str = option("The campaign.", positional=True)
    format: Literal["text", "json"] = option("What to print.", default="text")
    ceilings: str | None = option("Lay this YAML file over the packaged ceilings.", default=None)
    campaigns: str = option("The folder of all campaigns.", default="campaigns")


def run(request: ReportRequest, world: World) -> Outcome:
    """The verb. Raises UsageError, ReportError."""
    from solscope.render.campaign import content, html, pdf, scatter, status

    folder = folders.named(request.campaigns, request.slug)
    campaign = folders.read(folder)
    levers = frontier.rank(campaign)
    verdict = gate.judge(campaign, world)
    ceilings = tables.ceilings(request.ceilings).category_ceiling_map
    scatters = [scatter.of_cell(cell, ceilings) for cell in campaign.cells]
    shown: dict[str, Any] = {
        **content.content(campaign, verdict, levers),
        "drawn": sum(panel.has_points for s in scatters for panel in s.panels),
    }
    pages = {HTML: html.page(shown, scatters).encode(), PDF: pdf.document(shown, scatters)}
    digests = {name: hashlib.sha256(page).hexdigest() for name, page in pages.items()}
    state = status.document(shown, pdf.check(pages[PDF]), digests)
    written = text.write_together(
        [
            *((folder.file(name), page) for name, page in pages.items()),
            (folder.file(STATUS), status.encode(state)),
            gate.file_of(folder, verdict),
            next_flow.file_of(folder, campaign, levers, verdict.tier.value),
        ]
    )
    _check(folder, sum(len(cell.analysis.kernels) for cell in campaign.cells))
    said = json.dumps(state, indent=2) if request.format == "json" else status.text(state)
    return Outcome(value=state, text=said, files=tuple(map(str, written)))


def _check(folder: folders.CampaignFolder, rows: int) -> None:
    """Open what lies on the disk again: digests, pages and rows are those of the status.

    Raises ReportError where one is not.
    """
    from solscope.render.campaign import pdf

    state = json.loads(folder.file(STATUS).read_bytes())
    for name, digest in state["files"].items():
        if hashlib.sha256(folder.file(name).read_bytes()).hexdigest() != digest:
            raise _differs(folder.file(name))
    if pdf.check(folder.file(PDF).read_bytes()).page_count != state["page_count"]:
        raise _differs(folder.file(PDF))
    if state["kernel_rows"] != rows:
        raise _differs(folder.file(STATUS))


def _differs(path: Path) -> ReportError:
    return ReportError("what was written is not what lies there", where=str(path))
