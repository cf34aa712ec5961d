"""Public problem reports about CSV, reading and metrics: the right answer, never the tempting one.

The cases lie beside the corpus; each test names the ones that it covers.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pytest
from tests import corpus

from solscope.model.report import Report
from solscope.model.summary import SummaryReport
from solscope.reports import lookalikes, ncu_csv

CASES = corpus.SHARED / "cases" / "cases.json"


@lru_cache(maxsize=1)
def _cases() -> dict[str, Any]:
    found = json.loads(corpus.require(CASES).read_text())
    listed = found["cases"] if isinstance(found, dict) else found
    return {case["id"]: case for case in listed}


def _probe(case: str, name: str) -> bytes:
    return str(_cases()[case]["probe"]["files"][name]).encode()


def _expected(case: str) -> dict[str, Any]:
    value: dict[str, Any] = _cases()[case]["expected"]["value"]
    return value


def read(case: str, name: str = "raw.csv", **options: Any) -> Report:
    data = _probe(case, name)
    assert ncu_csv.recognises(data, name)
    return ncu_csv.read(name, data, "0" * 64, **options)


@pytest.mark.parametrize("case", ["csv-01", "csv-02"])
def test_units_row_and_thousands(case: str) -> None:
    (launch,) = read(case).launches
    expected = _expected(case)
    assert launch.metrics["gpu__time_duration.sum"] == expected["duration_ns"]
    assert launch.metrics["dram__bytes_read.sum"] == expected["dram_read_bytes"]


def test_csv_04_both_spellings_give_one_number() -> None:
    (old,), (new,) = read("csv-04", "old.csv").launches, read("csv-04", "new.csv").launches
    assert old.metrics["gpu__time_duration.sum"] == _expected("csv-04")["duration_ns"]
    assert dict(old.metrics.values) == dict(new.metrics.values)


def test_csv_05_ragged_rows() -> None:
    (launch,) = read("csv-05", "d.csv").launches
    assert len(launch.metrics) == _expected("csv-05")["metrics"]
    assert len(launch.details.rules()) == _expected("csv-05")["rules"]


def test_csv_06_preamble_and_other_column_count() -> None:
    assert len(read("csv-06", "out.csv").launches) == _expected("csv-06")["kernels"]


def test_csv_07_nvtx_is_no_kernel_name() -> None:
    (launch,) = read("csv-07").launches
    assert launch.name_full == _expected("csv-07")["kernel"]
    assert [r.name for r in launch.details.nvtx()] == [_expected("csv-07")["nvtx"]]


def test_csv_10_three_states_and_never_a_zero() -> None:
    report = read("csv-10")
    first, second = report.launches
    assert first.metrics.get("a.sum") is None
    assert second.metrics["a.sum"] == 5
    assert len(first.metrics) == 0
    assert any("not available" in issue.what for issue in report.issues)


def test_csv_12_a_summary_is_a_summary() -> None:
    report = read("csv-12", "s.csv")
    assert isinstance(report, SummaryReport)
    (summary,) = report.summaries
    duration = summary.metric("gpu__time_duration.sum")
    assert summary.invocations == _expected("csv-12")["invocations"]
    assert duration is not None
    assert duration.average == _expected("csv-12")["duration_avg_us"] * 1000


def test_csv_13_devices_and_processes_stay_apart() -> None:
    report = read("csv-13")
    assert len(report.devices) == _expected("csv-13")["devices"]
    assert [(x.process_id, x.device.ordinal) for x in report.launches] == [(11, 0), (12, 1)]


def test_metric_01_a_warning_about_some_metrics_is_no_failure() -> None:
    data = _probe("metric-01", "ncu.log")
    found = lookalikes.name_of(data, "ncu.log")
    assert found is not None
    assert found.kind == "ncu-log"
    assert "permission" not in found.what


def test_init_07_a_warning_about_section_files_is_kept_with_its_advice() -> None:
    report = read("init-07", "out.csv")
    assert report.launches[0].metrics["gpu__time_duration.sum"] == 12500
    assert "HOME" in report.issues[0].what
    assert all(issue.severity == "info" for issue in report.issues)


def test_hang_05_configurations_stay_apart() -> None:
    report = read("hang-05")
    assert len({(x.grid, x.block) for x in report.launches}) == 3
    assert [x.metrics["gpu__time_duration.sum"] for x in report.launches] == [91200, 55000, 210900]


def test_nokern_10_a_log_named_csv_is_a_log() -> None:
    found = lookalikes.name_of(_probe("nokern-10", "out.csv"), "out.csv")
    assert found is not None
    assert "without any table; no kernel matched" in found.what


def test_file_02_look_alikes_are_named() -> None:
    names = []
    for name in ("lfs.ncu-rep", "html.ncu-rep", "empty.ncu-rep"):
        found = lookalikes.name_of(_probe("file-02", name), name)
        assert found is not None
        names.append(found.what)
    for word, what in zip(_cases()["file-02"]["expected"]["must_say"], names, strict=True):
        assert word in what


def test_metric_02_read_and_write_bytes_are_there_when_the_total_is_not() -> None:
    (launch,) = read("metric-02").launches
    total = launch.metrics["dram__bytes_read.sum"] + launch.metrics["dram__bytes_write.sum"]
    expected = _expected("metric-02")
    assert total == pytest.approx(expected["dram_bytes"], rel=expected["tolerance"])
    assert launch.metrics.get("dram__bytes.sum") is None


def test_metric_04_and_06_zeros_and_absences_are_told_apart() -> None:
    (gemm,) = read("metric-04").launches
    name = "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum"
    assert gemm.metrics[name] == 0
    assert gemm.metrics["sm__inst_executed_pipe_tensor_op_gmma.sum"] == 1048576
    report = read("metric-06")
    assert report.launches[0].metrics.get("dram__bytes.sum") is None
    assert report.launches[0].metrics.valueless() == ("dram__bytes.sum",)


def test_metric_07_what_was_asked_for_and_is_missing_is_named() -> None:
    asked = _probe("metric-07", "cmd.txt").decode().rsplit(" ", 1)[1].strip().split(",")
    report = read("metric-07", requested=asked)
    assert [absence.field for absence in report.absences] == ["dram__bytes.sum"]


def test_metric_08_a_basic_set_holds_no_flops_and_no_bytes() -> None:
    (launch,) = read("metric-08", "d.csv").launches
    assert sorted(launch.metrics) == [
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
    ]
