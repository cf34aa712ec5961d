"""The same tables opened by other engines give the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from solscope.lake import query, schema
from tests.lake import campaigns as made


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three campaigns, one of them published twice, so that a stale publish lies there too."""
    root = tmp_path_factory.mktemp("engines")
    for slug, launches in (("a", 30), ("b", 10), ("b", 12), ("c", 5)):
        folder = made.campaign(root, slug, launches=launches)
        context = {"identity": {"model": f"model-{slug}"}, "serving": {"prefix_caching": True}}
        made.cell(folder, "c2", [made.kernel("k", dram_bytes_total=1.5)], context=context)
        made.put(root, slug, root / "lake")
    return root / "lake"


def ours(lake: Path, table: str) -> list[tuple[Any, ...]]:
    names = ", ".join(column.name for column in schema.TABLES[table])
    return plain(query.ask(made.lake_at(lake), f"SELECT {names} FROM {table}").rows)


def plain(rows: Any) -> list[tuple[Any, ...]]:
    """Rows in one order, times as text without a zone's name."""
    return sorted((tuple(_plain(value) for value in row) for row in rows), key=lambda row: str(row))


def _plain(value: Any) -> Any:
    return value.strftime("%Y-%m-%d %H:%M:%S") if hasattr(value, "strftime") else value


@pytest.mark.parametrize("table", list(schema.TABLES))
def test_polars_reads_equal_rows(lake: Path, table: str) -> None:
    import polars

    committed = polars.read_delta(str(lake / schema.COMMITS)).select("publish_id").unique()
    frame = polars.read_delta(str(lake / table)).join(committed, on="publish_id", how="semi")
    names = [column.name for column in schema.TABLES[table]]
    rows = plain(frame.select(names).rows())
    assert rows == ours(lake, table)
    assert rows


@pytest.mark.parametrize("table", list(schema.TABLES))
def test_clickhouse_reads_equal_rows(
    lake: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import chdb

    # It opens files below the working directory only.
    monkeypatch.chdir(lake)
    columns = schema.TABLES[table]
    names = ", ".join(column.name for column in columns)
    sql = (
        f"SELECT {names} FROM deltaLakeLocal('{lake / table}') WHERE publish_id IN "
        f"(SELECT publish_id FROM deltaLakeLocal('{lake / schema.COMMITS}'))"
    )
    found = json.loads(str(chdb.query(sql, "JSONCompact")))["data"]
    kinds = [column.kind for column in columns]
    rows = plain(map(_clickhouse, row, kinds) for row in found)
    assert rows == ours(lake, table)
    assert rows


def _clickhouse(value: Any, kind: schema.Kind) -> Any:
    """ClickHouse's JSON holds 64-bit integers as text, and times with their fractions."""
    if value is None:
        return None
    if kind == "instant":
        return str(value)[:19]
    return int(value) if kind == "integer" else value
