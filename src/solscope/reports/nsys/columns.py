"""Rows of an export as arrow columns, a batch at a time: the bulk never becomes Python objects."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import quote

from solscope.errors import ReportError
from solscope.model import trace
from solscope.reports.nsys.schema import HINT, Schema, Table, quoted

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1 << 17
RANGE_ROWS = 1 << 19
MOST_RANGES = 64
MOST_WORKERS = 4

# eventType: 59 push/pop range, 60 start/end range, 70 and 71 the same with an extended payload
# (34 and 75 are marks and domains, which last no time).
NVTX_RANGES = (59, 60, 70, 71)

# The low 24 bits of globalPid and globalTid are the thread, the next 24 the process.
PROCESS_OF_GLOBAL_ID = "(({0} >> 24) & 16777215)"
THREAD_OF_GLOBAL_ID = "({0} & 16777215)"


@dataclass(frozen=True, slots=True)
class Columns:
    """A table of the export in columns, and how many rows could not be used."""

    table: pa.Table
    unusable: int = 0


class Bulk:
    """Reads whole tables of one export through Arrow's own SQLite driver."""

    def __init__(self, path: str, schema: Schema, names: Names) -> None:
        self._path = path
        self._schema = schema
        self._names = names

    def kernels(self) -> Columns:
        """The kernel table; empty where the export has none."""
        table = self._schema.get("kernels")
        if table is None:
            return Columns(trace.empty("kernels"))
        table.need("start", "end", "name")
        wanted = ["name", "short", *_PLACE, *_SHAPE, "graph_node"]
        return self._collect(
            "kernels", table, wanted, renamed={"short": "short_name"}, named=("name", "short")
        )

    def graphs(self) -> Columns:
        """Replays of CUDA graphs that were recorded as a whole."""
        table = self._schema.get("graphs")
        if table is None:
            return Columns(trace.empty("graphs"))
        table.need("start", "end")
        return self._collect("graphs", table, [*_PLACE, "graph"])

    def copies(self, kinds: Mapping[int, str]) -> Columns:
        """Memory copies and memory sets, ``kind`` in words."""
        import pyarrow as pa

        parts = []
        for role in ("memcpy", "memset"):
            table = self._schema.get(role)
            if table is None:
                continue
            table.need("start", "end")
            names = Names(kinds) if role == "memcpy" else Names({}, otherwise="Memset")
            bulk = Bulk(self._path, self._schema, names)
            parts.append(
                bulk._collect("copies", table, ["kind", *_PLACE, "bytes"], named=("kind",))
            )
        if not parts:
            return Columns(trace.empty("copies"))
        whole = pa.concat_tables([p.table for p in parts]).unify_dictionaries()
        return Columns(whole, sum(p.unusable for p in parts))

    def annotations(self) -> Columns:
        """NVTX ranges that begin and end; open ones and marks are left out."""
        import pyarrow as pa

        table = self._schema.get("nvtx")
        if table is None:
            return Columns(trace.empty("annotations"))
        table.need("start", "end")
        where = f"{quoted(table.columns['end'])} IS NOT NULL"
        if "event" in table.columns:
            types = ", ".join(map(str, NVTX_RANGES))
            where += f" AND {quoted(table.columns['event'])} IN ({types})"
        expression = self._nvtx_text(table)
        rows = self._batches(
            table, ["start", "end", "owner", "thread"], extra=expression, where=where
        )
        parts = []
        for batch in rows:
            count = batch.num_rows
            host = pa.DictionaryArray.from_arrays(
                pa.repeat(pa.scalar(0, pa.int32()), count), ["host"]
            )
            parts.append(
                pa.table(
                    {
                        "start_ns": batch["start"],
                        "end_ns": batch["end"],
                        "name": batch["text"].cast(pa.string()).dictionary_encode(),
                        "side": host,
                        "device": pa.nulls(count, pa.int32()),
                        "process": batch["owner"],
                        "thread": batch["thread"],
                    }
                ).cast(trace.schemas()["annotations"])
            )
        if not parts:
            return Columns(trace.empty("annotations"))
        return _usable(pa.concat_tables(parts).unify_dictionaries())

    def _nvtx_text(self, table: Table) -> str:
        text = quoted(table.columns["text"]) if "text" in table.columns else "NULL"
        strings = self._schema.get("strings")
        if "text_id" in table.columns and strings is not None:
            look = (
                f"(SELECT value FROM {quoted(strings.name)} "
                f"WHERE id = {quoted(table.columns['text_id'])})"
            )
            text = f"COALESCE({text}, {look})"
        return f"CAST(COALESCE({text}, '') AS TEXT) AS text"

    def _collect(
        self,
        target: str,
        table: Table,
        wanted: list[str],
        *,
        renamed: Mapping[str, str] | None = None,
        named: tuple[str, ...] = (),
    ) -> Columns:
        import pyarrow as pa

        schema = trace.schemas()[target]
        roles = ["start", "end", *wanted]
        title = {"start": "start_ns", "end": "end_ns", **(renamed or {})}

        def part(where: str) -> list[pa.Table]:
            found = []
            for batch in self._batches(table, roles, where=where):
                columns = {}
                for role in roles:
                    column = batch[role]
                    if role in named:
                        column = self._named(column, role in table.columns)
                    columns[title.get(role, role)] = column
                found.append(_narrow(pa.table(columns).select(schema.names), schema, table.name))
            # One copy into tight buffers of our own lets the driver's roomy ones go.
            return [pa.concat_tables(found).combine_chunks()] if found else []

        # SQLite and Arrow work outside of Python's lock: ranges of rows are read side by side.
        with ThreadPoolExecutor(max_workers=min(MOST_WORKERS, os.cpu_count() or 1)) as pool:
            parts = [piece for pieces in pool.map(part, _ranges(table)) for piece in pieces]
        if not parts:
            return Columns(trace.empty(target))
        whole = pa.concat_tables(parts)
        return _usable(whole.unify_dictionaries() if table.text_columns else whole)

    def _named(self, column: pa.Array, is_there: bool) -> pa.Array:
        import pyarrow as pa

        if is_there or self._names.fills_gaps:
            return self._names.encode(column)
        return pa.nulls(len(column), pa.dictionary(pa.int32(), pa.string()))

    def _batches(
        self, table: Table, roles: list[str], *, extra: str | None = None, where: str = "1"
    ) -> Iterator[pa.RecordBatch]:
        import adbc_driver_manager
        import adbc_driver_sqlite.dbapi as driver
        import pyarrow as pa

        expressions = [_expression(table, role) for role in roles]
        if extra is not None:
            expressions.append(extra)
        sql = f"SELECT {', '.join(expressions)} FROM {quoted(table.name)} WHERE {where}"
        try:
            with driver.connect(read_only_uri(self._path)) as database, database.cursor() as cursor:
                cursor.adbc_statement.set_options(
                    **{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)}
                )
                cursor.execute(sql)
                yield from cursor.fetch_record_batch()
        except (adbc_driver_manager.Error, pa.ArrowException, OSError) as error:
            raise ReportError(
                f"table {table.name} cannot be read: {_first_line(error)}", hint=HINT
            ) from error


