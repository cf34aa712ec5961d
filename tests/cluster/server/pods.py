"""A pod's subresources that end at its node: log, exec, port-forward, proxy; and eviction."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from tests.cluster.server import selectors, streams, writes
from tests.cluster.server.request import Request, Response, Target
from tests.cluster.server.resources import BY_KEY
from tests.cluster.server.status import ApiError, Json, bad_request, not_found, success
from tests.cluster.server.store import Store
from tests.cluster.server.streams import Read, Session, Write
from tests.cluster.server.websocket import accept_key

PODS = BY_KEY["pods"]
_CONTAINER_FIELDS = ("containers", "initContainers", "ephemeralContainers")


class NodePort(Protocol):
    """What the API server asks of a node."""

    def logs(self, pod: Json, container: str, request: Request) -> Iterator[bytes]:
        """A container's output. Raises ApiError."""
        ...

    def exec(
        self, pod: Json, container: str, command: list[str], streams: tuple[bool, bool, bool]
    ) -> Session:
        """Start a command in a container. Raises ApiError."""
        ...

    def connect(self, pod: Json, port: int) -> socket.socket:
        """A connection to a pod's own loopback. Raises OSError."""
        ...


@dataclass
class Upgrade:
    """An answer that turns the connection into something else."""

    protocol: str
    serve: Callable[[Read, Write], None]
    headers: dict[str, str] = field(default_factory=dict)
    cancel: Callable[[], None] = lambda: None


