"""Objects and their history: one lock, one rising resource version, watchers that wait on it."""

from __future__ import annotations

import copy
import threading
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.cluster.server.resources import Resource
from tests.cluster.server.status import Json

Key = tuple[str, str, str]
Webhook = Callable[[Json, bool], None]
"""Changes a new pod in place; told whether it is a dry run. May raise ApiError."""
FIRST_VERSION = 200
HISTORY = 20_000


def timestamp(at: datetime | None = None) -> str:
    """A time as the API writes it, whole seconds in UTC."""
    return (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Change:
    """One step of history. ``before`` is ``None`` for a creation, ``after`` for a deletion."""

    version: int
    resource: str
    before: Json | None
    after: Json | None


class Store:
    """Every object of the cluster. Returned objects are copies."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.version = FIRST_VERSION
        self.history: deque[Change] = deque(maxlen=HISTORY)
        self._objects: dict[Key, Json] = {}
        self.webhooks: list[Webhook] = []

    @staticmethod
    def _key(resource: Resource, namespace: str, name: str) -> Key:
        return resource.key, namespace if resource.namespaced else "", name

    def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """A copy of the object, or ``None``."""
        with self.lock:
            return copy.deepcopy(self._objects.get(self._key(resource, namespace, name)))

    def list(self, resource: Resource, namespace: str = "") -> list[Json]:
        """Copies of all objects of a kind, in one namespace or in all, by namespace and name."""
        with self.lock:
            found = [
                (key, body)
                for key, body in self._objects.items()
                if key[0] == resource.key and namespace in ("", key[1])
            ]
            return [copy.deepcopy(body) for _, body in sorted(found, key=lambda pair: pair[0])]

    def insert(self, resource: Resource, body: Json) -> Json:
        """Store a new object: gives uid, time and resource version."""
        body = copy.deepcopy(body)
        meta = body["metadata"]
        meta.setdefault("uid", str(uuid.uuid4()))
        meta.setdefault("creationTimestamp", timestamp())
        return self._write(resource, None, body)

    def replace(self, resource: Resource, body: Json) -> Json:
        """Store a new state of an object. A write that changes nothing keeps its version."""
        meta = body["metadata"]
        with self.lock:
            key = self._key(resource, meta.get("namespace", ""), meta["name"])
            before = self._objects[key]
            if _same(before, body):
                return copy.deepcopy(before)
            return self._write(resource, before, copy.deepcopy(body))

    def _write(self, resource: Resource, before: Json | None, after: Json) -> Json:
        with self.changed:
            self.version += 1
            meta = after["metadata"]
            meta["resourceVersion"] = str(self.version)
            self._objects[self._key(resource, meta.get("namespace", ""), meta["name"])] = after
            self.history.append(Change(self.version, resource.key, before, after))
            self.changed.notify_all()
            return copy.deepcopy(after)

    def remove(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """Take an object out; its last state carries the version of the deletion."""
        with self.changed:
            before = self._objects.pop(self._key(resource, namespace, name), None)
            if before is None:
                return None
            self.version += 1
            last = copy.deepcopy(before)
            last["metadata"]["resourceVersion"] = str(self.version)
            self.history.append(Change(self.version, resource.key, last, None))
            self.changed.notify_all()
            return last

    def since(self, version: int, resource: Resource) -> Sequence[Change]:
        """Changes of a kind after a version, oldest first."""
        with self.lock:
            newer = [c for c in reversed(self.history) if c.version > version]
            return [c for c in reversed(newer) if c.resource == resource.key]

    def wait(self, version: int, timeout_s: float) -> bool:
        """Wait until the store is newer than ``version``."""
        with self.changed:
            return self.changed.wait_for(lambda: self.version > version, timeout_s)


def _same(before: Json, after: Json) -> bool:
    def bare(body: Json) -> Json:
        meta = {k: v for k, v in body["metadata"].items() if k != "resourceVersion"}
        return {**body, "metadata": meta}

    return bare(before) == bare(after)
