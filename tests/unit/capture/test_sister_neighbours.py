"""GPUs of others: the copy is kept off them, or refused where it would use them all the same."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sisters import (
    a_container,
    a_deployment,
    a_sister,
    codes,
    pod_spec,
    server_of,
)

from solscope.model.sister import SisterOptions

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def a_node(**labels: str) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {k.replace("__", "/"): v for k, v in labels.items()}},
        "status": {"capacity": {"nvidia.com/gpu": "8"}},
    }


def a_pod_on_it() -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": "chat-1", "namespace": "prod", "labels": {"app": "chat"}},
        "spec": {"nodeName": "n1", "containers": []},
    }


def terms_of(*containers: dict[str, Any], **spec: Any) -> list[dict[str, Any]]:
    affinity = pod_spec(a_sister(a_deployment(*containers, **spec)))["affinity"]
    terms: list[dict[str, Any]] = affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return terms


def test_no_node_with_shared_gpus_is_taken() -> None:
    (term,) = terms_of()
    wanted = {item["key"]: item for item in term["matchExpressions"]}
    sharing = wanted["nvidia.com/gpu.sharing-strategy"]
    # NotIn holds for nodes without the label as well.
    assert (sharing["operator"], sharing["values"]) == ("NotIn", ["time-slicing", "mps"])
    for key in ("nvidia.com/gpu.slices.gi", "cloud.google.com/gke-gpu-sharing-strategy"):
        assert wanted[key] == {"key": key, "operator": "DoesNotExist"}


def test_every_alternative_of_the_target_is_narrowed_and_an_empty_one_stays_empty() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    given = [{"matchExpressions": [zone]}, {}, {"matchFields": [zone]}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": given}}}
    first, empty, third = terms_of(affinity=affinity)
    assert first["matchExpressions"][0] == zone
    assert len(first["matchExpressions"]) == 5
    assert empty == {}
    assert (third["matchFields"], len(third["matchExpressions"])) == ([zone], 4)


@pytest.mark.parametrize(
    "label", ["nvidia.com__gpu.slices.gi", "cloud.google.com__gke-gpu-partition-size"]
)
def test_a_target_on_slices_under_a_plain_name_is_refused(label: str) -> None:
    sister = a_sister(a_deployment(), a_pod_on_it(), a_node(**{label: "1"}))
    assert codes(sister, blocking=True) == ["sister-shared-gpu"]


def privileged(gpus: int) -> dict[str, Any]:
    limits = {"limits": {"nvidia.com/gpu": gpus}}
    return a_container(securityContext={"privileged": True}, resources=limits)


def test_a_privileged_server_would_take_the_gpus_of_others() -> None:
    # No device plugin restricts it: it sees all that its node has.
    sister = a_sister(a_deployment(privileged(2)), a_pod_on_it(), a_node())
    assert codes(sister, blocking=True) == ["sister-sees-every-gpu"]
    allowed = SisterOptions(accept=("privileged",))
    assert not a_sister(a_deployment(privileged(2)), options=allowed).is_refused


def test_a_privileged_server_with_a_node_for_itself_is_copied() -> None:
    assert not a_sister(a_deployment(privileged(8)), a_pod_on_it(), a_node()).is_refused


@pytest.mark.parametrize(("value", "kept"), [("all", False), ("0,1", False), ("void", True)])
def test_a_list_of_devices_is_left_to_the_node(value: str, kept: bool) -> None:
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": value}]
    server = server_of(a_sister(a_deployment(a_container(env=env))))
    assert (env[0] in server.get("env", [])) is kept


def test_a_copy_would_join_the_mps_daemon_of_production() -> None:
    env = [{"name": "CUDA_MPS_PIPE_DIRECTORY", "value": "/tmp/nvidia-mps"}]
    sister = a_sister(a_deployment(a_container(env=env)))
    assert codes(sister, blocking=True) == ["sister-shared-gpu"]
    mount = {"name": "pipe", "mountPath": "/tmp/nvidia-mps"}
    volume = {"name": "pipe", "hostPath": {"path": "/run/nvidia/mps"}}
    target = a_deployment(a_container(volumeMounts=[mount]), volumes=[volume])
    assert codes(a_sister(target), blocking=True) == ["sister-shared-gpu"]
