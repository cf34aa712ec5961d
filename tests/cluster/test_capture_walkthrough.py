"""The walk-through of docs/how-to/capture.md: its commands, run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import tools
from tests.cluster.fixture import Cluster
from tests.cluster.test_capture import Site, site  # noqa: F401

pytestmark = [pytest.mark.cluster, pytest.mark.capture]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "capture.md"
NAMESPACE = "inference"
SHIM = '#!/bin/sh\nexec {} -m solscope.cli.main "$@"\n'


def test_the_walk_through_does_what_it_says(cluster: Cluster, site: Site) -> None:  # noqa: F811
    cluster.make_namespace(NAMESPACE)
    site.namespace = NAMESPACE
    site.deploy(replicas=2)
    shim = site.folder / "bin" / "solscope"
    shim.parent.mkdir()
    shim.write_text(SHIM.format(sys.executable))
    shim.chmod(0o755)
    path = f"{shim.parent}:{tools.kubectl_path().parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src")}
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    commands = [line[2:] for block in blocks for line in block.splitlines()]
    assert len(commands) == 7
    try:
        for command in commands:
            done = subprocess.run(
                command, shell=True, cwd=site.folder, env=env, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert site.left() == []
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=true", "--timeout=120s")
