"""Files in, what they are and what they hold out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from solscope.errors import UsageError
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.report import Report
from solscope.reports import formats


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Say what each file is and what it holds.

    Content decides what a file is, never its name. Gzipped files are unfolded.
    """

    paths: tuple[str, ...] = option("Report files or folders.", positional=True)
    format: Literal["table", "json", "csv"] = option(
        "table: an overview; json and csv: every metric of every launch.", default="table"
    )
    metric: str | None = option("Only metrics whose name matches this regex.", default=None)
    show_session: bool = option(
        "Show host names, addresses, users and command lines that the reports hold.",
        default=False,
    )


def run(request: ReadRequest, world: World) -> Outcome:
    """The verb."""
    import re

    from solscope.render import overview

    if not request.paths:
        raise UsageError("no file given", hint="solscope read YOUR.ncu-rep")
    try:
        wanted = None if request.metric is None else re.compile(request.metric)
    except re.error as error:
        raise UsageError(f"--metric is not a regular expression: {error}") from error
    reports = read_all(request.paths, world)
    if request.format == "table":
        text = overview.table(
            reports, width=world.width, color=world.color, show_session=request.show_session
        )
    elif request.format == "json":
        text = overview.as_json(reports, wanted, show_session=request.show_session).decode()
    else:
        text = overview.as_csv(reports, wanted)
    return Outcome(value=tuple(reports), text=text)


def read_all(paths: Sequence[str], world: World) -> list[Report]:
    """Every report that the paths name or hold, each file once."""
    return [formats.read(path) for path in world.progress(formats.find(paths), "reading")]
