"""One request: what was asked, of which object, by whom; and the answer to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from tests.cluster.server import resources
from tests.cluster.server.rbac import User
from tests.cluster.server.resources import Resource
from tests.cluster.server.status import ApiError, bad_request, no_such_page

PROTOBUF_MAGIC = b"k8s\x00"


@dataclass(frozen=True)
class Target:
    """The object, or the collection, that a path names. ``rest`` follows a proxy subresource."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""


@dataclass(frozen=True)
class Request:
    """One request."""

    user: User
    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes = b""

    @staticmethod
    def of(
        user: User, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Request:
        """Split the URL; header names are kept in lower case."""
        parts = urlsplit(url)
        lowered = {name.lower(): value for name, value in headers.items()}
        query = parse_qs(parts.query, keep_blank_values=True)
        return Request(user, method, unquote(parts.path), query, lowered, body)

    def option(self, name: str, default: str = "") -> str:
        """The first value of a query parameter."""
        return self.query.get(name, [default])[0]

    def is_true(self, name: str) -> bool:
        """Whether a query parameter is set to a true value."""
        return self.option(name).lower() in ("true", "1")

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing may be stored."""
        return "All" in self.query.get("dryRun", [])

    @property
    def content_type(self) -> str:
        """Of the body, without parameters."""
        return self.headers.get("content-type", "application/json").partition(";")[0].strip()

    @property
    def is_upgrade(self) -> bool:
        """Whether the client wants another protocol on this connection."""
        return "upgrade" in self.headers.get("connection", "").lower()

    @property
    def manager(self) -> str:
        """The field manager: stated, or the first word of the user agent."""
        agent = self.headers.get("user-agent", "unknown").partition("/")[0]
        return self.option("fieldManager") or agent or "unknown"

    def parsed(self) -> Any:
        """The body as an object. JSON and YAML; of protobuf only what ``wire.py`` knows."""
        if self.body.startswith(PROTOBUF_MAGIC):
            from tests.cluster.server import wire

            return wire.decode(self.body)
        try:
            if "yaml" in self.content_type:
                value = yaml.safe_load(self.body)
            else:
                value = json.loads(self.body)
        except (ValueError, yaml.YAMLError) as error:
            raise bad_request(
                f"the body of the request was in an unknown format: {error}"
            ) from None
        if not isinstance(value, dict | list):
            raise bad_request("the body of the request is no object")
        return value

    def for_user(self, user: User) -> Request:
        """The same request by someone else."""
        return replace(self, user=user)


@dataclass
class Response:
    """An answer: one body, or a stream of lines or bytes."""

    status: int = 200
    body: object = None
    content_type: str = "application/json"
    warnings: list[str] = field(default_factory=list)
    stream: Iterator[bytes] | None = None
    raw: bytes | None = None

    def payload(self) -> bytes:
        """The body's bytes."""
        if self.raw is not None:
            return self.raw
        return b"" if self.body is None else json.dumps(self.body).encode()


def refused(error: ApiError) -> Response:
    """A refusal as an answer."""
    return Response(error.code, error.body())


def target_of(path: str) -> Target:
    """The object or collection of an API path; 404 where the server serves no such thing."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_page()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and resources.find(group, version, rest[2]):
        namespace, rest = rest[1], rest[2:]
    resource = resources.find(group, version, rest[0])
    if resource is None:
        raise no_such_page()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in resource.subresources:
        raise no_such_page()
    return Target(resource, namespace, name, subresource, "/".join(rest[3:]))
