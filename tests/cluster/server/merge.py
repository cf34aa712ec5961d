"""JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

import copy
from typing import Any

from tests.cluster.server.status import Json, bad_request

MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "conditions": ("type",),
    "ownerReferences": ("uid",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
"""Lists whose entries are told apart by fields (API types' patchMergeKey)."""

PLAIN_SETS = ("finalizers",)


def merge_key(field: str, items: list[Any]) -> tuple[str, ...] | None:
    """The key fields of a list, or ``None`` for a list that is replaced whole.

    ``ports`` is keyed by ``containerPort`` in a container and by ``port`` in a Service.
    """
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    if field == "ports":
        names = ("containerPort",) if any("containerPort" in i for i in items) else ("port",)
        return names if all(names[0] in i or "$patch" in i for i in items) else None
    return MERGE_KEYS.get(field)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: ``null`` removes, objects merge, all else replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def strategic_merge(target: Any, patch: Any) -> Any:
    """Kubernetes' strategic merge: keyed lists merge by key, new entries come first."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    directive = patch.get("$patch")
    plain = {k: v for k, v in patch.items() if not k.startswith("$")}
    if directive == "replace":
        return copy.deepcopy(plain)
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    retained = patch.get("$retainKeys")
    if retained is not None:
        result = {k: v for k, v in result.items() if k in retained}
    for name, value in plain.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, list):
            result[name] = _merge_lists(name, result.get(name) or [], value)
        else:
            result[name] = strategic_merge(result.get(name), value)
    for name, values in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.split("/", 1)[1]
            result[field] = [v for v in result.get(field, []) if v not in values]
        elif name.startswith("$setElementOrder/"):
            field = name.split("/", 1)[1]
            if isinstance(result.get(field), list):
                result[field] = _ordered(field, result[field], values)
    return result


def _merge_lists(name: str, have: list[Any], patch: list[Any]) -> list[Any]:
    if name in PLAIN_SETS:
        return have + [item for item in patch if item not in have]
    key = merge_key(name, [*have, *patch])
    if key is None:
        return copy.deepcopy(patch)
    if any(item.get("$patch") == "replace" for item in patch):
        return [copy.deepcopy(i) for i in patch if "$patch" not in i]
    result = list(have)
    added: list[Any] = []
    for item in patch:
        at = next((i for i, old in enumerate(result) if same_entry(key, old, item)), None)
        if item.get("$patch") == "delete":
            if at is not None:
                result.pop(at)
        elif at is None:
            added.append(strategic_merge({}, item))
        else:
            result[at] = strategic_merge(result[at], item)
    return added + result


def same_entry(key: tuple[str, ...], a: Json, b: Json) -> bool:
    """Whether two entries of a keyed list stand for the same thing."""
    return all(a.get(name) == b.get(name) for name in key)


def _ordered(field: str, items: list[Any], order: list[Any]) -> list[Any]:
    key = merge_key(field, items)
    if key is None:
        return items

    def place(item: Json) -> int:
        found = [i for i, wanted in enumerate(order) if same_entry(key, item, wanted)]
        return found[0] if found else len(order)

    return sorted(items, key=place)


def json_patch(target: Json, operations: list[Json]) -> Json:
    """RFC 6902: add, remove, replace, test, copy, move."""
    result: Any = copy.deepcopy(target)
    for operation in operations:
        kind, path = operation["op"], _pointer(operation["path"])
        if kind in ("copy", "move"):
            source = _pointer(operation["from"])
            value = copy.deepcopy(_walk(result, source))
            if kind == "move":
                _set(result, source, None, "remove")
            _set(result, path, value, "add")
        elif kind == "test":
            if _walk(result, path) != operation.get("value"):
                raise bad_request(f"testing value {operation['path']} failed: test failed")
        else:
            _set(result, path, operation.get("value"), kind)
    return dict(result)


def _pointer(text: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _walk(node: Any, path: list[str]) -> Any:
    for part in path:
        try:
            node = node[int(part)] if isinstance(node, list) else node[part]
        except (KeyError, IndexError, ValueError, TypeError):
            message = f"the server rejected our request due to an error in our request: {path}"
            raise bad_request(message) from None
    return node


def _set(root: Any, path: list[str], value: Any, kind: str) -> None:
    parent, last = _walk(root, path[:-1]), path[-1]
    if isinstance(parent, list):
        index = len(parent) if last == "-" else int(last)
        if kind == "remove":
            parent.pop(index)
        elif kind == "add":
            parent.insert(index, value)
        else:
            parent[index] = value
    elif kind == "remove":
        parent.pop(last, None)
    else:
        parent[last] = value
