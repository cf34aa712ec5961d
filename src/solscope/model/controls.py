"""How ncu controlled clocks, caches and replay, as far as a session tells."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from solscope.model.report import Session

DEFAULTS = {"clock-control": "base", "cache-control": "all", "replay-mode": "kernel"}
"""What ncu does where its command line does not say (`ncu --help`, 2019 to 2026)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The three controls that decide whether two measurements are alike.

    ``None`` where the session holds neither the setting nor the profiler's command line.
    """

    clock: str | None
    cache: str | None
    replay: str | None


def controls(session: Session) -> Controls:
    """Settings as recorded; else as the profiler's command line asks; else its defaults.

    Defaults count only where the command line is known: a report printed as CSV has none.
    """
    asked = _asked(session.profiler_command_line)
    return Controls(
        clock=_word(session.clock_control or asked.get("clock-control")),
        cache=_word(session.cache_control or asked.get("cache-control")),
        replay=_word(session.replay_mode or asked.get("replay-mode")),
    )


def _word(setting: str | None) -> str | None:
    # Nsight Compute's window writes "Base" and "Kernel" where its command line says "base".
    return None if setting is None else setting.lower()


def _asked(command_line: str | None) -> dict[str, str]:
    """The controls that a command line asks for, with ncu's defaults for the rest.

    Options of the profiled program can bear the same names; those after ``--`` are not looked
    at. Where there is no ``--``, the profiler's options come first and win.
    """
    if not command_line:
        return {}
    found: dict[str, str] = {}
    words = iter(_words(command_line))
    for word in words:
        if word == "--":
            break
        name, has_value, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and name in DEFAULTS:
            found.setdefault(name, value if has_value else next(words, ""))
    return {**DEFAULTS, **{name: value for name, value in found.items() if value}}


def _words(command_line: str) -> list[str]:
    try:
        return shlex.split(command_line)
    except ValueError:  # an unpaired quote: the command line was cut or joined without quoting
        return command_line.split()
