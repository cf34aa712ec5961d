"""The kinds that the server knows, and the discovery documents made from them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.cluster.server.status import Json

ALL_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)
STATUS_VERBS = ("get", "patch", "update")
VERSION = "v1.36.2"


@dataclass(frozen=True)
class Resource:
    """One kind. ``subresources`` are those that are served, by name."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    categories: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """``apps/v1``, or ``v1`` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> str:
        """Unique name: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_POD_SUBRESOURCES = (
    "attach",
    "ephemeralcontainers",
    "eviction",
    "exec",
    "log",
    "portforward",
    "proxy",
    "status",
)
_SCALED = ("scale", "status")
_RBAC = "rbac.authorization.k8s.io"

RESOURCES = (
    Resource("", "v1", "bindings", "Binding", verbs=("create",)),
    Resource("", "v1", "configmaps", "ConfigMap", short=("cm",)),
    Resource("", "v1", "endpoints", "Endpoints", short=("ep",)),
    Resource("", "v1", "events", "Event", short=("ev",)),
    Resource("", "v1", "limitranges", "LimitRange", short=("limits",)),
    Resource("", "v1", "namespaces", "Namespace", False, ("ns",), ("status",)),
    Resource("", "v1", "nodes", "Node", False, ("no",), ("status",)),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ("pvc",)),
    Resource("", "v1", "pods", "Pod", True, ("po",), _POD_SUBRESOURCES, categories=("all",)),
    Resource("", "v1", "resourcequotas", "ResourceQuota", True, ("quota",), ("status",)),
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", True, ("sa",)),
    Resource(
        "", "v1", "services", "Service", True, ("svc",), ("proxy", "status"), categories=("all",)
    ),
    Resource("apps", "v1", "daemonsets", "DaemonSet", True, ("ds",), ("status",)),
    Resource(
        "apps", "v1", "deployments", "Deployment", True, ("deploy",), _SCALED, categories=("all",)
    ),
    Resource(
        "apps", "v1", "replicasets", "ReplicaSet", True, ("rs",), _SCALED, categories=("all",)
    ),
    Resource(
        "apps", "v1", "statefulsets", "StatefulSet", True, ("sts",), _SCALED, categories=("all",)
    ),
    Resource("batch", "v1", "jobs", "Job", True, (), ("status",), categories=("all",)),
    Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True, ("netpol",)),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ("pdb",)),
    Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, ("pc",)),
    Resource(_RBAC, "v1", "roles", "Role"),
    Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
    Resource(_RBAC, "v1", "clusterroles", "ClusterRole", False),
    Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
    Resource(
        "authorization.k8s.io",
        "v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        False,
        verbs=("create",),
    ),
    Resource(
        "authorization.k8s.io",
        "v1",
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        False,
        verbs=("create",),
    ),
    Resource(
        "authentication.k8s.io",
        "v1",
        "selfsubjectreviews",
        "SelfSubjectReview",
        False,
        verbs=("create",),
    ),
)

BY_KEY = {resource.key: resource for resource in RESOURCES}
_FOREIGN_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
}
_SUBRESOURCE_KINDS = {
    "exec": "PodExecOptions",
    "attach": "PodAttachOptions",
    "portforward": "PodPortForwardOptions",
}
_SUBRESOURCE_VERBS = {
    "exec": ("create", "get"),
    "attach": ("create", "get"),
    "portforward": ("create", "get"),
    "log": ("get",),
    "eviction": ("create",),
    "proxy": ("create", "delete", "get", "patch", "update"),
}


def find(group: str, version: str, plural: str) -> Resource | None:
    """The resource of a path, or ``None``."""
    resource = BY_KEY.get(f"{plural}.{group}" if group else plural)
    return resource if resource is not None and resource.version == version else None


def of_object(body: Json) -> Resource | None:
    """The resource of an object by its apiVersion and kind."""
    pair = (body.get("apiVersion"), body.get("kind"))
    return next((r for r in RESOURCES if (r.api_version, r.kind) == pair), None)


def group_versions() -> list[tuple[str, str]]:
    """Every (group, version) but the core one, in order."""
    pairs = {(r.group, r.version): None for r in RESOURCES if r.group}
    return list(pairs)


def version_document() -> Json:
    """``/version``."""
    return {
        "major": "1",
        "minor": "36",
        "gitVersion": VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


def resource_list(group: str, version: str) -> Json:
    """``/api/v1`` or ``/apis/GROUP/VERSION``."""
    entries: list[Json] = []
    for resource in RESOURCES:
        if (resource.group, resource.version) != (group, version):
            continue
        entry: Json = {
            "name": resource.plural,
            "singularName": resource.kind.lower(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(resource.verbs),
        }
        if resource.short:
            entry["shortNames"] = list(resource.short)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        entries.append(entry)
        entries.extend(_subresource_entry(resource, name) for name in resource.subresources)
    api_version = f"{group}/{version}" if group else version
    # Kubernetes leaves apiVersion out of the core group's list.
    head: Json = {"kind": "APIResourceList"}
    if group:
        head["apiVersion"] = "v1"
    return {**head, "groupVersion": api_version, "resources": entries}


def _subresource_entry(resource: Resource, name: str) -> Json:
    entry: Json = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if name in _FOREIGN_KINDS:
        entry["group"], entry["version"], entry["kind"] = _FOREIGN_KINDS[name]
    elif name == "proxy":
        entry["kind"] = f"{resource.kind}ProxyOptions"
    else:
        entry["kind"] = _SUBRESOURCE_KINDS.get(name, resource.kind)
    entry["verbs"] = list(_SUBRESOURCE_VERBS.get(name, STATUS_VERBS))
    return entry


def groups_document() -> Json:
    """``/apis``."""
    groups = []
    for group, version in group_versions():
        served = {"groupVersion": f"{group}/{version}", "version": version}
        groups.append({"name": group, "versions": [served], "preferredVersion": served})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def legacy_versions() -> Json:
    """``/api``."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def openapi_index() -> Json:
    """``/openapi/v3``: one document a group, without hashes."""
    names = ["api/v1", *(f"apis/{group}/{version}" for group, version in group_versions())]
    return {"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}"} for name in names}}


def openapi_document(group: str, version: str) -> Json:
    """Paths with their PATCH operations only: what a client needs to trust server validation."""
    prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
    paths: Json = {}
    for resource in RESOURCES:
        if (resource.group, resource.version) != (group, version) or "patch" not in resource.verbs:
            continue
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        query = [
            {"name": name, "in": "query", "schema": {"type": "string"}}
            for name in ("dryRun", "fieldManager", "fieldValidation", "force")
        ]
        gvk = {"group": group, "version": version, "kind": resource.kind}
        patch = {
            "parameters": query,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": gvk,
        }
        paths[f"{prefix}{scope}/{resource.plural}/{{name}}"] = {"patch": patch}
    info = {"title": "Kubernetes", "version": VERSION}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": {}}}
