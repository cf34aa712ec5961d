"""The server's answers against recorded answers of a real API server (read, never copied)."""

from __future__ import annotations

import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import conftest, tools
from tests.cluster.fixture import Cluster
from tests.cluster.server.status import Json
from tests.corpus import SHARED, require

GOLDEN = SHARED / "reference" / "kubernetes-golden"
# The order in which they were recorded: later groups use the objects of earlier ones.
GROUPS = (
    "node",
    "deployment",
    "ssa",
    "pod",
    "ephemeral",
    "podsecurity",
    "quota",
    "job",
    "rbac",
    "watch",
    "kubelet",
    "delete",
)
COMPARED = ("status", "reason", "code")


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    require(GOLDEN)
    conftest.require(tools.missing_for_api())
    with Cluster(with_node=False) as running:
        for name in ("dev", "viewer"):
            running.add_user(name)
        yield running
        assert not running.controllers.faults


def exchanges(group: str) -> list[Json]:
    path = GOLDEN / f"{group}.json"
    return list(json.loads(path.read_text())) if path.exists() else []


def ask(server: Cluster, request: Json) -> tuple[int, Any, list[str]]:
    """Send a recorded request; gives the code, the parsed body and the warnings."""
    body = request.get("body")
    if body is None:
        data = None
    else:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    headers = {"Accept": request.get("accept", "application/json")}
    headers["Authorization"] = f"Bearer {request.get('user', 'nobody')}"
    if request.get("content_type"):
        headers["Content-Type"] = request["content_type"]
    url = server.url + request["path"]
    sent = urllib.request.Request(url, data, headers, method=request["method"])
    context = ssl.create_default_context(cafile=str(server.certificate))
    try:
        with urllib.request.urlopen(sent, context=context, timeout=60) as answer:
            return answer.status, _parse(answer.read()), answer.headers.get_all("Warning") or []
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, _parse(refusal.read()), []


