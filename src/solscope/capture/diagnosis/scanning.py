"""Bytes in, facts out: recognise the lines of any text, quickly and in little memory.

A block of a megabyte is searched for the literals of all templates; only lines that hold one are
decoded and matched, so that a log of a hundred megabytes takes seconds.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from solscope.capture.diagnosis import truncation
from solscope.capture.diagnosis.knowledge import Knowledge, Pattern, Template
from solscope.capture.diagnosis.redaction import quote
from solscope.model.diagnosis import LogFact, UnknownLine

BLOCK_BYTES = 1 << 20
SMALL_FILE_BYTES = 1 << 18
LONGEST_LINE_BYTES = 1 << 14
KEPT_PER_CODE = 60
KEPT_UNKNOWN = 20
MOST_UNKNOWN = 1000
"""Of a level. What comes after is told by its known templates only; unknown lines are no longer
read, so that a log of nothing but complaints takes no longer than any other."""

NEAR_ENOUGH = 0.4
OFTEN_ENOUGH = 64
MOST_SHAPES = 20_000

_TO_WORDS = bytes(c if (chr(c).isalnum() and c < 128) or c == 0x5F else 0x20 for c in range(256))

_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PREFIX = re.compile(r"={1,2}\s?(ERROR|WARNING|PROF|LOG)\s?={1,2}", re.IGNORECASE)
_COMPLAINT = re.compile(r"^\s*={1,2}\s?(ERROR|WARNING)\s?={1,2}\s*(.*)$", re.IGNORECASE)
_MARKERS = (b"==error==", b"==warning==")


class Readable(Protocol):
    """Anything that gives bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        ...


@dataclass(slots=True)
class Facts:
    """What was found, by code. Of each code the first ones that differ are kept, and the last;
    ``counts`` counts all."""

    by_code: dict[str, list[LogFact]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    last: dict[str, LogFact] = field(default_factory=dict)
    unknown: list[UnknownLine] = field(default_factory=list)
    last_order: dict[str, int] = field(default_factory=dict)
    order: int = 0
    seen: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)

    def add(
        self,
        code: str,
        where: str,
        text: str,
        fields: dict[str, str] | None = None,
        *,
        is_timed: bool = False,
    ) -> None:
        """Keep a fact. The text is redacted here, once."""
        fields = fields or {}
        self.order += 1
        self.counts[code] = self.counts.get(code, 0) + 1
        key = (code, tuple(fields.values()))
        kept = self.by_code.setdefault(code, [])
        fact = LogFact(
            code=code,
            where=where,
            text=text if key in self.seen or len(kept) >= KEPT_PER_CODE else quote(text),
            fields=fields,
            order=self.order,
            is_timed=is_timed,
        )
        self.last[code] = fact
        self.last_order[code] = self.order
        if key not in self.seen and len(kept) < KEPT_PER_CODE:
            self.seen.add(key)
            kept.append(fact)

    def count_again(self, fact: LogFact) -> None:
        """A further line like many before it: only its place in order and its number are kept."""
        self.order += 1
        self.counts[fact.code] += 1
        self.last[fact.code] = fact
        self.last_order[fact.code] = self.order

    def all(self, code: str) -> list[LogFact]:
        """The kept facts of a code, in reading order."""
        return self.by_code.get(code, [])

    def first(self, code: str) -> LogFact | None:
        """The first fact of a code."""
        found = self.by_code.get(code)
        return found[0] if found else None

    def value(self, code: str, name: str) -> str | None:
        """A field of the first fact of a code."""
        fact = self.first(code)
        return None if fact is None else fact.fields.get(name)


@dataclass(slots=True)
class _Shape:
    """A line without its digits: what it matched, and how often it was met."""

    facts: tuple[LogFact, ...] = ()
    times: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    template: Template
    pattern: Pattern
    unless: tuple[Pattern, ...]


