"""A plan as JSON, schema ``solscope.plan/1``, in and out."""

from __future__ import annotations

from typing import Any

from solscope.errors import UsageError
from solscope.model.plan import SCHEMA, CapturePlan


def to_json(plan: CapturePlan) -> bytes:
    """The plan file's bytes: indented JSON, one newline at the end."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


def from_json(raw: bytes, *, where: str) -> CapturePlan:
    """The plan that a file holds.

    Raises UsageError for anything that is no plan of this schema, naming the JSON path.
    """
    import msgspec

    try:
        document: Any = msgspec.json.decode(raw)
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema != SCHEMA:
            raise UsageError(
                f"not a capture plan: schema is {schema!r}, expected {SCHEMA!r}",
                where=where,
                hint="make one with `solscope plan ... -o plan.json`",
            )
        return msgspec.convert(document, CapturePlan)
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"not a capture plan: {error}",
            where=where,
            hint="make one with `solscope plan ... -o plan.json`",
        ) from error