class Names:
    """String ids of the export to dictionary columns."""

    def __init__(self, by_id: Mapping[int, str], otherwise: str | None = None) -> None:
        import pyarrow as pa

        self.fills_gaps = otherwise is not None
        otherwise = otherwise or trace.UNNAMED
        self._ids = pa.array(list(by_id), pa.int64())
        self._strings = pa.array([*by_id.values(), otherwise], pa.string())
        self._missing = len(by_id)

    def encode(self, ids: pa.Array) -> pa.Array:
        """Ids as names. An id that the export does not explain becomes the stand-in."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_string(ids.type):
            return ids.dictionary_encode()
        places = pc.index_in(ids.cast(pa.int64()), value_set=self._ids).fill_null(self._missing)
        return pa.DictionaryArray.from_arrays(places.cast(pa.int32()), self._strings)


_PLACE = ["device", "stream", "process", "correlation"]
_SHAPE = ["grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]


def _ranges(table: Table) -> list[str]:
    """Conditions that part a large table by its row ids, in order and without a gap."""
    last = table.last_row or 0
    if last <= RANGE_ROWS:
        return ["1"]
    step = max(RANGE_ROWS, last // MOST_RANGES + 1)
    edges = list(range(step, last + 1, step))
    inner = [f"rowid >= {a} AND rowid < {b}" for a, b in pairwise(edges)]
    return [f"rowid < {edges[0]}", *inner, f"rowid >= {edges[-1]}"]


def _expression(table: Table, role: str) -> str:
    if role not in table.columns:
        return f"CAST(NULL AS INTEGER) AS {quoted(role)}"
    kind = "TEXT" if role in table.text_columns else "INTEGER"
    column = f"CAST({quoted(table.columns[role])} AS {kind})"
    if role in ("process", "owner"):
        column = PROCESS_OF_GLOBAL_ID.format(column)
    elif role == "thread":
        column = THREAD_OF_GLOBAL_ID.format(column)
    return f"{column} AS {quoted(role)}"


def _narrow(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    import pyarrow as pa

    try:
        return table.cast(schema)
    except pa.ArrowInvalid as error:
        raise ReportError(
            f"table {name} holds a number out of range: {_first_line(error)}", hint=HINT
        ) from error


def _usable(table: pa.Table) -> Columns:
    """Without events that have no begin, no end, or end before they begin."""
    import pyarrow.compute as pc

    good = pc.fill_null(pc.greater_equal(table["end_ns"], table["start_ns"]), False)
    usable = pc.sum(good).as_py() or 0
    unusable = table.num_rows - usable
    return Columns(table.filter(good) if unusable else table, unusable)


def read_only_uri(path: str) -> str:
    """A URI under which SQLite opens the file and never writes beside it."""
    return f"file:{quote(path)}?mode=ro&immutable=1"


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].strip()
