"""A pod template as Kubernetes writes it to PodSnapshot: defaults filled in, secrets left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from solscope.cluster.quantity import quantity
from solscope.cluster.secrecy import is_secret
from solscope.model.cluster import (
    ContainerSecurity,
    ContainerSnapshot,
    EnvVar,
    PodSnapshot,
    Probe,
    ProbeKind,
)

_ACCELERATOR = re.compile(
    r"nvidia\.com/(?:gpu|mig-|pgpu|vgpu)|amd\.com/gpu|gpu\.intel\.com/|google\.com/tpu|"
    r"habana\.ai/|aws\.amazon\.com/neuron|huawei\.com/|^gpu$"
)
_HANDLERS = ("httpGet", "tcpSocket", "exec", "grpc")


def pod(template: Mapping[str, Any]) -> PodSnapshot:
    """A pod or a pod template (``metadata``, ``spec``, perhaps ``status``)."""
    metadata, spec = _map(template.get("metadata")), _map(template.get("spec"))
    status = _map(template.get("status"))
    context = _map(spec.get("securityContext"))
    states = [s for s in status.get("containerStatuses") or () if isinstance(s, dict)]
    return PodSnapshot(
        name=metadata.get("name"),
        containers=tuple(_container(c, context) for c in _maps(spec.get("containers"))),
        init_containers=tuple(
            _container(c, context, is_init=True) for c in _maps(spec.get("initContainers"))
        ),
        labels=_strings(metadata.get("labels")),
        annotations=_strings(metadata.get("annotations")),
        node=spec.get("nodeName"),
        phase=status.get("phase"),
        node_selector=_selected(spec),
        runtime_class=spec.get("runtimeClassName"),
        priority_class=spec.get("priorityClassName"),
        priority=spec.get("priority"),
        service_account=spec.get("serviceAccountName"),
        service_links=spec.get("enableServiceLinks") is not False,
        host_network=bool(spec.get("hostNetwork")),
        host_pid=bool(spec.get("hostPID")),
        host_ipc=bool(spec.get("hostIPC")),
        share_process_namespace=bool(spec.get("shareProcessNamespace")),
        resource_claims=tuple(_claims(spec)),
        volumes={str(v.get("name")): _volume_kind(v) for v in _maps(spec.get("volumes"))},
        restarts=sum(int(s.get("restartCount") or 0) for s in states) if states else None,
        is_ready=all(bool(s.get("ready")) for s in states) if states else None,
        raw=template,
    )


def _container(
    raw: Mapping[str, Any], context: Mapping[str, Any], *, is_init: bool = False
) -> ContainerSnapshot:
    resources = _map(raw.get("resources"))
    limits, requests = _map(resources.get("limits")), _map(resources.get("requests"))
    resource, count = _accelerators(limits, requests)
    lifecycle = _map(raw.get("lifecycle"))
    return ContainerSnapshot(
        name=str(raw.get("name") or ""),
        image=str(raw.get("image") or ""),
        command=_words(raw.get("command")),
        args=_words(raw.get("args")),
        env=tuple(_env(entry) for entry in _maps(raw.get("env"))),
        env_from=tuple(_env_from(entry) for entry in _maps(raw.get("envFrom"))),
        gpus=count,
        gpu_resource=resource,
        memory_limit_bytes=_whole(limits.get("memory")),
        ephemeral_storage_limit_bytes=_whole(limits.get("ephemeral-storage")),
        probes=tuple(_probes(raw)),
        security=_security(_map(raw.get("securityContext")), context),
        mounts={
            str(m.get("mountPath")): str(m.get("name")) for m in _maps(raw.get("volumeMounts"))
        },
        lifecycle=tuple(sorted(lifecycle)),
        is_init=is_init,
        is_sidecar=is_init and raw.get("restartPolicy") == "Always",
        raw=raw,
    )


def _accelerators(limits: Mapping[str, Any], requests: Mapping[str, Any]) -> tuple[str | None, int]:
    for table in (limits, requests):
        for name, amount in table.items():
            if _ACCELERATOR.search(str(name)):
                return str(name), round(quantity(amount) or 0)
    return None, 0


def _probes(raw: Mapping[str, Any]) -> Iterator[Probe]:
    for kind in ProbeKind:
        body = _map(raw.get(f"{kind.value}Probe"))
        handler = next((h for h in _HANDLERS if h in body), None)
        if handler is None:
            continue
        detail = _map(body[handler])
        shown = str(detail.get("path") or detail.get("port") or handler)
        yield Probe(
            kind=kind,
            handler=f"{handler} {shown}" if shown != handler else handler,
            period_s=int(body.get("periodSeconds") or 10),
            failure_threshold=int(body.get("failureThreshold") or 3),
            timeout_s=int(body.get("timeoutSeconds") or 1),
            initial_delay_s=int(body.get("initialDelaySeconds") or 0),
        )


def _security(own: Mapping[str, Any], pods: Mapping[str, Any]) -> ContainerSecurity:
    def effective(name: str) -> Any:
        return own[name] if own.get(name) is not None else pods.get(name)

    capabilities = _map(own.get("capabilities"))
    return ContainerSecurity(
        privileged=own.get("privileged"),
        run_as_non_root=effective("runAsNonRoot"),
        run_as_user=effective("runAsUser"),
        read_only_root=own.get("readOnlyRootFilesystem"),
        allow_privilege_escalation=own.get("allowPrivilegeEscalation"),
        capabilities_added=_words(capabilities.get("add")),
        capabilities_dropped=_words(capabilities.get("drop")),
    )


def _env(entry: Mapping[str, Any]) -> EnvVar:
    name = str(entry.get("name") or "")
    origin = _map(entry.get("valueFrom"))
    if origin:
        kind = str(next(iter(origin)))
        body = origin[kind]
        detail = _map(body)
        where = detail.get("fieldPath") or detail.get("resource")
        where = where or f"{detail.get('name')}/{detail.get('key')}"
        is_ref = kind == "secretKeyRef"
        return EnvVar(name=name, origin=f"{kind.removesuffix('Ref')} {where}", is_secret=is_ref)
    value = "" if entry.get("value") is None else str(entry["value"])
    if is_secret(name, value):
        return EnvVar(name=name, is_secret=True)
    return EnvVar(name=name, value=value)


def _env_from(entry: Mapping[str, Any]) -> str:
    for kind in ("secretRef", "configMapRef"):
        if kind in entry:
            return f"{kind.removesuffix('Ref')} {_map(entry[kind]).get('name')}"
    return "unknown source"


def _claims(spec: Mapping[str, Any]) -> Iterator[str]:
    for claim in _maps(spec.get("resourceClaims")):
        template = claim.get("resourceClaimTemplateName")
        yield f"template {template}" if template else f"claim {claim.get('resourceClaimName')}"


def _selected(spec: Mapping[str, Any]) -> dict[str, str]:
    """Node labels that the pod insists on: nodeSelector and single-valued required affinity."""
    wanted = dict(_strings(spec.get("nodeSelector")))
    affinity = _map(_map(spec.get("affinity")).get("nodeAffinity"))
    required = _map(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = _maps(required.get("nodeSelectorTerms"))
    rules = [rule for term in terms for rule in _maps(term.get("matchExpressions"))]
    # Several terms are alternatives: none of them is insisted on.
    for rule in rules if len(terms) == 1 else []:
        values = list(rule.get("values") or [])
        if rule.get("operator") == "In" and len(values) == 1:
            wanted.setdefault(str(rule.get("key")), str(values[0]))
    return wanted


def _volume_kind(volume: Mapping[str, Any]) -> str:
    return next((str(key) for key in volume if key != "name"), "emptyDir")


def _whole(value: object) -> int | None:
    amount = quantity(value)
    return None if amount is None else round(amount)


def _words(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list | tuple) else ()


def _strings(value: object) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, Mapping) else {}


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _maps(value: object) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list | tuple):
        return ()
    return tuple(item for item in value if isinstance(item, Mapping))
