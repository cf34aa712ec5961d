"""A cluster that is asked again while the network is away, for a bounded time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from solscope.cluster.port import Cluster, ExecResult, Object, Unreachable, WatchEvent
from solscope.errors import ClusterError

T = TypeVar("T")
PATIENCE_S = 90.0
_PASSING = re.compile(
    r"InternalError|Internal error|ServiceUnavailable|currently unable to handle|"
    r"TooManyRequests|Too many requests|etcdserver|ServerTimeout|unexpected EOF|"
    r"connection reset|http2: |\bEOF\b",
    re.IGNORECASE,
)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0


class Patient:
    """The port over another one. Every call may be made twice: what a lost answer leaves open
    (was it created? is it deleted?) the caller tells from the object's own mark."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def context(self) -> str | None:
        """The context that every call names."""
        return self._cluster.context

    @property
    def namespace(self) -> str:
        """The namespace that every call names."""
        return self._cluster.namespace

    def get(self, kind: str, name: str, *, namespace: str | None = None) -> Object:
        """One object."""
        return _again(lambda: self._cluster.get(kind, name, namespace=namespace))

    def list(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        everywhere: bool = False,
    ) -> tuple[Object, ...]:
        """Objects of a kind."""
        return _again(
            lambda: self._cluster.list(
                kind, namespace=namespace, labels=labels, fields=fields, everywhere=everywhere
            )
        )

    def raw(self, path: str) -> bytes:
        """The body of a GET on an API path."""
        return _again(lambda: self._cluster.raw(path))

    def create(self, obj: Object, *, dry_run: bool = False) -> Object:
        """Create; Conflict may mean that the first try had come through."""
        return _again(lambda: self._cluster.create(obj, dry_run=dry_run))

    def patch(
        self,
        kind: str,
        name: str,
        patch: object,
        *,
        namespace: str | None = None,
        patch_type: str = "strategic",
    ) -> Object:
        """Patch an object."""
        return _again(
            lambda: self._cluster.patch(
                kind, name, patch, namespace=namespace, patch_type=patch_type
            )
        )

    def delete(
        self,
        kind: str,
        name: str,
        *,
        uid: str | None = None,
        namespace: str | None = None,
        grace_s: int | None = None,
    ) -> None:
        """Delete an object."""
        _again(
            lambda: self._cluster.delete(kind, name, uid=uid, namespace=namespace, grace_s=grace_s)
        )

    def watch(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        name: str | None = None,
        timeout_s: float,
    ) -> Iterator[WatchEvent]:
        """Events, as the other port has them."""
        return self._cluster.watch(
            kind, namespace=namespace, labels=labels, name=name, timeout_s=timeout_s
        )

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
        """Run a command in a container; a connection that was refused counts as away."""

        def once() -> ExecResult:
            done = self._cluster.exec(
                pod, container, command, namespace=namespace, stdin=stdin, timeout_s=timeout_s
            )
            said = done.stderr
            if done.failed_to_start and "unable to upgrade" in said and "not found" not in said:
                raise Unreachable(said.strip()[-300:], where=f"pod/{pod}")
            return done

        return _again(once)

    def can_i(self, verb: str, resource: str, *, namespace: str | None = None) -> bool:
        """Whether the user may do that."""
        return _again(lambda: self._cluster.can_i(verb, resource, namespace=namespace))


def _is_passing(error: ClusterError) -> bool:
    """Whether the error may be gone in a moment: no answer, or a server that is overloaded."""
    return isinstance(error, Unreachable) or (
        type(error) is ClusterError and _PASSING.search(error.what) is not None
    )


def _again(call: Callable[[], T]) -> T:
    """Call until it answers. Raises the last error once ``PATIENCE_S`` has passed."""
    ends, pause = time.monotonic() + PATIENCE_S, _FIRST_PAUSE_S
    while True:
        try:
            return call()
        except ClusterError as error:
            if not _is_passing(error) or time.monotonic() + pause >= ends:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
