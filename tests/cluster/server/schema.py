"""Unknown fields and wrong types, found by the JSON schemas of the kubernetes-validate package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib import resources as package_files
from typing import Any

from tests.cluster.server.status import Json

SCHEMA_FOLDER = "kubernetes-json-schema/v1.36.0-local"
_LOOSE = (
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
)
_GO_NAMES: dict[str, str] = {"dict": "object", "list": "array", "str": "string", "bool": "bool"}


@cache
def _load(name: str) -> Json:
    path = package_files.files("kubernetes_validate").joinpath(SCHEMA_FOLDER).joinpath(name)
    return dict(json.loads(path.read_text()))


@cache
def _for_kind(api_version: str, kind: str) -> Json | None:
    group, _, version = api_version.rpartition("/")
    short = group.split(".")[0]
    name = f"{kind.lower()}-{short}-{version}.json" if group else f"{kind.lower()}-{version}.json"
    try:
        return _load(name)
    except FileNotFoundError:
        return None


def _resolve(schema: Json) -> tuple[Json, str]:
    reference = schema.get("$ref")
    if reference is None:
        return schema, ""
    name = reference.rsplit("/", 1)[1]
    if name in _LOOSE:
        return {}, name
    return _load("_definitions.json")["$defs"][name], name


def unknown_fields(body: Json) -> list[str]:
    """Paths of fields that the kind does not have, as the strict decoder names them."""
    schema = _for_kind(body.get("apiVersion", ""), body.get("kind", ""))
    return [] if schema is None else [p for kind, p in _walk(body, schema, "", "") if kind == "?"]


def type_fault(body: Json) -> str | None:
    """The decoder's complaint about the first value of a wrong type, or ``None``."""
    schema = _for_kind(body.get("apiVersion", ""), body.get("kind", ""))
    if schema is None:
        return None
    return next((text for kind, text in _walk(body, schema, "", "") if kind == "!"), None)


def _walk(node: Any, schema: Json, path: str, struct: str) -> Iterator[tuple[str, str]]:
    schema, name = _resolve(schema)
    struct = name.rsplit(".", 1)[-1] if name and "properties" in schema else struct
    types = schema.get("type") or []
    types = [types] if isinstance(types, str) else types
    if node is None or not schema:
        return
    if types and not _fits(node, types):
        yield "!", _go_complaint(node, path, struct, types)
        return
    if isinstance(node, dict):
        known = schema.get("properties")
        extra = schema.get("additionalProperties")
        for key, value in node.items():
            below = f"{path}.{key}" if path else key
            if known is not None and key in known:
                yield from _walk(value, known[key], below, struct)
            elif isinstance(extra, dict):
                yield from _walk(value, extra, below, struct)
            elif known is not None:
                yield "?", below
    elif isinstance(node, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(node):
            yield from _walk(item, schema["items"], f"{path}[{index}]", struct)


def _fits(node: Any, types: list[str]) -> bool:
    if isinstance(node, bool):
        return "boolean" in types
    if isinstance(node, int):
        return "integer" in types or "number" in types
    if isinstance(node, float):
        return "number" in types
    names = {"str": "string", "dict": "object", "list": "array"}
    return names[type(node).__name__] in types


def _go_complaint(node: Any, path: str, struct: str, types: list[str]) -> str:
    import re

    found = "number" if isinstance(node, int | float) and not isinstance(node, bool) else ""
    found = found or _GO_NAMES[type(node).__name__]
    wanted = next(t for t in types if t != "null")
    wanted = {"boolean": "bool", "integer": "int32"}.get(wanted, wanted)
    plain = re.sub(r"\[\d+\]", "", path)
    return f"json: cannot unmarshal {found} into Go struct field {struct}.{plain} of type {wanted}"
