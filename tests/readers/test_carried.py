"""Tables in the wrappings in which people carry them read as what the tool printed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from solscope.model.report import Report
from solscope.model.trace import SampleReport, TimelineReport
from solscope.reports import formats

GEMM = "void gemm<float, 128>(float *, int)"
STATS = (
    ("Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Name"),
    ("80.0", "1,600,000", "10", "160,000.0", GEMM),
    ("20.0", "400,000", "20", "20,000.0", "softmax"),
)
DETAILS = (
    (
        "ID",
        "Process ID",
        "Kernel Name",
        "Section Name",
        "Metric Name",
        "Metric Unit",
        "Metric Value",
    ),
    ("0", "7", GEMM, "GPU Speed Of Light Throughput", "Duration", "us", "10.24"),
    ("0", "7", GEMM, "GPU Speed Of Light Throughput", "Memory Throughput", "%", "45.25"),
    ("0", "7", GEMM, "Memory Workload Analysis", "Memory Throughput", "Gbyte/s", "1.5"),
)
RAW = (
    ("ID", "Process ID", "Kernel Name", "dram__bytes.sum", "gpu__time_duration.sum"),
    ("", "", "", "Mbyte", "us"),
    ("0", "7", GEMM, "2.5", "10.24"),
)
Rows = tuple[tuple[str, ...], ...]


def bordered(rows: Rows) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |\n"
        for row in rows
    ]
    return rule + lines[0] + rule + "".join(lines[1:]) + rule


def markdown(rows: Rows) -> str:
    head, *body = rows
    return "".join(f"|{'|'.join(row)}|\n" for row in (head, ("---:",) * len(head), *body))


def adorned(rows: Rows) -> str:
    """Markdown in a quoted mail, numbers bold, names as code, brackets escaped."""
    head, *body = rows
    cells = [(f"**{row[0]}**" if row[0] else "", *row[1:]) for row in body]
    quoted = [tuple(c.replace("<", "\\<") if c == GEMM else c for c in row) for row in cells]
    return "".join(f"> {line}\n" for line in markdown((head, *quoted)).splitlines())


def records(rows: Rows) -> str:
    head, *body = rows
    return json.dumps([dict(zip(head, row, strict=True)) for row in body], indent=1)


def lines_of_json(rows: Rows) -> str:
    head, *body = rows
    return "".join(json.dumps(dict(zip(head, row, strict=True))) + "\n" for row in body)


def driver_log(rows: Rows) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    printed = f"server started\n{text.getvalue()}"
    return "".join(
        json.dumps(
            {"log": line, "stream": "stdout", "time": "2026-01-02T03:04:05Z"}, separators=(",", ":")
        )
        + "\n"
        for line in printed.splitlines(keepends=True)
    )


WRAPPINGS = (bordered, markdown, adorned, records, driver_log)


def test_records_of_any_collector_hold_the_lines_of_a_page(tmp_path: Path) -> None:
    text = driver_log(DETAILS)
    for key in ("line", "message", "MESSAGE", "msg", "textPayload"):
        report = read(tmp_path, text.replace('"log"', f'"{key}"').replace("\\n", ""))
        assert isinstance(report, Report)
        assert len(report.launches[0].metrics) == 3


def read(folder: Path, text: str) -> Report | TimelineReport | SampleReport:
    file = folder / "table"
    file.write_text(text)
    return formats.read(str(file))


@pytest.mark.parametrize("wrap", WRAPPINGS)
def test_tables_of_nsys_keep_their_numbers(tmp_path: Path, wrap: Callable[[Rows], str]) -> None:
    noise = "Processing [t.sqlite] with [cuda_gpu_kern_sum.py]... \n\n"
    for text in (wrap(STATS), noise + wrap(STATS) if wrap is not driver_log else wrap(STATS)):
        report = read(tmp_path, text)
        assert isinstance(report, TimelineReport)
        found = [(t.name_full, t.total_ns, t.launches, t.time_share) for t in report.kernel_times()]
        assert found == [(GEMM, 1.6e6, 10, 0.8), ("softmax", 4e5, 20, 0.2)]


@pytest.mark.parametrize("wrap", [*WRAPPINGS, lines_of_json])
def test_pages_of_ncu_keep_their_units(tmp_path: Path, wrap: Callable[[Rows], str]) -> None:
    details = read(tmp_path, wrap(DETAILS))
    assert isinstance(details, Report)
    (launch,) = details.launches
    assert launch.name_full == GEMM
    assert sorted(launch.metrics[name] for name in launch.metrics) == [45.25, 10240, 1.5e9]
    raw = read(tmp_path, wrap(RAW))
    assert isinstance(raw, Report)
    (launch,) = raw.launches
    assert dict(launch.metrics.items()) == {
        "dram__bytes.sum": 2500000,
        "gpu__time_duration.sum": 10240,
    }


def test_shares_in_a_markdown_table_are_shares(tmp_path: Path) -> None:
    report = read(tmp_path, markdown((("kernel", "samples"), (GEMM, "30"), ("softmax", "10"))))
    assert isinstance(report, SampleReport)
    assert [(one.name, one.share) for one in report.kernels()] == [(GEMM, 0.75), ("softmax", 0.25)]


def test_several_lists_of_json_are_several_tables(tmp_path: Path) -> None:
    calls = (
        ("Time (%)", "Total Time (ns)", "Num Calls", "Name"),
        ("100", "5", "3", "cudaLaunchKernel"),
    )
    text = (
        f"Processing [t.sqlite] with [cuda_api_sum.py]...\n{records(calls)}\n"
        f"Processing [t.sqlite] with [cuda_gpu_kern_sum.py]...\n{records(STATS)}\n"
    )
    report = read(tmp_path, text)
    assert isinstance(report, TimelineReport)
    assert len(report.kernel_times()) == 2
    assert report.kernel_launches == 3


def test_names_that_a_table_had_no_room_for_are_said(tmp_path: Path) -> None:
    cut = tuple((*row[:-1], row[-1].replace("128>(float *, int)", "\u2026")) for row in STATS)
    report = read(tmp_path, f"```\n{bordered(cut)}```\n")
    assert [issue.code for issue in report.issues] == ["names-cut"]
    assert read(tmp_path, bordered(STATS)).issues == ()


def test_a_table_of_times_in_ones_own_words_is_no_table_of_samples(tmp_path: Path) -> None:
    head = ("Kernel Name", "Time (%)", "Total Time (ns)", "Avg (ns)", "Calls")
    rows = (head, (f"`{GEMM}`", "80.0", "1,600,000", "160,000", "10"))
    report = read(tmp_path, markdown(rows))
    assert isinstance(report, TimelineReport)
    assert [(t.name_full, t.total_ns, t.launches) for t in report.kernel_times()] == [
        (GEMM, 1.6e6, 10)
    ]


def test_explaining_a_wrapped_table_says_what_was_unwrapped(tmp_path: Path) -> None:
    file = tmp_path / "table.md"
    file.write_text(markdown(DETAILS))
    assert formats.explain(str(file)).encoding == "ASCII, a bordered table"
    file.write_text(records(STATS))
    assert formats.explain(str(file)).encoding == "ASCII, JSON"