class Scanner:
    """Recognises lines by the templates of a :class:`Knowledge`."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._by_anchor: dict[bytes, list[_Entry]] = {}
        self._anchors_by_word: dict[bytes, set[bytes]] = {}
        self._wordless: set[bytes] = set()
        self._by_file: list[_Entry] = []
        for template in knowledge.templates.values():
            patterns, unless = knowledge.patterns[template.id]
            for pattern in patterns:
                entry = _Entry(template, pattern, unless)
                if template.file:
                    self._by_file.append(entry)
                else:
                    anchor = pattern.anchor.encode()
                    self._by_anchor.setdefault(anchor, []).append(entry)
                    if pattern.word is None:
                        self._wordless.add(anchor)
                    else:
                        word = pattern.word.encode()
                        self._anchors_by_word.setdefault(word, set()).add(anchor)
        self._inner_words = {anchor: _inner_words(anchor) for anchor in self._by_anchor}
        self._shapes: dict[bytes, _Shape] = {}
        self._beginnings = [
            truncation.beginning_of(e.template, text, is_part=text in e.template.begins)
            for e in self._messages()
            for text in (e.pattern.text, *e.template.begins)
        ]

    def scan(self, stream: Readable, name: str, facts: Facts) -> int:
        """Add the facts of a stream; returns the number of lines. ``name`` is shown as given."""
        number = 1
        for block in _blocks(stream):
            self._scan_block(block, name, number, facts)
            number += block.count(b"\n")
        return number

    def scan_text(self, text: str, name: str, facts: Facts) -> None:
        """Add the facts of a small text, those told by the file's name included."""
        self._scan_block(text.encode("utf-8", "replace"), name, 1, facts)
        entries = [e for e in self._by_file if _is_named(name, e.template.file)]
        if not entries:
            return
        for number, line in enumerate(text.splitlines(), 1):
            self._match(line, entries, f"{name}:{number}", facts, keep_unknown=False)

    def scan_pairs(self, pairs: Iterable[tuple[str, str]], name: str, facts: Facts) -> None:
        """Add the facts of (path, ``key: value``) pairs of a structured file."""
        entries = [e for group in self._by_anchor.values() for e in group]
        entries += [e for e in self._by_file if _is_named(name, e.template.file)]
        for path, line in pairs:
            self._match(line, entries, f"{name}:{path}", facts, keep_unknown=False)

    def _scan_block(self, block: bytes, name: str, number: int, facts: Facts) -> None:
        if b"\x1b" in block:
            block = _ANSI.sub(b"", block)
        if b"\t" in block:
            block = block.replace(b"\t", b" ")
        low = block.lower()
        present = self._anchors_in(low)
        markers = [m for m in _MARKERS if m in low]
        enough = [m for m in markers if facts.counts.get(_unknown(m), 0) >= MOST_UNKNOWN]
        markers = [m for m in markers if m not in enough]
        if not present and not markers:
            return
        entries = [e for a in present for e in self._by_anchor[a]]
        position = 0
        for start, end in _lines_with(low, [*present, *markers]):
            number += block.count(b"\n", position, start)
            position = start
            raw = block[start : min(end, start + LONGEST_LINE_BYTES)]
            self._scan_line(raw, entries, name, number, facts)

    def _anchors_in(self, low: bytes) -> list[bytes]:
        """The anchors that a block holds: first by its words, which is cheap, then by search."""
        words = set(low.translate(_TO_WORDS).split())
        likely = set(self._wordless)
        for word in words & self._anchors_by_word.keys():
            likely |= self._anchors_by_word[word]
        return [a for a in likely if self._inner_words[a] <= words and a in low]

    def _scan_line(
        self, raw: bytes, entries: list[_Entry], name: str, number: int, facts: Facts
    ) -> None:
        """Match a line, or only count it where its shape (digits apart) was met often enough."""
        key = raw.translate(None, b"0123456789")
        shape = self._shapes.get(key)
        if shape is not None and shape.times >= OFTEN_ENOUGH:
            for fact in shape.facts:
                facts.count_again(fact)
            return
        line = raw.decode("utf-8", "replace")
        where = f"{name}:{number}"
        codes: list[str] = []
        for segment in _segments(line):
            codes += self._match(segment, entries, where, facts)
        if shape is None and len(self._shapes) < MOST_SHAPES and codes:
            shape = self._shapes[key] = _Shape()
        if shape is not None:
            shape.times += 1
            shape.facts = tuple(facts.last[code] for code in codes)

    def _match(
        self,
        line: str,
        entries: Iterable[_Entry],
        where: str,
        facts: Facts,
        *,
        keep_unknown: bool = True,
    ) -> Iterable[str]:
        """Add the facts of a line; the codes that it matched."""
        low = line.lower()
        known = False
        done: set[str] = set()
        for entry in entries:
            if entry.template.id in done or (
                entry.pattern.anchor not in low and not entry.template.file
            ):
                continue
            fields = entry.pattern.match(line)
            if fields is None or any(no.match(line) is not None for no in entry.unless):
                continue
            done.add(entry.template.id)
            known = known or entry.template.level != "fact"
            timed = entry.template.level != "fact"
            facts.add(entry.template.id, where, line, fields, is_timed=timed)
        if not known and keep_unknown:
            self._keep_unknown(line, where, facts)
        return done

    def _keep_unknown(self, line: str, where: str, facts: Facts) -> None:
        hit = _COMPLAINT.match(line)
        if hit is None or not hit.group(2).strip():
            return
        level, text = hit.group(1).lower(), hit.group(2).strip()
        if facts.counts.get(f"unknown-{level}", 0) >= MOST_UNKNOWN:
            return
        cut = truncation.candidates(text, self._beginnings)
        if len(cut) == 1 and cut[0].is_sure and cut[0].letters >= truncation.FEWEST_LETTERS:
            facts.add(cut[0].beginning.template.id, where, f"{line} …", {}, is_timed=True)
            return
        facts.order += 1
        shown = quote(line)
        if len(facts.unknown) < KEPT_UNKNOWN and all(u.text != shown for u in facts.unknown):
            nearest, likeness = self._nearest_to(text, cut)
            facts.unknown.append(
                UnknownLine(where=where, text=shown, nearest=nearest, likeness=likeness)
            )
        facts.add(f"unknown-{level}", where, line, {"text": quote(text)}, is_timed=True)

    def _messages(self) -> Iterator[_Entry]:
        for group in self._by_anchor.values():
            yield from (e for e in group if e.template.level != "fact")

    def _nearest_to(
        self, text: str, cut: Sequence[truncation.Candidate]
    ) -> tuple[str | None, float | None]:
        """The message that the text begins like, else the one that is most alike."""
        from difflib import SequenceMatcher

        best: tuple[float, str] = (0.0, "")
        if cut:
            best = (min(1.0, cut[0].letters / len(text)), cut[0].beginning.text)
            if cut[0].letters >= truncation.FEWEST_LETTERS:
                return best[1], round(best[0], 2)
        words = set(re.findall(r"\w{4,}", text.lower()))
        for entry in self._messages():
            shape = entry.pattern.text
            if not words & set(re.findall(r"\w{4,}", shape.lower())):
                continue
            ratio = SequenceMatcher(None, text.lower()[:200], shape.lower()).ratio()
            best = max(best, (ratio, shape))
        return (best[1], round(best[0], 2)) if best[0] >= NEAR_ENOUGH else (None, None)


