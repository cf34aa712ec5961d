"""Why a workload must not be copied. Every reason is gathered, not only the first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solscope.capture.sister import secrecy, shell
from solscope.capture.sister.command import Engine, ServerCommand
from solscope.capture.sister.podspec import claims_of
from solscope.capture.sister.serving import group_evidence
from solscope.capture.sister.target import CONTROLLER_KINDS, GROUP_OWNERS, accelerators
from solscope.model.cluster import KubernetesObject
from solscope.model.finding import Finding, Severity
from solscope.model.plan import CapturePlan, Strategy, Window
from solscope.model.sister import SisterOptions, SisterTarget, ToolsSource

_VENDORS: Mapping[str, str] = {
    "amd.com/": "AMD",
    "gpu.intel.com/": "Intel",
    "google.com/tpu": "TPU",
    "habana.ai/": "Gaudi",
    "aws.amazon.com/neuron": "Neuron",
    "huawei.com/": "Ascend",
}
_SHARED = re.compile(r"nvidia\.com/(?:mig-|gpu\.shared|gpu-slice)")
_OFFICIAL_VLLM = re.compile(r"(?:^|/)vllm-openai:v?(\d+)\.(\d+)(?:\.(\d+))?")
NATIVE_SIDECARS_SINCE, IMAGE_VOLUMES_SINCE = (1, 29), (1, 35)
CUDA_PROFILER_SINCE = (0, 12)
"""The vLLM release whose ``/start_profile`` can call ``cudaProfilerStart``."""


def block(code: str, where: str, fact: str, remedy: str, *evidence: str) -> Finding:
    """A finding that forbids the sister."""
    return Finding(
        code=code,
        severity=Severity.BLOCKS,
        where=where,
        fact=fact,
        remedy=remedy,
        evidence=evidence,
    )


def of_plan(plan: CapturePlan, options: SisterOptions) -> Iterator[Finding]:
    """Reasons that lie in the plan."""
    if plan.is_refused:
        codes = ", ".join(finding.code for finding in plan.findings if finding.blocks)
        yield block(
            "sister-plan-refused",
            "plan",
            f"the plan is refused: {codes}",
            "settle its findings and plan again",
        )
    if plan.strategy is Strategy.NONE:
        yield block(
            "sister-no-strategy",
            "plan",
            f"the plan captures nothing: {plan.strategy_reason}",
            "settle what stands against a capture and plan again",
        )
    if plan.strategy is Strategy.HARNESS and options.harness is None:
        yield block(
            "sister-harness-missing",
            "plan",
            "the plan replays one operation alone, and no script says which",
            "give the script with --harness FILE.py",
        )


def of_version(version: tuple[int, int] | None, options: SisterOptions) -> Iterator[Finding]:
    """What the cluster's release cannot do. Nothing is said where it is not known."""
    if version is None:
        return
    shown = f"Kubernetes {version[0]}.{version[1]}"
    if version < NATIVE_SIDECARS_SINCE:
        yield block(
            "sister-no-native-sidecar",
            shown,
            "without native sidecars (1.29) the sister's results container would block its start",
            "use a cluster of 1.29 or newer",
        )
    if options.tools is ToolsSource.IMAGE_VOLUME and version < IMAGE_VOLUMES_SINCE:
        yield block(
            "sister-no-image-volume",
            shown,
            "image volumes are on by default since 1.35 only",
            "leave --tools at init-container",
        )


def of_controller(kind: str, name: str) -> Iterator[Finding]:
    """Reasons that lie in who makes the pods; nothing else need be asked then."""
    if kind not in CONTROLLER_KINDS:
        return
    remedy = "name the Deployment or pod that the controller made: `solscope sister deploy/NAME`"
    if kind in GROUP_OWNERS:
        remedy = "profile a single-node deployment of the same model, or one operation alone"
    code = {"LeaderWorkerSet": "sister-group", "StormService": "sister-controller-owned"}.get(kind)
    if code is None:
        ray, dynamo = kind.startswith("Ray"), kind.startswith("Dynamo")
        code = "sister-ray" if ray else "sister-discovery" if dynamo else "sister-controller-owned"
    yield block(code, f"{kind}/{name}", f"{kind}: {CONTROLLER_KINDS[kind]}", remedy)


