"""Report to the CSV pages that ncu prints of it, so that scripts written for ncu keep working.

The rules were read off what ncu 2024.1.1 printed of 71 reports: a column of the raw page has one
scale for all rows, that of its largest value; a value of the details page has its own. Numbers
with a scaled unit have six decimals on the raw page, all others none where they are whole and
two where they are not. Cells are quoted, lines end in a line feed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from solscope.model.metric_units import unit_of
from solscope.model.report import (
    KernelLaunch,
    MetricValue,
    NvtxRange,
    Report,
    RuleAdvice,
    Section,
)

_COLUMNS = (
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
)
_NVTX_COLUMNS = (
    "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
    "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
)
_DETAIL_COLUMNS = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
_RULE_COLUMNS = (
    "Rule Name",
    "Rule Type",
    "Rule Description",
    "Estimated Speedup Type",
    "Estimated Speedup",
)
_RULE_TYPES = {"ok": "INF", "warning": "WRN", "error": "ERR", "optimization": "OPT"}
# Names that stand for requests, not for metrics; ncu prints no column for them.
_REQUESTS = ("breakdown:", "group:", "regex:")
_LOCAL_HOST = "127.0.0.1"  # what ncu prints for a process of the machine that it ran on

# Rows that ncu's sections have only from a compute capability on; below it they are left out,
# where other metrics without a value are shown as n/a.
_SINCE_CAPABILITY = (
    (re.compile(r"launch__(cluster_|occupancy_cluster_|occupancy_limit_barriers).*"), (9, 0)),
    (re.compile(r"lts__average_gcomp_.*"), (8, 0)),
)

_BYTE_PREFIXES = ("", "K", "M", "G", "T")
_OLD_TIMES = ("nsecond", "usecond", "msecond", "second")
_NEW_TIMES = ("ns", "us", "ms", "s")
_NEW_HERTZ = ("hz", "Khz", "Mhz", "Ghz")
_SECTION_LINK = re.compile(r"@(?:section|source):[^:@]*:([^@]*)@")
_ADDRESS_LINK = re.compile(r"@url:([^:@]*):([^@]*)@")
_VERSION = re.compile(r"(\d{4})\.(\d+)")


class Units(StrEnum):
    """``--print-units`` of ncu."""

    AUTO = "auto"
    BASE = "base"


class Spelling(StrEnum):
    """How units are written: ``usecond`` up to ncu 2024.1, ``us`` later."""

    OLD = "old"
    NEW = "new"


def spelling_of(report: Report) -> Spelling:
    """The spelling of the ncu that captured the report; the new one where that is not known."""
    found = _VERSION.match(report.provenance.tool_version or "")
    if found is None:
        return Spelling.NEW
    is_old = (int(found[1]), int(found[2])) <= (2024, 1)
    return Spelling.OLD if is_old else Spelling.NEW


@dataclass(frozen=True, slots=True)
class _Scale:
    """A printed unit, and the power of ten that its numbers are divided by."""

    unit: str
    exponent: int

    def divide(self, value: int | float) -> float:
        return value * float(f"1e-{self.exponent}")


def _scale(base: str, largest: float, units: Units, spelling: Spelling) -> _Scale:
    times = _OLD_TIMES if spelling is Spelling.OLD else _NEW_TIMES
    has_bytes = "byte" in base
    is_scaled = has_bytes or base in ("ns", "hz") or base.endswith("/s")
    steps = _steps(largest, 4 if has_bytes else 3) if is_scaled and units is Units.AUTO else 0
    per_second = base.removesuffix("/s")
    if has_bytes:
        word = base.replace("byte", f"{_BYTE_PREFIXES[steps]}byte", 1)
        return _Scale(re.sub(r"/s$", f"/{times[3]}", word), 3 * steps)
    if base == "ns":
        return _Scale(times[steps], 3 * steps)
    if base == "hz":
        text = f"cycle/{times[3 - steps]}" if spelling is Spelling.OLD else _NEW_HERTZ[steps]
        return _Scale(text, 3 * steps)
    if per_second != base:
        return _Scale(f"{per_second}/{times[3 - steps]}", 3 * steps)
    return _Scale(base, 0)


def _steps(largest: float, most: int) -> int:
    """How many times a thousand goes into a number, at most ``most``."""
    steps = 0
    while steps < most and largest >= 1000.0 ** (steps + 1):
        steps += 1
    return steps


def raw_csv(
    report: Report, *, units: Units = Units.AUTO, spelling: Spelling | None = None
) -> Iterator[str]:
    """Lines of ``ncu --import REPORT --csv --page raw``: names, units, a row for each launch.

    A metric without a value is ``no data``, one that a launch does not have is empty.
    """
    how = spelling or spelling_of(report)
    launches = report.launches
    names = sorted({name for launch in launches for name in _printed_names(launch)})
    has_nvtx = any(launch.details.nvtx() for launch in launches)
    columns = [_raw_column(name, launches, units, how) for name in names]
    yield _line((*_fixed_columns(has_nvtx), *names))
    blank = ("",) * len(_fixed_columns(has_nvtx))
    yield _line((*blank, *(unit for unit, _ in columns)))
    for row, launch in enumerate(launches):
        yield _line((*_fixed_cells(launch, has_nvtx), *(cells[row] for _, cells in columns)))


def _printed_names(launch: KernelLaunch) -> Iterator[str]:
    for names in (launch.metrics, launch.metrics.valueless()):
        yield from (name for name in names if not name.startswith(_REQUESTS))


def _raw_column(
    name: str, launches: Sequence[KernelLaunch], units: Units, spelling: Spelling
) -> tuple[str, list[str]]:
    values = [launch.metrics.get(name) for launch in launches]
    numbers = [abs(v) for v in values if isinstance(v, int | float) and isfinite(v)]
    base = unit_of(name) or ""
    scale = _scale(base, max(numbers, default=0.0), units, spelling)
    is_fixed = units is Units.AUTO and scale.unit != ""
    cells = [
        _absent(name, launch) if value is None else _cell(value, scale, is_fixed=is_fixed)
        for value, launch in zip(values, launches, strict=True)
    ]
    return scale.unit, cells


def _absent(name: str, launch: KernelLaunch) -> str:
    if name not in launch.metrics.valueless() or launch.metrics.instances(name):
        return ""
    return "no data"


def _cell(value: MetricValue, scale: _Scale, *, is_fixed: bool) -> str:
    if isinstance(value, str):
        return value
    if not isfinite(value):
        return str(float(value))
    if is_fixed:
        # ncu shows what is below zero (a difference of two passes) as zero in scaled columns.
        # It does so with "nan", too: we do not, for what was not measured is no zero.
        return f"{max(0.0, scale.divide(value)):.6f}"
    return _number(scale.divide(value) if scale.exponent else value)


def _number(value: int | float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.2f}"


def _fixed_columns(has_nvtx: bool) -> tuple[str, ...]:
    nvtx = _NVTX_COLUMNS if has_nvtx else ()
    return (*_COLUMNS[:4], *nvtx, *_COLUMNS[4:])


def _fixed_cells(launch: KernelLaunch, has_nvtx: bool) -> tuple[str, ...]:
    capability = launch.device.compute_capability
    nvtx = _nvtx_cells(launch.details.nvtx()) if has_nvtx else ()
    return (
        str(launch.index),
        _text(launch.process_id),
        re.split(r"[/\\]", launch.process_name or "")[-1].rstrip("\0"),
        _LOCAL_HOST,
        *nvtx,
        launch.name_full or launch.name,
        _text(launch.context_id),
        _text(launch.stream_id),
        _dimensions(launch.block),
        _dimensions(launch.grid),
        _text(launch.device.ordinal),
        "" if capability is None else f"{capability[0]}.{capability[1]}",
    )


def _text(value: int | None) -> str:
    return "" if value is None else str(value)


def _dimensions(size: tuple[int, int, int] | None) -> str:
    return "" if size is None else f"({size[0]}, {size[1]}, {size[2]})"


def _nvtx_cells(ranges: Iterable[NvtxRange]) -> tuple[str, str]:
    """Thread and ranges. Payload, colour and message are not kept by the readers: ``none``."""
    stacks: dict[int | None, list[str]] = {}
    starts = []
    for one in ranges:
        entry = f'"{one.domain}:{one.name}:none:none:none:none:none:none" '
        if one.is_push_pop:
            stacks.setdefault(one.thread_id, []).append(entry)
        else:
            starts.append(entry)
    pushed = "".join(f"{_text(thread)}  {' '.join(stack)}" for thread, stack in stacks.items())
    return pushed, " ".join(starts)


def _line(cells: Iterable[str]) -> str:
    return ",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in cells) + "\n"


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
    yield _line((*_fixed_columns(has_nvtx), *_DETAIL_COLUMNS, *rule_columns))
    for launch in report.launches:
        fixed = _fixed_cells(launch, has_nvtx)
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
            yield _line((*fixed, *cells)).removesuffix("\n") + end
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
    return [name for name in _printed_names(launch) if wanted.search(name)]


def _is_shown(launch: KernelLaunch, name: str) -> bool:
    capability = launch.device.compute_capability
    if name in launch.metrics or capability is None:
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
    scale = _scale(base, largest, units, spelling)
    return section.display_name, label, scale.unit, _cell(value, scale, is_fixed=False)


def _plain_message(message: str) -> str:
    """The message without the UI's links: a link's text, and its address after it."""
    text = _SECTION_LINK.sub(r"\1", message)
    return _ADDRESS_LINK.sub(r"\1 (\2)", text)


def _rule_line(fixed: tuple[str, ...], rule: RuleAdvice) -> str:
    speedup = "" if rule.speedup_pct is None else f"{rule.speedup_pct:.4g}"
    return _line(
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
