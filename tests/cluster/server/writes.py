"""Create, update, patch and delete."""

from __future__ import annotations

import copy
import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.cluster.server import admission, apply, defaults, merge, schema, validation
from tests.cluster.server.request import Request, Target
from tests.cluster.server.resources import Resource
from tests.cluster.server.status import (
    ApiError,
    Json,
    already_exists,
    bad_request,
    conflict,
    not_found,
    success,
)
from tests.cluster.server.store import Store, timestamp

FOREGROUND = "foregroundDeletion"
_STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_NO_GENERATION = ("Namespace", "Service", "ConfigMap", "Secret", "Event", "Node", "ResourceQuota")
_KEPT_META = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def read_object(request: Request, resource: Resource, warnings: list[str]) -> Json:
    """The body as an object of the path's kind, its unknown fields refused or dropped."""
    body = request.parsed()
    if not isinstance(body, dict):
        raise bad_request("the body of the request is no object")
    body.setdefault("apiVersion", resource.api_version)
    body.setdefault("kind", resource.kind)
    if (body["apiVersion"], body["kind"]) != (resource.api_version, resource.kind):
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): "
            f"got {body['apiVersion']}, Kind={body['kind']}"
        )
    body.setdefault("metadata", {})
    decode(body, resource, request.option("fieldValidation"), warnings)
    return body


def decode(body: Json, resource: Resource, mode: str, warnings: list[str]) -> None:
    """Raise 400 on a wrong type, or on an unknown field in Strict mode; drop it otherwise."""
    head = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
    fault = schema.type_fault(body)
    if fault:
        raise bad_request(f"{head}: {fault}")
    unknown = schema.unknown_fields(body)
    if unknown and mode == "Strict":
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise bad_request(f"{head}: strict decoding error: {listed}")
    for path in unknown:
        if mode != "Ignore":
            warnings.append(f'unknown field "{path}"')
        _drop(body, path)


def _drop(body: Any, path: str) -> None:
    *parents, last = re.findall(r"[^.\[\]]+", path)
    for part in parents:
        body = body[int(part)] if isinstance(body, list) else body[part]
    if isinstance(body, dict):
        body.pop(last, None)


def create(store: Store, target: Target, body: Json, request: Request, warn: list[str]) -> Json:
    """Store a new object, or only rehearse it in a dry run."""
    resource, meta = target.resource, body["metadata"]
    if resource.namespaced:
        if meta.setdefault("namespace", target.namespace) != target.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
    else:
        meta.pop("namespace", None)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"] + defaults.suffix()
    name = meta.get("name", "")
    admission.namespace_open(store, resource, target.namespace, name)
    for field in ("resourceVersion", "deletionTimestamp", "selfLink"):
        meta.pop(field, None)
    meta["uid"], meta["creationTimestamp"] = str(uuid.uuid4()), timestamp()
    if resource.kind not in _NO_GENERATION and "spec" in body:
        meta["generation"] = 1
    defaults.write(body)
    if resource.kind == "Pod":
        admission.pod_references(store, body)
        defaults.inject_pod(body)
        for webhook in store.webhooks:
            webhook(body, request.is_dry_run)
    validation.check(resource, body)
    if resource.kind == "Pod":
        admission.pod(store, body)
    warn.extend(admission.warnings(store, body))
    if store.get(resource, target.namespace, name) is not None:
        raise already_exists(resource.plural, resource.group, name)
    if request.content_type != "application/apply-patch+yaml":
        apply.record_update(None, body, request.manager)
    return body if request.is_dry_run else store.insert(resource, body)


def existing(store: Store, target: Target) -> Json:
    """The object, or 404."""
    found = store.get(target.resource, target.namespace, target.name)
    if found is None:
        raise not_found(target.resource.plural, target.resource.group, target.name)
    return found


def update(
    store: Store, target: Target, body: Json, before: Json, request: Request, warn: list[str]
) -> Json:
    """Store a new state of an object, whole or one subresource of it."""
    resource, meta, old = target.resource, body["metadata"], before["metadata"]
    stated = meta.get("resourceVersion")
    if stated and stated != old["resourceVersion"]:
        raise conflict(resource.plural, resource.group, target.name, resource.plural, _STALE)
    if meta.get("uid") not in (None, old["uid"]):
        why = (
            f"Precondition failed: UID in precondition: {meta['uid']}, "
            f"UID in object meta: {old['uid']}"
        )
        raise conflict(resource.plural, resource.group, target.name, resource.plural, why)
    body = _only_subresource(target.subresource, body, before)
    meta = body["metadata"]
    for field in _KEPT_META:
        if field in old:
            meta[field] = old[field]
    meta["name"] = old["name"]
    if "namespace" in old:
        meta["namespace"] = old["namespace"]
    defaults.write(body)
    if target.subresource == "":
        validation.check(resource, body, before)
        warn.extend(admission.warnings(store, body))
    elif target.subresource == "ephemeralcontainers":
        _ephemeral(store, body, before)
    if "generation" in old:
        changed = body.get("spec") != before.get("spec")
        meta["generation"] = old["generation"] + (1 if changed else 0)
    if request.content_type != "application/apply-patch+yaml" and target.subresource == "":
        apply.record_update(before, body, request.manager)
    if request.is_dry_run:
        return body
    stored = store.replace(resource, body)
    if meta.get("deletionTimestamp") and not meta.get("finalizers") and resource.kind != "Pod":
        return store.remove(resource, target.namespace, target.name) or stored
    return stored