def of_pod(
    target: SisterTarget, spec: Mapping[str, Any], objects: Sequence[KubernetesObject]
) -> Iterator[Finding]:
    """Reasons that lie in the pod template and in the objects it uses."""
    where = target.reference
    owner = target.owner or ""
    if owner.split("/", 1)[0] in GROUP_OWNERS:
        kind = owner.split("/", 1)[0]
        yield from of_controller(kind, owner.split("/", 1)[1])
    if spec.get("hostNetwork"):
        yield block(
            "sister-host-network",
            where,
            "hostNetwork: the sister's ports would collide with the target's on its node",
            "profile a deployment of the same model without hostNetwork",
            "spec.hostNetwork: true",
        )
    labels = (target.template.get("metadata") or {}).get("labels") or {}
    if "solscope-sister" in labels:
        yield block(
            "sister-of-a-sister",
            where,
            "the workload is itself a sister",
            "name the workload that it was copied from",
        )
    yield from _accelerators(target, spec, where)
    yield from _sharing(target, objects)
    yield from _claims(spec, objects, where)
    yield from _volume_claims(target, objects, where)


def _accelerators(target: SisterTarget, spec: Mapping[str, Any], where: str) -> Iterator[Finding]:
    found: dict[str, str] = {}
    for container in spec.get("containers") or ():
        found |= accelerators(container)
    for name in found:
        vendor = next((v for prefix, v in _VENDORS.items() if name.startswith(prefix)), None)
        if vendor is not None:
            yield block(
                "sister-not-nvidia",
                where,
                f"it runs on {vendor} ({name}); ncu profiles NVIDIA GPUs only",
                "use the vendor's own profiler",
                f"{name}: {found[name]}",
            )
        if _SHARED.match(name):
            yield block(
                "sister-shared-gpu",
                where,
                f"{name} is a share of a GPU: counters of its neighbours would be included",
                "profile on a whole GPU",
                f"{name}: {found[name]}",
            )
    if not found:
        yield block(
            "sister-no-gpu-request",
            where,
            "no container asks for a GPU, so the copy would share the target's GPU, or get none",
            "let the container ask for nvidia.com/gpu, then copy it",
            f"spec.containers[{target.container}].resources names no accelerator",
        )


def _sharing(target: SisterTarget, objects: Sequence[KubernetesObject]) -> Iterator[Finding]:
    """A node whose GPUs several pods use at once: its labels say so."""
    labels = node_labels(objects, target.node)
    strategy = labels.get("nvidia.com/gpu.sharing-strategy", "none")
    replicas = labels.get("nvidia.com/gpu.replicas", "not set")
    if strategy != "none" or _above_one(replicas):
        yield block(
            "sister-shared-gpu",
            f"Node/{target.node}",
            "its GPUs are shared between pods, so counters of neighbours would be included",
            "profile on a node whose GPUs are not shared",
            f"nvidia.com/gpu.sharing-strategy={strategy}",
            f"nvidia.com/gpu.replicas={replicas}",
        )


def node_labels(objects: Sequence[KubernetesObject], name: str | None) -> Mapping[str, str]:
    """The labels of a node that was seen; none if it was not."""
    for item in objects:
        metadata = item.get("metadata") or {}
        if name is not None and item.get("kind") == "Node" and metadata.get("name") == name:
            return metadata.get("labels") or {}
    return {}


def _above_one(text: Any) -> bool:
    return str(text).isdigit() and int(text) > 1


def _claims(
    spec: Mapping[str, Any], objects: Sequence[KubernetesObject], where: str
) -> Iterator[Finding]:
    for claim in spec.get("resourceClaims") or ():
        name = claim.get("resourceClaimName") or (claim.get("source") or {}).get(
            "resourceClaimName"
        )
        if name:
            yield block(
                "sister-claim-by-name",
                where,
                f"device claim {name} is named, and the target holds it",
                "use a ResourceClaimTemplate: each pod then gets a claim of its own",
                f"spec.resourceClaims[{claim.get('name')}].resourceClaimName: {name}",
            )
    modes = access_modes(objects)
    for name in claims_of(spec):
        if "ReadWriteOncePod" in modes.get(name, ()):
            yield block(
                "sister-volume-one-pod",
                where,
                f"volume claim {name} is ReadWriteOncePod, and the target has it",
                "copy the data to another claim, or load the model from elsewhere",
                f"PersistentVolumeClaim/{name}: ReadWriteOncePod",
            )


def access_modes(objects: Sequence[KubernetesObject]) -> dict[str, tuple[str, ...]]:
    """The access modes of every volume claim that was seen, by name."""
    found = {}
    for item in objects:
        if item.get("kind") == "PersistentVolumeClaim":
            name = str((item.get("metadata") or {}).get("name"))
            found[name] = tuple((item.get("spec") or {}).get("accessModes") or ())
    return found


