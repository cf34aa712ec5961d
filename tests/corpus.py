"""Other people's real files, read from ../shared/corpus and never copied here.

Tests over them skip, and say so, where that folder is absent; with SOLSCOPE_REQUIRE_CORPUS=1
its absence fails.
"""

from __future__ import annotations

import gzip
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
CORPUS = SHARED / "corpus"


def require(path: Path) -> Path:
    """The path, or a skip (a failure where the corpus is required)."""
    if path.exists():
        return path
    message = f"{path.name} is not here: the corpus is no part of this repository"
    if os.environ.get("SOLSCOPE_REQUIRE_CORPUS") == "1":
        pytest.fail(message)
    pytest.skip(message)


@lru_cache(maxsize=1)
def manifest() -> list[dict[str, Any]]:
    """The corpus's records, empty where it is absent."""
    path = CORPUS / "MANIFEST.json"
    return json.loads(path.read_text()) if path.exists() else []


def records(kind: str) -> list[dict[str, Any]]:
    """The records of one kind."""
    return [record for record in manifest() if record["kind"] == kind]


def find(fragment: str, kind: str = "ncu-rep") -> Path:
    """The one file of this kind whose path contains the fragment."""
    require(CORPUS)
    (path,) = [r["file"] for r in records(kind) if fragment in r["file"]]
    return CORPUS / path


def raw(path: Path) -> bytes:
    """A file's original bytes, gunzipped where it was stored so."""
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def golden(record: dict[str, Any], which: str) -> Any:
    """A golden file of a record: parsed JSON, or text."""
    data = gzip.decompress((CORPUS / record["golden"][which]).read_bytes())
    return json.loads(data) if which == "metrics_json" else data.decode("utf-8", "replace")
