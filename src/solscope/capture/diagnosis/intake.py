"""Evidence in, facts, commands and figures out: what each thing is decides how it is read."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from pathlib import Path

from solscope.capture.diagnosis import command, figures, framing, manifest
from solscope.capture.diagnosis.blocks import Readable
from solscope.capture.diagnosis.redaction import redact
from solscope.capture.diagnosis.scanning import SMALL_FILE_BYTES, Facts, Scanner

SM_COUNT = "device__attribute_multiprocessor_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One thing to read: a file, a stream, a text or a command. ``name`` is how it is shown."""

    name: str
    path: Path | None = None
    text: str | None = None
    stream: Readable | None = None
    is_command: bool = False


@dataclass(slots=True)
class Intake:
    """Reads one thing after the other; what was found so far stands in its fields."""

    scanner: Scanner
    facts: Facts = field(default_factory=Facts)
    commands: list[command.Command] = field(default_factory=list)
    figures: list[figures.Figure] = field(default_factory=list)

    def take(self, item: Evidence) -> None:
        """Read one thing. Raises :class:`OSError` where a file cannot be read."""
        name = redact(item.name)
        if item.is_command:
            one = command.parse(item.text or "", name)
            self.commands.append(one)
            pairs = [(key, f"{key}={value}") for key, value in one.environment.items()]
            self.scanner.scan_pairs(pairs, name, self.facts)
        elif item.text is not None:
            self._take_text(item.text, name)
        elif item.stream is not None:
            self._take_stream(item.stream, name)
        else:
            assert item.path is not None
            with item.path.open("rb") as stream:
                self._take_stream(stream, name)

    def _take_stream(self, stream: Readable, name: str) -> None:
        head = stream.read(SMALL_FILE_BYTES)
        if len(head) < SMALL_FILE_BYTES and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
            rest = stream.read()
            if not rest:
                self._take_text(head.decode("utf-8", "replace"), name)
                return
            head += rest
        self.scanner.scan(_Rejoined(head, stream), name, self.facts)

    def _take_text(self, text: str, name: str) -> None:
        if not text.strip():
            self.facts.add("empty-file", name, "(no bytes)", {"file": name})
            return
        self.commands += command.find(text, name)
        documents = None if framing.is_record(text) else manifest.parse(text, name)
        if documents is None:
            self.scanner.scan_text(text, name, self.facts)
            self._take_table(text, name)
            return
        manifest.state(documents, name, self.facts)
        figures.state_byte_model(documents, name, self.facts)
        self.figures += figures.of_documents(documents, name)
        pairs = [pair for document in documents for pair in manifest.pairs(document)]
        self.scanner.scan_pairs(pairs[: manifest.MOST_PAIRS], name, self.facts)

    def _take_table(self, text: str, name: str) -> None:
        """The columns of a table, and a file that should hold a table and holds only a log."""
        if not name.lower().endswith(".csv"):
            return
        facts = self.facts
        lines = [line for line in text.splitlines() if line.strip()]
        if lines and all(re.match(r"\s*==(PROF|WARNING|ERROR|LOG)==", line) for line in lines):
            facts.add("log-without-table", f"{name}:1", lines[0], {"file": name})
            return
        header = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
        if header is None:
            self.figures += figures.of_table(lines, name)
            return
        rows = list(csv.reader(lines[header : header + 3]))
        facts.add("table-columns", f"{name}:{header + 1}", "", {"names": "\n".join(rows[0])})
        if len(rows) > 2 and SM_COUNT in rows[0]:
            place = rows[0].index(SM_COUNT)
            if place < len(rows[2]) and rows[2][place].isdigit():
                facts.add(
                    "sm-count",
                    f"{name}:{header + 3}",
                    f"{SM_COUNT} {rows[2][place]}",
                    {"count": rows[2][place]},
                )


class _Rejoined:
    """A stream with a part of it, already read, put back in front."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head = io.BytesIO(head)
        self._rest = rest

    def read(self, size: int = -1, /) -> bytes:
        """The put-back part first, then the rest."""
        return self._head.read(size) or self._rest.read(size)