def _volume_claims(
    target: SisterTarget, objects: Sequence[KubernetesObject], where: str
) -> Iterator[Finding]:
    if target.kind != "StatefulSet":
        return
    for item in objects:
        same = (item.get("metadata") or {}).get("name") == target.name
        if item.get("kind") == "StatefulSet" and same:
            for claim in (item.get("spec") or {}).get("volumeClaimTemplates") or ():
                name = (claim.get("metadata") or {}).get("name")
                yield block(
                    "sister-volume-claim-templates",
                    where,
                    f"volumeClaimTemplates: volume {name} exists once for each ordinal",
                    "load the model from a shared claim or from the image",
                    f"spec.volumeClaimTemplates[{name}]",
                )


def of_command(
    target: SisterTarget, command: ServerCommand | None, words: Sequence[str], image: str
) -> Iterator[Finding]:
    """Reasons that lie in the server's command line."""
    where = f"{target.reference} container {target.container}"
    if command is None:
        yield block(
            "sister-command-hidden",
            where,
            "the server is started inside a script in a way that cannot be read safely",
            'give the whole command: --server-command "vllm serve MODEL ..."',
            secrecy.shown(words)[:200],
        )
        return
    if command.script is not None:
        words_of_script = [w.text for s in shell.commands(command.script) for w in s.words]
        for name in secrecy.secret_assignments(words_of_script):
            yield block(
                "sister-secret-in-script",
                where,
                f"the start script sets {name} to a plain secret, which must not be copied",
                f"put it into a Secret and let the container's env refer to it as {name}",
            )
    for evidence in group_evidence(command):
        code = "sister-ray" if "ray" in evidence.split() else "sister-group"
        yield block(
            code,
            where,
            f"the server is part of a group or uses Ray: {evidence}",
            "profile a single-node deployment of the same model, or one operation alone",
            evidence,
        )
    if command.engine is Engine.DYNAMO:
        yield block(
            "sister-discovery",
            where,
            "a Dynamo worker registers itself in the discovery store as it starts",
            "profile the engine alone: vllm serve or sglang.launch_server with the same options",
            " ".join(command.words[:3]),
        )


def of_secrets(target: SisterTarget, objects: Sequence[KubernetesObject]) -> Iterator[Finding]:
    """Secrets that would still stand in the finished objects: the last look before writing."""
    for item in objects:
        for path in secrecy.places(item):
            yield block(
                "sister-secret-left",
                f"{target.reference} container {target.container}",
                f"a text that looks like a secret would be copied: {path}",
                "put it into a Secret and refer to it from the target's env",
                path,
            )


def entrypoint_unknown(target: SisterTarget, args: Sequence[str], image: str) -> Finding:
    """The refusal for a container whose command only its image knows."""
    namespace = f"-n {target.namespace} " if target.namespace else ""
    shown = secrecy.shown(args)
    read = f"kubectl {namespace}exec POD -c {target.container} -- cat /proc/1/cmdline"
    return block(
        "sister-entrypoint-unknown",
        f"{target.reference} container {target.container}",
        f"no command in Kubernetes: {image} starts the server by its own entrypoint",
        f'give the whole command: --server-command "ENTRYPOINT {shown or "ARGS"}"; '
        f"`{read}` shows it (a live target: --exec), or the image's configuration names ENTRYPOINT",
        f"args: {shown or '(none)'}",
    )


def of_window(
    target: SisterTarget, command: ServerCommand, plan: CapturePlan, image: str
) -> Iterator[Finding]:
    """A window that the engine cannot open."""
    if plan.launches.window is not Window.ENGINE_PROFILER:
        return
    if command.engine is Engine.TENSORRT_LLM:
        yield block(
            "sister-window-never-opens",
            f"{target.reference} container {target.container}",
            "TensorRT-LLM's server has no endpoint that calls cudaProfilerStart",
            "plan again with --window whole-run --skip N, or --nvtx RANGE",
            f"command {' '.join(command.words[:2])}",
        )
        return
    if command.engine is not Engine.VLLM:
        return
    version = vllm_version(image)
    if version is None or version[:2] >= CUDA_PROFILER_SINCE:
        return
    shown = ".".join(str(part) for part in version)
    yield block(
        "sister-window-never-opens",
        f"{target.reference} container {target.container}",
        f"vLLM {shown} cannot call cudaProfilerStart: its endpoint starts the torch profiler only",
        "plan again with --window whole-run --skip N, or --nvtx RANGE, or use vLLM 0.12 or newer",
        f"image {image}",
    )


def vllm_version(image: str) -> tuple[int, ...] | None:
    """The version in the tag of a vLLM image, None if the tag says none.

    >>> vllm_version("docker.io/vllm/vllm-openai:v0.11.0"), vllm_version("vllm/vllm-openai:latest")
    ((0, 11, 0), None)
    """
    match = _OFFICIAL_VLLM.search(image)
    if match is None:
        return None
    return tuple(int(part) for part in match.groups() if part is not None)
