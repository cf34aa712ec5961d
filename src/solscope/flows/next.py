"""Campaigns in, the frontier out; ``HANDOFF.md`` is kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from solscope.analysis import frontier
from solscope.errors import UsageError
from solscope.evidence.campaign import findings as value_findings
from solscope.evidence.campaign import folder as folders
from solscope.evidence.campaign import handoff, text
from solscope.flows import gate
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.campaign import Campaign, Frontier

HANDOFF = "HANDOFF.md"


@dataclass(frozen=True, slots=True)
class NextRequest:
    """Rank what to change next: what it may win, what it costs, what would prove it.

    Levers come from the verdicts on kernels and from value-findings.yaml. Without a campaign, all
    of them are ranked together. Keeps the frontier in each campaign's HANDOFF.md; what people
    wrote there stays.
    """

    slug: str | None = option(
        "The campaign; all where none is named.", positional=True, default=None
    )
    findings: str | None = option(
        "This value-findings.yaml, in place of the campaign's own.", default=None
    )
    format: Literal["table", "json"] = option("What to print.", default="table")
    dry_run: bool = option("Show only; leave HANDOFF.md as it is.", default=False)
    campaigns: str = option("The folder of all campaigns.", default="campaigns")


def run(request: NextRequest, world: World) -> Outcome:
    """The verb. Exit 1 where no lever is open. Raises UsageError, ReportError."""
    from solscope.render.campaign import frontier as page

    places = (
        [folders.named(request.campaigns, request.slug)]
        if request.slug
        else list(folders.every(request.campaigns))
    )
    if not places:
        raise UsageError(
            "there is no campaign here",
            where=request.campaigns,
            hint="solscope campaign init SLUG --config config.yaml",
        )
    campaigns = [_with_findings(folders.read(place), request.findings) for place in places]
    found = [(campaign, frontier.rank(campaign)) for campaign in campaigns]
    written: list[str] = []
    if not request.dry_run:
        for place, (campaign, levers) in zip(places, found, strict=True):
            written.append(keep(place, campaign, levers, gate.judge(campaign, world).tier.value))
    if request.format == "json":
        shown = json.dumps(page.document(found), indent=2)
    else:
        shown = page.terminal(found, width=world.width)
    is_open = any(levers.open for _campaign, levers in found)
    return Outcome(
        value=tuple(found), text=shown, exit_code=0 if is_open else 1, files=tuple(written)
    )


def _with_findings(campaign: Campaign, path: str | None) -> Campaign:
    if path is None:
        return campaign
    return replace(campaign, findings=value_findings.read(Path(path)))


def keep(place: folders.CampaignFolder, campaign: Campaign, levers: Frontier, tier: str) -> str:
    """Rewrite our part of HANDOFF.md; its path."""
    from solscope.render.campaign import frontier as page

    path = place.file(HANDOFF)
    try:
        existing = path.read_text("utf-8") if path.is_file() else None
    except UnicodeDecodeError as error:
        raise UsageError(
            "not UTF-8 text, so our part of it cannot be kept",
            where=str(path),
            hint="save it as UTF-8, or move it away",
        ) from error
    ours = page.handoff(campaign, levers, tier)
    merged = handoff.merged(existing, f"{campaign.config.name}: hand-off", ours)
    return str(text.write_whole(path, merged.encode()))
