"""ncu brought into the server's container, and the sidecar that keeps the results reachable.

The tools' folder, the results' folder and the sidecar stand in the sister's own spec: nothing can
be added to a pod that runs. The sidecar runs the server's own image, so that it needs no further
pull, has the server's user, and can read what ncu wrote.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from solscope.model.plan import CapturePlan, Strategy
from solscope.model.sister import Action, Change, SisterOptions, ToolsSource

DEFAULT_IMAGE = (
    "ghcr.io/cfregly/nsys-sidecar:0.1.0"
    "@sha256:3146de96f6022a8cc36f86d1b8c0281cb940e51e2c3dc49c315646ad66ede43d"
)
"""Holds ncu 2026.1.1 and nsys 2025.6.3; 11.87 GB; readable without a pull secret."""

BLACKWELL_IMAGE = "nvcr.io/nvidia/pytorch:26.05-py3"
"""NVIDIA's own image, also for arm64: Blackwell with CUDA 13."""

TOOLS, RESULTS = "/solscope/tools", "/solscope/results"
TOOLS_VOLUME, RESULTS_VOLUME = "solscope-tools", "solscope-results"
CACHES_VOLUME = "solscope-caches"
RESULTS_SIDECAR, TOOLS_CONTAINER = "solscope-results", "solscope-tools"
COLLECTED = f"{RESULTS}/.collected"

# An Nsight Compute folder is one to two gigabytes.
TOOLS_GIB = 4
# Compiled kernels of one model, where they stay in the pod.
CACHES_GIB = 8
GIB = 1 << 30
# For Nsight Compute's folder in CUDA images, NGC images and Debian packages.
_PLACES = (
    "/opt/nvidia/nsight-compute/*/ncu",
    "/usr/local/cuda/nsight-compute*/ncu",
    "/usr/local/NVIDIA-Nsight-Compute*/ncu",
)
# Without it, a CUDA image under a legacy nvidia runtime is given every GPU of the node.
_NO_GPU = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
_UNPRIVILEGED_USER = 65532


def default_image(plan: CapturePlan) -> str:
    """The tools image that fits the plan's chip."""
    blackwell = plan.chip.upper().startswith(("GB1", "GB2"))
    capability = plan.compute_capability or ""
    return BLACKWELL_IMAGE if blackwell or capability.startswith(("10.", "12.")) else DEFAULT_IMAGE


def ncu_path(options: SisterOptions) -> str:
    """Where ncu lies inside the server's container."""
    if options.tools is ToolsSource.IN_IMAGE:
        return options.ncu or "ncu"
    if options.tools is ToolsSource.IMAGE_VOLUME:
        return TOOLS + (options.ncu or "")
    return f"{TOOLS}/nsight-compute/ncu"


def install(
    spec: dict[str, Any],
    server: dict[str, Any],
    *,
    plan: CapturePlan,
    options: SisterOptions,
    image: str,
    arbitrary_user: bool,
) -> Iterator[Change]:
    """Add volumes, mounts and the two helpers to a pod spec; ``server`` is the profiled one.

    ``arbitrary_user`` means that the cluster assigns user ids itself, as OpenShift does.
    """
    results_gib = _results_gib(plan)
    volumes = spec.setdefault("volumes", [])
    volumes.append({"name": RESULTS_VOLUME, "emptyDir": {"sizeLimit": f"{results_gib}Gi"}})
    yield _added(f"spec.volumes[{RESULTS_VOLUME}]", "emptyDir", "reports are written here")
    mounts = server.setdefault("volumeMounts", [])
    mounts.append({"name": RESULTS_VOLUME, "mountPath": RESULTS})
    where = f"spec.containers[{server['name']}].volumeMounts"
    yield _added(f"{where}[{RESULTS}]", RESULTS_VOLUME, "reports are written here")
    helpers: list[dict[str, Any]] = []
    copied = options.tools is ToolsSource.INIT_CONTAINER
    if options.tools is not ToolsSource.IN_IMAGE:
        volumes.append(_tools_volume(options, image))
        mounts.append({"name": TOOLS_VOLUME, "mountPath": TOOLS, "readOnly": True})
        how = "emptyDir" if copied else f"image {image}"
        yield _added(f"spec.volumes[{TOOLS_VOLUME}]", how, "brings ncu")
        yield _added(f"{where}[{TOOLS}]", f"{TOOLS_VOLUME}, read-only", "brings ncu")
    if copied:
        helpers.append(_copier(server, spec, options, image, arbitrary_user))
        what = f"init container, copies Nsight Compute from {image}"
        yield _added(f"spec.initContainers[{TOOLS_CONTAINER}]", what, "brings ncu")
    helpers.append(_sidecar(server, spec, plan, options, results_gib))
    yield _added(
        f"spec.initContainers[{RESULTS_SIDECAR}]",
        "native sidecar with the server's own image",
        "keeps the results reachable after the server has ended",
    )
    if _limit(spec) is not None:
        yield _added(
            f"spec.initContainers[{RESULTS_SIDECAR}].resources",
            f"ephemeral-storage {_room(spec, options, results_gib)}Gi",
            "the pod has a limit that tools and reports count against, and would be evicted",
        )
    spec["initContainers"] = [*helpers, *(spec.get("initContainers") or ())]


