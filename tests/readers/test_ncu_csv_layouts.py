"""Layouts, encodings and damage that files in the wild show, each in a few lines."""

from __future__ import annotations

import gzip

import pytest

from solscope.errors import ReportError, UnknownUnit
from solscope.model.report import Report
from solscope.model.summary import SummaryReport
from solscope.reports import ncu_csv

HEAD = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream"'
RAW = (
    '"ID","Process ID","Kernel Name","Block Size","Grid Size","Device","CC",'
    '"dram__bytes_read.sum","gpu__time_duration.sum"\n'
    '"","","","","","","","Mbyte","usecond"\n'
    '"0","11","addConst(int, double *, double)","(256, 1, 1)","(12288, 1, 1)","0","8.6",'
    '"25.170176","89.728000"\n'
)
SOL = "GPU Speed Of Light Throughput"


def read(text: str | bytes, **options: str) -> Report:
    data = text.encode() if isinstance(text, str) else text
    assert ncu_csv.recognises(data[:65536], "x.csv") or data[:2] == b"\x1f\x8b"
    return ncu_csv.read("x.csv", data, "0" * 64, **options)


def details(*rows: str, columns: str = "", process: str = "11") -> str:
    head = f'"ID","Process ID","Kernel Name"{columns},"Section Name","Metric Name"'
    body = "".join(f'"0","{process}","k",{row}\n' for row in rows)
    return f'{head},"Metric Unit","Metric Value"\n{body}'


def test_the_units_row_is_no_kernel_and_scales_each_column_for_itself() -> None:
    (launch,) = read(RAW).launches
    assert launch.metrics["dram__bytes_read.sum"] == 25170176
    assert launch.metrics["gpu__time_duration.sum"] == 89728
    assert (launch.name, launch.grid, launch.block) == ("addConst", (12288, 1, 1), (256, 1, 1))
    assert launch.device.compute_capability == (8, 6)


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("addConst", "größe").encode("latin-1"),
        lambda text: gzip.compress(text.encode()),
        lambda text: text.replace('","', '";"').encode(),
        lambda text: text.replace('","', '"\t"').encode(),
        lambda text: ("Loading, please wait\n==PROF== Connected\n" + text).encode(),
        lambda text: (text + "==PROF== Disconnected from process 5\n").encode(),
    ],
)
def test_encodings_line_ends_delimiters_and_preambles_change_nothing(encode: object) -> None:
    (launch,) = read(encode(RAW)).launches
    assert launch.metrics["dram__bytes_read.sum"] == 25170176
    assert launch.metrics["gpu__time_duration.sum"] == 89728


def test_an_unknown_unit_is_an_error_with_its_text() -> None:
    with pytest.raises(UnknownUnit, match="'furlong'"):
        read(RAW.replace("usecond", "furlong"))


def test_without_a_units_row_scaled_metrics_are_not_read() -> None:
    text = (
        '"ID","Kernel Name","gpu__time_duration.sum","sm__throughput.avg.pct"\n"0","k","89","4.5"\n'
    )
    report = read(text)
    (launch,) = report.launches
    assert dict(launch.metrics.values) == {"sm__throughput.avg.pct": 4.5}
    assert launch.metrics.valueless() == ("gpu__time_duration.sum",)
    assert [issue.code for issue in report.issues] == ["without-unit"]


def test_the_german_number_alone_is_refused_until_the_locale_is_named() -> None:
    text = details(f'"{SOL}","Elapsed Cycles","cycle","63.343"')
    with pytest.raises(ReportError, match="decimal or as thousands"):
        read(text)
    (german,) = read(text, locale="de_DE").launches
    (plain,) = read(text, locale="C").launches
    assert german.metrics["gpc__cycles_elapsed.max"] == 63343
    assert plain.metrics["gpc__cycles_elapsed.max"] == 63.343


def test_the_grid_size_settles_a_doubtful_number() -> None:
    text = (
        '"ID","Kernel Name","Grid Size","launch__grid_size","sm__cycles_active.sum"\n'
        '"","","","","cycle"\n"0","k","(4096, 1, 1)","4.096","63.343"\n'
    )
    (launch,) = read(text).launches
    assert launch.metrics["sm__cycles_active.sum"] == 63343


def test_fixed_decimals_and_locale_numbers_stand_in_one_raw_page() -> None:
    text = (
        '"ID","Kernel Name","dram__bytes_read.sum","launch__waves_per_multiprocessor","launch__x"\n'
        '"","","Mbyte","",""\n"0","k","25.170176","46,55","4.096"\n'
    )
    (launch,) = read(text).launches
    assert launch.metrics["dram__bytes_read.sum"] == 25170176
    assert launch.metrics["launch__waves_per_multiprocessor"] == 46.55
    assert launch.metrics["launch__x"] == 4096


