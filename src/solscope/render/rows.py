"""Rows of a query as a table, JSON or CSV. A null is a dash, ``null`` or an empty field."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from solscope.errors import UsageError
from solscope.model.lake import Answer, NamedQuery

WIDEST = 60
_NUMBERS = (int, float)


def as_table(answer: Answer, *, limit: int) -> str:
    """Columns aligned, numbers to the right; says how many rows are not shown."""
    shown = answer.rows[: max(limit, 0)]
    cells = [[_cell(value) for value in row] for row in shown]
    right = [any(_is_number(row[i]) for row in shown) for i in range(len(answer.columns))]
    widths = [
        max(len(name), *(len(row[i]) for row in cells)) if cells else len(name)
        for i, name in enumerate(answer.columns)
    ]
    lines = [_line(answer.columns, widths, right), "  ".join("-" * width for width in widths)]
    lines += [_line(row, widths, right) for row in cells]
    count = len(answer.rows)
    rows = "1 row" if count == 1 else f"{count} rows"
    left = count - len(shown)
    lines.append(rows if left == 0 else f"{rows}, {left} not shown: raise --limit, or use csv")
    return "\n".join(lines)


def as_json(answer: Answer) -> str:
    """A list of objects, one a row. Numbers that are not finite become null.

    Raises UsageError where two columns have one name: an object would lose one of them.
    """
    twice = sorted({name for name in answer.columns if answer.columns.count(name) > 1})
    if twice:
        raise UsageError(
            f"two columns are called {', '.join(twice)}, and a JSON object holds one",
            hint="give them names: SELECT a.name AS a_name, b.name AS b_name",
        )
    return _json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])


def as_csv(answer: Answer) -> str:
    """Comma separated, a header first, times in ISO 8601."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([_exact(value) for value in row] for row in answer.rows)
    return out.getvalue().rstrip("\n")


def listing_json(queries: Sequence[NamedQuery]) -> str:
    """The shipped queries as a list of ``name``, ``summary`` and ``sql``."""
    return _json([{"name": q.name, "summary": q.summary, "sql": q.sql} for q in queries])


def listing(queries: Sequence[NamedQuery]) -> str:
    """The shipped queries with what each answers."""
    width = max(len(query.name) for query in queries)
    lines = [f"  {query.name:<{width}}  {query.summary}" for query in queries]
    return "\n".join(["Named queries: solscope query --named NAME", "", *lines])


def _json(value: object) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = (
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(parts).rstrip()


def _is_number(value: Any) -> bool:
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        # Six digits are more than any counter is good for; large sums stay readable.
        is_whole = value.is_integer() and abs(value) < 2.0**53
        return f"{value:.0f}" if is_whole else f"{value:.6g}"
    text = " ".join(str(_exact(value)).split())
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _exact(value: Any) -> Any:
    if isinstance(value, date | datetime):
        return value.isoformat()
    return json.dumps(value, default=str) if isinstance(value, list | dict) else value
