"""``receipts.jsonl``: a line a step, in the order in which they ended."""

from __future__ import annotations

from pathlib import Path

import msgspec

from solscope.errors import CaptureError
from solscope.evidence import files
from solscope.model.evidence import Receipt

NAME = "receipts.jsonl"


def append(bundle: Path, receipt: Receipt) -> None:
    """Add one receipt. The file is replaced whole: a crash leaves the receipts before it."""
    path = bundle / NAME
    before = path.read_bytes() if path.exists() else b""
    files.write(path, before + msgspec.json.encode(receipt) + b"\n")


def read(bundle: Path) -> tuple[Receipt, ...]:
    """Every receipt. Raises CaptureError for a line that is none."""
    path = bundle / NAME
    if not path.exists():
        return ()
    found: list[Receipt] = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            found.append(msgspec.json.decode(line, type=Receipt))
        except msgspec.MsgspecError as error:
            raise CaptureError(
                f"no receipt: {error}",
                where=f"{path}:{number}",
                hint="solscope writes this file; restore it from the sealed copy",
            ) from error
    return tuple(found)
