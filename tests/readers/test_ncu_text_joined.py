"""ncu's text that went through other hands: indented, quoted, in logs, cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from solscope.errors import ReportError, UnknownUnit
from solscope.model.report import Report
from solscope.reports import formats

SECTION = """    Section: GPU Speed Of Light Throughput
    ----------------- ----------- ------------
    Metric Name       Metric Unit Metric Value
    ----------------- ----------- ------------
    Elapsed Cycles          cycle       18,000
    Memory Throughput           %        45.25
    Duration                   us        10.24
    ----------------- ----------- ------------

"""
PAGE = (
    "[1234] python3@127.0.0.1\n"
    "  gemm(int) (128, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"
    + SECTION
    + "  softmax(int) (64, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 1, CC 9.0\n"
    + SECTION.replace("10.24", "20.48")
)


def read(folder: Path, text: str) -> Report:
    file = folder / "page.txt"
    file.write_text(text)
    report = formats.read(str(file))
    assert isinstance(report, Report)
    return report


def per_line(mark: str) -> Callable[[str], str]:
    def marked(text: str) -> str:
        return "".join(f"{mark.format(n=n)}{line}\n" for n, line in enumerate(text.split("\n")))

    return marked


@pytest.mark.parametrize(
    "carry",
    [
        per_line(""),
        per_line("        "),
        per_line("> "),
        per_line("[rank0]: "),
        per_line("2026-11-30T12:00:0{n}.123Z stdout F "),
        lambda text: "\n".join(line.strip() for line in text.split("\n")),
        lambda text: "\n".join(f"[rank0]: {line}".rstrip() for line in text.split("\n")),
        lambda text: "".join(f"\x1b[1m{line}\x1b[0m\n" for line in text.split("\n")),
    ],
    ids=["as is", "indented", "quoted", "rank", "time", "stripped", "trimmed", "coloured"],
)
def test_launches_stay_apart_however_the_text_was_carried(
    tmp_path: Path, carry: Callable[[str], str]
) -> None:
    found = [
        (one.name, one.grid, one.device.ordinal, one.metrics["gpu__time_duration.sum"])
        for one in read(tmp_path, carry(PAGE)).launches
    ]
    assert found == [("gemm", (128, 1, 1), 0, 10240), ("softmax", (64, 1, 1), 1, 20480)]


@pytest.mark.parametrize("end", ["18,0", "45.2", "20.4", "Memory Thr"])
def test_a_text_cut_in_a_row_loses_that_row(tmp_path: Path, end: str) -> None:
    report = read(tmp_path, PAGE[: PAGE.rindex(end) + len(end)])
    assert not report.complete
    rows = [line.split()[-1] for line in PAGE[: PAGE.rindex(end)].splitlines()[-4:-1]]
    kept = dict(report.launches[1].metrics.items()) if len(report.launches) > 1 else {}
    assert set(kept.values()) <= {18000, 45.25, 20480}
    assert len(kept) == sum(row in ("18,000", "45.25", "20.48") for row in rows)


def test_an_unknown_unit_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(UnknownUnit) as caught:
        read(tmp_path, PAGE.replace("        us", "   furlong"[:10]))
    assert caught.value.where == str(tmp_path / "page.txt")
    with pytest.raises(UnknownUnit) as caught:
        formats.explain(str(tmp_path / "page.txt"))
    assert caught.value.where == str(tmp_path / "page.txt")


def no_dashes(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if "---" not in line)


@pytest.mark.parametrize(
    "carry",
    [
        lambda text: re.sub(r"[ \t]+", " ", text),
        lambda text: "\n".join(" ".join(line.split()) for line in text.split("\n")),
        lambda text: no_dashes(re.sub(r" +", " ", text)),
        lambda text: no_dashes(text),
        lambda text: text.replace("    ", "\t"),
        lambda text: text.replace("--", "\u2014"),
        lambda text: text.replace(" ", "\xa0"),
    ],
    ids=[
        "blanks run together",
        "and stripped",
        "no dashes",
        "wide",
        "tabs",
        "long dash",
        "web page",
    ],
)
def test_rows_whose_columns_are_lost_are_read_by_their_labels(
    tmp_path: Path, carry: Callable[[str], str]
) -> None:
    for launch in read(tmp_path, carry(PAGE)).launches:
        assert launch.metrics["gpc__cycles_elapsed.max"] == 18000
        assert launch.metrics[
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
        ] == (45.25)
        assert launch.metrics["gpu__time_duration.sum"] in (10240, 20480)


def test_a_row_whose_words_do_not_tell_is_left_out_and_said(tmp_path: Path) -> None:
    page = re.sub(r" +", " ", PAGE.replace("Elapsed Cycles ", "Elapsed Lunar Cycles "))
    report = read(tmp_path, page)
    assert [len(one.metrics) for one in report.launches] == [2, 2]
    assert [issue.code for issue in report.issues] == ["rows-not-read", "loose-rows"]


def test_launches_without_any_row_are_said(tmp_path: Path) -> None:
    page = PAGE.replace("Metric Name", "Metrik").replace("Metric Unit", "Einheit")
    assert next(issue.code for issue in read(tmp_path, page).issues) == "no-rows"


def test_texts_of_two_ranks_are_put_apart_by_their_marks_or_refused(tmp_path: Path) -> None:
    one, two = PAGE, PAGE.replace("[1234]", "[1235]").replace("10.24", "30.72")
    mixed = [x for pair in zip(one.split("\n"), two.split("\n"), strict=True) for x in pair]
    marked = "".join(f"[rank{n % 2}]: {line}\n" for n, line in enumerate(mixed))
    found = [
        (one.process_id, one.name, one.metrics["gpu__time_duration.sum"])
        for one in read(tmp_path, marked).launches
    ]
    assert found == [
        (1234, "gemm", 10240),
        (1234, "softmax", 20480),
        (1235, "gemm", 30720),
        (1235, "softmax", 20480),
    ]
    with pytest.raises(ReportError, match="stands twice under one launch"):
        read(tmp_path, "\n".join(mixed))


def test_blocks_of_two_processes_in_one_text_are_refused(tmp_path: Path) -> None:
    two = PAGE.replace("[1234]", "[1235]").replace("10.24", "30.72")
    at = PAGE.index("Memory Throughput") + 5
    with pytest.raises(ReportError, match="the output of several processes is mixed"):
        read(tmp_path, PAGE[:at] + two[:at] + PAGE[at:] + two[at:])
    unended = read(tmp_path, f"printed without a line end{PAGE}")
    assert [one.name for one in unended.launches] == ["gemm", "softmax"]


def test_a_section_that_comes_again_is_another_launchs(tmp_path: Path) -> None:
    lost = PAGE.replace("  softmax(int) (64, 1, 1)x(256, 1, 1), Context 1, Stream", "  softmax(\n")
    found = [
        (one.name, one.metrics["gpu__time_duration.sum"]) for one in read(tmp_path, lost).launches
    ]
    assert found == [("gemm", 10240), ("(no kernel is named in the text)", 20480)]


def test_names_of_a_web_page_are_those_of_the_kernels(tmp_path: Path) -> None:
    page = PAGE.replace("gemm(int)", "void gemm&lt;128, 64&gt;(int)")
    assert read(tmp_path, f"<pre>{page}</pre>").launches[0].name_full == "void gemm<128, 64>(int)"


@pytest.mark.parametrize("width", [80, 120])
def test_a_name_that_a_terminal_has_broken_is_whole(tmp_path: Path, width: int) -> None:
    name = f"void cutlass::Kernel2<{'x' * 90}<(int)128, 64>>(cutlass::Params<{'y' * 30}>)"
    head = f"  {name} (128, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0"
    broken = "\n".join(head[at : at + width] for at in range(0, len(head), width))
    page = PAGE.replace(
        "  gemm(int) (128, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0", broken
    )
    assert [one.name_full for one in read(tmp_path, page).launches] == [name, "softmax(int)"]
    printed = page.replace("  void", "printed by the program\n  void")
    assert read(tmp_path, printed).launches[0].name_full == name


def test_a_text_without_dashes_ends_with_its_last_line(tmp_path: Path) -> None:
    page = "\n".join(line for line in no_dashes(PAGE).split("\n") if line) + "\n"
    assert read(tmp_path, page).complete
