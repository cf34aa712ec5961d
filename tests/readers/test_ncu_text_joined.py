"""ncu's text that went through other hands: indented, quoted, in logs, cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from solscope.errors import UnknownUnit
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
