"""The shell scripts of a sister, run by a real shell."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from solscope.capture.sister import departure, tooling


def an_ncu(folder: Path, version: str) -> Path:
    home = folder / "opt" / "nvidia" / "nsight-compute" / version
    (home / "sections").mkdir(parents=True)
    (home / "ncu").write_text(f"#!/bin/sh\necho ncu {version} $1\n")
    (home / "ncu").chmod(0o755)
    return home / "ncu"


def run_copy(folder: Path, ncu: str | None = None) -> subprocess.CompletedProcess[str]:
    script = tooling.copy_script(ncu)
    for place in ("/opt/nvidia", "/usr/local", tooling.TOOLS):
        script = script.replace(place, f"{folder}{place}")
    (folder / tooling.TOOLS.lstrip("/")).mkdir(parents=True)
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)


def test_the_newest_ncu_of_the_image_is_copied_whole_and_tried(tmp_path: Path) -> None:
    an_ncu(tmp_path, "2025.3.1")
    an_ncu(tmp_path, "2026.1.1")
    done = run_copy(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ncu 2026.1.1 --version\n"
    copied = tmp_path / tooling.TOOLS.lstrip("/") / "nsight-compute"
    assert (copied / "sections").is_dir()


def test_an_ncu_behind_a_link_brings_its_real_folder(tmp_path: Path) -> None:
    real = an_ncu(tmp_path, "2026.1.1")
    link = tmp_path / "bin" / "ncu"
    link.parent.mkdir()
    link.symlink_to(real)
    done = run_copy(tmp_path, str(link))
    assert done.stdout == "ncu 2026.1.1 --version\n"


def test_an_image_without_ncu_fails_and_says_so(tmp_path: Path) -> None:
    done = run_copy(tmp_path)
    assert done.returncode == 1
    assert done.stderr == "no ncu in this image\n"


@pytest.mark.parametrize("collected", [True, False])
def test_the_sidecar_waits_for_the_results_to_be_collected(tmp_path: Path, collected: bool) -> None:
    script = tooling.hold_script().replace(tooling.RESULTS, str(tmp_path))
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as process:
        try:
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            assert process.poll() is None
            if collected:
                (tmp_path / ".collected").touch()
                assert process.wait(timeout=5) == 0
            else:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(timeout=1.5)
        finally:
            # As in a pod: with the shell, its `sleep` ends too.
            os.killpg(process.pid, signal.SIGKILL)


def test_a_deletion_ends_all_below_ncu_and_nothing_else(tmp_path: Path) -> None:
    proc, ncu = tmp_path / "proc", tmp_path / "ncu"
    ncu.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/reset\n')
    ncu.chmod(0o755)
    # Process ids of a folder that looks like /proc: only these two are real.
    with (
        subprocess.Popen(["sleep", "60"]) as worker,
        subprocess.Popen(["sleep", "60"]) as stranger,
    ):
        table = {
            "4000001": "4000001 (ncu) S 4000000 1 1",
            "4000002": "4000002 (VLLM :: (x) Core) S 4000001 1 1",
            str(worker.pid): f"{worker.pid} (python3) S 4000002 1 1",
            str(stranger.pid): f"{stranger.pid} (sh) S 4000000 1 1",
        }
        for pid, line in table.items():
            (proc / pid).mkdir(parents=True)
            (proc / pid / "stat").write_text(f"{line}\n")
        script = departure.script(str(ncu)).replace("/proc", str(proc))
        script = script.replace(tooling.RESULTS, str(tmp_path))
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        assert worker.wait(10) == -signal.SIGKILL
        assert stranger.poll() is None
        stranger.kill()
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".collected").exists()
    assert (tmp_path / "reset").read_text() == "--clock-control reset\n"


def test_clocks_that_were_not_locked_are_not_reset() -> None:
    assert "clock" not in departure.script(None)
