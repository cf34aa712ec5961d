"""Whether the work can pay: Amdahl's bound, and a budget that says the GPU is not the limit."""

from __future__ import annotations

from collections.abc import Iterator

from solscope.capture.planning.question import Question
from solscope.errors import UsageError
from solscope.model.finding import Finding, Severity
from solscope.model.plan import Level, Prize

_HOST_BOUND = "host-bound"
_ELSEWHERE = {"comm-bound": "communication", "copy-bound": "copies"}


def of_share(share: float, min_win: float) -> Prize:
    """The most that perfect kernels could win.

    >>> of_share(0.14, 0.02).max_speedup
    1.1628

    Raises UsageError for a share or a threshold outside 0 to 1.
    """
    for name, value in (("--share", share), ("--min-win", min_win)):
        if not 0 <= value < 1:
            raise UsageError(
                f"{value:g} is no share of the whole", where=name, hint="0.14 means 14 %"
            )
    return Prize(share=share, max_win=share, max_speedup=round(1 / (1 - share), 4), min_win=min_win)


def findings(question: Question, prize: Prize | None) -> Iterator[Finding]:
    """Refusals of work that cannot pay."""
    if prize is not None and prize.max_win < prize.min_win:
        yield Finding(
            code="plan-win-too-small",
            severity=Severity.BLOCKS,
            where="--share",
            fact=(
                f"the kernels take {prize.share:.1%} of end-to-end time: if they took none, the "
                f"whole would win {prize.max_win:.1%} ({prize.max_speedup:.3f}x), below the "
                f"{prize.min_win:.1%} asked for"
            ),
            remedy="profile what has the larger share, or lower --min-win",
        )
    verdict = question.facts.budget_verdict or ""
    if verdict in _ELSEWHERE:
        yield Finding(
            code="plan-bound-elsewhere",
            severity=Severity.WARNING,
            where="--budget",
            fact=f"the budget says {verdict}: {_ELSEWHERE[verdict]}, not kernels, decide the step",
            remedy="take the kernels' share of the step (--share), which bounds the win",
        )
    if verdict == _HOST_BOUND and question.is_decode:
        is_cheap = question.level is Level.TIME
        yield Finding(
            code="plan-host-bound",
            severity=Severity.WARNING if is_cheap else Severity.BLOCKS,
            where="--budget",
            fact=(
                f"the decode budget says {verdict}: the GPU waits for the host, so no kernel's "
                "speed of light decides the latency of a token"
            ),
            remedy=(
                "close the host gap first (CUDA graphs, batching, fewer launches); for prefill "
                "or throughput work say --tier prefill"
            ),
        )
