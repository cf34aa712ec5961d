"""The session page: several titled tables of two columns or more. It holds no launch."""

from __future__ import annotations

import csv
import io

from solscope.model.report import Device, Session
from solscope.reports.printed.session import TITLES, read_blocks


def read_session(text: str) -> tuple[Session, tuple[Device, ...], str | None]:
    """Session, devices and the tool's version of a session page."""
    blocks: dict[str, list[list[str]]] = {}
    title = ""
    for row in csv.reader(io.StringIO(text, newline="")):
        if len(row) == 1 and row[0] in TITLES:
            title = row[0]
        elif len(row) >= 2:
            blocks.setdefault(title, []).append(row)
    return read_blocks(blocks)
