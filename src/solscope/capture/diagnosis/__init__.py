"""Evidence in, ranked causes out: lines -> templates -> facts -> rules -> causes.

Templates and rules are data (``data/lines``, ``data/causes``); the engine knows no message.
Never runs a profiler, never asks a cluster.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from solscope.capture.diagnosis import command, manifest, reporting
from solscope.capture.diagnosis.derivation import derive
from solscope.capture.diagnosis.judgement import Judge, conclude
from solscope.capture.diagnosis.knowledge import Knowledge, load
from solscope.capture.diagnosis.redaction import redact
from solscope.capture.diagnosis.scanning import SMALL_FILE_BYTES, Facts, Readable, Scanner
from solscope.model.diagnosis import Cause, Diagnosis
from solscope.model.report import Report

SM_COUNT = "device__attribute_multiprocessor_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One thing to read: a file, a stream, a text or a command. ``name`` is how it is shown."""

    name: str
    path: Path | None = None
    text: str | None = None
    stream: Readable | None = None
    is_command: bool = False


def diagnose(
    evidence: Sequence[Evidence],
    *,
    reports: Sequence[Report] = (),
    version: str | None = None,
    knowledge: Knowledge | None = None,
) -> Diagnosis:
    """Diagnose from texts and reports. ``version`` is ncu's release, where it is known.

    Raises :class:`OSError` where a file cannot be read.
    """
    knowledge = knowledge or load()
    facts = Facts()
    scanner = Scanner(knowledge)
    commands: list[command.Command] = []
    for item in evidence:
        commands += _take(item, scanner, facts)
    if version is not None:
        facts.add("ncu-version", "stated", f"ncu {version}", {"version": version})
    wanted = next((v for c in commands if (v := c.value("kernel-name"))), None)
    for report in reports:
        reporting.state(report, wanted, facts)
    causes = _judge(Judge(knowledge), commands, facts, facts.value("ncu-version", "version"))
    read = [e.name for e in evidence] + [r.provenance.path for r in reports]
    return conclude(causes, facts, knowledge, [redact(name) for name in read])


def _judge(
    judge: Judge, commands: list[command.Command], facts: Facts, version: str | None
) -> tuple[Cause, ...]:
    """One command belongs to the log; several are judged one by one, each with the log."""
    if len(commands) < 2:
        for only in commands:
            command.state(only, facts, version)
        derive(facts)
        return judge.causes(facts)
    found: dict[str, Cause] = {}
    for one in commands:
        own = _copy(facts)
        command.state(one, own, version)
        derive(own)
        for cause in judge.causes(own):
            found.setdefault(cause.code, cause)
    derive(facts)
    return tuple(sorted(found.values(), key=lambda c: list(_ORDER).index(c.role.value)))


_ORDER = ("cause", "suspect", "advice", "well", "harmless")


def _copy(facts: Facts) -> Facts:
    return Facts(
        by_code={code: list(kept) for code, kept in facts.by_code.items()},
        counts=dict(facts.counts),
        last=dict(facts.last),
        last_order=dict(facts.last_order),
        unknown=list(facts.unknown),
        order=facts.order,
        seen=set(facts.seen),
    )


def _take(item: Evidence, scanner: Scanner, facts: Facts) -> list[command.Command]:
    name = redact(item.name)
    if item.is_command:
        return [command.parse(item.text or "", name)]
    if item.text is not None:
        return _take_text(item.text, name, scanner, facts)
    if item.stream is not None:
        return _take_stream(item.stream, name, scanner, facts)
    assert item.path is not None
    with item.path.open("rb") as stream:
        return _take_stream(stream, name, scanner, facts)


def _take_stream(
    stream: Readable, name: str, scanner: Scanner, facts: Facts
) -> list[command.Command]:
    head = stream.read(SMALL_FILE_BYTES)
    if len(head) < SMALL_FILE_BYTES and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        rest = stream.read()
        if not rest:
            return _take_text(head.decode("utf-8", "replace"), name, scanner, facts)
        head += rest
    scanner.scan(_Rejoined(head, stream), name, facts)
    return []


class _Rejoined:
    """A stream with a part of it, already read, put back in front."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head = io.BytesIO(head)
        self._rest = rest

    def read(self, size: int = -1, /) -> bytes:
        """The put-back part first, then the rest."""
        return self._head.read(size) or self._rest.read(size)


def _take_text(text: str, name: str, scanner: Scanner, facts: Facts) -> list[command.Command]:
    if not text.strip():
        facts.add("empty-file", name, "(no bytes)", {"file": name})
        return []
    commands = command.find(text, name)
    documents = manifest.parse(text, name)
    if documents is not None:
        manifest.state(documents, name, facts)
        scanner.scan_pairs(
            [pair for document in documents for pair in manifest.pairs(document)][
                : manifest.MOST_PAIRS
            ],
            name,
            facts,
        )
    else:
        scanner.scan_text(text, name, facts)
        _note_table(text, name, facts)
    return commands


def _note_table(text: str, name: str, facts: Facts) -> None:
    """The columns of a table, and a file that should hold a table and holds only a log."""
    if not name.lower().endswith(".csv"):
        return
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and all(re.match(r"\s*==(PROF|WARNING|ERROR|LOG)==", line) for line in lines):
        facts.add("log-without-table", f"{name}:1", lines[0], {"file": name})
        return
    header = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if header is None:
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
