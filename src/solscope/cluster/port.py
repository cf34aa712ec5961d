"""What this tool asks of a cluster: nine calls, and the errors that they raise.

Objects are Kubernetes' own JSON as dictionaries. ``kind`` is anything that kubectl understands:
``deploy``, ``deployments.apps``, ``lws``. ``namespace=None`` means the port's own namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from solscope.errors import ClusterError

Object = Mapping[str, Any]


class Forbidden(ClusterError):
    """The user lacks a right (403, or 401 when nobody is logged in).

    ``right`` names it as one would ask for it: ``list nodes (whole cluster)``.
    """

    def __init__(
        self, what: str, *, right: str, where: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.right = right


class NotFound(ClusterError):
    """No object of that name (404)."""


class UnknownKind(NotFound):
    """The cluster has no such kind: a misspelling, or an operator that is not installed."""


class Conflict(ClusterError):
    """The object exists already, was changed meanwhile, or is another one (409)."""


class Refused(ClusterError):
    """Admission, validation, quota or Pod Security said no; ``what`` is the server's text."""


class Unreachable(ClusterError):
    """No answer: no cluster there, no network, or the time limit passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecResult:
    """What a command in a container left. ``exit_code`` is the command's own.

    ``failed_to_start`` is set where the container runtime could not start it at all (no such
    program, container not running); ``stderr`` then holds the reason.
    """

    stdout: bytes
    stderr: str
    exit_code: int
    failed_to_start: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """One change: ``type`` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: Object


class Cluster(Protocol):
    """The port. All methods raise ClusterError or one of its subclasses above."""

    @property
    def context(self) -> str | None:
        """The context that every call names explicitly."""

    @property
    def namespace(self) -> str:
        """The namespace that every call names explicitly."""

    def get(self, kind: str, name: str, *, namespace: str | None = None) -> Object:
        """One object."""

    def list(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        everywhere: bool = False,
    ) -> tuple[Object, ...]:
        """Objects of a kind, by label and field selector; ``everywhere``: in all namespaces."""

    def raw(self, path: str) -> bytes:
        """The body of a GET on an API path, such as a pod's proxy."""

    def create(self, obj: Object, *, dry_run: bool = False) -> Object:
        """Create with strict field validation; ``dry_run`` asks the server without persisting."""

    def patch(
        self,
        kind: str,
        name: str,
        patch: object,
        *,
        namespace: str | None = None,
        patch_type: str = "strategic",
    ) -> Object:
        """Patch (``strategic``, ``merge`` or ``json``) and return the new object."""

    def delete(
        self,
        kind: str,
        name: str,
        *,
        uid: str | None = None,
        namespace: str | None = None,
        grace_s: int | None = None,
    ) -> None:
        """Delete in the foreground; with ``uid``, only that very object (else Conflict).

        ``grace_s`` replaces a pod's own grace period; it can be shortened while it runs.
        """

    def watch(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        name: str | None = None,
        timeout_s: float,
    ) -> Iterator[WatchEvent]:
        """Events from now on, the present objects first as ADDED; ends after ``timeout_s``."""

    def exec(
        self,
        pod: str,
        container: str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
    ) -> ExecResult:
        """Run a command in a container. A non-zero exit is a result, not an error."""

    def can_i(self, verb: str, resource: str, *, namespace: str | None = None) -> bool:
        """Whether the user may do that; ``resource`` may name a subresource (``pods/exec``)."""
