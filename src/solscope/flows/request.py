"""How a request dataclass states its fields: one place, read by the command line and by MCP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, field
from typing import Any


def option(
    help: str,
    *,
    default: Any = MISSING,
    default_factory: Callable[[], Any] | Any = MISSING,
    positional: bool = False,
    alias: str | tuple[str, ...] = (),
    name: str | None = None,
    hidden: bool = False,
) -> Any:
    """A dataclass field with its help text.

    ``positional`` fields are arguments; others become ``--field-name`` options. ``name``
    replaces the option's name, ``alias`` adds more.
    """
    aliases = (alias,) if isinstance(alias, str) else alias
    return field(
        default=default,
        default_factory=default_factory,
        kw_only=True,
        metadata={
            "help": help,
            "positional": positional,
            "alias": aliases,
            "name": name,
            "hidden": hidden,
        },
    )