def _inner_words(anchor: bytes) -> frozenset[bytes]:
    """The words of an anchor that stand between others, so that they are whole in any line."""
    words = anchor.translate(_TO_WORDS).split(b" ")
    return frozenset(word for word in words[1:-1] if word)


def _unknown(marker: bytes) -> str:
    """The code of complaints with this prefix that no template knows."""
    return f"unknown-{marker.strip(b'=').decode()}"


def _is_named(name: str, globs: tuple[str, ...]) -> bool:
    base = name.lower().replace("\\", "/").rsplit("/", 1)[-1]
    return any(fnmatch.fnmatch(base, glob) for glob in globs)


def _segments(line: str) -> Iterator[str]:
    """A line as the messages that share it: split at carriage returns, at escaped line ends and
    where a profiler's prefix begins in the middle."""
    if "\r" not in line and "\\" not in line and line.count("==", 2) <= 1:
        yield line.rstrip()
        return
    for part in re.split(r"\r|\\n(?=.?={1,2}\w)|\\r\\n", line):
        starts = [hit.start() for hit in _PREFIX.finditer(part)]
        cuts = sorted({0, *starts, len(part)})
        for begin, end in itertools.pairwise(cuts):
            if part[begin:end].strip():
                yield part[begin:end].rstrip()


def _lines_with(low: bytes, needles: list[bytes]) -> list[tuple[int, int]]:
    """Start and end of each line that holds one of the needles, in order."""
    lines: dict[int, int] = {}
    for needle in needles:
        position = low.find(needle)
        while position >= 0:
            start = low.rfind(b"\n", 0, position) + 1
            end = low.find(b"\n", position)
            end = len(low) if end < 0 else end
            lines[start] = end
            position = low.find(needle, end)
    return sorted(lines.items())


def _blocks(stream: Readable) -> Iterator[bytes]:
    """The stream in blocks that end at line ends (a line of several blocks is cut)."""
    rest = b""
    first = True
    codec: str | None = None
    while True:
        data = stream.read(BLOCK_BYTES)
        if first:
            codec = _wide_codec(data)
            first = False
        if not data:
            break
        if codec:
            data = data.decode(codec, "replace").encode("utf-8")
        data = rest + data
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) < 4 * BLOCK_BYTES:
            rest = data
            continue
        end = end or len(data)
        rest = data[end:]
        yield data[:end]
    if rest:
        yield rest


def _wide_codec(data: bytes) -> str | None:
    """UTF-16, as a Windows shell writes logs; told by its byte order mark."""
    if data.startswith(b"\xff\xfe"):
        return "utf-16-le"
    return "utf-16-be" if data.startswith(b"\xfe\xff") else None
