"""Section and label to metric name. One label stands for several metrics in several sections.

"Memory Throughput" is a percentage under Speed Of Light and a rate under Memory Workload
Analysis, so that a label alone says nothing. ``labels.json`` is the table; its own ``source``
says where it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from solscope.model.metric_units import unit_of
from solscope.model.units import is_old_spelling, printed_unit

COMMAND_LINE_SECTION = "Command line profiler metrics"
"""Section of metrics that were asked for by name; its labels are the names."""

_LAST_OLD_VERSION = "2024.3"  # the spelling of units changed after 2024.1.1, by 2025.1
_FIRST_RECENT_VERSION = "2025.2"
# The last report with the former meaning of "SM Busy" is of 2025.1, the first with the later one
# of 2025.3.
_LAST_BEFORE_RECENT = "2025.2"
# Seen only on pages where "SM Busy" has its meaning of 2026.1 (checked against the raw page of
# the same launches).
_RECENT_LABELS = frozenset({"Local Memory Spilling Requests", "Shared Memory Spilling Requests"})
# Names of SASS metrics have no double underscore: inst_executed, memory_access_type.
_METRIC_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?:\.[a-z_]+)*")
_LABEL_AND_NAME = re.compile(r".*\(((?:[\w.]+:)?\w+__[\w.]+|[a-z0-9]+(?:_[a-z0-9]+)+)\)")


class Era(StrEnum):
    """Which ncu printed a page, by its own words; pages do not name their version."""

    OLD = "2024.1 or earlier"
    UNCLEAR = "later than 2024.1"
    BEFORE_RECENT = "after 2024.1, before 2025.3"
    RECENT = "2025.2 or later"


_Candidate = tuple[str, str, str, int, int]
_Candidates = tuple[_Candidate, ...]
_EVERYWHERE = ("", "9999", 0, 999)


class _Section(msgspec.Struct):
    names: list[str]
    labels: dict[str, dict[str, str | list[_Candidate]]]


class _Table(msgspec.Struct):
    source: str
    sections: dict[str, _Section]


@dataclass(frozen=True, slots=True)
class SectionLabels:
    """The labels of one section: by body item (``""`` for the header), then by label."""

    identifier: str
    display_name: str
    by_item: Mapping[str, Mapping[str, _Candidates]]


@cache
def _sections() -> tuple[Mapping[str, SectionLabels], Mapping[str, str]]:
    raw = files("solscope.reports.printed").joinpath("labels.json").read_bytes()
    table = msgspec.json.decode(raw, type=_Table)
    by_display: dict[str, SectionLabels] = {}
    by_identifier: dict[str, str] = {}
    for identifier, section in table.sections.items():
        by_identifier[identifier] = section.names[-1]
        items = {
            item: {
                label: ((meant, *_EVERYWHERE),) if isinstance(meant, str) else tuple(meant)
                for label, meant in labels.items()
            }
            for item, labels in section.labels.items()
        }
        for name in section.names:
            by_display[name] = SectionLabels(identifier, name, items)
    return by_display, by_identifier


def section_identifier(display_name: str) -> str:
    """ncu's identifier of a section, or the display name where the section is not a stock one."""
    section = _sections()[0].get(display_name)
    return display_name if section is None else section.identifier


def section_display_name(identifier: str) -> str:
    """What ncu calls the section on its pages, or the identifier where it is not known."""
    return _sections()[1].get(identifier, identifier)


def era_of(rows: Iterable[tuple[str, str]]) -> Era:
    """The era of a page, by label and unit of all of its rows."""
    era = Era.UNCLEAR
    for label, unit in rows:
        if is_old_spelling(unit):
            return Era.OLD
        if label in _RECENT_LABELS:
            era = Era.RECENT
    return era


@lru_cache(maxsize=1 << 16)
def metric_of(
    section: str,
    item: str,
    label: str,
    unit: str,
    *,
    era: Era,
    capability: tuple[int, int] | None = None,
) -> str | None:
    """The metric that a row of the details page shows; ``None`` where label and section do not
    say which.

    A label that is itself a name, or that ends in one in parentheses
    (``--print-metric-name label-name``), needs no table. ``era`` says of which ncu the
    file is, which settles labels that changed their meaning; ``capability`` is the GPU's,
    which settles labels of units that only some chips have.
    """
    both = _LABEL_AND_NAME.fullmatch(label) if label.endswith(")") else None
    if both is not None:
        return both.group(1)
    if section == COMMAND_LINE_SECTION or "__" in label:
        return label
    meant = _meant(section, item, label)
    if not meant and _METRIC_NAME.fullmatch(label):
        return label
    return _choose(meant, unit, era, capability)


def meanings(section: str, item: str, label: str) -> int:
    """How many metrics the label has stood for in this section, by version and chip."""
    return len(_meant(section, item, label))


@lru_cache(maxsize=1 << 12)
def rollups(section: str, item: str, label: str) -> tuple[str, ...]:
    """The metrics of a label that shows all rollups of one counter, in the order of their rows:
    ``X.avg``, ``X.max``, ``X.min``, ``X.sum``. Empty for any other label."""
    names = sorted(candidate[0] for candidate in _meant(section, item, label))
    counters = {name.rpartition(".")[0] for name in names}
    endings = tuple(name.rpartition(".")[2] for name in names)
    is_all = len(counters) == 1 and endings == ("avg", "max", "min", "sum")
    return tuple(names) if is_all else ()


def _meant(section: str, item: str, label: str) -> _Candidates:
    known = _sections()[0].get(section)
    if known is None:
        return ()
    meant = known.by_item.get(item, {}).get(label, ())
    if meant or item:
        return meant
    # Up to 2022 a header could show a metric by the label of its chart below.
    charts = {labels[label] for labels in known.by_item.values() if label in labels}
    return charts.pop() if len(charts) == 1 else ()


def _choose(
    candidates: _Candidates, unit: str, era: Era, capability: tuple[int, int] | None
) -> str | None:
    if len(candidates) > 1 and era is Era.OLD:
        candidates = tuple(c for c in candidates if c[1] <= _LAST_OLD_VERSION) or candidates
    if len(candidates) > 1 and era is Era.BEFORE_RECENT:
        candidates = tuple(c for c in candidates if c[1] <= _LAST_BEFORE_RECENT) or candidates
    if len(candidates) > 1 and era is Era.RECENT:
        candidates = tuple(c for c in candidates if c[2] >= _FIRST_RECENT_VERSION) or candidates
    if len(candidates) > 1 and capability is not None:
        chip = 10 * capability[0] + capability[1]
        candidates = tuple(c for c in candidates if c[3] <= chip <= c[4]) or candidates
    if len(candidates) > 1:
        base = printed_unit(unit).base
        fitting = tuple(c for c in candidates if unit_of(c[0]) == base)
        candidates = fitting or candidates
    return candidates[0][0] if len(candidates) == 1 else None
