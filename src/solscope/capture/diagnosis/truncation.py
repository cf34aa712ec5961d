"""Lines that end too early: which messages begin like this one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from solscope.capture.diagnosis.knowledge import PLACEHOLDER, Template

FEWEST_LETTERS = 16
"""Of a message's own text; with fewer, too many messages begin alike."""

_GLIMPSE = 6
_QUOTES = re.compile(r"\\?[\"'\u201c\u201d\u2018\u2019`]")
_OTHERWISE = -1 << 20
_ANYTHING = re.compile(r".*")
_VALUES = {
    "int": re.compile(r"[\d.,'\u00a0\u202f]*"),
    "hex": re.compile(r"[0-9a-fx]*"),
    "word": re.compile(r"[^\s,;()]*"),
    "version": re.compile(r"[\d.]*"),
    "quoted": re.compile(r"[^']*"),
}
"""What a value, or the beginning of one, may look like; other kinds may be anything."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A message's literals in order, each with the shape of the value that stands before it;
    ``None`` where none does. ``glimpse`` opens the first literal; ``is_part`` where the message
    goes on behind them."""

    template: Template
    text: str
    pieces: tuple[tuple[re.Pattern[str] | None, str], ...]
    glimpse: str
    is_part: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that may be meant; ``letters`` are those of its own text that were seen.

    ``is_sure`` unless the text ends in a value that may be anything: another message, then, that
    opens alike and goes on in its own words looks the same.
    """

    beginning: Beginning
    letters: int
    is_sure: bool


def beginning_of(template: Template, text: str, *, is_part: bool) -> Beginning:
    """A pattern (or the first words of a message) taken apart at its placeholders."""
    body = text.removeprefix("^").removesuffix("$")
    value = None if text.startswith("^") else _ANYTHING
    pieces: list[tuple[re.Pattern[str] | None, str]] = []
    position = 0
    for hit in PLACEHOLDER.finditer(body):
        pieces.append((value, _plain(body[position : hit.start()])))
        value, position = _VALUES.get(hit.group(2) or "", _ANYTHING), hit.end()
    pieces.append((value, _plain(body[position:])))
    first = next((piece for _, piece in pieces if piece), "")
    return Beginning(template, text, tuple(pieces), first[:_GLIMPSE], is_part)


def candidates(text: str, beginnings: Iterable[Beginning]) -> list[Candidate]:
    """The messages of which this text is the beginning, the best of each template; best first."""
    low = _plain(text.rstrip())
    best: dict[str, Candidate] = {}
    for one in beginnings:
        if one.glimpse not in low:
            continue
        (letters, is_sure), before = _letters(low, one), best.get(one.template.id)
        if letters >= _GLIMPSE and (before is None or letters > before.letters):
            best[one.template.id] = Candidate(one, letters, is_sure)
    return sorted(best.values(), key=lambda found: -found.letters)


def _letters(low: str, one: Beginning) -> tuple[int, bool]:
    """(letters of a message that the text holds before it ends, whether that is sure); below 1
    where the text goes on in another way, or is whole."""
    position = seen = 0
    for value, piece in one.pieces:
        start = position if value is None else low.find(piece, position)
        if start < 0 or not low.startswith(piece, start):
            more = _cut_within(low[position:], piece, value)
            return seen + more, more > 0 or value is not _ANYTHING
        if value is not None and not value.fullmatch(low[position:start]):
            return _OTHERWISE, False
        seen, position = seen + len(piece), start + len(piece)
        if position >= len(low):
            return seen, True
    return (seen, True) if one.is_part else (_OTHERWISE, False)


def _cut_within(rest: str, piece: str, value: re.Pattern[str] | None) -> int:
    """Letters of the piece at the end of the text; 0 where the value before it was cut."""
    if value is None:
        return len(rest) if piece.startswith(rest) else _OTHERWISE
    for length in range(min(len(piece), len(rest)), -1, -1):
        if rest.endswith(piece[:length]) and value.fullmatch(rest[: len(rest) - length]):
            return length
    return _OTHERWISE


def _plain(text: str) -> str:
    """Lower case, one blank for many, one shape of quotes."""
    return re.sub(r"\s+", " ", _QUOTES.sub("'", text)).lower()