def test_numbers_missing_numbers_and_zeros_are_three_things() -> None:
    text = (
        '"ID","Kernel Name","a.sum","b.sum","c.ratio","d.sum"\n"","","byte","byte","","byte"\n'
        '"0","k","no data","","inf","0"\n"1","k","5","n/a","nan","0"\n'
    )
    report = read(text)
    first, second = report.launches
    assert dict(first.metrics.values) == {"d.sum": 0}
    assert first.metrics.valueless() == ("a.sum", "c.ratio")
    assert second.metrics["a.sum"] == 5
    assert [issue.code for issue in report.issues] == ["not-finite", "not-available"]


def test_a_zero_that_the_page_has_no_digits_for_is_told() -> None:
    text = (
        '"ID","Kernel Name","dram__bytes_read.sum","lts__t_bytes.sum","launch__waves","launch__x"\n'
        '"","","Gbyte","Mbyte","",""\n"0","k","2.000000","0.000000","0.00","0"\n'
        '"1","k","0.000000","0.000000","1.50","0"\n'
    )
    (issue,) = read(text).issues
    assert issue.code == "rounded-to-zero"
    assert issue.what.startswith("dram__bytes_read.sum, launch__waves show a 0")


def test_rule_rows_are_advice_and_metric_rows_may_be_short() -> None:
    text = (
        f'{HEAD},"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type",'
        '"Rule Description","Estimated Speedup Type","Estimated Speedup"\n'
        f'"0","1","app","h","k","1","7","{SOL}","Elapsed Cycles","cycle","90985",\n'
        '"0","1","app","h","k","1","7","SpeedOfLight","","","","SOLBottleneck","OPT",'
        '"Over 80.0%, see DRAM.\nAnd ""more"".","local","12.5"\n'
    )
    (launch,) = read(text).launches
    (rule,) = launch.details.rules()
    assert launch.metrics["gpc__cycles_elapsed.max"] == 90985
    assert (rule.rule, rule.kind, rule.section) == ("SOLBottleneck", "optimization", "SpeedOfLight")
    assert rule.message == 'Over 80.0%, see DRAM.\nAnd "more".'
    assert (rule.speedup_kind, rule.speedup_pct) == ("local", 12.5)


def test_launches_of_two_processes_with_one_id_stay_apart() -> None:
    row = f'"{SOL}","Duration","us","9.1"'
    text = details(row) + details(row, process="12").split("\n", 1)[1]
    assert [launch.process_id for launch in read(text).launches] == [11, 12]


def test_runs_appended_to_one_file_stay_apart() -> None:
    one = details(f'"{SOL}","Duration","us","9.1"')
    report = read(one + "==PROF== Connected\nstarting again\n" + one.replace("9.1", "9.3"))
    assert [launch.metrics["gpu__time_duration.sum"] for launch in report.launches] == [9100, 9300]
    assert [issue.code for issue in report.issues] == ["stray-lines"]


def test_a_program_that_prints_between_rows_makes_no_launch() -> None:
    row = f'"{SOL}","Duration","us","9.1"'
    lines = details(row, row).splitlines(keepends=True)
    report = read("".join([lines[0], lines[1], "0, hello, world, 1, 2, 3\n", lines[2]]))
    assert len(report.launches) == 1


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_a_file_cut_in_its_last_row_loses_that_row_and_says_so(cut: int) -> None:
    whole = details(f'"{SOL}","Duration","us","9.1"', f'"{SOL}","Elapsed Cycles","cycle","12345"')
    report = read(whole[: -1 - cut])
    assert not report.complete
    assert [issue.code for issue in report.issues] == ["truncated"]
    assert list(report.launches[0].metrics) == ["gpu__time_duration.sum"]


def test_a_raw_page_cut_in_its_last_row_loses_that_launch() -> None:
    report = read(RAW + RAW.splitlines()[2][:-30])
    assert not report.complete
    assert len(report.launches) == 1


def test_a_missing_last_line_end_is_no_damage() -> None:
    assert read(RAW.rstrip("\n")).complete
    assert read(details(f'"{SOL}","Duration","us","9.1"').rstrip("\n")).complete


def test_unknown_labels_keep_their_value_under_section_and_label() -> None:
    report = read(details('"My Section","My Label","byte","512"'))
    assert report.launches[0].metrics["My Section: My Label"] == 512
    assert [issue.code for issue in report.issues] == ["unknown-label"]


def test_one_unknown_label_for_several_numbers_has_no_value() -> None:
    row = '"My Section","Cycles","cycle","{}"'
    report = read(details(row.format(5), row.format(900)))
    assert "My Section: Cycles" not in report.launches[0].metrics
    assert "differing-values" in [issue.code for issue in report.issues]


LOAD = "GPU and Memory Workload Distribution"


