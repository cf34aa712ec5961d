"""A pod's own network, IPC and host name, and its volumes."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster.node.images import Images
from tests.cluster.server.resources import BY_KEY
from tests.cluster.server.status import Json
from tests.cluster.server.store import Store

CLONE_NEWNET = 0x40000000
CONNECT_TIMEOUT_S = 5.0


class Sandbox:
    """One process that keeps a pod's namespaces alive."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--ipc", "--uts", "--pid", "--fork", "sleep", "infinity"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.pid = self._child()
        (folder / "holder").write_text(f"{self.pid} {self._holder.pid}")
        self._in_network(_raise_loopback)

    def _child(self) -> int:
        path = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        for _ in range(200):
            found = path.read_text().split() if path.exists() else []
            if found and os.readlink(f"/proc/{found[0]}/ns/net") != os.readlink(
                "/proc/self/ns/net"
            ):
                return int(found[0])
            time.sleep(0.01)
        raise OSError("a pod's namespaces could not be made")

    def namespaces(self, *, shares_pid: bool) -> dict[str, str]:
        """Paths of the namespaces that the pod's containers join."""
        found = {
            "network": f"/proc/{self.pid}/ns/net",
            "ipc": f"/proc/{self.pid}/ns/ipc",
            "uts": f"/proc/{self.pid}/ns/uts",
        }
        return {**found, "pid": f"/proc/{self.pid}/ns/pid"} if shares_pid else found

    def _in_network(self, action: Callable[[], object]) -> object:
        """Run an action in the pod's network (a thread of its own: a namespace is per thread)."""
        result: list[object] = []
        fault: list[OSError] = []

        def run() -> None:
            try:
                with open(f"/proc/{self.pid}/ns/net") as handle:
                    libc = ctypes.CDLL(None, use_errno=True)
                    if libc.setns(handle.fileno(), CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), "setns")
                result.append(action())
            except OSError as error:
                fault.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if fault:
            raise fault[0]
        return result[0]

    def connect(self, port: int) -> socket.socket:
        """A connection to the pod's loopback. Raises OSError."""

        def dial() -> socket.socket:
            made = socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT_S)
            made.settimeout(None)
            return made

        connection = self._in_network(dial)
        assert isinstance(connection, socket.socket)
        return connection

    def close(self) -> None:
        """End the namespaces and take the pod's files away."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._holder.kill()
        self._holder.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _raise_loopback() -> None:
    import fcntl
    import struct

    set_flags, up_running = 0x8914, 0x1 | 0x40
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, set_flags, struct.pack("16sh14x", b"lo", up_running))


class Volumes:
    """Folders behind a pod's volumes."""

    def __init__(self, store: Store, images: Images, folder: Path, claims: Path) -> None:
        self._store, self._images = store, images
        self._folder, self._claims = folder, claims

    def path(self, pod: Json, volume: Json) -> str:
        """The folder of a volume, filled on first use. Raises LookupError for a missing source."""
        name = volume["name"]
        if "hostPath" in volume:
            return str(volume["hostPath"]["path"])
        if "image" in volume:
            return str(self._images.get(volume["image"]["reference"]).tree)
        if "persistentVolumeClaim" in volume:
            claim = self._claims / volume["persistentVolumeClaim"]["claimName"]
            claim.mkdir(parents=True, exist_ok=True)
            return str(claim)
        home = self._folder / "volumes" / name
        if home.exists():
            return str(home)
        files = self._files(pod, volume)
        home.mkdir(parents=True)
        home.chmod(0o777)
        for relative, data in files.items():
            goal = home / relative
            goal.parent.mkdir(parents=True, exist_ok=True)
            goal.write_bytes(data)
        return str(home)

    def _files(self, pod: Json, volume: Json) -> dict[str, bytes]:
        namespace = pod["metadata"]["namespace"]
        if "configMap" in volume:
            return self._map("configmaps", namespace, volume["configMap"], "name")
        if "secret" in volume:
            return self._map("secrets", namespace, volume["secret"], "secretName")
        if "projected" in volume:
            return {"token": b"not-a-token", "namespace": namespace.encode(), "ca.crt": b""}
        return {}

    def _map(self, plural: str, namespace: str, source: Json, key: str) -> dict[str, bytes]:
        found = self._store.get(BY_KEY[plural], namespace, source[key])
        if found is None:
            if source.get("optional"):
                return {}
            kind = "configmap" if plural == "configmaps" else "secret"
            raise LookupError(f'{kind} "{source[key]}" not found')
        return map_data(found)


def map_data(body: Json) -> dict[str, bytes]:
    """The entries of a ConfigMap or a Secret."""
    data = {name: text.encode() for name, text in (body.get("stringData") or {}).items()}
    for name, text in (body.get("data") or {}).items():
        data[name] = base64.b64decode(text) if body["kind"] == "Secret" else text.encode()
    return data
