"""What people really met: facts of the shared cases in, the expected diagnosis out.

Each row turns a case's files into what a preflight would have read: a pod, a node, answers from
inside the container. Logs of failed captures are another verb's input and are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pytest
from tests.corpus import SHARED, require
from tests.workloads import (
    SERVE,
    container,
    deployment,
    labelled_node,
    namespace,
    node,
    running,
    taken,
)

from solscope.capture import preflight
from solscope.model.preflight import Answer, Preflight
from solscope.render import preflight as page

Files = Mapping[str, str]
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.compute.major": "8"}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What preflight would have read of a case."""

    made: dict[str, Any] = field(default_factory=deployment)
    node: dict[str, Any] = field(default_factory=node)
    texts: dict[str, str] | None = None
    others: tuple[dict[str, Any], ...] = ()
    pod: dict[str, Any] = field(default_factory=dict)
    on_node: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def cases() -> dict[str, dict[str, Any]]:
    loaded = json.loads(require(SHARED / "cases" / "cases.json").read_text())
    return {case["id"]: case for case in (loaded if isinstance(loaded, list) else loaded["cases"])}


def env_of(text: str) -> dict[str, Any]:
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    variables = [{"name": name, "value": value} for name, _, value in pairs]
    return deployment(container(env=variables))


def on_product(product: str, capability: str) -> dict[str, Any]:
    major, _, minor = capability.partition(".")
    return labelled_node(
        {
            "nvidia.com/gpu.product": product,
            "nvidia.com/gpu.compute.major": major,
            "nvidia.com/gpu.compute.minor": minor,
        }
    )


def _perm_02(files: Files) -> Seen:
    name = json.loads(files["pod.json"])["spec"]["nodeName"]
    return Seen(
        node={**node(name)},
        pod={"spec": {"nodeName": name}},
        texts={"params": files[f"{name}/params"]},
    )


def _k8s_06(files: Files) -> Seen:
    spec = json.loads(files["spec.json"])
    variables = [
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": files["env"].partition("=")[2].strip()}
    ]
    return Seen(made=deployment(container(env=variables, **spec)), texts={"arch": "x86_64"})


def _init_02(files: Files) -> Seen:
    facts = json.loads(files["facts.json"])
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-L4",
        "nvidia.com/cuda.driver-version.full": facts["driver"],
        "nvidia.com/cuda.runtime-version.full": facts["cuda_driver"],
    }
    texts = {"which": "/usr/bin/ncu", "ncu_version": f"Nsight Compute\nVersion {facts['ncu']}.0"}
    return Seen(node=labelled_node(labels), texts=texts, on_node=tuple(facts["containers"]))


def _nokern_07(files: Files) -> Seen:
    texts = {"ncu_chips": files["list-chips.txt"], "which": "/usr/bin/ncu"}
    return Seen(node=on_product("NVIDIA-B200", "10.0"), texts=texts)


def _k8s_10(files: Files) -> Seen:
    texts = {"which": "/usr/bin/sh", "arch": files["arch"]}
    return Seen(node=on_product(files["gpu.txt"].strip().replace(" ", "-"), "10.0"), texts=texts)


def _conf_01(files: Files) -> Seen:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "dcgm"},
        "data": {"counters.csv": files["counters.csv"]},
    }
    return Seen(node=labelled_node(A100), others=(config,))


def _k8s_08(files: Files) -> Seen:
    probe = json.loads(files["pod.json"])["spec"]["containers"][0]["livenessProbe"]
    reason, _, text = files["events.txt"].splitlines()[0].removeprefix("Warning ").partition(" ")
    return Seen(made=deployment(container(livenessProbe=probe)), others=(event(reason, text),))


def event(reason: str, message: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "serving"},
        "reason": reason,
        "message": message,
        "involvedObject": {"kind": "Pod", "name": "chat-1"},
    }


def _k8s_14(files: Files) -> Seen:
    return Seen(others=(event("Pulling", files["events.txt"].partition("kubelet ")[2]),))


def _k8s_04(files: Files) -> Seen:
    debugger = json.loads(files["ec.json"])
    return Seen(pod={"spec": {"ephemeralContainers": [debugger]}}, texts={"yama": files["yama"]})


