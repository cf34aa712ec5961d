"""A manifest of the wrong shape is refused as it is read, with the path of the fault."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.sisters import a_container, a_deployment, an_object, read_manifest

from solscope.errors import UsageError


@pytest.mark.parametrize(
    ("item", "what"),
    [
        (
            a_deployment(a_container(command="vllm serve m")),
            "m.yaml: Deployment/chat: spec.template.spec.containers[0].command must be a list",
        ),
        (
            a_deployment(a_container(env={"A": "1"})),
            "m.yaml: Deployment/chat: spec.template.spec.containers[0].env must be a list of obj",
        ),
        (
            a_deployment({"image": "x"}),
            "m.yaml: Deployment/chat: spec.template.spec.containers[0].name is nothing, not a text",
        ),
        (
            an_object("Service", "s", {"selector": ["app"]}),
            "m.yaml: Service/s: spec.selector must be an object",
        ),
        (
            an_object("Any", "s", {}) | {"metadata": []},
            "m.yaml: Any: metadata is a list, not a mapping",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_named_by_its_path(item: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_manifest(yaml.safe_dump(item), where="m.yaml")
    assert str(caught.value).startswith(what)


def test_an_empty_value_is_as_good_as_none() -> None:
    item = a_deployment(a_container())
    item["spec"]["template"]["spec"] |= {"volumes": None, "affinity": None}
    item["spec"]["template"]["spec"]["containers"][0] |= {"env": None, "resources": None}
    assert read_manifest(yaml.safe_dump(item), where="m.yaml") == (item,)


def test_operators_kinds_keep_their_own_shapes() -> None:
    item = an_object("Gadget", "g", {"env": {"A": "1"}, "command": "run"})
    assert read_manifest(yaml.safe_dump(item), where="m.yaml") == (item,)


def test_a_list_object_is_taken_apart() -> None:
    both = {"apiVersion": "v1", "kind": "List", "items": [a_deployment(), a_deployment()]}
    assert len(read_manifest(yaml.safe_dump(both), where="m.yaml")) == 2
