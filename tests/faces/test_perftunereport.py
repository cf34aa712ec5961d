"""The older command names, run as a shell would run them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from solscope.cli import commands, perftunereport
from solscope.flows import catalog
from solscope.lake import query
from solscope.lake.delta import Lake

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "decode-step-h100.ncu-rep"

TUTORIAL = ROOT / "docs" / "tutorials" / "campaign.md"

# A command, its exit code, and words that it must say.
TRANSCRIPT = """\
$ perftunereport campaign_init --campaign decode --config config.yaml
0 campaign decode: Decode
$ perftunereport import_ncu --campaign decode --cell-id c1 --bundle bundle --dry-run
0 would add cell c1 to decode: 7 kernels of 1 report
$ perftunereport import_ncu --campaign decode --cell-id c1 --bundle bundle --hw-key h100_sxm
0 added cell c1 to decode: 7 kernels of 1 report, hardware h100_sxm
$ perftunereport import_ncu --campaign decode --cell-id c2 --bundle other
0 skipped other: capture_sources.json declares nsys, not ncu
$ perftunereport report_render --campaign decode   # -> page 5 populated
0 decode: DRAFT
$ perftunereport publish_to_lake --campaign decode
1 decode: refused, 5 gates not passed
$ perftunereport publish_to_lake --campaign decode --strict
1 gap trials: c1: no trials stated
$ perftunereport publish_to_lake --campaign decode --no-strict
0 decode: published to lake
$ perftunereport publish_to_lake --campaign decode --no-strict
0 decode: already in lake, nothing to write
$ perftunereport value_view
0 wins at most
$ perftunereport value_view --campaign decode
0 cross_device_reduce_1stage: overlap it with compute
$ perftunereport value_view --lake lake
0 levers of 1 campaign
$ perftunereport import_ncu --campaign decode --cell-id c1 --bundle nowhere
2 no such bundle
$ perftunereport import_ncu --campaign decode --bundle bundle
2 the following arguments are required: --cell-id
$ perftunereport import_ncu --campaign decode --cell-id c3 --bundle empty
3 the bundle declares ncu and holds no file of it: missing
"""
PROVEN = """\
$ perftunereport import_ncu --campaign proven --cell-id c64 --bundle proven
0 added cell c64 to proven
$ perftunereport report_render --campaign proven
0 proven: VERDICT, rigor L4
$ perftunereport publish_to_lake --campaign proven
0 proven: published to lake
$ perftunereport value_view --campaign proven
0 wins at most
"""
RUBRICS = {
    "missing": ("", "gap rubric: krhpa: neither krhpa nor krhpa_exempt_reason is there"),
    "malformed": (
        "krhpa: {candidate: {K: 4, R: 2, H: 5, P: 2, A: 1, name: x}}\n",
        "gap rubric: krhpa: ",
    ),
    "a generic kernel against the tensor library": (
        "krhpa:\n"
        "  candidate: {K: 4, R: 2, H: 1, P: 2, A: 1, name: Triton FMA, kernel: rotary}\n"
        "  baseline: {K: 4, R: 1, H: 4, P: 4, A: 1, name: tensor library, kernel: nvjet}\n",
        "gap fairness: krhpa: the baseline tensor library is R1, the candidate R2",
    ),
}
MADE = (
    "config.yaml",
    "cells/c1/ncu_kernels.json",
    "report.html",
    "report.pdf",
    "report_status.json",
    "verdict.json",
    "HANDOFF.md",
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Bundles with, without and with no file of ncu, a proven one, and the command on the path."""
    (tmp_path / "config.yaml").write_text("name: Decode\nkrhpa_exempt_reason: stock engine\n")
    for name, sources in (
        ("bundle", "ncu"),
        ("other", "nsys"),
        ("proven", "ncu"),
        ("empty", "ncu"),
    ):
        (tmp_path / name / "ncu-profiles").mkdir(parents=True)
        if name != "empty":
            shutil.copy(SAMPLE, tmp_path / name / "ncu-profiles")
        declared = f'{{"captured_sources": ["{sources}"]}}'
        (tmp_path / name / "capture_sources.json").write_text(declared)
    context = re.search(r"```yaml run-1/context.yaml\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)
    assert context is not None
    (tmp_path / "proven" / "context.yaml").write_text(context[1])
    command = tmp_path / "bin" / "perftunereport"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m solscope.cli.perftunereport "$@"\n')
    command.chmod(0o755)
    return tmp_path


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """One line as a shell runs it, comment and all."""
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def follow(transcript: str, folder: Path) -> None:
    """Every command gives the code and says the words that stand below it."""
    lines = transcript.splitlines()
    for line, expected in zip(lines[::2], lines[1::2], strict=True):
        done = shell(line.removeprefix("$ "), folder)
        code, _, words = expected.partition(" ")
        said = " ".join(f"{done.stdout} {done.stderr}".split())
        assert done.returncode == int(code), f"{line}\n{said}"
        assert words in said, f"{line}\n{said}"


def test_the_transcript_runs_as_written(home: Path) -> None:
    follow(TRANSCRIPT, home)
    campaign = home / "campaigns" / "decode"
    for name in MADE:
        assert (campaign / name).is_file(), name
    assert not (campaign / "cells" / "c2").exists()
    assert not (campaign / "cells" / "c3").exists()
    status = json.loads((campaign / "report_status.json").read_text())
    page = next(page for page in status["pages"] if page["name"] == "roofline")
    assert page == {"name": "roofline", "page": 5, "is_there": True, "why": None}


def proven(home: Path, rubric: str) -> None:
    """A campaign ``proven`` with this rubric; its bundle's context is complete."""
    folder = home / "campaigns" / "proven"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"name: Proven\nend_to_end_share: 0.7\n{rubric}")


def test_a_proven_campaign_is_published_by_default(home: Path) -> None:
    proven(home, "krhpa_exempt_reason: stock engine\n")
    follow(PROVEN, home)


@pytest.mark.parametrize("rubric", list(RUBRICS))
def test_counted_work_without_a_fair_rubric_is_refused_and_recorded(
    home: Path, rubric: str
) -> None:
    text, why = RUBRICS[rubric]
    proven(home, text)
    done = "perftunereport publish_to_lake --campaign proven"
    follow("\n".join(PROVEN.splitlines()[:2]), home)
    follow(f"$ {done}\n1 {why}\n$ {done} --no-strict\n0 {why}\n", home)
    count = "SELECT tier, strict FROM campaigns WHERE gaps_json LIKE '%krhpa%'"
    found = query.ask(Lake(location=str(home / "lake")), count)
    assert found.rows == (("DRAFT", False),)


def test_publishing_goes_through_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []

    def call(words: list[str]) -> int:
        called.append(words)
        return 0

    monkeypatch.setattr(commands, "call", call)
    for extra in ([], ["--strict"], ["--no-strict"], ["--lake", "s3://bucket/lake"]):
        with pytest.raises(SystemExit):
            perftunereport.main(["publish_to_lake", "--campaign", "decode", *extra])
    base = ["publish", "decode", "--yes", "--campaigns", "campaigns"]
    assert called == [base, base, [*base, "--no-strict"], [*base, "--lake", "s3://bucket/lake"]]


def test_every_older_name_calls_a_verb_and_says_which(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        perftunereport.main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    names = ("campaign_init", "import_ncu", "report_render", "publish_to_lake", "value_view")
    assert all(name in shown for name in names)
    verbs = {verb.name for verb in catalog.VERBS}
    assert {"campaign", "report", "next", "gate"} <= verbs