def _mem_01(files: Files) -> Seen:
    used = files["smi.csv"].splitlines()[1].split()[0]
    smi = f"NVIDIA GeForce RTX 3090, 550.1, 24576, {used}, N/A, 8.6"
    return Seen(texts={"memory_max": files["memory.max"], "smi": smi})


def _mem_06(files: Files) -> Seen:
    total, free = (part.split()[0] for part in files["smi.csv"].splitlines()[1].split(","))
    words = files["args.txt"].split()
    smi = f"NVIDIA B200, 580.1, {total}, {int(total) - int(free)}, Disabled, 10.0"
    return Seen(made=deployment(container(command=[*SERVE, *words])), texts={"smi": smi})


def _init_11(files: Files) -> Seen:
    labels = {"nvidia.com/gpu.product": "NVIDIA-GB300", "nvidia.com/gpu.compute.minor": "3",
              "nvidia.com/gpu.compute.major": "10"}  # fmt: skip
    texts = {"environ": "CUDA_VERSION=12.9.0", "params": files["params"]}
    return Seen(node=labelled_node(labels), texts=texts)


def _conf_04(files: Files) -> Seen:
    rows = "\n".join(files["smi.csv"].splitlines()[1:])
    return Seen(texts={"smi_apps": rows, "processes": "1 (vllm) S 0 1"})


def _conf_09(files: Files) -> Seen:
    path = next(w for w in files["ncu.log"].split() if w.endswith(".so.")).rstrip(".")
    return Seen(made=env_of(f"CUDA_INJECTION64_PATH={path}"))


def _ranks(words: list[str], count: str) -> Callable[[Files], Seen]:
    gpus = {"limits": {"nvidia.com/gpu": count}}
    return lambda files: Seen(made=deployment(container(command=[*SERVE, *words], resources=gpus)))


def _inside(**names: str) -> Callable[[Files], Seen]:
    return lambda files: Seen(texts={name: files[file] for name, file in names.items()})


def _read_only(files: Files) -> Seen:
    (raw,) = json.loads(files["pod.json"])["spec"]["containers"]
    return Seen(made=deployment(container(**{k: v for k, v in raw.items() if k != "name"})))


