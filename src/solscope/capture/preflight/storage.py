"""Volumes that only one pod, or one node, can have."""

from __future__ import annotations

from collections.abc import Iterator

from solscope.capture.preflight.view import found
from solscope.model.cluster import WorkloadSnapshot
from solscope.model.finding import Finding, Severity


def findings(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Claims by their access modes, and claims that exist once for each ordinal."""
    for template in (workload.raw.get("spec") or {}).get("volumeClaimTemplates") or ():
        name = (template.get("metadata") or {}).get("name")
        yield found(
            "volume-of-an-ordinal",
            Severity.BLOCKS,
            workload.reference,
            f"volume {name} exists once for each pod of the {workload.kind}: a copy has none",
            "load the model from a shared claim or from the image",
            f"volumeClaimTemplates: {name}",
        )
    modes = {
        str((claim.get("metadata") or {}).get("name")): tuple(
            (claim.get("spec") or {}).get("accessModes") or ()
        )
        for claim in workload.seen("persistentvolumeclaims")
    }
    for name in _claims(workload):
        yield from _claim(workload, name, modes.get(name, ()))


def _claims(workload: WorkloadSnapshot) -> Iterator[str]:
    for volume in (workload.template_raw.get("spec") or {}).get("volumes") or ():
        claim = volume.get("persistentVolumeClaim")
        if claim:
            yield str(claim.get("claimName"))


def _claim(workload: WorkloadSnapshot, name: str, modes: tuple[str, ...]) -> Iterator[Finding]:
    if "ReadWriteOncePod" in modes:
        yield found(
            "volume-of-one-pod",
            Severity.BLOCKS,
            workload.reference,
            f"claim {name} can be mounted by one pod only, and the target has it",
            "copy the data to another claim, or load the model from elsewhere",
            f"PersistentVolumeClaim {name}: ReadWriteOncePod",
        )
    elif "ReadWriteOnce" in modes and "ReadWriteMany" not in modes:
        yield found(
            "volume-of-one-node",
            Severity.INFO,
            workload.reference,
            f"claim {name} mounts on one node at a time: the sister must run where the target "
            "does, and that node needs free GPUs",
            "check the node's room first, or copy the data to a claim of its own",
            f"PersistentVolumeClaim {name}: ReadWriteOnce",
        )
