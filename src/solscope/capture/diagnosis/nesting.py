"""JSON of a log or a manifest, refused where it is nested deeper than either ever is."""

from __future__ import annotations

import json
from typing import Any

MOST_LEVELS = 100


def decoded(text: str) -> Any:
    """The value of a JSON text. Raises ValueError for what is none, or is nested too deep.

    How deep Python's own reader goes differs between its versions, and what it has read must
    then be walked.
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return value
    raise ValueError("nested too deep")


def _inside(value: Any) -> list[Any]:
    """The lists and dicts that stand in a list or a dict."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return []
    return [inner for inner in value if isinstance(inner, dict | list)]
