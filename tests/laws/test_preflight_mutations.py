"""A file with anything wrong in it is refused with a place, or answered; it never crashes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workloads import (
    NOW,
    container,
    deployment,
    namespace,
    node,
    replica_set,
    running,
)

from solscope.capture import engine, preflight, snapshot
from solscope.errors import UsageError
from solscope.render import preflight as page

MADE = deployment(
    container(
        env=[
            {"name": "A", "value": "b"},
            {"name": "T", "valueFrom": {"secretKeyRef": {"name": "s"}}},
        ],
        livenessProbe={"httpGet": {"path": "/health"}, "periodSeconds": 5},
        securityContext={"capabilities": {"add": ["X"]}, "runAsNonRoot": True},
        volumeMounts=[{"name": "v", "mountPath": "/m"}],
    ),
    volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100"},
)  # fmt: skip
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "serving"},
    "status": {"hard": {"requests.nvidia.com/gpu": "4"}, "used": {"requests.nvidia.com/gpu": "1"}},
}
SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h", "namespace": "serving"},
    "spec": {
        "scaleTargetRef": {"kind": "Deployment", "name": "chat"},
        "metrics": [{"type": "Pods", "pods": {"metric": {"name": "waiting"}}}],
    },
}
OBJECTS = [MADE, replica_set(MADE), running(MADE), node(), namespace("baseline"), QUOTA, SCALER]
JUNK = st.sampled_from(
    [None, "x", 3, True, [], {}, [None], ["x"], {"a": 1}, -1.5, "{{ .X }}", [{}], "", "1e400"]
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    if isinstance(value, dict | list):
        for key, inner in items:
            yield from (
                paths(inner, (*path, key)) if isinstance(inner, dict | list) else [(*path, key)]
            )


PATHS = sorted({p for p in paths(OBJECTS) if len(p) > 1}, key=str)


@settings(max_examples=300, deadline=None)
@given(changes=st.lists(st.tuples(st.sampled_from(PATHS), JUNK), min_size=1, max_size=3))
def test_any_fault_in_a_file_is_refused_or_answered(changes: list[tuple[Any, Any]]) -> None:
    objects: Any = copy.deepcopy(OBJECTS)
    for path, junk in changes:
        inner = objects
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = copy.deepcopy(junk)
        except (TypeError, KeyError, IndexError):
            continue
    try:
        read = snapshot.read_objects(json.dumps({"kind": "List", "items": objects}), "f")
        found = snapshot.from_objects(
            read,
            target=None,
            container=None,
            namespace=None,
            source="f",
            now=NOW,
            recognises=engine.recognises,
        )
    except UsageError:
        return
    for item in found:
        answer = preflight.examine(item)
        assert page.as_text(answer)
        assert json.dumps(page.as_data(answer))
