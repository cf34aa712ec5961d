"""What stands around a message, or cuts through it: records of log stores, prefixes, line wraps.

A log reaches the user through Docker, journald, Loki or `kubectl logs --prefix --timestamps`, and
a terminal may have broken its lines at its width. The message inside is the same.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

from solscope.capture.diagnosis import nesting
from solscope.capture.diagnosis.redaction import without_ansi

MOST_LINES_OF_A_MESSAGE = 8
LONGEST_PART_BYTES = 1 << 9

COMPLAINT = re.compile(r"^\s*={1,2}\s?(ERROR|WARNING)\s?={1,2}\s*(.*)$", re.IGNORECASE)

_MARKER = re.compile(r"={1,2}\s?(ERROR|WARNING|PROF|LOG)\s?={1,2}", re.IGNORECASE)
_OWN = re.compile(r"^\s*={1,2}\s?(ERROR|WARNING|PROF)\s?={1,2}", re.IGNORECASE)
# The field that carries the line: Docker, journald, Loki and structured loggers, Cloud Logging.
_RECORD = re.compile(r'"(?:log|MESSAGE|message|msg|line|textPayload)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_PREFIX = re.compile(
    r"""^\s*(?:(?:
      \[pod/[^\]\s]+\]                                            # kubectl logs --prefix
    | \[?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]?      # --timestamps, loggers
      (?:\s+std(?:out|err)\s+[FP])?                               # the CRI's own files
    | [A-Z][a-z]{2}\s+\d+\s[\d:]{8}\s\S+\s[^:\s]+:                # syslog, journalctl
    | \[(?:rank|default)\d+\]:                                    # torchrun
    | \([\w ]+\spid=\d+[^)]*\)                                    # vLLM, Ray
    | \[\d+,\d+\](?:<std\w+>)?:                                   # mpirun --tag-output
    | \d+:                                                        # srun --label
    | [\w.-]+\s+\|                                                # docker compose
    )\s*)+""",
    re.VERBOSE,
)


def is_record(text: str) -> bool:
    """Whether a text is one record of a log store rather than a document of its own."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        found = nesting.decoded(text)
    except ValueError:
        return False
    carries = any(isinstance(found.get(key), str) for key in ("log", "MESSAGE"))
    holds_a_line = any(_MARKER.search(value) for value in found.values() if isinstance(value, str))
    return "apiVersion" not in found and (carries or holds_a_line)


def without_prefix(line: str) -> str:
    """The line without the time, pod, rank or host that was put before it."""
    return _PREFIX.sub("", line)


def segments(line: str) -> Iterator[str]:
    """A line as the messages that share it: taken out of a record, split at carriage returns, at
    escaped line ends and where a profiler's prefix begins in the middle."""
    if line.lstrip().startswith("{"):
        line = _unpacked(line)
    if not {"\r", "\n", "\\"} & set(line) and line.count("==", 2) <= 1:
        yield line.rstrip()
        return
    for part in re.split(r"\r|\n|\\n(?=.?={1,2}\w)|\\r\\n", line):
        starts = [hit.start() for hit in _MARKER.finditer(part)]
        cuts = sorted({0, *starts, len(part)})
        for begin, end in itertools.pairwise(cuts):
            if part[begin:end].strip():
                yield part[begin:end].rstrip()


def _unpacked(line: str) -> str:
    """The messages of a record: its texts that hold a profiler's line, else the usual field."""
    try:
        texts = [text for text in _texts(nesting.decoded(line)) if _MARKER.search(text)]
    except ValueError:  # cut, or something behind it
        texts = []
    if not texts:
        hit = _RECORD.search(line)
        if hit is None:
            return line
        try:
            texts = [json.loads(f'"{hit.group(1)}"')]
        except ValueError:
            return line
    return without_ansi("\n".join(texts))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def is_own(line: str) -> bool:
    """Whether ncu itself began this line."""
    return _OWN.match(line) is not None


def rejoined(line: str, block: bytes, start: int) -> Iterator[tuple[str, int]]:
    """(the line and what follows it from ``start`` on, without any blank; the bytes that were
    taken), longer and longer: candidates for a message that was broken at a terminal's width.

    Blanks are left out because a break may stand in a word or between two.
    """
    text, position = "", start
    for _ in range(MOST_LINES_OF_A_MESSAGE):
        end = block.find(b"\n", position, position + LONGEST_PART_BYTES)
        raw = block[position : end if end >= 0 else position + LONGEST_PART_BYTES]
        more = raw.decode("utf-8", "replace")
        if not more.strip() or _MARKER.search(more):
            return
        text, position = (text or squeezed(line)) + squeezed(more), position + len(raw) + 1
        yield text, position - start


def squeezed(text: str) -> str:
    """The text without blanks."""
    return re.sub(r"\s+", "", text)
