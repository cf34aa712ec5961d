"""The few protobuf bodies that kubectl sends to this server, read as JSON.

kubectl's typed commands (``auth can-i``, ``create namespace``, ``drain``) post protobuf and do not
fall back. Field numbers are those of the published ``generated.proto`` files.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from tests.cluster.server.status import ApiError, Json

MAGIC_LENGTH = 4
_RESOURCE_FIELDS = {
    1: "namespace",
    2: "verb",
    3: "group",
    4: "version",
    5: "resource",
    6: "subresource",
    7: "name",
}
_PATH_FIELDS = {1: "path", 2: "verb"}
_META_FIELDS = {1: "name", 2: "generateName", 3: "namespace"}
_META_MAPS = {11: "labels", 12: "annotations"}
_TEXT_MAPS = {"ConfigMap": {2: "data"}, "Secret": {4: "stringData"}}
_PLAIN_KINDS = ("Namespace", "ConfigMap", "Secret", "ServiceAccount", "Eviction")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 2:
            length, at = _varint(data, at)
            yield tag >> 3, data[at : at + length]
            at += length
        elif tag & 7 == 0:
            _, at = _varint(data, at)
        else:
            at += 8 if tag & 7 == 1 else 4


def decode(body: bytes) -> Json:
    """An access review as JSON; 415 for any other kind."""
    envelope = dict(_fields(body[MAGIC_LENGTH:]))
    meta = {number: value.decode() for number, value in _fields(envelope.get(1, b""))}
    kind, raw = meta.get(2, ""), envelope.get(2, b"")
    head: Json = {"apiVersion": meta.get(1, ""), "kind": kind}
    spec = dict(_fields(raw)).get(2, b"")
    if kind == "SelfSubjectAccessReview":
        parts = dict(_fields(spec))
        attributes: Json = {}
        if 1 in parts:
            attributes["resourceAttributes"] = _named(parts[1], _RESOURCE_FIELDS)
        if 2 in parts:
            attributes["nonResourceAttributes"] = _named(parts[2], _PATH_FIELDS)
        return {**head, "spec": attributes}
    if kind == "SelfSubjectRulesReview":
        return {**head, "spec": _named(spec, {1: "namespace"})}
    if kind == "DeleteOptions":
        return head
    if kind in _PLAIN_KINDS:
        return {**head, **_plain(kind, list(_fields(raw)))}
    message = f"the test server reads no protobuf body of kind {kind}"
    raise ApiError(415, "UnsupportedMediaType", message)


def _plain(kind: str, fields: list[tuple[int, bytes]]) -> Json:
    body: Json = {"metadata": {}}
    for number, value in fields:
        if number == 1:
            inner = list(_fields(value))
            body["metadata"] = _named(value, _META_FIELDS)
            for at, name in _META_MAPS.items():
                entries = dict(_entry(data) for n, data in inner if n == at)
                if entries:
                    body["metadata"][name] = {k: v.decode() for k, v in entries.items()}
        elif kind == "Secret" and number == 2:
            key, data = _entry(value)
            body.setdefault("data", {})[key] = base64.b64encode(data).decode()
        elif kind == "Secret" and number == 3:
            body["type"] = value.decode()
        elif number in _TEXT_MAPS.get(kind, {}):
            key, data = _entry(value)
            body.setdefault(_TEXT_MAPS[kind][number], {})[key] = data.decode()
    return body


def _entry(data: bytes) -> tuple[str, bytes]:
    parts = dict(_fields(data))
    return parts.get(1, b"").decode(), parts.get(2, b"")


def _named(data: bytes, names: dict[int, str]) -> Json:
    return {names[n]: v.decode() for n, v in _fields(data) if n in names and v}
