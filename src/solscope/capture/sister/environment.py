"""A container's environment: other profilers and peers out, secrets by reference only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from solscope.capture.sister import secrecy
from solscope.model.cluster import KubernetesObject
from solscope.model.sister import Action, Change

ALWAYS_UNSET = (
    "CUDA_INJECTION64_PATH",
    "CUDA_INJECTION32_PATH",
    "NVTX_INJECTION64_PATH",
    "NV_NCU_INJECTION64_PATH",
)
"""Removed from ncu's process as well: an image, ``envFrom`` or a webhook may still set them."""

_OTHER_PROFILERS = re.compile(
    r"ZYM|NV_NSIGHT_|NV_TPS_|NV_CUDA_START_SUSPENDED$|NV_COMPUTE_PROFILER_PERFWORKS_DIR$|PARCA_|"
    r"NSYS_|KINETO_USE_DAEMON$|VLLM_TORCH_PROFILER_DIR$"
)
_PRELOADED = re.compile(r"zymtrace|parca|nsys|nsight|inject|cupti", re.IGNORECASE)
_PEERS = re.compile(
    r"VLLM_NIXL_SIDE_CHANNEL_|LMCACHE_|MOONCAKE_|DYN_|DYNAMO_|RAY_ADDRESS$|RAY_HEAD|"
    r"ETCD_ENDPOINTS$|NATS_(?:SERVER|URL)$|VLLM_DP_MASTER_|"
    r"SGLANG_DISAGGREGATION_|PD_BOOTSTRAP"
)
_TRACES = re.compile(r"OTEL_EXPORTER_OTLP_.*(?:ENDPOINT|HEADERS)$|OTEL_TRACES_EXPORTER$")
_SERVER_KEYS = frozenset({"VLLM_API_KEY", "SGLANG_API_KEY"})

READ_FROM = {"--hf-token": "HF_TOKEN"}
"""Where an engine finds a secret that an option would have told it."""

PROFILER_WHY = "another profiler would hold the one injection slot or the counters"
PEER_WHY = "would join a peer, a registry or a shared cache"
TRACE_WHY = "would mix the sister's requests into production's traces"
DEVICES_WHY = "the node says which GPUs are its own; this names others' as well"
KEY_WHY = "nobody else calls the sister, so it needs no key"


def clean(
    container: dict[str, Any], path: str, *, unset: tuple[str, ...], secret_name: str
) -> tuple[list[Change], list[str]]:
    """Clean ``container["env"]`` in place; return the changes and the secrets not copied.

    A plain secret becomes an optional reference to the key of the same name in a Secret
    ``secret_name`` that the user makes.
    """
    kept: list[dict[str, Any]] = []
    changes: list[Change] = []
    secrets: list[str] = []
    for entry in container.get("env") or ():
        name, value = str(entry.get("name")), str(entry.get("value") or "")
        here = f"{path}.env[{name}]"
        why = _why_removed(name, value, unset)
        if why is not None:
            changes.append(Change(path=here, action=Action.REMOVED, what=name, why=why))
            continue
        if secrecy.is_secret(name, value):
            entry = _reference(name, secret_name)
            secrets.append(name)
            what = f"plain value -> optional key {name} of Secret {secret_name}"
            why = "secrets are referenced, never copied"
            changes.append(Change(path=here, action=Action.CHANGED, what=what, why=why))
        kept.append(entry)
    if "env" in container:
        container["env"] = kept
        if not kept:
            del container["env"]
    return changes, secrets


def foreign(values: Mapping[str, str]) -> list[str]:
    """The names among ``values`` that a sister must not have."""
    return [name for name, value in values.items() if reason(name, value) is not None]


def reason(name: str, value: str) -> str | None:
    """Why a sister must not have a variable; ``None`` where it may."""
    return _why_removed(name, value, ())


def from_maps(
    container: Mapping[str, Any], objects: Iterable[KubernetesObject]
) -> tuple[dict[str, str], list[str]]:
    """What ``envFrom`` sets, as far as its ConfigMaps were seen, and the sources that were not."""
    seen = {
        str((item.get("metadata") or {}).get("name")): item.get("data") or {}
        for item in objects
        if item.get("kind") == "ConfigMap"
    }
    values: dict[str, str] = {}
    unseen: list[str] = []
    for entry in container.get("envFrom") or ():
        kind = "ConfigMap" if entry.get("configMapRef") else "Secret"
        reference = entry.get("configMapRef") or entry.get("secretRef") or {}
        name = str(reference.get("name"))
        if kind == "Secret" or name not in seen:
            unseen.append(f"{kind}/{name}")
            continue
        prefix = entry.get("prefix") or ""
        values |= {f"{prefix}{key}": str(value) for key, value in seen[name].items()}
    return values, unseen


def _why_removed(name: str, value: str, unset: tuple[str, ...]) -> str | None:
    if name in ALWAYS_UNSET or name in unset or _OTHER_PROFILERS.match(name):
        return PROFILER_WHY
    if name == "LD_PRELOAD" and _PRELOADED.search(value):
        return PROFILER_WHY
    if _PEERS.match(name):
        return PEER_WHY
    if _TRACES.match(name):
        return TRACE_WHY
    if name in _SERVER_KEYS:
        return KEY_WHY
    if name == "NVIDIA_VISIBLE_DEVICES" and value not in ("", "void", "none"):
        return DEVICES_WHY
    return None


def _reference(name: str, secret_name: str) -> dict[str, Any]:
    key = {"name": secret_name, "key": name, "optional": True}
    return {"name": name, "valueFrom": {"secretKeyRef": key}}


def rename(container: dict[str, Any], path: str, names: Iterable[str], wanted: str) -> list[Change]:
    """Set ``wanted`` from where one of ``names`` has its value, unless it is set already."""
    entries = container.get("env") or []
    if any(entry.get("name") == wanted for entry in entries):
        return []
    for entry in [item for item in entries if item.get("name") in tuple(names)]:
        entries.append({**entry, "name": wanted})
        what = f"{wanted}, from where {entry['name']} has its value"
        why = "the option that told it is removed"
        return [Change(path=f"{path}.env[{wanted}]", action=Action.ADDED, what=what, why=why)]
    return []


def put(container: dict[str, Any], path: str, values: Mapping[str, str], why: str) -> list[Change]:
    """Set variables, replacing those of the same name."""
    changes: list[Change] = []
    for name, value in values.items():
        entries = container.setdefault("env", [])
        before = [entry for entry in entries if entry.get("name") == name]
        entries[:] = [entry for entry in entries if entry.get("name") != name]
        entries.append({"name": name, "value": value})
        action = Action.CHANGED if before else Action.ADDED
        changes.append(
            Change(path=f"{path}.env[{name}]", action=action, what=f"{name}={value}", why=why)
        )
    return changes
