"""Lines of tools that no template knows, by the words of a complaint: shown where nothing else is.

They decide nothing; they spare the user the search for the line that matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from solscope.capture.diagnosis import framing

MOST = 5
MOST_TRIES = 500
"""Of a block: lines that hold a needle and are looked at."""

LONGEST_LINE_BYTES = 1 << 12


@dataclass(frozen=True, slots=True)
class Tone:
    """Words of a complaint: ``needles`` are sought in a block, ``words`` must be in the line."""

    needles: tuple[bytes, ...]
    words: re.Pattern[str]


LOUD = Tone(
    (b"error", b"fatal", b"exception", b"panic", b"failed", b"denied", b"refused"),
    re.compile(
        r"\b\w*(?:error|exception)\w*\s*[:(\[]|^\W*(?:error|fatal|panic)\b|\b(?:fatal|panic)\b\s*:"
        r"|\b(?:failed\w*|denied|refused)\b",
        re.IGNORECASE,
    ),
)
SOFT = Tone(
    (
        b"warn",
        b"unable",
        b"cannot",
        b"could not",
        b"couldn't",
        b"not found",
        b"invalid",
        b"killed",
        b"aborted",
        b"timed out",
        b"unsupported",
        b"not supported",
        b"mismatch",
        b"unknown",
        b"missing",
        b"not available",
        b"retrying",
        b"return code",
    ),
    re.compile(
        r"\w*warn(?:ing)?\b|\b(?:unable|cannot|could(?: not|n't)|not found|invalid|killed|aborted"
        r"|timed out|unsupported|not supported|mismatch\w*|unknown|missing|not available|retrying"
        r"|return code)\b",
        re.IGNORECASE,
    ),
)
"""Shown where no line is loud."""

_QUIET = re.compile(r"\b(?:INFO|DEBUG|TRACE)\b")


def first_of(
    block: bytes, low: bytes, number: int, room: int, tone: Tone = LOUD
) -> Iterator[tuple[int, str]]:
    """(line number, line) of the first ``room`` complaints of a block that begins at ``number``;
    ``low`` is the block in lower case."""
    if room <= 0:
        return
    position, taken = 0, 0
    places = {needle: low.find(needle) for needle in tone.needles}
    for _ in range(MOST_TRIES):
        # Sought again only once it was passed: an absent one would cost the whole block each time.
        behind = [needle for needle, at in places.items() if 0 <= at < position]
        places.update((needle, low.find(needle, position)) for needle in behind)
        found = [at for at in places.values() if at >= 0]
        if not found or taken >= room:
            return
        start = low.rfind(b"\n", 0, min(found)) + 1
        end = low.find(b"\n", min(found))
        end = len(low) if end < 0 else end
        number += block.count(b"\n", position, start)
        raw = block[start : min(end, start + LONGEST_LINE_BYTES)]
        for line in framing.segments(raw.decode("utf-8", "replace")):
            if tone.words.search(line) and not _QUIET.search(line) and taken < room:
                taken += 1
                yield number, line
        position = end
