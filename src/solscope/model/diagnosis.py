"""Why a capture failed: facts read from logs, causes with evidence, the checks that decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

DIAGNOSIS_SCHEMA = "solscope.diagnosis/1"


class Outcome(StrEnum):
    """What a diagnosis comes to: a cause, no fault at all, or a question that is still open."""

    CAUSE = "cause"
    WELL = "well"
    UNDECIDED = "undecided"


class Role(StrEnum):
    """How a cause stands: proven by the facts, still a suspicion, advice about a command that
    has not run, or a line that looks bad and is not."""

    CAUSE = "cause"
    SUSPECT = "suspect"
    ADVICE = "advice"
    WELL = "well"
    HARMLESS = "harmless"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFact:
    """One thing that a line of evidence says.

    ``where`` is ``file:line``; ``text`` the line, redacted and cut to a readable length;
    ``fields`` the values of the template's placeholders; ``order`` the place in reading order;
    ``is_timed`` whether that order is an order in time (a log line) or not (a stated fact).
    """

    code: str
    where: str
    text: str
    fields: Mapping[str, str] = field(default_factory=dict)
    order: int = 0
    is_timed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The cheapest thing to look at next, as a command or a place, and what its answer decides."""

    do: str
    decides: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One cause (or suspicion, or harmless line) with its evidence, reason and remedies."""

    code: str
    role: Role
    title: str
    why: tuple[str, ...]
    remedies: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    evidence: tuple[LogFact, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownLine:
    """A complaint of the profiler that no template knows; ``nearest`` is the closest template's
    text, and ``likeness`` how close it is (0 to 1). Where no line was known at all: a line of
    another tool that looks like a complaint."""

    where: str
    text: str
    nearest: str | None = None
    likeness: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The answer. ``causes`` are ranked: the first one in time that explains the failure leads.

    ``harmless`` lines look bad and are not; ``consequences`` counts lines that only follow from
    a cause ("No kernels were profiled" is always one of them); ``checks`` decide what is open.
    """

    outcome: Outcome
    code: str
    summary: str
    causes: tuple[Cause, ...] = ()
    harmless: tuple[Cause, ...] = ()
    checks: tuple[Check, ...] = ()
    consequences: tuple[tuple[str, int], ...] = ()
    unknown: tuple[UnknownLine, ...] = ()
    read: tuple[str, ...] = ()
