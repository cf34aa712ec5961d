"""The campaign's tutorial, from its first command to its last, in one folder."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests import corpus

from solscope.cli import commands, perftunereport
from solscope.flows.campaign import CampaignRequest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorials" / "campaign.md"
FILES = ROOT / "docs" / "reference" / "campaign-files.md"
_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(words: list[str]) -> int:
    """A shown command; mkdir and cp as a shell does them."""
    if words[0] == "mkdir":
        for folder in words[2:]:
            Path(folder).mkdir(parents=True)
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
    assert "decode: published to lake\n  tier VERDICT" in shown.out
    assert "levers of 1 campaign" in shown.out


PUBLISHED = ROOT / "docs" / "tutorials" / "published-captures.md"
_ROW = re.compile(r"^\| `(published/[^`]+)` \| [^|]+ \| `([^`]+)` \| `(\w+)` \|$", re.MULTILINE)
REFUSED = ["solscope gate streaming", "solscope gate decode", "solscope publish decode"]


def put_published(folder: Path) -> None:
    """The files that the tutorial's table names, from the corpus, under their digests."""
    rows = _ROW.findall(PUBLISHED.read_text())
    assert len(rows) == 4
    for place, path, digest in rows:
        (record,) = [r for r in corpus.records("ncu-rep") if r["path"] == path]
        assert record["sha256"].startswith(digest)
        goal = folder / place
        goal.parent.mkdir(exist_ok=True)
        goal.write_bytes(corpus.raw(corpus.require(corpus.CORPUS / record["file"])))


@pytest.mark.corpus
def test_published_captures_go_from_bundle_to_lake_and_next_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus.require(corpus.CORPUS)
    put_published(tmp_path)
    monkeypatch.chdir(tmp_path)
    refused = []
    for language, name, body in _BLOCK.findall(PUBLISHED.read_text()):
        if language != "console":
            Path(name).write_text(body)
            continue
        for command, *expected in (part.splitlines() for part in body.split("$ ")[1:]):
            capsys.readouterr()
            code = run(shlex.split(command))
            said = capsys.readouterr()
            assert code in (0, 1), said.err
            refused += [command] if code else []
            for line in expected:
                assert line in said.out, f"{command}\n{said.out}"
    assert refused == REFUSED
    (query,) = re.findall(r"^\$ (solscope query \"SELECT.*)$", PUBLISHED.read_text(), re.MULTILINE)
    run([*shlex.split(query), "--format", "csv"])
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 2
    assert rows[1].startswith("streaming,h100,rms_norm_matrix_kernel_float4,0.89")
    for slug in ("streaming", "decode"):
        status = json.loads(Path(f"campaigns/{slug}/report_status.json").read_text())
        page = next(page for page in status["pages"] if page["name"] == "roofline")
        assert (page["page"], page["is_there"]) == (5, True)
        assert "wins at most" in Path(f"campaigns/{slug}/HANDOFF.md").read_text()


def test_every_gate_and_every_context_field_is_documented() -> None:
    from solscope.analysis.gates import GATES
    from solscope.model.context import MeasurementContext

    page = FILES.read_text()
    for name in (*GATES, "next-lever"):
        assert f"| `{name}` |" in page
    for name, _ in MeasurementContext().values():
        assert f"`{name.partition('.')[2]}`" in page
    assert CampaignRequest.__doc__
