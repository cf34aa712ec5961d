"""The page docs/reference/lake.md, from the schema that `solscope publish` writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from solscope.lake import query, schema

HEAD = """\
# The lake

A lake is a folder, or a prefix of an S3 bucket, with five Delta tables. `solscope publish` writes
them and `solscope query` reads them; so does every engine that opens Delta tables. How to:
[ask the lake](../how-to/query.md).

## Which rows count

A publish writes `kernel_launches`, `kernels`, `contexts` and `receipts` first and its row of
`campaigns` last, each in one Delta commit. **A row counts only where its `publish_id` stands in
`campaigns`.** `solscope query` shows no others. In another engine:

```sql
SELECT ... FROM kernels WHERE publish_id IN (SELECT publish_id FROM campaigns)
```

So a reader that opens `campaigns` first sees all of a publish or nothing of it, also while one is
being written or after one was killed.

- **Once.** `publish_id` is a digest of the rows. The same campaign again writes nothing; a broken
  try is replaced by the next one.
- **One state.** A changed campaign takes the place of its older self in a single commit. The older
  rows stay in the data tables, no longer named by `campaigns`. Another campaign of the same slug,
  which shares neither an import nor a name and a cell with it, is refused without `--replace`.
- **Many publishers.** Each step is an optimistic Delta commit; who loses a race does that step
  again. On S3 this rests on conditional writes, which the store must offer (`If-None-Match`).
- **Proven or DRAFT.** What the gates refuse is refused. With `--no-strict` it is published as
  `DRAFT`, its failed gates in `gaps_json`.

Nothing is deleted: rows that `campaigns` no longer names, and files of killed publishes, stay
until you delete the one and vacuum the other with a Delta tool of your choice.

## How the schema may change

"""
RULE = """\
This is version {version}. Every table holds its version as the table property `{key}`.

1. Columns are added; none is renamed, removed, retyped or given another unit.
2. An added column may be null, and is null in older rows.
3. Every addition raises the version by one. A newer solscope lifts an older lake when it
   publishes, and reads one that was not lifted.
4. A lake of a newer version is refused, for reading and for writing, by an older solscope.

Keys of a campaign's files that have no column are kept in `more_json`, so nothing is lost before a
column is made for it.

Every table is partitioned by {partitions}. Types are `text`, `integer` (64 bit), `number` (double),
`flag` and `instant` (UTC, µs). A null was not measured or not stated; it is never zero.
"""
TABLES = {
    "kernel_launches": "One row per launch, as profiled: `cells/<cell>/launches.json`.",
    "kernels": "One row per kernel and cell: `cells/<cell>/ncu_kernels.json`.",
    "contexts": "One row per cell with a `context.yaml`: `section_field` is `section.field` there.",
    "receipts": "What was done and what was read: receipts of the capture, digests of files.",
    "campaigns": "One row per campaign, its newest publish. Its hardware are joined with `+`.",
}


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    yield "<!-- Made by `make docs` from the schema; do not edit. -->"
    yield HEAD + RULE.format(
        version=schema.VERSION,
        key=schema.VERSION_KEY,
        partitions=" and ".join(f"`{name}`" for name in schema.PARTITIONS),
    )
    for name, columns in schema.TABLES.items():
        yield f"## `{name}`\n\n{TABLES[name]}\n"
        yield from _table(columns)
        yield ""
    yield "## Named queries\n"
    yield "| `--named` | answers |\n|---|---|"
    for shipped in query.named():
        yield f"| `{shipped.name}` | {shipped.summary} |"


def _table(columns: Sequence[schema.Column]) -> Iterator[str]:
    yield "| column | type | null | meaning |"
    yield "|---|---|---|---|"
    for column in columns:
        null = "no" if column.required else "yes"
        yield f"| `{column.name}` | {column.kind} | {null} | {column.meaning} |"
