"""Words around numbers and names that several overviews share."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile

from solscope.render.view.numbers import shorten

_WORD = re.compile(r"\w\w")


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the plural where it is not one.

    >>> counted(1, "kernel"), counted(12345, "copy"), counted(0, "launch"), counted(2, "replay")
    ('1 kernel', '12,345 copies', '0 launches', '2 replays')
    """
    return f"{count:,} {noun if count == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith("ch") else f"{noun}s"


def hanging(text: str, width: int) -> list[str]:
    """A line under a heading: indented by two, and by four where it goes on."""
    return textwrap.wrap(
        text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )


def repeated(texts: Iterable[str]) -> list[str]:
    """Each text once, with how often it came.

    >>> repeated(["B200", "B200", "T4"])
    ['2 x B200', 'T4']
    """
    return [text if count == 1 else f"{count} x {text}" for text, count in Counter(texts).items()]


def told_apart(names: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Short names of (short, full) pairs; where different kernels have one short name, each with
    the part of its full name that the others do not share.

    >>> told_apart([("add", "void add<4, int>(T1)"), ("add", "void add<4, half>(T1)")], 30)
    ['add …int…', 'add …half…']
    >>> told_apart([("add", "void add<4, int>(T1)")], 30)
    ['add']
    """
    fulls: dict[str, set[str]] = {}
    for short, full in names:
        fulls.setdefault(short, set()).add(full)
    return [shorten(_told(short, full, fulls[short]), width) for short, full in names]


def _told(short: str, full: str, others: Collection[str]) -> str:
    if len(others) == 1:
        return short
    begin = _shared(others)
    while begin and _WORD.fullmatch(full[begin - 1 : begin + 1]):
        begin -= 1  # a word is shown whole
    end = _shared([other[begin:][::-1] for other in others])
    while end and _WORD.fullmatch(full[len(full) - end - 1 : len(full) - end + 1]):
        end -= 1
    own = full[begin : len(full) - end]
    return f"{short} …{own}…" if own else short


def _shared(texts: Iterable[str]) -> int:
    """How many characters all of the texts begin with."""
    return sum(1 for _ in takewhile(lambda marks: len(set(marks)) == 1, zip(*texts, strict=False)))
