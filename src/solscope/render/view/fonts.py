"""What the fonts of a PDF can show: they come with the typesetter, so pages look alike everywhere.

A character that none of them has would be an empty box, and two kernels could look the same.
"""

from __future__ import annotations

import re
from typing import Any

_LACKING = re.compile("[^\n\u0020-\u052f\u1e00-\u23ff\u2500-\u25ff]")
"""All but Latin, Greek and Cyrillic letters, punctuation, arrows, mathematics and boxes."""

NOTE = "Characters that this page’s fonts lack stand as their code, such as \\u6838."


def shown(value: Any) -> Any:
    """Plain values with every such character as its code.

    >>> shown({"name": ["µ_kernel", "核"]})
    {'name': ['µ_kernel', '\\\\u6838']}
    """
    if isinstance(value, str):
        return _LACKING.sub(_code, value)
    if isinstance(value, dict):
        return {key: shown(inner) for key, inner in value.items()}
    return [shown(inner) for inner in value] if isinstance(value, list | tuple) else value


def _code(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
