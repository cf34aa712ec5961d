"""Whatever a manifest holds, the answer is a sister, a reason, or an error with a next step."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from tests import corpus
from tests.sisters import a_container, a_deployment, a_plan, an_object, read_manifest

from solscope.capture.sister import assembly, documents, target
from solscope.errors import SolscopeError
from solscope.model.sister import SisterOptions

JUNK: tuple[Any, ...] = (None, "", "x", 0, 1.5, True, [], {}, [None], [{}], {"a": None}, ["x"])


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(node, dict):
        for key, value in node.items():
            found += places(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            found += places(value, (*path, index))
    return found


def mutated(objects: list[Any], rng: random.Random) -> list[Any]:
    changed = copy.deepcopy(objects)
    for _ in range(rng.randint(1, 3)):
        *above, last = rng.choice([path for path in places(changed) if len(path) > 1])
        node: Any = changed
        for key in above:
            try:
                node = node[key]
            except (KeyError, IndexError, TypeError):
                break
        else:
            if isinstance(node, dict | list) and rng.random() < 0.2:
                try:
                    del node[last]
                except (KeyError, IndexError, TypeError):
                    continue
            elif isinstance(node, dict) or (isinstance(node, list) and last in range(len(node))):
                node[last] = copy.deepcopy(rng.choice(JUNK))
    return changed


def attempt(objects: list[Any]) -> None:
    text = documents.write(objects, comment="mutated")
    try:
        read = read_manifest(text, where="mutated.yaml")
        chosen = target.choose(read)
        assembly.build(chosen, a_plan(), objects=read, options=SisterOptions(), plan_digest="0")
    except SolscopeError:
        return


SEEDS = [
    a_deployment(a_container(), a_container(name="helper", resources=None)),
    an_object("Service", "chat", {"selector": {"app": "chat"}}),
    an_object(
        "NetworkPolicy",
        "n",
        {"podSelector": {}, "egress": [{"to": [{"podSelector": {"matchLabels": {"a": "b"}}}]}]},
    ),
    an_object("PodDisruptionBudget", "p", {"selector": {"matchExpressions": [{"key": "a"}]}}),
    an_object("PersistentVolumeClaim", "w", {"accessModes": ["ReadWriteOnce"]}),
]


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_manifest_never_crashes(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        attempt(mutated(SEEDS, rng))


def test_damaged_real_manifests_never_crash() -> None:
    folder = corpus.require(corpus.SHARED / "manifests")
    rng = random.Random(7)
    for path in sorted(folder.glob("*.yaml")):
        objects = [dict(item) for item in read_manifest(path.read_text(), where=path.name)]
        for _ in range(15):
            attempt(mutated(objects, rng))
