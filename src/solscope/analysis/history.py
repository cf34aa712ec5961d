"""The lake's rows in, levers over all campaigns and kernels that got slower out.

A kernel is compared with its fastest earlier capture of the same launch shape, model, parallelism
and workload. Only what was measured under the same conditions counts as slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from solscope.model.campaign import Frontier, Lever
from solscope.model.conditions import matched
from solscope.model.context import MeasurementContext
from solscope.model.history import Change, PastKernel, Standing

LEAST_CHANGE = 0.05
"""Below 5 % a mean of few launches says nothing. A convention."""

_SAME_QUESTION = ("identity.", "parallelism.", "workload.", "regime.")
"""Sections in which another value is another question, never a change of the answer."""


def slower(kernels: Iterable[PastKernel]) -> tuple[Change, ...]:
    """Kernels whose newest capture takes longer than an earlier one, worst first.

    Those that were not measured alike are among them, with what differs in ``unlike``. Without a
    time of capture or a launch shape a kernel has no history.
    """
    groups: dict[object, list[PastKernel]] = {}
    for kernel in kernels:
        if kernel.captured_at is not None and kernel.conditions.grid is not None:
            groups.setdefault(_question(kernel), []).append(kernel)
    found = [change for group in groups.values() if (change := _newest(group)) is not None]
    grown = [change for change in found if change.ratio > 1.0 + LEAST_CHANGE]
    return tuple(sorted(grown, key=lambda c: (bool(c.unlike), -c.ratio, c.after.place)))


def _question(kernel: PastKernel) -> object:
    how = kernel.conditions
    asked = tuple(
        value
        for name, value in kernel.context.values()
        if name.startswith(_SAME_QUESTION) and name != "identity.hardware"
    )
    return (how.chip, kernel.name_full, how.grid, how.block, how.device_ordinal, asked)


def _newest(group: Sequence[PastKernel]) -> Change | None:
    """The newest capture against the fastest earlier one, likes before unlikes."""
    ordered = sorted(group, key=lambda kernel: (kernel.captured_at or "", kernel.place))
    after, earlier = ordered[-1], [k for k in ordered if k.captured_at != ordered[-1].captured_at]
    if not earlier:
        return None
    changes = [_change(before, after) for before in earlier]
    return min(changes, key=lambda c: (bool(c.unlike), c.before.ns_per_launch))


def _change(before: PastKernel, after: PastKernel) -> Change:
    facts = tuple(matched(before.conditions, after.conditions))
    one, other = dict(before.context.values()), dict(after.context.values())
    unknown = [fact.name for fact in facts if fact.state == "unknown"]
    unknown += _gaps(before.context, after.context)
    return Change(
        before=before,
        after=after,
        ratio=after.ns_per_launch / before.ns_per_launch,
        unlike=tuple(fact for fact in facts if fact.state == "differs"),
        unknown=tuple(unknown),
        changed=tuple(
            f"{name} {one[name]} to {other[name]}"
            for name in before.context.differences(after.context)
            if one[name] is not None and other[name] is not None
        ),
    )


def _gaps(one: MeasurementContext, other: MeasurementContext) -> list[str]:
    """What neither or only one side states, a section of which nothing is known as one."""
    gaps = dict.fromkeys((*one.gaps(), *other.gaps()))
    return [name for name in gaps if not name.removeprefix("all of ").startswith("grounding")]


def standings(frontiers: Mapping[str, Frontier]) -> tuple[Standing, ...]:
    """Levers of all campaigns (by slug), the same lever of several ones together, best first.

    Two levers are the same where they change the same kernel for the same reason.
    """
    open_: dict[str, list[tuple[str, Lever]]] = {}
    refuted: dict[str, list[tuple[str, str]]] = {}
    for slug, frontier in frontiers.items():
        for lever in frontier.open:
            key = _key(lever.id) if lever.kernel is not None else f"{slug}:{lever.id}"
            open_.setdefault(key, []).append((slug, lever))
        for finding in frontier.refuted:
            refuted.setdefault(_key(finding.id), []).append((slug, finding.why or ""))
    found = [
        Standing(open=tuple(sorted(levers, key=_rank)), refuted=tuple(refuted.get(key, ())))
        for key, levers in open_.items()
    ]
    return tuple(sorted(found, key=lambda standing: _rank(standing.open[0])))


def _key(lever_id: str) -> str:
    """A lever's id without its cell, which says where it was seen."""
    return lever_id.partition(":")[2] or lever_id


def _rank(found: tuple[str, Lever]) -> tuple[bool, float, float, str, str]:
    slug, lever = found
    return (lever.score is None, -(lever.score or 0.0), -(lever.share or 0.0), slug, lever.id)
