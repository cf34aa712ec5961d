"""What is said about inputs: findings, issues, absences. Values, never exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding or an issue matters."""

    INFO = "info"
    WARNING = "warning"
    BLOCKS = "blocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A quantity that is not known, why, and what to collect to know it.

    ``field`` is the name of the field that is ``None`` because of this. ``is_derived`` says that
    it is missing only because what it is made of is, which has an absence of its own.
    """

    field: str
    reason: str
    remedy: str | None = None
    is_derived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """A reader's complaint about a file that could be read, wholly or in part."""

    code: str
    severity: Severity
    what: str
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fact that bears on a decision, with its evidence and its remedy."""

    code: str
    severity: Severity
    where: str
    fact: str
    remedy: str
    evidence: tuple[str, ...] = ()

    @property
    def blocks(self) -> bool:
        """Whether nothing may go on while this finding stands."""
        return self.severity is Severity.BLOCKS
