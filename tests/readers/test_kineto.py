"""Torch traces: both vendors, streamed, and every way to be cut."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests import corpus
from tests.timelines import host_event, kernel_event, write_trace

from solscope.errors import ReportError
from solscope.model.trace import TimelineReport
from solscope.reports import kineto
from solscope.reports.kineto import stream

RECORDS = corpus.records("torch-trace")
EVENTS = [kernel_event(f"void k{i % 3}<{i}>(int)", 10.0 * i, 2.5) for i in range(40)]


def read(path: Path) -> TimelineReport:
    return kineto.read(str(path), "0" * 64)


@pytest.mark.corpus
@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r["file"].split("/")[-1])
def test_every_trace_of_the_corpus_reads_as_its_manifest_says(record: dict[str, Any]) -> None:
    path = corpus.require(corpus.CORPUS / record["file"])
    assert kineto.recognises(corpus.raw(path)[:65536], str(path))
    report = read(path)
    times = report.kernel_times()
    assert report.kernels.num_rows == record["results"]
    assert len({t.name_full for t in times}) == record["distinct_kernels"]
    assert report.vendor == record["vendor"]
    assert {d.name for d in report.devices} - {None} == set(record.get("gpu", ()))
    distributed = record.get("distributed", {})
    assert (report.rank, report.world_size) == (
        distributed.get("rank"),
        distributed.get("world_size"),
    )
    # The manifest counts CUDA's graph launches; the two AMD traces launch by hipGraphLaunch.
    launched = report.graph_launches or 0
    assert launched == (record["cuda_graph_launches"] if record["vendor"] == "NVIDIA" else 1)
    assert report.kernels["graph_node"].null_count == (
        record["results"] - record["kernels_with_graph_node"]
    )


@pytest.mark.corpus
@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r["file"].split("/")[-1])
def test_streaming_gives_what_loading_the_whole_trace_gives(record: dict[str, Any]) -> None:
    path = corpus.require(corpus.CORPUS / record["file"])
    events = json.loads(corpus.raw(path))["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    copies = [e for e in events if e.get("cat") in ("gpu_memcpy", "gpu_memset")]
    report = read(path)
    assert report.kernels["name"].to_pylist() == [e["name"] for e in kernels]
    assert report.kernels["start_ns"].to_pylist() == [round(e["ts"] * 1000) for e in kernels]
    assert report.kernels["stream"].to_pylist() == [e["args"]["stream"] for e in kernels]
    assert report.copies["bytes"].to_pylist() == [e["args"].get("bytes") for e in copies]
    spent = sum(round(e["dur"] * 1000) for e in kernels)
    assert sum(t.total_ns or 0 for t in report.kernel_times()) == spent


def test_times_are_exact_nanoseconds_at_the_size_of_real_stamps(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", [kernel_event("k", 4909914679597.053, 5.568)])
    (row,) = read(path).kernels.to_pylist()
    assert (row["start_ns"], row["end_ns"]) == (4909914679597053, 4909914679602621)
    assert (row["device"], row["stream"], row["grid_y"], row["block_x"]) == (0, 7, 2, 256)


@pytest.mark.parametrize("chunk", [64, 97, 256, 1000, 1 << 20])
@pytest.mark.parametrize("indent", [None, 0, 2])
def test_the_size_of_a_chunk_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None
) -> None:
    tricky = host_event("user_annotation", 'a},{"ph": "X"}, { "b\\', 1.0, 2.0)
    tricky["args"] = {"list": [{"a": 1}, {"b": [{"c": '"}'}, {"d": 2}]}]}
    events = [*EVENTS[:20], tricky, *EVENTS[20:], tricky]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events, "schemaVersion": 1}, indent=indent))
    monkeypatch.setattr(stream, "CHUNK_BYTES", chunk)
    report = read(path)
    assert report.kernels["name"].to_pylist() == [e["name"] for e in EVENTS]
    assert report.annotations["name"].to_pylist() == [tricky["name"]] * 2


def test_metadata_may_stand_before_and_after_the_events(tmp_path: Path) -> None:
    text = json.dumps(
        {
            "metadata": {"note": 'not "traceEvents": [ yet', "traceEvents": [1]},
            "traceEvents": EVENTS,
            "cuda_runtime_version": 12040,
            "distributedInfo": {"rank": 3, "world_size": 8},
        }
    )
    (tmp_path / "t.json").write_text(text)
    report = read(tmp_path / "t.json")
    assert (report.rank, report.world_size, report.vendor) == (3, 8, "NVIDIA")
    assert report.provenance.tool_version == "cuda_runtime 12040"


def test_a_bare_list_of_events_is_a_trace_too(tmp_path: Path) -> None:
    text = json.dumps(EVENTS)
    (tmp_path / "t.json").write_text(text)
    assert kineto.recognises(text.encode(), "t.json")
    assert read(tmp_path / "t.json").kernels.num_rows == 40


def test_categories_of_torch_before_1_13_are_known(tmp_path: Path) -> None:
    old = [
        {**kernel_event("k", 1, 2), "cat": "Kernel"},
        {**kernel_event("Memcpy HtoD (Pageable -> Device)", 1, 2, bytes=8), "cat": "Memcpy"},
        host_event("Runtime", "cudaLaunchKernel", 0, 1),
    ]
    report = read(write_trace(tmp_path / "t.json", old))
    assert (report.kernels.num_rows, report.kernel_launches) == (1, 1)
    assert report.copies["kind"].to_pylist() == ["HtoD"]


def test_graph_launches_annotations_and_nodes_are_kept(tmp_path: Path) -> None:
    events = [
        kernel_event("k", 1, 2, **{"graph node id": 9}),
        host_event("cuda_runtime", "cudaGraphLaunch", 0, 1),
        host_event("user_annotation", "ProfilerStep#3", 0, 5),
        {**host_event("gpu_user_annotation", "ProfilerStep#3", 1, 4), "pid": 2},
    ]
    report = read(write_trace(tmp_path / "t.json", events))
    assert report.graph_launches == 1
    assert report.kernel_times()[0].in_graphs == 1
    assert report.annotations["side"].to_pylist() == ["host", "gpu"]
    assert report.annotations["device"].to_pylist() == [None, 2]


def test_a_trace_without_kernels_says_that_launches_exist(tmp_path: Path) -> None:
    events = [host_event("cuda_runtime", "cudaLaunchKernel", i, 1) for i in range(5)]
    report = read(write_trace(tmp_path / "t.json", events))
    assert "launches exist: 5 kernel launch calls" in report.issues[0].what
    assert report.absences[0].field == "kernels"


def test_python_stacks_are_said_to_slow_the_host(tmp_path: Path) -> None:
    events = [*EVENTS, host_event("python_function", "a.py(1): f", 0, 1)]
    report = read(write_trace(tmp_path / "t.json", events))
    assert report.host_slowed_by == "Python stacks (1 frames recorded)"
    assert read(write_trace(tmp_path / "u.json", EVENTS)).host_slowed_by is None


def test_amd_is_said_by_the_runtime_or_by_the_calls(tmp_path: Path) -> None:
    call = host_event("cuda_runtime", "hipLaunchKernel", 0, 1)
    assert read(write_trace(tmp_path / "a.json", [*EVENTS, call])).vendor == "AMD"
    named = write_trace(tmp_path / "b.json", EVENTS, hip_runtime_version=1)
    assert read(named).vendor == "AMD"
    assert read(write_trace(tmp_path / "c.json", EVENTS)).vendor is None


def test_an_unknown_schema_version_is_named(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", EVENTS, schemaVersion=2)
    with pytest.raises(ReportError, match="schema version 2 of a torch trace is not known"):
        read(path)


@pytest.mark.parametrize("part", [0.02, 0.3, 0.7, 0.97, 0.999])
def test_a_cut_trace_is_never_read_as_a_whole_one(tmp_path: Path, part: float) -> None:
    path = write_trace(tmp_path / "t.json", EVENTS)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(ReportError, match=r"cut|damaged") as caught:
        read(path)
    assert caught.value.where == str(path)


def test_a_cut_gzip_is_named(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", EVENTS)
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(packed).kernels.num_rows == 40
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(ReportError, match="gzip data is cut or damaged"):
        read(packed)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"schemaVersion": 1, "a": [1, 2]}', "no list of trace events"),
        ('{"traceEvents": [{"ph": "X"}, {"ph" "X"}]}', "damaged JSON after 0 events"),
        ('{"traceEvents": [{"ph": 7}]}', "damaged JSON after 0 events.*ph"),
        ('{"traceEvents": []} trailing', "cut or damaged after its 0 events"),
        ('[{"ph": "X"}] trailing', "text follows the events"),
        ("", "the trace is cut"),
    ],
)
def test_damaged_json_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ReportError, match=says):
        read(tmp_path / "t.json")


def test_events_of_odd_types_are_counted_not_trusted(tmp_path: Path) -> None:
    events = [
        kernel_event("k", 1, 2),
        {**kernel_event("k", 1, 2), "ts": "soon"},
        {**kernel_event("k", 1, 2), "dur": -1},
        kernel_event("k", 1, 2, device="GPU0", stream=1e9, grid="all", correlation=True),
    ]
    report = read(write_trace(tmp_path / "t.json", events))
    assert report.kernels.num_rows == 2
    assert any(i.what.startswith("2 events have no usable begin") for i in report.issues)
    last = report.kernels.to_pylist()[1]
    assert [last[c] for c in ("device", "stream", "grid_x", "correlation")] == [None] * 4


@pytest.mark.parametrize(
    "events",
    [
        [{"ph": "X", "pid": 1, "tid": 13, "ts": 1.0, "dur": 5.0, "name": "fusion", "args": {}}],
        [{"ph": "X", "cat": "cuda", "pid": "Device 0", "ts": 1.0, "dur": 5.0, "name": "k"}],
        [{"ph": "X", "cat": "toplevel", "pid": 1, "ts": 1.0, "dur": 5.0, "name": "RunTask"}],
    ],
    ids=["JAX", "converted from nsys", "a browser"],
)
def test_a_trace_of_another_tool_is_not_one_without_kernels(
    tmp_path: Path, events: list[dict[str, Any]]
) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": events}))
    with pytest.raises(ReportError, match="not torch's profiler's; its categories are"):
        kineto.read(str(path), "0")


def test_kernels_as_begin_and_end_are_counted_as_left_out(tmp_path: Path) -> None:
    event = {"cat": "kernel", "name": "k", "pid": 0, "tid": 7}
    path = write_trace(tmp_path / "t.json", [event | {"ph": "B", "ts": 1}, event | {"ph": "E"}])
    codes = [issue.code for issue in kineto.read(str(path), "0").issues]
    assert codes == ["kernels-not-recorded", "rows-without-duration"]


def test_a_byte_order_mark_is_no_part_of_the_json(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", [kernel_event("k", 1.0, 2.0)])
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert kineto.recognises(path.read_bytes(), "t.json")
    assert kineto.read(str(path), "0").kernels.num_rows == 1


def test_a_cut_trace_says_after_how_many_events(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", [kernel_event("k", float(n), 0.5) for n in range(5)])
    text = path.read_text()
    path.write_text(text[: text.index('"ts": 3.0')])
    with pytest.raises(ReportError, match="cut after 3 events"):
        kineto.read(str(path), "0")


def test_kernels_that_stand_twice_are_said(tmp_path: Path) -> None:
    events = [kernel_event("k", float(n), 0.5) for n in range(5)]
    report = kineto.read(str(write_trace(tmp_path / "t.json", [*events, *events[:2]])), "0")
    (issue,) = report.issues
    assert issue.code == "repeated-kernels"
    assert issue.what.startswith("2 kernels")
    assert report.kernels.num_rows == 7
