"""What two measurements of kernels must share to be like with like: the one list of it.

``compare`` asks it of two kernels, the gates of two arms, ``next`` of two captures in the lake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from solscope.model.report import Dim3

CLOCK_TOLERANCE = 0.02
"""Clocks that ncu locked to base wander by well under 1 %; boost clocks by several percent."""

State = Literal["same", "differs", "unknown"]


SHAPE = "launch shape"
CONDITIONS = (
    "chip",
    "device",
    "tool",
    "tool version",
    "clock control",
    "SM clock",
    "DRAM clock",
    "cache control",
    "replay mode",
    "set of metrics",
    "kind of result",
    SHAPE,
)
"""Their names, in the order in which pages show them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFact:
    """One condition of measurement on both sides, as text with its unit.

    ``a`` and ``b`` are ``None`` where it is not known, and then the state is ``unknown``.
    """

    name: str
    a: str | None
    b: str | None
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How something was measured. ``None`` is not known, and never the same as anything.

    Clocks are in Hz; ``metric_set`` is the digest of the names of the metrics collected;
    ``cache_control`` is ncu's word.
    """

    chip: str | None = None
    device_ordinal: int | None = None
    tool: str | None = None
    tool_version: str | None = None
    clock_control: str | None = None
    sm_clock_hz: float | None = None
    dram_clock_hz: float | None = None
    cache_control: str | None = None
    replay_mode: str | None = None
    metric_count: int | None = None
    metric_set: str | None = None
    kind: str | None = None
    grid: Dim3 | None = None
    block: Dim3 | None = None


def matched(a: Conditions, b: Conditions, *, same_problem: bool = False) -> Iterator[ContextFact]:
    """Every condition that makes two measurements of a kernel unlike.

    ``same_problem`` leaves the launch shape out: it is then part of the change.
    """
    return matched_sets((a,), (b,), same_problem=same_problem)


def matched_sets(
    a: Sequence[Conditions], b: Sequence[Conditions], *, same_problem: bool = False
) -> Iterator[ContextFact]:
    """The same for two sides of several kernels each, at least one.

    A condition is the same where the kernels of both sides show the same values of it; what one
    kernel does not tell is unknown.
    """
    for name in CONDITIONS:
        if name in _CLOCKS:
            hz = _CLOCKS[name]
            yield _clock(name, [hz(one) for one in a], [hz(one) for one in b])
        elif not (same_problem and name == SHAPE):
            word = _WORDS[name]
            yield _said(name, _all(map(word, a)), _all(map(word, b)))


def shape(side: Conditions) -> str | None:
    """A launch shape in words, such as ``132x1x1 of 128x1x1``."""
    if side.grid is None or side.block is None:
        return None
    return " of ".join("x".join(map(str, size)) for size in (side.grid, side.block))


def _cache(side: Conditions) -> str | None:
    control = side.cache_control
    return None if control is None else _CACHES.get(control, control)


def _ordinal(side: Conditions) -> str | None:
    return None if side.device_ordinal is None else f"GPU {side.device_ordinal}"


def _metrics(side: Conditions) -> str | None:
    if side.metric_set is None:
        return None
    return f"{side.metric_count} metrics ({side.metric_set[:8]})"


_CACHES = {"all": "all (cold: flushed before each pass)", "none": "none (warm)"}
_CLOCKS: Mapping[str, Callable[[Conditions], float | None]] = {
    "SM clock": lambda side: side.sm_clock_hz,
    "DRAM clock": lambda side: side.dram_clock_hz,
}
_WORDS: Mapping[str, Callable[[Conditions], str | None]] = {
    "chip": lambda side: side.chip,
    "device": _ordinal,
    "tool": lambda side: side.tool,
    "tool version": lambda side: side.tool_version,
    "clock control": lambda side: side.clock_control,
    "cache control": _cache,
    "replay mode": lambda side: side.replay_mode,
    # Sets of other metrics need other passes, and the passes are what a launch is timed in.
    "set of metrics": _metrics,
    "kind of result": lambda side: side.kind,
    SHAPE: shape,
}


def _said(name: str, a: str | None, b: str | None) -> ContextFact:
    if a is None or b is None:
        return ContextFact(name=name, a=a, b=b, state="unknown")
    return ContextFact(name=name, a=a, b=b, state="same" if a == b else "differs")


def _all(values: Iterable[str | None]) -> str | None:
    found = list(values)
    known = sorted({value for value in found if value is not None})
    return None if None in found else " and ".join(known)


def _clock(name: str, a: Sequence[float | None], b: Sequence[float | None]) -> ContextFact:
    """Slowest against slowest, fastest against fastest."""
    left, right = ([hz for hz in side if hz is not None] for side in (a, b))
    if len(left) < len(a) or len(right) < len(b):
        return ContextFact(name=name, a=_range(left), b=_range(right), state="unknown")
    ends = ((min(left), min(right)), (max(left), max(right)))
    near = all(abs(x - y) <= CLOCK_TOLERANCE * max(x, y) for x, y in ends)
    state: State = "same" if near else "differs"
    return ContextFact(name=name, a=_range(left), b=_range(right), state=state)


def _range(hz: Sequence[float]) -> str | None:
    if not hz:
        return None
    low, high = (f"{end / 1e9:.3f}" for end in (min(hz), max(hz)))
    return f"{low} GHz" if low == high else f"{low} to {high} GHz"
