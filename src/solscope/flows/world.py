"""What a flow is handed besides its request: terminal, progress, time. No globals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from solscope.cluster.port import Cluster

T = TypeVar("T")


def _no_progress(items: Iterable[T], _label: str) -> Iterator[T]:
    return iter(items)


def _silent(_text: str) -> None:
    """Progress that nobody reads."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _kubectl(context: str | None, namespace: str | None) -> Cluster:
    from solscope.cluster.kubectl import Kubectl

    return Kubectl(context=context, namespace=namespace)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything outside a request that a flow may depend on.

    ``width`` is the terminal's in columns; ``progress`` wraps an iterable that may take long;
    ``say`` tells how far something long is; ``now`` gives an aware UTC time. ``cluster`` opens
    the cluster of a context and a namespace, the user's current ones where they are ``None``.
    """

    width: int = 100
    color: bool = False
    progress: Callable[[Iterable[str], str], Iterator[str]] = field(default=_no_progress)
    say: Callable[[str], None] = field(default=_silent)
    now: Callable[[], datetime] = field(default=_utc_now)
    cluster: Callable[[str | None, str | None], Cluster] = field(default=_kubectl)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a verb gives back: the value, the text for people, the exit code, files written.

    ``exit_code`` 0 means yes, 1 means that the tool worked and the answer is no.
    """

    value: object
    text: str
    exit_code: int = 0
    files: tuple[str, ...] = ()
