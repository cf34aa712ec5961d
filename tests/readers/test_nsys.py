"""Exports of nsys: every generation of the schema, and every way to be none."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests import corpus
from tests.timelines import PROCESS, kernel_row, write_export, write_sqlite

from solscope.errors import ReportError
from solscope.model.trace import UNNAMED, TimelineReport
from solscope.reports import nsys
from solscope.reports.nsys import columns

RECORDS = corpus.records("nsys-sqlite")
HOST_LAUNCHES = (
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, nameId INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 5, 100), (10, 15, 100), (20, 30, 101);"
    "CREATE TABLE IF NOT EXISTS StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (100, 'cudaLaunchKernel_v7000'), (101, 'cudaGraphLaunch_v1');"
)


def read(path: Path) -> TimelineReport:
    return nsys.read(str(path), "0" * 64)


@pytest.mark.corpus
@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r["file"].split("/")[-1])
def test_every_export_of_the_corpus_reads_as_its_manifest_says(record: dict[str, Any]) -> None:
    path = corpus.require(corpus.CORPUS / record["file"])
    assert nsys.recognises(corpus.raw(path)[:65536], str(path))
    report = read(path)
    assert report.kernels.num_rows == record.get("results", 0)
    assert report.provenance.tool_version in (record.get("nsys_version"), "2022.1.1.61")
    assert report.vendor == "NVIDIA"
    assert {d.name for d in report.devices} <= set(record.get("gpu", ()))
    if record["has_kernel_table"]:
        times = report.kernel_times()
        distinct = ({t.name for t in times}, {t.name_full for t in times})
        assert record["distinct_kernels"] in {len(names) for names in distinct}
        assert {str(t.device) for t in times} == set(record["device_ids"])
        assert sum(t.launches or 0 for t in times) == record["results"]
        printed = tuple(distinct[0] | distinct[1])
        assert all(any(p.startswith(k) for p in printed) for k in record["kernels"])
        assert UNNAMED not in distinct[0]
    assert bool(report.annotations.num_rows) <= record["has_nvtx"]


@pytest.mark.corpus
def test_an_export_without_kernel_rows_says_that_launches_exist_and_why() -> None:
    report = read(corpus.find("softmax_500k", "nsys-sqlite"))
    (issue,) = [i for i in report.issues if i.code == "kernels-not-recorded"]
    assert "launches exist: 125 kernel launch calls" in issue.what
    (absence,) = report.absences
    assert absence.remedy is not None
    assert "driver version (13.3) is not supported" in absence.remedy
    assert "0 kernels" not in issue.what


@pytest.mark.corpus
def test_a_capture_on_two_gpus_keeps_them_apart() -> None:
    times = read(corpus.find("h100_2gpu", "nsys-sqlite")).kernel_times()
    per_device = {d: sum(t.total_ns or 0 for t in times if t.device == d) for d in (0, 1)}
    assert len({t.process for t in times}) == 2
    assert all(total > 0 for total in per_device.values())


def test_names_times_and_places_are_those_of_the_rows(tmp_path: Path) -> None:
    rows = [kernel_row(1000, 1600, 0), kernel_row(2000, 2300, 0, node=5), kernel_row(3000, 3100, 1)]
    report = read(write_export(tmp_path / "a.sqlite", rows))
    gemm, nccl = report.kernel_times()
    assert (gemm.name_full, gemm.launches, gemm.total_ns) == ("void ns::gemm<1>(int)", 2, 900.0)
    assert (gemm.min_ns, gemm.max_ns, gemm.in_graphs, gemm.process) == (300.0, 600.0, 1, PROCESS)
    assert (nccl.total_ns, nccl.time_share) == (100.0, 0.1)
    first = report.kernels.slice(0, 1).to_pylist()[0]
    assert (first["grid_x"], first["grid_y"], first["block_x"]) == (8, 2, 256)


def test_the_table_of_the_highest_suffix_is_used_and_said(tmp_path: Path) -> None:
    more = (
        "CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT);"
        "CREATE TABLE NVTX_EVENTS_V2 (start INT, end INT, text TEXT);"
        "INSERT INTO NVTX_EVENTS_V2 VALUES (0, 10, 'decode'), (20, NULL, 'open');"
    )
    path = write_export(
        tmp_path / "a.sqlite",
        [kernel_row(0, 5, 0)],
        kernel_table="CUPTI_ACTIVITY_KIND_KERNEL_V3",
        version="3.27.0",
        more=more,
    )
    report = read(path)
    said = {issue.what for issue in report.issues if issue.code == "table-suffix"}
    assert said == {"NVTX_EVENTS_V2 used", "CUPTI_ACTIVITY_KIND_KERNEL_V3 used"}
    assert report.annotations["name"].to_pylist() == ["decode"]


def test_registered_nvtx_strings_are_looked_up(tmp_path: Path) -> None:
    more = (
        "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT);"
        "INSERT INTO NVTX_EVENTS VALUES (0, 10, 59, NULL, 0), (0, 9, 34, 'mark', NULL);"
    )
    report = read(write_export(tmp_path / "a.sqlite", [], names=("step",), more=more))
    assert report.annotations["name"].to_pylist() == ["step"]


def test_names_that_are_text_rather_than_ids_are_read(tmp_path: Path) -> None:
    script = (
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, name TEXT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 10, 0, 'k1'), (10, 30, 0, 'k2');"
    )
    times = read(write_sqlite(tmp_path / "a.sqlite", script)).kernel_times()
    assert [(t.name, t.total_ns) for t in times] == [("k2", 20.0), ("k1", 10.0)]


def test_a_name_that_the_export_does_not_explain_stays_unnamed(tmp_path: Path) -> None:
    (time,) = read(write_export(tmp_path / "a.sqlite", [kernel_row(0, 5, 99)])).kernel_times()
    assert time.name == UNNAMED


def test_rows_that_end_before_they_begin_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [kernel_row(0, 5, 0), kernel_row(10, 2, 0)]
    report = read(write_export(tmp_path / "a.sqlite", rows))
    assert report.kernels.num_rows == 1
    assert any(i.what.startswith("1 kernel rows have no begin") for i in report.issues)


def test_whole_graph_replays_are_read_and_named_as_the_place_of_the_kernels(
    tmp_path: Path,
) -> None:
    more = (
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, "
        "streamId INT, correlationId INT, globalPid INT, graphId INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (0, 100, 0, 7, 1, 0, 3);"
    )
    report = read(write_export(tmp_path / "a.sqlite", [], more=more))
    assert report.graphs.num_rows == 1
    assert report.issues[0].code == "kernels-inside-graphs"
    assert report.absences[0].remedy == "capture again with --cuda-graph-trace=node"


def test_launch_calls_without_kernel_rows_are_counted_by_kind(tmp_path: Path) -> None:
    report = read(write_export(tmp_path / "a.sqlite", [], names=(), more=HOST_LAUNCHES))
    assert (report.kernel_launches, report.graph_launches) == (2, 1)
    assert "2 kernel launch calls, cudaGraphLaunch 1 calls" in report.issues[0].what


def test_copies_and_sets_are_told_apart(tmp_path: Path) -> None:
    more = (
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, copyKind INT, "
        "bytes INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, bytes INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 5, 0, 1, 64), (5, 9, 0, 8, 32);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (9, 10, 0, 16);"
    )
    copies = read(write_export(tmp_path / "a.sqlite", [kernel_row(0, 5, 0)], more=more)).copies
    assert copies["kind"].to_pylist() == ["HtoD", "DtoD", "Memset"]
    assert copies["bytes"].to_pylist() == [64, 32, 16]


def test_a_gzipped_export_with_an_odd_name_reads_like_the_plain_one(tmp_path: Path) -> None:
    plain = write_export(tmp_path / "a#b?c%20d.sqlite", [kernel_row(0, 5, 0)])
    packed = tmp_path / "a.sqlite.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(plain).kernel_times() == read(packed).kernel_times()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("CREATE TABLE notes (x INT);", "nsys did not export; its tables are notes"),
        ("CREATE TABLE StringTable (_id_ INT, value TEXT);", "database of nvprof"),
        (
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (begin INT, finish INT);",
            "no column for start, end, name in a known spelling; it has begin, finish",
        ),
        (
            "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
            "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '4.0.0');",
            "schema version 4.0.0 is not known; the newest known is 3.x",
        ),
    ],
)
def test_what_is_no_known_export_is_named(tmp_path: Path, script: str, says: str) -> None:
    path = write_sqlite(tmp_path / "a.sqlite", script)
    with pytest.raises(ReportError, match=says) as caught:
        read(path)
    assert caught.value.where == str(path)


def test_a_cut_export_is_never_read_as_a_whole_one(tmp_path: Path) -> None:
    whole = write_export(tmp_path / "a.sqlite", [kernel_row(i, i + 1, 0) for i in range(2000)])
    data = whole.read_bytes()
    whole.write_bytes(data[: len(data) // 2])
    with pytest.raises(ReportError, match=f"cut: {len(data) // 2} of {len(data)} bytes"):
        read(whole)


def test_a_cut_gzip_is_named(tmp_path: Path) -> None:
    whole = write_export(tmp_path / "a.sqlite", [kernel_row(0, 1, 0)])
    packed = tmp_path / "a.sqlite.gz"
    packed.write_bytes(gzip.compress(whole.read_bytes())[:-30])
    with pytest.raises(ReportError, match="gzip data is cut or damaged"):
        read(packed)


def test_damaged_pages_are_named(tmp_path: Path) -> None:
    path = write_export(tmp_path / "a.sqlite", [kernel_row(i, i + 1, 0) for i in range(2000)])
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 6] = b"\xff" * (4096 * 4)
    path.write_bytes(bytes(data))
    with pytest.raises(ReportError, match=r"damaged|cannot be read"):
        read(path)


def test_reading_by_ranges_of_rows_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [kernel_row(i * 10, i * 10 + i % 7, i % 2) for i in range(1000)]
    path = write_export(tmp_path / "a.sqlite", rows)
    whole = read(path).kernels
    monkeypatch.setattr(columns, "RANGE_ROWS", 64)
    monkeypatch.setattr(columns, "BATCH_ROWS", 10)
    assert read(path).kernels.equals(whole)
    assert whole["start_ns"].to_pylist() == [i * 10 for i in range(1000)]


def test_graph_launches_beside_plain_kernels_are_said_to_hide_executions(tmp_path: Path) -> None:
    path = write_export(
        tmp_path / "a.sqlite", [kernel_row(0, 5, 100)], names=(), more=HOST_LAUNCHES
    )
    assert read(path).issues[0].what.startswith("cudaGraphLaunch 1 calls")
    with_node = [kernel_row(0, 5, 100, node=3)]
    path = write_export(tmp_path / "b.sqlite", with_node, names=(), more=HOST_LAUNCHES)
    assert all(issue.code != "graphs-hide-kernels" for issue in read(path).issues)


def test_rows_in_a_write_ahead_log_are_never_left_out_silently(tmp_path: Path) -> None:
    path = write_export(tmp_path / "a.sqlite", [kernel_row(10, 30, 0)])
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("INSERT INTO StringIds VALUES (9, 'late')")
    writer.commit()
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    for given in (path, link):
        with pytest.raises(ReportError, match=r"a\.sqlite-wal"):
            nsys.read(str(given), "0")
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert nsys.read(str(path), "0").kernels.num_rows == 1
    writer.close()


def test_an_export_that_is_being_written_is_named(tmp_path: Path) -> None:
    path = write_export(tmp_path / "a.sqlite", [kernel_row(10, 30, 0)])
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA cache_size=1")
    writer.execute("BEGIN")
    writer.executemany(
        "INSERT INTO StringIds VALUES (?, ?)", [(n, "x" * 99) for n in range(9, 999)]
    )
    with pytest.raises(ReportError, match="being written"):
        nsys.read(str(path), "0")
    writer.execute("ROLLBACK")
    writer.close()
    assert nsys.read(str(path), "0").kernels.num_rows == 1


def test_whole_replays_beside_single_kernels_are_said_to_be_in_no_share(tmp_path: Path) -> None:
    graphs = (
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, "
        "deviceId INTEGER, streamId INTEGER, graphId INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (100, 900, 0, 7, 1);"
    )
    rows = [kernel_row(10, 30, 0), kernel_row(40, 50, 0, node=5)]
    report = read(write_export(tmp_path / "a.sqlite", rows, more=graphs))
    (issue,) = (issue for issue in report.issues if issue.code == "graphs-hide-kernels")
    assert "1 replay of CUDA graphs" in issue.what