class PodRoutes:
    """The handlers of these subresources."""

    names = ("log", "exec", "attach", "portforward", "proxy", "eviction")

    def __init__(self, store: Store, node: NodePort | None) -> None:
        self.store, self.node = store, node

    def handle(self, request: Request, target: Target) -> Response | Upgrade:
        """Answer one request."""
        if target.subresource == "proxy":
            return self._proxy(request, target)
        pod = writes.existing(self.store, Target(PODS, target.namespace, target.name))
        match target.subresource:
            case "log":
                return self._log(request, pod)
            case "exec" | "attach":
                return self._exec(request, target, pod)
            case "portforward":
                return self._forward(request, pod)
            case _:
                return self._evict(request, target)

    def _container(self, request: Request, pod: Json) -> str:
        name = pod["metadata"]["name"]
        known = [c["name"] for f in _CONTAINER_FIELDS for c in pod["spec"].get(f) or []]
        wanted = request.option("container")
        if not wanted:
            regular = [c["name"] for c in pod["spec"]["containers"]]
            if len(regular) > 1:
                listed = " ".join(regular)
                message = (
                    f"a container name must be specified for pod {name}, choose one of: [{listed}]"
                )
                raise bad_request(message)
            return str(regular[0])
        if wanted not in known:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted

    def _log(self, request: Request, pod: Json) -> Response:
        container = self._container(request, pod)
        if not pod["spec"].get("nodeName"):
            return Response(204)
        if self.node is None:
            raise self._no_node(pod, f"containerLogs/{_path(pod)}/{container}")
        lines = self.node.logs(pod, container, request)
        return Response(200, stream=lines, content_type="text/plain")

    def _no_node(self, pod: Json, path: str) -> ApiError:
        node = self.store.get(BY_KEY["nodes"], "", pod["spec"]["nodeName"]) or {}
        status = node.get("status") or {}
        address = next(
            (a["address"] for a in status.get("addresses") or [] if a["type"] == "InternalIP"),
            "127.0.0.1",
        )
        port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port", 0)
        at = f"{address}:{port}"
        message = f'Get "https://{at}/{path}": dial tcp {at}: connect: connection refused'
        return ApiError(500, "", message)

    def _exec(self, request: Request, target: Target, pod: Json) -> Response | Upgrade:
        container = self._container(request, pod)
        self._need_host(pod)
        if not request.is_upgrade:
            raise bad_request("Upgrade request required")
        wanted = (
            request.is_true("stdin"),
            request.is_true("stdout"),
            request.is_true("stderr"),
        )
        command = request.query.get("command", [])
        if target.subresource == "exec" and not command:
            raise bad_request("you must specify at least 1 command for the container")
        if not any(wanted):
            raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
        if self.node is None or target.subresource == "attach":
            raise ApiError(500, "InternalError", "this node cannot attach to containers")
        session = self.node.exec(pod, container, command, wanted)
        websocket = _websocket(request, streams.EXEC_WEBSOCKET)
        if websocket is not None:
            headers, protocol = websocket
            return Upgrade(
                "websocket",
                lambda read, write: streams.exec_websocket(session, read, write, protocol),
                headers,
                lambda: streams.abandon(session),
            )
        headers = _spdy(request, streams.EXEC_SPDY)
        return Upgrade(
            "SPDY/3.1",
            lambda read, write: streams.exec_spdy(session, read, write),
            headers,
            lambda: streams.abandon(session),
        )

    @staticmethod
    def _need_host(pod: Json) -> None:
        if not pod["spec"].get("nodeName"):
            raise bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")

    def _forward(self, request: Request, pod: Json) -> Response | Upgrade:
        self._need_host(pod)
        if not request.is_upgrade:
            raise bad_request("Upgrade request required")
        node = self.node
        if node is None:
            raise self._no_node(pod, f"portForward/{_path(pod)}")

        def connect(port: int) -> socket.socket:
            return node.connect(pod, port)

        websocket = _websocket(request, (streams.FORWARD_TUNNEL,))
        if websocket is not None:
            return Upgrade(
                "websocket",
                lambda read, write: streams.forward_tunnel(connect, read, write),
                websocket[0],
            )
        headers = _spdy(request, (streams.FORWARD_SPDY,))
        return Upgrade(
            "SPDY/3.1", lambda read, write: streams.forward_spdy(connect, read, write), headers
        )

    def _evict(self, request: Request, target: Target) -> Response:
        body = request.parsed()
        options = body.get("deleteOptions") or {}
        delete = Request.of(request.user, "DELETE", request.path, {}, b"")
        if options:
            import json

            delete = Request.of(
                request.user, "DELETE", request.path, {}, json.dumps(options).encode()
            )
        with self.store.lock:
            writes.delete(self.store, Target(PODS, target.namespace, target.name), delete)
        return Response(201, success())

    def _proxy(self, request: Request, target: Target) -> Response:
        pod, port = self._backend(target)
        if not (pod.get("status") or {}).get("podIP"):
            raise bad_request("address not allowed")
        if self.node is None:
            raise ApiError(503, "ServiceUnavailable", "no node serves this pod")
        query = "&".join(f"{k}={v}" for k, values in request.query.items() for v in values)
        url = "/" + target.rest + (f"?{query}" if query else "")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.sock = self.node.connect(pod, port)
            headers = {"Content-Type": request.headers.get("content-type", "application/json")}
            connection.request(request.method, url, request.body or None, headers)
            with connection.getresponse() as answer:
                raw = answer.read()
        except (OSError, http.client.HTTPException) as error:
            message = f"error trying to reach service: {error}"
            raise ApiError(503, "ServiceUnavailable", message) from error
        finally:
            connection.close()
        kind = answer.headers.get("Content-Type", "text/plain")
        return Response(answer.status, raw=raw, content_type=kind)

    def _backend(self, target: Target) -> tuple[Json, int]:
        name, _, port = target.name.partition(":")
        if target.resource.kind == "Pod":
            pod = writes.existing(self.store, Target(PODS, target.namespace, name))
            return pod, int(port or 80)
        service = writes.existing(self.store, Target(target.resource, target.namespace, name))
        entry = next(
            (
                p
                for p in service["spec"].get("ports") or []
                if port in ("", str(p.get("port")), p.get("name"))
            ),
            None,
        )
        ready = [
            pod
            for pod in self.store.list(PODS, target.namespace)
            if selectors.by_label_selector({"matchLabels": service["spec"].get("selector") or {}})(
                pod["metadata"].get("labels") or {}
            )
            and is_ready(pod)
        ]
        if entry is None or not ready:
            raise ApiError(
                503, "ServiceUnavailable", f'no endpoints available for service "{name}"'
            )
        ready.sort(key=lambda pod: id(pod))
        return ready[0], _port_number(ready[0], entry["targetPort"])


def _port_number(pod: Json, port: object) -> int:
    if isinstance(port, int) or str(port).isdigit():
        return int(str(port))
    for container in pod["spec"]["containers"]:
        for entry in container.get("ports") or []:
            if entry.get("name") == port:
                return int(entry["containerPort"])
    raise not_found("services", "", str(port))


def is_ready(pod: Json) -> bool:
    """Whether a pod takes traffic."""
    if pod["metadata"].get("deletionTimestamp"):
        return False
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _path(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _websocket(request: Request, known: tuple[str, ...]) -> tuple[dict[str, str], str] | None:
    if request.headers.get("upgrade", "").lower() != "websocket":
        return None
    offered = [p.strip() for p in request.headers.get("sec-websocket-protocol", "").split(",")]
    chosen = next((p for p in known if p in offered), None)
    if chosen is None:
        raise bad_request(f"unable to upgrade: none of the subprotocols {offered} is served")
    headers = {
        "Sec-WebSocket-Accept": accept_key(request.headers.get("sec-websocket-key", "")),
        "Sec-WebSocket-Protocol": chosen,
    }
    return headers, chosen


def _spdy(request: Request, known: tuple[str, ...]) -> dict[str, str]:
    offered = request.headers.get("x-stream-protocol-version", "")
    chosen = next((p for p in known if p in offered), known[0])
    return {"X-Stream-Protocol-Version": chosen}
