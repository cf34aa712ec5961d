"""Two sides of kernels in, pairs with their differences out.

A difference is computed only where no condition of measurement is known to differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from solscope.model.comparison import (
    Change,
    ComparedKernel,
    ComparedReport,
    Comparison,
    KernelPair,
    MatchedBy,
)
from solscope.model.conditions import matched

QUANTITIES: Mapping[str, str] = {
    "duration_ns": "ns",
    "flop_count": "FLOP",
    "dram_bytes": "B",
    "dram_read_bytes": "B",
    "dram_write_bytes": "B",
    "l2_bytes": "B",
    "arithmetic_intensity": "FLOP/B",
    "flop_per_s": "FLOP/s",
    "dram_bytes_per_s": "B/s",
    "speed_of_light_profiled": "fraction",
    "speed_of_light_datasheet": "fraction",
    "sm_busy_pct": "%",
    "dram_pct": "%",
    "tensor_pipe_pct": "%",
    "achieved_occupancy_pct": "%",
    "theoretical_occupancy_pct": "%",
    "registers_per_thread": "registers",
    "smem_per_block_bytes": "B",
    "waves_per_sm": "waves",
}
"""What is compared, and its unit. Amounts are per launch."""

_POINTS = ("%", "fraction")


def compare(
    a: Sequence[ComparedKernel],
    b: Sequence[ComparedKernel],
    *,
    given: Sequence[tuple[str, str]] = (),
    same_problem: bool = False,
) -> Comparison:
    """The comparison of two sides. ``given`` pairs short names of a with short names of b;
    ``same_problem`` says that launch shapes may differ because the kernel was changed."""
    matched, rest_a, rest_b = match(a, b, given)
    matched.sort(key=lambda pair: -(pair[0].quantities.get("duration_ns", 0.0) * pair[0].launches))
    return Comparison(
        a=_reports(a),
        b=_reports(b),
        pairs=tuple(_pair(x, y, how, same_problem) for x, y, how in matched),
        only_in_a=tuple(rest_a),
        only_in_b=tuple(rest_b),
    )


def _reports(side: Sequence[ComparedKernel]) -> tuple[ComparedReport, ...]:
    return tuple(dict.fromkeys(kernel.report for kernel in side))


Matched = list[tuple[ComparedKernel, ComparedKernel, MatchedBy]]
_Key = Callable[[ComparedKernel], object]

_STAGES: tuple[tuple[_Key, MatchedBy], ...] = (
    (lambda k: (k.name_full, k.kind, k.grid, k.block, k.device_ordinal), "name and launch shape"),
    (lambda k: (k.name_full, k.kind, k.grid, k.block), "name and launch shape"),
    (lambda k: (k.name_full, k.kind, k.device_ordinal), "full name"),
    (lambda k: (k.name_full, k.kind), "full name"),
    (lambda k: (k.name, k.kind), "short name"),
)


def match(
    a: Sequence[ComparedKernel],
    b: Sequence[ComparedKernel],
    given: Sequence[tuple[str, str]] = (),
) -> tuple[Matched, list[ComparedKernel], list[ComparedKernel]]:
    """Pairs, the strictest agreement first, and what is left of each side.

    A key pairs only where both sides have it as often: which of several belongs to which would
    be a guess. Equals pair by their time.
    """
    left, right, pairs = list(a), list(b), Matched()
    wanted = {new: old for old, new in given}
    if given:
        _stage(pairs, left, right, _given_key(set(wanted.values()), {}), "given", wanted)
    for key, how in _STAGES:
        _stage(pairs, left, right, key, how)
    if len(a) == len(b) == 1 and left:
        pairs.append((left.pop(), right.pop(), "only kernels"))
    return pairs, left, right


def _given_key(names: set[str], renamed: Mapping[str, str]) -> _Key:
    def key(kernel: ComparedKernel) -> object:
        name = renamed.get(kernel.name, kernel.name)
        return name if name in names else None

    return key


def _stage(
    pairs: Matched,
    left: list[ComparedKernel],
    right: list[ComparedKernel],
    key: _Key,
    how: MatchedBy,
    renamed: Mapping[str, str] | None = None,
) -> None:
    key_b = key if renamed is None else _given_key(set(renamed.values()), renamed)
    groups_a, groups_b = _grouped(left, key), _grouped(right, key_b)
    for value, members in groups_a.items():
        others = groups_b.get(value, [])
        if len(members) != len(others) and how != "given":
            continue
        # Pairs asked for: the longest launches first, until one side has no more.
        for one, other in zip(_by_time(members), _by_time(others), strict=False):
            pairs.append((one, other, how))
            left.remove(one)
            right.remove(other)


def _by_time(side: Sequence[ComparedKernel]) -> list[ComparedKernel]:
    return sorted(side, key=lambda kernel: -kernel.quantities.get("duration_ns", 0.0))


def _grouped(side: Sequence[ComparedKernel], key: _Key) -> dict[object, list[ComparedKernel]]:
    groups: dict[object, list[ComparedKernel]] = {}
    for kernel in side:
        if (value := key(kernel)) is not None:
            groups.setdefault(value, []).append(kernel)
    return groups


def _pair(a: ComparedKernel, b: ComparedKernel, how: MatchedBy, same_problem: bool) -> KernelPair:
    context = tuple(matched(a.conditions, b.conditions, same_problem=same_problem))
    unlike = [fact.name for fact in context if fact.state == "differs"]
    why_not = f"not alike: {', '.join(unlike)}" if unlike else None
    return KernelPair(
        a=a,
        b=b,
        matched_by=how,
        context=context,
        changes=tuple(_changes(a, b, why_not)),
        stalls=tuple(_stalls(a, b, why_not)),
        notes=tuple(_notes(a, b, alike=why_not is None)),
    )


def _changes(a: ComparedKernel, b: ComparedKernel, why_not: str | None) -> Iterator[Change]:
    for quantity, unit in QUANTITIES.items():
        x, y = a.quantities.get(quantity), b.quantities.get(quantity)
        if x is None and y is None:
            continue
        reason = _unmeasured(quantity, a, b) or why_not or _other_ceiling(quantity, a, b)
        yield _change(quantity, unit, x, y, reason)


def _change(
    quantity: str, unit: str, a: float | None, b: float | None, why_not: str | None
) -> Change:
    if a is None or b is None or why_not is not None:
        return Change(quantity=quantity, unit=unit, a=a, b=b, why_not=why_not)
    ratio = b / a if a and unit not in _POINTS else None
    return Change(quantity=quantity, unit=unit, a=a, b=b, ratio=ratio, difference=b - a)


def _unmeasured(quantity: str, a: ComparedKernel, b: ComparedKernel) -> str | None:
    for side, kernel in (("a", a), ("b", b)):
        if quantity not in kernel.quantities:
            reason = kernel.absences.get(quantity)
            return f"not measured in {side}" + (f": {reason}" if reason else "")
    return None


def _other_ceiling(quantity: str, a: ComparedKernel, b: ComparedKernel) -> str | None:
    one, other = a.ceilings.get(quantity), b.ceilings.get(quantity)
    if one == other:
        return None
    return f"another ceiling binds: {one} in a, {other} in b"


def _stalls(a: ComparedKernel, b: ComparedKernel, why_not: str | None) -> Iterator[Change]:
    if not a.stalls or not b.stalls:
        return
    if a.stalls_are_sampled != b.stalls_are_sampled:
        why_not = why_not or "one side's shares are sampled, the other's counted"
    reasons = dict.fromkeys((*a.stalls, *b.stalls))
    rows = [(r, a.stalls.get(r, 0.0), b.stalls.get(r, 0.0)) for r in reasons]
    for reason, x, y in sorted(rows, key=lambda row: -max(row[1], row[2])):
        yield _change(reason, "fraction", x, y, why_not)


def _notes(a: ComparedKernel, b: ComparedKernel, *, alike: bool) -> Iterator[str]:
    for side, kernel in (("a", a), ("b", b)):
        if not kernel.report.complete:
            yield f"the report of {side} is cut: launches after the cut are not in these numbers"
    if not alike:
        return
    if a.launches == 1 or b.launches == 1:
        yield (
            "one launch on a side: its scatter is not known, so a few percent of time prove nothing"
        )
    elif _overlap(a.duration_range_ns, b.duration_range_ns):
        yield "the launches of both sides overlap in time: the change is within their scatter"


def _overlap(a: tuple[float, float] | None, b: tuple[float, float] | None) -> bool:
    return a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]
