"""Two reports or analyses in, their differences out, where they may be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from solscope.analysis import comparison
from solscope.errors import UsageError
from solscope.flows import analysis_file
from solscope.flows.request import option
from solscope.flows.world import Outcome, World


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Say what changed from A to B, kernel by kernel, where both were measured alike.

    Each side is a report, a folder of reports, or what `solscope analyze --format json` wrote.
    A difference is computed only where chip, clocks, cache mode, versions, replay mode, metrics,
    GPU and launch shape do not differ; whatever differs or is not known is listed, and the pair
    is DRAFT. Exit code 1 where anything is DRAFT.
    """

    paths: tuple[str, ...] = option("A, the side before, and B, the side after.", positional=True)
    match: tuple[str, ...] = option(
        "Pair a kernel of A with one of B that has another name: OLD=NEW (short names).",
        default=(),
    )
    same_problem: bool = option(
        "The problem sizes are the same: another launch shape is part of the change.",
        default=False,
    )
    chip: str | None = option(
        "Take this chip's ceilings, such as h100_sxm, instead of deciding by name.", default=None
    )
    kernel: str | None = option("Only pairs whose name contains this text.", default=None)
    top: int | None = option("Show only the first N pairs of the table.", default=None)
    format: Literal["table", "json", "markdown"] = option("What to print.", default="table")


def run(request: CompareRequest, world: World) -> Outcome:
    """The verb."""
    from solscope.render import compare as page

    if len(request.paths) != 2:
        raise UsageError(
            f"a comparison needs two sides; given: {len(request.paths)}",
            hint="solscope compare BEFORE.ncu-rep AFTER.ncu-rep",
        )
    if request.top is not None and request.top < 1:
        raise UsageError(f"--top {request.top} shows nothing", hint="give a number above zero")
    sides = [
        tuple(
            kernel
            for kernel in analysis_file.side(path, world, chip=request.chip)
            if request.kernel is None or request.kernel in kernel.name_full
        )
        for path in request.paths
    ]
    found = comparison.compare(
        *sides, given=[_names(text) for text in request.match], same_problem=request.same_problem
    )
    faces = {
        "json": lambda: page.as_json(found),
        "markdown": lambda: page.markdown(found, top=request.top),
        "table": lambda: page.table(found, width=world.width, top=request.top),
    }
    return Outcome(value=found, text=faces[request.format](), exit_code=int(found.is_draft))


def _names(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise UsageError(f"--match {text!r} names no pair", hint="--match old_kernel=new_kernel")
    return old, new
