"""A disk that fills up and a signal leave the old files, whole and together."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.campaigns import a_cell, a_fma_kernel

from solscope.errors import UsageError
from solscope.evidence.campaign import folder as folders
from solscope.evidence.campaign import text
from solscope.flows import report
from solscope.flows.campaign import CampaignRequest, run
from solscope.flows.world import World

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "decode-step-h100.ncu-rep"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    place = folders.named("campaigns", "dec")
    folders.init(place, b"name: Decode\nkrhpa_exempt_reason: stock engine\n")
    folders.write_cell(place, a_cell(a_fma_kernel()), None)
    (tmp_path / "run-1" / "ncu-profiles").mkdir(parents=True)
    shutil.copy(SAMPLE, tmp_path / "run-1" / "ncu-profiles")
    (tmp_path / "run-1" / "capture_sources.json").write_text('{"captured_sources": ["ncu"]}')
    return tmp_path


def everything() -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in Path("campaigns").rglob("*") if p.is_file()}


def limited(size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command where no file may grow beyond so many bytes."""
    program = (
        "import resource, sys; from solscope.cli import main; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); main.main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_pages_that_do_not_fit_leave_all_of_the_old_ones(home: Path) -> None:
    report.run(report.ReportRequest(slug="dec"), World())
    more = [a_fma_kernel(us=10 + i, name=f"k{i}") for i in range(9)]
    folders.write_cell(folders.named("campaigns", "dec"), a_cell(*more), None)
    before = everything()
    page = len(before["campaigns/dec/report.html"])
    # The one-file page fits, the PDF does not.
    assert len(before["campaigns/dec/report.pdf"]) > 2 * page
    done = limited(2 * page, "report", "dec")
    assert done.returncode == 2
    assert "report.pdf: cannot be written: File too large" in done.stderr
    assert "nothing was changed" in done.stderr
    assert everything() == before


def test_a_cell_that_does_not_fit_leaves_not_even_its_folder(home: Path) -> None:
    before = everything()
    done = limited(2_000, "campaign", "add", "dec", "run-1", "--cell", "c1")
    assert done.returncode == 2
    assert everything() == before
    assert not Path("campaigns/dec/cells/c1").exists()


def test_sigterm_in_the_middle_of_a_write_leaves_nothing(home: Path) -> None:
    before = everything()
    program = (
        "import os, signal, sys; from solscope.cli import main\n"
        "real = os.fsync\n"
        "def killed(handle):\n"
        "    real(handle); os.kill(os.getpid(), signal.SIGTERM)\n"
        "os.fsync = killed; main.main()"
    )
    command = [sys.executable, "-c", program, "campaign", "add", "dec", "run-1", "--cell", "c1"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert everything() == before
    assert not Path("campaigns/dec/cells/c1").exists()


def test_a_later_file_that_fails_leaves_the_earlier_as_it_was(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "first", tmp_path / "file" / "second"
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot be written"):
        text.write_together([(first, b"1"), (second, b"2")])
    assert os.listdir(tmp_path) == ["file"]


def test_a_cell_is_read_again_after_it_was_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "read_cell", lambda _folder, _id: None)
    request = CampaignRequest(action="add", slug="dec", cell="c1", bundle="run-1")
    with pytest.raises(Exception, match="not what lies there"):
        run(request, World())
