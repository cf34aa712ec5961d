"""What a publisher does in a process of its own, so that it can be killed or starved."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path

from solscope.errors import SolscopeError
from tests.lake import campaigns as made

# Not solscope itself: the server of forks does not yet know where this checkout lies.
PRELOADED = ["deltalake", "duckdb", "msgspec", "pyarrow.dataset", "pyarrow.compute", "yaml"]


def processes() -> ForkServerContext:
    """Processes that have the libraries loaded, and nothing of this one's threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def publish(campaigns: Path, slugs: Sequence[str], lake: str, store: tuple[str, ...] = ()) -> None:
    """Publish one campaign after the other."""
    for slug in slugs:
        made.put(campaigns, slug, lake, store=store)


def nothing() -> None:
    """Start the server of forks, which loads the libraries once."""


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
