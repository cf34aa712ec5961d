"""The options of ncu by release, and which releases belong together. Data: ``options.toml``."""

from __future__ import annotations

from importlib import resources

import msgspec


class Option(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An option. ``since`` and ``gone`` are releases (``2022.1``); ``never`` marks one that no
    release had although it is often written; ``values`` are all that it takes, where these are
    words of a fixed list (globs, as `boost*`); ``before`` is what did it before ``since``."""

    name: str
    short: str | None = None
    takes_value: bool = True
    since: str | None = None
    gone: str | None = None
    never: bool = False
    instead: str | None = None
    values: tuple[str, ...] = ()
    before: str | None = None


class Release(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A CUDA toolkit, the ncu that came with it and the driver branch that introduced it."""

    cuda: str
    ncu: str
    driver: str


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sets: tuple[str, ...]
    sections: tuple[str, ...]
    chips: dict[str, str]
    option: tuple[Option, ...]
    release: tuple[Release, ...]


def _read() -> _File:
    text = resources.files(__package__).joinpath("options.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=_File)


_LOADED = _read()
OPTIONS: dict[str, Option] = {option.name: option for option in _LOADED.option}
SHORT: dict[str, Option] = {o.short: o for o in _LOADED.option if o.short}
RELEASES: tuple[Release, ...] = _LOADED.release
SETS: tuple[str, ...] = _LOADED.sets
SECTIONS: tuple[str, ...] = _LOADED.sections
CHIPS: dict[str, str] = _LOADED.chips
"""Products as people call them, and their chips as ncu does."""
