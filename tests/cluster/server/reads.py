"""Get, list and watch."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

from tests.cluster.server import selectors, table
from tests.cluster.server.request import Request, Response, Target
from tests.cluster.server.status import ApiError, Json
from tests.cluster.server.store import Change, Store

DEFAULT_WATCH_S = 1800.0
BOOKMARK_EVERY_S = 60.0


def wants_table(request: Request) -> bool:
    """Whether the client prefers a Table."""
    return "as=Table" in request.headers.get("accept", "").partition(",")[0]


def one(store: Store, target: Target, request: Request, body: Json) -> Response:
    """Answer with one object."""
    if wants_table(request):
        return Response(200, table.render(target.resource, [body], str(store.version)))
    return Response(200, body)


def listing(store: Store, target: Target, request: Request) -> Response:
    """Answer with a list of what the selectors match."""
    match = _match(target, request)
    with store.lock:
        items = [b for b in store.list(target.resource, target.namespace) if match(b)]
        version = str(store.version)
    if wants_table(request):
        return Response(200, table.render(target.resource, items, version))
    return Response(200, as_list(target, items, version))


def as_list(target: Target, items: list[Json], version: str) -> Json:
    """A List object: its entries carry no kind of their own, as the API has it."""
    bare = [{k: v for k, v in i.items() if k not in ("kind", "apiVersion")} for i in items]
    return {
        "kind": f"{target.resource.kind}List",
        "apiVersion": target.resource.api_version,
        "metadata": {"resourceVersion": version},
        "items": bare,
    }


def _match(target: Target, request: Request) -> selectors.Match:
    label, field = request.option("labelSelector"), request.option("fieldSelector")
    if target.name:
        field = ",".join(part for part in (field, f"metadata.name={target.name}") if part)
    return selectors.both(target.resource, label, field)


def watch(store: Store, target: Target, request: Request, lost: threading.Event) -> Response:
    """Answer with a stream of changes, which ends at its time-out or when ``lost`` is set."""
    match = _match(target, request)
    stated = request.option("resourceVersion")
    limit = float(request.option("timeoutSeconds") or DEFAULT_WATCH_S)
    with store.lock:
        oldest = store.history[0].version if store.history else store.version
        is_full = store.history.maxlen == len(store.history)
        if is_full and stated not in ("", "0") and int(stated) < oldest - 1:
            message = f"too old resource version: {stated} ({oldest})"
            raise ApiError(410, "Expired", message)
        initial: list[Json] = []
        if stated in ("", "0") or request.is_true("sendInitialEvents"):
            initial = [b for b in store.list(target.resource, target.namespace) if match(b)]
            start = store.version
        else:
            start = int(stated)
    stream = _stream(store, target, request, match, initial, start, limit, lost)
    return Response(200, stream=stream)


def _stream(
    store: Store,
    target: Target,
    request: Request,
    match: selectors.Match,
    initial: list[Json],
    start: int,
    limit: float,
    lost: threading.Event,
) -> Iterator[bytes]:
    def line(kind: str, body: Json) -> bytes:
        shown = table.render(target.resource, [body], "") if wants_table(request) else body
        return json.dumps({"type": kind, "object": shown}).encode() + b"\n"

    ends = time.monotonic() + limit
    for body in initial:
        yield line("ADDED", body)
    asked_all = request.option("resourceVersion") in ("", "0")
    marks = request.is_true("allowWatchBookmarks")
    if request.is_true("sendInitialEvents") or (asked_all and marks):
        yield _bookmark(target, start, initial_end=True)
    marked = time.monotonic()
    while time.monotonic() < ends and not lost.is_set():
        store.wait(start, min(1.0, max(0.0, ends - time.monotonic())))
        with store.lock:
            changes = store.since(start, target.resource)
            start = store.version
        for change in changes:
            if target.namespace and _namespace(change) != target.namespace:
                continue
            event = _event(change, match)
            if event is not None:
                yield line(*event)
        if marks and time.monotonic() - marked > BOOKMARK_EVERY_S:
            marked = time.monotonic()
            yield _bookmark(target, start, initial_end=False)


def _namespace(change: Change) -> str:
    body = change.after or change.before or {}
    return str(body["metadata"].get("namespace", ""))


def _event(change: Change, match: selectors.Match) -> tuple[str, Json] | None:
    was = change.before is not None and match(change.before)
    if change.after is None:
        return ("DELETED", change.before) if was and change.before is not None else None
    now = match(change.after)
    if now:
        return ("MODIFIED" if was else "ADDED"), change.after
    return ("DELETED", change.after) if was else None


def _bookmark(target: Target, version: int, *, initial_end: bool) -> bytes:
    meta: Json = {"resourceVersion": str(version)}
    if initial_end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    body = {
        "kind": target.resource.kind,
        "apiVersion": target.resource.api_version,
        "metadata": meta,
    }
    return json.dumps({"type": "BOOKMARK", "object": body}).encode() + b"\n"
