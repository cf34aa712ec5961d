"""A campaign in, DRAFT or VERDICT out, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from solscope.analysis import frontier, gates
from solscope.evidence.campaign import folder as folders
from solscope.evidence.campaign import text, verdicts
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.campaign import Campaign, CampaignVerdict

VERDICT_FILE = "verdict.json"


@dataclass(frozen=True, slots=True)
class GateRequest:
    """Say whether a campaign's numbers are proven: DRAFT or VERDICT, with what would promote it.

    Checks context, trials, captures, rigor, claims, baseline, the kernel rubric (H and P against
    the counters) and the next lever. Nothing passes because nothing was there to check. Writes
    verdict.json. Exit 1 where any check does not pass.
    """

    slug: str = option("The campaign.", positional=True)
    format: Literal["table", "json"] = option("What to print.", default="table")
    campaigns: str = option("The folder of all campaigns.", default="campaigns")


def run(request: GateRequest, world: World) -> Outcome:
    """The verb. Raises UsageError, ReportError."""
    from solscope.render.campaign import gates as page

    folder = folders.named(request.campaigns, request.slug)
    verdict = of(request.campaigns, request.slug, world)
    written = write(folder, verdict)
    shown = (
        verdicts.encode(verdict).decode().rstrip()
        if request.format == "json"
        else page.table(verdict, width=world.width)
    )
    return Outcome(
        value=verdict, text=shown, exit_code=0 if verdict.passes else 1, files=(written,)
    )


def of(campaigns: str, slug: str, world: World) -> CampaignVerdict:
    """The verdict on the campaign in a folder. Raises UsageError, ReportError."""
    return judge(folders.read(folders.named(campaigns, slug)), world)


def judge(campaign: Campaign, world: World) -> CampaignVerdict:
    """Every gate on a campaign, with its frontier."""
    taken = world.now().isoformat(timespec="seconds")
    return gates.judge(campaign, frontier.rank(campaign), taken)


def write(folder: folders.CampaignFolder, verdict: CampaignVerdict) -> str:
    """Write verdict.json; its path."""
    return str(text.write_whole(*file_of(folder, verdict)))


def file_of(folder: folders.CampaignFolder, verdict: CampaignVerdict) -> tuple[Path, bytes]:
    """Where verdict.json lies, and its bytes."""
    return folder.file(VERDICT_FILE), verdicts.encode(verdict)
