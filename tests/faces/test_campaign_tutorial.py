"""The campaign's tutorial, from its first command to its last, in one folder."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from solscope.cli import commands, perftunereport
from solscope.flows.campaign import CampaignRequest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorials" / "campaign.md"
FILES = ROOT / "docs" / "reference" / "campaign-files.md"
_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(words: list[str]) -> int:
    """A shown command; mkdir and cp as a shell does them."""
    if words[0] == "mkdir":
        Path(words[-1]).mkdir(parents=True)
        return 0
    if words[0] == "cp":
        shutil.copy(words[1], words[2])
        return 0
    if words[0] == "perftunereport":
        with pytest.raises(SystemExit) as ended:
            perftunereport.main(words[1:])
        return int(ended.value.code or 0)
    assert words[0] == "solscope"
    return commands.call(words[1:])


def test_the_tutorial_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    codes: dict[str, list[int]] = {}
    for language, name, body in _BLOCK.findall(PAGE.read_text()):
        if language != "console":
            Path(name).write_text(body)
            continue
        for line in body.splitlines():
            words = shlex.split(line.removeprefix("$ "))
            codes.setdefault(" ".join(words[:2]), []).append(run(words))
    shown = capsys.readouterr()
    assert codes.pop("solscope gate") == [1, 0], shown.out
    assert all(code == 0 for found in codes.values() for code in found), shown.err
    verdict = json.loads(Path("campaigns/decode/verdict.json").read_text())
    assert verdict["tier"] == "VERDICT"
    assert "wider tile" in Path("campaigns/decode/HANDOFF.md").read_text()


def test_every_gate_and_every_context_field_is_documented() -> None:
    from solscope.analysis.gates import GATES
    from solscope.model.context import MeasurementContext

    page = FILES.read_text()
    for name in (*GATES, "next-lever"):
        assert f"| `{name}` |" in page
    for name, _ in MeasurementContext().values():
        assert f"`{name.partition('.')[2]}`" in page
    assert CampaignRequest.__doc__
