"""Every text page of the corpus reads as its manifest says, and as its CSV twin."""

from __future__ import annotations

from typing import Any

import pytest
from tests import corpus

from solscope.model.report import PlainMetrics, Report
from solscope.model.summary import SummaryReport
from solscope.reports import ncu_csv, ncu_text

pytestmark = pytest.mark.corpus

Record = dict[str, Any]
NO_TABLE = ("sections.txt", "ncu_version.txt")


def _params(records: list[Record]) -> list[Any]:
    return [pytest.param(r, id=r["file"]) for r in records] or [pytest.param(None, id="no corpus")]


def _pages() -> list[Record]:
    return [r for r in corpus.records("ncu-text") if not r["file"].endswith(NO_TABLE)]


def _variants(kind: str) -> list[Record]:
    return [r for r in corpus.records("cli-variant") if f".{kind}" in r["file"]]


def _read(record: Record | None) -> Report:
    corpus.require(corpus.CORPUS)
    assert record is not None
    data = corpus.raw(corpus.CORPUS / record["file"])
    assert ncu_text.recognises(data[:65536], record["file"])
    assert not ncu_csv.recognises(data[:65536], record["file"])
    return ncu_text.read(record["file"], data, "0" * 64)


@pytest.mark.parametrize("record", _params(_pages()))
def test_a_text_page_holds_the_launches_of_its_manifest(record: Record | None) -> None:
    report = _read(record)
    assert record is not None
    assert isinstance(report, SummaryReport)
    if "copy_blocked" in record["file"]:
        # The text was cut before the line that names the kernel: one launch without a name.
        assert next(issue.code for issue in report.issues) == "no-kernel-name"
    elif report.summaries:
        assert [s.invocations for s in report.summaries] == [10, 10, 10]
    else:
        assert len(report.launches) == record["results"]
        assert len({launch.name_full for launch in report.launches}) == record["distinct_kernels"]
    assert report.complete
    assert all(len(launch.metrics) >= 26 for launch in report.launches)


@pytest.mark.parametrize("record", _params(_variants("details_text")))
def test_text_and_csv_of_one_report_say_the_same(record: Record | None) -> None:
    report = _read(record)
    assert record is not None
    suffix = ".details.en_US.csv.gz"
    twin = record["file"].split(".details_text")[0] + suffix
    data = corpus.raw(corpus.CORPUS / twin)
    csv = ncu_csv.read(twin, data, "0" * 64)
    assert len(report.launches) == len(csv.launches)
    for ours, theirs in zip(report.launches, csv.launches, strict=True):
        assert isinstance(ours.metrics, PlainMetrics)
        assert isinstance(theirs.metrics, PlainMetrics)
        assert ours.metrics.values == theirs.metrics.values
        assert (ours.name_full, ours.grid, ours.block) == (
            theirs.name_full,
            theirs.grid,
            theirs.block,
        )
        assert ours.device == theirs.device
        assert ours.process_id == theirs.process_id
        assert len(ours.details.rules()) <= len(theirs.details.rules())
        assert [r.kind for r in ours.details.rules()] == [
            r.kind for r in theirs.details.rules() if r.message
        ]


@pytest.mark.parametrize("record", _params(_variants("session_text")))
def test_session_text_and_session_csv_say_the_same(record: Record | None) -> None:
    report = _read(record)
    assert record is not None
    twin = record["file"].replace(".session_text.txt", ".session.csv")
    csv = ncu_csv.read(twin, corpus.raw(corpus.CORPUS / twin), "0" * 64)
    assert report.session.created_unix_s == csv.session.created_unix_s
    assert report.session.versions == csv.session.versions
    assert report.devices == csv.devices
    assert report.provenance.tool_version == csv.provenance.tool_version


@pytest.mark.parametrize("name", NO_TABLE)
def test_lists_and_version_texts_are_no_pages(name: str) -> None:
    corpus.require(corpus.CORPUS)
    (record,) = [r for r in corpus.records("ncu-text") if r["file"].endswith(name)]
    assert not ncu_text.recognises(corpus.raw(corpus.CORPUS / record["file"]), name)


def test_kernels_of_unnamed_namespaces_have_their_own_names() -> None:
    path = corpus.find("silu-pytorch-ncu-report", "ncu-text")
    report = ncu_text.read(path.name, corpus.raw(path), "0" * 64)
    assert {launch.name for launch in report.launches} == {
        "distribution_elementwise_grid_stride_kernel",
        "vectorized_elementwise_kernel",
    }
