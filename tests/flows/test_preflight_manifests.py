"""Real deployments: every published manifest, and the same as an API server returned them.

The golden pages hold our own words only: the answer and each finding's severity, code and fact.
SOLSCOPE_REWRITE_GOLDEN=1 rewrites them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.corpus import SHARED, require
from tests.workloads import NOW

from solscope.flows import preflight
from solscope.flows.preflight import PreflightRequest
from solscope.flows.world import World
from solscope.model.preflight import Answer, Preflight

MANIFESTS = SHARED / "manifests"
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "preflight"
WORLD = World(now=lambda: NOW)
PUBLISHED = {
    "aibrix-pd-stormservice": "refused",
    "aibrix-quickstart": "launch",
    "dynamo-agg": "refused",
    "gke-gemma3-27b": "launch",
    "gke-inference-gateway": "launch",
    "kserve-llmisvc": "undetermined",
    "kserve-vllm-runtime": "undetermined",
    "kubernetes-examples-vllm": "launch",
    "llm-d-modelservice-pd": "launch",
    "lws-sglang": "refused",
    "lws-vllm-ray": "refused",
    "nim-kserve": "undetermined",
    "openshift-vllm": "launch",
    "production-stack-basic": "launch",
    "production-stack-disagg-prefill": "undetermined",
    "production-stack-ray": "refused",
    "sglang-deployment": "launch",
    "vllm-docs-amd": "refused",
    "vllm-docs-nvidia": "launch",
    "vllm-observability-tp4": "harness",
}
LIVE = (
    "aibrix-quickstart", "gke-gemma3-27b", "gke-inference-gateway", "kubernetes-examples-vllm",
    "llm-d-modelservice-pd", "openshift-vllm", "production-stack-basic", "sglang-deployment",
    "vllm-docs-nvidia", "vllm-observability-tp4",
)  # fmt: skip


def answers(*files: Path) -> tuple[Preflight, ...]:
    names = tuple(str(require(path)) for path in files)
    value = preflight.run(PreflightRequest(filename=names), WORLD).value
    found = value if isinstance(value, tuple) else (value,)
    return tuple(item for item in found if isinstance(item, Preflight))


def live(name: str) -> tuple[Preflight, ...]:
    folder = MANIFESTS / "live"
    return answers(folder / f"{name}.json", folder / "nodes.json")


def page(found: tuple[Preflight, ...]) -> str:
    lines: list[str] = []
    for answer in found:
        lines += [answer.snapshot.kind, f"  {answer.line}"]
        lines += [f"  {f.severity:<7} {f.code}: {f.fact}" for f in answer.findings]
    return "\n".join(lines) + "\n"


def compare_with_golden(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("SOLSCOPE_REWRITE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


def test_no_manifest_is_left_out() -> None:
    require(MANIFESTS)
    assert {path.stem for path in MANIFESTS.glob("*.yaml")} == set(PUBLISHED)
    there = {path.stem for path in (MANIFESTS / "live").glob("*.json")}
    assert there - {"nodes"} == set(LIVE)


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_published_manifest_has_its_stated_answer(name: str) -> None:
    for answer in answers(MANIFESTS / f"{name}.yaml"):
        assert answer.line.startswith(PUBLISHED[name])
        assert (answer.exit_code == 0) is (answer.answer is Answer.POSSIBLE)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_findings_of_each_published_manifest_are_as_reviewed(name: str) -> None:
    compare_with_golden(name, page(answers(MANIFESTS / f"{name}.yaml")))


@pytest.mark.parametrize("name", LIVE)
def test_the_findings_of_each_live_workload_are_as_reviewed(name: str) -> None:
    compare_with_golden(f"live-{name}", page(live(name)))


@pytest.mark.parametrize("name", LIVE)
def test_live_objects_and_manifest_tell_the_same_server(name: str) -> None:
    published = {a.snapshot.name: a.snapshot.engine for a in answers(MANIFESTS / f"{name}.yaml")}
    for answer in live(name):
        engine = answer.snapshot.engine
        assert engine is not None
        assert engine == published[answer.snapshot.name]


def argument(name: str, field: str) -> object:
    (answer,) = answers(MANIFESTS / f"{name}.yaml")
    return getattr(answer.snapshot.engine, field)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("vllm-docs-nvidia", "max_num_batched_tokens", 1024),
        ("gke-gemma3-27b", "model", "google/gemma-3-27b-it"),
        ("gke-gemma3-27b", "max_num_seqs", 4),
        ("vllm-observability-tp4", "tensor_parallel", 4),
        ("vllm-observability-tp4", "prefix_caching", True),
        ("production-stack-basic", "prefix_caching", False),
        ("production-stack-basic", "dtype", "bfloat16"),
        ("lws-vllm-ray", "pipeline_parallel", 2),
        ("lws-sglang", "tensor_parallel", 2),
        ("aibrix-pd-stormservice", "kv_transfer", "NixlConnector"),
        ("dynamo-agg", "model", "Qwen/Qwen3-0.6B"),
        ("openshift-vllm", "max_model_len", 6144),
        ("kserve-llmisvc", "port", 8000),
        ("sglang-deployment", "engine", "sglang"),
    ],
)
def test_arguments_are_read_out_of_real_manifests(name: str, field: str, value: object) -> None:
    assert argument(name, field) == value


def test_a_memory_fraction_keeps_where_it_is_from() -> None:
    (answer,) = answers(MANIFESTS / "gke-gemma3-27b.yaml")
    assert answer.snapshot.engine is not None
    fact = answer.snapshot.engine.memory_fraction
    assert (fact.value, fact.source) == (0.95, "--gpu-memory-utilization")
