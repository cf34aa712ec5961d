"""Faults are made when and where a rule says, and nowhere else."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time

import pytest

from tests.cluster import tools
from tests.cluster.fixture import Cluster
from tests.cluster.node import sweeping
from tests.cluster.test_kubectl import a_pod, start

pytestmark = pytest.mark.cluster

MAKE_FILE = (
    "head -c 67108864 /dev/urandom > /srv/f; "
    "sha256sum /srv/f | cut -d' ' -f1 > /srv/part; mv /srv/part /srv/sum; sleep 1000"
)


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


def test_an_evicted_pod_says_so_and_stays_down(cluster: Cluster, namespace: str) -> None:
    pod = start(cluster, namespace, a_pod("p"))
    assert cluster.node is not None
    words = "The node was low on resource: ephemeral-storage."
    cluster.node.evict(cluster.get("pods", pod, namespace), words)
    listed = ("-n", namespace, "get", "pods", "--no-headers")
    assert b"Evicted" in cluster.until(
        lambda: (out := cluster.kubectl(*listed).stdout) and b"Evicted" in out and out
    )
    status = cluster.get("pods", pod, namespace)["status"]
    assert (status["phase"], status["message"]) == ("Failed", words)


@pytest.mark.parametrize("offset", [1, 65_536, 4_000_001, 33_554_433, 60_000_000])
def test_a_large_file_can_be_fetched_on_from_any_cut(
    cluster: Cluster, namespace: str, offset: int
) -> None:
    pod = start(cluster, namespace, a_pod("p", ["sh", "-c", MAKE_FILE]))
    read = ("-n", namespace, "exec", pod, "--")
    wanted = cluster.until(
        lambda: cluster.kubectl(*read, "cat", "/srv/sum", check=False).stdout.decode().strip()
    )
    cluster.faults.add("cut", path="/exec$", after_bytes=offset)
    first = cluster.kubectl(*read, "cat", "/srv/f", check=False).stdout
    assert len(first) < offset + 1
    rest = cluster.kubectl(*read, "tail", "-c", f"+{len(first) + 1}", "/srv/f").stdout
    assert hashlib.sha256(first + rest).hexdigest() == wanted


def test_a_killed_cluster_is_swept_by_the_next(cluster: Cluster) -> None:
    script = """
import os, signal, json
from tests.cluster.fixture import Cluster
from tests.cluster.node import sweeping
from tests.cluster.test_kubectl import a_pod
with Cluster() as c:
    c.kubectl("apply", "-f", "-", stdin=a_pod("p"))
    c.kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=120s")
    print(c.node.folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=env, check=False, text=True
    )
    folder = done.stdout.strip()
    assert os.path.isdir(folder), done.stderr
    assert folder in [str(path) for path in sweeping.sweep()]
    assert not os.path.isdir(folder)
    with open("/proc/mounts") as mounts:
        assert folder not in mounts.read()
