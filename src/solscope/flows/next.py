"""Campaigns in, the frontier out; ``HANDOFF.md`` is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from solscope.analysis import frontier, history
from solscope.errors import UsageError
from solscope.evidence.campaign import findings as value_findings
from solscope.evidence.campaign import folder as folders
from solscope.evidence.campaign import handoff, text
from solscope.flows import gate
from solscope.flows.publish import open_lake
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.campaign import Campaign, Frontier
from solscope.model.history import Change, Standing

HANDOFF = "HANDOFF.md"


@dataclass(frozen=True, slots=True)
class NextRequest:
    """Rank what to change next: what it may win, what it costs, what would prove it.

    Levers come from the verdicts on kernels and from value-findings.yaml. Without a campaign, all
    of them are ranked together. With --lake, so are those of the lake's campaigns, and kernels
    that got slower since an earlier capture of the same shape and workload are listed. Keeps the
    frontier in each campaign's HANDOFF.md; what people wrote there stays.
    """

    slug: str | None = option(
        "The campaign; all where none is named.", positional=True, default=None
    )
    findings: str | None = option(
        "This value-findings.yaml, in place of the campaign's own.", default=None
    )
    lake: str | None = option(
        "Rank with the history in this lake: a folder or s3://bucket/prefix.", default=None
    )
    store: tuple[str, ...] = option(
        "An option of the object store, KEY=VALUE. May be repeated.", default=()
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
    if not places and request.lake is None:
        raise UsageError(
            "there is no campaign here",
            where=request.campaigns,
            hint="solscope campaign init SLUG --config config.yaml",
        )
    campaigns = [_with_findings(folders.read(place), request.findings) for place in places]
    found = [(campaign, frontier.rank(campaign)) for campaign in campaigns]
    past = _past(request, found)
    written: list[str] = []
    if not request.dry_run:
        for place, (campaign, levers) in zip(places, found, strict=True):
            written.append(keep(place, campaign, levers, gate.judge(campaign, world).tier.value))
    if request.format == "json":
        document = page.document(found)
        shown = json.dumps(document if past is None else {**document, **past.document()}, indent=2)
    else:
        width = world.width
        shown = page.terminal(found, width=width) if past is None else past.terminal(width)
    is_open = any(levers.open for _campaign, levers in found)
    return Outcome(
        value=tuple(found) if past is None else past,
        text=shown,
        exit_code=0 if is_open or (past is not None and past.standings) else 1,
        files=tuple(written),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a lake adds: the levers of all campaigns by slug, ranked, and kernels that got slower.

    A campaign that lies here too is taken from here. With a slug, only what concerns it.
    """

    frontiers: Mapping[str, Frontier]
    standings: tuple[Standing, ...]
    slower: tuple[Change, ...]

    def document(self) -> dict[str, Any]:
        """As plain values, beside those of the campaigns here."""
        from solscope.render.campaign import history as page

        return {"lake": page.document(self.standings, self.slower)}

    def terminal(self, width: int) -> str:
        """As text."""
        from solscope.render.campaign import history as page

        return page.terminal(self.standings, self.frontiers, self.slower, width=width)


def _past(request: NextRequest, found: Sequence[tuple[Campaign, Frontier]]) -> Past | None:
    if request.lake is None:
        return None
    from solscope.lake import history as lake

    remembered = lake.read(open_lake(request.lake, request.store))
    frontiers = {c.slug: c.frontier for c in remembered.campaigns if c.frontier is not None}
    frontiers |= {campaign.slug: levers for campaign, levers in found}
    standings = history.standings(frontiers)
    slower = history.slower(remembered.kernels)
    if request.slug is not None:
        own = request.slug
        standings = tuple(s for s in standings if own in (slug for slug, _lever in s.open))
        slower = tuple(c for c in slower if own in (c.before.campaign, c.after.campaign))
    return Past(frontiers=frontiers, standings=standings, slower=slower)


def _with_findings(campaign: Campaign, path: str | None) -> Campaign:
    if path is None:
        return campaign
    return replace(campaign, findings=value_findings.read(Path(path)))


def keep(place: folders.CampaignFolder, campaign: Campaign, levers: Frontier, tier: str) -> str:
    """Rewrite our part of HANDOFF.md; its path."""
    return str(text.write_whole(*file_of(place, campaign, levers, tier)))


def file_of(
    place: folders.CampaignFolder, campaign: Campaign, levers: Frontier, tier: str
) -> tuple[Path, bytes]:
    """Where HANDOFF.md lies, and its bytes: what people wrote, and our part anew."""
    from solscope.render.campaign import frontier as page

    path = place.file(HANDOFF)
    try:
        # Bytes, not text: line ends that people chose stay as they are.
        existing = path.read_bytes().decode("utf-8") if path.is_file() else None
    except UnicodeDecodeError as error:
        raise UsageError(
            "not UTF-8 text, so our part of it cannot be kept",
            where=str(path),
            hint="save it as UTF-8, or move it away",
        ) from error
    ours = page.handoff(campaign, levers, tier)
    merged = handoff.merged(existing, f"{campaign.config.name}: hand-off", ours)
    return path, merged.encode()
