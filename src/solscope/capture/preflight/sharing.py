"""Is it a whole NVIDIA GPU, reached directly?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from solscope.capture.preflight.view import container_name, found, inside_text, product, setting
from solscope.model.cluster import WorkloadSnapshot
from solscope.model.finding import Finding, Severity

FOREIGN = "not-an-nvidia-gpu"
_OTHERS = (
    ("amd.com/", "an AMD GPU"),
    ("gpu.intel.com/", "an Intel GPU"),
    ("google.com/tpu", "a TPU"),
    ("habana.ai/", "a Gaudi accelerator"),
    ("aws.amazon.com/neuron", "a Neuron accelerator"),
    ("huawei.com/", "an Ascend accelerator"),
)


def findings(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """The accelerator's maker, its slicing and sharing, the sandbox around the container."""
    yield from _maker(workload)
    yield from _presence(workload)
    yield from _mig(workload)
    yield from _shared(workload)
    yield from _virtual(workload)
    yield from _claims(workload)


def _maker(workload: WorkloadSnapshot) -> Iterator[Finding]:
    server = workload.server
    resource = (server.gpu_resource if server else None) or ""
    other = next((what for prefix, what in _OTHERS if resource.startswith(prefix)), None)
    if other is None and server is not None and "rocm" in server.image.lower():
        other = "an AMD GPU"
    if other is not None and server is not None:
        yield found(
            FOREIGN,
            Severity.BLOCKS,
            container_name(workload),
            f"the workload runs on {other}; Nsight Compute profiles NVIDIA GPUs only",
            "use the maker's own profiler",
            f"resource {resource}" if resource else f"image {server.image}",
        )


def _presence(workload: WorkloadSnapshot) -> Iterator[Finding]:
    server = workload.server
    if server is None or server.gpus or workload.template.resource_claims:
        return
    devices = inside_text(workload, "devices")
    visible = setting(workload, "NVIDIA_VISIBLE_DEVICES")
    if workload.inside is not None and devices is None and "no_shell" not in workload.inside.texts:
        yield found(
            "no-gpu-in-container",
            Severity.BLOCKS,
            container_name(workload),
            "the container asks for no GPU and has no /dev/nvidia* device",
            "ask for nvidia.com/gpu in its limits; NVIDIA_VISIBLE_DEVICES alone is no guarantee",
            *([f"{visible.shown} ({visible.where})"] if visible else []),
        )
        return
    yield found(
        "gpu-not-requested",
        Severity.WARNING,
        container_name(workload),
        "the container asks for no GPU by resource; how it gets one cannot be told from here, "
        "and a copy may get none, or all of the node's",
        "look inside with --exec (/dev/nvidia*, nvidia-smi -L), or state nvidia.com/gpu in limits",
        *([f"{visible.shown} ({visible.where})"] if visible else []),
        *([f"devices: {devices.splitlines()[0]} ..."] if devices else []),
    )


def _mig(workload: WorkloadSnapshot) -> Iterator[Finding]:
    server, node = workload.server, workload.node
    resource = (server.gpu_resource if server else None) or ""
    name, source = product(workload)
    listed = inside_text(workload, "smi_list") or ""
    evidence = []
    if "/mig-" in resource:
        evidence.append(f"resource {resource}")
    if "MIG" in (name or ""):
        evidence.append(f"product {name} ({source})")
    evidence += [line.strip() for line in listed.splitlines() if line.strip().startswith("MIG")][:1]
    strategy = "" if node is None else node.mig_strategy.value or ""
    if re.match(r"\d+g\.\d+gb", strategy):
        evidence.append(f"partition size {strategy}")
    if evidence:
        yield found(
            "mig-slice",
            # What would be measured is true of the slice only, and a sister would need a free
            # slice of the same profile: refused rather than explained away afterwards.
            Severity.BLOCKS,
            container_name(workload),
            "it runs on a MIG slice: ceilings must be scaled to the slice, counters of shared "
            "units are missing, and clocks cannot be locked for one slice",
            "profile on a whole GPU of the same product; reports that were taken on the slice are "
            "read with the slice's SM count, and --clock-control none",
            *evidence,
        )


def _shared(workload: WorkloadSnapshot) -> Iterator[Finding]:
    node = workload.node
    if node is None:
        return
    strategy = node.sharing.value or ""
    replicas = node.replicas.value or 1
    shared = "SHARED" in (node.product.value or "")
    if strategy in ("", "none") and replicas <= 1 and not shared:
        return
    is_mps = "mps" in strategy.lower()
    yield found(
        "gpu-shared-by-mps" if is_mps else "gpu-time-sliced",
        Severity.BLOCKS,
        f"node {node.name}",
        f"a GPU of this node is shared by up to {replicas} pods"
        if replicas > 1
        else "GPUs of this node are shared between pods",
        "profile on a node with whole GPUs: replay would stop the neighbours, and their work "
        "would be in the numbers",
        *(f"{fact.value} ({fact.source})" for fact in (node.sharing, node.product) if fact.value),
    )


def _virtual(workload: WorkloadSnapshot) -> Iterator[Finding]:
    runtime = workload.template.runtime_class or ""
    if "gvisor" in runtime.lower() or "runsc" in runtime.lower():
        yield found(
            "sandboxed-runtime",
            Severity.BLOCKS,
            workload.reference,
            "the pod runs in gVisor, which passes on only the driver calls that it knows; "
            "counters are not among them",
            "profile on a node pool without the sandbox",
            f"runtimeClassName {runtime}",
        )
    elif "kata" in runtime.lower():
        yield found(
            "sandboxed-runtime",
            Severity.WARNING,
            workload.reference,
            "the pod runs in a virtual machine of its own: the guest's driver decides about "
            "counters, not the node's",
            "read RmProfilingAdminOnly inside the container (--exec)",
            f"runtimeClassName {runtime}",
        )
    node = workload.node
    if node is not None and (node.vgpu.value or "false") != "false":
        yield found(
            "vgpu",
            Severity.WARNING,
            f"node {node.name}",
            "the node has a virtual GPU: counters work only where the hypervisor allows profiling "
            "for this machine, and not with several on one GPU",
            "ask the platform for profiling on the vGPU profile, or take a pass-through GPU",
            f"{node.vgpu.value} ({node.vgpu.source})",
        )


def _claims(workload: WorkloadSnapshot) -> Iterator[Finding]:
    for claim in workload.template.resource_claims:
        held = claim.startswith("claim ")
        yield found(
            "gpu-by-held-claim" if held else "gpu-by-claim-template",
            Severity.BLOCKS if held else Severity.INFO,
            workload.reference,
            "the GPU is a claim by name, which the running pod holds; a copy would wait for it "
            "for ever"
            if held
            else "the GPU comes from a claim template: a copy gets a claim of its own",
            "profile a workload that uses a claim template, or make the copy a claim of its own"
            if held
            else "nothing to do",
            f"resource {claim}",
        )
