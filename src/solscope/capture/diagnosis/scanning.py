"""Bytes in, facts out: recognise the lines of any text, quickly and in little memory.

A block of a megabyte is searched for the literals of all templates; only lines that hold one are
decoded and matched, so that a log of a hundred megabytes takes seconds.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from solscope.capture.diagnosis import blocks, complaints, framing, truncation
from solscope.capture.diagnosis.blocks import Readable
from solscope.capture.diagnosis.knowledge import PLACEHOLDER, Knowledge, Pattern, Template
from solscope.capture.diagnosis.redaction import quote
from solscope.model.diagnosis import LogFact, UnknownLine

SMALL_FILE_BYTES = 1 << 18
LONGEST_LINE_BYTES = 1 << 14
KEPT_PER_CODE = 60
KEPT_UNKNOWN = 20
MOST_UNKNOWN = 1000
"""Of a level. What comes after is told by its known templates only; unknown lines are no longer
read, so that a log of nothing but complaints takes no longer than any other."""

NEAR_ENOUGH = 0.5
OFTEN_ENOUGH = 64
MOST_SHAPES = 20_000

_TO_WORDS = bytes(c if (chr(c).isalnum() and c < 128) or c == 0x5F else 0x20 for c in range(256))

_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")
_MARKERS = (b"==error==", b"==warning==")


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
    complaints: list[UnknownLine] = field(default_factory=list)
    murmurs: list[UnknownLine] = field(default_factory=list)

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
        self._facts_only = {t.id for t in knowledge.templates.values() if t.level == "fact"}
        self._shapes: dict[bytes, _Shape] = {}
        # A status name that may stand anywhere behind the prefix would be found in any next line.
        self._across_lines = [
            (framing.squeezed(e.pattern.anchor), e)
            for e in self._messages()
            if not e.pattern.text.startswith("==")
        ]
        self._beginnings = [
            truncation.beginning_of(e.template, text, is_part=text in e.template.begins)
            for e in self._messages()
            for text in (e.pattern.text, *e.template.begins)
        ]

    def scan(self, stream: Readable, name: str, facts: Facts) -> int:
        """Add the facts of a stream; returns the number of lines. ``name`` is shown as given."""
        number = 1
        for block in blocks.blocks_of(stream):
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
            self._match(line, entries, f"{name}:{number}", facts)

    def scan_pairs(self, pairs: Iterable[tuple[str, str]], name: str, facts: Facts) -> None:
        """Add the facts of (path, ``key: value``) pairs of a structured file."""
        entries = [e for group in self._by_anchor.values() for e in group]
        entries += [e for e in self._by_file if _is_named(name, e.template.file)]
        for path, line in pairs:
            for segment in framing.segments(line):
                where = f"{name}:{path}"
                if self._match(segment, entries, where, facts) <= self._facts_only:
                    self._keep_unknown(segment, where, facts)

    def _scan_block(self, block: bytes, name: str, number: int, facts: Facts) -> None:
        if b"\x1b" in block:
            block = _ANSI.sub(b"", block)
        if b"\t" in block:
            block = block.replace(b"\t", b" ")
        low = block.lower()
        self._keep_complaints(block, low, name, number, facts)
        present = self._anchors_in(low)
        markers = [m for m in _MARKERS if m in low]
        enough = [m for m in markers if facts.counts.get(_unknown(m), 0) >= MOST_UNKNOWN]
        markers = [m for m in markers if m not in enough]
        if not present and not markers:
            return
        entries = [e for a in present for e in self._by_anchor[a]]
        position = told = 0
        for start, end in blocks.lines_with(low, [*present, *markers]):
            if start < told:
                continue  # the rest of a message that began above
            number += block.count(b"\n", position, start)
            position = start
            raw = block[start : min(end, start + LONGEST_LINE_BYTES)]
            told = end + 1
            told += self._scan_line(raw, entries, f"{name}:{number}", facts, block, end + 1)

    def _keep_complaints(
        self, block: bytes, low: bytes, name: str, number: int, facts: Facts
    ) -> None:
        """Lines that look like complaints, whoever wrote them; soft ones while nothing is known."""
        for kept, tone in (
            (facts.complaints, complaints.LOUD),
            (facts.murmurs, complaints.SOFT),
        ):
            if tone is complaints.SOFT and (facts.complaints or facts.counts):
                continue
            room = complaints.MOST - len(kept)
            for found, line in complaints.first_of(block, low, number, room, tone):
                kept.append(UnknownLine(where=f"{name}:{found}", text=quote(line)))

    def _anchors_in(self, low: bytes) -> list[bytes]:
        """The anchors that a block holds: first by its words, which is cheap, then by search."""
        words = set(low.translate(_TO_WORDS).split())
        likely = set(self._wordless)
        for word in words & self._anchors_by_word.keys():
            likely |= self._anchors_by_word[word]
        # Sorted, so that two messages of one line come in the same order in every run.
        return sorted(a for a in likely if self._inner_words[a] <= words and a in low)

    def _scan_line(
        self,
        raw: bytes,
        entries: list[_Entry],
        where: str,
        facts: Facts,
        block: bytes,
        next_line: int,
    ) -> int:
        """Match a line, or only count it where its shape (digits apart) was met often enough.
        Returns the bytes of the next lines that were the rest of its message."""
        key = raw.translate(None, b"0123456789")
        shape = self._shapes.get(key)
        if shape is not None and shape.times >= OFTEN_ENOUGH:
            for fact in shape.facts:
                facts.count_again(fact)
            return 0
        codes: list[str] = []
        taken = 0
        for segment in framing.segments(raw.decode("utf-8", "replace")):
            found = self._match(segment, entries, where, facts)
            if found <= self._facts_only and framing.is_own(segment):
                if not block.startswith(b"==", next_line):
                    taken = self._match_wrapped(segment, block, next_line, where, facts)
                if not taken:
                    self._keep_unknown(segment, where, facts)
            codes += found
        if shape is None and len(self._shapes) < MOST_SHAPES and codes and not taken:
            shape = self._shapes[key] = _Shape()
        if shape is not None:
            shape.times += 1
            shape.facts = tuple(facts.last[code] for code in codes)
        return taken

    def _match(self, line: str, entries: Iterable[_Entry], where: str, facts: Facts) -> set[str]:
        """Add the facts of a line; the codes that it matched."""
        low = line.lower()
        bare: str | None = None
        done: set[str] = set()
        for entry in entries:
            if entry.template.id in done or (
                entry.pattern.anchor not in low and not entry.template.file
            ):
                continue
            fields = entry.pattern.match(line)
            if fields is None and entry.pattern.is_pinned:
                bare = framing.without_prefix(line) if bare is None else bare
                fields = entry.pattern.match(bare)
            if fields is None or any(no.match(line) is not None for no in entry.unless):
                continue
            done.add(entry.template.id)
            timed = entry.template.level != "fact"
            facts.add(entry.template.id, where, line, fields, is_timed=timed)
        return done

    def _match_wrapped(self, line: str, block: bytes, start: int, where: str, facts: Facts) -> int:
        """Add the message that a line begins and the next lines end; the bytes of those, or 0."""
        seam = len(framing.squeezed(line))
        for text, taken in framing.rejoined(line, block, start):
            low = text.lower()
            for anchor, entry in self._across_lines:
                if anchor not in low:
                    continue
                fields = entry.pattern.match_across(text, seam)
                if fields is None or any(no.is_within(text) for no in entry.unless):
                    continue
                shown = f"{line} {block[start : start + taken - 1].decode('utf-8', 'replace')}"
                facts.add(entry.template.id, where, shown, fields, is_timed=True)
                return taken
        return 0

    def _keep_unknown(self, line: str, where: str, facts: Facts) -> None:
        hit = framing.COMPLAINT.match(line)
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
            near = PLACEHOLDER.sub("…", nearest) if nearest else None
            facts.unknown.append(
                UnknownLine(where=where, text=shown, nearest=near, likeness=likeness)
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