def room_to_write(spec: dict[str, Any], server: dict[str, Any]) -> Iterator[Change]:
    """Give a container with a read-only root a ``/tmp``: ncu locks and unpacks there."""
    if not (server.get("securityContext") or {}).get("readOnlyRootFilesystem"):
        return
    if any(mount.get("mountPath") == "/tmp" for mount in server.get("volumeMounts") or ()):
        return
    spec.setdefault("volumes", []).append({"name": "solscope-tmp", "emptyDir": {}})
    server.setdefault("volumeMounts", []).append({"name": "solscope-tmp", "mountPath": "/tmp"})
    why = "the root is read-only and ncu writes its lock and files under /tmp"
    yield _added("spec.volumes[solscope-tmp]", "emptyDir", why)
    where = f"spec.containers[{server['name']}].volumeMounts[/tmp]"
    yield _added(where, "solscope-tmp", why)


def allow_counters(server: dict[str, Any]) -> Iterator[Change]:
    """Give the server CAP_SYS_ADMIN, for drivers that reserve counters for admins."""
    context = server.setdefault("securityContext", {})
    path = f"spec.containers[{server['name']}].securityContext"
    capabilities = context.setdefault("capabilities", {})
    added = capabilities.setdefault("add", [])
    if "SYS_ADMIN" not in added:
        added.append("SYS_ADMIN")
        yield _added(f"{path}.capabilities", "SYS_ADMIN", "the driver reserves GPU counters")
    # A capability has no effect for another user, and cannot stand beside "no escalation".
    for key, value in (
        ("runAsUser", 0),
        ("runAsNonRoot", False),
        ("allowPrivilegeEscalation", True),
    ):
        if key in context and context[key] == value:
            continue
        if key == "allowPrivilegeEscalation" and key not in context:
            continue
        context[key] = value
        why = "SYS_ADMIN takes effect for root only"
        action = Action.CHANGED
        yield Change(path=f"{path}.{key}", action=action, what=f"{key}: {value}", why=why)


def _tools_volume(options: SisterOptions, image: str) -> dict[str, Any]:
    if options.tools is ToolsSource.IMAGE_VOLUME:
        reference = {"reference": image, "pullPolicy": "IfNotPresent"}
        return {"name": TOOLS_VOLUME, "image": reference}
    return {"name": TOOLS_VOLUME, "emptyDir": {"sizeLimit": f"{TOOLS_GIB}Gi"}}


