"""The answer of a preflight: one way of capturing, a refusal, or the question that decides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from solscope.model.cluster import WorkloadSnapshot
from solscope.model.finding import Finding
from solscope.model.plan import Strategy

SCHEMA = "solscope.preflight/1"


class Answer(StrEnum):
    """Whether ncu can profile a copy of the workload."""

    POSSIBLE = "possible"
    REFUSED = "refused"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyVerdict:
    """One way of capturing and whether it is open here."""

    strategy: Strategy
    is_open: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What was found and what follows.

    ``line`` is the answer in one line; ``questions`` are what must be asked first (undetermined)
    or confirmed before the capture (possible), each with the command or the person to ask.
    """

    answer: Answer
    strategy: Strategy
    line: str
    questions: tuple[str, ...]
    strategies: tuple[StrategyVerdict, ...]
    findings: tuple[Finding, ...]
    snapshot: WorkloadSnapshot

    @property
    def exit_code(self) -> int:
        """0 where a capture is possible, else 1."""
        return 0 if self.answer is Answer.POSSIBLE else 1
