"""What people met with timelines and samples: the shared cases of part f that are files."""

from __future__ import annotations

import json
import sqlite3
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from tests import corpus

from solscope.errors import ReportError
from solscope.model.trace import SampleReport, TimelineReport
from solscope.reports import kineto, nsys, nsys_stats, zymtrace

pytestmark = pytest.mark.corpus


@lru_cache(maxsize=1)
def cases() -> dict[str, dict[str, Any]]:
    found = json.loads(corpus.require(corpus.SHARED / "cases" / "cases.json").read_text())
    listed = found if isinstance(found, list) else found["cases"]
    return {case["id"]: case for case in listed}


def probe(folder: Path, case: str, name: str) -> TimelineReport | SampleReport:
    text = cases()[case]["probe"]["files"][name]
    path = folder / name
    if name.endswith(".sql"):
        path = folder / "probe.sqlite"
        database = sqlite3.connect(path)
        database.executescript(text)
        database.close()
    else:
        path.write_text(text)
    head = path.read_bytes()[:65536]
    (reader,) = [r for r in (nsys, kineto, nsys_stats, zymtrace) if r.recognises(head, str(path))]
    return reader.read(str(path), "")


def said(report: TimelineReport | SampleReport) -> str:
    lines = [issue.what for issue in report.issues]
    lines += [f"{a.field}: {a.reason} {a.remedy}" for a in report.absences]
    return "\n".join(lines)


def test_join_01_launches_without_kernel_rows(tmp_path: Path) -> None:
    text = said(probe(tmp_path, "join-01", "stats.txt"))
    assert "launches exist" in text
    assert "0 kernels ran" not in text


def test_join_03_suffixed_tables(tmp_path: Path) -> None:
    text = said(probe(tmp_path, "join-03", "schema.sql"))
    assert "NVTX_EVENTS_V2 used" in text
    assert "unannotated" not in text


def test_join_05_counts_under_graphs(tmp_path: Path) -> None:
    report = probe(tmp_path, "join-05", "api.csv")
    assert isinstance(report, TimelineReport)
    assert report.graph_launches == 500
    assert "cudaGraphLaunch 500" in said(report)


def test_join_07_log_lines_between_tables(tmp_path: Path) -> None:
    report = probe(tmp_path, "join-07", "stats.csv")
    assert isinstance(report, TimelineReport)
    (kernel,) = report.kernel_times()
    assert kernel.total_ns == cases()["join-07"]["expected"]["value"]["total_ns"]


def test_join_09_each_table_keeps_its_own_quantity(tmp_path: Path) -> None:
    shares, times = (probe(tmp_path, "join-09", n) for n in ("zymtrace.csv", "nsys.csv"))
    assert isinstance(shares, SampleReport)
    assert isinstance(times, TimelineReport)
    assert [k.share for k in shares.kernels()] == [0.41]
    (kernel,) = times.kernel_times()
    assert kernel.total_ns == pytest.approx(
        cases()["join-09"]["expected"]["value"]["total_ms"] * 1e6
    )


def test_nokern_11_graphs_hide_kernels(tmp_path: Path) -> None:
    empty = said(probe(tmp_path, "nokern-11", "max_autotune.csv"))
    api = said(probe(tmp_path, "nokern-11", "api.csv"))
    assert "whether kernels ran is not known" in empty
    assert "cudaGraphLaunch" in api
    assert "--cuda-graph-trace=node" in api


def test_env_01_the_timeline_of_a_kernel_that_ncu_slowed(tmp_path: Path) -> None:
    report = probe(tmp_path, "env-01", "nsys.csv")
    assert isinstance(report, TimelineReport)
    (kernel,) = report.kernel_times()
    assert (kernel.launches, kernel.mean_ns, kernel.total_ns) == (1000, 33100.0, None)


def test_vllm_03_an_unfinished_trace_names_its_rank(tmp_path: Path) -> None:
    path = tmp_path / "rank1.pt.trace.json.gz"
    path.write_bytes(b"")
    with pytest.raises(ReportError, match=r"rank1\.pt\.trace\.json\.gz: the trace is cut"):
        kineto.read(str(path), "")
