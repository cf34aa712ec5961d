"""What the gates said, in words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from solscope.model.campaign import CampaignVerdict, GateResult, Standing
from solscope.render.view.numbers import clean

_MARK = {Standing.PASS: "pass", Standing.DRAFT: "DRAFT", Standing.REFUTED: "FAIL"}


def table(verdict: CampaignVerdict, *, width: int) -> str:
    """A line a gate; what does not pass says what would make it."""
    return "\n".join(_lines(verdict, max(width, 60)))


def summary(verdict: CampaignVerdict) -> str:
    """One sentence."""
    failed = [r for r in verdict.results if not r.passes]
    if not failed:
        return f"{verdict.slug}: VERDICT, all {len(verdict.results)} checks pass"
    refuted = sum(r.standing is Standing.REFUTED for r in failed)
    more = f", {refuted} refuted by the evidence" if refuted else ""
    return (
        f"{verdict.slug}: DRAFT, {len(failed)} of {len(verdict.results)} checks do not pass{more}"
    )


def _lines(verdict: CampaignVerdict, width: int) -> Iterator[str]:
    yield summary(verdict)
    yield ""
    for result in verdict.results:
        yield from _result(result, width)


def _result(result: GateResult, width: int) -> Iterator[str]:
    head = f"{_MARK[result.standing]:<5}  {result.gate:<11}  "
    said = f"{clean(result.where)}: {clean(result.reason)}"
    yield from textwrap.wrap(
        head + said, width, subsequent_indent=" " * len(head), break_on_hyphens=False
    )
    if result.promote:
        yield from textwrap.wrap(
            f"to pass: {clean(result.promote)}",
            width,
            initial_indent=" " * len(head),
            subsequent_indent=" " * (len(head) + 9),
            break_on_hyphens=False,
        )
