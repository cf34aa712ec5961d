"""The node: takes up pods that are bound to it, and answers the API server about them."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.controllers import objects
from tests.cluster.node import sweeping
from tests.cluster.node.container import Container
from tests.cluster.node.images import Images
from tests.cluster.node.runtime import Runc
from tests.cluster.node.worker import PodWorker
from tests.cluster.server.request import Request
from tests.cluster.server.resources import BY_KEY
from tests.cluster.server.status import ApiError, Json, bad_request
from tests.cluster.server.store import Store
from tests.cluster.server.streams import Session

NODES = BY_KEY["nodes"]
POLL_S = 0.5


class Kubelet:
    """One node, its folder on a tmpfs of its own."""

    def __init__(self, store: Store, name: str, gpus: int = 8) -> None:
        self.store, self.name, self.gpus = store, name, gpus
        sweeping.sweep()
        prefix = sweeping.folder_prefix()
        self.folder = Path(tempfile.mkdtemp(prefix=prefix, dir=sweeping.PARENT))
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(self.folder)], check=True)
        self.runc = Runc(self.folder)
        self.images = Images(self.folder / "images")
        self.workers: dict[str, PodWorker] = {}
        self._addresses = itertools.count(2)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="kubelet")

    def start(self) -> None:
        """Register the node and begin."""
        self.store.insert(NODES, node_object(self.name, self.gpus))
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            seen = self.store.version
            for pod in self.store.list(objects.PODS):
                uid = pod["metadata"]["uid"]
                finished = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
                is_here = pod["spec"].get("nodeName") == self.name
                if is_here and not finished and uid not in self.workers:
                    self._take(pod)
            self.store.wait(seen, POLL_S)
            self._stop.wait(0.02)

    def _take(self, pod: Json) -> None:
        number = next(self._addresses)
        address = f"10.244.{number // 250}.{number % 250}"
        worker = PodWorker(self.store, self.runc, self.images, pod, address)
        self.workers[pod["metadata"]["uid"]] = worker
        worker.thread.start()

    def stop(self) -> None:
        """End every pod and take every file and mount away."""
        self._stop.set()
        self._thread.join(5)
        for worker in self.workers.values():
            worker.stop.set()
        for worker in self.workers.values():
            worker.thread.join(20)
        subprocess.run(["umount", "-l", str(self.folder)], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def faults(self) -> list[str]:
        """Tracebacks of pods that broke the fixture itself."""
        return [text for worker in self.workers.values() for text in worker.faults]

    def kill(self, pod: Json, container: str, *, reason: str | None = None) -> None:
        """Kill a container's first process; ``reason`` is what its status will say."""
        found = self._running(pod, container)
        found.kill_reason = reason
        self.runc.signal(found.identifier, "KILL")

    def evict(self, pod: Json, message: str) -> None:
        """End a pod as a node under pressure does: Failed, reason Evicted, no restart."""
        self.workers[pod["metadata"]["uid"]].evicted = message

    def _running(self, pod: Json, container: str) -> Container:
        worker = self.workers.get(pod["metadata"]["uid"])
        found = worker.containers.get(container) if worker else None
        if found is None or not found.is_running:
            raise ApiError(500, "InternalError", f'container not found ("{container}")')
        return found

    def logs(self, pod: Json, container: str, request: Request) -> Iterator[bytes]:
        """A container's output, followed to its end where asked."""
        worker = self.workers.get(pod["metadata"]["uid"])
        found = worker.containers.get(container) if worker else None
        previous = request.is_true("previous")
        name = pod["metadata"]["name"]
        if found is None or (found.process is None and not found.restarts):
            reason = (found.state.get("waiting") or {}).get("reason") if found else "starting"
            raise bad_request(
                f'container "{container}" in pod "{name}" is waiting to start: {reason}'
            )
        if previous and not found.restarts:
            raise bad_request(
                f'previous terminated container "{container}" in pod "{name}" not found'
            )
        return self._lines(found, request, previous)

    def _lines(self, found: Container, request: Request, previous: bool) -> Iterator[bytes]:
        path = found.log(previous=previous)
        if request.is_true("timestamps"):
            yield from found.stamped(path, request.option("sinceTime") or "")
            return
        limit = int(request.option("limitBytes") or 0)
        tail = request.option("tailLines")
        process = found.process
        with path.open("rb") as source:
            if tail:
                lines = source.read().splitlines(keepends=True)
                yield b"".join(lines[-int(tail) :] if int(tail) else [])
            while True:
                data = source.read(65536)
                if data:
                    yield data[:limit] if limit else data
                    if limit:
                        return
                    continue
                if not request.is_true("follow") or process is None or process.poll() is not None:
                    yield source.read()
                    return
                time.sleep(0.05)

    def exec(
        self, pod: Json, container: str, command: list[str], streams: tuple[bool, bool, bool]
    ) -> Session:
        """Start a command in a running container."""
        found = self._running(pod, container)
        process = self.runc.exec(found.identifier, command)
        return Session(process, *streams, failure=_runtime_fault)

    def connect(self, pod: Json, port: int) -> socket.socket:
        """A connection to the pod's loopback."""
        worker = self.workers.get(pod["metadata"]["uid"])
        if worker is None or worker.sandbox is None:
            raise ConnectionRefusedError(111, "Connection refused")
        return worker.sandbox.connect(port)


def _runtime_fault(code: int, stderr: bytes) -> str | None:
    marker = b"exec failed: "
    if code != 255 or marker not in stderr:
        return None
    text = stderr[stderr.index(marker) :].decode(errors="replace")
    text = text.split('"\n')[0].replace('\\"', '"').rstrip('"\n')
    return f"Internal error occurred: OCI runtime exec failed: {text}: unknown"


def node_object(name: str, gpus: int) -> Json:
    """A node with GPU feature discovery labels like those of a real H100 node."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.compute.major": "9",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/cuda.driver-version.full": "580.95.05",
        "nvidia.com/cuda.driver-version.major": "580",
        "nvidia.com/cuda.driver-version.minor": "95",
        "nvidia.com/cuda.driver-version.revision": "05",
        "nvidia.com/cuda.runtime-version.full": "13.0",
        "nvidia.com/cuda.runtime-version.major": "13",
        "nvidia.com/cuda.runtime-version.minor": "0",
    }
    amounts = {"cpu": str(os.cpu_count() or 1), "memory": "64Gi", "pods": "110"}
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    info = {
        "containerRuntimeVersion": "runc://1.1.5",
        "kubeletVersion": "v1.36.2",
        "osImage": "test",
        "operatingSystem": "linux",
        "architecture": "amd64",
        "kernelVersion": os.uname().release,
    }
    status = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": [ready],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "nodeInfo": info,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": status,
    }
