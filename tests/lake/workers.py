"""What a publisher does in a process of its own, so that it can be killed or starved."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import resource
import sys
from collections.abc import Sequence
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Event
from pathlib import Path

from solscope.errors import SolscopeError
from tests.lake import campaigns as made

PRELOADED = [
    "deltalake",
    "duckdb",
    "msgspec",
    "pyarrow.dataset",
    "pyarrow.compute",
    "yaml",
    "solscope.lake.query",
    "tests.lake.workers",
]


def processes() -> ForkServerContext:
    """Processes that have the libraries loaded, and nothing of this one's threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    # The server of forks is not told where this checkout lies, but by its environment.
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    forkserver.ensure_running()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before
    return context


def publish(campaigns: Path, slugs: Sequence[str], lake: str, store: tuple[str, ...] = ()) -> None:
    """Publish one campaign after the other."""
    for slug in slugs:
        made.put(campaigns, slug, lake, store=store)


def publish_without_end(campaigns: Path, slug: str, lake: str, is_ready: Event) -> None:
    """Publish one state of a campaign after the other until killed. Ready is before the first."""
    made.put(campaigns, "first", lake)  # there already: everything is loaded now
    for salt in itertools.count():
        made.campaign(campaigns, slug, launches=200, salt=salt)
        is_ready.set()
        made.put(campaigns, slug, lake)


def publish_with_little_room(campaigns: Path, slug: str, lake: str, limit: int, log: Path) -> None:
    """Publish where no file may grow beyond ``limit`` bytes; the error's text goes to ``log``."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        made.put(campaigns, slug, lake)
    except SolscopeError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        _say(log, f"{type(error).__name__} {error}")


def publish_and_say(campaigns: Path, slug: str, lake: str, log: Path) -> None:
    """Publish; the error's text goes to ``log``."""
    try:
        made.put(campaigns, slug, lake)
    except SolscopeError as error:
        _say(log, f"{type(error).__name__} {error}")


def _say(log: Path, text: str) -> None:
    log.write_text(text)
