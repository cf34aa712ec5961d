"""A small Kubernetes API over plain HTTP, for a real kubectl: discovery, reads, exec, refusals.

It speaks what kubectl 1.30 and newer need for get, list, watch, delete, access reviews and exec
over WebSocket (``v5.channel.k8s.io``). It stores nothing but what it is given.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

# plural, kind, namespaced, short names, by group and version.
RESOURCES: Mapping[str, Sequence[tuple[str, str, bool, tuple[str, ...]]]] = {
    "v1": (
        ("pods", "Pod", True, ("po",)),
        ("services", "Service", True, ("svc",)),
        ("nodes", "Node", False, ("no",)),
        ("namespaces", "Namespace", False, ("ns",)),
        ("events", "Event", True, ("ev",)),
        ("configmaps", "ConfigMap", True, ("cm",)),
        ("resourcequotas", "ResourceQuota", True, ("quota",)),
        ("persistentvolumeclaims", "PersistentVolumeClaim", True, ("pvc",)),
    ),
    "apps/v1": (
        ("deployments", "Deployment", True, ("deploy",)),
        ("replicasets", "ReplicaSet", True, ("rs",)),
        ("statefulsets", "StatefulSet", True, ("sts",)),
    ),
    "autoscaling/v2": (("horizontalpodautoscalers", "HorizontalPodAutoscaler", True, ("hpa",)),),
    "policy/v1": (("poddisruptionbudgets", "PodDisruptionBudget", True, ("pdb",)),),
    "networking.k8s.io/v1": (("networkpolicies", "NetworkPolicy", True, ("netpol",)),),
    "authorization.k8s.io/v1": (
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview", False, ()),
    ),
}
_WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class ApiServer:
    """Serves ``objects``; refuses the verbs on resources in ``denied`` (``list services``).

    ``outputs`` maps the first word of an exec's command to (stdout, exit code).
    """

    def __init__(self, objects: Sequence[Mapping[str, Any]], denied: Sequence[str] = ()) -> None:
        self.objects = list(objects)
        self.denied = frozenset(denied)
        self.outputs: dict[str, tuple[bytes, int]] = {}
        self.requests: list[str] = []
        handler = type("Handler", (_Handler,), {"api": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> ApiServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, folder: Path, namespace: str = "serving") -> Path:
        """A kubeconfig whose current context is ``other``, which leads nowhere."""
        port = self._server.server_address[1]
        path = folder / "kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "other",
            "clusters": [
                {"name": "here", "cluster": {"server": f"http://127.0.0.1:{port}"}},
                {"name": "nowhere", "cluster": {"server": "http://127.0.0.1:9"}},
            ],
            "contexts": [
                {"name": "here", "context": {"cluster": "here", "namespace": namespace}},
                {"name": "other", "context": {"cluster": "nowhere"}},
            ],
        }
        path.write_text(json.dumps(config))
        return path


class _Handler(BaseHTTPRequestHandler):
    api: ApiServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        self.api.requests.append(f"{self.command} {self.path}")

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        parts = [part for part in url.path.split("/") if part]
        if parts[-1] in ("exec",) and "Upgrade" in self.headers.get("Connection", ""):
            self._exec(parts, parse_qs(url.query))
        elif url.path in ("/api", "/apis") or parts[0] == "version":
            self._json(200, _index(url.path))
        elif "/".join(parts[1:]) in RESOURCES:
            self._json(200, _resources("/".join(parts[1:])))
        elif parts[0] in ("api", "apis"):
            self._read(parts, parse_qs(url.query))
        else:
            self._missing(url.path)

    def do_POST(self) -> None:
        body = self._body()
        if "/exec" in self.path:
            # kubectl falls back to the older transport when an upgrade is refused.
            self._forbid("create", "pods/exec", "v1", self.path.split("/")[4])
        elif "selfsubjectaccessreviews" in self.path:
            # kubectl sends protobuf; the words that matter stand in it as they are.
            asked = [right for right in self.api.denied if _mentions(body, right)]
            review = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
            self._json(201, {**review, "spec": {}, "status": {"allowed": not asked}})
        else:
            self._missing(self.path)

    def do_DELETE(self) -> None:
        options = json.loads(self._body() or b"{}")
        name = urlsplit(self.path).path.rpartition("/")[2]
        obj = next((o for o in self.api.objects if o["metadata"]["name"] == name), None)
        wanted = (options.get("preconditions") or {}).get("uid")
        if obj is None:
            self._missing(self.path)
        elif wanted and wanted != obj["metadata"].get("uid"):
            self._status(409, "Conflict", f"Precondition failed: UID in precondition: {wanted}")
        else:
            self.api.objects.remove(obj)
            self._json(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _read(self, parts: list[str], query: Mapping[str, list[str]]) -> None:
        version = "/".join(parts[1:2] if parts[0] == "api" else parts[1:3])
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = None
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        plural, name = rest[0], rest[1] if len(rest) > 1 else None
        row = next((r for r in RESOURCES.get(version, ()) if r[0] == plural), None)
        if row is None or len(rest) > 2:
            self._missing(self.path)
            return
        verb = "list" if name is None else "get"
        everywhere = verb == "list" and row[2] and namespace is None
        asked = f"{verb} {plural}" + (" (everywhere)" if everywhere else "")
        if asked in self.api.denied:
            self._forbid(verb, plural, version, namespace)
            return
        found = [o for o in self.api.objects if o["kind"] == row[1] and _is_in(o, namespace)]
        if name is not None:
            obj = next((o for o in found if o["metadata"]["name"] == name), None)
            if obj is None:
                self._status(404, "NotFound", f'{plural} "{name}" not found')
            else:
                self._json(200, obj)
            return
        found = [o for o in found if _matches(o, query)]
        if "watch" in query:
            self._watch(found)
            return
        listed = {"kind": f"{row[1]}List", "apiVersion": version, "metadata": {}, "items": found}
        self._json(200, listed)

    def _watch(self, found: Sequence[Mapping[str, Any]]) -> None:
        lines = [json.dumps({"type": "ADDED", "object": obj}) + "\n" for obj in found]
        data = "".join(lines).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _exec(self, parts: list[str], query: Mapping[str, list[str]]) -> None:
        if "create pods/exec" in self.api.denied:
            self._forbid("create", "pods/exec", "v1", parts[3])
            return
        command = query["command"]
        stdout, code = self.api.outputs.get(command[0], (b"", 127))
        key = self.headers["Sec-WebSocket-Key"]
        accept = base64.b64encode(hashlib.sha1((key + _WEBSOCKET).encode()).digest()).decode()
        self.send_response(101, "Switching Protocols")
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept)
        self.send_header("Sec-WebSocket-Protocol", "v5.channel.k8s.io")
        self.end_headers()
        for start in range(0, len(stdout), 30_000):
            self._frame(b"\x01" + stdout[start : start + 30_000])
        self._frame(b"\x03" + json.dumps(_exit_status(code)).encode())
        self._frame(struct.pack("!H", 1000), opcode=8)
        self.close_connection = True

    def _frame(self, payload: bytes, opcode: int = 2) -> None:
        size = len(payload)
        head = bytes([0x80 | opcode])
        head += bytes([size]) if size < 126 else b"\x7e" + struct.pack("!H", size)
        self.wfile.write(head + payload)
        self.wfile.flush()

    def _forbid(self, verb: str, plural: str, version: str, namespace: str | None) -> None:
        group = version.rpartition("/")[0]
        scope = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        text = (
            f'{plural} is forbidden: User "dev" cannot {verb} resource "{plural}" in API group '
            f'"{group}" {scope}'
        )
        self._status(403, "Forbidden", text)

    def _missing(self, path: str) -> None:
        self._status(404, "NotFound", "the server could not find the requested resource")

    def _status(self, code: int, reason: str, message: str) -> None:
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        }
        self._json(code, body)

    def _json(self, code: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _index(path: str) -> dict[str, Any]:
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if path == "/apis":
        groups = [version for version in RESOURCES if "/" in version]
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [
                {
                    "name": version.partition("/")[0],
                    "versions": [{"groupVersion": version, "version": version.rpartition("/")[2]}],
                    "preferredVersion": {
                        "groupVersion": version,
                        "version": version.rpartition("/")[2],
                    },
                }
                for version in groups
            ],
        }
    return {"major": "1", "minor": "36", "gitVersion": "v1.36.2"}


def _resources(version: str) -> dict[str, Any]:
    verbs = ["get", "list", "watch", "create", "delete", "patch"]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version,
        "resources": [
            {
                "name": plural,
                "singularName": kind.lower(),
                "namespaced": namespaced,
                "kind": kind,
                "verbs": verbs,
                "shortNames": list(short),
            }
            for plural, kind, namespaced, short in RESOURCES[version]
        ],
    }


def _mentions(body: bytes, right: str) -> bool:
    return all(word.encode() in body for word in right.replace("/", " ").split())


def _is_in(obj: Mapping[str, Any], namespace: str | None) -> bool:
    return namespace is None or obj["metadata"].get("namespace") == namespace


def _matches(obj: Mapping[str, Any], query: Mapping[str, list[str]]) -> bool:
    labels = obj["metadata"].get("labels") or {}
    for part in filter(None, query.get("labelSelector", [""])[0].split(",")):
        key, _, value = part.partition("=")
        if labels.get(key) != value:
            return False
    for part in filter(None, query.get("fieldSelector", [""])[0].split(",")):
        path, _, value = part.partition("=")
        inner: Any = obj
        for key in path.split("."):
            inner = (inner or {}).get(key)
        if inner != value:
            return False
    return True


def _exit_status(code: int) -> dict[str, Any]:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
