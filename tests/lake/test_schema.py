"""Columns are only ever added: every earlier version's golden file must still hold."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from solscope.errors import LakeError
from solscope.lake import delta, query, schema
from tests.lake import campaigns as made

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
CURRENT = GOLDEN / f"lake-schema-{schema.VERSION}.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "lake.md"


def test_the_golden_schema_of_this_version_is_current() -> None:
    if os.environ.get("SOLSCOPE_GOLDEN") == "rewrite":
        CURRENT.write_text(json.dumps(schema.as_document(), indent=2) + "\n")
    assert json.loads(CURRENT.read_text()) == schema.as_document()


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("lake-schema-*.json")), ids=lambda p: p.stem)
def test_no_column_of_an_earlier_version_has_gone_or_changed(path: Path) -> None:
    earlier: dict[str, Any] = json.loads(path.read_text())
    now: Any = schema.as_document()
    assert earlier["partitions"] == now["partitions"]
    for table, columns in earlier["tables"].items():
        for name, column in columns.items():
            assert now["tables"][table][name] == column, f"{table}.{name}"


def test_columns_that_came_later_may_be_null() -> None:
    for table, columns in schema.TABLES.items():
        for column in columns:
            assert column.since <= schema.VERSION
            assert column.since == 1 or not column.required, f"{table}.{column.name}"


def test_every_column_with_a_unit_says_it_in_the_reference() -> None:
    page = PAGE.read_text()
    for table, columns in schema.TABLES.items():
        section = page.split(f"## `{table}`", 1)[1].split("\n## ", 1)[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [c.name for c in columns]
        for column in columns:
            assert column.meaning in section


def next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more column in ``kernels``, as a later solscope would have it."""
    later = schema.VERSION + 1
    added = schema.Column(name="energy_j", kind="number", meaning="J", since=later)
    monkeypatch.setattr(schema, "VERSION", later)
    tables = {**schema.TABLES, "kernels": (*schema.KERNELS, added)}
    monkeypatch.setattr(schema, "TABLES", tables)


def test_an_older_lake_is_read_and_lifted_by_a_newer_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for slug in ("old", "new"):
        made.campaign(tmp_path, slug)
    made.put(tmp_path, "old", tmp_path / "lake")
    next_version(monkeypatch)
    lake, sql = made.lake_at(tmp_path / "lake"), "SELECT count(*), count(energy_j) FROM kernels"
    assert query.ask(lake, sql).rows == ((2, 0),)
    made.put(tmp_path, "new", tmp_path / "lake")
    assert query.ask(lake, sql).rows == ((4, 0),)
    table = delta.open_table(lake, "kernels")
    assert table is not None
    assert delta.version_of(table) == schema.VERSION
    assert "energy_j" in {field.name for field in table.schema().fields}


def test_a_lake_of_a_newer_schema_is_refused_and_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for slug in ("new", "late"):
        made.campaign(tmp_path, slug)
    with monkeypatch.context() as later:
        next_version(later)
        made.put(tmp_path, "new", tmp_path / "lake")
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "lake").rglob("*")}
    with pytest.raises(LakeError, match="schema 3; this solscope knows schema 2"):
        made.put(tmp_path, "late", tmp_path / "lake")
    with pytest.raises(LakeError, match="schema 3"):
        query.ask(made.lake_at(tmp_path / "lake"), "SELECT 1")
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "lake").rglob("*")} == before
