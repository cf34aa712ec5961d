"""kubectl's complaints to errors: which right, which object, which step comes next."""

from __future__ import annotations

import re

from solscope.cluster.port import Conflict, Forbidden, NotFound, Refused, UnknownKind, Unreachable
from solscope.errors import ClusterError

_CANNOT = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)"'
    r'(?: in API group "(?P<group>[^"]*)")?'
    r'(?: in the namespace "(?P<namespace>[^"]+)"| at the cluster scope)?'
)
_SERVER = re.compile(r"Error from server(?: \((?P<reason>\w+)\))?: (?P<text>.*)", re.DOTALL)
_NOT_STARTED = re.compile(
    r"OCI runtime exec failed|unable to upgrade connection|container not found|"
    r"executable file not found|cannot exec in a stopped|"
    r"cannot exec into a container in a completed pod|"
    r"error executing command in container|"
    r"does not have a host assigned|is not valid for pod",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"Unable to connect to the server|The connection to the server .* was refused|"
    r"context deadline exceeded|i/o timeout|no such host|net/http: request canceled|"
    r"Client\.Timeout exceeded|TLS handshake timeout",
    re.IGNORECASE,
)


def is_not_started(stderr: str) -> bool:
    """Whether a command in a container never ran (no such program, no such container)."""
    return bool(_NOT_STARTED.search(stderr)) and not _CANNOT.search(stderr)


def is_unreachable(stderr: str) -> bool:
    """Whether nobody answered."""
    return bool(_UNREACHABLE.search(stderr))


def is_the_clusters(stderr: str, not_started: bool) -> bool:
    """Whether the cluster complains, and not the command that ran in the container."""
    said = bool(_SERVER.search(stderr) or _CANNOT.search(stderr) or is_unreachable(stderr))
    return said and not not_started


def error_of(stderr: str, where: str, *, context: str | None = None) -> ClusterError:
    """What kubectl's complaint means. The server's own sentence is kept."""
    text = stderr.strip()
    if "doesn't have a resource type" in text or "no matches for kind" in text:
        return UnknownKind(
            "this cluster has no such kind",
            where=where,
            hint=f"`kubectl --context {context} api-resources` lists the kinds",
        )
    if _UNREACHABLE.search(text):
        return Unreachable(
            first_line(text),
            where=f"context {context}",
            hint="is the cluster up, and the login still valid?",
        )
    if "must be logged in" in text or "Unauthorized" in text:
        return Forbidden(
            "the cluster does not know who you are (401)",
            right="a valid login",
            where=f"context {context}",
            hint="log in again, then repeat",
        )
    if (cannot := _CANNOT.search(text)) is not None:
        right = _right(cannot)
        return Forbidden(f"no right to {right}", right=right, where=where, hint=f"ask for: {right}")
    match = _SERVER.search(text)
    if match is None:
        return ClusterError(first_line(text) or "kubectl failed without a word", where=where)
    return _server_error(match["reason"] or "", match["text"].strip(), where)


def _server_error(reason: str, text: str, where: str) -> ClusterError:
    if reason == "NotFound":
        if "could not find the requested resource" in text:
            return UnknownKind("this cluster has no such kind", where=where)
        return NotFound(text, where=where, hint="check the name and the namespace")
    if reason in ("Conflict", "AlreadyExists"):
        return Conflict(text, where=where)
    if reason in ("Forbidden", "Invalid", "BadRequest"):
        return Refused(text, where=where)
    if reason in ("ServiceUnavailable", "Timeout", "ServerTimeout", "InternalError"):
        return Unreachable(text, where=where)
    return ClusterError(text, where=where)


def _right(cannot: re.Match[str]) -> str:
    resource = cannot["resource"]
    if cannot["group"]:
        plural, _, sub = resource.partition("/")
        resource = f"{plural}.{cannot['group']}" + (f"/{sub}" if sub else "")
    scope = f"namespace {cannot['namespace']}" if cannot["namespace"] else "whole cluster"
    return f"{cannot['verb']} {resource} ({scope})"


def first_line(text: str) -> str:
    """The last line that is no log line of kubectl's own; empty where there is none."""
    lines = [line for line in text.splitlines() if line and not re.match(r"[IWEF]\d{4} ", line)]
    return lines[-1] if lines else ""
