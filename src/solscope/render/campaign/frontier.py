"""Levers in words: for the terminal and for ``HANDOFF.md``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from solscope.model.campaign import Campaign, Frontier, Lever
from solscope.render.view import numbers
from solscope.render.view.numbers import ABSENT, clean

MOST_LEVERS = 20
LONGEST = 400
_FRONTIER = "solscope.frontier/1"


def win(lever: Lever) -> str:
    """The most that a lever wins; below its kernel's share where that alone is known."""
    if lever.max_win is not None:
        return numbers.fraction(lever.max_win)
    return ABSENT if lever.share is None else f"< {numbers.fraction(lever.share)}"


def terminal(found: Sequence[tuple[Campaign, Frontier]], *, width: int) -> str:
    """Every campaign's levers in one ranking."""
    several = len(found) > 1
    rows = [(c.slug, lever) for c, f in found for lever in f.open]
    rows.sort(key=lambda r: (r[1].score is None, -(r[1].score or 0.0), -(r[1].share or 0.0)))
    lines: list[str] = []
    for rank, (slug, lever) in enumerate(rows[:MOST_LEVERS], start=1):
        lines += _lever(rank, slug if several else "", lever, max(width, 60))
    if len(rows) > MOST_LEVERS:
        lines.append(f"and {len(rows) - MOST_LEVERS} smaller levers: --format json lists all")
    if note := _of_unlike_wholes([lever for _slug, lever in rows]):
        lines += wrapped(note, "", max(width, 60))
    lines += [
        line
        for campaign, frontier in found
        for line in _closed(campaign, frontier, max(width, 60), several=several)
    ]
    return "\n".join(lines)


def _of_unlike_wholes(levers: Sequence[Lever]) -> str:
    """What a reader must know where wins are shares of different times; else empty."""
    bases = {lever.basis for lever in levers if lever.max_win is not None}
    if len(bases) < 2:
        return ""
    return (
        "wins are shares of different times, so their order is rough: state end_to_end_share in "
        "config.yaml to make them all shares of end-to-end time"
    )


def _lever(rank: int, slug: str, lever: Lever, width: int) -> Iterator[str]:
    head = f"{rank:>2}  wins at most {win(lever):>8}  cost {lever.cost or ABSENT:<8} "
    where = f"{slug}: " if slug else ""
    where += f"{lever.cell}: " if lever.cell else ""
    status = "" if lever.status.value == "not done" else f" [{lever.status.value}]"
    what = numbers.shorten(clean(lever.what), LONGEST)
    yield from wrapped(f"{where}{what}{status}", head, width)
    notes = (
        f"because {clean(lever.rests_on)}",
        f"of {lever.basis}; {lever.confidence}",
        f"proved by {clean(lever.gate) or ABSENT}",
    )
    for note in notes:
        yield from wrapped(note, "    ", width)


def _closed(campaign: Campaign, frontier: Frontier, width: int, *, several: bool) -> Iterator[str]:
    name = f"{campaign.slug}: " if several else ""
    if not frontier.open:
        wall = campaign.config.wall
        yield f"{name}no lever is open; " + (f"the wall: {wall}" if wall else "no wall documented")
    for finding in frontier.refuted:
        yield from wrapped(
            f"{name}{clean(finding.title)}: {clean(finding.why or '')}", "refuted  ", width
        )


def wrapped(text: str, head: str, width: int) -> list[str]:
    """Text after a head, folded below itself."""
    return textwrap.wrap(
        head + text,
        width,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def handoff(campaign: Campaign, frontier: Frontier, tier: str) -> str:
    """Our part of ``HANDOFF.md``, as Markdown."""
    return "\n".join(_handoff(campaign, frontier, tier))


def _handoff(campaign: Campaign, frontier: Frontier, tier: str) -> Iterator[str]:
    yield f"Tier: {tier}. Cells: {', '.join(c.id for c in campaign.cells) or 'none'}."
    yield ""
    yield "## Frontier"
    yield ""
    stated = campaign.config.next_lever
    if stated is not None:
        what, unlock, gate = (
            _plain(said).rstrip(".") for said in (stated.what, stated.unlock, stated.gate)
        )
        yield f"Next, as stated: {what}. Unlocks: {unlock}."
        yield f"Gate: {gate}."
        yield ""
    if frontier.open:
        yield "| # | wins at most | of | cost | lever | rests on | gate |"
        yield "|--:|--:|---|---|---|---|---|"
        for rank, lever in enumerate(frontier.open[:MOST_LEVERS], start=1):
            what = f"{lever.cell}: {lever.what}" if lever.cell else lever.what
            cells = (lever.basis, lever.cost or ABSENT, what, lever.rests_on, lever.gate)
            yield f"| {rank} | {win(lever)} | {' | '.join(_plain(c) for c in cells)} |"
        if len(frontier.open) > MOST_LEVERS:
            yield ""
            left = len(frontier.open) - MOST_LEVERS
            yield f"And {left} smaller levers: `solscope next --format json` lists all."
        if note := _of_unlike_wholes(frontier.open):
            yield ""
            yield f"{note[0].upper()}{note[1:]}."
    else:
        wall = campaign.config.wall
        yield "No lever is open. " + (
            f"The wall: {_plain(wall)}" if wall else "No wall documented."
        )
    yield ""
    yield "## Refuted"
    yield ""
    for finding in frontier.refuted:
        yield f"- {_plain(finding.title)}: {_plain(finding.why or '')}"
    if not frontier.refuted:
        yield "None."
    if frontier.done:
        yield ""
        yield "## Done"
        yield ""
        yield from (f"- {_plain(finding.title)}" for finding in frontier.done)


def _plain(text: str) -> str:
    """Text that cannot end a cell of a table or begin markup."""
    flat = " ".join(clean(text).split())
    for mark in "\\|<>*_`[]":
        flat = flat.replace(mark, f"\\{mark}")
    return flat


def document(found: Sequence[tuple[Campaign, Frontier]]) -> dict[str, Any]:
    """The levers as plain values, campaign by campaign."""
    return {
        "schema": _FRONTIER,
        "campaigns": [
            {
                "campaign": campaign.slug,
                "wall": campaign.config.wall,
                "open": [lever_values(lever) for lever in frontier.open],
                "refuted": [{"id": f.id, "title": f.title, "why": f.why} for f in frontier.refuted],
                "done": [{"id": f.id, "title": f.title} for f in frontier.done],
            }
            for campaign, frontier in found
        ],
    }


def lever_values(lever: Lever) -> dict[str, Any]:
    """A lever as plain values; ``max_win`` and ``share`` are shares of ``basis``."""
    return {
        "id": lever.id,
        "what": lever.what,
        "max_win": lever.max_win,
        "share": lever.share,
        "basis": lever.basis,
        "confidence": lever.confidence,
        "cost": lever.cost or None,
        "score": lever.score,
        "gate": lever.gate or None,
        "rests_on": lever.rests_on,
        "status": lever.status.value,
        "cell": lever.cell,
        "kernel": lever.kernel,
    }
