"""`read` over every file of the corpus: each is named for what it is."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest
from tests import corpus

import solscope
from solscope.errors import ReportError, UsageError
from solscope.flows import analyze
from solscope.flows.read import ReadRequest, run
from solscope.flows.world import World
from solscope.model.report import Report
from solscope.model.trace import TimelineReport
from solscope.model.verdict import KernelVerdict
from solscope.reports import formats

pytestmark = pytest.mark.corpus

KINDS = {
    "ncu-rep": {"ncu-rep"},
    "ncu-csv": {"ncu-csv"},
    "ncu-text": {"ncu-text"},
    "nsys-sqlite": {"nsys-sqlite"},
    "nsys-stats": {"nsys-stats"},
    "torch-trace": {"torch-trace"},
    "cli-variant": {"ncu-csv", "ncu-text"},
}
REFUSED = ("derived-csv", "lfs-pointer", "ncu-log")


def records(*kinds: str) -> list[dict[str, Any]]:
    return [record for kind in kinds for record in corpus.records(kind)]


def name(record: dict[str, Any]) -> str:
    return str(record["file"])


@pytest.mark.parametrize("record", records(*KINDS), ids=name)
def test_every_readable_file_is_recognised_by_its_content(record: dict[str, Any]) -> None:
    path = str(corpus.CORPUS / record["file"])
    try:
        assert formats.kind_of(path) in KINDS[record["kind"]]
    except ReportError as error:
        # Some texts hold other output of ncu, such as its version or a list of metrics.
        assert record["kind"] == "ncu-text"
        assert error.hint


@pytest.mark.parametrize("record", records(*REFUSED), ids=name)
def test_what_is_no_report_is_refused_by_name_with_a_next_step(record: dict[str, Any]) -> None:
    path = str(corpus.CORPUS / record["file"])
    try:
        report = formats.read(path)
    except ReportError as error:
        assert error.what.startswith("this is ") or "no table" in error.what
        assert error.hint
    else:
        # A log that ends in a table is a report all the same.
        assert record["kind"] == "ncu-log"
        assert isinstance(report, Report)


def test_several_files_are_all_shown_and_the_bad_one_is_named() -> None:
    good, bad = corpus.find("vec_add.ncu-rep"), corpus.find("baseline", "lfs-pointer")
    outcome = run(ReadRequest(paths=(str(good), str(bad))), World())
    assert outcome.exit_code == 1
    assert "vec_add.ncu-rep" in outcome.text
    assert "Git LFS pointer" in outcome.text


def test_a_summary_has_its_units_in_every_face() -> None:
    path = str(corpus.find("summary1024", "ncu-text"))
    table, document, rows = (
        run(ReadRequest(paths=(path,), format=face), World()).text
        for face in ("table", "json", "csv")
    )
    assert "3 summaries of launches" in table
    assert re.search(r"gpu__time_duration.sum +2880000 +2880000 +2880000 +ns", table)
    (report,) = json.loads(document)["reports"]
    assert report["summaries"][0]["launches"] == 10
    assert report["summaries"][0]["metrics"]["gpu__time_duration.sum"] == {
        "unit": "ns", "minimum": 2880000, "maximum": 2880000, "average": 2880000,
    }  # fmt: skip
    assert "esmm_shmem_multi,gpu__time_duration.sum (average),2880000.0,ns" in rows


def test_kernels_of_two_gpus_and_of_one_short_name_are_told_apart() -> None:
    two_gpus = run(ReadRequest(paths=(str(corpus.find("h100_2gpu", "nsys-sqlite")),)), World())
    assert re.search(r"launches +GPU +process  kernel", two_gpus.text)
    assert re.search(r"124 +1 +112  sm80_xmma_gemm", two_gpus.text)
    sums = run(ReadRequest(paths=(str(corpus.find("prefill__nsys", "nsys-stats")),)), World())
    assert "Kernel2 …cutlass_80_tensorop" in sums.text


def test_a_table_with_columns_of_its_own_is_read_as_it_is_told_to_be(tmp_path: Path) -> None:
    path = tmp_path / "shares.csv"
    path.write_text("kern,pct\nflash_fwd,41%\n")
    with pytest.raises(ReportError, match="none of its columns says kernels") as refused:
        run(ReadRequest(paths=(str(path),)), World())
    assert "--columns" in (refused.value.hint or "")
    told = ReadRequest(paths=(str(path),), columns="name=kern,share%=pct")
    assert re.search(r"41.0 % +– +flash_fwd", run(told, World()).text)
    told = ReadRequest(paths=(str(path),), columns="name=kern,share%=pct", explain=True)
    assert re.search(r"pct +share +41 % +0.41", run(told, World()).text)


def test_launches_of_two_processes_are_told_apart(tmp_path: Path) -> None:
    text = corpus.raw(corpus.find("saxpy", "ncu-csv")).decode("utf-8-sig")
    table = text[text.index('"ID"') :]
    _, second = table.replace('"0","58960"', '"0","77777"').split("\n", 1)
    path = tmp_path / "ranks.csv"
    path.write_text(f"{table.rstrip()}\n==PROF== Disconnected\n{second}")
    assert "processes 58960 (1 result), 77777 (1 result)" in (
        run(ReadRequest(paths=(str(path),)), World()).text
    )
    page = analyze.run(analyze.AnalyzeRequest(paths=(str(path),)), World()).text
    assert re.search(r"saxpy_kernel +58960 .*\n2 saxpy_kernel +77777 ", page)


def test_a_folder_shows_what_is_in_it_by_content(tmp_path: Path) -> None:
    for kind, fragment in (
        ("ncu-csv", "saxpy"),
        ("nsys-stats", "decode__nsys"),
        ("ncu-log", "v5_"),
    ):
        found = corpus.find(fragment, kind)
        (tmp_path / f"{kind}.dat").write_bytes(corpus.raw(found))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "saxpy.csv").write_bytes(corpus.raw(corpus.find("saxpy", "ncu-csv")))
    names = [Path(path).name for path in formats.find([str(tmp_path)])]
    assert names == ["ncu-csv.dat", "nsys-stats.dat"]
    assert len(solscope.read(str(tmp_path)).launches) == 1  # counters alone

    report = corpus.find("vec_add.ncu-rep")
    (tmp_path / "x.ncu-rep").write_bytes(report.read_bytes())
    names = [Path(path).name for path in formats.find([str(tmp_path)])]
    assert names == ["nsys-stats.dat", "x.ncu-rep"]  # the page may be a print of the report


def test_a_folder_without_what_is_needed_says_what_it_holds() -> None:
    folder = corpus.require(corpus.CORPUS / "torch-trace")
    with pytest.raises(ReportError, match="can be used here") as refused:
        solscope.read(str(folder))
    assert "7 torch-trace" in (refused.value.hint or "")


def test_a_capture_and_its_page_are_not_added_up() -> None:
    folder = corpus.require(corpus.CORPUS / "ncu-csv" / "gujialiang123__MOEresearch")
    pages = sorted(str(path) for path in folder.glob("*R_concurrent_decode*"))
    assert len(pages) == 2
    with pytest.raises(UsageError, match="the same 30 launches"):
        analyze.run(analyze.AnalyzeRequest(paths=tuple(pages)), World())
    one = analyze.run(analyze.AnalyzeRequest(paths=(pages[1],)), World())
    assert one.exit_code == 0


def test_the_raw_page_shows_instances_as_asked_for() -> None:
    path = str(corpus.find("vec_add.ncu-rep"))

    def page(how: Literal["none", "values", "details"]) -> str:
        request = ReadRequest(paths=(path,), as_="ncu-raw-csv", print_metric_instances=how)
        return run(request, World()).text

    assert re.search(r'"\d+ \(.*FADD: \d+', page("details"))
    assert re.search(r'"\d+ \(\d+; \d+', page("values"))
    assert not re.search(r'"\d+ \(', page("none"))


def test_instances_on_another_page_are_refused_with_the_option_that_gives_them() -> None:
    request = ReadRequest(paths=("x.ncu-rep",), print_metric_instances="details")
    with pytest.raises(UsageError, match="raw page") as refused:
        run(request, World())
    assert refused.value.hint == "add --as ncu-raw-csv"


def test_a_timeline_cannot_be_analysed_and_says_what_it_is() -> None:
    path = corpus.CORPUS / corpus.records("nsys-sqlite")[0]["file"]
    assert isinstance(formats.read(str(corpus.require(path))), TimelineReport)
    with pytest.raises(ReportError, match="a timeline"):
        solscope.read(str(path))


AUTHOR = "Olajide-Badejo__GPU-Roofline-Profiler"
N = 2048  # of the square matrices; saxpy ran over 2^24 elements
MATRIX = 4 * N * N
VECTOR = 4 * 2**24


def truth(kernel: str, variant: str, size: int) -> tuple[float, float]:
    """(FLOP, bytes) that the author derived for a kernel over so many elements."""
    path = corpus.require(corpus.CORPUS / "roofline-truth" / AUTHOR / "timing.csv")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    (found, *_) = [
        (float(row["flops"]), float(row["theoretical_bytes"]))
        for row in rows
        if (row["kernel"], row["variant"]) == (kernel, variant)
        and size in (int(row["problem_size"]), int(row["m"]))
    ]
    return found


def captured(name: str) -> KernelVerdict:
    report = solscope.read(str(corpus.find(f"{AUTHOR}/{name}.csv", "ncu-csv")))
    (kernel,) = solscope.analyze([report]).kernels
    return kernel


def test_saxpy_reads_what_its_author_derived_and_leaves_writes_in_l2() -> None:
    flop, size = truth("saxpy", "base", 2**24)
    assert (flop, size) == (2 * 2**24, 3 * VECTOR)  # x and y read, y written
    totals = captured("saxpy").totals
    assert totals.dram_read_bytes == pytest.approx(2 * VECTOR, rel=1e-4)
    # A third of the writes had not left L2 (up to 48 MB on this chip) when the kernel ended.
    assert totals.dram_write_bytes == 43_631_104
    assert 0.6 * VECTOR < (totals.dram_write_bytes or 0) < VECTOR


@pytest.mark.parametrize("variant", ["naive", "tiled"])
def test_a_transpose_reads_its_matrix_once(variant: str) -> None:
    flop, size = truth("transpose", variant, N)
    assert (flop, size) == (0, 2 * MATRIX)
    totals = captured(f"transpose_{variant}").totals
    # 2 % more for the page tables and counters of the pass; writes partly stay in L2
    assert MATRIX <= (totals.dram_read_bytes or 0) < 1.15 * MATRIX
    assert (totals.dram_write_bytes or 0) < MATRIX


@pytest.mark.parametrize("variant", ["naive", "tiled", "register_blocked", "vectorized"])
def test_a_gemm_moves_its_operands_and_what_l2_could_not_keep(variant: str) -> None:
    flop, size = truth("gemm", variant, N)
    assert (flop, size) == (2 * N**3, 3 * MATRIX)
    totals = captured(f"gemm_{variant}").totals
    # A and B at least once; under twice, because L2 keeps most of what is read again
    assert 2 * MATRIX <= (totals.dram_read_bytes or 0) < 2 * 2 * MATRIX
    # the naive kernel writes lines of C more than once, the others leave some of C in L2
    assert (totals.dram_write_bytes or 0) < (2 if variant == "naive" else 1) * MATRIX


@pytest.mark.parametrize("name", ["saxpy", "gemm_naive"])
def test_flop_that_the_author_derived_but_nobody_counted_is_absent_here(name: str) -> None:
    kernel = captured(name)
    assert kernel.totals.flop.total is None
    assert kernel.point.intensity is None
    reasons = {absence.field: absence.reason for absence in kernel.absences}
    assert "no FP32 operation counter" in reasons["flop.fp32"]


def test_achieved_bandwidth_stays_under_the_authors_theoretical_peak() -> None:
    path = corpus.require(corpus.CORPUS / "roofline-truth" / AUTHOR / "peaks.csv")
    with path.open() as file:
        peaks = {row["label"]: float(row["peak_bandwidth"]) for row in csv.DictReader(file)}
    rate = captured("saxpy").point.dram_bytes_per_s
    assert rate is not None
    # 177.9 MB in 292.9 us is 607 GB/s of 672; the author's own copy reached 590
    assert peaks["measured"] < rate < peaks["theoretical"]


def test_the_address_of_a_live_query_is_known_without_loading_its_reader() -> None:
    from solscope.reports.zymtrace import live

    assert live.SCHEMES == formats.LIVE