# Case, the finding that is its diagnosis, how its files are seen, words that must be said, and
# words that must not.
ROWS: tuple[tuple[str, str, Callable[[Files], Seen], tuple[str, ...], tuple[str, ...]], ...] = (
    ("perm-01", "counter-permission",
     _inside(params="proc_driver_nvidia_params", status="proc_self_status"),
     ("RmProfilingAdminOnly", "CAP_SYS_ADMIN", "host"), ("kernel name filter",)),
    ("perm-02", "counter-permission", _perm_02, ("node-b",), ("whole cluster",)),
    ("perm-03", "perf-event-paranoid", _inside(params="params", paranoid="perf_event_paranoid"),
     ("perf_event_paranoid", "does not gate ncu"), ("BLOCKS",)),
    ("perm-05", "counter-permission", _inside(params="params", os="os-release", id="whoami"),
     ("NVreg_RestrictProfilingToAdminUsers=0", "dracut", "reboot"), ("update-initramfs",)),
    ("perm-10", "stale-lock-file", _inside(locks="ls.txt", id="id.txt"),
     ("nsight-compute-lock", "TMPDIR"), ()),
    ("perm-11", "mig-slice", _inside(smi_list="smi.txt"), ("slice",), ()),
    ("nokern-03", "cudaProfilerStart-never-called", lambda f: Seen(made=env_of(f["env"])),
     ("VLLM_TORCH_PROFILER_DIR", "profile-from-start"), ()),
    ("nokern-07", "chip-not-in-this-ncu", _nokern_07, ("gb100", "newer Nsight Compute"), ()),
    ("nokern-13", "wrong-ncu-on-path", _inside(which="which.txt", ncu_version="version.txt"),
     ("npm-check-updates",), ("Nsight Compute 17",)),
    ("init-01", "driver-libraries-incomplete-or-skew", _inside(libraries="libs.txt"),
     ("NVIDIA_DRIVER_CAPABILITIES",), ("kernel name filter",)),
    ("init-02", "ncu-older-than-driver", _init_02, ("DCGM", "older than the driver"), ()),
    ("init-06", "stub-libcuda-or-no-driver", lambda f: Seen(made=env_of(f["env"])), ("stubs",), ()),
    ("init-08", "tmpdir-not-writable", _read_only, ("emptyDir", "TMPDIR"), ()),
    ("init-09", "install-path-has-space", _inside(which="ncu_path.txt"), ("whitespace",), ()),
    ("init-11", "cuda-version-skew", _init_11, ("12.9", "13.0"), ("CAP_SYS_ADMIN",)),
    ("conf-01", "counters-held-by-dcgm", _conf_01, ("DCGM_FI_PROF", "pause", "resume"), ()),
    ("conf-04", "gpu-shared-with-other-process", _conf_04, ("8123", "exclusive"), ("pause DCGM",)),
    ("conf-06", "second-cupti-subscriber", lambda f: Seen(made=env_of(f["env"])),
     ("CUDA_INJECTION64_PATH",), ("reinstall",)),
    ("conf-09", "injection-slot-taken", _conf_09, ("zymtrace", "unset"), ()),
    ("hang-01", "collective-under-serialised-replay", _ranks(["-tp", "8"], "8"),
     ("serialises", "exclude nccl"), ()),
    ("hang-04", "notebook-target", _inside(cmdline="cmdline"), ("script",), ()),
    ("hang-07", "collective-under-serialised-replay", _ranks(["-tp", "8"], "8"),
     ("TP=1 or eager", "time-out"), ("hardware fault",)),
    ("mem-01", "host-memory-for-save-restore", _mem_01,
     ("--replay-mode application", "host memory"), ()),
    ("mem-06", "device-memory-too-full", _mem_06, ("0.92", "2100 MiB free"), ()),
    ("k8s-01", "counter-permission",
     lambda f: Seen(texts={"params": f["params"]}, on_node=(f["pods.txt"].split()[1],)),
     ("driver container", "operator"), ("update-initramfs",)),
    ("k8s-02", "counters-open",
     lambda f: Seen(texts={"params": f["params"]}, others=(namespace("baseline"),)),
     ("no capability is needed",), ("add SYS_ADMIN", "add CAP_SYS_ADMIN")),
    ("k8s-04", "no-ptrace", _k8s_04, ("SYS_PTRACE",), ()),
    ("k8s-06", "no-gpu-in-container", _k8s_06, ("/dev/nvidia",), ()),
    ("k8s-08", "liveness-kills-profiled-engine", _k8s_08, ("about 15 s",), ("OOM",)),
    ("k8s-10", "ncu-missing-in-image", _k8s_10,
     ("copy or mount ncu", "GB200 needs a recent release"), ("apt install",)),
    ("k8s-14", "image-pull-in-progress", _k8s_14, ("pull",), ("failed",)),
    ("vllm-01", "use-spawn", lambda f: Seen(made=env_of(f["env"])), ("spawn",), ()),
)  # fmt: skip


def examined(seen: Seen) -> Preflight:
    pod = running(seen.made, node=seen.node["metadata"]["name"])
    pod["spec"] = {**pod["spec"], **seen.pod.get("spec", {})}
    workload = taken(seen.made, pod, seen.node, *seen.others, texts=seen.texts)
    if seen.on_node:
        from dataclasses import replace

        from solscope.model.cluster import Fact

        pods = tuple({"kind": "Pod", "metadata": {"name": n}, "spec": {}} for n in seen.on_node)
        related = {**workload.related, "node-pods": Fact(value=pods, source="test")}
        workload = replace(workload, related=related)
    return preflight.examine(workload)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_the_expected_diagnosis_is_given_and_the_tempting_one_is_not(row: Any) -> None:
    name, code, see, say, never = row
    answer = examined(see(cases()[name]["probe"]["files"]))
    assert code in {finding.code for finding in answer.findings}
    text = " ".join(page.as_text(answer).split())
    for words in say:
        assert words in text
    for words in never:
        assert words not in text


def test_a_provider_is_never_judged_by_its_name() -> None:
    variables = cases()["perm-07"]["probe"]["files"]["env"]
    answer = examined(Seen(made=env_of(variables)))
    assert answer.answer is Answer.POSSIBLE
    assert "Modal" not in page.as_text(answer)


def test_the_release_is_named_before_the_exporter_where_both_may_be_the_cause() -> None:
    found = examined(_init_02(cases()["init-02"]["probe"]["files"])).findings
    order = [finding.code for finding in found]
    assert order.index("ncu-older-than-driver") < order.index("counters-held-by-dcgm")
