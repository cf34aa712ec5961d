"""One look inside the running container: reads, never writes. Secrets are masked on arrival.

One ``sh`` script prints every answer under its own mark. Where the image has no shell, only the
command line of the server can be read, by ``cat``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from solscope.cluster.port import Cluster, ExecResult
from solscope.cluster.secrecy import is_secret, masked
from solscope.errors import ClusterError
from solscope.model.cluster import EnvVar, InsideSnapshot, ProcessSnapshot

_MARK = "@@solscope:"
_TIMEOUT_S = 60.0
WORD_END = "\x1e"
"""Ends each word of the answer ``cmdline``."""

# Name of the answer to the shell line that gives it. Each is bounded and harmless.
QUESTIONS: Mapping[str, str] = {
    # A word of a command line may hold new lines; a record separator it hardly does.
    "cmdline": "tr '\\0' '\\036' </proc/1/cmdline",
    "environ": "tr '\\0' '\\n' </proc/1/environ | grep -aE "
    "'^(CUDA|NVIDIA|NV_|NVTX|LD_|VLLM_|SGLANG_|KINETO|TMPDIR|HOME|PATH|NCCL_|DCGM|OTEL_|PYTORCH_)'",
    "params": "cat /proc/driver/nvidia/params",
    "driver": "cat /proc/driver/nvidia/version",
    "status": "cat /proc/self/status",
    "id": "id",
    "devices": "ls /dev/nvidia*",
    "smi": "nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used,mig.mode.current,"
    "compute_cap --format=csv,noheader,nounits",
    "smi_list": "nvidia-smi -L",
    "smi_cuda": "nvidia-smi | grep -o 'CUDA Version: [0-9.]*'",
    "torch_cuda": "ls -d /usr/local/cuda-[0-9]* /usr/local/cuda/targets/*/lib/libcudart.so.*",
    "maps": "grep -ahoE '/[^ ]*(injection|inject|zymtrace|parca|libcupti|libnvperf|stubs/libcuda)"
    "[^ ]*' /proc/[0-9]*/maps | sort -u | head -40",
    "which": "for t in tar sh python3 ncu nsys curl sha256sum; do command -v $t; done; true",
    "ncu_version": "ncu --version",
    "ncu_chips": "ncu --list-chips",
    "smi_apps": "nvidia-smi --query-compute-apps=pid,process_name,used_memory "
    "--format=csv,noheader",
    "libraries": "ldconfig -p | grep -oE 'lib(cuda|nvidia-[a-z-]+)\\.so\\.1' | sort -u",
    "arch": "uname -m",
    "paranoid": "cat /proc/sys/kernel/perf_event_paranoid",
    "memory_max": "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes",
    "yama": "cat /proc/sys/kernel/yama/ptrace_scope",
    "root": "grep -E ' / ' /proc/mounts",
    "locks": "ls -ln /tmp/nsight-compute-lock*",
    # A listening socket (state 0A) on ports 0xC000 to 0xC03F: where ncu's injection would listen.
    "endpoint": "grep -hE ':C0[0-3][0-9A-F] [0-9A-F]+:[0-9A-F]+ 0A' /proc/net/tcp /proc/net/tcp6",
    "os": "cat /etc/os-release",
    # The kernel cuts a name to 15 letters; a title stands whole in the command line.
    "processes": "for d in /proc/[0-9]*; do read -r s <$d/stat || continue; case $s in "
    "*'(VLLM::'*|*'(sglang::'*) s=\"$s @$(tr '\\0' ' ' <$d/cmdline | cut -c1-80)\";; esac; "
    'echo "$s"; done | head -400',
}


def look_inside(
    cluster: Cluster, *, pod: str, container: str, namespace: str | None
) -> InsideSnapshot:
    """Ask the container everything. What it does not answer is listed with the reason.

    Never raises for a refusal: a missing right is an answer too.
    """
    script = "\n".join(
        f"echo '{_MARK}{name}'; ( {line} ) 2>/dev/null" for name, line in QUESTIONS.items()
    )
    try:
        result = cluster.exec(
            pod, container, ["sh", "-c", script], namespace=namespace, timeout_s=_TIMEOUT_S
        )
        if result.failed_to_start:
            return _without_shell(cluster, pod, container, namespace, result)
        return from_output(result.stdout.decode(errors="replace"), container)
    except ClusterError as error:
        reason = getattr(error, "right", None) or error.what
        return InsideSnapshot(container=container, unread=dict.fromkeys(QUESTIONS, reason))


def from_output(text: str, container: str) -> InsideSnapshot:
    """The answers of the script, told apart by their marks."""
    texts: dict[str, str] = {}
    for part in text.split(_MARK)[1:]:
        name, _, body = part.partition("\n")
        if body.strip():
            texts[name.strip()] = body.strip("\n")
    return from_texts(texts, container)


def from_texts(texts: Mapping[str, str], container: str) -> InsideSnapshot:
    """Answers by name; environment and processes are read, the rest kept as text."""
    env = tuple(_variables(texts.get("environ", "")))
    kept = {name: masked(text) for name, text in texts.items() if name != "environ"}
    if "cmdline" in texts:
        kept["cmdline"] = texts["cmdline"]  # its words are masked where they are read
    return InsideSnapshot(
        container=container,
        texts=kept,
        env=env,
        processes=tuple(_processes(texts.get("processes", ""))),
        unread={q: "no answer: no such file or program" for q in QUESTIONS if q not in texts},
    )


def _without_shell(
    cluster: Cluster, pod: str, container: str, namespace: str | None, refused: ExecResult
) -> InsideSnapshot:
    reason = _reason(refused.stderr)
    result = cluster.exec(pod, container, ["cat", "/proc/1/cmdline"], namespace=namespace)
    texts = {"no_shell": reason}
    if result.exit_code == 0:
        texts["cmdline"] = result.stdout.decode(errors="replace").replace("\0", WORD_END)
    unread = {q: f"the container has no shell ({reason})" for q in QUESTIONS if q not in texts}
    return InsideSnapshot(container=container, texts=texts, unread=unread)


def _reason(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line and "Defaulted container" not in line]
    return lines[-1][:200] if lines else "it could not be started"


def ask_server(
    inside: InsideSnapshot,
    cluster: Cluster,
    *,
    pod: str,
    namespace: str | None,
    port: int | None,
) -> InsideSnapshot:
    """Add ``/version`` and ``/metrics``, through the API server's pod proxy."""
    texts, unread = dict(inside.texts), dict(inside.unread)
    space = namespace or cluster.namespace
    for name in ("version", "metrics"):
        if port is None:
            unread[name] = "the server's port is not known"
            continue
        path = f"/api/v1/namespaces/{space}/pods/{pod}:{port}/proxy/{name}"
        try:
            texts[name] = masked(cluster.raw(path).decode(errors="replace"))
        except ClusterError as error:
            unread[name] = getattr(error, "right", None) or error.what
    return replace(inside, texts=texts, unread=unread)


def _variables(text: str) -> list[EnvVar]:
    found = []
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if not equals or not re.fullmatch(r"\w+", name):
            continue
        secret = is_secret(name, value)
        found.append(EnvVar(name=name, value=None if secret else value, is_secret=secret))
    return found


def _processes(text: str) -> list[ProcessSnapshot]:
    """``/proc/PID/stat``: pid, (name), state, parent; the name may hold blanks. A title that
    was read beside it (``@VLLM::Worker_TP0``) replaces the name."""
    found = []
    for line in text.splitlines():
        match = re.match(r"(\d+) \((.*)\) \S (\d+)(?:.* @(\S+))?", line)
        if match:
            pid, name, parent, title = match.groups()
            found.append(ProcessSnapshot(pid=int(pid), name=title or name, parent=int(parent)))
    return found
