"""Output of nsys stats that went through other hands: spreadsheets, appended captures."""

from __future__ import annotations

from pathlib import Path

import pytest

from solscope.errors import ReportError
from solscope.model.trace import KernelTime, TimelineReport
from solscope.reports import formats

GEMM = "void gemm<float, 128>(float *, int)"
HEADER = ("Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Name")
ROWS = (("60.5", "1600000", "10", "160000.5", GEMM), ("39.5", "400000", "20", "20000.0", "softmax"))
TRACE = "Start (ns),Duration (ns),CorrId,Device,Strm,Name\n"


def read(path: Path, text: str | bytes, **options: str) -> TimelineReport:
    file = path / "stats.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    report = formats.read(str(file), **options)
    assert isinstance(report, TimelineReport)
    return report


def table(delimiter: str = ",", decimal: str = ".") -> str:
    lines = [delimiter.join(HEADER)]
    for *numbers, name in ROWS:
        cells = [number.replace(".", decimal) for number in numbers]
        lines.append(delimiter.join([*cells, f'"{name}"' if delimiter == "," else name]))
    return "\n".join(lines) + "\n"


def numbers(report: TimelineReport) -> list[tuple[str, float | None, float | None, float | None]]:
    def row(time: KernelTime) -> tuple[str, float | None, float | None, float | None]:
        return time.name_full, time.total_ns, time.mean_ns, time.time_share

    return [row(time) for time in report.kernel_times()]


EXPECTED = [(GEMM, 1600000.0, 160000.5, 0.605), ("softmax", 400000.0, 20000.0, 0.395)]


@pytest.mark.parametrize(
    "text",
    [
        table(";"),
        table(";", ","),
        table("\t"),
        table("\t", ","),
        table().replace("\n", "\r\n"),
        table().replace("\n", "\r"),
        table().encode("utf-16"),
        table().encode("utf-16-le"),
        "\x1b[1m" + table().replace("\n", "\x1b[0m\n", 1),
    ],
    ids=["semicolons", "German", "tabs", "tabs, German", "CRLF", "CR", "UTF-16", "no BOM", "bold"],
)
def test_what_spreadsheets_and_shells_save_reads_alike(tmp_path: Path, text: str | bytes) -> None:
    assert numbers(read(tmp_path, text)) == EXPECTED


def test_whole_nanoseconds_with_a_point_may_be_thousands(tmp_path: Path) -> None:
    text = "Total Time (ns),Instances,Name\n600.000,10,k\n"
    with pytest.raises(ReportError, match=r"may be thousands"):
        read(tmp_path, text)
    assert read(tmp_path, text, locale="de_DE").kernel_times()[0].total_ns == 600_000
    assert read(tmp_path, text, locale="C").kernel_times()[0].total_ns == 600
    micro = text.replace("(ns)", "(us)")
    assert read(tmp_path, micro).kernel_times()[0].total_ns == 600_000


def test_a_name_that_goes_on_in_the_next_line_is_one_kernel(tmp_path: Path) -> None:
    text = (
        " Total Time (ns)  Instances       Name      \n"
        " ---------------  ---------  ---------------\n"
        "         600,000         10  gemm<float,    \n"
        "                             128>(float *)  \n"
        "         400,000         20  softmax        \n"
    )
    report = read(tmp_path, text)
    assert [t.name_full for t in report.kernel_times()] == ["gemm<float, 128>(float *)", "softmax"]
    assert report.issues == ()


@pytest.mark.parametrize("log", ["Processing [a/r{n}.sqlite] with [cuda_gpu_kern_sum.py]...\n", ""])
def test_the_summary_of_a_second_capture_is_not_called_the_same(tmp_path: Path, log: str) -> None:
    other = table().replace("1600000", "1700000")
    text = log.format(n=0) + table() + "\n" + log.format(n=1) + other
    report = read(tmp_path, text)
    assert numbers(report) == EXPECTED
    (issue,) = report.issues
    assert issue.code == "table-not-read"
    assert ("r1.sqlite" in issue.what) == bool(log)
    same = read(tmp_path, table() + "\n" + table())
    assert [issue.code for issue in same.issues] == ["table-not-used"]


def test_a_second_trace_is_not_dropped_silently(tmp_path: Path) -> None:
    text = TRACE + "10,5,1,GPU (0),7,k\n\n" + TRACE + "90,5,1,GPU (0),7,k\n"
    report = read(tmp_path, text)
    assert report.kernels.num_rows == 1
    assert [issue.code for issue in report.issues] == ["table-not-read"]
    report = read(tmp_path, table() + "\n" + TRACE + "10,5,1,GPU (0),7,k\n")
    assert [issue.code for issue in report.issues] == ["table-not-used"]


def test_a_negative_duration_is_left_out_and_counted(tmp_path: Path) -> None:
    report = read(tmp_path, TRACE + "10,-5,1,GPU (0),7,k\n20,5,1,GPU (0),7,k\n,5,1,GPU (0),7,k\n")
    assert report.kernels["start_ns"].to_pylist() == [20]
    assert [issue.code for issue in report.issues] == ["rows-without-duration"]
    assert report.issues[0].what.startswith("2 rows")


def test_a_stamp_beyond_the_digits_of_a_double_stays_exact(tmp_path: Path) -> None:
    report = read(tmp_path, TRACE + "1700000000000000001,5,1,GPU (0),7,k\n")
    assert report.kernels["start_ns"].to_pylist() == [1700000000000000001]


def test_the_number_format_of_a_spreadsheet_is_explained(tmp_path: Path) -> None:
    file = tmp_path / "stats.csv"
    file.write_text(table(";", ","))
    found = formats.explain(str(file))
    assert (found.delimiter, found.number_format) == (";", "decimal ',', by '60,5'")
    assert found.columns[3].value == 160000.5


def test_units_and_percent_signs_may_stand_in_the_cells(tmp_path: Path) -> None:
    # So the window of Nsight Systems shows and exports its tables.
    text = (
        "Time\tTotal Time\tInstances\tAvg\tName\n"
        "60.5%\t1.600 ms\t10\t160.001 \u03bcs\tgemm\n"
        "39.5%\t400.000 \u03bcs\t20\t900 ns\tsoftmax\n"
    )
    report = read(tmp_path, text)
    assert numbers(report) == [
        ("gemm", 1_600_000.0, 160_001.0, 0.605),
        ("softmax", 400_000.0, 900.0, 0.395),
    ]
    assert report.absences == ()
