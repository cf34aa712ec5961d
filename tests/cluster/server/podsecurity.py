"""Pod Security admission: baseline and restricted, worded as the server words them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.cluster.server.status import Json

ENFORCE = "pod-security.kubernetes.io/enforce"
WARN = "pod-security.kubernetes.io/warn"

_BASELINE_CAPABILITIES = {
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
}
_RESTRICTED_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
_SECCOMP_ALLOWED = ("RuntimeDefault", "Localhost")


def violations(spec: Json, level: str, *, only: list[Json] | None = None) -> str:
    """What a pod spec breaks, as one comma-separated text; empty where it breaks nothing.

    ``only`` limits the checks of containers to these (an update of ephemeral containers).
    """
    if level not in ("baseline", "restricted"):
        return ""
    fields = ("initContainers", "containers", "ephemeralContainers")
    every = [c for field in fields for c in spec.get(field) or []]
    containers = every if only is None else only
    checks = [_privileged(containers), _host_namespaces(spec)]
    if level == "baseline":
        checks += [_baseline_capabilities(containers), _host_path(spec)]
    else:
        checks += [
            _escalation(containers),
            _restricted_capabilities(containers),
            _volumes(spec),
            _non_root(spec, containers),
            _seccomp(spec, containers),
        ]
    return ", ".join(text for text in checks if text)


def refusal(level: str, text: str) -> str:
    """The words after "is forbidden:"."""
    return f'violates PodSecurity "{level}:latest": {text}'


def _context(body: Json) -> Json:
    return body.get("securityContext") or {}


def _named(containers: list[Json]) -> str:
    names = ", ".join(f'"{c["name"]}"' for c in containers)
    return f"container{'s' if len(containers) > 1 else ''} {names}"


def _privileged(containers: list[Json]) -> str:
    bad = [c for c in containers if _context(c).get("privileged") is True]
    if not bad:
        return ""
    return f"privileged ({_named(bad)} must not set securityContext.privileged=true)"


def _host_namespaces(spec: Json) -> str:
    bad = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return f"host namespaces ({', '.join(bad)})" if bad else ""


def _added(container: Json) -> list[str]:
    return list((_context(container).get("capabilities") or {}).get("add") or [])


def _quoted(names: Iterator[str] | list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _baseline_capabilities(containers: list[Json]) -> str:
    bad = [c for c in containers if set(_added(c)) - _BASELINE_CAPABILITIES]
    if not bad:
        return ""
    names = sorted({cap for c in bad for cap in _added(c)} - _BASELINE_CAPABILITIES)
    where = "securityContext.capabilities.add"
    return f"non-default capabilities ({_named(bad)} must not include {_quoted(names)} in {where})"


def _host_path(spec: Json) -> str:
    bad = [v["name"] for v in spec.get("volumes") or [] if v.get("hostPath")]
    if not bad:
        return ""
    return f"hostPath volumes (volume{'s' if len(bad) > 1 else ''} {_quoted(bad)})"


def _escalation(containers: list[Json]) -> str:
    bad = [c for c in containers if _context(c).get("allowPrivilegeEscalation") is not False]
    if not bad:
        return ""
    rule = "must set securityContext.allowPrivilegeEscalation=false"
    return f"allowPrivilegeEscalation != false ({_named(bad)} {rule})"


def _restricted_capabilities(containers: list[Json]) -> str:
    def drops_all(container: Json) -> bool:
        return "ALL" in ((_context(container).get("capabilities") or {}).get("drop") or [])

    parts = []
    keeping = [c for c in containers if not drops_all(c)]
    if keeping:
        parts.append(f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    adding = [c for c in containers if set(_added(c)) - {"NET_BIND_SERVICE"}]
    if adding:
        names = sorted({cap for c in adding for cap in _added(c)} - {"NET_BIND_SERVICE"})
        where = "securityContext.capabilities.add"
        parts.append(f"{_named(adding)} must not include {_quoted(names)} in {where}")
    return f"unrestricted capabilities ({'; '.join(parts)})" if parts else ""


def _volumes(spec: Json) -> str:
    bad: list[tuple[str, str]] = []
    for volume in spec.get("volumes") or []:
        kinds = [k for k in volume if k != "name" and k not in _RESTRICTED_VOLUMES]
        bad.extend((volume["name"], kind) for kind in kinds)
    if not bad:
        return ""
    listed = "; ".join(f'volume "{n}" uses restricted volume type "{k}"' for n, k in bad)
    return f"restricted volume types ({listed})"


def _non_root(spec: Json, containers: list[Json]) -> str:
    pod = _context(spec).get("runAsNonRoot")

    def holds(container: Json) -> bool:
        return _context(container).get("runAsNonRoot", pod) is True

    return _pod_or_container(
        "runAsNonRoot != true",
        [c for c in containers if not holds(c)],
        "must set securityContext.runAsNonRoot=true",
    )


def _seccomp(spec: Json, containers: list[Json]) -> str:
    def kind(context: Json) -> Any:
        return (context.get("seccompProfile") or {}).get("type")

    pod = kind(_context(spec))
    bad = [c for c in containers if (kind(_context(c)) or pod) not in _SECCOMP_ALLOWED]
    rule = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return _pod_or_container("seccompProfile", bad, rule)


def _pod_or_container(title: str, bad: list[Json], rule: str) -> str:
    return f"{title} (pod or {_named(bad)} {rule})" if bad else ""
