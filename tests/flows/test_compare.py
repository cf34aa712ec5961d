"""`solscope compare` from files to page."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from tests import corpus

from solscope.errors import ReportError, UsageError
from solscope.flows import analyze
from solscope.flows.compare import CompareRequest, run
from solscope.flows.world import World
from solscope.model.comparison import Comparison

SCHEMA = json.loads(
    (files("solscope.render") / "schemas" / "compare-1.schema.json").read_text("utf-8")
)
SAMPLE = Path(__file__).resolve().parents[2] / "samples"


def compared(*paths: object, **more: object) -> Comparison:
    request = CompareRequest(paths=tuple(map(str, paths)), **more)  # type: ignore[arg-type]
    found = run(request, World()).value
    assert isinstance(found, Comparison)
    return found


def test_a_report_and_its_own_analysis_are_the_same(tmp_path: Path) -> None:
    (report,) = sorted(SAMPLE.glob("*.ncu-rep*"))[:1]
    text = analyze.run(analyze.AnalyzeRequest(paths=(str(report),), format="json"), World()).text
    (tmp_path / "a.json").write_text(text)
    found = compared(tmp_path / "a.json", report)
    assert found.pairs
    assert found.only_in_a == found.only_in_b == ()
    changed = [c for p in found.pairs for c in p.changes if c.difference]
    assert changed == []


def test_a_cold_and_a_warm_time_give_no_speed_up(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"tool":"ncu","cache":"all","clock":"base","us":80}')
    (tmp_path / "b.json").write_text('{"tool":"bench","cache":"warm","clock":"boost","us":40}')
    request = CompareRequest(paths=(str(tmp_path / "a.json"), str(tmp_path / "b.json")))
    outcome = run(request, World())
    assert outcome.exit_code == 1
    assert "cache control differs: all (cold" in outcome.text
    assert "clock control differs" in outcome.text
    assert "x0.5" not in outcome.text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"schema": "solscope.analysis/1"}', "missing required field"),
        ('{"tool": "x", "us": "fast"}', "Expected `float`"),
        ('{"tool": "x"', "no valid JSON"),
        ('{"schema": "solscope.analysis/1", "reports": [], "kernels": []}', "no kernel in it"),
    ],
)
def test_a_bad_analysis_is_a_named_error(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ReportError, match=said):
        compared(tmp_path / "a.json", tmp_path / "a.json")


def test_one_side_or_a_bad_match_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two sides"):
        compared("x")
    with pytest.raises(UsageError, match="shows nothing"):
        compared("x", "y", top=0)
    (tmp_path / "a.json").write_text('{"tool":"ncu","us":80}')
    with pytest.raises(UsageError, match="names no pair"):
        compared(tmp_path / "a.json", tmp_path / "a.json", match=("v2",))


@pytest.mark.corpus
def test_two_full_sets_of_the_same_kernel_are_alike() -> None:
    v2, v8 = (corpus.find(f"silu-2025-04-18-{v}.ncu-rep") for v in ("v2", "v8"))
    found = compared(v2, v8)
    (pair,) = found.pairs
    assert not found.is_draft
    (time,) = [c for c in pair.changes if c.quantity == "duration_ns"]
    assert time.ratio == pytest.approx(0.996, abs=0.002)
    assert [k.name for k in found.only_in_b] == ["silu_kernel_non_strided"]
    jsonschema.Draft202012Validator(SCHEMA).validate(
        json.loads(run(CompareRequest(paths=(str(v2), str(v8)), format="json"), World()).text)
    )


@pytest.mark.corpus
def test_batch_1_and_batch_128_are_not_the_same_work() -> None:
    sides = [corpus.find(f"R_decode_{c}__ncu.ncu-rep") for c in ("c1_out2k", "c128_out256")]
    found = compared(*sides)
    assert found.pairs
    assert not any(pair.is_comparable for pair in found.pairs)
    names = {f.name for p in found.pairs for f in p.context if f.state == "differs"}
    assert "launch shape" in names


@pytest.mark.corpus
def test_another_ncu_version_and_metric_set_is_named() -> None:
    v2, v5 = corpus.find("reduce_v2_profile"), corpus.find("reduce_v5_once.ncu-rep")
    found = compared(v2, v5, match=("reduce_v2_kernel=reduce_v5_kernel",), same_problem=True)
    (pair,) = found.pairs
    unlike = {fact.name for fact in pair.context if fact.state == "differs"}
    assert {"tool version", "set of metrics"} <= unlike
    assert all(c.ratio is None for c in pair.changes)


@pytest.mark.corpus
def test_a_folder_that_holds_one_capture_as_two_pages_is_refused(tmp_path: Path) -> None:
    golden = corpus.require(corpus.CORPUS / "golden" / "armleth__cuda-mlp-inference")
    for page, name in (("raw", "k-raw.csv"), ("details", "k-sol.csv")):
        content = gzip.decompress((golden / f"report.{page}.csv.gz").read_bytes())
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match="count double"):
        compared(tmp_path, tmp_path)
