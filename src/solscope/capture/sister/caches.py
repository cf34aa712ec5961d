"""What the copy would write where production reads it, or leave there: compiled kernels, models
fetched anew, the node's shared memory.

Compilers measure candidates as they tune, and under ncu they measure something else. What they
keep in a shared folder, production loads at its next start.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from solscope.capture.sister import podspec, tooling
from solscope.model.finding import Finding, Severity
from solscope.model.sister import Action, Change, SisterOptions, SisterTarget

FOLDER = "/solscope/caches"

# Variables of compiled kernels, and where they lie below the home folder if none is set: vLLM,
# Triton, Inductor, FlashInfer, DeepGEMM (also SGLang's), torch's extensions, CUDA's own JIT.
# ``None``: outside of it.
_VARIABLES: Mapping[str, str | None] = {
    "VLLM_CACHE_ROOT": ".cache/vllm",
    "TRITON_CACHE_DIR": ".triton/cache",
    "TORCHINDUCTOR_CACHE_DIR": None,
    "FLASHINFER_WORKSPACE_BASE": ".cache/flashinfer",
    "DG_JIT_CACHE_DIR": ".deep_gemm",
    "SGLANG_DG_CACHE_DIR": ".cache/deep_gemm",
    "TORCH_EXTENSIONS_DIR": ".cache/torch_extensions",
    "CUDA_CACHE_PATH": ".nv/ComputeCache",
}
_SHARED_VOLUMES = ("persistentVolumeClaim", "hostPath", "nfs", "cephfs", "csi")


def keep_private(spec: dict[str, Any], server: dict[str, Any]) -> Iterator[Change]:
    """Let the server keep compiled kernels in the pod, where the target keeps them in a folder
    that others share."""
    shared = [path for _, path in _shared(spec, server)]
    stated = {str(e.get("name")): e for e in server.get("env") or ()}
    moved = [name for name in _VARIABLES if _lies_in(name, stated, shared)]
    if not moved:
        return
    spec.setdefault("volumes", []).append({"name": tooling.CACHES_VOLUME, "emptyDir": {}})
    mount = {"name": tooling.CACHES_VOLUME, "mountPath": FOLDER}
    server.setdefault("volumeMounts", []).append(mount)
    why = "what is compiled and tuned under ncu must not be loaded by production"
    path = f"spec.containers[{server['name']}]"
    for where in (f"spec.volumes[{mount['name']}]", f"{path}.volumeMounts[{FOLDER}]"):
        yield Change(path=where, action=Action.ADDED, what="emptyDir", why=why)
    entries = server.setdefault("env", [])
    for name in moved:
        value = f"{FOLDER}/{name.lower()}"
        entries[:] = [entry for entry in entries if entry.get("name") != name]
        entries.append({"name": name, "value": value})
        action = Action.CHANGED if name in stated else Action.ADDED
        what = f"{name}={value}"
        yield Change(path=f"{path}.env[{name}]", action=action, what=what, why=why)


def _shared(
    spec: Mapping[str, Any], container: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Volumes that outlive the pod and that a container may write to, and where it has them."""
    volumes = {str(volume.get("name")): volume for volume in spec.get("volumes") or ()}
    for mount in container.get("volumeMounts") or ():
        volume = volumes.get(str(mount.get("name"))) or {}
        if not mount.get("readOnly") and any(volume.get(kind) for kind in _SHARED_VOLUMES):
            yield volume, str(mount.get("mountPath"))


def _lies_in(name: str, stated: Mapping[str, Any], shared: list[str]) -> bool:
    entry = stated.get(name)
    if entry is not None:
        return bool(entry.get("value")) and _is_below(str(entry["value"]), shared)
    default = _VARIABLES[name]
    if default is None:
        return False
    cache = (stated.get("XDG_CACHE_HOME") or {}).get("value")
    if cache and default.startswith(".cache/"):
        return _is_below(posixpath.join(cache, default.removeprefix(".cache/")), shared)
    home = (stated.get("HOME") or {}).get("value")
    homes = [home] if home else ["/root", *(_home_of(path) for path in shared)]
    return any(_is_below(posixpath.join(place, default), shared) for place in homes if place)


def _home_of(path: str) -> str:
    """The home folder that a mount lies in: users are named by the image."""
    parts = path.split("/")
    return "/".join(parts[:3]) if path.startswith("/home/") and len(parts) > 2 else ""


def _is_below(path: str, folders: list[str]) -> bool:
    whole = posixpath.normpath(path)
    return any(
        whole == folder or whole.startswith(f"{folder.rstrip('/')}/")
        for folder in map(posixpath.normpath, folders)
    )


def findings(target: SisterTarget, options: SisterOptions) -> Iterator[Finding]:
    """The node's memory, and init containers that may write once more where production reads."""
    spec = target.template["spec"]
    memory = podspec.node_memory(spec)
    if memory is not None:
        yield Finding(
            code="sister-node-memory",
            severity=Severity.WARNING,
            where=target.reference,
            fact=f"{memory}: as the target, the sister uses its node's shared memory, where "
            "segments of a server that is killed stay",
            remedy="look after the capture what is left on the node: ls -l /dev/shm, ipcs -m",
        )
    for container in spec.get("initContainers") or ():
        name = container.get("name")
        is_sidecar = container.get("restartPolicy") == "Always"
        if is_sidecar or podspec.is_traffic_sidecar(container) or name in options.without:
            continue
        written = [
            f"{volume.get('name')} ({path})"
            for volume, path in _shared(spec, container)
            if not (options.read_only_claims and volume.get("persistentVolumeClaim"))
        ]
        if written:
            yield Finding(
                code="sister-init-container",
                severity=Severity.WARNING,
                where=f"{target.reference} init container {name}",
                fact=f"it runs once more in the copy, and may write to {', '.join(written)}, "
                "which production's pods share",
                remedy=f"see that a second run changes nothing there; else --without {name}, or "
                "--read-only-claims, which lets it write to no claim",
            )
