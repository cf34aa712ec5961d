"""A container's output, read on from where it was read before.

A server's log grows for as long as it runs, and it is asked for twice a second: only what is new
may cross the network. What was read stays, though the node rotates its files meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from solscope.capture.execution import pods
from solscope.cluster.port import Cluster


@dataclass(slots=True, kw_only=True)
class ContainerLog:
    """One container's log as far as it was read. Not safe for several threads."""

    cluster: Cluster
    namespace: str
    pod: str
    container: str
    _whole: list[str] = field(default_factory=list)
    _last_second: list[str] = field(default_factory=list)
    """The newest lines with their stamps. A request names a whole second, so that they come
    again."""
    _since: str | None = None

    def text(self) -> str:
        """Everything so far, what is new included. Raises ClusterError."""
        answer = pods.log(
            self.cluster, self.namespace, self.pod, self.container, since=self._since, stamped=True
        )
        # Only a line feed ends a line: progress bars are full of carriage returns. What follows
        # the last one has no end yet, and comes again, longer.
        *ended, begun = answer.split("\n")
        self._take(self._new([f"{line}\n" for line in ended]))
        return "".join([*self._whole, _plain(begun)])

    def _new(self, lines: list[str]) -> list[str]:
        known = len(self._last_second)
        if lines[:known] == self._last_second:
            return lines[known:]
        # The node has dropped the file that the known lines were in.
        newest = _stamp(self._last_second[-1])
        return [line for line in lines if _stamp(line) > newest]

    def _take(self, lines: list[str]) -> None:
        if not lines:
            return
        self._whole += [_plain(line) for line in lines]
        second = _second(lines[-1])
        known = self._last_second if second == self._since else []
        self._last_second = [*known, *(line for line in lines if _second(line) == second)]
        self._since = second


def _stamp(line: str) -> str:
    """A line's time, RFC 3339 with nanoseconds: such texts sort as their times do.

    Nanoseconds are written without trailing zeros, so that they are filled up first.
    """
    stamp = line.partition(" ")[0].removesuffix("Z")
    second, _, fraction = stamp.partition(".")
    return f"{second}.{fraction:0<9}"


def _second(line: str) -> str:
    return line.partition(" ")[0].partition(".")[0].removesuffix("Z") + "Z"


def _plain(line: str) -> str:
    return line.partition(" ")[2]
