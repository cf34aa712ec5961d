"""One error tree. Every error says what is wrong, where, and what to do next.

``SolscopeError``
    ``UsageError``    exit 2   the request cannot be understood
    ``ReportError``   exit 3   a file cannot be read as a report
        ``UnknownUnit``
    ``ClusterError``  exit 4   Kubernetes or kubectl refused or failed
    ``CaptureError``  exit 5   a capture did not deliver; names its receipt
    ``LakeError``     exit 6   the lake cannot be read or written

Exit 1 is no error: the tool worked and the answer is no. Findings, issues and failed gates are
values and are never raised.
"""

from __future__ import annotations


class SolscopeError(Exception):
    """Base of all errors that the user can do something about.

    ``what`` is one sentence; ``where`` a path, a column, an object; ``hint`` the next step.
    """

    exit_code = 70

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = self.what if self.where is None else f"{self.where}: {self.what}"
        return text if self.hint is None else f"{text}\n  next: {self.hint}"


class UsageError(SolscopeError):
    """The request itself is wrong: an option, a name, a missing file argument."""

    exit_code = 2


class ReportError(SolscopeError):
    """A file cannot be read as what it claims to be. Not raised for a partial report."""

    exit_code = 3


class UnknownUnit(ReportError):
    """A number carries a unit that no table knows. Never guessed."""


class ClusterError(SolscopeError):
    """Kubernetes, or the user's kubectl, refused or failed."""

    exit_code = 4


class CaptureError(SolscopeError):
    """A capture did not deliver. ``receipt`` names the receipt of the step that failed."""

    exit_code = 5

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        receipt: str | None = None,
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.receipt = receipt


class LakeError(SolscopeError):
    """The lake cannot be read or written."""

    exit_code = 6
