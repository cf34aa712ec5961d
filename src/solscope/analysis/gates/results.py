"""How a gate says what it found; and shares of kernel time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from solscope.model.campaign import GateResult, Standing
from solscope.model.verdict import KernelVerdict

DECIDING_SHARE = 0.5
"""Of the kernel time: what a cell or an arm is judged by. A convention."""


def passed(gate: str, reason: str, where: str) -> GateResult:
    """The check holds."""
    return GateResult(gate=gate, standing=Standing.PASS, reason=reason, where=where)


def draft(gate: str, reason: str, where: str, promote: str) -> GateResult:
    """Not proven; ``promote`` says what would prove it."""
    return GateResult(
        gate=gate, standing=Standing.DRAFT, reason=reason, where=where, promote=promote
    )


def refuted(gate: str, reason: str, where: str, promote: str) -> GateResult:
    """The evidence speaks against it."""
    return GateResult(
        gate=gate, standing=Standing.REFUTED, reason=reason, where=where, promote=promote
    )


def matching(rows: Sequence[KernelVerdict], pattern: str | None) -> tuple[KernelVerdict, ...]:
    """Rows whose full name the pattern finds; all where there is none."""
    if pattern is None:
        return tuple(rows)
    wanted = re.compile(pattern)
    return tuple(row for row in rows if wanted.search(row.totals.key.name_full))


def time_share(rows: Sequence[KernelVerdict], holds: Callable[[KernelVerdict], bool]) -> float:
    """The share of the kernel time in rows of which it holds; by count where no time is known."""
    times = [row.totals.duration_ns for row in rows]
    weights = [t or 0.0 for t in times] if any(times) else [1.0] * len(rows)
    total = sum(weights)
    return (
        sum(w for row, w in zip(rows, weights, strict=True) if holds(row)) / total if total else 0.0
    )


def things(number: int, noun: str) -> str:
    """A count with its noun, such as ``1 kernel``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
