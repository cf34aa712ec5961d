"""Rules of meaning that no schema states: the ones that recorded answers pin, and their kin."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.cluster.server import selectors
from tests.cluster.server.resources import Resource
from tests.cluster.server.status import (
    ApiError,
    Cause,
    Json,
    bad_value,
    duplicate,
    forbidden_field,
    invalid,
    missing,
    required,
    unsupported,
)

NATIVE = ("cpu", "memory", "ephemeral-storage")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_DNS_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_EPHEMERAL_FORBIDDEN = (
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "restartPolicy",
    "resizePolicy",
)
POD_UPDATE_RULE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def compact(value: Any) -> str:
    """A value as the server prints it: compact JSON."""
    return json.dumps(value, separators=(",", ":"))


def check(resource: Resource, body: Json, before: Json | None = None) -> None:
    """Raise 422 with every fault of a new object or of a new state of one."""
    causes = [*_metadata(body)]
    judge = _JUDGES.get(resource.kind)
    if judge is not None:
        causes.extend(judge(body, before))
    if causes:
        raise invalid(resource.kind, resource.group, body["metadata"].get("name", ""), causes)


def _metadata(body: Json) -> Iterator[Cause]:
    meta = body["metadata"]
    name = meta.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif not _DNS_NAME.match(name):
        # RBAC names may hold more, but nobody here needs that.
        yield bad_value("metadata.name", compact(name), _SUBDOMAIN_RULE)
    yield from _labels(meta.get("labels") or {}, "metadata.labels")


def _labels(labels: Json, path: str) -> Iterator[Cause]:
    for value in labels.values():
        if isinstance(value, str) and len(value) > 63:
            yield bad_value(path, compact(value), "must be no more than 63 bytes")


def _template(spec: Json, path: str) -> Iterator[Cause]:
    template = spec.get("template") or {}
    meta = template.get("metadata") or {}
    yield from _labels(meta.get("labels") or {}, f"{path}.metadata.labels")
    pod = template.get("spec") or {}
    if pod.get("ephemeralContainers"):
        rule = "ephemeral containers not allowed in pod template"
        yield forbidden_field(f"{path}.spec.ephemeralContainers", rule)
    yield from _pod_spec(pod, f"{path}.spec")


def _selected_template(body: Json, before: Json | None, *, fixed: bool) -> Iterator[Cause]:
    spec = body.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not selector:
        yield required("spec.selector")
    elif not selectors.by_label_selector(selector)(labels):
        rule = "`selector` does not match template `labels`"
        yield bad_value("spec.template.metadata.labels", compact(labels), rule)
    pod = template.get("spec") or {}
    if pod.get("restartPolicy", "Always") != "Always":
        path = "spec.template.spec.restartPolicy"
        yield unsupported(path, pod["restartPolicy"], ("Always",))
    if "activeDeadlineSeconds" in pod:
        rule = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield forbidden_field("spec.template.spec.activeDeadlineSeconds", rule)
    yield from _template(spec, "spec.template")
    if fixed and before is not None and before["spec"].get("selector") != selector:
        yield bad_value("spec.selector", compact(selector), "field is immutable")


def _deployment(body: Json, before: Json | None) -> Iterator[Cause]:
    yield from _selected_template(body, before, fixed=True)


def _job(body: Json, before: Json | None) -> Iterator[Cause]:
    spec = body.get("spec") or {}
    pod = (spec.get("template") or {}).get("spec") or {}
    if pod.get("restartPolicy", "Always") not in ("OnFailure", "Never"):
        path = "spec.template.spec.restartPolicy"
        yield required(path, 'valid values: "OnFailure", "Never"')
    yield from _template(spec, "spec.template")
    if before is not None and _bare_template(before) != _bare_template(body):
        shown = compact(spec.get("template"))
        yield bad_value("spec.template", shown, "field is immutable")


def _bare_template(body: Json) -> Any:
    return (body.get("spec") or {}).get("template")


def _pod(body: Json, before: Json | None) -> Iterator[Cause]:
    if before is None:
        if (body.get("spec") or {}).get("ephemeralContainers"):
            rule = "cannot be set on create"
            yield forbidden_field("spec.ephemeralContainers", rule)
        yield from _pod_spec(body.get("spec") or {}, "spec")
    else:
        yield from _pod_update(body["spec"], before["spec"])


def _pod_spec(spec: Json, path: str) -> Iterator[Cause]:
    containers = spec.get("containers") or []
    if not containers:
        yield required(f"{path}.containers")
    volumes = {v.get("name") for v in spec.get("volumes") or []}
    seen: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, item in enumerate(spec.get(field) or []):
            at = f"{path}.{field}[{index}]"
            name = item.get("name")
            if not name:
                yield required(f"{at}.name")
            elif name in seen:
                yield duplicate(f"{at}.name", name)
            seen.add(name or "")
            if not item.get("image"):
                yield required(f"{at}.image")
            yield from _resources(item.get("resources") or {}, f"{at}.resources")
            for place, mount in enumerate(item.get("volumeMounts") or []):
                if mount.get("name") not in volumes:
                    yield missing(f"{at}.volumeMounts[{place}].name", mount.get("name", ""))


def _resources(resources: Json, path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, amount in requests.items():
        if name in NATIVE or "/" not in name:
            continue
        if name not in limits:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif limits[name] != amount:
            rule = f"must be equal to {name} limit of {limits[name]}"
            yield bad_value(f"{path}.requests", compact(amount), rule)


def _pod_update(after: Json, before: Json) -> Iterator[Cause]:
    for field in ("initContainers", "containers"):
        if len(after.get(field) or []) != len(before.get(field) or []):
            yield forbidden_field(
                f"spec.{field}", f"pod updates may not add or remove {_plural(field)}"
            )
            return
    if _fixed_part(after) != _fixed_part(before):
        yield forbidden_field("spec", POD_UPDATE_RULE)


def _plural(field: str) -> str:
    return "containers" if field == "containers" else "init containers"


def _fixed_part(spec: Json) -> Json:
    free = ("activeDeadlineSeconds", "tolerations", "nodeName")
    fixed = {k: v for k, v in spec.items() if k not in free}
    for field in ("initContainers", "containers"):
        if field in fixed:
            fixed[field] = [{k: v for k, v in c.items() if k != "image"} for c in fixed[field]]
    return fixed


def check_ephemeral(pod: Json, before: Json) -> None:
    """Raise 422 where the new list of ephemeral containers may not replace the old."""
    name = before["metadata"]["name"]
    causes = [*_ephemeral(pod["spec"], before["spec"])]
    if causes:
        raise invalid("Pod", "", name, causes)


def _ephemeral(spec: Json, before: Json) -> Iterator[Cause]:
    after = spec.get("ephemeralContainers") or []
    old = before.get("ephemeralContainers") or []
    regular = [c["name"] for f in ("containers", "initContainers") for c in spec.get(f) or []]
    old_names = {item["name"] for item in old}
    volumes = {v["name"] for v in spec.get("volumes") or []}
    seen = set(regular)
    for index, item in enumerate(after):
        at = f"spec.ephemeralContainers[{index}]"
        if item.get("name") in seen:
            yield duplicate(f"{at}.name", item["name"])
        seen.add(item.get("name"))
        if item.get("name") in old_names:
            continue
        yield from _one_ephemeral(item, at, regular, volumes)
    for item in old:
        now = next((c for c in after if c.get("name") == item["name"]), None)
        if now is None:
            rule = f'existing ephemeral containers "{item["name"]}" may not be removed\n'
            yield forbidden_field("spec.ephemeralContainers", rule)
        elif now != item:
            rule = f'existing ephemeral containers "{item["name"]}" may not be changed\n'
            yield forbidden_field("spec.ephemeralContainers", rule)


def _one_ephemeral(item: Json, at: str, regular: list[str], volumes: set[str]) -> Iterator[Cause]:
    if not item.get("image"):
        yield required(f"{at}.image")
    for field in _EPHEMERAL_FORBIDDEN:
        if item.get(field):
            yield forbidden_field(f"{at}.{field}", "cannot be set for an Ephemeral Container")
    for place, mount in enumerate(item.get("volumeMounts") or []):
        where = f"{at}.volumeMounts[{place}]"
        if mount.get("name") not in volumes:
            yield missing(f"{where}.name", mount.get("name", ""))
        if mount.get("subPath"):
            yield forbidden_field(f"{where}.subPath", "cannot be set for an Ephemeral Container")
    target = item.get("targetContainerName")
    if target and target not in regular:
        yield missing(f"{at}.targetContainerName", target)


_JUDGES: dict[str, Callable[[Json, Json | None], Iterator[Cause]]] = {
    "Pod": _pod,
    "Deployment": _deployment,
    "ReplicaSet": _deployment,
    "StatefulSet": _deployment,
    "Job": _job,
}


def go_map(value: Any) -> str:
    """A value as Go prints a map: ``map[a:1 b:map[c:2]]``."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{go_map(v)}" for k, v in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_map(v) for v in value) + "]"
    return str(value)


def strict_patch_fault(patch: Any, unknown: list[str]) -> ApiError:
    """422 of a strict patch with unknown fields, which names no object."""
    listed = ", ".join(f'unknown field "{path}"' for path in unknown)
    rule = f"strict decoding error: {listed}"
    return invalid("", "", "", [bad_value("patch", compact(go_map(patch)), rule)])
