"""Takes away what a node left behind whose process was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

PREFIX = "solscope-node-"
PARENT = Path("/run")


def folder_prefix() -> str:
    """The prefix of this process's node folders; the process id tells whether it still lives."""
    return f"{PREFIX}{os.getpid()}-"


def sweep() -> list[Path]:
    """Clean the folders of dead processes; gives those that were found."""
    found = []
    for folder in sorted(PARENT.glob(f"{PREFIX}*")):
        owner = folder.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdigit() and Path(f"/proc/{owner}").exists():
            continue
        found.append(folder)
        _clean(folder)
    return found


def _clean(folder: Path) -> None:
    runc = ["runc", "--root", str(folder / "runc")]
    for container in (folder / "containers").glob("*"):
        command = [*runc, "delete", "--force", container.name]
        subprocess.run(command, capture_output=True, check=False)
        mounted = str(container / "rootfs")
        subprocess.run(["umount", "-l", mounted], capture_output=True, check=False)
    for holder in (folder / "pods").glob("*/holder"):
        for pid in holder.read_text().split():
            with contextlib.suppress(OSError):
                # Process ids are used again: only a holder's own command line is killed.
                if b"sleep\0infinity" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(int(pid), signal.SIGKILL)
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)
