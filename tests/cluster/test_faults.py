"""Faults are made when and where a rule says, and nowhere else."""

from __future__ import annotations

import subprocess
import time

import pytest

from tests.cluster import tools
from tests.cluster.fixture import Cluster
from tests.cluster.test_kubectl import a_pod, start

pytestmark = pytest.mark.cluster


def test_a_stream_is_cut_after_so_many_bytes(cluster: Cluster, namespace: str) -> None:
    pod = start(cluster, namespace, a_pod("p"))
    command = ("-n", namespace, "exec", pod, "--", "head", "-c", "3000000", "/dev/zero")
    assert len(cluster.kubectl(*command).stdout) == 3_000_000
    cluster.faults.add("cut", path="/exec$", after_bytes=1_000_000)
    cut = cluster.kubectl(*command, check=False)
    # Frames and the upgrade's head count too, so a little less than the limit arrives.
    assert 900_000 < len(cut.stdout) <= 1_000_000
    assert cut.returncode != 0
    assert len(cluster.kubectl(*command).stdout) == 3_000_000


def test_a_refused_upgrade_fails_exec_alone(cluster: Cluster, namespace: str) -> None:
    pod = start(cluster, namespace, a_pod("p"))
    cluster.faults.add("refuse-upgrade", path="/exec$", code=403, times=5)
    done = cluster.kubectl("-n", namespace, "exec", pod, "--", "true", check=False)
    assert done.returncode != 0
    assert cluster.kubectl("-n", namespace, "get", "pod", pod).returncode == 0


def test_an_answer_can_be_an_error_of_the_server_once(cluster: Cluster, namespace: str) -> None:
    cluster.faults.add("status", path=f"/namespaces/{namespace}/pods", code=500)
    command = ("-n", namespace, "get", "pods")
    assert cluster.kubectl(*command, check=False).returncode == 1
    assert cluster.kubectl(*command).returncode == 0


def test_an_answer_can_be_late(cluster: Cluster, namespace: str) -> None:
    cluster.faults.add("delay", path=f"/namespaces/{namespace}/pods", seconds=1.5)
    begun = time.monotonic()
    cluster.kubectl("-n", namespace, "get", "pods")
    assert time.monotonic() - begun >= 1.5


def test_a_dropped_connection_is_asked_again_by_kubectl(cluster: Cluster, namespace: str) -> None:
    rule = cluster.faults.add("drop", path=f"/namespaces/{namespace}/pods")
    assert cluster.kubectl("-n", namespace, "get", "pods").returncode == 0
    assert rule.times == 0
    assert cluster.faults.hits[-1][0] == "drop"


def test_a_lost_watch_ends_the_stream(cluster: Cluster, namespace: str) -> None:
    program = [str(tools.kubectl_path()), "-n", namespace, "get", "pods", "-o", "name"]
    with subprocess.Popen(
        [*program, "--watch"], env=cluster.environment(), stdout=subprocess.PIPE
    ) as watch:
        assert watch.stdout is not None
        start(cluster, namespace, a_pod("p"))
        assert watch.stdout.readline() == b"pod/p\n"
        cluster.faults.add("lose-watch")
        assert watch.wait(20) is not None


def test_a_killed_container_says_why(cluster: Cluster, namespace: str) -> None:
    pod = start(cluster, namespace, a_pod("p", restartPolicy="Never"))
    assert cluster.node is not None
    cluster.node.kill(cluster.get("pods", pod, namespace), "srv", reason="OOMKilled")

    def ended() -> object:
        status = cluster.get("pods", pod, namespace)["status"]["containerStatuses"][0]
        return status["state"].get("terminated")

    told = cluster.until(ended)
    assert (told["exitCode"], told["reason"]) == (137, "OOMKilled")
