"""The how-to runs as written, from its first command to its last, in one folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from solscope.cli import commands
from tests.lake import campaigns as made

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "query.md"


def shown(language: str) -> list[str]:
    """The blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def a_campaign_of_the_sample() -> None:
    """``campaigns/decode-h100``, imported from the shipped report."""
    bundle = Path("bundle/ncu-profiles")
    bundle.mkdir(parents=True)
    (bundle / "decode.ncu-rep").symlink_to(ROOT / "samples" / "decode-step-h100.ncu-rep")
    (bundle.parent / "capture_sources.json").write_text('{"captured_sources": ["ncu"]}')
    Path("config.yaml").write_text("name: Decode on H100\nkrhpa_exempt_reason: nothing compared\n")
    assert commands.call(["campaign", "init", "decode-h100", "--config", "config.yaml"]) == 0
    assert commands.call(["campaign", "add", "decode-h100", "bundle", "--cell", "h100"]) == 0


def test_the_how_to_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    a_campaign_of_the_sample()
    lines = [line for block in shown("sh") for line in block.splitlines()]
    ours = [line for line in lines if line.startswith("solscope ")]
    assert len(ours) == len(lines) - 1 >= 10
    capsys.readouterr()
    for line in ours:
        assert commands.call(shlex.split(line)[1:]) == 0, line
        assert capsys.readouterr().out.strip(), line
    (block,) = shown("python")
    names: dict[str, object] = {}
    exec(compile(block, "query.md", "exec"), names)
    assert getattr(names["kernels"], "height", 0) == 7


def test_publishing_the_sample_strictly_is_refused_with_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    a_campaign_of_the_sample()
    capsys.readouterr()
    assert commands.call(["publish", "decode-h100", "--yes"]) == 1
    said = capsys.readouterr().out
    assert "decode-h100: refused" in said
    assert "gap trials: h100: no trials stated" in said
    assert not Path("lake").exists()


def test_the_launches_of_a_report_reach_the_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from solscope.lake import query

    monkeypatch.chdir(tmp_path)
    a_campaign_of_the_sample()
    assert commands.call(["publish", "decode-h100", "--yes", "--no-strict"]) == 0
    sums = query.ask(
        made.lake_at("lake"),
        "SELECT k.name, k.launches = count(*) AND k.kernel_time_ns = sum(l.duration_ns) "
        "FROM kernels k JOIN kernel_launches l USING (name) "
        "GROUP BY k.name, k.launches, k.kernel_time_ns",
    )
    assert len(sums.rows) == 7
    assert all(agrees for _, agrees in sums.rows)
