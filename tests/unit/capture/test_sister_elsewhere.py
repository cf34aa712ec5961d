"""Options that would join the copy to others, where they cannot be taken out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sisters import a_container, a_deployment, a_sister, codes

FILE = "/etc/vllm/serve.yaml"


def from_file(text: str | None, **mount: Any) -> list[dict[str, Any]]:
    """A server whose options lie in a mounted file, and its ConfigMap where ``text`` is given."""
    container = a_container(
        command=["vllm", "serve", "m", "--config", FILE],
        volumeMounts=[{"name": "options", "mountPath": "/etc/vllm", **mount}],
    )
    volume = {"name": "options", "configMap": {"name": "vllm-options"}}
    target = a_deployment(container, volumes=[volume])
    if text is None:
        return [target]
    metadata = {"name": "vllm-options", "namespace": "prod"}
    data = {"serve.yaml": text}
    return [target, {"kind": "ConfigMap", "metadata": metadata, "data": data}]


@pytest.mark.parametrize(
    "value",
    [
        '--kv-transfer-config {"kv_connector":"NixlConnector"}',
        "--max-model-len 8192 --data_parallel_address=10.0.0.1",
        "--api-key=abc",
    ],
)
def test_a_variable_that_holds_a_joining_option_refuses(value: str) -> None:
    env = [{"name": "MORE", "value": value}]
    container = a_container(command=["sh", "-c"], args=["exec vllm serve m $MORE"], env=env)
    assert "sister-options-hidden" in codes(a_sister(a_deployment(container)), blocking=True)


def test_a_variable_with_other_options_is_fine() -> None:
    env = [{"name": "MORE", "value": "--max-model-len 8192 --kv-cache-dtype fp8"}]
    assert not a_sister(a_deployment(a_container(env=env))).is_refused


def test_a_variable_of_a_config_map_counts() -> None:
    container = a_container(envFrom=[{"configMapRef": {"name": "more"}}])
    data = {"MORE": "--headless --node-rank 1"}
    config = {"kind": "ConfigMap", "metadata": {"name": "more"}, "data": data}
    sister = a_sister(a_deployment(container), config)
    assert set(codes(sister, blocking=True)) == {"sister-options-hidden"}


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('model: m\nkv-transfer-config: \'{"kv_connector": "P2pNcclConnector"}\'\n', True),
        ("data_parallel_address: 10.0.0.1\n", True),
        ("nnodes: 1\nmax-model-len: 8192\n", False),
        ("# kv-transfer-config: none\nseed: 1\n", False),
    ],
)
def test_a_file_of_options_is_read_in_its_config_map(text: str, refused: bool) -> None:
    sister = a_sister(*from_file(text))
    assert ("sister-options-hidden" in codes(sister)) is refused
    assert "sister-options-unseen" not in codes(sister)


def test_a_file_mounted_by_itself_is_read_too() -> None:
    mounted = from_file("headless: true\n", mountPath=FILE, subPath="serve.yaml")
    assert "sister-options-hidden" in codes(a_sister(*mounted), blocking=True)


def test_a_file_that_was_not_seen_is_said() -> None:
    sister = a_sister(*from_file(None))
    assert "sister-options-unseen" in codes(sister)
    assert not sister.is_refused


@pytest.mark.parametrize(
    "arguments",
    [
        ("-dpa", "10.0.0.1"),
        ("-dpn", "1"),
        ("--data-parallel-rank=0",),
        ("--data-parallel-hybrid-lb",),
        ("-n", "2", "-r", "1"),
    ],
)
def test_one_server_of_a_group_is_recognised_by_its_short_options(
    arguments: tuple[str, ...],
) -> None:
    container = a_container(command=["vllm", "serve", "m", *arguments])
    assert set(codes(a_sister(a_deployment(container)), blocking=True)) == {"sister-group"}


@pytest.mark.parametrize("arguments", [("-dp", "2"), ("-n", "1", "-r", "0"), ("-tp", "2")])
def test_a_server_of_one_node_is_copied(arguments: tuple[str, ...]) -> None:
    container = a_container(command=["vllm", "serve", "m", *arguments])
    assert not a_sister(a_deployment(container)).is_refused


def started_by(script: str, **env: str) -> list[str]:
    entries = [{"name": name, "value": value} for name, value in env.items()]
    container = a_container(command=["bash", "-c"], args=[script], env=entries)
    return codes(a_sister(a_deployment(container)))


@pytest.mark.parametrize(
    "script",
    [
        "ARGS='--kv-transfer-config x'; exec vllm serve m $ARGS",
        'args=(--seed 1 --headless)\nvllm serve m "${args[@]}"',
    ],
)
def test_an_option_that_the_script_puts_together_refuses(script: str) -> None:
    assert "sister-options-hidden" in started_by(script)


def test_keys_of_other_commands_in_the_script_are_theirs() -> None:
    assert "sister-options-hidden" not in started_by("router --api-key $K & exec vllm serve m")


@pytest.mark.parametrize(
    ("script", "unseen"),
    [
        ("exec vllm serve m $(cat /etc/vllm/args)", True),
        ("exec vllm serve m $EXTRA_ARGS", True),
        ('exec vllm serve m "$(VLLM_OPTS)"', True),
        ("exec vllm serve m --chat-template $(cat /etc/template)", False),
        ("exec vllm serve $MODEL --seed $SEED", False),
        ('args=(--seed 1)\nexec vllm serve m "${args[@]}"', False),
        ("EXTRA_ARGS='--seed 1'; exec vllm serve m $EXTRA_ARGS", False),
    ],
)
def test_options_that_only_the_container_knows_are_said(script: str, unseen: bool) -> None:
    assert ("sister-options-unseen" in started_by(script)) is unseen
    assert "sister-options-unseen" not in started_by(script, EXTRA_ARGS="", VLLM_OPTS="") or (
        "cat" in script
    )
