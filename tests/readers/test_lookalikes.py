"""Files that look like reports are named for what they are."""

from __future__ import annotations

from typing import Any

import pytest
from tests import corpus

from solscope.reports import lookalikes, ncu_csv, ncu_text

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
