"""What a flow is handed besides its request: terminal, progress, time. No globals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

T = TypeVar("T")


def _no_progress(items: Iterable[T], _label: str) -> Iterator[T]:
    return iter(items)


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything outside a request that a flow may depend on.

    ``width`` is the terminal's in columns; ``progress`` wraps an iterable that may take long;
    ``now`` gives an aware UTC time.
    """

    width: int = 100
    color: bool = False
    progress: Callable[[Iterable[str], str], Iterator[str]] = field(default=_no_progress)
    now: Callable[[], datetime] = field(default=_utc_now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a verb gives back: the value, the text for people, the exit code, files written.

    ``exit_code`` 0 means yes, 1 means that the tool worked and the answer is no.
    """

    value: object
    text: str
    exit_code: int = 0
    files: tuple[str, ...] = ()
