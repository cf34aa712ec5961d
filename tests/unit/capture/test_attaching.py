"""The second ncu: it comes when there is something to attach to, and its word is awaited."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests import captures
from tests.fakes.cluster import FakeCluster

from solscope.capture import planfile
from solscope.capture.execution import attaching, scripts
from solscope.capture.execution.attaching import Attaching
from solscope.capture.execution.server import Sister
from solscope.cluster.port import ExecResult
from solscope.errors import CaptureError
from solscope.model.plan import Strategy

CONNECTED = "==PROF== Connected to process 7 (python3)\n"
NOBODY = "==ERROR== No processes found on 127.0.0.1 (ports 49152-49215).\n"


def listening(first: int, count: int) -> list[int]:
    done = subprocess.run(
        ["sh", "-c", scripts.LISTENING, "sh", str(first), str(count)],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_what_listens_is_seen_without_a_connection(family: socket.AddressFamily) -> None:
    with socket.socket(family) as server:
        try:
            server.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        except OSError:
            pytest.skip("no IPv6 on this machine")
        port = server.getsockname()[1]
        assert port not in listening(port, 1)
        server.listen()
        assert listening(port, 1) == [port]
        assert port in listening(port - 10, 64)
        assert port not in listening(port + 1, 64)
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
    assert port not in listening(port, 1)


def test_a_command_is_started_detached_and_its_end_is_seen(tmp_path: Path) -> None:
    log = tmp_path / "notes" / "log"
    words = ["sh", "-c", scripts.ATTACH, "sh", str(log), "sh", "-c", "echo said; exec sleep 30"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    pid = done.stdout.strip()

    def state() -> tuple[str, str]:
        told = subprocess.run(
            ["sh", "-c", scripts.ATTACH_STATE, "sh", str(log), pid], capture_output=True, text=True
        )
        return told.stdout, told.stderr

    try:
        while not log.read_text():
            pass
        assert state() == ("said\n", "")
    finally:
        os.kill(int(pid), 9)


class Pod(FakeCluster):
    """A pod in which something listens from the ``opens``-th look on, and ncu says ``logs``."""

    def __init__(self, opens: int, logs: list[str]) -> None:
        status = {"containerStatuses": [{"name": "vllm", "state": {"running": {}}}]}
        labels = {"experiment": "x", "solscope-sister": "1"}
        metadata = {"name": "p", "namespace": "prod", "labels": labels}
        super().__init__([{"kind": "Pod", "metadata": metadata, "status": status}])
        self._namespace = "prod"
        self.opens, self.logs = opens, logs
        self.looks = self.starts = 0
        self.earlier = ""

    def exec(self, pod: str, container: str, command: Sequence[str], **_: Any) -> ExecResult:
        assert container == "solscope-results"
        out = ""
        err = ""
        if command[-1] != attaching.LOG and command[2] == scripts.LISTENING:
            self.looks += 1
            out = "49153\n" if self.looks >= self.opens else ""
        elif command[0] == "cat":
            out = self.earlier
        elif command[2] == scripts.ATTACH:
            self.starts += 1
            out = "41\n"
        else:
            out, err = self.logs.pop(0), "dead"
        return ExecResult(stdout=out.encode(), stderr=err, exit_code=0)


def second(pod: Pod, tmp_path: Path, strategy: Strategy = Strategy.ATTACH) -> Attaching:
    path = captures.a_plan(tmp_path, strategy="attach")
    plan = planfile.from_json(path.read_bytes(), where="plan")
    sister = Sister(cluster=pod, settings=captures.a_capture_settings(), pod="p")
    plan = replace(plan, strategy=strategy)
    return Attaching(sister=sister, plan=plan, command=("ncu",), tick=lambda _: None)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attaching, "POLL_S", 0.001)


def test_it_waits_for_the_endpoint_and_for_the_first_cuda_call(tmp_path: Path) -> None:
    pod = Pod(opens=3, logs=[NOBODY, CONNECTED])
    told = second(pod, tmp_path).attach(10.0)
    assert told == {"pid": "41", "port": 49153, "tries": 2}
    assert pod.looks == 3


def test_an_endpoint_that_nobody_opens_is_told_before_anything_attaches(tmp_path: Path) -> None:
    pod = Pod(opens=10**9, logs=[])
    with pytest.raises(CaptureError, match=r"nothing listens on 127\.0\.0\.1:49152"):
        second(pod, tmp_path).attach(0.05)
    assert pod.starts == 0


def test_a_preload_that_opens_nothing_is_given_up_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attaching, "_PRELOAD_LIMIT_S", 0.05)
    with pytest.raises(CaptureError) as caught:
        second(Pod(opens=10**9, logs=[]), tmp_path, Strategy.PRELOAD).attach(3600.0)
    assert "--strategy launch" in str(caught.value.hint)


def test_an_attach_that_fails_is_told_with_its_own_words(tmp_path: Path) -> None:
    pod = Pod(opens=1, logs=["==ERROR== Cuda driver is not compatible with Nsight Compute.\n"])
    with pytest.raises(CaptureError, match="Cuda driver is not compatible"):
        second(pod, tmp_path).attach(10.0)


def test_one_that_has_attached_already_is_not_started_again(tmp_path: Path) -> None:
    pod = Pod(opens=10**9, logs=[])
    pod.earlier = CONNECTED
    assert second(pod, tmp_path).attach(10.0)["tries"] == 0
    assert (pod.looks, pod.starts) == (0, 0)