def _parse(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return [json.loads(line) for line in raw.splitlines()]


def plain(text: str) -> str:
    """A message without what differs between runs, and without Go's dump of a struct."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UID", text)
    text = re.sub(r"sister-[a-z0-9]{9,10}(-[a-z0-9]{5})?", "sister-X", text)
    return re.sub(r"\n@@.*?(?=(\n, spec|$))", "", text, flags=re.DOTALL).rstrip("\n")


def refreshed(server: Cluster, exchange: Json) -> Json:
    """The request with the uid of this run's object where it repeats the recorded one."""
    request = dict(exchange["request"])
    body = request.get("body")
    if request["method"] == "PUT" and isinstance(body, dict):
        _, now, _ = ask(server, {**request, "method": "GET", "body": None})
        body = json.loads(json.dumps(body))
        body["metadata"]["uid"] = now["metadata"]["uid"]
        if body["metadata"].get("resourceVersion") not in (None, "1"):
            body["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"]
        request["body"] = body
    return request


def faults(group: str, exchange: Json, code: int, body: Any, warnings: list[str]) -> list[str]:
    """What differs between an answer and the recorded one."""
    wanted = exchange["response"]
    told = []
    if code != wanted["status"]:
        told.append(f"HTTP {code}, recorded {wanted['status']}: {json.dumps(body)[:300]}")
        return told
    recorded = wanted.get("body")
    if isinstance(recorded, dict) and recorded.get("kind") == "Status":
        told += [
            f"{f}: {body.get(f)!r}, recorded {recorded.get(f)!r}"
            for f in COMPARED
            if body.get(f) != recorded.get(f)
        ]
        mine, theirs = plain(body.get("message", "")), plain(recorded.get("message", ""))
        if mine != theirs:
            told.append(f"message: {mine!r}\n    recorded {theirs!r}")
        if details(body) != details(recorded):
            told.append(f"details: {details(body)}\n    recorded {details(recorded)}")
    elif isinstance(recorded, dict) and body.get("kind") != recorded.get("kind"):
        told.append(f"kind: {body.get('kind')}, recorded {recorded.get('kind')}")
    if sorted(warnings) != sorted(wanted.get("warnings") or []):
        told.append(f"warnings: {warnings}, recorded {wanted.get('warnings')}")
    return told


def details(body: Json) -> Json:
    """A refusal's details, their messages and uids made comparable."""
    found = dict(body.get("details") or {})
    causes = found.get("causes") or []
    found["causes"] = [{**cause, "message": plain(cause["message"])} for cause in causes]
    return {**found, "uid": "UID"} if "uid" in found else found


# Asked again where controllers must first act on the request before.
AWAITED = ("deployment status", "events", "gone", "replicasets", "pods of job")
SETTLED_WITHIN_S = 60.0


@pytest.mark.parametrize("group", GROUPS)
def test_answers_are_the_recorded_ones(server: Cluster, group: str) -> None:
    told = []
    for exchange in exchanges(group):
        answer = ask(server, refreshed(server, exchange))
        ends = time.monotonic() + SETTLED_WITHIN_S
        while exchange["name"].startswith(AWAITED) and time.monotonic() < ends:
            if not faults(group, exchange, *answer):
                break
            time.sleep(0.1)
            answer = ask(server, refreshed(server, exchange))
        if group == "watch" and isinstance(exchange["response"]["body"], list):
            told += watch_faults(exchange, answer)
            continue
        told += [f"{exchange['name']}: {f}" for f in faults(group, exchange, *answer)]
    assert not told, "\n" + "\n".join(told)


def watch_faults(exchange: Json, answer: tuple[int, Any, list[str]]) -> list[str]:
    code, events, _ = answer
    if code != 200 or not isinstance(events, list):
        events = [events]
    kinds = [e["type"] for e in events]
    first, last = exchange["response"]["body"][0], exchange["response"]["body"][-1]
    told = []
    if kinds[0] != first["type"]:
        told.append(f"{exchange['name']}: begins with {kinds[0]}")
    theirs = last["object"]["metadata"].get("annotations")
    mine = events[-1]["object"]["metadata"].get("annotations")
    if last["type"] == "BOOKMARK" and (kinds[-1], mine) != ("BOOKMARK", theirs):
        told.append(f"{exchange['name']}: ends with {kinds[-1]} {mine}")
    return told


def conditions(body: Json) -> dict[str, tuple[str, str, str]]:
    entries = (body.get("status") or {}).get("conditions") or []
    return {c["type"]: (c["status"], c["reason"], plain(c["message"])) for c in entries}


@pytest.mark.parametrize(
    ("group", "namespace"),
    [("quota", "quota"), ("podsecurity", "ps-baseline"), ("podsecurity", "ps-restricted")],
)
def test_a_refused_deployment_tells_it_in_conditions_and_events(
    server: Cluster, group: str, namespace: str
) -> None:
    words = namespace.removeprefix("ps-")
    named = {e["name"]: e for e in exchanges(group)}
    status = named["deployment status" if group == "quota" else f"deployment status in {words}"]
    _, mine, _ = ask(server, status["request"])
    ours, theirs = conditions(mine), conditions(status["response"]["body"])
    assert ours["ReplicaFailure"] == theirs["ReplicaFailure"]
    assert ours["Available"] == theirs["Available"]
    events = named["events" if group == "quota" else f"events in {words}"]
    _, listed, _ = ask(server, events["request"])
    recorded = events["response"]["body"]["items"][0]
    made = [e for e in listed["items"] if e["reason"] == "FailedCreate"]
    assert {plain(e["message"]) for e in made} == {plain(recorded["message"])}
    assert made[0]["involvedObject"]["kind"] == recorded["involvedObject"]["kind"]


def spec_faults(mine: Any, theirs: Any, path: str = "") -> list[str]:
    if isinstance(theirs, dict) and isinstance(mine, dict):
        names = sorted(set(mine) | set(theirs))
        return [f for n in names for f in spec_faults(mine.get(n), theirs.get(n), f"{path}.{n}")]
    if isinstance(theirs, list) and isinstance(mine, list) and len(mine) == len(theirs):
        pairs = enumerate(zip(mine, theirs, strict=True))
        return [f for i, (a, b) in pairs for f in spec_faults(a, b, f"{path}[{i}]")]
    same = mine == theirs or "kube-api-access" in str(theirs)
    return [] if same else [f"{path}: {mine!r}, recorded {theirs!r}"]


@pytest.mark.parametrize("name", ["create", "dry run"])
def test_a_deployment_gets_the_recorded_defaults(bare: Cluster, name: str) -> None:
    require(GOLDEN)
    exchange = next(e for e in exchanges("deployment") if e["name"] == name)
    _, body, _ = ask(bare, exchange["request"])
    assert not spec_faults(body["spec"], exchange["response"]["body"]["spec"])


@pytest.mark.parametrize("name", ["create", "native sidecar"])
def test_a_pod_gets_the_recorded_defaults_and_injections(bare: Cluster, name: str) -> None:
    require(GOLDEN)
    exchange = next(e for e in exchanges("pod") if e["name"] == name)
    _, body, _ = ask(bare, exchange["request"])
    assert not spec_faults(body["spec"], exchange["response"]["body"]["spec"])


def test_discovery_describes_kinds_as_recorded(bare: Cluster) -> None:
    require(GOLDEN)
    named = {e["name"]: e for e in exchanges("discovery")}
    kept = ("name", "kind", "namespaced", "group", "version", "shortNames")
    for name in ("apps/v1", "core v1 resources"):
        _, body, _ = ask(bare, named[name]["request"])
        recorded = {r["name"]: r for r in named[name]["response"]["body"]["resources"]}
        for entry in body["resources"]:
            theirs = recorded[entry["name"]]
            assert {k: entry.get(k) for k in kept} == {k: theirs.get(k) for k in kept}


def test_the_folder_of_recorded_answers_is_found() -> None:
    assert isinstance(require(GOLDEN), Path)
