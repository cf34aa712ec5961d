"""The details page: each section's header metrics by label, then its rule messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import isfinite

from solscope.model.metric_units import unit_of
from solscope.model.report import KernelLaunch, Report, RuleAdvice, Section
from solscope.render.ncu_pages.cells import cell, fixed_cells, fixed_columns, line
from solscope.render.ncu_pages.raw_page import printed_names
from solscope.render.ncu_pages.scales import Spelling, Units, scale_of, spelling_of

_DETAIL_COLUMNS = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
_RULE_COLUMNS = (
    "Rule Name",
    "Rule Type",
    "Rule Description",
    "Estimated Speedup Type",
    "Estimated Speedup",
)
_RULE_TYPES = {"ok": "INF", "warning": "WRN", "error": "ERR", "optimization": "OPT"}
# Rows that ncu's sections have only from a compute capability on; below it they are left out
# even where the report has a value. Other metrics without a value are shown as n/a.
_SINCE_CAPABILITY = (
    (re.compile(r"launch__(cluster_|occupancy_cluster_|occupancy_limit_barriers).*"), (9, 0)),
    (re.compile(r"launch__uses_blocks_as_clusters"), (9, 0)),
    (re.compile(r"lts__average_gcomp_.*"), (8, 0)),
)
_SECTION_LINK = re.compile(r"@(?:section|source):[^:@]*:([^@]*)@")
_ADDRESS_LINK = re.compile(r"@url:([^:@]*):([^@]*)@")


def details_csv(
    report: Report, *, units: Units = Units.AUTO, spelling: Spelling | None = None
) -> Iterator[str]:
    """Lines of ``ncu --import REPORT --csv --page details``: header metrics of each section by
    label, then the section's rule messages.

    The rule columns are there only if a rule of any launch said something.
    """
    how = spelling or spelling_of(report)
    has_nvtx = any(launch.details.nvtx() for launch in report.launches)
    has_rules = any(_messages(launch.details.rules()) for launch in report.launches)
    rule_columns = _RULE_COLUMNS if has_rules else ()
    yield line((*fixed_columns(has_nvtx), *_DETAIL_COLUMNS, *rule_columns))
    for launch in report.launches:
        fixed = fixed_cells(launch, has_nvtx)
        yield from _launch_lines(launch, fixed, has_rules, units, how)


def _messages(rules: Sequence[RuleAdvice]) -> list[RuleAdvice]:
    return [rule for rule in rules if rule.kind in _RULE_TYPES or rule.message]


def _launch_lines(
    launch: KernelLaunch,
    fixed: tuple[str, ...],
    has_rules: bool,
    units: Units,
    spelling: Spelling,
) -> Iterator[str]:
    rules = _messages(launch.details.rules())
    sections = sorted(launch.details.sections(), key=_order)
    listed = {section.identifier for section in sections}
    end = ",\n" if has_rules else "\n"
    for section in sections:
        for name, label in _rows(launch, section):
            cells = _detail_cells(launch, section, label, name, units, spelling)
            yield line((*fixed, *cells)).removesuffix("\n") + end
        for rule in rules:
            if rule.section == section.identifier:
                yield _rule_line(fixed, rule)
    for rule in rules:
        if rule.section not in listed:
            yield _rule_line(fixed, rule)


def _rows(launch: KernelLaunch, section: Section) -> list[tuple[str, str]]:
    """Metrics and labels of a section's rows, in the order of the metrics' names.

    A ``regex:`` stands for all metrics that it finds. Of several metrics under one label those
    without a value are left out where another has one. A gap of the UI is no row.
    """
    found: dict[str, str] = {}
    for entry in section.header:
        if entry.metric.startswith("regex:"):
            names = _matches(launch, entry.metric.removeprefix("regex:"))
            found.update({name: entry.label or name for name in names})
        elif entry.metric and _is_shown(launch, entry.metric):
            found[entry.metric] = entry.label or entry.metric
    with_value = {label for name, label in found.items() if name in launch.metrics}
    shown = {
        name: label
        for name, label in found.items()
        if name in launch.metrics or label not in with_value
    }
    return sorted(shown.items())


def _matches(launch: KernelLaunch, pattern: str) -> list[str]:
    try:
        wanted = re.compile(pattern)
    except re.error:
        return []
    return [name for name in printed_names(launch) if wanted.search(name)]


def _is_shown(launch: KernelLaunch, name: str) -> bool:
    capability = launch.device.compute_capability
    if capability is None:
        return True
    return not any(
        capability < since and pattern.fullmatch(name) for pattern, since in _SINCE_CAPABILITY
    )


def _order(section: Section) -> tuple[int, str]:
    return 1 << 30 if section.order is None else section.order, section.display_name


def _detail_cells(
    launch: KernelLaunch,
    section: Section,
    label: str,
    name: str,
    units: Units,
    spelling: Spelling,
) -> tuple[str, str, str, str]:
    value = launch.metrics.get(name)
    if value is None:
        return section.display_name, label, "", "n/a"
    base = unit_of(name) or ""
    largest = abs(value) if isinstance(value, int | float) and isfinite(value) else 0.0
    scale = scale_of(base, largest, units, spelling)
    return section.display_name, label, scale.unit, cell(value, scale, is_fixed=False)


def _plain_message(message: str) -> str:
    """The message without the UI's links: a link's text, and its address after it."""
    text = _SECTION_LINK.sub(r"\1", message)
    return _ADDRESS_LINK.sub(r"\1 (\2)", text)


def _rule_line(fixed: tuple[str, ...], rule: RuleAdvice) -> str:
    speedup = "" if rule.speedup_pct is None else f"{rule.speedup_pct:.4g}"
    return line(
        (
            *fixed,
            rule.section or "",
            "",
            "",
            "",
            rule.rule,
            _RULE_TYPES.get(rule.kind, ""),
            _plain_message(rule.message),
            rule.speedup_kind or "",
            speedup,
        )
    )
