"""SQL over the lake: DuckDB in this process, the committed rows as views, nothing else in reach.

The views are named after the tables. DuckDB may open no file, no host and no extension, so a
query can neither write nor fetch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from importlib import resources
from typing import TYPE_CHECKING, Any

from solscope.errors import LakeError, UsageError
from solscope.lake import delta, schema, trouble
from solscope.lake.delta import Lake
from solscope.model.lake import Answer, NamedQuery

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from deltalake import DeltaTable


def named() -> tuple[NamedQuery, ...]:
    """The queries that solscope ships, by name. A query's first line says what it answers."""
    folder = resources.files("solscope.lake") / "queries"
    found = []
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".sql"):
            text = file.read_text(encoding="utf-8")
            summary = text.split("\n", 1)[0].removeprefix("--").strip()
            found.append(NamedQuery(name=file.name.removesuffix(".sql"), summary=summary, sql=text))
    return tuple(found)


def find(name: str) -> NamedQuery:
    """A shipped query. Raises UsageError that lists those there are."""
    for query in named():
        if query.name == name:
            return query
    names = ", ".join(query.name for query in named())
    raise UsageError(f"no query called {name!r}", hint=f"one of {names}")


def ask(lake: Lake, sql: str) -> Answer:
    """Run one SQL query on the lake as it is now.

    Raises LakeError where the lake cannot be read, UsageError where the SQL is refused.
    """
    with connection(lake) as database:
        return answer(database, sql)


@contextmanager
def connection(lake: Lake) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory with one view per table, of committed rows only."""
    import duckdb

    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"}) as database:
        _register(database, _tables(lake))
        for setting in (
            "autoload_known_extensions = false",
            "python_enable_replacements = false",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            database.execute(f"SET {setting}")
        yield database


def answer(database: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    """The rows of one statement, as plain Python values."""
    import duckdb

    try:
        _check(sql)
        result = database.sql(sql)
        table = result.to_arrow_table()
        types = tuple(str(kind) for kind in result.types)
    except duckdb.PermissionException as error:
        raise UsageError(_first_line(error), hint="a query only reads the lake") from error
    except duckdb.InvalidInputException as error:
        # What the reader of a table complains of comes through DuckDB under this name.
        if "stored_" in str(error):
            raise trouble.explain(error, "the lake") from error
        raise UsageError(_first_line(error), hint="correct the SQL") from error
    except (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError) as error:
        hint = f"tables are {', '.join(schema.TABLES)}; see docs/reference/lake.md"
        raise UsageError(_first_line(error), hint=hint) from error
    except (duckdb.Error, OSError) as error:
        raise LakeError(_first_line(error), hint="the lake is as it was") from error
    columns = [[_plain(value) for value in _values(column)] for column in table.columns]
    rows = tuple(zip(*columns, strict=True)) if columns else ()
    return Answer(columns=tuple(table.column_names), types=types, rows=rows)


def _check(sql: str) -> None:
    import duckdb

    statements = duckdb.extract_statements(sql)
    kinds = {statement.type for statement in statements}
    if len(statements) != 1 or not kinds <= {
        duckdb.StatementType.SELECT,
        duckdb.StatementType.EXPLAIN,
    }:
        raise UsageError("a query is one SELECT", hint=f"tables are {', '.join(schema.TABLES)}")


def _tables(lake: Lake) -> dict[str, DeltaTable | None]:
    # The commits are read first: whatever they name was written before them.
    order = (schema.COMMITS, *(name for name in schema.TABLES if name != schema.COMMITS))
    tables = {name: delta.open_table(lake, name) for name in order}
    if not any(tables.values()):
        raise LakeError(
            "there is no lake here",
            where=lake.location,
            hint="publish a campaign: solscope publish SLUG --lake ... --yes",
        )
    return tables


def _register(database: duckdb.DuckDBPyConnection, tables: dict[str, DeltaTable | None]) -> None:
    for name, table in tables.items():
        columns = schema.TABLES[name]
        source: Any = schema.arrow(name).empty_table()
        if table is not None:
            with trouble.explained(str(table.table_uri)):
                source = table.to_pyarrow_dataset()
        there = set(source.schema.names)
        listed = ", ".join(
            column.name
            if column.name in there
            else f"CAST(NULL AS {schema.DUCKDB_TYPES[column.kind]}) AS {column.name}"
            for column in columns
        )
        database.register(f"stored_{name}", source)
        committed = (
            ""
            if name == schema.COMMITS
            else f" WHERE publish_id IN (SELECT publish_id FROM stored_{schema.COMMITS})"
        )
        database.execute(f"CREATE VIEW {name} AS SELECT {listed} FROM stored_{name}{committed}")


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The column's values. Python has no time of nanoseconds, and Arrow asks pandas for one."""
    import pyarrow as pa

    if not (pa.types.is_timestamp(column.type) and column.type.unit == "ns"):
        return list(column.to_pylist())
    return [said and said.replace(" ", "T", 1) for said in column.cast(pa.string()).to_pylist()]


def _plain(value: Any) -> Any:
    """A value as every face can show it: Arrow's own classes become text, inside lists too."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        # A map's pair, or an interval of months, days and nanoseconds: ISO 8601 for that.
        if hasattr(value, "nanoseconds"):
            months, days, nanoseconds = value
            return f"P{months}M{days}DT{nanoseconds / 1e9:.9g}S"
        return [_plain(inner) for inner in value]
    return value.hex() if isinstance(value, bytes) else value


def _first_line(error: BaseException) -> str:
    text = re.sub(r"^\w[\w ]* Error: ", "", str(error).strip())
    return " ".join(text.split("\n\n")[0].split())
