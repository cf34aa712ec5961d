"""A year of captures as one table: what `next --lake` makes of it, from real files to the text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solscope.cli import commands
from solscope.errors import LakeError
from solscope.flows import publish
from solscope.lake import history
from tests.lake import campaigns as made

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "decode-step-h100.ncu-rep"
CONTEXT = "workload: {dataset: random, input_tokens: 1024, output_tokens: 256, concurrency: 64}\n"
FINDINGS = """\
findings:
- {id: "c64:flash_fwd_splitkv_kernel:dram", title: FP8 KV cache, status: closed negative,
   next_lever: none, why: "accuracy fell by 2 points"}
"""


def capture(slug: str, day: str, *, slower: float = 1.0, **how: Any) -> None:
    """Publish a campaign of the sample as if it were captured that day, times scaled."""
    place = Path("bundles", slug)
    (place / "ncu-profiles").mkdir(parents=True)
    shutil.copy(SAMPLE, place / "ncu-profiles")
    (place / "capture_sources.json").write_text('{"captured_sources": ["ncu"]}')
    (place / "context.yaml").write_text(CONTEXT)
    Path("config.yaml").write_text(f"name: {slug}\nkrhpa_exempt_reason: stock engine\n")
    assert commands.call(["campaign", "init", slug, "--config", "config.yaml"]) == 0
    assert commands.call(["campaign", "add", slug, str(place), "--cell", "c64"]) == 0
    folder = Path("campaigns", slug, "cells", "c64")
    rewrite(folder / "ncu_kernels.json", lambda d: changed(d, slower, how))
    rewrite(folder / "launches.json", lambda d: launched(d, day, slower))


def changed(document: dict[str, Any], slower: float, how: dict[str, Any]) -> None:
    measured = document["solscope"]["analysis"]["kernels"]
    for kernel, ours in zip(document["kernels"], measured, strict=True):
        kernel["kernel_time_ns"] *= slower
        ours["totals"]["duration_ns"] *= slower
        kernel.update(how)
    for report in document["solscope"]["analysis"]["reports"]:
        report["session"].update(how)


def launched(document: dict[str, Any], day: str, slower: float) -> None:
    document["captured_at"] = day
    for launch in document["launches"]:
        launch["duration_ns"] *= slower


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def put(slug: str) -> None:
    assert commands.call(["publish", slug, "--yes", "--no-strict"]) == 0


@pytest.fixture
def year(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """April; May, a quarter slower; June, half as slow again but at other caches."""
    monkeypatch.chdir(tmp_path)
    controls = {"clock_control": "base", "replay_mode": "kernel"}
    capture("april", "2026-04-02T00:00:00+02:00", cache_control="all", **controls)
    capture("may", "2026-05-02", slower=1.25, cache_control="all", **controls)
    capture("june", "2026-06-02", slower=1.5, cache_control="none", **controls)
    Path("campaigns/april/value-findings.yaml").write_text(FINDINGS)
    return tmp_path


def test_rows_come_back_as_they_were_measured(year: Path) -> None:
    put("april")
    past = history.read(made.lake_at("lake"))
    (campaign,) = past.campaigns
    assert campaign.tier == "DRAFT"
    assert campaign.frontier is not None
    assert campaign.frontier.refuted[0].why == "accuracy fell by 2 points"
    first = next(k for k in past.kernels if k.name == "flash_fwd_splitkv_kernel")
    assert first.captured_at == "2026-04-01T22:00:00+00:00"
    assert (first.launches, first.ns_per_launch) == (1, 98_304.0)
    assert first.conditions.chip == "h100_sxm"
    assert first.conditions.cache_control == "all"
    assert first.conditions.sm_clock_hz == pytest.approx(1.755e9, rel=0.01)
    assert first.conditions.grid is not None
    assert first.context.workload.concurrency == 64
    assert len(past.kernels) == 7


def test_next_over_a_year_names_levers_refuted_ones_and_what_got_slower(
    year: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for slug in ("april", "may"):
        put(slug)
    capsys.readouterr()
    assert commands.call(["next", "--lake", "lake", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("levers of 3 campaigns")
    assert "open in april/c64" in said
    assert "but refuted in april: accuracy fell by 2 points" in " ".join(said.split())
    assert "98.3 µs to 123 µs a launch, x1.25, h100_sxm" in said
    assert "april/c64 of 2026-04-01 to may/c64 of 2026-05-02" in said
    put("june")
    capsys.readouterr()
    assert commands.call(["next", "--lake", "lake", "--dry-run", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    slower = document["lake"]["slower"]
    assert len(slower) == 7
    assert {tuple(u["name"] for u in change["unlike"]) for change in slower} == {("cache control",)}


def test_the_lake_alone_is_enough_for_a_reader_who_has_no_campaign(
    year: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put("april")
    shutil.move("campaigns", "elsewhere")
    capsys.readouterr()
    assert commands.call(["next", "--lake", "lake"]) == 0
    assert "april/c64" in capsys.readouterr().out
    assert commands.call(["next"]) == 2


def test_a_campaign_published_without_its_levers_has_none(tmp_path: Path) -> None:
    made.campaign(tmp_path, "bare")
    made.put(tmp_path, "bare", tmp_path / "lake")
    past = history.read(made.lake_at(tmp_path / "lake"))
    assert past.campaigns[0].frontier is None
    assert {kernel.conditions.grid for kernel in past.kernels} == {None}


def test_a_frontier_that_is_none_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from solscope.lake import rows

    made.campaign(tmp_path, "bent")
    monkeypatch.setattr(rows, "_json", lambda _value: '{"open": 1}')
    judgement = publish.Judgement(tier="DRAFT", frontier=publish.frontier.Frontier())
    made.put(tmp_path, "bent", tmp_path / "lake", judgement=judgement)
    with pytest.raises(LakeError, match="frontier_json of campaign bent"):
        history.read(made.lake_at(tmp_path / "lake"))
