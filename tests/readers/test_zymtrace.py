"""Kernel shares from samplers: columns recognised or mapped, percent never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import corpus

from solscope.errors import ReportError, UsageError
from solscope.model.trace import UNNAMED, SampleReport
from solscope.reports import formats, zymtrace


def read(folder: Path, text: str, columns: str | None = None) -> SampleReport:
    file = folder / "shares"
    file.write_text(text)
    return zymtrace.read(str(file), "0" * 64, columns=columns)


def shares(report: SampleReport) -> dict[str, float | None]:
    return {k.name: k.share for k in report.kernels()}


@pytest.mark.parametrize(
    "text",
    [
        "kernel,samples\nflash_fwd,41\ngemm,59\n",
        "kernel_name\tsample_count\nflash_fwd\t41\ngemm\t59\n",
        "Function;count\nflash_fwd;41\ngemm;59\n",
        '"kernel","samples"\n"flash_fwd","41"\n"gemm","59"\n',
        "kernel\tsamples\nString\tUInt64\nflash_fwd\t41\ngemm\t59\n",
        '[{"kernel": "flash_fwd", "samples": 41}, {"kernel": "gemm", "samples": 59}]',
        '{"kernel": "flash_fwd", "samples": 41}\n{"kernel": "gemm", "samples": 59}\n',
        '{"meta": [{"name": "kernel"}, {"name": "samples"}], '
        '"data": [["flash_fwd", 41], ["gemm", "59"]]}',
        '{"meta": [], "data": [{"kernel": "flash_fwd", "samples": "41"}, '
        '{"kernel": "gemm", "samples": 59}], "rows": 2}',
        "kernel,samples\nflash_fwd,40\ngemm,59\nflash_fwd,1\n",
    ],
)
def test_every_shape_of_export_gives_the_same_shares(tmp_path: Path, text: str) -> None:
    assert zymtrace.recognises(text.encode(), "x")
    report = read(tmp_path, text)
    assert shares(report) == {"gemm": 0.59, "flash_fwd": 0.41}
    assert report.total == 100.0
    assert report.absences[0].field == "duration_ns"


@pytest.mark.parametrize(
    ("text", "columns", "share"),
    [
        ("kernel,share\nflash_fwd,0.41\n", None, 0.41),
        ("kernel,share\nflash_fwd,41%\n", None, 0.41),
        ("kernel,share %\nflash_fwd,0.41\n", None, 0.0041),
        ("kernel,samples_pct\nflash_fwd,14.2\n", None, 0.142),
        ("Function,Self Time,Self GPU %,Total GPU %\nflash_fwd,1s,14.2,30\n", None, 0.142),
        ("kernel,share\nflash_fwd,41\n", "share%=share", 0.41),
        ("what,part\nflash_fwd,41\n", "name=what,share%=part", 0.41),
    ],
)
def test_percent_is_told_by_the_title_by_a_sign_or_by_the_user(
    tmp_path: Path, text: str, columns: str | None, share: float
) -> None:
    (kernel,) = read(tmp_path, text, columns).kernels()
    assert kernel.share == pytest.approx(share)
    assert kernel.samples is None


@pytest.mark.parametrize(
    ("text", "columns", "says"),
    [
        ("kernel,share\nflash_fwd,41\n", None, "nothing says that it is percent"),
        ("kernel,share\nflash_fwd,-0.1\n", None, "no count and no share"),
        ("kernel,share\nflash_fwd,nan\n", None, "no count and no share"),
        ("kernel,share %\nflash_fwd,140\n", None, "a share of 140 in column share % is over 100"),
        ("kernel,share,fraction\nflash_fwd,0.1,0.2\n", None, "two columns could be the share"),
        ("kernel,samples\nflash_fwd,many\n", None, "'many' in column samples is no number"),
        ("who,what\na,b\n", None, "no column for kernel names and samples among who, what"),
        ("who,what\na,b\n", "name=kernel", "no column 'kernel' for name"),
        ("just text", None, "no table in this file"),
        ('[{"kernel": "x", "samples": 1}', None, "no table in this file"),
    ],
)
def test_what_cannot_be_told_is_named(
    tmp_path: Path, text: str, columns: str | None, says: str
) -> None:
    with pytest.raises(ReportError, match=says) as caught:
        read(tmp_path, text, columns)
    assert caught.value.where == str(tmp_path / "shares")


def test_inclusive_shares_are_warned_of(tmp_path: Path) -> None:
    report = read(tmp_path, "kernel,share\na,0.9\nb,0.8\n")
    assert report.issues[0].what.startswith("shares add up to 170%")


def test_a_column_mapping_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not understand 'kernel:x'"):
        read(tmp_path, "kernel,samples\na,1\n", "kernel:x")


@pytest.mark.corpus
def test_no_file_of_the_corpus_is_taken_for_samples() -> None:
    corpus.require(corpus.CORPUS)
    for record in corpus.manifest():
        head = corpus.raw(corpus.CORPUS / record["file"])[:65536]
        assert not zymtrace.recognises(head, record["file"]), record["file"]


def test_each_column_is_explained(tmp_path: Path) -> None:
    reading = zymtrace.explain("s", b"Function,Self Time,Self GPU %\nflash_fwd,1s,14.2\n")
    found = {c.column: (c.metric, c.unit, c.value) for c in reading.columns}
    assert found["Function"] == ("name", "", "flash_fwd")
    assert found["Self Time"] == (None, "", None)
    assert found["Self GPU %"] == ("share", "%", pytest.approx(0.142))


def numbers(report: SampleReport) -> dict[str, tuple[float | None, float | None]]:
    return {kernel.name: (kernel.samples, kernel.share) for kernel in report.kernels()}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("kernel;share %\ngemm;60,5\nsoftmax;39,5\n", {}),
        ("kernel\tshare %\ngemm\t60,5\nsoftmax\t39,5\n", {}),
        ("kernel;share %\ngemm;60.5\nsoftmax;39.5\n", {}),
        ("kernel;share %\ngemm;60,500\nsoftmax;39,500\n", {"locale": "de_DE"}),
    ],
)
def test_what_a_spreadsheet_saves_reads_alike(
    tmp_path: Path, text: str, options: dict[str, str]
) -> None:
    file = tmp_path / "x.csv"
    for data in (text.encode(), text.encode("utf-16"), text.replace("\n", "\r").encode()):
        file.write_bytes(data)
        report = formats.read(str(file), **options)
        assert isinstance(report, SampleReport)
        assert numbers(report) == {"gemm": (None, 0.605), "softmax": (None, 0.395)}


def test_a_count_that_may_be_thousands_is_refused_until_the_locale_is_known(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("kernel;samples\ngemm;1.234\nsoftmax;999\n")
    with pytest.raises(ReportError, match=r"can be read as a decimal or as thousands") as caught:
        formats.read(str(file))
    assert caught.value.where == str(file)
    report = formats.read(str(file), locale="de_DE")
    assert isinstance(report, SampleReport)
    assert numbers(report)["gemm"][0] == 1234
    file.write_text('kernel,samples\ngemm,"1,234"\nsoftmax,999\n')
    report = formats.read(str(file))
    assert isinstance(report, SampleReport)
    assert numbers(report)["gemm"][0] == 1234


def test_a_row_of_totals_is_no_kernel(tmp_path: Path) -> None:
    report = read(tmp_path, "kernel,samples\ngemm,60\nsoftmax,40\nTotal,100\n")
    assert numbers(report) == {"gemm": (60, 0.6), "softmax": (40, 0.4)}
    assert [issue.code for issue in report.issues] == ["total-row"]
    report = read(tmp_path, "kernel,samples\ngemm,60\nsoftmax,40\nsum,7\n")
    assert numbers(report)["sum"][0] == 7  # a kernel may have such a name


def test_what_was_added_up_or_is_missing_is_said(tmp_path: Path) -> None:
    report = read(tmp_path, "pod,kernel,samples\np0,gemm,60\np1,gemm,20\np1,softmax,\n")
    assert [issue.code for issue in report.issues] == ["rows-without-number", "rows-added"]
    assert read(tmp_path, "kernel,samples\n").absences[-1].field == "kernels"


def test_percent_signs_on_some_cells_only_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="some cells of column share have a percent sign"):
        read(tmp_path, "kernel,share\ngemm,60%\nsoftmax,0.4\n")


def test_rows_of_json_may_differ_in_their_keys(tmp_path: Path) -> None:
    text = '[{"kernel": "gemm"}, {"kernel": null, "samples": 40}, {"kernel": "a", "samples": 60}]'
    report = read(tmp_path, text)
    assert numbers(report) == {"gemm": (None, None), "a": (60, 0.6), UNNAMED: (40, 0.4)}


def test_titles_in_camel_case_are_known(tmp_path: Path) -> None:
    assert numbers(read(tmp_path, "KernelName,count()\ngemm,60\n")) == {"gemm": (60, 1.0)}
    typed = "kernel_name\tcount()\nString\tUInt64\ngemm\t60\n"
    assert read(tmp_path, typed).issues == ()
