"""A log that is read on: every line once, in order, whatever the node repeats or has dropped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.cluster import FakeCluster

from solscope.capture.execution.container_log import ContainerLog


class Node(FakeCluster):
    """A node that keeps stamped lines and answers from the second that is asked for."""

    def __init__(self) -> None:
        super().__init__([])
        self.lines: list[tuple[str, str]] = []
        self.tail = ""
        self.sent = 0

    def write(self, stamp: str, text: str) -> None:
        self.lines.append((stamp, text))

    def raw(self, path: str) -> bytes:
        assert "timestamps=true" in path
        since = path.partition("sinceTime=")[2].removesuffix("Z")
        kept = [f"{s} {text}\n" for s, text in self.lines if s[:19] >= since]
        answer = "".join(kept) + self.tail
        self.sent += len(answer)
        return answer.encode()


def log_of(node: Node) -> ContainerLog:
    return ContainerLog(cluster=node, namespace="n", pod="p", container="c")


def stamp(moment: int) -> str:
    """A tenth of a second as a node writes it, without trailing zeros."""
    second, tenth = divmod(moment, 10)
    fraction = f".{tenth}" if tenth else ""
    return f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}{fraction}Z"


@given(st.lists(st.lists(st.integers(0, 7), max_size=6), max_size=12))
def test_every_line_comes_once_and_in_order(rounds: list[list[int]]) -> None:
    node = Node()
    log = log_of(node)
    moment, written = 0, ""
    for steps in rounds:
        for step in steps:
            moment += step
            line = f"line {len(node.lines)}"
            node.write(stamp(moment), line)
            written += f"{line}\n"
        assert log.text() == written
    assert log.text() == written


def test_what_was_read_is_not_sent_again() -> None:
    node = Node()
    log = log_of(node)
    for second in range(60):
        node.write(stamp(second * 10), "x" * 1000)
    log.text()
    sent = node.sent
    assert log.text().count("\n") == 60
    assert node.sent - sent < 1100


def test_a_line_without_an_end_is_shown_and_comes_whole_later() -> None:
    node = Node()
    log = log_of(node)
    node.write(stamp(1), "first\r50%")
    node.tail = f"{stamp(2)} begu"
    assert log.text() == "first\r50%\nbegu"
    node.tail = ""
    node.write(stamp(2), "begun")
    assert log.text() == "first\r50%\nbegun\n"


def test_lines_that_the_node_has_dropped_stay() -> None:
    node = Node()
    log = log_of(node)
    for moment in (1, 2, 3):
        node.write(stamp(moment), f"old {moment}")
    log.text()
    node.lines = [(stamp(4), "new")]
    assert log.text() == "old 1\nold 2\nold 3\nnew\n"
