"""What can be made to go wrong, by rules that are matched against requests."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

KINDS = ("cut", "delay", "status", "refuse-upgrade", "lose-watch", "drop")


@dataclass
class Fault:
    """One rule. It acts on the first ``times`` requests that match, after ``skip`` of them.

    ``cut``: the connection is closed after ``after_bytes`` of the answer. ``delay``: the answer
    waits ``seconds``. ``status``: the answer is ``code``. ``refuse-upgrade``: a stream's
    upgrade is answered with ``code``. ``lose-watch``: running and new watches end. ``drop``:
    the connection is closed without an answer.
    """

    kind: str
    path: str = ""
    method: str = ""
    query: str = ""
    times: int = 1
    skip: int = 0
    after_bytes: int = 0
    seconds: float = 0.0
    code: int = 500

    def matches(self, method: str, url: str) -> bool:
        """Whether the rule is about this request (``path``, ``query``: regular expressions)."""
        path, _, query = url.partition("?")
        return (
            (not self.method or self.method == method)
            and re.search(self.path, path) is not None
            and re.search(self.query, query) is not None
        )


@dataclass
class Faults:
    """The rules in force, and a count of what they did."""

    rules: list[Fault] = field(default_factory=list)
    hits: list[tuple[str, str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    lost_watch: threading.Event = field(default_factory=threading.Event)

    def add(self, kind: str, **options: Any) -> Fault:
        """Put a rule in force. Raises ValueError for an unknown kind."""
        if kind not in KINDS:
            raise ValueError(f"no fault {kind!r}; one of {', '.join(KINDS)}")
        rule = Fault(kind, **options)
        with self.lock:
            self.rules.append(rule)
            if kind == "lose-watch":
                self.lost_watch.set()
                self.lost_watch = threading.Event()
        return rule

    def clear(self) -> None:
        """Take all rules back."""
        with self.lock:
            self.rules.clear()

    def take(self, method: str, url: str) -> list[Fault]:
        """The rules that act on this request; each is used up by one."""
        acting: list[Fault] = []
        with self.lock:
            for rule in self.rules:
                if rule.times <= 0 or not rule.matches(method, url):
                    continue
                if rule.skip > 0:
                    rule.skip -= 1
                    continue
                rule.times -= 1
                acting.append(rule)
                self.hits.append((rule.kind, method, url))
        return acting


class CutWriter:
    """Lets ``limit`` bytes through, then calls ``cut`` and raises ConnectionResetError."""

    def __init__(
        self, write: Callable[[bytes], object], limit: int, cut: Callable[[], None]
    ) -> None:
        self._write, self._left, self._cut = write, limit, cut

    def __call__(self, data: bytes) -> None:
        """Write as much as is still allowed."""
        allowed = data[: self._left]
        if allowed:
            self._write(allowed)
        self._left -= len(allowed)
        if self._left <= 0:
            self._cut()
            raise ConnectionResetError("cut by a fault rule")
