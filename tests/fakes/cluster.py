"""A cluster in memory: objects, rights that are missing, answers of containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solscope.cluster.port import ExecResult, Forbidden, NotFound, UnknownKind, WatchEvent
from solscope.errors import ClusterError

_SHORT = {"deploy": "deployment", "sts": "statefulset", "lws": "leaderworkerset", "po": "pod",
          "isvc": "inferenceservice"}  # fmt: skip
_CLUSTER_WIDE = frozenset({"node", "namespace"})


class FakeCluster:
    """Answers reads from ``objects``; refuses the verbs on kinds in ``denied`` (``list nodes``).

    ``absent`` are kinds that this cluster does not have; ``outputs`` maps the first word of a
    command to what exec gives; ``bodies`` API paths to what raw gives. Every call is kept in
    ``calls``.
    """

    def __init__(
        self,
        objects: Sequence[Mapping[str, Any]],
        *,
        namespace: str = "default",
        denied: Sequence[str] = (),
        absent: Sequence[str] = (),
        outputs: Mapping[str, ExecResult] | None = None,
        bodies: Mapping[str, bytes] | None = None,
    ) -> None:
        self.objects = list(objects)
        self.calls: list[str] = []
        self._namespace = namespace
        self._denied = frozenset(denied)
        self._absent = frozenset(absent)
        self._outputs = dict(outputs or {})
        self._bodies = dict(bodies or {})

    @property
    def context(self) -> str | None:
        return "fake"

    @property
    def namespace(self) -> str:
        return self._namespace

    def get(self, kind: str, name: str, *, namespace: str | None = None) -> Mapping[str, Any]:
        singular = self._check("get", kind)
        for obj in self._of(singular, namespace):
            if obj["metadata"]["name"] == name:
                return obj
        raise NotFound(f'{singular} "{name}" not found', where=f"{kind}/{name}")

    def list(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        everywhere: bool = False,
    ) -> tuple[Mapping[str, Any], ...]:
        singular = self._check("list", kind, everywhere=everywhere)
        found = self.objects if everywhere else self._of(singular, namespace)
        found = [obj for obj in found if str(obj["kind"]).lower() == singular]
        if labels:
            found = [obj for obj in found if _labelled(obj, labels)]
        if fields:
            found = [obj for obj in found if _has_field(obj, fields)]
        return tuple(found)

    def raw(self, path: str) -> bytes:
        self.calls.append(f"raw {path}")
        if path not in self._bodies:
            raise NotFound("nothing there", where=path)
        return self._bodies[path]

    def create(self, obj: Mapping[str, Any], *, dry_run: bool = False) -> Mapping[str, Any]:
        self._check("create", str(obj["kind"]))
        if not dry_run:
            self.objects.append(obj)
        return obj

    def patch(
        self,
        kind: str,
        name: str,
        patch: object,
        *,
        namespace: str | None = None,
        patch_type: str = "strategic",
    ) -> Mapping[str, Any]:
        self._check("patch", kind)
        return self.get(kind, name, namespace=namespace)

    def delete(
        self,
        kind: str,
        name: str,
        *,
        uid: str | None = None,
        namespace: str | None = None,
        grace_s: int | None = None,
    ) -> None:
        singular = self._check("delete", kind)
        self.objects = [
            obj
            for obj in self.objects
            if (str(obj["kind"]).lower(), obj["metadata"]["name"]) != (singular, name)
        ]

    def watch(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        name: str | None = None,
        timeout_s: float,
    ) -> Iterator[WatchEvent]:
        for obj in self.list(kind, namespace=namespace, labels=labels):
            yield WatchEvent(type="ADDED", object=obj)

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
        self._check("create", "pods/exec")
        self.calls.append(f"exec {pod} {container} {command[0]}")
        self.get("pod", pod, namespace=namespace)
        missing = ExecResult(
            stdout=b"", stderr="executable file not found", exit_code=127, failed_to_start=True
        )
        return self._outputs.get(command[0], missing)

    def can_i(self, verb: str, resource: str, *, namespace: str | None = None) -> bool:
        return f"{verb} {resource}" not in self._denied

    def _of(self, singular: str, namespace: str | None) -> Sequence[Mapping[str, Any]]:
        space = namespace or self._namespace
        return [
            obj
            for obj in self.objects
            if str(obj["kind"]).lower() == singular
            and (singular in _CLUSTER_WIDE or obj["metadata"].get("namespace", space) == space)
        ]

    def _check(self, verb: str, kind: str, *, everywhere: bool = False) -> str:
        plural = kind.partition(".")[0].lower()
        plural = _SHORT.get(plural, plural)
        singular = plural.removesuffix("s") if not plural.endswith("policies") else "networkpolicy"
        scope = " (everywhere)" if everywhere else ""
        self.calls.append(f"{verb} {plural}{scope}")
        if plural in self._absent or f"{plural}s" in self._absent:
            raise UnknownKind("this cluster has no such kind", where=kind)
        singular = "pods/exec" if plural == "pods/exec" else singular
        for name in (plural, singular, f"{singular}s"):
            if f"{verb} {name}{scope}" in self._denied:
                shown = plural if plural.endswith(("s", "/exec")) else f"{plural}s"
                right = f"{verb} {shown} (namespace {self._namespace})"
                raise Forbidden(f"no right to {right}", right=right, where=kind)
        return singular


def unreachable(*_: object) -> FakeCluster:
    """What connecting gives when there is no kubectl."""
    raise ClusterError("kubectl was not found", hint="install kubectl")


def _labelled(obj: Mapping[str, Any], selector: str) -> bool:
    labels = obj["metadata"].get("labels") or {}
    return all(labels.get(k) == v for k, _, v in (p.partition("=") for p in selector.split(",")))


def _has_field(obj: Mapping[str, Any], selector: str) -> bool:
    path, _, value = selector.partition("=")
    inner: Any = obj
    for key in path.split("."):
        inner = (inner or {}).get(key)
    return bool(inner == value)
