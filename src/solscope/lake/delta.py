"""Rows into Delta tables: whole publishes or nothing, by many publishers at once.

A publish writes its rows to the data tables first, each replacing what an earlier, broken try of
the same ``publish_id`` left, and to ``campaigns`` last. A row of a data table counts only where
its ``publish_id`` stands in ``campaigns``, so a reader sees all of a publish or nothing of it.
Every step is one Delta commit; a lost race is tried again on the newest version of the table.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from solscope.errors import LakeError, UsageError
from solscope.lake import schema, trouble
from solscope.model.lake import LakeRows, Row

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

ATTEMPTS = 40
LONGEST_PAUSE_S = 2.0
# An unreachable or overloaded store is said within a minute, not after the library's three.
STORE_DEFAULTS: Mapping[str, str] = {
    "max_retries": "4",
    "retry_timeout": "30s",
    "connect_timeout": "5s",
    "timeout": "60s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """Where a lake lies: a folder, or ``s3://bucket/prefix``.

    ``options`` are the object store's, such as ``AWS_ENDPOINT_URL``; what they leave out is
    taken from the environment, credentials above all.
    """

    location: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_remote(self) -> bool:
        """Whether an object store holds it."""
        return "://" in self.location

    def uri(self, table: str) -> str:
        """Where one table lies."""
        return f"{self.location.rstrip('/')}/{table}"

    def store(self) -> dict[str, str] | None:
        """What the object store is opened with; nothing for a folder."""
        return {**STORE_DEFAULTS, **self.options} if self.is_remote else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """``already_there``: the same content stood in the lake. ``retries``: races lost."""

    already_there: bool
    retries: int = 0


def open_table(lake: Lake, name: str) -> DeltaTable | None:
    """One table in its newest version, ``None`` where there is none.

    Raises LakeError for a table that cannot be read, is not solscope's, or is of a newer schema.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    uri = lake.uri(name)
    with trouble.explained(uri):
        try:
            table = DeltaTable(uri, storage_options=lake.store())
        except TableNotFoundError:
            return None
        _check(table, uri)
    return table


def version_of(table: DeltaTable) -> int | None:
    """The schema version that a table was last written with."""
    said = table.metadata().configuration.get(schema.VERSION_KEY, "")
    return int(said) if said.isdecimal() else None


def is_published(lake: Lake, rows: LakeRows) -> bool:
    """Whether this very content is the campaign's newest publish."""
    table = open_table(lake, schema.COMMITS)
    return table is not None and rows.publish_id in _committed(table, rows.campaign)


