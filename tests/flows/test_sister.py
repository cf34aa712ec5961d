"""The verb from manifest to files, over our own targets and over other people's real ones."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import corpus
from tests.sisters import a_container, a_deployment, a_plan, an_object, read_manifest

from solscope.capture import planfile
from solscope.capture.sister import assembly, documents, isolation, owners, rules, target
from solscope.errors import UsageError
from solscope.flows import sister as flow
from solscope.flows.world import Outcome, World
from solscope.model.plan import CapturePlan, Strategy, Window
from solscope.model.sister import Sister, SisterKind, SisterOptions

kubernetes_validate = pytest.importorskip("kubernetes_validate")

MANIFESTS = corpus.SHARED / "manifests"
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "sister"
VERSIONS = ("1.29", "1.33", "1.37")


def plan_file(folder: Path, plan: CapturePlan | None = None) -> Path:
    path = folder / "plan.json"
    path.write_bytes(planfile.to_json(plan or a_plan()))
    return path


def manifest(folder: Path, *objects: dict[str, Any]) -> Path:
    path = folder / "manifest.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


def run(
    folder: Path, *objects: dict[str, Any], plan: CapturePlan | None = None, **more: Any
) -> Outcome:
    request = flow.SisterRequest(
        plan=plan_file(folder, plan), file=manifest(folder, *objects), **more
    )
    return flow.run(request, World())


# -- the real manifests ----------------------------------------------------------------------


def real_files() -> list[Path]:
    live = [path for path in sorted(MANIFESTS.glob("live/*.json")) if path.stem != "nodes"]
    return [*sorted(MANIFESTS.glob("*.yaml")), *live]


def real_sisters() -> Iterator[tuple[str, Sister, tuple[Any, ...]]]:
    """Every workload of every file, once as it is and once with a command where none is known."""
    plan = a_plan(gpu_memory_utilization=0.6)
    for path in real_files():
        objects = read_manifest(path.read_text(), where=path.name)
        label = str(path.relative_to(MANIFESTS))
        for wanted in wanted_in(objects):
            chosen = target.choose(objects, wanted=wanted, where=path.name)
            name = f"{label} {chosen.kind}/{chosen.name}"
            made = assembly.build(
                chosen, plan, objects=objects, options=SisterOptions(), plan_digest="0" * 64
            )
            yield name, made, objects
            if [f.code for f in made.findings if f.blocks] == ["sister-entrypoint-unknown"]:
                options = SisterOptions(server_command=("vllm", "serve", "m"))
                yield (
                    f"{name} --server-command",
                    assembly.build(
                        chosen, plan, objects=objects, options=options, plan_digest="0" * 64
                    ),
                    objects,
                )


def wanted_in(objects: tuple[Any, ...]) -> list[str | None]:
    try:
        target.choose(objects)
    except UsageError as error:
        named = error.what.partition(": ")[2].split(", ")
        return list(named)
    return [None]


def test_each_real_workload_gets_a_valid_sister_or_its_reason() -> None:
    corpus.require(MANIFESTS)
    lines = []
    for name, sister, _ in real_sisters():
        for item in sister.objects:
            for version in VERSIONS:
                kubernetes_validate.validate(dict(item), version, strict=True)
        lines.append(f"{name}: " + ("no" if sister.is_refused else f"{sister.objects[-1]['kind']}"))
        lines += [f"  {f.severity.value} {f.code} {f.where}" for f in sister.findings]
        lines += [f"  {change.action.value} {change.path}" for change in sister.changes]
    compare_with_golden("real-workloads.txt", "\n".join(lines) + "\n")


def test_no_selector_of_a_real_folder_matches_the_sister() -> None:
    corpus.require(MANIFESTS)
    matched = 0
    for name, sister, objects in real_sisters():
        if sister.is_refused or sister.proof is None:
            continue
        matched += sum(item.matches_target for item in sister.proof.evidence)
        assert not any(item.matches_sister for item in sister.proof.evidence), name
        # Once more without the proof's own code path: every rule against the written labels.
        labels = sister.objects[-1]["spec"]["template"]["metadata"]["labels"]
        created = isolation.labels_as_created("Job", sister.name, labels)
        for item in objects:
            assert not any(rule.test(created) for rule in rules.rules(item)), name
    assert matched >= 30  # the same rules do match the targets


def test_nothing_of_a_real_secret_reaches_a_sister() -> None:
    corpus.require(MANIFESTS)
    for name, sister, _ in real_sisters():
        text = documents.to_json(sister)
        assert "<secret>" not in text, name
        assert "UkVQTEFDRUQ" not in text, name


def test_a_real_sister_differs_from_its_target_only_where_a_change_says_so() -> None:
    corpus.require(MANIFESTS)
    for path in real_files():
        objects = read_manifest(path.read_text(), where=path.name)
        for wanted in wanted_in(objects):
            chosen = target.choose(objects, wanted=wanted)
            before = copy.deepcopy(chosen.template)
            options = SisterOptions(server_command=("vllm", "serve", "m"))
            made = assembly.build(
                chosen, a_plan(), objects=objects, options=options, plan_digest="0"
            )
            assert chosen.template == before
            if made.objects:
                assert unexplained(before, made) == [], path.name


def unexplained(before: Mapping[str, Any], sister: Sister) -> list[str]:
    old, new = {}, {}
    flatten({"metadata": pick(before), "spec": before["spec"]}, "", old)
    flatten(sister.objects[-1]["spec"]["template"], "", new)
    explained = [change.path for change in sister.changes]
    return [
        path
        for path in {*old, *new}
        if old.get(path) != new.get(path)
        and not any(path == e or path.startswith((f"{e}.", f"{e}[")) for e in explained)
    ]


def pick(template: Mapping[str, Any]) -> dict[str, Any]:
    metadata = template.get("metadata") or {}
    return {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}


def flatten(node: Any, path: str, into: dict[str, Any]) -> None:
    """Leaves by path, list entries by name as changes name them; args belong to the command."""
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            simple = path.endswith(("labels", "annotations", "nodeSelector"))
            here = f"{path}[{key}]" if simple else f"{path}.{key}".lstrip(".")
            flatten(
                value,
                here.removesuffix(".args") + (".command" if here.endswith(".args") else ""),
                into,
            )
    elif isinstance(node, list) and node and isinstance(node[0], Mapping):
        key = (
            "mountPath"
            if path.endswith("volumeMounts")
            else "key"
            if path.endswith("tolerations")
            else "name"
        )
        for index, value in enumerate(node):
            flatten(value, f"{path}[{value.get(key, index)}]", into)
    elif node not in (None, {}, [], False):
        into.setdefault(path, []).append(node)


def compare_with_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("SOLSCOPE_GOLDEN") == "rewrite":
        path.write_text(text)
    assert text == path.read_text()


# -- our own targets -------------------------------------------------------------------------


def test_the_page_tells_answer_changes_proof_and_next_step(tmp_path: Path) -> None:
    service = an_object("Service", "chat", {"selector": {"app": "chat"}})
    plan = a_plan(gpu_memory_utilization=0.6)
    outcome = run(tmp_path, a_deployment(), service, plan=plan, experiment="run-7")
    assert outcome.exit_code == 0
    compare_with_golden("page.txt", outcome.text + "\n")


def test_the_written_manifest_is_the_sister(tmp_path: Path) -> None:
    outcome = run(tmp_path, a_deployment(), output=tmp_path / "out")
    written = list(yaml.safe_load_all((tmp_path / "out" / "sister.yaml").read_text()))
    assert isinstance(outcome.value, Sister)
    assert written == [dict(item) for item in outcome.value.objects]
    record = json.loads((tmp_path / "out" / "sister.json").read_text())
    assert record["schema"] == "solscope.sister/1"
    assert record["proof"]["evidence"][0]["effect"] == "clear"
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "sister.json",
        "sister.txt",
        "sister.yaml",
    ]


def test_a_refusal_exits_with_one_and_writes_nothing(tmp_path: Path) -> None:
    outcome = run(tmp_path, a_deployment(hostNetwork=True), output=tmp_path / "out")
    assert outcome.exit_code == 1
    assert "sister-host-network" in outcome.text
    assert not (tmp_path / "out").exists()


def test_the_same_request_gives_the_same_sister(tmp_path: Path) -> None:
    assert run(tmp_path, a_deployment()).text == run(tmp_path, a_deployment()).text


@pytest.mark.parametrize("kind", list(SisterKind))
@pytest.mark.parametrize("strategy", [Strategy.LAUNCH, Strategy.ATTACH, Strategy.PRELOAD])
@pytest.mark.parametrize("tools", ["init-container", "image-volume", "in-image"])
def test_every_form_of_sister_is_valid_kubernetes(
    tmp_path: Path, kind: SisterKind, strategy: Strategy, tools: Any
) -> None:
    outcome = run(
        tmp_path,
        a_deployment(a_container(), a_container(name="helper", resources=None, command=["x"])),
        plan=a_plan(strategy=strategy, wrapper_arguments=("--mode", "launch")),
        kind=kind.value,
        tools=tools,
        ncu="/opt/ncu",
        sys_admin=True,
        read_only_claims=True,
    )
    assert isinstance(outcome.value, Sister)
    # The field for image volumes is known since 1.31.
    versions = VERSIONS[1:] if tools == "image-volume" else VERSIONS
    for version in versions:
        for item in (*outcome.value.objects, owners.pod_of(outcome.value)):
            kubernetes_validate.validate(dict(item), version, strict=True)


def test_the_harness_runs_instead_of_the_server(tmp_path: Path) -> None:
    script = tmp_path / "op.py"
    script.write_text("print('one operation')\n")
    plan = a_plan(strategy=Strategy.HARNESS)
    outcome = run(tmp_path, a_deployment(a_container(command=None)), plan=plan, harness=script)
    assert isinstance(outcome.value, Sister)
    config, job = outcome.value.objects
    assert config["data"] == {"harness.py": "print('one operation')\n"}
    assert job["spec"]["template"]["spec"]["containers"][0]["args"][0] == "python3"
    for item in outcome.value.objects:
        kubernetes_validate.validate(dict(item), "1.33", strict=True)


def test_a_file_with_windows_line_ends_gives_the_same_sister(tmp_path: Path) -> None:
    unix = run(tmp_path, a_deployment())
    path = tmp_path / "manifest.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    request = flow.SisterRequest(plan=tmp_path / "plan.json", file=path)
    assert flow.run(request, World()).text == unix.text


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("kind: Deployment\nspec:\n\tx: 1\n", ":3:", "not valid YAML"),
        ("a: [1\nb: 2\n", ":2:", "not valid YAML"),
        ("- 1\n- 2\n", "", "is no Kubernetes object"),
        ("replicaCount: 1\n", "", "is no Kubernetes object"),
        ("", "", "no Kubernetes object"),
    ],
)
def test_a_manifest_that_is_none_is_refused_with_its_line(
    tmp_path: Path, text: str, where: str, what: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    request = flow.SisterRequest(plan=plan_file(tmp_path), file=path)
    with pytest.raises(UsageError, match=what) as caught:
        flow.run(request, World())
    assert str(caught.value).startswith(f"{path}{where}")


def test_several_gpu_containers_are_asked_about(tmp_path: Path) -> None:
    pod = a_deployment(a_container(), a_container(name="second"))
    with pytest.raises(UsageError, match="several containers ask for GPUs: server, second"):
        run(tmp_path, pod)
    assert run(tmp_path, pod, container="second").exit_code == 0


def test_several_workloads_are_asked_about(tmp_path: Path) -> None:
    other = a_deployment()
    other["metadata"]["name"] = "other"
    with pytest.raises(UsageError, match="Deployment/chat, Deployment/other"):
        run(tmp_path, a_deployment(), other)
    chosen = run(tmp_path, a_deployment(), other, workload="deploy/other")
    assert isinstance(chosen.value, Sister)
    assert chosen.value.target == "Deployment/other -n prod"


def test_a_manifest_of_thousands_of_lines_takes_under_a_second(tmp_path: Path) -> None:
    import time

    services = [
        an_object("Service", f"s{i}", {"selector": {"app": f"a{i}"}, "ports": [{"port": i + 1}]})
        for i in range(300)
    ]
    path = manifest(tmp_path, a_deployment(), *services)
    assert len(path.read_text().splitlines()) > 3000
    request = flow.SisterRequest(plan=plan_file(tmp_path), file=path)
    begun = time.monotonic()
    flow.run(request, World())
    assert time.monotonic() - begun < 1.0


def test_an_old_vllm_cannot_open_the_window(tmp_path: Path) -> None:
    plan = a_plan(window=Window.ENGINE_PROFILER)
    old = a_deployment(a_container(image="vllm/vllm-openai:v0.11.0"))
    assert "sister-window-never-opens" in run(tmp_path, old, plan=plan).text
    assert run(tmp_path, a_deployment(), plan=plan).exit_code == 0


def test_an_engine_without_a_profiler_endpoint_is_refused_that_window(tmp_path: Path) -> None:
    command = ["trtllm-serve", "serve", "m", "--port", "8000"]
    trt = a_deployment(a_container(image="example.com/tensorrt-llm:1.2", command=command))
    refused = run(tmp_path, trt, plan=a_plan(window=Window.ENGINE_PROFILER))
    assert "TensorRT-LLM's server has no endpoint" in refused.text
    assert "--nvtx RANGE" in refused.text
    made = run(tmp_path, trt, plan=a_plan(window=Window.LAUNCH_SKIP))
    assert made.exit_code == 0
    assert isinstance(made.value, Sister)
    assert made.value.engine == "tensorrt-llm"
