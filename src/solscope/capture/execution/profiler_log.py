"""What ncu says while it runs: kernels and passes done, complaints that end a capture.

Lines of the server stand between and even inside those of ncu, so that only its own marks count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BEGUN = re.compile(r'==PROF== Profiling "(?P<name>[^"]*)"[^:\n]*: 0%')
_PASSES = re.compile(r"100% - (?P<passes>\d+) pass(?:es)?")
_ERROR = re.compile(r"==ERROR== (?P<text>.*)")
_REPORT = re.compile(r"==PROF== Report: (?P<path>\S+)")
_THERE = re.compile(r"==PROF== Connected to process")
_GONE = re.compile(r"==PROF== Disconnected from process")
_NONE = "No kernels were profiled"
# The exit code of a server that was told to end says nothing of the capture.
_HARMLESS = re.compile(r"application returned an error code")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerLog:
    """A log as far as it goes. ``kernels`` counts launches whose passes are all done."""

    begun: tuple[str, ...] = ()
    passes: tuple[int, ...] = ()
    errors: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    has_connected: bool = False
    has_disconnected: bool = False
    has_none: bool = False

    @property
    def kernels(self) -> int:
        """Launches that were profiled to the end."""
        return len(self.passes)

    @property
    def now(self) -> str | None:
        """The kernel that is being replayed."""
        return self.begun[-1] if len(self.begun) > len(self.passes) else None


def read(text: str) -> ProfilerLog:
    """What a log says.

    >>> read('==PROF== Profiling "gemm" - 0: 0%....50%....100% - 8 passes').passes
    (8,)
    """
    errors = (found["text"].strip() for found in _ERROR.finditer(text))
    return ProfilerLog(
        begun=tuple(found["name"] for found in _BEGUN.finditer(text)),
        passes=tuple(int(found["passes"]) for found in _PASSES.finditer(text)),
        errors=tuple(error for error in errors if not _HARMLESS.search(error)),
        reports=tuple(found["path"] for found in _REPORT.finditer(text)),
        has_connected=bool(_THERE.search(text)),
        has_disconnected=bool(_GONE.search(text)),
        has_none=_NONE in text,
    )