def _only_subresource(subresource: str, body: Json, before: Json) -> Json:
    if subresource == "":
        if "status" in before:
            body["status"] = copy.deepcopy(before["status"])
        else:
            body.pop("status", None)
        return body
    result = copy.deepcopy(before)
    if subresource == "status":
        result["status"] = copy.deepcopy(body.get("status") or {})
        if before.get("kind") == "Node":
            result["metadata"] = copy.deepcopy(body["metadata"])
    elif subresource == "ephemeralcontainers":
        listed = (body.get("spec") or {}).get("ephemeralContainers") or []
        result["spec"]["ephemeralContainers"] = copy.deepcopy(listed)
    return result


def _ephemeral(store: Store, body: Json, before: Json) -> None:
    known = {c["name"] for c in before["spec"].get("ephemeralContainers") or []}
    for item in body["spec"]["ephemeralContainers"]:
        for flag in ("stdin", "stdinOnce", "tty"):
            if item.get(flag) is False:
                del item[flag]
        item.setdefault("resources", {})
    validation.check_ephemeral(body, before)
    added = [c for c in body["spec"]["ephemeralContainers"] if c["name"] not in known]
    admission.pod(store, body, only=added)


def patch(store: Store, target: Target, request: Request, warn: list[str]) -> tuple[int, Json]:
    """Apply a patch of any of the four kinds; gives 201 where an apply made the object."""
    wanted = request.parsed()
    kind = request.content_type
    resource = target.resource
    if kind == "application/apply-patch+yaml":
        return _apply(store, target, wanted, request, warn)
    before = existing(store, target)
    if kind == "application/json-patch+json":
        after = merge.json_patch(before, wanted)
    elif kind == "application/merge-patch+json":
        after = merge.merge_patch(before, wanted)
    elif kind == "application/strategic-merge-patch+json":
        after = merge.strategic_merge(before, wanted)
    else:
        message = (
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, "
            "application/strategic-merge-patch+json, application/apply-patch+yaml"
        )
        raise ApiError(415, "UnsupportedMediaType", message)
    mode = request.option("fieldValidation")
    unknown = schema.unknown_fields(after)
    if unknown and mode == "Strict":
        raise validation.strict_patch_fault(wanted, unknown)
    decode(after, resource, mode, warn)
    return 200, update(store, target, after, before, request, warn)


def _apply(
    store: Store, target: Target, wanted: Json, request: Request, warn: list[str]
) -> tuple[int, Json]:
    decode(wanted, target.resource, request.option("fieldValidation"), warn)
    wanted.setdefault("metadata", {})
    before = store.get(target.resource, target.namespace, target.name)
    manager = request.option("fieldManager")
    after = apply.apply(before, wanted, manager, request.is_true("force"))
    after["metadata"].setdefault("name", target.name)
    if before is None:
        return 201, create(store, target, after, request, warn)
    return 200, update(store, target, after, before, request, warn)


def delete(store: Store, target: Target, request: Request) -> Json:
    """Delete an object: graceful for pods, foreground or background for the rest."""
    resource = target.resource
    found = existing(store, target)
    options: Json = request.parsed() if request.body else {}
    meta = found["metadata"]
    _preconditions(resource, meta, options.get("preconditions") or {})
    details = {"name": target.name, "kind": resource.plural, "uid": meta["uid"]}
    if resource.group:
        details["group"] = resource.group
    if request.is_dry_run or "All" in (options.get("dryRun") or []):
        return success(details)
    if resource.kind == "Pod":
        return _delete_pod(store, target, found, request, options)
    policy = options.get("propagationPolicy") or request.option("propagationPolicy")
    if resource.kind == "Namespace":
        found["status"] = {"phase": "Terminating"}
        return _mark(store, resource, found, finalizer="kubernetes")
    if policy == "Foreground":
        return _mark(store, resource, found, finalizer=FOREGROUND)
    if policy == "Orphan":
        return _mark(store, resource, found, finalizer="orphan")
    if meta.get("finalizers"):
        return _mark(store, resource, found)
    store.remove(resource, target.namespace, target.name)
    return success(details)


def _preconditions(resource: Resource, meta: Json, wanted: Json) -> None:
    uid = wanted.get("uid")
    if uid and uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record "
            f"({meta['uid']}). The object might have been deleted and then recreated"
        )
        raise conflict(resource.kind, resource.group, meta["name"], resource.kind, why)
    version = wanted.get("resourceVersion")
    if version and version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({meta['resourceVersion']}). The object might have been "
            "modified"
        )
        raise conflict(resource.kind, resource.group, meta["name"], resource.kind, why)


def _mark(store: Store, resource: Resource, found: Json, finalizer: str = "") -> Json:
    meta = found["metadata"]
    if not meta.get("deletionTimestamp"):
        meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"] = timestamp(), 0
        if "generation" in meta:
            meta["generation"] += 1
    if finalizer and finalizer not in meta.setdefault("finalizers", []):
        meta["finalizers"].append(finalizer)
    return store.replace(resource, found)


def _delete_pod(store: Store, target: Target, found: Json, request: Request, options: Json) -> Json:
    spec, meta = found["spec"], found["metadata"]
    grace = options.get("gracePeriodSeconds")
    if grace is None and request.option("gracePeriodSeconds"):
        grace = int(request.option("gracePeriodSeconds"))
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds", 30)
    finished = (found.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if not spec.get("nodeName") or (finished and not meta.get("finalizers")):
        grace = 0
    already = meta.get("deletionGracePeriodSeconds")
    if already is not None and grace >= already:
        return found
    if already is None and "generation" in meta:
        meta["generation"] += 1
    meta["deletionTimestamp"] = timestamp(datetime.now(UTC) + timedelta(seconds=grace))
    meta["deletionGracePeriodSeconds"] = grace
    if grace == 0 and not meta.get("finalizers"):
        store.remove(target.resource, target.namespace, target.name)
        return found
    return store.replace(target.resource, found)
