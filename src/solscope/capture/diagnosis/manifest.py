"""Structured evidence (a manifest, a small JSON of facts) as ``key: value`` pairs and facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from solscope.capture.diagnosis import nesting
from solscope.capture.diagnosis.scanning import Facts

MOST_PAIRS = 5000


def parse(text: str, name: str) -> list[Any] | None:
    """The documents of a JSON or YAML text, or ``None`` where it is neither."""
    low = name.lower()
    begins = text.lstrip()[:1]
    if begins in ("{", "["):
        try:
            return [nesting.decoded(text)]
        except ValueError:  # no JSON, or nested deeper than any manifest
            pass
    if low.endswith((".yaml", ".yml")) or "apiVersion:" in text or "\nspec:" in f"\n{text}":
        import yaml

        try:
            found = [d for d in yaml.safe_load_all(text) if isinstance(d, dict | list)]
        except (yaml.YAMLError, RecursionError):
            return None
        return found or None
    return None


def pairs(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each leaf as (path, ``key: value``). A list item carries the name of its list; an item of
    the form ``{name, value}`` (an environment entry) also gives ``NAME=value``."""
    if isinstance(value, dict):
        if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
            yield f"{path}[{value['name']}]", f"{value['name']}={value['value']}"
        for key, inner in value.items():
            below = f"{path}.{key}" if path else str(key)
            if isinstance(inner, dict | list):
                yield from pairs(inner, below)
            else:
                yield below, f"{key}: {_plain(inner)}"
    elif isinstance(value, list):
        key = path.rsplit(".", 1)[-1]
        if value and all(isinstance(v, str) for v in value):
            yield path, f"{key}: {' '.join(value)}"
        for index, inner in enumerate(value):
            if isinstance(inner, dict | list):
                yield from pairs(inner, f"{path}[{index}]")
            else:
                yield f"{path}[{index}]", f"{key}: {_plain(inner)}"


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def pods(document: Any) -> Iterator[dict[str, Any]]:
    """Every pod spec in a document: of a pod, of a template, of the items of a list."""
    if isinstance(document, list):
        for item in document:
            yield from pods(item)
    elif isinstance(document, dict):
        if isinstance(document.get("containers"), list):
            yield document
            return
        for value in document.values():
            if isinstance(value, dict | list):
                yield from pods(value)


def state(documents: list[Any], name: str, facts: Facts) -> None:
    """Add the facts of pod specs that need more than one field to be seen."""
    for document in documents:
        if isinstance(document, dict) and {"apiVersion", "kind"} <= document.keys():
            kind = str(document["kind"])
            facts.add("manifest", name, f"kind: {kind}", {"kind": kind})
        for spec in pods(document):
            for container in [*spec["containers"], *(spec.get("ephemeralContainers") or [])]:
                if isinstance(container, dict):
                    _state_container(container, spec, name, facts)
        if isinstance(document, dict) and "targetContainerName" in document:
            _state_ephemeral(document, name, facts)
        if isinstance(document, dict) and set(document) <= {"resources", "name", "image"}:
            _state_gpu(document, name, facts)


def _state_container(
    container: dict[str, Any], spec: dict[str, Any], name: str, facts: Facts
) -> None:
    label = str(container.get("name", "?"))
    where = f"{name}:{label}"
    if "targetContainerName" in container:
        _state_ephemeral(container, name, facts)
    security = container.get("securityContext") or {}
    volumes = {v.get("name"): v for v in spec.get("volumes") or [] if isinstance(v, dict)}
    mounts = [m for m in container.get("volumeMounts") or [] if isinstance(m, dict)]
    writable = [
        m
        for m in mounts
        if str(m.get("mountPath", "")).rstrip("/") in ("/tmp", "")
        and not m.get("readOnly")
        and (not volumes or m.get("name") in volumes or not m.get("name"))
    ]
    if security.get("readOnlyRootFilesystem") and not writable:
        facts.add(
            "no-writable-tmp",
            where,
            "readOnlyRootFilesystem: true, nothing at /tmp",
            {"container": label},
        )
    if "resources" in container:
        _state_gpu(container, name, facts)
    for probe in ("livenessProbe", "startupProbe"):
        _state_probe(container.get(probe), probe, where, facts)


def _state_gpu(container: dict[str, Any], name: str, facts: Facts) -> None:
    resources = container.get("resources") or {}
    wanted = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    if not any("gpu" in key or "nvidia.com/" in key for key in wanted) and not resources.get(
        "claims"
    ):
        label = str(container.get("name", "?"))
        facts.add(
            "no-gpu-requested",
            f"{name}:{label}",
            "no nvidia.com/gpu in its resources",
            {"container": label},
        )


def _state_probe(probe: Any, kind: str, where: str, facts: Facts) -> None:
    """Kubernetes gives up after ``failureThreshold`` failed probes, ``periodSeconds`` apart
    (defaults 3 and 10 s, by the API reference)."""
    if not isinstance(probe, dict):
        return
    seconds = int(probe.get("periodSeconds", 10)) * int(probe.get("failureThreshold", 3))
    facts.add(
        "probe-kill-time",
        where,
        f"{kind}: silent for {seconds} s is fatal",
        {"seconds": str(seconds), "probe": kind},
    )


def _state_ephemeral(container: dict[str, Any], name: str, facts: Facts) -> None:
    security = container.get("securityContext") or {}
    added = (security.get("capabilities") or {}).get("add") or []
    if "SYS_PTRACE" not in added and "ALL" not in added and not security.get("privileged"):
        label = str(container.get("name", "?"))
        facts.add(
            "debug-container-without-ptrace",
            f"{name}:{label}",
            "no SYS_PTRACE in its capabilities",
            {"name": label},
        )
