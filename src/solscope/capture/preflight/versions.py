"""Gate 0: do CUDA in the image, driver, chip and ncu fit each other, and how do we know?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from solscope.capture.preflight import tables
from solscope.capture.preflight.view import (
    chip,
    container_name,
    found,
    inside_text,
    product,
    release,
    setting,
)
from solscope.model.cluster import Fact, WorkloadSnapshot
from solscope.model.finding import Finding, Severity


def findings(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Toolkit against driver, ncu against chip and driver, and what is not known."""
    yield from _toolkit_and_driver(workload)
    yield from _chip_and_toolkit(workload)
    yield from _ncu(workload)
    yield from _chips(workload)


def image_cuda(workload: WorkloadSnapshot) -> Fact[str]:
    """The toolkit in the image: asked inside, else from the tag, else by table."""
    inside = setting(workload, "CUDA_VERSION")
    if inside is not None and release(inside.value):
        return Fact(value=inside.value, source=f"CUDA_VERSION in {inside.where}")
    match = re.search(r"/usr/local/cuda-(\d+\.\d+)", inside_text(workload, "torch_cuda") or "")
    if match:
        return Fact(value=match[1], source="the toolkit's folder in the container")
    if workload.engine is None:
        return Fact(missing="the image's CUDA: --exec reads it in the container")
    return workload.engine.cuda


def driver_cuda(workload: WorkloadSnapshot) -> Fact[str]:
    """The newest CUDA that the driver runs: nvidia-smi, the node's label, the driver's branch."""
    match = re.search(r"CUDA Version: ([\d.]+)", inside_text(workload, "smi_cuda") or "")
    if match:
        return Fact(value=match[1], source="nvidia-smi in the container")
    node = workload.node
    if node is not None and node.cuda_supported.value is not None:
        return node.cuda_supported
    driver = driver_version(workload)
    major = tables.newest_cuda_of_driver(driver.value) if driver.value else None
    if major is not None:
        return Fact(value=f"{major}.0", source=f"driver {driver.value} by table ({driver.source})")
    missing = "no node is known" if node is None else node.cuda_supported.missing
    return Fact(missing=missing or "the node has no label for it")


def driver_version(workload: WorkloadSnapshot) -> Fact[str]:
    """The driver: nvidia-smi, /proc, or the node's label."""
    fields = (inside_text(workload, "smi") or "").partition("\n")[0].split(",")
    if len(fields) > 1:
        return Fact(value=fields[1].strip(), source="nvidia-smi in the container")
    match = re.search(
        r"Module\s+(?:for \S+\s+)?(\d+\.[\d.]+)", inside_text(workload, "driver") or ""
    )
    if match:
        return Fact(value=match[1], source="/proc/driver/nvidia/version")
    return Fact() if workload.node is None else workload.node.driver


def _toolkit_and_driver(workload: WorkloadSnapshot) -> Iterator[Finding]:
    toolkit, driver = image_cuda(workload), driver_cuda(workload)
    ours, theirs = release(toolkit.value), release(driver.value)
    where = container_name(workload)
    if ours is None or theirs is None:
        unknown = toolkit if ours is None else driver
        which = "the image's CUDA" if ours is None else "the driver"
        yield found(
            "cuda-version-unknown",
            Severity.INFO,
            where,
            f"CUDA in the image cannot be compared with the driver: {which} is unknown",
            "run preflight with --exec on the live workload, or read the image's CUDA_VERSION and "
            "`nvidia-smi` on the node",
            f"missing: {unknown.missing or 'not read'}",
        )
        return
    evidence = (
        f"image: CUDA {toolkit.value} ({toolkit.source})",
        f"driver runs CUDA up to {driver.value} ({driver.source})",
    )
    row = chip(workload)
    if ours[0] > theirs[0]:
        yield found(
            "driver-too-old-for-image",
            Severity.BLOCKS if "table" not in toolkit.source else Severity.WARNING,
            where,
            f"the image is built for CUDA {toolkit.value}, the driver runs CUDA {driver.value} "
            "at most",
            "update the driver, or take the image of the driver's CUDA generation; a "
            "forward-compatibility package runs the server but not every profiler",
            *evidence,
        )
    elif ours[0] < theirs[0]:
        loud = row is not None and row.is_blackwell
        yield found(
            "cuda-version-skew",
            Severity.WARNING if loud else Severity.INFO,
            where,
            f"CUDA {toolkit.value} in the image under a driver of CUDA {driver.value}: profiling "
            "libraries of the older generation may record no kernels at all"
            + (f" on {row.chip}" if loud and row else ""),
            "profile with an ncu of the driver's generation, brought in by the sister from a "
            f"CUDA {theirs[0]} tools image; or use a CUDA {theirs[0]} build of the server",
            *evidence,
        )
    else:
        yield found(
            "cuda-versions-fit",
            Severity.INFO,
            where,
            f"CUDA {toolkit.value} in the image, CUDA {driver.value} in the driver: the same "
            "generation",
            "nothing to do",
            *evidence,
        )


