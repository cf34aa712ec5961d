"""Files as they arrive: compressed in several ways, in several members, through pipes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
import zipfile
from pathlib import Path

import pytest
import zstandard
from tests import builder, timelines

from solscope.errors import ReportError
from solscope.flows import read
from solscope.flows.read import ReadRequest
from solscope.flows.world import World
from solscope.model.report import Report
from solscope.reports import formats

PAGE = (
    b'"ID","Process ID","Kernel Name","gpu__time_duration.sum"\n"","","","us"\n'
    b'"0","1","k","10.24"\n"1","1","k","20.48"\n'
)


def as_zip(data: bytes, names: tuple[str, ...] = ("page.csv",)) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, data)
    return buffer.getvalue()


PACKINGS = {
    "gzip": gzip.compress,
    "two gzip members": lambda data: gzip.compress(data[:30]) + gzip.compress(data[30:]),
    "zstd": zstandard.compress,
    "two zstd frames": lambda d: zstandard.compress(d[:30]) + zstandard.compress(d[30:]),
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zip": as_zip,
}


def times(report: object) -> list[object]:
    assert isinstance(report, Report)
    return [launch.metrics["gpu__time_duration.sum"] for launch in report.launches]


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_compressed_page_reads_like_the_plain_one(tmp_path: Path, packing: str) -> None:
    file = tmp_path / "page"
    file.write_bytes(PACKINGS[packing](PAGE))
    report = formats.read(str(file))
    assert times(report) == [10240, 20480]
    assert report.provenance.path == str(file)
    assert report.provenance.size_bytes == file.stat().st_size
    assert formats.find([str(tmp_path)], formats.COUNTERS) == [str(file)]
    assert formats.explain(str(file)).path == str(file)


@pytest.mark.parametrize("packing", PACKINGS)
def test_compressed_timelines_read_like_the_plain_ones(tmp_path: Path, packing: str) -> None:
    export = timelines.write_export(tmp_path / "a.sqlite", [timelines.kernel_row(10, 30, 0)])
    trace = timelines.write_trace(tmp_path / "a.json", [timelines.kernel_event("k", 1.0, 2.0)])
    for plain in (export, trace):
        file = tmp_path / f"packed-{plain.name}"
        file.write_bytes(PACKINGS[packing](plain.read_bytes()))
        packed, whole = formats.read(str(file)), formats.read(str(plain))
        assert packed.kernels.equals(whole.kernels)  # type: ignore[union-attr]


@pytest.mark.parametrize("packing", ["zstd", "xz", "bzip2", "zip"])
def test_cut_compressed_data_is_named_with_the_file(tmp_path: Path, packing: str) -> None:
    file = tmp_path / "page"
    file.write_bytes(PACKINGS[packing](os.urandom(200_000).hex().encode() + b"\n" + PAGE)[:-30])
    with pytest.raises(ReportError) as caught:
        formats.read(str(file))
    assert caught.value.where == str(file)
    assert "cut or damaged" in str(caught.value)


def test_an_archive_of_several_files_is_to_be_unpacked_first(tmp_path: Path) -> None:
    file = tmp_path / "pages.zip"
    file.write_bytes(as_zip(PAGE, ("a.csv", "b.csv")))
    with pytest.raises(ReportError, match="zip archive of 2 files"):
        formats.read(str(file))


def test_what_macos_adds_to_an_archive_is_no_file_of_it(tmp_path: Path) -> None:
    file = tmp_path / "page.zip"
    file.write_bytes(as_zip(PAGE, ("page.csv", "__MACOSX/._page.csv", ".DS_Store")))
    report = formats.read(str(file))
    assert isinstance(report, Report)
    assert len(report.launches) == 2


@pytest.mark.parametrize(
    ("member", "what"),
    [("xl/workbook.xml", "an Excel workbook"), ("content.xml", "an OpenDocument sheet")],
)
def test_a_spreadsheets_document_is_named(tmp_path: Path, member: str, what: str) -> None:
    file = tmp_path / "page.xlsx"
    file.write_bytes(as_zip(PAGE, ("mimetype", member)))
    with pytest.raises(ReportError, match=what):
        formats.read(str(file))


@pytest.mark.parametrize(
    ("flags", "method", "words"),
    [(1, zipfile.ZIP_DEFLATED, "locked with a password"), (0, 99, "cannot be unpacked here")],
    ids=["encrypted", "unknown method"],
)
def test_an_archive_that_cannot_be_opened_is_named(
    tmp_path: Path, flags: int, method: int, words: str
) -> None:
    packed = bytearray(as_zip(PAGE))
    entry = packed.rfind(b"PK\x01\x02")
    # Flags and method stand in the member's own header and in the archive's list.
    packed[6], packed[8], packed[entry + 8], packed[entry + 10] = flags, method, flags, method
    file = tmp_path / "page.zip"
    file.write_bytes(packed)
    with pytest.raises(ReportError, match=words) as caught:
        formats.read(str(file))
    assert caught.value.where == str(file)


def test_a_zstd_frame_that_ends_in_its_first_block_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.ncu-repz"
    file.write_bytes(zstandard.compress(builder.FILE_HEADER + bytes(range(256)) * 99)[:-20])
    with pytest.raises(ReportError, match="ends before its first block does"):
        formats.read(str(file))


def test_a_text_that_begins_like_bzip2_is_a_text(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"BZh9 is what they call it")
    with pytest.raises(ReportError, match="this is text"):
        formats.read(str(file))


def test_a_pipe_is_read_once_and_whole(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(PACKINGS["xz"](PAGE),))
    writer.start()
    report = formats.read(str(pipe))
    writer.join()
    assert times(report) == [10240, 20480]
    assert report.provenance.path == str(pipe)


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PAGE)))
    assert formats.find(["-"]) == ["-"]
    report = formats.read("-")
    assert times(report) == [10240, 20480]
    assert (report.provenance.path, report.provenance.size_bytes) == ("standard input", len(PAGE))


def test_an_error_about_standard_input_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello")))
    with pytest.raises(ReportError) as caught:
        formats.read("-")
    assert caught.value.where == "standard input"


def test_binary_data_of_any_size_is_refused_by_its_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.bin"
    file.write_bytes(bytes(200_000))
    whole = formats._bytes_of

    def head_only(path: str, most: int = -1) -> bytes:
        assert most >= 0, "the whole file was asked for"
        return whole(path, most)

    monkeypatch.setattr(formats, "_bytes_of", head_only)
    with pytest.raises(ReportError, match="binary data of an unknown kind"):
        formats.read(str(file))


def test_a_name_that_is_no_utf8_can_stand_in_json(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv"))
    other = tmp_path / "other.csv"
    other.write_bytes(PAGE)
    for content in (PAGE, b"hello"):
        odd.write_bytes(content)
        request = ReadRequest(paths=(str(odd), str(other)), format="json")
        assert "caf\ufffd.csv" in read.run(request, World()).text
