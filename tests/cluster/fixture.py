"""The whole cluster: server, controllers, node, kubeconfig."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import tools
from tests.cluster.controllers.loop import Controllers
from tests.cluster.node.kubelet import Kubelet
from tests.cluster.server.api import Api
from tests.cluster.server.http import Listener
from tests.cluster.server.rbac import User
from tests.cluster.server.resources import BY_KEY
from tests.cluster.server.status import Json
from tests.cluster.server.store import Store

AUTHENTICATED = "system:authenticated"


class Cluster:
    """A running cluster. ``with_node=False`` leaves pods unscheduled and needs neither runc
    nor root."""

    def __init__(self, *, with_node: bool = True, gpus: int = 8, port: int = 0) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="solscope-cluster-")
        self.folder = Path(self._folder.name)
        self.store = Store()
        self.node = Kubelet(self.store, "gpu-node-1", gpus) if with_node else None
        self.api = Api(self.store, self.node)
        self.faults = self.api.faults
        self.controllers = Controllers(self.store, with_scheduler=with_node)
        certificate, key = _certificate(self.folder)
        self._listener = Listener(self.api, certificate, key, port)
        self._certificate = certificate

    def __enter__(self) -> Cluster:
        for name in ("default", "kube-system"):
            self.make_namespace(name)
        if self.node is not None:
            self.node.start()
        self.controllers.start()
        self._listener.start()
        self.kubeconfig()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.stop()
        self.controllers.stop()
        if self.node is not None:
            self.node.stop()
        self._folder.cleanup()

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"https://127.0.0.1:{self._listener.port}"

    @property
    def certificate(self) -> Path:
        """The server's own certificate, which is its authority too."""
        return self._certificate

    def make_namespace(self, name: str, **labels: str) -> None:
        """Make a namespace; label names take ``__`` for ``.`` and ``_`` for ``-``."""
        plain = {"kubernetes.io/metadata.name": name}
        plain |= {k.replace("__", ".").replace("_", "-"): v for k, v in labels.items()}
        body: Json = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": plain},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        self.store.insert(BY_KEY["namespaces"], body)

    def add_user(self, name: str) -> None:
        """A user without rights whose token is its name."""
        self.api.tokens[name] = User(name, (AUTHENTICATED,))
        self.kubeconfig()

    def kubeconfig(self) -> Path:
        """A kubeconfig with one context a user, each called like the user."""
        path = self.folder / "kubeconfig"
        cluster = {"server": self.url, "certificate-authority": str(self._certificate)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": n, "user": {"token": n}} for n in self.api.tokens],
            "contexts": [
                {"name": n, "context": {"cluster": "test", "user": n, "namespace": "default"}}
                for n in self.api.tokens
            ],
            "current-context": "admin",
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def environment(self) -> dict[str, str]:
        """The environment for a client: its own kubeconfig and cache."""
        kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        kept.update(KUBECONFIG=str(self.folder / "kubeconfig"), HOME=str(self.folder))
        return kept

    def kubectl(
        self,
        *arguments: str,
        stdin: str | bytes | None = None,
        version: str = tools.CURRENT,
        user: str = "admin",
        timeout_s: float = 180,
        check: bool = True,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run kubectl. Raises AssertionError with both outputs on an unexpected failure."""
        command = [str(tools.kubectl_path(version)), "--context", user, *arguments]
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            command,
            input=data,
            capture_output=True,
            timeout=timeout_s,
            env=self.environment(),
            check=False,
        )
        if check and done.returncode != 0:
            raise AssertionError(
                f"{' '.join(arguments)} -> {done.returncode}\n{done.stdout.decode()}"
                f"\n{done.stderr.decode()}"
            )
        return done

    def get(self, plural: str, name: str, namespace: str = "default") -> Json:
        """An object by the store's own key, such as ``deployments.apps``. Raises LookupError."""
        found = self.store.get(BY_KEY[plural], namespace, name)
        if found is None:
            raise LookupError(f"{plural} {namespace}/{name}")
        return found

    def until(self, holds: Callable[[], Any], timeout_s: float = 120) -> Any:
        """Wait for a true value and give it. Raises AssertionError at the time-out."""
        ends = time.monotonic() + timeout_s
        while time.monotonic() < ends:
            value = holds()
            if value:
                return value
            time.sleep(0.05)
        faults = self.controllers.faults + (self.node.faults() if self.node else [])
        raise AssertionError(f"not within {timeout_s} s; faults of the fixture: {faults}")


def _certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "server.crt", folder / "server.key"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = ["-subj", "/CN=test-cluster", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    return certificate, key
