"""Tables of nsys stats: CSV and text, names of all years, log lines between them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from tests import corpus

from solscope.errors import ReportError, UnknownUnit
from solscope.model.trace import TimelineReport
from solscope.reports import nsys_stats

RECORDS = corpus.records("nsys-stats")
KERNELS = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"


def read(path: Path, text: str) -> TimelineReport:
    file = path / "stats.csv"
    file.write_text(text)
    assert nsys_stats.recognises(text.encode()[:65536], str(file))
    return nsys_stats.read(str(file), "0" * 64)


@pytest.mark.corpus
@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r["file"].split("/")[-1])
def test_every_table_of_the_corpus_reads_as_its_manifest_says(record: dict[str, Any]) -> None:
    path = corpus.require(corpus.CORPUS / record["file"])
    assert nsys_stats.recognises(corpus.raw(path)[:65536], str(path))
    report = nsys_stats.read(str(path), "0" * 64)
    # The manifest counts all lines but the header, where log lines stand before it.
    rows = record["rows"] - (record["preamble_lines"] if record["preamble_lines"] > 1 else 0)
    if report.sums is None:
        assert report.kernels.num_rows + report.copies.num_rows == rows
    else:
        assert len(report.sums) == rows
        assert sum(t.time_share or 0 for t in report.sums) == pytest.approx(1.0, abs=0.05)
        for time in report.sums:
            assert time.total_ns == pytest.approx(time.launches * time.mean_ns, rel=2e-4)


@pytest.mark.corpus
@pytest.mark.parametrize("kind", ["ncu-csv", "ncu-text", "ncu-log", "derived-csv", "cli-variant"])
def test_no_other_file_of_the_corpus_is_taken_for_a_table_of_nsys(kind: str) -> None:
    corpus.require(corpus.CORPUS)
    for record in corpus.records(kind):
        head = corpus.raw(corpus.CORPUS / record["file"])[:65536]
        assert not nsys_stats.recognises(head, record["file"]), record["file"]


@pytest.mark.corpus
def test_a_trace_and_the_export_it_came_from_agree() -> None:
    from solscope.reports import nsys

    path = corpus.find("algo23__nsys__cuda_gpu_trace", "nsys-stats")
    table = nsys_stats.read(str(path), "")
    export = nsys.read(str(corpus.find("algo23__nsys__capture", "nsys-sqlite")), "")
    for column in ("start_ns", "end_ns", "device", "stream", "correlation", "grid_x", "block_x"):
        assert table.kernels[column].to_pylist() == export.kernels[column].to_pylist()
    assert sorted(table.copies["kind"].to_pylist()) == ["HtoD", "HtoD", "Memset"]
    assert sorted(table.copies["end_ns"].to_pylist()) == sorted(export.copies["end_ns"].to_pylist())
    assert [d.name for d in table.devices] == ["NVIDIA B200"]


def test_log_lines_between_tables_are_no_kernels(tmp_path: Path) -> None:
    text = (
        "Processing [t.sqlite] with [cuda_gpu_kern_sum.py]...\n"
        "Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
        '60.0,"1,200,000",12,100000.0,"void gemm<128, 64>(P)"\n'
        "Processing [t.sqlite] with [nvtx_sum.py]...\n"
        "SKIPPED: t.sqlite does not contain NV Tools Extension (NVTX) data.\n"
    )
    (kernel,) = read(tmp_path, text).kernel_times()
    assert (kernel.total_ns, kernel.launches, kernel.time_share) == (1_200_000.0, 12, 0.6)
    assert (kernel.name, kernel.name_full) == ("gemm", "void gemm<128, 64>(P)")


def test_a_skipped_kernel_table_beside_api_calls_says_that_launches_exist(tmp_path: Path) -> None:
    text = (
        "Processing [t.sqlite] with [cuda_gpu_kern_sum.py]...\n"
        "SKIPPED: t.sqlite does not contain CUDA kernel data.\n\n"
        "Processing [t.sqlite] with [cuda_api_sum.py]...\n\n"
        " ** CUDA API Summary (cuda_api_sum):\n\n"
        " Time (%)  Total Time (ns)  Num Calls  Name\n 91.0  9,033  20  cudaLaunchKernel\n"
    )
    report = read(tmp_path, text)
    assert report.kernel_times() == ()
    assert "launches exist: 20 kernel launch calls" in report.issues[0].what


def test_text_columns_under_a_rule_are_read_by_their_places(tmp_path: Path) -> None:
    text = (
        "[5/8] Executing 'gpukernsum' stats report\n\n"
        " Time (%)  Total Time (ns)  Instances  Avg (ns)  Name\n"
        " --------  ---------------  ---------  --------  -----------------\n"
        "     75.0            3,000          3   1,000.0  void a<int>(int,  int)\n"
        "     25.0            1,000          1   1,000.0  b\n\n"
        "[6/8] Executing 'gpumemtimesum' stats report\n\n"
        " Time (%)  Total Time (ns)  Count  Avg (ns)  Operation\n"
        " --------  ---------------  -----  --------  ------------------\n"
        "    100.0              500      1     500.0  [CUDA memcpy HtoD]\n"
    )
    first, second = read(tmp_path, text).kernel_times()
    assert (first.name, first.name_full) == ("a", "void a<int>(int,  int)")
    assert (first.total_ns, second.total_ns) == (3000.0, 1000.0)


def test_the_header_of_2020_gives_the_unit_once_for_the_row(tmp_path: Path) -> None:
    text = (
        "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n"
        "100.0,2000,2,1000.0,900,1100,k\n"
    )
    (kernel,) = read(tmp_path, text).kernel_times()
    assert (kernel.mean_ns, kernel.min_ns, kernel.max_ns) == (1000.0, 900.0, 1100.0)


def test_the_unit_of_the_header_is_obeyed(tmp_path: Path) -> None:
    (kernel,) = read(tmp_path, "Total Time (ms),Instances,Name\n1.5,2,k\n").kernel_times()
    assert kernel.total_ns == 1_500_000.0


def test_times_without_any_unit_are_absent_not_guessed(tmp_path: Path) -> None:
    report = read(tmp_path, "Total Time,Instances,Name\n1500,2,k\n")
    assert report.kernel_times()[0].total_ns is None
    assert report.absences[0].reason == "the header states no unit of time"


def test_an_unknown_unit_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownUnit, match="no factor for the unit 'fortnights'"):
        read(tmp_path, "Total Time (fortnights),Instances,Name\n1,2,k\n")


@pytest.mark.parametrize("cell", ["1.234.567", "12,34", "1 234", "fast", "1e999"])
def test_a_cell_that_is_no_number_is_named(tmp_path: Path, cell: str) -> None:
    with pytest.raises(ReportError, match="is no number"):
        read(tmp_path, f'Total Time (ns),Instances,Name\n"{cell}",2,k\n')


def test_the_same_kernels_in_two_summaries_count_once(tmp_path: Path) -> None:
    text = (
        "Processing [t] with [x/cuda_gpu_kern_sum.py]...\n" + KERNELS + "\n"
        "100.0,10,1,10,10,10,10,0,k\n\n"
        "Processing [t] with [x/cuda_gpu_sum.py]...\n"
        "Time (%),Total Time (ns),Instances,Category,Operation\n"
        "90.0,10,1,CUDA_KERNEL,k\n10.0,1,1,MEMORY_OPER,[CUDA memset]\n"
    )
    report = read(tmp_path, text)
    assert [t.total_ns for t in report.kernel_times()] == [10.0]
    assert any(i.code == "table-not-used" for i in report.issues)


def test_an_empty_kernel_table_is_not_no_kernels_ran(tmp_path: Path) -> None:
    report = read(tmp_path, "Name,Instances\n")
    assert "whether kernels ran is not known" in report.issues[0].what


def test_an_api_table_alone_counts_graph_launches(tmp_path: Path) -> None:
    report = read(tmp_path, "Name,Num Calls\ncudaGraphLaunch,500\n")
    assert report.graph_launches == 500
    assert report.issues[0].what.startswith("cudaGraphLaunch 500 calls: their kernels are not")


def test_a_truncated_row_is_left_out_and_said(tmp_path: Path) -> None:
    report = read(tmp_path, KERNELS + "\n50.0,10,1,10,10,10,10,0,k\n50.0,10,1")
    assert len(report.kernel_times()) == 1
    assert any("1 row of" in i.what and "left out" in i.what for i in report.issues)


def test_a_file_without_a_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\nworld\n")
    with pytest.raises(ReportError, match="no table of nsys stats"):
        nsys_stats.read(str(tmp_path / "x"), "")


def test_a_number_out_of_range_in_a_trace_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="holds a number out of range"):
        read(tmp_path, f"Start (ns),Duration (ns),Strm,Name\n{'9' * 30},5,7,k\n")


def test_a_gzipped_table_reads_like_the_plain_one(tmp_path: Path) -> None:
    text = "Total Time (ns),Instances,Name\n1500,2,k\n"
    packed = tmp_path / "stats.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert nsys_stats.read(str(packed), "").sums == read(tmp_path, text).sums


def test_each_column_is_explained_with_its_unit_and_factor() -> None:
    text = 'Time (%),Total Time (us),Instances,Average,Odd,Name\n50.0,"1,500",2,750,x,k\n'
    reading = nsys_stats.explain("s.csv", text.encode())
    found = {c.column: (c.metric, c.unit, c.factor, c.value) for c in reading.columns}
    assert found == {
        "Time (%)": ("share", "%", 0.01, 0.5),
        "Total Time (us)": ("total_ns", "us", 1000.0, 1_500_000.0),
        "Instances": ("count", "", 1.0, 2.0),
        "Average": ("mean_ns", "us", 1000.0, 750_000.0),
        "Odd": (None, "", 1.0, None),
        "Name": ("name", "", 1.0, "k"),
    }
    assert (reading.delimiter, reading.lines_before_table) == (",", 0)


def test_calls_of_other_libraries_are_not_taken_for_cudas(tmp_path: Path) -> None:
    text = (
        "Total Time (ns),Num Calls,Name\n9,3,poll\n\n"
        "Total Time (ns),Num Calls,Name\n5,2,cudaLaunchKernel\n"
    )
    report = read(tmp_path, text)
    assert [(c.name, c.calls) for c in report.calls] == [("cudaLaunchKernel", 2)]


def test_ranges_are_no_kernels(tmp_path: Path) -> None:
    text = (
        KERNELS + "\n100.0,10,1,10,10,10,10,0,k\n\n"
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Range\n"
        "100.0,99,1,99,99,99,99,0,decode\n"
    )
    assert [t.name for t in read(tmp_path, text).kernel_times()] == ["k"]
