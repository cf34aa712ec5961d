"""The older command names, run as a shell would run them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from solscope.cli import commands, perftunereport
from solscope.flows import catalog

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "decode-step-h100.ncu-rep"

TRANSCRIPT = """\
$ perftunereport campaign_init --campaign decode --config config.yaml
0
$ perftunereport import_ncu --campaign decode --cell-id c1 --bundle bundle --dry-run
0
$ perftunereport import_ncu --campaign decode --cell-id c1 --bundle bundle --hw-key h100_sxm
0
$ perftunereport import_ncu --campaign decode --cell-id c2 --bundle other
0
$ perftunereport report_render --campaign decode
0
$ perftunereport value_view
0
$ perftunereport value_view --campaign decode
0
$ perftunereport import_ncu --campaign decode --cell-id c1 --bundle nowhere
2
$ perftunereport import_ncu --campaign decode --bundle bundle
2
"""
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
    """A bundle, one that does not declare ncu, and a config."""
    (tmp_path / "config.yaml").write_text("name: Decode\nkrhpa_exempt_reason: stock engine\n")
    for name, sources in (("bundle", '["ncu"]'), ("other", '["nsys"]')):
        (tmp_path / name / "ncu-profiles").mkdir(parents=True)
        shutil.copy(SAMPLE, tmp_path / name / "ncu-profiles")
        (tmp_path / name / "capture_sources.json").write_text(f'{{"captured_sources": {sources}}}')
    return tmp_path


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(line)
    assert words[0] == "perftunereport"
    return subprocess.run(
        [sys.executable, "-m", "solscope.cli.perftunereport", *words[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_transcript_runs_as_written(home: Path) -> None:
    lines = TRANSCRIPT.splitlines()
    for line, code in zip(lines[::2], lines[1::2], strict=True):
        done = shell(line.removeprefix("$ "), home)
        assert done.returncode == int(code), f"{line}\n{done.stdout}\n{done.stderr}"
    for name in MADE:
        assert (home / "campaigns" / "decode" / name).is_file(), name
    assert not (home / "campaigns" / "decode" / "cells" / "c2").exists()


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