def _results_gib(plan: CapturePlan) -> int:
    """Room for four times the expected report, two gigabytes at least."""
    expected = plan.cost.report_bytes or 0
    return max(2, -(-int(expected * 4) // GIB))


def _room(spec: Mapping[str, Any], options: SisterOptions, results_gib: int) -> int:
    copied = options.tools is ToolsSource.INIT_CONTAINER
    caches = any(volume.get("name") == CACHES_VOLUME for volume in spec.get("volumes") or ())
    return results_gib + (TOOLS_GIB if copied else 0) + (CACHES_GIB if caches else 0) + 1


def _limit(spec: Mapping[str, Any]) -> str | None:
    """The first ephemeral-storage limit of any container; with one, the kubelet adds all up."""
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            limits = (container.get("resources") or {}).get("limits") or {}
            if "ephemeral-storage" in limits:
                return str(limits["ephemeral-storage"])
    return None


def _copier(
    server: Mapping[str, Any],
    spec: Mapping[str, Any],
    options: SisterOptions,
    image: str,
    arbitrary_user: bool,
) -> dict[str, Any]:
    size = {"cpu": "500m", "memory": "1Gi"}
    context = helper_security(server, spec)
    pod = spec.get("securityContext") or {}
    must_not_be_root = context.get("runAsNonRoot", pod.get("runAsNonRoot"))
    if must_not_be_root and not ({"runAsUser"} & {*context, *pod}) and not arbitrary_user:
        # The tools image's own user is root, which the kubelet would refuse to start.
        context["runAsUser"] = _UNPRIVILEGED_USER
    return {
        "name": TOOLS_CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", copy_script(options.ncu)],
        "env": [dict(_NO_GPU)],
        "resources": {"requests": dict(size), "limits": dict(size)},
        "securityContext": context,
        "volumeMounts": [{"name": TOOLS_VOLUME, "mountPath": TOOLS}],
    }


def copy_script(ncu: str | None) -> str:
    """The script that finds Nsight Compute in the tools image and copies its folder."""
    places = shlex.quote(ncu) if ncu else " ".join(_PLACES)
    return "\n".join(
        (
            "set -eu",
            "found=",
            f'for path in {places}; do if [ -x "$path" ]; then found=$path; fi; done',
            'if [ -z "$found" ]; then echo "no ncu in this image" >&2; exit 1; fi',
            f'cp -R "$(dirname "$(readlink -f "$found")")" {TOOLS}/nsight-compute',
            f"{TOOLS}/nsight-compute/ncu --version",
            "",
        )
    )


def hold_script() -> str:
    """The sidecar's script: wait; once told to end, wait until the results are collected."""
    return "\n".join(
        (
            # The server has ended by itself, or the pod is being deleted: in both cases the
            # grace period bounds the wait.
            f"hold() {{ until [ -e {COLLECTED} ]; do sleep 1; done; exit 0; }}",
            "trap hold TERM",
            "while :; do sleep 3600 & wait $!; done",
            "",
        )
    )


def _sidecar(
    server: Mapping[str, Any],
    spec: Mapping[str, Any],
    plan: CapturePlan,
    options: SisterOptions,
    results_gib: int,
) -> dict[str, Any]:
    size = {"cpu": "100m", "memory": "512Mi"}
    if plan.strategy in (Strategy.ATTACH, Strategy.PRELOAD):
        # The second ncu runs here and builds the report.
        size = {"cpu": "1", "memory": "2Gi"}
    if _limit(spec) is not None:
        # The server's own limit stays as it is; the sidecar brings the room for both folders.
        size["ephemeral-storage"] = f"{_room(spec, options, results_gib)}Gi"
    mounts: list[dict[str, Any]] = [{"name": RESULTS_VOLUME, "mountPath": RESULTS}]
    if options.tools is not ToolsSource.IN_IMAGE:
        mounts.append({"name": TOOLS_VOLUME, "mountPath": TOOLS, "readOnly": True})
    sidecar: dict[str, Any] = {
        "name": RESULTS_SIDECAR,
        "image": server.get("image", ""),
        "restartPolicy": "Always",
        "command": ["sh", "-c", hold_script()],
        "env": [dict(_NO_GPU)],
        "resources": {"requests": dict(size), "limits": dict(size)},
        "securityContext": helper_security(server, spec),
        "volumeMounts": mounts,
    }
    if server.get("imagePullPolicy"):
        sidecar["imagePullPolicy"] = "IfNotPresent"
    return sidecar


def helper_security(server: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """The server's user, and no privilege: passes the ``restricted`` level if the server does."""
    own = server.get("securityContext") or {}
    context = {key: own[key] for key in ("runAsUser", "runAsGroup", "runAsNonRoot") if key in own}
    context["allowPrivilegeEscalation"] = False
    context["capabilities"] = {"drop": ["ALL"]}
    context["seccompProfile"] = {"type": "RuntimeDefault"}
    return context


def _added(path: str, what: str, why: str) -> Change:
    return Change(path=path, action=Action.ADDED, what=what, why=why)
