"""Our pages are ncu's own, cell by cell; and what they hold reads back."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tests import corpus, golden_report

from solscope.model.report import (
    Device,
    Instance,
    KernelLaunch,
    NvtxRange,
    PlainDetails,
    PlainMetrics,
    Provenance,
    Report,
    RuleAdvice,
    Section,
    SectionMetric,
    WorkloadKind,
)
from solscope.render import ncu_pages
from solscope.render.ncu_pages import Instances, Spelling, Units
from solscope.reports import ncu_csv
from solscope.reports.ncu_csv.layout import is_nvtx
from solscope.reports.printed.labels import (
    COMMAND_LINE_SECTION,
    section_display_name,
    section_identifier,
)

NO_DETAILS = PlainDetails()
A_DEVICE = Device(name="Toy", compute_capability=(9, 0), ordinal=1)


def a_report(*metrics: PlainMetrics, details: PlainDetails = NO_DETAILS) -> Report:
    launches = tuple(
        KernelLaunch(
            index=i,
            kind=WorkloadKind.KERNEL,
            name="add",
            name_full='add<"x", 1>(int)',
            metrics=one,
            device=A_DEVICE,
            details=details,
            grid=(4, 1, 1),
            block=(256, 1, 1),
            context_id=1,
            stream_id=7,
            process_id=11,
            process_name="/opt/app",
        )
        for i, one in enumerate(metrics)
    )
    provenance = Provenance(
        path="toy", sha256="0" * 64, size_bytes=0, format="toy", tool_name=None, tool_version=None
    )
    return Report(provenance=provenance, launches=launches)


def rows(lines: Any) -> list[list[str]]:
    return list(csv.reader(io.StringIO("".join(lines))))


def column(report: Report, name: str, **options: Any) -> list[str]:
    table = rows(ncu_pages.raw_csv(report, **options))
    return [row[table[0].index(name)] for row in table[1:]]


def test_a_column_is_scaled_by_its_largest_value() -> None:
    report = a_report(
        PlainMetrics({"gpu__time_duration.sum": 1_500_000}),
        PlainMetrics({"gpu__time_duration.sum": 250}),
    )
    assert column(report, "gpu__time_duration.sum") == ["ms", "1.500000", "0.000250"]
    assert column(report, "gpu__time_duration.sum", spelling=Spelling.OLD)[0] == "msecond"
    base = column(report, "gpu__time_duration.sum", units=Units.BASE)
    assert base == ["ns", "1500000", "250"]


@pytest.mark.parametrize(
    ("name", "value", "old", "new"),
    [
        ("dram__bytes.sum.per_second", 3.354448e12, "Tbyte/second", "Tbyte/s"),
        ("sm__cycles_elapsed.avg.per_second", 1.5e9, "cycle/nsecond", "Ghz"),
        ("sm__cycles_elapsed.avg.per_second", 585e6, "cycle/usecond", "Mhz"),
        ("lts__t_sectors.sum.per_second", 2e6, "sector/usecond", "sector/us"),
        ("launch__shared_mem_per_block", 2048, "Kbyte/block", "Kbyte/block"),
        ("gpu__time_duration.sum", 2e9, "second", "s"),
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", 2000.0, "%", "%"),
        ("launch__grid_size", 4096, "", ""),
    ],
)
def test_both_spellings_of_every_unit(name: str, value: float, old: str, new: str) -> None:
    report = a_report(PlainMetrics({name: value}))
    assert column(report, name, spelling=Spelling.OLD)[0] == old
    assert column(report, name, spelling=Spelling.NEW)[0] == new


def test_a_missing_value_is_never_a_zero() -> None:
    timeline = {"pmsampling:x": (Instance(0, 1.0),)}
    report = a_report(
        PlainMetrics({"dram__bytes_read.sum": 0}),
        PlainMetrics({}, timeline, ("dram__bytes_read.sum", "pmsampling:x")),
        PlainMetrics({}),
    )
    assert column(report, "dram__bytes_read.sum") == ["byte", "0.000000", "no data", ""]
    assert column(report, "pmsampling:x")[2] == ""


def test_instances_stand_in_parentheses_and_come_back() -> None:
    opcodes = (Instance("FADD", 3), Instance("FFMA", 4))
    metrics = PlainMetrics({"sass__inst_executed_per_opcode": 7, "inst_executed": 7.0})
    report = a_report(replace(metrics, instance_lists=dict.fromkeys(metrics, opcodes)))
    plain = column(report, "sass__inst_executed_per_opcode", instances=Instances.VALUES)
    assert plain == ["", "7 (3; 4)"]
    # As ncu does: no instances behind a value with six decimals.
    assert column(report, "inst_executed", instances=Instances.VALUES)[1] == "7.000000"
    text = "".join(ncu_pages.raw_csv(report, instances=Instances.DETAILS))
    (back,) = ncu_csv.read("x.csv", text.encode(), "0" * 64).launches
    assert back.metrics["inst_executed"] == 7
    assert back.metrics.instances("sass__inst_executed_per_opcode") == opcodes


def test_requests_are_no_columns() -> None:
    report = a_report(PlainMetrics({"breakdown:x": "a", "group:y": "b", "launch__grid_size": 4}))
    assert rows(ncu_pages.raw_csv(report))[0][-1] == "launch__grid_size"
    assert len(rows(ncu_pages.raw_csv(report))[0]) == 12


def test_details_show_sections_rules_and_links_as_text() -> None:
    section = Section(
        identifier="SpeedOfLight",
        display_name="GPU Speed Of Light Throughput",
        header=(
            SectionMetric(label="Duration", metric="gpu__time_duration.sum"),
            SectionMetric(label="DRAM Throughput", metric="dram__throughput.avg.pct"),
        ),
    )
    rule = RuleAdvice(
        rule="Bound",
        name="Bound",
        section="SpeedOfLight",
        message='See @section:Occupancy:the "Occupancy" section@ or @url:the guide:https://x.y/z@.',
        kind="optimization",
        speedup_kind="local",
        speedup_pct=12.34567,
    )
    report = a_report(
        PlainMetrics({"gpu__time_duration.sum": 89728.0}),
        details=PlainDetails((section,), (rule,)),
    )
    table = rows(ncu_pages.details_csv(report))
    assert table[0][11:] == [
        "Section Name",
        "Metric Name",
        "Metric Unit",
        "Metric Value",
        "Rule Name",
        "Rule Type",
        "Rule Description",
        "Estimated Speedup Type",
        "Estimated Speedup",
    ]
    shown = "GPU Speed Of Light Throughput"
    assert table[1][11:] == [shown, "DRAM Throughput", "", "n/a", ""]
    assert table[2][11:] == [shown, "Duration", "us", "89.73", ""]
    assert table[3][11:17] == ["SpeedOfLight", "", "", "", "Bound", "OPT"]
    assert table[3][17] == 'See the "Occupancy" section or the guide (https://x.y/z).'
    assert table[3][18:] == ["local", "12.35"]


def test_a_report_goes_through_our_base_page_and_back() -> None:
    values = {
        "gpu__time_duration.sum": 89728,
        "dram__bytes_read.sum": 25170176,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 41.25,
        "device__attribute_display_name": "Toy, 2nd",
    }
    nvtx = (NvtxRange(domain="<default domain>", name="decode", thread_id=63122),)
    report = a_report(PlainMetrics(values), details=PlainDetails(nvtx_list=nvtx))
    text = "".join(ncu_pages.raw_csv(report, units=Units.BASE))
    (back,) = ncu_csv.read("x.csv", text.encode(), "0" * 64).launches
    (launch,) = report.launches
    assert {name: back.metrics[name] for name in back.metrics} == values
    assert (back.name, back.name_full, back.grid, back.block) == (
        "add",
        launch.name_full,
        launch.grid,
        launch.block,
    )
    assert back.device.compute_capability == (9, 0)
    assert back.device.ordinal == 1
    assert back.details.nvtx() == nvtx


def _goldens() -> list[Any]:
    found = [
        pytest.param(r, id=r["file"])
        for r in corpus.records("ncu-rep")
        if r.get("golden", {}).get("raw_csv") and r["size"] < 700_000
    ]
    return found or [pytest.param(None, id="no corpus")]


# What ncu 2024.1.1 writes and we do not: it knows no units of chips newer than itself (and then
# prints the numbers unscaled), and gives a handful of newer metrics the unit of their numerator.
_NEW_CHIPS = {(10, 0), (12, 0)}


@pytest.mark.corpus
@pytest.mark.parametrize("record", _goldens())
@pytest.mark.parametrize("units", list(Units))
def test_the_raw_page_is_that_of_ncu_cell_by_cell(record: Any, units: Units) -> None:
    corpus.require(corpus.CORPUS)
    which = "raw_csv" if units is Units.AUTO else "raw_base_csv"
    report = _report(record)
    theirs = golden_report.table(corpus.golden(record, which))
    ours = rows(ncu_pages.raw_csv(report, units=units, spelling=Spelling.OLD))
    assert ours[0] == theirs[0]
    assert len(ours) == len(theirs)
    other = _differing_units(ours, theirs)
    if report.launches[0].device.compute_capability in _NEW_CHIPS:
        assert other <= {i for i, unit in enumerate(theirs[1]) if unit == ""}
    else:
        assert len(other) <= 0.02 * len(theirs[0])
    for mine, its in zip(ours[2:], theirs[2:], strict=True):
        differing = [
            (theirs[0][i], a, b)
            for i, (a, b) in enumerate(zip(mine, its, strict=True))
            if a != b and a != "nan" and i not in other and not is_nvtx(theirs[0][i])
        ]
        assert differing == []


def _differing_units(ours: list[list[str]], theirs: list[list[str]]) -> set[int]:
    return {i for i, (a, b) in enumerate(zip(ours[1], theirs[1], strict=True)) if a != b}


def _report(record: Any) -> Report:
    return golden_report.build(
        corpus.golden(record, "metrics_json"),
        corpus.golden(record, "raw_base_csv"),
        corpus.golden(record, "raw_csv"),
        corpus.golden(record, "details_csv") if record["golden"].get("details_csv") else "",
    )


@pytest.mark.corpus
@pytest.mark.parametrize("record", _goldens())
def test_the_details_page_is_that_of_ncu_cell_by_cell(record: Any) -> None:
    corpus.require(corpus.CORPUS)
    text = corpus.golden(record, "details_csv")
    if '"ID"' not in text:
        pytest.skip("ncu printed no details of this report")
    report = _report(record)
    theirs = golden_report.table(text)
    ours = rows(ncu_pages.details_csv(report, spelling=Spelling.OLD))
    assert ours[0] == theirs[0]
    is_new = report.launches[0].device.compute_capability in _NEW_CHIPS
    unit = theirs[0].index("Metric Unit")
    differing: Counter[str] = Counter()
    # Custom sections have labels that no table knows, so that neither value nor order can be
    # rebuilt from golden files; the order itself is another test's.
    ours, theirs = _known_sections(ours), _known_sections(theirs)
    for mine, its in zip(sorted(ours[1:]), sorted(theirs[1:]), strict=True):
        if is_new and its[unit] == "":
            continue
        assert len(mine) == len(its)
        differing.update(
            f"{theirs[0][i]}: {a!r} for {b!r}"
            for i, (a, b) in enumerate(zip(mine, its, strict=True))
            if a != b and not is_nvtx(theirs[0][i])
        )
    # Two or three labels of 2025 and later (tensor memory, tiles) stay unknown to the table.
    assert sum(differing.values()) <= 6, differing


def _known_sections(table: list[list[str]]) -> list[list[str]]:
    position = table[0].index("Section Name")
    known = {"Section Name", COMMAND_LINE_SECTION}
    return [
        row
        for row in table
        if row[position] in known
        or section_identifier(row[position]) != row[position]
        or section_display_name(row[position]) != row[position]
        or row[position] == "Occupancy"
    ]
