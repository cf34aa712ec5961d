"""What --explain prints says unit, factor and proof."""

from __future__ import annotations

from solscope.model.summary import SummaryReport
from solscope.render import readings
from solscope.reports import ncu_csv

RAW = (
    "Loading\n"
    '"ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum"\n'
    '"","","usecond","byte"\n"0","k","89.728000","no data"\n'
)
SUMMARY = (
    '"Process ID","Kernel Name","Device","Invocations","Section Name","Metric Name","Metric Unit",'
    '"Minimum","Maximum","Average"\n'
    '"1","k(int)","0","12","GPU Speed Of Light Throughput","Duration","us","8.0","11.5","9.0"\n'
)


def test_an_explanation_has_the_file_and_a_line_for_each_column() -> None:
    text = readings.explanation(ncu_csv.explain("x.csv", RAW.encode()))
    assert text == (
        "x.csv: ncu CSV, raw page\n"
        "  encoding    ASCII\n"
        "  delimiter   ','\n"
        "  table       begins after 1 other line\n"
        "  numbers     decimal '.', no number has a mark but the decimal point\n"
        "  units       from the row under the column names\n"
        "\n"
        "column                  metric  as printed         read as   note\n"
        "gpu__time_duration.sum  =       89.728000 usecond  89728 ns\n"
        "dram__bytes.sum         =       no data byte                 not available\n"
    )


def test_summaries_are_shown_with_their_number_of_launches() -> None:
    report = ncu_csv.read("x.csv", SUMMARY.encode(), "0" * 64)
    assert isinstance(report, SummaryReport)
    assert readings.summaries(report) == (
        "k: 12 launches on device 0\n"
        "metric                  minimum  maximum  average  unit\n"
        "gpu__time_duration.sum  8000     11500    9000     ns\n\n"
    )
