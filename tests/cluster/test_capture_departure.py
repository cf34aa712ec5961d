"""A copy that must go while it is at work: production gets its GPU back at once, as it was."""

from __future__ import annotations

import json
import time

import pytest

from solscope.errors import CaptureError
from solscope.flows import capture
from solscope.flows.world import World
from tests.cluster.server.status import Json
from tests.cluster.test_capture import Site, site  # noqa: F401

pytestmark = [pytest.mark.cluster, pytest.mark.capture]


def copy_of(site: Site) -> Json:  # noqa: F811
    """The copy's pod."""
    listed = site.cluster.kubectl(
        "-n", site.namespace, "get", "pods", "-l", "experiment", "-o", "json"
    )
    (pod,) = json.loads(listed.stdout)["items"]
    return dict(pod)


def test_a_copy_that_is_preempted_frees_its_gpu_at_once(site: Site) -> None:  # noqa: F811
    # Its shell, as the first process, ends at no signal: the grace period would pass, 600 s.
    site.deploy()
    gone_after: list[float] = []

    def preempt(text: str) -> None:
        if text == "warm-up":
            begun = time.monotonic()
            command = ("delete", "pods", "-l", "experiment", "--timeout=60s")
            site.cluster.kubectl("-n", site.namespace, *command, check=False)
            gone_after.append(time.monotonic() - begun)

    command = "sh -c 'STANDIN_TOKEN_S=0.05 vllm serve tiny --port 8000; true'"
    request = capture.CaptureRequest(**site.options(server_command=command))
    with pytest.raises(CaptureError):
        capture.run(request, World(say=preempt))
    assert gone_after[0] < 30, gone_after
    assert site.left() == []


def test_the_clocks_of_a_gpu_whose_ncu_hangs_are_freed(site: Site) -> None:  # noqa: F811
    site.deploy(STANDIN_NCU_FAIL="hang")
    error = site.failure(window_limit=12.0)
    assert error.receipt == "10-profile"
    assert site.steps()["free-clocks"]
    assert "--clock-control reset" in (site.bundle / "commands/11-free-clocks.cmd").read_text()
    assert "may have left" not in str(error)


def test_clocks_that_nobody_could_free_are_told_with_the_node(site: Site) -> None:  # noqa: F811
    site.deploy(STANDIN_NCU_FAIL="hang")

    killed: list[str] = []

    def kill(text: str) -> None:
        if "replaying" in text and not killed:
            node = site.cluster.node
            assert node is not None
            killed.append(text)
            node.kill(copy_of(site), "vllm", reason="OOMKilled")

    request = capture.CaptureRequest(**site.options())
    with pytest.raises(CaptureError, match="may have left the clocks of a GPU of") as caught:
        capture.run(request, World(say=kill))
    assert "nvidia-smi --reset-gpu-clocks" in str(caught.value)
    assert site.left() == []