def _chip_and_toolkit(workload: WorkloadSnapshot) -> Iterator[Finding]:
    name, source = product(workload)
    row = chip(workload)
    if name is None:
        yield found(
            "gpu-unknown",
            Severity.INFO,
            workload.reference,
            "which GPU it runs on is not known, so neither the right ncu nor the passes are",
            "give the right to read nodes, or run with --exec; `plan` needs --chip otherwise",
            f"missing: {source}",
        )
        return
    if row is None:
        yield found(
            "gpu-not-in-table",
            Severity.INFO,
            workload.reference,
            f"{name} is no chip that this release knows",
            "check with `ncu --list-chips` that your ncu knows it, and give `plan` its --chip",
            f"{name} ({source})",
        )
        return
    toolkit = image_cuda(workload)
    ours = release(toolkit.value)
    ncu = f"{row.ncu[0]}.{row.ncu[1]}"
    yield found(
        "ncu-release-needed",
        Severity.INFO,
        workload.reference,
        f"{name} is {row.chip} (compute capability {row.capability}): Nsight Compute {ncu} is "
        "the first that knows it",
        f"take an ncu not older than {ncu}, best of the driver's generation; copy or mount the "
        "whole installation into the sister",
        f"{name} ({source})",
    )
    if ours is not None and ours[:2] < row.cuda:
        yield found(
            "cuda-too-old-for-chip",
            Severity.WARNING,
            container_name(workload),
            f"CUDA {toolkit.value} is older than the first toolkit for {row.chip} "
            f"({row.cuda[0]}.{row.cuda[1]})",
            "take an image built for this GPU: kernels run from PTX, or not at all",
            f"image: CUDA {toolkit.value} ({toolkit.source})",
        )


def _ncu(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """The ncu in the image, if one is there."""
    if workload.inside is None or "which" not in workload.inside.texts:
        return
    where = container_name(workload)
    paths = [p for p in workload.inside.texts["which"].splitlines() if p.endswith("/ncu")]
    if not paths:
        yield found(
            "ncu-missing-in-image",
            Severity.INFO,
            where,
            "the image has no ncu",
            "the sister brings it: copy or mount ncu from the tools image" + _which_tools(workload),
            "`command -v ncu` found nothing",
        )
        return
    if any(" " in path for path in paths):
        yield found(
            "install-path-has-space",
            Severity.WARNING,
            where,
            "the path of ncu holds whitespace, which its injection libraries cannot be loaded from",
            "mount it in the sister at a path without whitespace",
            paths[0],
        )
    text = inside_text(workload, "ncu_version") or ""
    if "Nsight Compute" not in text:
        yield found(
            "wrong-ncu-on-path",
            Severity.WARNING,
            where,
            f"{paths[0]} is not Nsight Compute; npm-check-updates brings a program of that name",
            "call ncu by its full path in the sister",
            f"`ncu --version` says: {text.splitlines()[0] if text else 'nothing'}",
        )
        return
    yield from _ncu_release(workload, paths[0], text)


def _which_tools(workload: WorkloadSnapshot) -> str:
    """What the tools image must be besides being there."""
    row = chip(workload)
    name, _ = product(workload)
    text = ""
    if row is not None and row.is_blackwell:
        text = f"; {name} needs a recent release ({row.ncu[0]}.{row.ncu[1]} or newer)"
    if (inside_text(workload, "arch") or "x86_64").strip() == "aarch64":
        text += "; for aarch64"
    return text


def _chips(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """`ncu --list-chips` says it exactly, whatever the release."""
    listed = (inside_text(workload, "ncu_chips") or "").lower()
    row = chip(workload)
    if listed and row is not None and row.chip.lower() not in listed:
        yield found(
            "chip-not-in-this-ncu",
            Severity.WARNING,
            container_name(workload),
            f"the ncu in the image does not list {row.chip.lower()} and skips its launches "
            "without a word",
            f"bring a newer Nsight Compute into the sister: {row.ncu[0]}.{row.ncu[1]} at least",
            f"`ncu --list-chips`: {listed[:100]}",
        )


def _ncu_release(workload: WorkloadSnapshot, path: str, text: str) -> Iterator[Finding]:
    match = re.search(r"Version\s+(\d+)\.(\d+)", text)
    row = chip(workload)
    if match is None:
        return
    have = (int(match[1]), int(match[2]))
    shown = f"{have[0]}.{have[1]}"
    listed = inside_text(workload, "ncu_chips")
    if row is not None and have < row.ncu and not listed:
        yield found(
            "chip-not-in-this-ncu",
            Severity.WARNING,
            container_name(workload),
            f"ncu {shown} in the image does not know {row.chip} and skips its launches without a "
            "word",
            f"bring a newer Nsight Compute into the sister: {row.ncu[0]}.{row.ncu[1]} at least",
            f"{path}: {shown}",
        )
    theirs = release(driver_cuda(workload).value)
    fitting = tables.CUDA_NCU.get((theirs[0], theirs[1])) if theirs else None
    generation = release(fitting)
    if generation is not None and have < generation[:2]:
        yield found(
            "ncu-older-than-driver",
            Severity.WARNING,
            container_name(workload),
            f"ncu {shown} in the image is older than the driver's generation ({fitting})",
            "bring the driver's generation into the sister",
            f"{path}: {shown}",
        )
