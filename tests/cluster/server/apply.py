"""Server-side apply: who owns which field, conflicts, and what a manager lets go of."""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.cluster.server.merge import merge_key
from tests.cluster.server.status import ApiError, Cause, Json, invalid, required
from tests.cluster.server.store import timestamp

Path = tuple[str, ...]

_ATOMIC = ("selector", "nodeSelector")
_UNOWNED_META = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def owned_part(body: Json) -> Json:
    """The part of an object that managers can own."""
    rest = {k: v for k, v in body.items() if k not in ("apiVersion", "kind", "metadata", "status")}
    meta = {k: v for k, v in (body.get("metadata") or {}).items() if k not in _UNOWNED_META}
    return {**rest, "metadata": meta} if meta else rest


def leaves(node: Any, path: Path = (), field: str = "") -> dict[Path, Any]:
    """Every owned field with its value; a keyed list's entry counts as a field itself."""
    if isinstance(node, dict) and node and field not in _ATOMIC:
        found: dict[Path, Any] = {}
        for name, value in node.items():
            found.update(leaves(value, (*path, f"f:{name}"), name))
        return found
    if isinstance(node, list):
        key = merge_key(field, node)
        if key is not None:
            found = {}
            for item in node:
                entry = (*path, "k:" + _entry_name(key, item))
                found[(*entry, ".")] = None
                for name, value in item.items():
                    found.update(leaves(value, (*entry, f"f:{name}"), name))
            return found
    return {path: node} if path else {}


def _entry_name(key: tuple[str, ...], item: Json) -> str:
    named = {name: item.get(name) for name in key}
    return json.dumps(named, separators=(",", ":"))


def _tree(paths: set[Path]) -> Json:
    root: Json = {}
    for path in sorted(paths):
        node = root
        for part in path:
            node = node.setdefault(part, {})
    return root


def _paths(tree: Json, at: Path = ()) -> set[Path]:
    if not tree:
        return {at} if at else set()
    found: set[Path] = set()
    for name, below in tree.items():
        found |= _paths(below, (*at, name))
    return found


def _entries(body: Json) -> list[Json]:
    return body["metadata"].get("managedFields") or []


def _store_entry(entries: list[Json], manager: str, kind: str, api: str, paths: set[Path]) -> None:
    entry = next((e for e in entries if (e["manager"], e["operation"]) == (manager, kind)), None)
    if not paths:
        if entry is not None:
            entries.remove(entry)
        return
    if entry is None:
        entry = {"manager": manager, "operation": kind, "apiVersion": api}
        entries.append(entry)
    entry.update(time=timestamp(), fieldsType="FieldsV1", fieldsV1=_tree(paths))


def record_update(before: Json | None, after: Json, manager: str) -> None:
    """Note that a manager wrote what differs; it takes those fields from all others."""
    old = leaves(owned_part(before)) if before else {}
    new = leaves(owned_part(after))
    changed = {p for p, value in new.items() if p not in old or old[p] != value}
    entries = copy.deepcopy(_entries(before)) if before else []
    for entry in list(entries):
        kept = {p for p in _paths(entry["fieldsV1"]) if p in new}
        if entry["manager"] != manager or entry["operation"] != "Update":
            kept -= changed
        _store_entry(entries, entry["manager"], entry["operation"], entry["apiVersion"], kept)
    mine = next((e for e in entries if (e["manager"], e["operation"]) == (manager, "Update")), None)
    owned = _paths(mine["fieldsV1"]) if mine else set()
    _store_entry(entries, manager, "Update", after.get("apiVersion", ""), owned | changed)
    after["metadata"]["managedFields"] = entries


