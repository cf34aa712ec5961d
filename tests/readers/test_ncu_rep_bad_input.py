"""What is not a whole report: a clear error, or a partial result that says so."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import pytest
import zstandard
from tests import builder, corpus
from tests.builder import Kernel

import solscope
from solscope.errors import ReportError, UsageError
from solscope.model.report import Report

TIME = {"gpu__time_duration.sum": 1000}
TWO = [Kernel("first", metrics=TIME), Kernel("second", metrics=TIME)]


def read(tmp_path: Path, data: bytes, name: str = "x.ncu-rep") -> Report:
    path = tmp_path / name
    path.write_bytes(data)
    return solscope.read(str(path))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer"),
        (b"==PROF== Connected to process 1\n", "what ncu printed while it ran"),
        (b"PK\x03\x04" + bytes(60), "zip archive"),
        (b"SQLite format 3\x00" + bytes(60), "database ends in its header"),
        (bytes(range(9)) * 30, "binary data of an unknown kind"),
        (builder.number(1, 7) + builder.blob(2, b"\x00\xff" * 40), "unknown kind"),
        (gzip.compress(b"just text", mtime=0), "text"),
        (b"NVR", "inside its header"),
        (b"NVR\x00\x02\x00\x00\x00\x08", "does not fit"),
        (b"NVR\x00" + struct.pack("<I", 2) + builder.number(1, 99), "version 99"),
        (builder.FILE_HEADER, "nothing else"),
        (zstandard.compress(b"not a report at all"), "this is text"),
        (b"\x28\xb5\x2f\xfd" + b"garbage" * 4, "zstd frame is damaged"),
    ],
)
def test_a_file_that_is_no_report_is_named_for_what_it_is(
    tmp_path: Path, data: bytes, says: str
) -> None:
    with pytest.raises(ReportError) as caught:
        read(tmp_path, data)
    assert says in str(caught.value)
    assert "x.ncu-rep" in str(caught.value)
    assert caught.value.hint


def test_a_missing_file_an_unreadable_one_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        solscope.read(str(tmp_path / "missing.ncu-rep"))
    with pytest.raises(ReportError, match="no report in this folder"):
        solscope.read(str(tmp_path))
    closed = tmp_path / "closed.ncu-rep"
    closed.symlink_to("/proc/self/mem")  # opens, but cannot be read from its start, even by root
    with pytest.raises(ReportError, match="cannot be read"):
        solscope.read(str(closed))


def test_a_zstd_report_reads_like_the_plain_one_whatever_its_name(tmp_path: Path) -> None:
    data = builder.report(TWO)
    plain = read(tmp_path, data, "a.ncu-repz")  # the suffix lies
    packed = read(tmp_path, zstandard.compress(data), "b.ncu-rep")
    zipped = read(tmp_path, gzip.compress(data), "c.ncu-rep.gz")
    assert plain.provenance.format == "ncu-rep"
    assert packed.provenance.format == "ncu-repz"
    for report in (packed, zipped):
        assert [launch.name for launch in report.launches] == ["first", "second"]
        assert report.complete
    assert packed.provenance.sha256 != plain.provenance.sha256  # of the file as it lies there


def test_a_cut_zstd_report_keeps_its_complete_blocks(tmp_path: Path) -> None:
    noise = os.urandom(300_000)  # incompressible, so that the cut leaves earlier blocks whole
    data = zstandard.compress(
        builder.report([*TWO], source=b"\x7fELF") + builder.block(payload=[noise], counts={1: 1})
    )
    report = read(tmp_path, data[: len(data) // 2])
    assert [launch.name for launch in report.launches] == ["first", "second"]
    assert not report.complete


def boundaries() -> list[int]:
    """Every offset at which a block of the built report ends."""
    offset, ends = len(builder.FILE_HEADER), []
    for block in builder.blocks(TWO):
        offset += len(block)
        ends.append(offset)
    return ends


def test_a_cut_inside_any_block_is_incomplete_and_keeps_the_blocks_before(tmp_path: Path) -> None:
    data, ends = builder.report(TWO), boundaries()
    for index, end in enumerate(ends):
        start = ends[index - 1] if index else len(builder.FILE_HEADER)
        for cut in {start + 1, start + 3, (start + end) // 2, end - 1}:
            report = read(tmp_path, data[:cut])
            assert not report.complete, cut
            assert any(issue.code == "incomplete" for issue in report.issues)


def test_a_cut_between_blocks_is_incomplete_unless_a_whole_smaller_report_is_left(
    tmp_path: Path,
) -> None:
    data, ends = builder.report(TWO), boundaries()
    states = [(len(r.launches), r.complete) for end in ends if (r := read(tmp_path, data[:end]))]
    assert states == [
        (0, True),  # only the first session fragment: no result, said as such
        (0, False),  # the source of a result that is not there
        (1, False),  # the session details that follow a first result are missing
        (1, False),
        (1, False),
        (1, True),  # a report of one launch, whole: the format has no end mark
        (2, True),
    ]
    assert [i.code for i in read(tmp_path, data[: ends[0]]).issues] == ["no-results"]


def test_names_that_a_later_block_would_have_held_show_the_cut(tmp_path: Path) -> None:
    late = [Kernel("first", metrics=TIME), Kernel("second", metrics={"x": 1}, late_strings=True)]
    whole = builder.blocks(late)
    assert read(tmp_path, builder.FILE_HEADER + b"".join(whole)).complete
    assert not read(tmp_path, builder.FILE_HEADER + b"".join(whole[:-1])).complete


def test_counts_that_promise_more_than_the_payload_holds_are_damage(tmp_path: Path) -> None:
    data = builder.report(TWO[:1]) + builder.block(payload=[b""], counts={2: 3})
    report = read(tmp_path, data)
    assert not report.complete
    assert any("fewer entries" in issue.what for issue in report.issues)


def test_an_unknown_kind_of_entry_after_the_known_ones_is_jumped_over(tmp_path: Path) -> None:
    data = builder.report(TWO[:1])
    data += builder.block(payload=[b"whatever a newer ncu writes"], counts={10: 1})
    data += b"".join(builder.blocks(TWO[1:])[2:3])
    report = read(tmp_path, data)
    assert len(report.launches) == 2


def test_analysing_a_report_without_results_says_what_to_look_at(tmp_path: Path) -> None:
    path = tmp_path / "none.ncu-rep"
    path.write_bytes(builder.report([]))
    with pytest.raises(ReportError, match="no result") as caught:
        solscope.analyze([solscope.read(str(path))])
    assert "diagnose" in str(caught.value.hint)


@pytest.mark.corpus
@pytest.mark.parametrize("fragment", ["vec_add.ncu-rep", "R_decode_c1_out2k", "iamcoleman"])
def test_a_real_report_cut_anywhere_gives_its_complete_blocks(
    tmp_path: Path, fragment: str
) -> None:
    data = corpus.raw(corpus.find(fragment))
    whole = len(read(tmp_path, data).launches)
    offset = 8 + struct.unpack_from("<I", data, 4)[0]
    seen = 0
    while offset < len(data):
        (size,) = struct.unpack_from("<I", data, offset)
        middle = read(tmp_path, data[: offset + 4 + size // 2])
        assert not middle.complete
        assert seen <= len(middle.launches) <= whole
        seen = len(middle.launches)
        header = data[offset + 4 : offset + 4 + size]
        offset += 4 + size + _payload_size(header)
    assert offset == len(data)


def _payload_size(header: bytes) -> int:
    position = 0
    while position < len(header):
        tag, position = _varint(header, position)
        value, position = _varint(header, position)
        if tag == 5 << 3:
            return value
        if tag & 7 == 2:
            position += value
    return 0


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position
