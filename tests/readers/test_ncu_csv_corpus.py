"""Every CSV of the corpus reads as its manifest says, and its values are the report's own."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import pytest
from tests import corpus

from solscope.errors import ReportError
from solscope.model.report import Report
from solscope.model.summary import SummaryReport
from solscope.reports import ncu_csv

pytestmark = pytest.mark.corpus

Record = dict[str, Any]


def _tables(kind: str, *shapes: str | None) -> list[Any]:
    found = [
        pytest.param(record, id=record["file"])
        for record in corpus.records(kind)
        if record.get("shape") in shapes and ".csv" in record["file"]
    ]
    return found or [pytest.param(None, id="no corpus")]


def _read(record: Record | None) -> Report:
    corpus.require(corpus.CORPUS)
    assert record is not None
    data = corpus.raw(corpus.CORPUS / record["file"])
    assert ncu_csv.recognises(data[:65536], record["file"])
    return ncu_csv.read(record["file"], data, "0" * 64)


@pytest.mark.parametrize("record", _tables("ncu-csv", "wide", "long"))
def test_an_export_holds_the_launches_and_metrics_of_its_manifest(record: Record | None) -> None:
    report = _read(record)
    assert record is not None
    assert len(report.launches) == record["results"]
    assert len({launch.name_full for launch in report.launches}) == record["distinct_kernels"]
    assert report.complete
    data = corpus.raw(corpus.CORPUS / record["file"])
    columns = ncu_csv.explain(record["file"], data).columns
    # The manifest counts labels; one label may stand in two sections.
    assert len({column.column for column in columns}) >= record["metric_names"]
    named = {column.metric for column in columns if column.value is not None}
    held = {name for launch in report.launches for name in launch.metrics}
    assert named - {None} <= held


@lru_cache(maxsize=8)
def _golden(made_from: str) -> list[dict[str, Any]]:
    (source,) = [r for r in corpus.manifest() if r["file"] == made_from]
    document = corpus.golden(source, "metrics_json")
    return [action for ranges in document["ranges"] for action in ranges["actions"]]


def _variants() -> list[Any]:
    return _tables("cli-variant", "wide", "long")


@pytest.mark.parametrize("record", _variants())
def test_a_variant_has_the_values_of_the_report_within_the_printed_precision(
    record: Record | None,
) -> None:
    report = _read(record)
    assert record is not None
    actions = _golden(record["made_from"])
    assert len(report.launches) == len(actions)
    steps = _steps(record)
    compared = 0
    for launch, action in zip(report.launches, actions, strict=True):
        assert launch.name == action["name"]
        for name in launch.metrics:
            stored = action["metrics"].get(name)
            value = launch.metrics[name]
            if stored is None or not isinstance(value, int | float):
                continue
            if not isinstance(stored["v"], int | float) or _is_timeline(name, stored):
                continue
            assert value == pytest.approx(stored["v"], rel=1e-9, abs=0.501 * steps[name]), name
            compared += 1
    assert compared >= 9 * len(actions)


def _steps(record: Record) -> dict[str, float]:
    """The last printed digit by metric, in base units: six decimals on the raw page where a
    column has a scaled unit, two everywhere else; the coarsest where units differ by launch."""
    is_auto_raw = record["shape"] == "wide" and "base" not in record["options"]
    data = corpus.raw(corpus.CORPUS / record["file"])
    steps: dict[str, float] = {}
    for column in ncu_csv.explain(record["file"], data).columns:
        step = column.factor * (1e-6 if is_auto_raw and column.unit else 1e-2)
        steps[str(column.metric)] = max(step, steps.get(str(column.metric), 0.0))
    return steps


def _is_timeline(name: str, stored: dict[str, Any]) -> bool:
    """Timeline metrics have instances only; the module that made the golden files says 0.0."""
    return (
        "Triage" in name or name.startswith("pmsampling:") or (stored["n"] > 0 and stored["v"] == 0)
    )


@pytest.mark.parametrize("record", _variants())
def test_labels_of_a_details_page_name_only_metrics_that_the_report_holds(
    record: Record | None,
) -> None:
    report = _read(record)
    assert record is not None
    held = {name for action in _golden(record["made_from"]) for name in action["metrics"]}
    named = {
        name
        for launch in report.launches
        for name in launch.metrics
        if re.match(r"[a-z0-9A-Z.]+__", name)
    }
    assert named <= held


def test_labels_give_all_the_values_that_names_do() -> None:
    corpus.require(corpus.CORPUS)
    by_label = [r for r in corpus.records("cli-variant") if ".details_all.csv" in r["file"]]
    assert len(by_label) == 6
    several = 0
    for record in by_label:
        twin = record["file"].replace("details_all", "details_names")
        (by_name,) = [r for r in corpus.records("cli-variant") if r["file"] == twin]
        for ours, theirs in zip(_read(record).launches, _read(by_name).launches, strict=True):
            # Rows of mean, maximum, minimum and sum share one label: "SM Active Cycles".
            rolled = {n for n in theirs.metrics if re.match(r"(sm|lts)__cycles_active\.\w+$", n)}
            for name in theirs.metrics:
                if name in ours.metrics:
                    assert ours.metrics[name] == theirs.metrics[name], name
            assert rolled <= set(ours.metrics)
            several += "lts__cycles_active.max" in rolled
    assert several >= 4


@pytest.mark.parametrize("locale", ["en_US", "de_DE", "fr_FR", "de_CH"])
def test_all_locales_give_the_same_numbers(locale: str) -> None:
    corpus.require(corpus.CORPUS)
    found = [r for r in corpus.records("cli-variant") if f".details.{locale}.csv" in r["file"]]
    assert len(found) == 6
    for record in found:
        (base,) = [
            r
            for r in corpus.records("cli-variant")
            if r["made_from"] == record["made_from"] and ".details.en_US.csv" in r["file"]
        ]
        ours, theirs = _read(record), _read(base)
        assert [dict(x.metrics.values) for x in ours.launches] == [
            dict(x.metrics.values) for x in theirs.launches
        ]


@pytest.mark.parametrize("record", _tables("cli-variant", None))
def test_pages_without_launches_say_what_they_are(record: Record | None) -> None:
    report = _read(record)
    assert record is not None
    assert report.launches == ()
    assert [absence.field for absence in report.absences] == ["launches"]
    if "summary" in record["file"]:
        assert isinstance(report, SummaryReport)
        assert sum(s.invocations or 0 for s in report.summaries) == len(
            _golden(record["made_from"])
        )
        assert all(
            m.minimum is None or m.maximum is not None for s in report.summaries for m in s.metrics
        )
    else:
        assert report.session.created_unix_s is not None
        assert report.devices[0].sm_count


@pytest.mark.parametrize("kind", ["ncu-log", "derived-csv", "lfs-pointer"])
def test_look_alikes_are_no_tables_of_ncu(kind: str) -> None:
    corpus.require(corpus.CORPUS)
    for record in corpus.records(kind):
        data = corpus.raw(corpus.CORPUS / record["file"])
        assert not ncu_csv.recognises(data[:65536], record["file"]), record["file"]
        with pytest.raises(ReportError, match="no table of ncu"):
            ncu_csv.read(record["file"], data, "0" * 64)


def test_details_and_raw_page_of_one_capture_on_h200_agree_metric_by_metric() -> None:
    details_file = corpus.find("sglang_triton_sweep__ncu__R_concurrent_decode", "ncu-csv")
    raw_file = corpus.find("R_concurrent_decode__ncu_raw_full", "ncu-csv")
    details = ncu_csv.read("details", corpus.raw(details_file), "0" * 64)
    raw = ncu_csv.read("raw", corpus.raw(raw_file), "0" * 64)
    compared = 0
    for ours, theirs in zip(details.launches, raw.launches, strict=True):
        assert ours.name_full == theirs.name_full
        for name in ours.metrics:
            value, other = ours.metrics[name], theirs.metrics.get(name)
            if isinstance(value, int | float) and isinstance(other, int | float):
                # Two decimals of a value scaled to 1 or more.
                assert value == pytest.approx(other, rel=0.0051, abs=0.0051), name
                compared += 1
    assert compared > 2000
