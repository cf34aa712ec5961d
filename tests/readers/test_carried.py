"""Tables in the wrappings in which people carry them read as what the tool printed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from solscope.errors import ReportError
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


def columns(rows: Rows) -> str:
    """As `nsys stats` prints columns: numbers to the right, names to the left, dashes below."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in (rows[0], tuple("-" * width for width in widths), *rows[1:]):
        *numbers, name = row
        cells = [c.rjust(w) for c, w in zip(numbers, widths, strict=False)]
        lines.append(f" {'  '.join([*cells, name])}\n")
    return "".join(lines)


def plain_csv(rows: Rows) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize("wrap", [columns, plain_csv, bordered])
@pytest.mark.parametrize(
    "mark", ["2026-01-02T03:04:05.{n:09d}Z ", "[pod/vllm-0/nsys] ", "0: ", "> ", "[1,0]<stdout>:"]
)
def test_marks_of_a_log_are_no_part_of_nsys_tables(
    tmp_path: Path, wrap: Callable[[Rows], str], mark: str
) -> None:
    lines = f"Generating report\n{wrap(STATS)}".splitlines(keepends=True)
    report = read(tmp_path, "".join(mark.format(n=n) + line for n, line in enumerate(lines)))
    assert isinstance(report, TimelineReport)
    found = [(t.name_full, t.total_ns, t.launches) for t in report.kernel_times()]
    assert found == [(GEMM, 1.6e6, 10), ("softmax", 4e5, 20)]


@pytest.mark.parametrize(
    "carry",
    [
        lambda text: "\n".join(" ".join(line.split()) for line in text.splitlines()),
        lambda text: "\n".join(
            " ".join(line.split()) for line in text.splitlines() if "---" not in line
        ),
        lambda text: text.replace(" ", "\xa0"),
    ],
    ids=["blanks run together", "and no dashes", "web page"],
)
def test_columns_of_nsys_survive_a_mail(tmp_path: Path, carry: Callable[[str], str]) -> None:
    report = read(tmp_path, carry(columns(STATS)))
    assert isinstance(report, TimelineReport)
    assert [(t.total_ns, t.launches) for t in report.kernel_times()] == [(1.6e6, 10), (4e5, 20)]


def test_launches_of_a_table_of_times_are_no_samples(tmp_path: Path) -> None:
    file = tmp_path / "kern_exec_sum.csv"
    file.write_text("PID,Count,Tot (ns),Tot_Q (ns),Kernel Name\n1,10,100,50,gemm\n")
    with pytest.raises(ReportError, match="a table of nsys stats that is not read"):
        formats.read(str(file))


def test_tables_that_a_servers_log_precedes_are_found(tmp_path: Path) -> None:
    log = "".join(f"INFO {n}: request done in 12.5 ms, 40 tokens\n" for n in range(4000))
    for wrap in (columns, plain_csv, bordered):
        report = read(tmp_path, log + wrap(STATS))
        assert isinstance(report, TimelineReport)
        assert len(report.kernel_times()) == 2
