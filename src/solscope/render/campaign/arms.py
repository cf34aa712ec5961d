"""The two arms of a comparison as a page shows them: what each is, took, and was tried with."""

from __future__ import annotations

from collections.abc import Iterator

from solscope.model.campaign import Arm, Campaign, CampaignVerdict, Cell
from solscope.model.units import duration_text
from solscope.render.view.numbers import ABSENT, clean


def rows(campaign: Campaign) -> Iterator[dict[str, str]]:
    """A row an arm; none where the campaign compares nothing."""
    for side, arm in (
        ("candidate", campaign.config.candidate),
        ("baseline", campaign.config.baseline),
    ):
        if arm is not None:
            cell = _cell(campaign, arm)
            trials = None if cell is None else cell.context.grounding.trials
            yield {
                "side": side,
                "name": clean(arm.name),
                "grades": arm.text(),
                "cell": arm.cell or (cell.id if cell is not None else ""),
                "took": ABSENT if cell is None else _took(cell, arm),
                "trials": ABSENT if trials is None else clean(trials.text()),
            }


def headline(campaign: Campaign, verdict: CampaignVerdict) -> str:
    """What the comparison says, where its gate passes; else empty."""
    candidate, baseline = campaign.config.candidate, campaign.config.baseline
    if candidate is None or baseline is None:
        return ""
    said = [r.reason for r in verdict.results if r.gate == "comparison" and r.passes]
    return clean(f"{candidate.name} against {baseline.name}: {said[0]}") if said else ""


def _cell(campaign: Campaign, arm: Arm) -> Cell | None:
    if arm.cell is not None:
        return campaign.cell(arm.cell)
    return campaign.cells[0] if len(campaign.cells) == 1 else None


def _took(cell: Cell, arm: Arm) -> str:
    """The kernel time of the arm as it was profiled, and in how many launches."""
    picked = [row.totals for row in cell.analysis.kernels if arm.picks(row.totals.key.name_full)]
    times = [totals.duration_ns for totals in picked]
    known = [time for time in times if time is not None]
    if not picked or len(known) < len(times):
        return ABSENT
    launches = sum(totals.launches for totals in picked)
    return f"{duration_text(sum(known))} in {launches} {'launch' if launches == 1 else 'launches'}"
