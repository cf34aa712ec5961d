"""Device memory left for a profiler, and host memory for kernel replay's save and restore.

Kernel replay saves all memory that a kernel can write: for a server that is what it has
reserved, 127.9 GB a kernel in one H200 report (ncu truth, 7.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from solscope.capture.preflight.view import (
    container_name,
    found,
    gpu_memory_bytes,
    inside_text,
)
from solscope.model.cluster import WorkloadSnapshot
from solscope.model.finding import Finding, Severity

FULL_FRACTION = 0.85
_DEFAULT_FRACTION = 0.9
# An assumption for a first estimate: a GPU-to-host copy over PCIe 5 x16, pageable.
_SAVE_BYTES_PER_S = 20e9
_PASSES = 5
"""Passes assumed for the pause: a roofline list takes 3 to 5; `solscope plan` says exactly."""
# Where captures failed for this, save and restore took about twice the device memory in use.
_HOST_FACTOR = 2.0


def findings(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Head-room on the device, and the host's memory for the backup."""
    yield from _device(workload)
    yield from _host(workload)


def fraction(workload: WorkloadSnapshot) -> tuple[float | None, str]:
    """The share of a GPU's memory that the server takes, stated or by the engine's default."""
    engine = workload.engine
    if engine is None:
        return None, "the server's command is not known"
    if engine.memory_fraction.value is not None:
        return engine.memory_fraction.value, engine.memory_fraction.source
    if engine.engine in ("vllm", "dynamo-vllm"):
        return _DEFAULT_FRACTION, "not stated; vLLM's default is 0.90 before 0.20 and 0.92 since"
    return None, engine.memory_fraction.missing or "not stated"


def backup_bytes(workload: WorkloadSnapshot) -> tuple[float | None, str]:
    """What replay saves for each kernel of one GPU, about."""
    used = _used_bytes(workload)
    if used is not None:
        return used, "nvidia-smi memory.used in the container"
    share, share_source = fraction(workload)
    total, total_source = gpu_memory_bytes(workload)
    if share is None or total is None:
        return None, share_source if share is None else total_source
    return share * total, f"{share:g} ({share_source}) of {total / 1e9:.0f} GB ({total_source})"


def predicted_pause_s(workload: WorkloadSnapshot) -> tuple[float | None, str]:
    """How long one kernel's replay stops the server: passes times save and restore."""
    amount, basis = backup_bytes(workload)
    if amount is None:
        return None, f"pause unknown: {basis}"
    pause = _PASSES * amount / _SAVE_BYTES_PER_S
    return pause, (
        f"pause estimated: {_PASSES} passes x {amount / 1e9:.0f} GB at "
        f"{_SAVE_BYTES_PER_S / 1e9:.0f} GB/s, both assumed; {basis}"
    )


def _used_bytes(workload: WorkloadSnapshot) -> float | None:
    fields = (inside_text(workload, "smi") or "").partition("\n")[0].split(",")
    if len(fields) > 3 and fields[3].strip().isdigit():
        return float(fields[3]) * 2**20
    return None


def _device(workload: WorkloadSnapshot) -> Iterator[Finding]:
    share, source = fraction(workload)
    if share is None or share < FULL_FRACTION:
        return
    total, total_source = gpu_memory_bytes(workload)
    left = None if total is None else (1 - share) * total
    evidence = [f"{share:g}: {source}"]
    fields = (inside_text(workload, "smi") or "").partition("\n")[0].split(",")
    if len(fields) > 3 and fields[2].strip().isdigit() and fields[3].strip().isdigit():
        free = int(fields[2]) - int(fields[3])
        evidence.append(f"nvidia-smi: {free} MiB free of {int(fields[2])} MiB")
    elif left is not None:
        evidence.append(
            f"about {left / 1e9:.1f} GB of {(total or 0) / 1e9:.0f} GB left ({total_source})"
        )
    yield found(
        "device-memory-too-full",
        Severity.WARNING,
        container_name(workload),
        f"the server takes {share:g} of the GPU's memory; the profiler's own buffers and kernel "
        "replay's backup find little room, and a long capture ends in out-of-memory",
        "lower the memory fraction in the sister to what the question needs (a smaller KV cache), "
        "and capture one kernel in a short window",
        *evidence,
    )


def _host(workload: WorkloadSnapshot) -> Iterator[Finding]:
    amount, basis = backup_bytes(workload)
    limit, limit_source = _host_limit(workload)
    ranks = max(1, workload.server.gpus if workload.server else 1)
    if amount is None or limit is None or limit >= _HOST_FACTOR * amount * ranks:
        return
    each = f" on each of {ranks} GPUs" if ranks > 1 else ""
    yield found(
        "host-memory-for-save-restore",
        Severity.WARNING,
        container_name(workload),
        f"kernel replay saves about {amount / 1e9:.0f} GB a kernel{each} when the device is full, "
        f"and the container may use {limit / 1e9:.0f} GB of host memory",
        "lower the server's memory fraction and raise the sister's host memory; or let nothing be "
        "saved: a list of one pass, or --replay-mode application on a harness",
        f"backup: {basis}",
        f"host memory: {limit_source}",
    )


def _host_limit(workload: WorkloadSnapshot) -> tuple[float | None, str]:
    text = inside_text(workload, "memory_max") or ""
    match = re.search(r"^\s*(\d+)", text, re.MULTILINE)
    if match and int(match[1]) < 2**60:
        return float(match[1]), "the container's cgroup limit"
    server = workload.server
    if server is not None and server.memory_limit_bytes is not None:
        return float(server.memory_limit_bytes), "limits.memory"
    return None, "no limit is set"