def apply(before: Json | None, wanted: Json, manager: str, force: bool) -> Json:
    """The object after a server-side apply. Raises 409 on a conflict, 422 without a manager."""
    if not manager:
        fault = required("fieldManager", "is required for apply patch")
        raise invalid("PatchOptions", "meta.k8s.io", "", [fault])
    new = leaves(owned_part(wanted))
    live = leaves(owned_part(before)) if before else {}
    entries = copy.deepcopy(_entries(before)) if before else []
    contested = {p for p, value in new.items() if p in live and live[p] != value}
    _settle_conflicts(entries, manager, contested, force)
    mine = next((e for e in entries if (e["manager"], e["operation"]) == (manager, "Apply")), None)
    let_go = (_paths(mine["fieldsV1"]) if mine else set()) - set(new)
    others = set()
    for entry in entries:
        if entry is not mine:
            others |= _paths(entry["fieldsV1"])
    result: Json = overlay(before or {}, wanted)
    for path in sorted(let_go - others, key=len, reverse=True):
        _drop(result, path)
    _store_entry(entries, manager, "Apply", wanted.get("apiVersion", ""), set(new))
    result["metadata"]["managedFields"] = entries
    return result


def _settle_conflicts(entries: list[Json], manager: str, contested: set[Path], force: bool) -> None:
    causes: list[Cause] = []
    for entry in list(entries):
        if (entry["manager"], entry["operation"]) == (manager, "Apply"):
            continue
        owned = _paths(entry["fieldsV1"])
        for path in sorted(owned & contested):
            words = f'conflict with "{entry["manager"]}"'
            if entry["operation"] == "Update":
                words += f" using {entry['apiVersion']}"
            causes.append(Cause("FieldManagerConflict", words, _dotted(path)))
        _store_entry(
            entries, entry["manager"], entry["operation"], entry["apiVersion"], owned - contested
        )
    if causes and not force:
        raise _conflict(causes)


def _conflict(causes: list[Cause]) -> ApiError:
    if len(causes) == 1:
        text = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        by_manager: dict[str, list[str]] = {}
        for cause in causes:
            by_manager.setdefault(cause.message, []).append(cause.field)
        parts = [
            f"conflict{'s' if len(fields) > 1 else ''} {words.removeprefix('conflict ')}:\n"
            + "\n".join(f"- {field}" for field in fields)
            for words, fields in by_manager.items()
        ]
        text = f"Apply failed with {len(causes)} conflicts: " + "\n".join(parts)
    return ApiError(409, "Conflict", text, {"causes": [c.body() for c in causes]})


def _dotted(path: Path) -> str:
    text = ""
    for part in path:
        if part.startswith("f:"):
            text += "." + part[2:]
        elif part.startswith("k:"):
            named = json.loads(part[2:])
            text += "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in named.items()) + "]"
    return text


def overlay(base: Any, top: Any, field: str = "") -> Any:
    """``top`` laid over ``base``: objects and keyed lists merge, all else is replaced."""
    if isinstance(base, dict) and isinstance(top, dict) and field not in _ATOMIC:
        result = copy.deepcopy(base)
        for name, value in top.items():
            result[name] = overlay(base.get(name), value, name)
        return result
    if isinstance(base, list) and isinstance(top, list):
        key = merge_key(field, [*base, *top])
        if key is not None:
            result_list = copy.deepcopy(base)
            for item in top:
                name = _entry_name(key, item)
                at = next(
                    (i for i, old in enumerate(result_list) if _entry_name(key, old) == name), None
                )
                if at is None:
                    result_list.append(copy.deepcopy(item))
                else:
                    result_list[at] = overlay(result_list[at], item)
            return result_list
    return copy.deepcopy(top)


def _drop(node: Any, path: Path) -> None:
    *parents, last = path
    trail: list[tuple[Any, Any]] = []
    for part in parents:
        if isinstance(node, dict) and part.startswith("f:"):
            trail.append((node, part[2:]))
            node = node.get(part[2:])
        elif isinstance(node, list) and part.startswith("k:"):
            named = json.loads(part[2:])
            entry = next((i for i in node if all(i.get(k) == v for k, v in named.items())), None)
            trail.append((node, entry))
            node = entry
        if node is None:
            return
    if last == ".":
        holder, entry = trail[-1]
        if entry in holder:
            holder.remove(entry)
    elif isinstance(node, dict):
        node.pop(last[2:], None)