def publish(
    lake: Lake,
    rows: LakeRows,
    *,
    replace: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> Written:
    """Put all rows of a publish into the lake, or nothing that a reader would see.

    ``replace`` lets it take the place of another campaign of this slug. Raises UsageError where
    there is one otherwise, LakeError; what was in the lake before is then still there and still
    readable.
    """
    _prepare(lake)
    if not replace:
        refuse_another(lake, rows)
    if is_published(lake, rows):
        return Written(already_there=True)
    retries = 0
    for name, content in rows.tables.items():
        if name != schema.COMMITS and content:
            mine = f"publish_id = '{rows.publish_id}'"
            retries += _replace(lake, name, content, mine, pause)
    # One campaign, one row: a newer publish takes the place of the older in a single commit.
    mine = f"campaign = '{rows.campaign}'"
    # Asked again of the table that is written to: who was first may be another campaign.
    check = None if replace else (lambda: refuse_another(lake, rows))
    retries += _replace(lake, schema.COMMITS, rows.tables[schema.COMMITS], mine, pause, check)
    return Written(already_there=False, retries=retries)


def refuse_another(lake: Lake, rows: LakeRows) -> None:
    """Raises UsageError where the lake's campaign of this slug is another one.

    It is the same where a cell's import is still there, or where it bears the same name and a cell
    of the same id: then it was measured anew.
    """
    commits, receipts = open_table(lake, schema.COMMITS), open_table(lake, "receipts")
    if commits is None or receipts is None:
        return
    slug = f"campaign = {_quoted(rows.campaign)}"
    for publish, name in _ask(commits, f"select publish_id, name from asked where {slug}"):
        own = f"publish_id = {_quoted(str(publish))} and artifact is not null"
        files = _ask(receipts, f"select cell, artifact, sha256 from asked where {own}")
        ours = [(r["cell"], r.get("artifact"), r.get("sha256")) for r in rows.tables["receipts"]]
        cells = {str(cell) for cell, *_ in files}
        (title,) = (row["name"] for row in rows.tables[schema.COMMITS])
        is_kept = not _imports(files).isdisjoint(_imports(ours))
        if is_kept or (name == title and not cells.isdisjoint(cell for cell, *_ in ours)):
            continue
        raise UsageError(
            f"the lake holds another campaign {rows.campaign}: {name!r} with "
            f"{', '.join(sorted(cells)) or 'no cell'}",
            where=lake.location,
            hint="choose another slug, or let this one take its place with --replace",
        )


def _imports(files: Iterable[tuple[object, ...]]) -> set[object]:
    """Digests of the cells' own files, of which each holds when it was imported."""
    return {digest for _cell, path, digest in files if str(path).endswith("/ncu_kernels.json")}


def _check(table: DeltaTable, uri: str) -> None:
    version = version_of(table)
    if version is None:
        raise LakeError(
            "a Delta table, but not one of solscope's",
            where=uri,
            hint="give --lake a folder of its own",
        )
    if version > schema.VERSION:
        raise LakeError(
            f"written with schema {version}; this solscope knows schema {schema.VERSION}",
            where=uri,
            hint="install the newer solscope; nothing was read or written",
        )


def _committed(table: DeltaTable, campaign: str) -> set[str]:
    """The publishes of a campaign that stand."""
    sql = f"select publish_id from asked where campaign = {_quoted(campaign)}"
    return {str(publish) for (publish,) in _ask(table, sql)}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _ask(table: DeltaTable, sql: str) -> list[tuple[object, ...]]:
    """The rows of a query on one table, called ``asked``.

    Asked of Delta's own engine: Arrow's scanner leaves threads behind that can abort a process
    which ends right afterwards.
    """
    from deltalake import QueryBuilder

    with trouble.explained(str(table.table_uri)):
        found = QueryBuilder().register("asked", table).execute(sql).read_all()
    columns = [found[name].to_pylist() for name in found.schema.names]
    return list(zip(*columns, strict=True))


def _prepare(lake: Lake) -> None:
    """Create what is missing and lift what is older, ``campaigns`` last."""
    for name in schema.TABLES:
        table = open_table(lake, name)
        if table is None:
            _create(lake, name)
        elif (version_of(table) or 0) < schema.VERSION:
            _lift(table, name)


def _create(lake: Lake, name: str) -> None:
    from deltalake import DeltaTable

    uri = lake.uri(name)
    with trouble.explained(uri):
        try:
            DeltaTable.create(
                uri,
                schema.arrow(name),
                mode="ignore",
                partition_by=list(schema.PARTITIONS),
                configuration={schema.VERSION_KEY: str(schema.VERSION)},
                raise_if_key_not_exists=False,
                storage_options=lake.store(),
            )
        except Exception:
            # Another publisher may have made it in between; that is as good.
            if open_table(lake, name) is None:
                raise


def _lift(table: DeltaTable, name: str) -> None:
    """Add the columns of a newer schema. The version goes first: it keeps older tools out."""
    from deltalake import Field
    from deltalake.schema import PrimitiveType

    types = {
        "text": "string",
        "integer": "long",
        "number": "double",
        "flag": "boolean",
        "instant": "timestamp",
    }
    with trouble.explained(str(table.table_uri)):
        there = {f.name for f in table.schema().fields}
        table.alter.set_table_properties(
            {schema.VERSION_KEY: str(schema.VERSION)}, raise_if_not_exists=False
        )
        missing = [column for column in schema.TABLES[name] if column.name not in there]
        if missing:
            table.alter.add_columns(
                [Field(c.name, PrimitiveType(types[c.kind]), nullable=True) for c in missing]
            )


def _replace(
    lake: Lake,
    name: str,
    rows: tuple[Row, ...],
    predicate: str,
    pause: Callable[[float], None],
    check: Callable[[], None] | None = None,
) -> int:
    """Put rows in the place of those that match, in one commit. Returns how many races it lost.

    ``check`` raises where they may not, as the table now stands.
    """
    from deltalake import write_deltalake
    from deltalake.exceptions import CommitFailedError

    content = _arrow(name, rows)
    for attempt in range(ATTEMPTS):
        table = open_table(lake, name)
        if table is None:
            raise LakeError("the table has gone while it was written", where=lake.uri(name))
        if check is not None:
            check()
        with trouble.explained(lake.uri(name)):
            try:
                write_deltalake(table, content, mode="overwrite", predicate=predicate)
            except CommitFailedError:
                pause(random.uniform(0, min(LONGEST_PAUSE_S, 0.02 * 2**attempt)))
                continue
        return attempt
    raise LakeError(
        f"lost {ATTEMPTS} races against other publishers",
        where=lake.uri(name),
        hint="nothing of this publish is visible; publish again",
    )


def _arrow(name: str, rows: tuple[Row, ...]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows), schema=schema.arrow(name))
