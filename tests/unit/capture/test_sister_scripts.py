"""The two shell scripts of a sister, run by a real shell."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from solscope.capture.sister import tooling


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
