"""Lines of tools that no template knows, by the words of a complaint: shown where nothing else is.

They decide nothing; they spare the user the search for the line that matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from solscope.capture.diagnosis import framing

MOST = 5
LONGEST_LINE_BYTES = 1 << 12

_NEEDLES = (b"error", b"fatal", b"exception", b"panic", b"failed", b"denied", b"refused")
_WORDS = re.compile(
    r"\b\w*(?:error|exception)\w*\s*[:(\[]|^\W*(?:error|fatal|panic)\b|\b(?:fatal|panic)\b\s*:"
    r"|\b(?:failed\w*|denied|refused)\b",
    re.IGNORECASE,
)
_QUIET = re.compile(r"\b(?:INFO|DEBUG|TRACE)\b")


def first_of(block: bytes, low: bytes, number: int, room: int) -> Iterator[tuple[int, str]]:
    """(line number, line) of the first ``room`` complaints of a block that begins at ``number``;
    ``low`` is the block in lower case."""
    position, taken = 0, 0
    while taken < room:
        found = [at for needle in _NEEDLES if (at := low.find(needle, position)) >= 0]
        if not found:
            return
        start = low.rfind(b"\n", 0, min(found)) + 1
        end = low.find(b"\n", min(found))
        end = len(low) if end < 0 else end
        number += block.count(b"\n", position, start)
        raw = block[start : min(end, start + LONGEST_LINE_BYTES)]
        for line in framing.segments(raw.decode("utf-8", "replace")):
            if _WORDS.search(line) and not _QUIET.search(line) and taken < room:
                taken += 1
                yield number, line
        position = end
