"""A lake's history in words: levers over all campaigns, what was refuted, what got slower."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solscope.model.campaign import Frontier, Lever
from solscope.model.conditions import shape
from solscope.model.history import Change, PastKernel, Standing
from solscope.render.campaign.frontier import LONGEST, MOST_LEVERS, lever_values, win, wrapped
from solscope.render.view import numbers
from solscope.render.view.numbers import ABSENT, clean

MOST_CHANGES = 20
_INDENT = "    "


def terminal(
    standings: Sequence[Standing],
    frontiers: Mapping[str, Frontier],
    changes: Sequence[Change],
    *,
    width: int,
) -> str:
    """Levers best first, refuted ones with why, kernels that got slower."""
    wide = max(width, 60)
    lines = [f"levers of {numbers.things(len(frontiers), 'campaign')}"]
    for rank, standing in enumerate(standings[:MOST_LEVERS], start=1):
        lines += _standing(rank, standing, wide)
    if len(standings) > MOST_LEVERS:
        lines.append(f"and {len(standings) - MOST_LEVERS} smaller levers")
    if not standings:
        lines.append("  none is open")
    lines += ["", *_refuted(frontiers, wide), "", *_slower(changes, wide)]
    return "\n".join(lines)


def _standing(rank: int, standing: Standing, width: int) -> Iterator[str]:
    lever = standing.best
    head = f"{rank:>2}  wins at most {win(lever):>8}  cost {lever.cost or ABSENT:<8} "
    yield from wrapped(numbers.shorten(clean(lever.what), LONGEST), head, width)
    where = ", ".join(_open(slug, found) for slug, found in standing.open)
    notes = [f"open in {where}", f"because {clean(lever.rests_on)}"]
    notes += [f"of {lever.basis}; {lever.confidence}"]
    notes += [f"proved by {clean(lever.gate) or ABSENT}"]
    notes += [f"but refuted in {slug}: {clean(why)}" for slug, why in standing.refuted]
    for note in notes:
        yield from wrapped(note, _INDENT, width)


def _open(slug: str, lever: Lever) -> str:
    place = f"{slug}/{lever.cell}" if lever.cell else slug
    status = "" if lever.status.value == "not done" else f" [{lever.status.value}]"
    return f"{place} ({win(lever)}){status}"


def _refuted(frontiers: Mapping[str, Frontier], width: int) -> Iterator[str]:
    yield "refuted"
    found = [(slug, f) for slug, frontier in frontiers.items() for f in frontier.refuted]
    for slug, finding in found:
        yield from wrapped(
            f"{clean(finding.title)}: {clean(finding.why or '')}", f"  {slug}  ", width
        )
    if not found:
        yield "  none"


def _slower(changes: Sequence[Change], width: int) -> Iterator[str]:
    yield "slower than before"
    alike = [change for change in changes if not change.unlike]
    for notes, members in _by_notes(alike[:MOST_CHANGES]).items():
        for change in members:
            yield from _change(change, width)
        for note in notes:
            yield from wrapped(note, _INDENT, width)
    if len(alike) > MOST_CHANGES:
        yield f"  and {len(alike) - MOST_CHANGES} more"
    if not alike:
        yield "  no kernel that was measured alike twice"
    unlike = [change for change in changes if change.unlike]
    if unlike:
        yield ""
        yield "took longer, but was not measured alike: nothing is said of these"
        for change in unlike[:MOST_CHANGES]:
            facts = "; ".join(f"{f.name} {f.a} against {f.b}" for f in change.unlike)
            text = f"{_places(change)}: {facts}"
            yield from wrapped(text, f"  {clean(change.after.name)}  ", width)
        if len(unlike) > MOST_CHANGES:
            yield f"  and {len(unlike) - MOST_CHANGES} more"


def _by_notes(changes: Sequence[Change]) -> dict[tuple[str, ...], list[Change]]:
    """Changes of which the same is to be said stand together."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        groups.setdefault(tuple(_notes(change)), []).append(change)
    return groups


def _notes(change: Change) -> Iterator[str]:
    yield _places(change)
    if change.changed:
        yield f"changed: {clean(', '.join(change.changed))}"
    if change.is_draft:
        yield f"DRAFT, not known: {', '.join(change.unknown)}"


def _change(change: Change, width: int) -> list[str]:
    before, after = change.before, change.after
    text = (
        f"{numbers.duration(before.ns_per_launch)} to {numbers.duration(after.ns_per_launch)} "
        f"a launch, x{change.ratio:.2f}, {after.conditions.chip}, {shape(after.conditions)}"
    )
    return wrapped(text, f"  {clean(after.name)}  ", width)


def _places(change: Change) -> str:
    return " to ".join(
        f"{kernel.place} of {(kernel.captured_at or ABSENT)[:10]}"
        for kernel in (change.before, change.after)
    )


def document(standings: Sequence[Standing], changes: Sequence[Change]) -> dict[str, Any]:
    """The same as plain values. Times are ns a launch."""
    return {
        "levers": [
            {
                "open": [{"campaign": slug, **lever_values(lever)} for slug, lever in s.open],
                "refuted": [{"campaign": slug, "why": why} for slug, why in s.refuted],
            }
            for s in standings
        ],
        "slower": [_values(change) for change in changes],
    }


def _values(change: Change) -> dict[str, Any]:
    return {
        "kernel": change.after.name_full,
        "chip": change.after.conditions.chip,
        "ratio": change.ratio,
        "before": _side(change.before),
        "after": _side(change.after),
        "is_like_with_like": not change.unlike,
        "is_draft": change.is_draft,
        "unlike": [{"name": f.name, "before": f.a, "after": f.b} for f in change.unlike],
        "unknown": list(change.unknown),
        "changed": list(change.changed),
    }


def _side(kernel: PastKernel) -> dict[str, Any]:
    return {
        "campaign": kernel.campaign,
        "cell": kernel.cell,
        "captured_at": kernel.captured_at,
        "launches": kernel.launches,
        "ns_per_launch": kernel.ns_per_launch,
        "speed_of_light": kernel.speed_of_light,
    }
