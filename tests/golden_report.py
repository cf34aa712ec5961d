"""Reports built from golden files: values as NVIDIA's module gives them, cells as ncu printed."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

from solscope.model.report import (
    Instance,
    KernelLaunch,
    MetricValue,
    PlainDetails,
    PlainMetrics,
    Report,
    RuleAdvice,
    Section,
    SectionMetric,
)
from solscope.reports import ncu_csv
from solscope.reports.printed.labels import Era, metric_of, section_identifier

csv.field_size_limit(1 << 28)


def table(text: str) -> list[list[str]]:
    """Rows from the header on, without what ncu said in between."""
    rows = [r for r in csv.reader(io.StringIO(text)) if r and not r[0].startswith("==")]
    begin = next(i for i, row in enumerate(rows) if row[0] == "ID")
    return rows[begin:]


def build(metrics: dict[str, Any], raw_base: str, raw: str, details: str) -> Report:
    """A report with every value of ``metrics`` and the identities of the printed pages."""
    printed = ncu_csv.read("raw_base.csv", raw_base.encode(), "0" * 64)
    cells = table(raw)
    actions = [action for ranges in metrics["ranges"] for action in ranges["actions"]]
    sections = _sections(table(details)) if details.strip() else {}
    launches = []
    for i, (launch, action) in enumerate(zip(printed.launches, actions, strict=True)):
        values = _metrics(action["metrics"], dict(zip(cells[0], cells[2 + i], strict=False)))
        whole = replace(launch, metrics=values)
        details = _details(whole, sections.get(str(launch.index), []))
        launches.append(replace(whole, details=details))
    return replace(printed, launches=tuple(launches))


def _metrics(stored: dict[str, Any], printed: dict[str, str]) -> PlainMetrics:
    values: dict[str, MetricValue] = {}
    instances: dict[str, tuple[Instance, ...]] = {}
    without: list[str] = []
    for name, metric in stored.items():
        value = metric["v"]
        if metric["n"]:
            instances[name] = (Instance(None, 0),)
        # The module says 0.0 (or an empty text) of metrics that have instances alone.
        is_instances_only = metric["n"] > 0 and not value and printed.get(name) == ""
        if value is None or is_instances_only:
            without.append(name)
        elif isinstance(value, dict):
            values[name] = float(value["nonfinite"])
        else:
            values[name] = value
    return PlainMetrics(values, instances, tuple(without))


def _sections(rows: list[list[str]]) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows[1:]:
        found.setdefault(row[0], []).append(dict(zip(rows[0], row, strict=False)))
    return found


def _details(launch: KernelLaunch, rows: list[dict[str, str]]) -> PlainDetails:
    order: dict[str, str] = {}
    headers: dict[str, list[SectionMetric]] = {}
    rules: list[RuleAdvice] = []
    for row in rows:
        shown = row["Section Name"]
        identifier = section_identifier(shown)
        order.setdefault(identifier, shown)
        label = row["Metric Name"]
        if label:
            metric = _metric_name(launch, shown, label, row["Metric Unit"])
            entry = SectionMetric(label="" if label == metric else label, metric=metric)
            headers.setdefault(identifier, []).append(entry)
        else:
            rules.append(_rule(row, identifier))
    sections = tuple(
        Section(
            identifier=identifier,
            display_name=shown,
            order=position,
            header=tuple(headers.get(identifier, ())),
        )
        for position, (identifier, shown) in enumerate(order.items())
    )
    return PlainDetails(sections, tuple(rules), launch.details.nvtx())


# Chips from CC 9.0 on compress in another unit; sections of 2025 show it under the old labels.
_NEWER = {
    "L2 Compression Success Rate": "lrc__average_ilc_input_sector_success_rate.pct",
    "L2 Compression Ratio": "lrc__average_ilc_output_sector_compression_achieved_rate.pct",
    "L2 Compression Input Sectors": "lrc__ilc_input_sectors.sum",
}


def _metric_name(launch: KernelLaunch, section: str, label: str, unit: str) -> str:
    newer = _NEWER.get(label)
    if newer is not None and newer in launch.metrics:
        return newer
    return metric_of(section, "", label, unit, era=Era.OLD) or label


def _rule(row: dict[str, str], section: str) -> RuleAdvice:
    kinds = {"INF": "ok", "WRN": "warning", "ERR": "error", "OPT": "optimization"}
    speedup = row.get("Estimated Speedup")
    return RuleAdvice(
        rule=row["Rule Name"],
        name=row["Rule Name"],
        section=section,
        message=row["Rule Description"],
        kind=kinds.get(row["Rule Type"], "none"),
        speedup_kind=row.get("Estimated Speedup Type") or None,
        speedup_pct=float(speedup) if speedup else None,
    )
