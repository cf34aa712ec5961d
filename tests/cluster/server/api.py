"""A request in, an answer out: routing, rights, and the verbs of ordinary objects."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping

from tests.cluster.server import rbac, reads, resources, writes
from tests.cluster.server.faults import Faults
from tests.cluster.server.pods import NodePort, PodRoutes, Upgrade
from tests.cluster.server.rbac import Ask, User
from tests.cluster.server.request import Request, Response, Target, refused, target_of
from tests.cluster.server.status import ApiError, Json, forbidden, no_such_page
from tests.cluster.server.store import Store, timestamp

ADMIN = User("admin", ("system:masters", "system:authenticated"))
_HEALTH = ("/healthz", "/livez", "/readyz")


class Api:
    """The API server without its sockets."""

    def __init__(self, store: Store, node: NodePort | None = None) -> None:
        self.store = store
        self.faults = Faults()
        self.tokens: dict[str, User] = {"admin": ADMIN}
        self.pods = PodRoutes(store, node)
        self.lock = threading.Lock()

    def user(self, headers: Mapping[str, str]) -> User:
        """The caller by bearer token. Raises 401."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        user = self.tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise rbac.unauthorized()
        return user

    def handle(self, request: Request) -> Response | Upgrade:
        """Answer a request. Never raises ApiError."""
        try:
            document = self._document(request)
            if document is not None:
                return Response(200, document)
            target = target_of(request.path)
            self._authorize(request, target)
            return self._dispatch(request, target)
        except ApiError as error:
            return refused(error)

    def _document(self, request: Request) -> Json | str | None:
        path = request.path.rstrip("/") or "/"
        if path in _HEALTH:
            return "ok"
        if path == "/version":
            return resources.version_document()
        if path == "/api":
            return resources.legacy_versions()
        if path == "/apis":
            return resources.groups_document()
        if path == "/openapi/v3":
            return resources.openapi_index()
        known = [("", "v1"), *resources.group_versions()]
        for group, version in known:
            prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
            if path == prefix:
                return resources.resource_list(group, version)
            if path == f"/openapi/v3{prefix}":
                return resources.openapi_document(group, version)
        return None

    def _authorize(self, request: Request, target: Target) -> None:
        ask = Ask(
            verb_of(request, target),
            target.resource.group,
            target.resource.plural,
            target.subresource,
            target.namespace if target.resource.namespaced else "",
            target.name,
        )
        rbac.check(self.store, request.user, ask)
        if target.subresource in ("exec", "attach", "portforward") and request.method == "GET":
            # Since 1.35 a WebSocket stream needs the right to create as well.
            create = Ask("create", "", "pods", target.subresource, target.namespace, target.name)
            if rbac.allowed_by(self.store, request.user, create) is None:
                raise forbidden("pods", "", target.name, "")

    def _dispatch(self, request: Request, target: Target) -> Response | Upgrade:
        if target.resource.group in ("authorization.k8s.io", "authentication.k8s.io"):
            return self._review(request, target)
        if target.subresource in self.pods.names:
            return self.pods.handle(request, target)
        if target.subresource == "scale":
            with self.store.lock:
                return self._scale(request, target)
        if request.method == "GET":
            if request.is_true("watch"):
                return reads.watch(self.store, target, request, self.faults.lost_watch)
            if not target.name:
                return reads.listing(self.store, target, request)
            return reads.one(self.store, target, request, writes.existing(self.store, target))
        with self.store.lock:
            return self._write(request, target)

    def _write(self, request: Request, target: Target) -> Response:
        warnings: list[str] = []
        code = 200
        if request.method == "POST" and not target.name:
            body = writes.read_object(request, target.resource, warnings)
            code, result = 201, writes.create(self.store, target, body, request, warnings)
        elif request.method == "PUT" and target.name:
            body = writes.read_object(request, target.resource, warnings)
            before = writes.existing(self.store, target)
            result = writes.update(self.store, target, body, before, request, warnings)
        elif request.method == "PATCH" and target.name:
            code, result = writes.patch(self.store, target, request, warnings)
        elif request.method == "DELETE":
            result = self._delete(request, target)
        else:
            message = "the server does not allow this method on the requested resource"
            raise ApiError(405, "MethodNotAllowed", message, {})
        answer = Response(code, result, warnings=warnings)
        if reads.wants_table(request) and result.get("kind") == target.resource.kind:
            answer.body = reads.one(self.store, target, request, result).body
        return answer

    def _delete(self, request: Request, target: Target) -> Json:
        if target.name:
            return writes.delete(self.store, target, request)
        match = reads._match(target, request)
        found = [b for b in self.store.list(target.resource, target.namespace) if match(b)]
        for body in found:
            one = Target(target.resource, target.namespace, body["metadata"]["name"])
            writes.delete(self.store, one, request)
        return reads.as_list(target, found, str(self.store.version))

    def _scale(self, request: Request, target: Target) -> Response:
        plain = Target(target.resource, target.namespace, target.name)
        found = writes.existing(self.store, plain)
        if request.method != "GET":
            wanted = (request.parsed().get("spec") or {}).get("replicas")
            if wanted is not None:
                after = copy.deepcopy(found)
                after["spec"]["replicas"] = wanted
                found = writes.update(self.store, plain, after, found, request, [])
        return Response(200, scale_of(found))

    def _review(self, request: Request, target: Target) -> Response:
        body = request.parsed()
        if target.resource.plural == "selfsubjectaccessreviews":
            return Response(201, rbac.access_review(self.store, request.user, body))
        if target.resource.plural == "selfsubjectrulesreviews":
            return Response(201, rbac.rules_review(self.store, request.user, body))
        user = {"username": request.user.name, "groups": list(request.user.groups)}
        meta = {"creationTimestamp": timestamp()}
        return Response(201, {**body, "metadata": meta, "status": {"userInfo": user}})


def verb_of(request: Request, target: Target) -> str:
    """The verb that rights are asked for."""
    if request.method == "GET":
        if target.name:
            return "get"
        return "watch" if request.is_true("watch") else "list"
    if request.method == "DELETE":
        return "delete" if target.name else "deletecollection"
    names = {"POST": "create", "PUT": "update", "PATCH": "patch"}
    if request.method not in names:
        raise no_such_page()
    return names[request.method]


def scale_of(body: Json) -> Json:
    """The Scale of a workload."""
    meta, spec = body["metadata"], body["spec"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = (spec.get("selector") or {}).get("matchLabels") or {}
    status = {
        "replicas": (body.get("status") or {}).get("replicas", 0),
        "selector": ",".join(f"{k}={v}" for k, v in sorted(selector.items())),
    }
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": status,
    }
