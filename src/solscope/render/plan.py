"""A capture plan as a page for the terminal: the answer first, then what it rests on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from solscope.model.finding import Severity
from solscope.model.plan import CapturePlan, CostInput, PassEstimate, PassMethod, Window
from solscope.model.units import duration_text, scaled

_METHODS = {
    PassMethod.LIBRARY: "scheduled by the host library",
    PassMethod.TABLE: "from the shipped table",
    PassMethod.ESTIMATE: "estimated without the host library",
    PassMethod.REPORTS: "as real reports of this set show",
}
_OPENS = {
    Window.ENGINE_PROFILER: "opens at cudaProfilerStart (the engine's profiler endpoint)",
    Window.NVTX: "inside the NVTX range",
    Window.LAUNCH_SKIP: "after the skipped launches",
    Window.WHOLE_RUN: "the whole run",
}
_ORDER = {Severity.BLOCKS: 0, Severity.WARNING: 1, Severity.INFO: 2}


def page(plan: CapturePlan, width: int = 100) -> str:
    """The whole page."""
    return "\n".join(_lines(plan, max(width, 60)))


def _lines(plan: CapturePlan, width: int) -> Iterator[str]:
    yield from _answer(plan)
    yield from _passes(plan)
    yield from _list(plan, width)
    yield from _cost(plan)
    yield from _findings(plan, width)
    if plan.is_refused or plan.metrics.unknown:
        return
    yield ""
    yield "command"
    if plan.unset:
        yield "  unset " + " ".join(plan.unset)
    for name, value in plan.environment.items():
        yield f"  export {name}={value}"
    for line in plan.command_line.splitlines():
        yield f"  {line}"


def _answer(plan: CapturePlan) -> Iterator[str]:
    subject = plan.target or "a capture"
    what = plan.metrics.name
    chip = f"{plan.chip} (CC {plan.compute_capability})"
    if plan.is_refused:
        blocks = [f for f in plan.findings if f.blocks]
        yield f"{subject}: refused. {blocks[0].fact}"
    elif plan.metrics.unknown:
        number = len(plan.metrics.unknown)
        yield f"{number} metric name{'s' if number > 1 else ''} unknown on {chip}"
    else:
        yield f"{subject}: {what} on {chip}, about {plan.passes.predicted} passes a launch"
    if plan.prize is not None:
        prize = plan.prize
        yield (
            f"  worth     at most {prize.max_win:.1%} of end-to-end time "
            f"({prize.max_speedup:.3f}x), asked for {prize.min_win:.1%}"
        )
    if not plan.is_refused:
        yield f"  strategy  {plan.strategy.value}: {plan.strategy_reason}"


def _passes(plan: CapturePlan) -> Iterator[str]:
    passes = plan.passes
    yield f"  passes    {_about(passes)}, {_METHODS[passes.method]} ({passes.source})"
    for part in passes.basis:
        yield f"            {part}"
    if plan.full_passes is not None and plan.full_passes.predicted > passes.predicted:
        yield f"            ncu --set full: {_about(plan.full_passes)}"


def _about(passes: PassEstimate) -> str:
    return f"about {passes.predicted} ({passes.low} to {passes.high})"


def _list(plan: CapturePlan, width: int) -> Iterator[str]:
    wanted = plan.metrics
    for unknown in wanted.unknown:
        yield f"  unknown   {unknown.name}"
        if unknown.nearest:
            yield f"            nearest: {', '.join(unknown.nearest)}"
    if wanted.answers:
        text = ", ".join(wanted.answers)
        yield from textwrap.wrap(
            text, width, initial_indent="  answers   ", subsequent_indent=" " * 12
        )
    if wanted.metrics:
        sections = f" and {', '.join(wanted.sections)}" if wanted.sections else ""
        yield f"  collects  {len(wanted.metrics)} metrics{sections}"
    elif wanted.section_set is not None:
        yield f"  collects  ncu's section set {wanted.section_set}"
    for work in wanted.left_out:
        yield f"  not       {work}"
    launches = plan.launches
    chosen = launches.kernel or "every kernel"
    skipped = f", after {launches.skip} skipped" if launches.skip else ""
    each = " of each kernel and grid" if launches.counts_each else ""
    each = " of each pattern" if plan.runs else each
    yield (
        f"  launches  {launches.count}{each} of {chosen} ({launches.name_base.value} name)"
        f"{skipped}; window: {_OPENS[launches.window]}"
    )
    for number, run in enumerate(plan.runs, 1):
        yield f"  run {number:<5} {run.launches.kernel}"
    yield (
        f"  modes     {plan.replay_mode} replay, cache control {plan.cache_control}, "
        f"clock control {plan.clock_control}, graphs by {plan.graph_profiling}"
    )


def _cost(plan: CapturePlan) -> Iterator[str]:
    cost = plan.cost
    parts = []
    if cost.pause_s is not None:
        parts.append(f"pause about {duration_text(cost.pause_s * 1e9)} a launch")
    if cost.total_s is not None:
        parts.append(f"in all about {duration_text(cost.total_s * 1e9)}")
    if cost.backup_bytes:
        parts.append(f"saves {scaled(cost.backup_bytes, 'B')}")
    if cost.report_bytes is not None:
        parts.append(f"report about {scaled(cost.report_bytes, 'B', digits=2)}")
    yield f"  cost      {', '.join(parts)} (estimates)"
    yield "            from " + "; ".join(_input(i) for i in cost.inputs)
    for caveat in cost.caveats:
        yield f"            {caveat}"


def _input(item: CostInput) -> str:
    return f"{item.name} {item.value:g} {item.unit} [{item.source}]"


def _findings(plan: CapturePlan, width: int) -> Iterator[str]:
    if plan.findings:
        yield ""
    for finding in sorted(plan.findings, key=lambda f: _ORDER[f.severity]):
        yield f"  {finding.severity.value:<7} {finding.code}  {finding.where}"
        indent = " " * 10
        yield from textwrap.wrap(
            finding.fact, width, initial_indent=indent, subsequent_indent=indent
        )
        yield from textwrap.wrap(
            f"next: {finding.remedy}", width, initial_indent=indent, subsequent_indent=indent
        )
