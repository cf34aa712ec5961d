"""The one protobuf body that kubectl sends here: an access review of ``kubectl auth can-i``."""

from __future__ import annotations

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
    message = f"the test server reads no protobuf body of kind {kind}"
    raise ApiError(415, "UnsupportedMediaType", message)


def _named(data: bytes, names: dict[int, str]) -> Json:
    return {names[n]: v.decode() for n, v in _fields(data) if n in names and v}