def rolled(*values: str) -> Report:
    row = f'"{LOAD}","Workload Distribution","SM Active Cycles","cycle"'
    text = details(*(f'{row},"{value}"' for value in values))
    return read(text.replace('"Section Name",', '"Section Name","Body Item Label",', 1))


def test_four_rows_of_one_label_are_mean_maximum_minimum_and_sum() -> None:
    report = rolled("57873.95", "58493", "57156", "1273227")
    assert dict(report.launches[0].metrics.items()) == {
        "sm__cycles_active.avg": 57873.95,
        "sm__cycles_active.max": 58493,
        "sm__cycles_active.min": 57156,
        "sm__cycles_active.sum": 1273227,
    }
    assert report.issues == ()


@pytest.mark.parametrize(
    "values",
    [
        ("57873.95", "58493", "57156"),  # one is missing: which?
        ("57156", "58493", "57873.95", "1273227"),  # another order than ncu's
        ("57873.95", "58493", "n/a", "1273227"),
    ],
)
def test_rows_that_cannot_be_the_four_stay_a_label_without_a_value(values: tuple[str, ...]) -> None:
    report = rolled(*values)
    assert not [name for name in report.launches[0].metrics if name.startswith("sm__")]
    codes = [issue.code for issue in report.issues]
    assert codes[:2] == ["ambiguous-label", "differing-values"]


def test_four_rows_without_a_value_are_four_metrics_without_one() -> None:
    (launch,) = rolled("n/a", "n/a", "n/a", "n/a").launches
    assert launch.metrics.valueless() == tuple(
        f"sm__cycles_active.{rollup}" for rollup in ("avg", "max", "min", "sum")
    )


def test_kernels_named_after_their_nvtx_range_are_told() -> None:
    title = ',"thread Domain:Push/Pop_Range:PL_Type:PL_Value"'
    text = (
        f'"ID","Process ID"{title},"Kernel Name","launch__grid_size"\n"","","","",""\n'
        '"0","1","7  ""<default domain>:decode:none:none"" ","decode","4"\n'
    )
    (issue,) = read(text).issues
    assert issue.code == "kernel-renamed"


def test_the_layout_of_2019_to_2022_has_a_time_and_no_device() -> None:
    text = (
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context",'
        '"Stream","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        '"0","9","app","127.0.0.1","k(int)","2020-Nov-12 10:10:10","1","7","GPU Speed Of Light",'
        '"Duration","usecond","29.38"\n'
        '"0","9","app","127.0.0.1","k(int)","2020-Nov-12 10:10:10","1","7","GPU Speed Of Light",'
        '"Memory [%]","%","11.62"\n'
    )
    (launch,) = read(text).launches
    assert (launch.name, launch.grid, launch.stream_id) == ("k", None, 7)
    assert launch.metrics["gpu__time_duration.sum"] == 29380
    assert (
        launch.metrics["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"] == 11.62
    )


def test_a_summary_is_read_as_a_summary() -> None:
    text = (
        '"Process ID","Process Name","Kernel Name","Device","CC","Invocations","Section Name",'
        '"Metric Name","Metric Unit","Minimum","Maximum","Average"\n'
        f'"366"," ","k(int)","0","8.6","12","{SOL}","Duration","us","8.0","11.0","9.0"\n'
    )
    report = read(text)
    assert isinstance(report, SummaryReport)
    assert report.launches == ()
    (summary,) = report.summaries
    duration = summary.metric("gpu__time_duration.sum")
    assert summary.invocations == 12
    assert duration is not None
    assert (duration.minimum, duration.maximum, duration.average) == (8000.0, 11000.0, 9000.0)


def test_the_source_page_is_named_and_refused() -> None:
    text = '"Kernel Name","k"\n"Address","Source","Samples"\n"0x1","FADD","3"\n'
    with pytest.raises(ReportError, match="source page"):
        read(text)


def test_metrics_that_were_asked_for_and_are_not_there_are_absences() -> None:
    report = ncu_csv.read("x.csv", RAW.encode(), "0" * 64, requested=("dram__bytes.sum",))
    (absence,) = report.absences
    assert absence.field == "dram__bytes.sum"


def test_explain_tells_unit_factor_and_proof() -> None:
    reading = ncu_csv.explain("x.csv", RAW.encode())
    column = {c.column: c for c in reading.columns}["gpu__time_duration.sum"]
    assert reading.has_units_row
    assert (column.unit, column.base_unit, column.factor) == ("usecond", "ns", 1000.0)
    assert (column.example, column.value) == ("89.728000", 89728.0)


def test_ncus_own_warnings_become_issues() -> None:
    text = "==WARNING== Unable to access the following 2 metrics: a__x.sum, b__y.sum.\n" + RAW
    (issue,) = read(text).issues
    assert issue.code == "metrics-not-accessible"
    assert "a__x.sum" in issue.what
