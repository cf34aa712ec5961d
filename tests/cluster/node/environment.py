"""A container's command line and environment, expanded as the kubelet does."""

from __future__ import annotations

import re

from tests.cluster.node.images import Image
from tests.cluster.node.sandbox import map_data
from tests.cluster.server.resources import BY_KEY
from tests.cluster.server.status import Json
from tests.cluster.server.store import Store

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class ConfigError(Exception):
    """A container cannot be made from its spec."""


def expand(text: str, env: dict[str, str]) -> str:
    """Replace ``$(NAME)``; unknown names stay as they are, ``$$`` is one dollar."""

    def one(found: re.Match[str]) -> str:
        if found.group(0) == "$$":
            return "$"
        return env.get(found.group(1), found.group(0))

    return _REFERENCE.sub(one, text)


def variables(store: Store, pod: Json, container: Json, image: Image) -> dict[str, str]:
    """The environment. Raises ConfigError for a missing map or secret."""
    env = {"PATH": image.path, "HOSTNAME": pod["metadata"]["name"], "HOME": "/root"}
    env.update(image.env)
    env["KUBERNETES_SERVICE_HOST"] = "10.96.0.1"
    limits = (container.get("resources") or {}).get("limits") or {}
    if "nvidia.com/gpu" in limits:
        env["NVIDIA_VISIBLE_DEVICES"] = "GPU-00000000-0000-0000-0000-000000000000"
    namespace = pod["metadata"]["namespace"]
    for source in container.get("envFrom") or []:
        for field, plural in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
            if field in source:
                entries = _entries(store, plural, namespace, source[field])
                prefix = source.get("prefix", "")
                env.update({prefix + name: data.decode() for name, data in entries.items()})
    for entry in container.get("env") or []:
        if "valueFrom" in entry:
            env[entry["name"]] = _referenced(store, pod, entry["valueFrom"])
        else:
            env[entry["name"]] = expand(entry.get("value", ""), env)
    return env


def _entries(store: Store, plural: str, namespace: str, source: Json) -> dict[str, bytes]:
    found = store.get(BY_KEY[plural], namespace, source["name"])
    if found is None:
        if source.get("optional"):
            return {}
        kind = "configmap" if plural == "configmaps" else "secret"
        raise ConfigError(f'{kind} "{source["name"]}" not found')
    return map_data(found)


def _referenced(store: Store, pod: Json, source: Json) -> str:
    for field, plural in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        if field in source:
            entries = _entries(store, plural, pod["metadata"]["namespace"], source[field])
            key = source[field]["key"]
            if key not in entries and not source[field].get("optional"):
                raise ConfigError(f"couldn't find key {key} in {plural}")
            return entries.get(key, b"").decode()
    path = (source.get("fieldRef") or {}).get("fieldPath", "")
    node: object = pod
    for part in path.split("."):
        node = node.get(part, "") if isinstance(node, dict) else ""
    return str(node)


def command_line(container: Json, image: Image, env: dict[str, str]) -> list[str]:
    """Command and arguments: the spec's where it has them, else the image's."""
    command, args = container.get("command"), container.get("args")
    by_image = [*image.entrypoint, *(args or image.command)]
    line = [*command, *(args or [])] if command else by_image
    return [expand(part, env) for part in line]
