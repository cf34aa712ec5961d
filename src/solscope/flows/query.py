"""``solscope query``: SQL over the lake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from solscope.errors import UsageError
from solscope.flows.publish import open_lake
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.lake import query
from solscope.render import rows as page


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """Run SQL over the lake, in DuckDB, which can neither write nor fetch.

    Tables are kernel_launches, kernels, campaigns, contexts and receipts. Without SQL and
    without --named, the queries that solscope ships are listed.
    """

    sql: str | None = option("One SELECT.", default=None, positional=True)
    lake: str = option("The lake: a folder or s3://bucket/prefix.", default="lake")
    named: str | None = option("A query that solscope ships, such as worst-kernels.", default=None)
    show_sql: bool = option("With --named: print the SQL instead of running it.", default=False)
    store: tuple[str, ...] = option(
        "An option of the object store, KEY=VALUE. May be repeated.", default=()
    )
    limit: int = option("Most rows that a table shows; json and csv show all.", default=50)
    format: Literal["table", "json", "csv"] = option("Output format.", default="table")


def run(request: QueryRequest, world: World) -> Outcome:
    """Answer the question, or list what can be asked."""
    if request.sql is not None and request.named is not None:
        raise UsageError("SQL and --named exclude each other", hint="give one of them")
    if request.limit < 1:
        raise UsageError(f"--limit {request.limit} shows nothing", hint="give a number above zero")
    if request.named is None and request.sql is None:
        every = query.named()
        is_json = request.format == "json"
        return Outcome(value=every, text=(page.listing_json if is_json else page.listing)(every))
    shipped = None if request.named is None else query.find(request.named)
    if shipped is not None and request.show_sql:
        shown = page.listing_json([shipped]) if request.format == "json" else shipped.sql.rstrip()
        return Outcome(value=shipped, text=shown)
    sql = shipped.sql if shipped is not None else request.sql or ""
    found = query.ask(open_lake(request.lake, request.store), sql)
    if request.format == "json":
        return Outcome(value=found, text=page.as_json(found))
    if request.format == "csv":
        return Outcome(value=found, text=page.as_csv(found))
    return Outcome(value=found, text=page.as_table(found, limit=request.limit))
