"""Files that look like reports are named for what they are."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests import corpus

from solscope.errors import ReportError
from solscope.model.trace import SampleReport
from solscope.reports import formats, lookalikes, ncu_csv, ncu_text

EXPECTED = {
    "lfs-pointer": {"lfs-pointer"},
    "derived-csv": {"derived-table"},
    "ncu-log": {"ncu-log"},
}


def kind(text: str) -> str | None:
    found = lookalikes.name_of(text.encode(), "x")
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "lfs-pointer"),
        ("\n<!DOCTYPE html><html>", "html"),
        ("==PROF== Connected to process 1\n==WARNING== No kernels were profiled.\n", "ncu-log"),
        ("==1234== NVPROF is profiling process 1234\n", "other-log"),
        ("========= COMPUTE-SANITIZER\n", "other-log"),
        ("kernel,dram__bytes.sum (Mb)\nk,3.5\n", "derived-table"),
        ("k,metric,value\nk,Achieved Occupancy,3.5\n", "derived-table"),
        ("Launching NCU on x...\nNCU exit=1\n", "ncu-log"),
        (
            "Time (%),Total Time (ns),Count,Avg (ns),Operation\n1,2,3,4,[CUDA memset]\n",
            "nsys-table",
        ),
        (
            '"0","12","a.out","h","k","1","7","(256, 1, 1)","(8, 1, 1)","0","9.0","4"\n',
            "headless-table",
        ),
        (
            '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"g",1,2,2,100\n',
            "other-tool",
        ),
        ('"Dispatch_ID","Kernel_Name","Start_Timestamp","End_Timestamp"\n1,g,2,3\n', "other-tool"),
        (
            '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,ms,,us,us,us,\n',
            "other-tool",
        ),
        ("   Name    Self CPU %      Self CPU    # of Calls  \n", "other-tool"),
        ("Name,Self CPU %,Self CPU,Self CUDA,# of Calls\naten::mm,1%,2us,3us,4\n", "other-tool"),
        ("timestamp, name, utilization.gpu [%]\nx, NVIDIA H100, 97 %\n", "other-tool"),
        ("# HELP DCGM_FI_DEV_GPU_UTIL x\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n", "other-tool"),
        ('{"start":1,"table":"CUPTI_ACTIVITY_KIND_KERNEL"}\n', "other-tool"),
        ('{"$schema":"https://www.speedscope.app/file-format-schema.json"}', "other-tool"),
        ('[{"frame": {"name": "gemm"}, "metrics": {"time (ns)": 5}}]', "other-tool"),
        ("python 12 100.123456:     250000 cycles:  ffff800 write+0x4 (k)\n", "other-tool"),
        ("main;step;gemm 120\nmain;step;flash 30\n", "other-tool"),
        ('{"schema": "solscope.report/1"}', "other-tool"),
        ("report,launch,kernel,metric,value,unit\nr,0,k,dram__bytes.sum,9,byte\n", "other-tool"),
        ('{"ID":{"0":null,"1":0},"Kernel Name":{"0":null,"1":"k"}}', "other-tool"),
        (",0\nKernel Name,k\nContext,1\nStream,7\nBlock Size,b\nGrid Size,g\n", "other-tool"),
        ("'ID','Process ID','Kernel Name','Context','Stream'\n'0','1','k','1','7'\n", "other-tool"),
        ('{"cells": [{"outputs": [{"text": ["ncu\\n"]}]}], "nbformat": 4}', "other-tool"),
        ("| NVIDIA-SMI 570.1 |\n==ERROR== No kernels were profiled.\n", "ncu-log"),
        ("<table><tr><td>Kernel Name</td></tr></table>", "html"),
        (
            '"","","","","","","","","us"\n"0","12","a","h","k","1","7","(8, 1, 1)","9"\n',
            "headless-table",
        ),
        ("a,b\n1,2\n", None),
        ("\x7fELF\0\0", None),
    ],
)
def test_a_look_alike_has_a_name(text: str, expected: str | None) -> None:
    assert kind(text) == expected


@pytest.mark.corpus
def test_every_look_alike_of_the_corpus_is_named() -> None:
    corpus.require(corpus.CORPUS)
    for source, expected in EXPECTED.items():
        for record in corpus.records(source):
            assert _kind(record) in expected, record["file"]
    listings = [r for r in corpus.records("ncu-text") if r["file"].endswith("sections.txt")]
    versions = [r for r in corpus.records("ncu-text") if r["file"].endswith("ncu_version.txt")]
    assert [_kind(r) for r in (*listings, *versions)] == ["ncu-listing", "ncu-version"]


def _kind(record: dict[str, Any]) -> str | None:
    head = corpus.raw(corpus.CORPUS / record["file"])[:65536]
    assert not ncu_csv.recognises(head, record["file"]), record["file"]
    assert not ncu_text.recognises(head, record["file"]), record["file"]
    found = lookalikes.name_of(head, record["file"])
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("x.parquet", b"PAR1\x15\x04\x15", "a Parquet file"),
        ("x.arrow", b"ARROW1\0\0", "an Arrow or Feather file"),
        ("x.h5", b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        ("x.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook"),
        ("x.pkl", b"\x80\x05\x95\x01\0\0\0", "a pickle of Python"),
        ("x.qdrep", b"\x12\x34\0\0\1", "by its name, a report of Nsight Systems"),
        ("x.pftrace", b"\x0a\x40\x50\0\1", "by its name, a trace of Perfetto"),
        ("x.bin", b"\x0a\x40\x50\0\1", "binary data of an unknown kind"),
    ],
)
def test_binary_data_is_named(tmp_path: Path, name: str, data: bytes, what: str) -> None:
    file = tmp_path / name
    file.write_bytes(data + bytes(200))
    with pytest.raises(ReportError, match=what) as caught:
        formats.read(str(file))
    assert caught.value.hint


def test_times_of_another_tool_are_not_read_as_samples(tmp_path: Path) -> None:
    file = tmp_path / "stats.csv"
    file.write_text('"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"g",1,2,2,100\n')
    with pytest.raises(ReportError, match="AMD's rocprof"):
        formats.read(str(file))
    mapped = formats.read(str(file), columns="name=Name,share%=Percentage")
    assert isinstance(mapped, SampleReport)


def test_a_head_of_64_kb_without_a_line_end_is_judged_at_once() -> None:
    for filler in ("a", "1 ", ";x", '"frame":', "Section: ", "|"):
        text = filler * (65536 // len(filler))
        begun = time.process_time()
        lookalikes.name_of(text.encode(), "x")
        ncu_csv.recognises(text.encode(), "x")
        ncu_text.recognises(text.encode(), "x")
        assert time.process_time() - begun < 2, filler  # a square of the length takes minutes
