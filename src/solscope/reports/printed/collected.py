"""Text out of a log's collector: marks before its lines cut off, several sources put apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
# What differs from line to line, and says nothing about the source.
_TIME = re.compile(
    r"\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}:\d{2,}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?"
    r"|\d{2}:\d{2}:\d{2,}(?:[.,]\d+)?|\b\d{9,}(?:\.\d+)?"
)


def without_marks(text: str, marks: Sequence[str]) -> str:
    """The text without what a collector of logs put before its lines: a time, a rank, a stream.

    ``marks`` stand before the headers of tables. Times and ranks differ from line to line in their
    digits alone; spaces at the end of a line may have been cut off. Where tables come of several
    ranks or pods, their lines may stand between each other: those of each are put together.
    """
    alike = re.compile(f"^(?:{'|'.join(map(_alike, dict.fromkeys(marks)))})", flags=re.MULTILINE)
    if len({_source(mark) for mark in marks}) == 1:
        return alike.sub("", text)
    return _apart(text, alike)


def _apart(text: str, alike: re.Pattern[str]) -> str:
    sources: dict[str, list[str]] = {}
    source = ""
    for line in _LINE.findall(text):
        found = alike.match(line)
        source = source if found is None else _source(found[0])
        sources.setdefault(source, []).append(line if found is None else line[found.end() :])
    # A last line that was cut stays the last, so that it is told as cut.
    sources[source] = sources.pop(source)
    return "".join(line for lines in sources.values() for line in lines)


def _source(mark: str) -> str:
    return _TIME.sub("", mark).rstrip()


def _alike(mark: str) -> str:
    bare = mark.rstrip(" ")
    return re.sub(r"\d+", r"\\d+", re.escape(bare)) + f" {{0,{len(mark) - len(bare)}}}"
