"""The end of a process that may still have threads of a native library in it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import NoReturn


def clean_up_on_sigterm() -> None:
    """Let SIGTERM end this process as Ctrl-C does: what was being written is taken away first."""
    signal.signal(signal.SIGTERM, _terminated)


def _terminated(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def leave(code: int, *, is_guest: bool) -> NoReturn:
    """End the process with ``code``, everything written; a guest in another's raises SystemExit.

    Where Arrow was loaded, without tearing the interpreter down: a query with a LIMIT abandons
    a scan whose threads go on, and meeting them on its way out the process aborts (SIGABRT,
    SIGSEGV) after it has answered. Seen with pyarrow 26 and DuckDB 2.0, about once in ten on two
    busy cores.
    """
    if is_guest or "pyarrow" not in sys.modules:
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        # A reader that has closed its end, such as `head`, wants no more.
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
