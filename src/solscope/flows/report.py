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
    written = [str(text.write_whole(folder.file(name), page)) for name, page in pages.items()]
    checked = pdf.check(folder.file(PDF).read_bytes())
    digests = {name: _digest(folder.file(name), page) for name, page in pages.items()}
    state = status.document(shown, checked, digests)
    written.append(str(text.write_whole(folder.file(STATUS), status.encode(state))))
    _reread(folder.file(STATUS), len(shown["all_kernels"]))
    written.append(gate.write(folder, verdict))
    written.append(next_flow.keep(folder, campaign, levers, verdict.tier.value))
    said = json.dumps(state, indent=2) if request.format == "json" else status.text(state)
    return Outcome(value=state, text=said, files=tuple(written))


def _digest(path: Path, page: bytes) -> str:
    """The digest of what lies on disk. Raises ReportError where that is not what was written."""
    found = path.read_bytes()
    if found != page:
        raise ReportError("what was written is not what lies there", where=str(path))
    return hashlib.sha256(found).hexdigest()


def _reread(path: Path, rows: int) -> None:
    state = json.loads(path.read_bytes())
    if state["kernel_rows"] != rows:
        raise ReportError("what was written is not what lies there", where=str(path))
