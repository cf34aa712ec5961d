"""The pod template, step by step: each step changes a copy in place and says what it changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solscope.capture.sister import selectors
from solscope.capture.sister.target import accelerators
from solscope.errors import UsageError
from solscope.model.sister import Action, Change

Spec = dict[str, Any]

_TRAFFIC_SIDECARS = re.compile(
    r"routing-proxy|routing-sidecar|istio-proxy|istio/proxyv2|linkerd|envoy|queue-proxy|"
    r"lmcache|model-agent|agent-injector",
    re.IGNORECASE,
)
# The last two bring files that the server reads: a bucket's, and secrets'. Without the first, the
# pod's volume is never mounted.
_KEPT_ANNOTATIONS = re.compile(
    r"container\.apparmor\.security\.beta\.kubernetes\.io/|io\.kubernetes\.cri-o\.|"
    r"gke-gcsfuse/|vault\.hashicorp\.com/"
)
_INJECTED_TOLERATIONS = frozenset(
    {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
)
_SERVICE_ACCOUNT_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

STAYS: Mapping[str, str] = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
"""What keeps the two node autoscalers from moving a pod."""

SHARED_MEMORY = "/dev/shm"

NEVER_READY = "solscope/isolated"
"""The condition of the sister's readiness gate."""

_LIVE_FIELDS: Mapping[str, str] = {
    "nodeName": "set by the scheduler in the live pod",
    "priority": "set by admission in the live pod",
    "preemptionPolicy": "set by admission in the live pod",
    "serviceAccount": "old name of serviceAccountName",
    "overhead": "set by admission from the runtime class",
    "ephemeralContainers": "a debugging session of the live pod",
}
_DROPPED: Mapping[str, str] = {
    "priorityClassName": "a sister of high priority could preempt production pods",
    "hostname": "a name in DNS that belongs to the target",
    "subdomain": "joins the DNS records of the target's Service",
    "setHostnameAsFQDN": "a name in DNS that belongs to the target",
    "topologySpreadConstraints": "counts the target's pods by labels that the sister lacks",
    "readinessGates": "waits for a condition that only the target's controllers set",
    "schedulingGates": "waits for a queue that does not know the sister",
    "activeDeadlineSeconds": "the Job sets its own",
    "hostPID": "production processes of the node stay out of sight",
}


def relabel(
    template: Spec, labels: Mapping[str, str], extra: frozenset[str] = frozenset()
) -> Iterator[Change]:
    """Give the pod new labels only, and drop the annotations that others act on.

    ``extra`` are the keys among ``labels`` that the user asked for.
    """
    old = template.get("metadata") or {}
    for key, value in (old.get("labels") or {}).items():
        if labels.get(key) != value:
            yield Change(
                path=f"metadata.labels[{key}]",
                action=Action.REMOVED,
                what=f"{key}={value}",
                why="Services, routers and controllers find pods by labels",
            )
    for key, value in labels.items():
        why = "asked for with --label" if key in extra else "names the experiment everywhere"
        yield Change(
            path=f"metadata.labels[{key}]", action=Action.ADDED, what=f"{key}={value}", why=why
        )
    kept = {}
    for key, value in (old.get("annotations") or {}).items():
        if _KEPT_ANNOTATIONS.match(key):
            kept[key] = value
            continue
        yield Change(
            path=f"metadata.annotations[{key}]",
            action=Action.REMOVED,
            what=key,
            why=_annotation_reason(key),
        )
    template["metadata"] = {"labels": dict(labels)} | ({"annotations": kept} if kept else {})


def _annotation_reason(key: str) -> str:
    if key.startswith(("prometheus.", "metrics.")):
        return "a scraped sister moves autoscalers that aggregate by model name"
    if key.startswith(("argocd", "meta.helm", "kustomize", "kubectl.", "fluxcd")):
        return "marks ownership: the sister would be pruned or overwritten"
    return "not known to be needed; controllers act on annotations"


def forget_the_live_pod(spec: Spec) -> Iterator[Change]:
    """Drop what scheduler and admission put into a live pod."""
    for key, why in _LIVE_FIELDS.items():
        if key in spec:
            del spec[key]
            yield _removed(f"spec.{key}", key, why)
    for volume in list(spec.get("volumes") or ()):
        if str(volume.get("name", "")).startswith("kube-api-access-"):
            spec["volumes"].remove(volume)
            yield _removed(
                f"spec.volumes[{volume['name']}]", volume["name"], "injected into the live pod"
            )
    for toleration in list(spec.get("tolerations") or ()):
        if toleration.get("key") in _INJECTED_TOLERATIONS and "tolerationSeconds" in toleration:
            spec["tolerations"].remove(toleration)
            key = toleration["key"]
            yield _removed(f"spec.tolerations[{key}]", key, "injected into the live pod")
    for path, container in containers(spec):
        for mount in list(container.get("volumeMounts") or ()):
            if mount.get("mountPath") == _SERVICE_ACCOUNT_MOUNT and str(
                mount.get("name", "")
            ).startswith("kube-api-access-"):
                container["volumeMounts"].remove(mount)
                where = f"{path}.volumeMounts[{_SERVICE_ACCOUNT_MOUNT}]"
                yield _removed(where, mount["name"], "injected into the live pod")
    for key in ("volumes", "tolerations"):
        if key in spec and not spec[key]:
            del spec[key]


def leave_the_cluster(spec: Spec, target_labels: Mapping[str, str]) -> Iterator[Change]:
    """Drop priority, DNS names, gates, spreading: what ties the pod to the target's others."""
    for key, why in _DROPPED.items():
        if key in spec:
            if spec[key] not in (None, False, [], ""):
                yield _removed(f"spec.{key}", f"{key}: {brief(spec[key])}", why)
            del spec[key]
    yield from _drop_anti_affinity(spec, target_labels)


def _drop_anti_affinity(spec: Spec, labels: Mapping[str, str]) -> Iterator[Change]:
    rules = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    for key in list(rules):
        kept = []
        for term in rules[key] or ():
            selector = (term.get("podAffinityTerm") or term).get("labelSelector") or {}
            if not selectors.matches(selector, labels):
                kept.append(term)
                continue
            path = f"spec.affinity.podAntiAffinity.{key}"
            why = "keeps the target's pods apart by labels that the sister lacks"
            yield _removed(path, selectors.show(selector), why)
        if kept:
            rules[key] = kept
        else:
            del rules[key]
    if spec.get("affinity") and "podAntiAffinity" in spec["affinity"] and not rules:
        del spec["affinity"]["podAntiAffinity"]
        if not spec["affinity"]:
            del spec["affinity"]


def containers(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """Every container with its path, init containers first."""
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            yield f"spec.{group}[{container.get('name')}]", container


_CONTAINER_FIELDS: Mapping[str, str] = {
    "livenessProbe": "replaying a kernel silences the server for longer than the probe allows",
    "readinessProbe": "nothing may wait for, or send to, the sister",
    "startupProbe": "starting under ncu takes longer than the probe allows",
    "lifecycle": "hooks are for traffic that the sister never gets",
    "ports": "host ports collide on the node, and pod monitors scrape declared ports",
}


def quieten(spec: Spec) -> Iterator[Change]:
    """Remove probes, lifecycle hooks and declared ports from every container."""
    for path, container in containers(spec):
        for key, why in _CONTAINER_FIELDS.items():
            if container.pop(key, None):
                yield _removed(f"{path}.{key}", key, why)
        for key in ("env", "volumeMounts"):
            # `env:` without a value is null, which the API server drops.
            if key in container and container[key] is None:
                del container[key]


def is_traffic_sidecar(container: Mapping[str, Any]) -> bool:
    """Whether a companion is known to route requests or to move the cache."""
    about = f"{container.get('name', '')} {container.get('image', '')}"
    return bool(_TRAFFIC_SIDECARS.search(about))


def leave_out(spec: Spec, names: Sequence[str], profiled: str) -> Iterator[Change]:
    """Remove containers that the user wants left out. Raises UsageError for one that is none."""
    companions = [c["name"] for _, c in containers(spec) if c["name"] != profiled]
    for name in names:
        if name not in companions:
            raise UsageError(
                f"no container {name!r} beside the server",
                where="--without",
                hint=f"the target has {', '.join(companions) or 'no other'}",
            )
        for group in ("initContainers", "containers"):
            kept = [c for c in spec.get(group) or () if c["name"] != name]
            if len(kept) != len(spec.get(group) or ()):
                yield _removed(f"spec.{group}[{name}]", name, "asked for with --without")
            if group in spec:
                spec[group] = kept
    if "initContainers" in spec and not spec["initContainers"]:
        del spec["initContainers"]


def drop_traffic_sidecars(spec: Spec, profiled: str) -> Iterator[Change]:
    """Remove companions whose work is to route requests or to move the cache."""
    for group in ("initContainers", "containers"):
        for container in list(spec.get(group) or ()):
            name = str(container.get("name", ""))
            if name == profiled or not is_traffic_sidecar(container):
                continue
            if group == "initContainers" and container.get("restartPolicy") != "Always":
                continue
            spec[group].remove(container)
            why = "routes requests or moves the cache; the sister serves only the capture"
            yield _removed(f"spec.{group}[{name}]", name, why)
        if group in spec and not spec[group]:
            del spec[group]


def demote_companions(spec: Spec, profiled: str) -> Iterator[Change]:
    """Turn other containers into native sidecars, so that a Job can end without them."""
    others = [c for c in spec.get("containers") or () if c.get("name") != profiled]
    for container in others:
        spec["containers"].remove(container)
        container["restartPolicy"] = "Always"
        spec.setdefault("initContainers", []).append(container)
        yield Change(
            path=f"spec.containers[{container.get('name')}]",
            action=Action.CHANGED,
            what="moved to initContainers with restartPolicy Always",
            why="a Job ends only when all its ordinary containers have ended",
        )


def mount_claims_read_only(spec: Spec) -> Iterator[Change]:
    """Mount every persistent volume claim read-only."""
    claims = {
        volume["name"]
        for volume in spec.get("volumes") or ()
        if volume.get("persistentVolumeClaim")
    }
    for path, container in containers(spec):
        for mount in container.get("volumeMounts") or ():
            if mount.get("name") in claims and not mount.get("readOnly"):
                mount["readOnly"] = True
                yield Change(
                    path=f"{path}.volumeMounts[{mount['mountPath']}].readOnly",
                    action=Action.ADDED,
                    what="readOnly: true",
                    why="the sister must not change production's cache",
                )


def stay_near(spec: Spec, wanted: Mapping[str, tuple[str, str]]) -> Iterator[Change]:
    """Select nodes by labels; ``wanted`` maps a label to its value and the reason."""
    for key, (value, why) in wanted.items():
        selector = spec.setdefault("nodeSelector", {})
        if key not in selector:
            selector[key] = value
            path = f"spec.nodeSelector[{key}]"
            yield Change(path=path, action=Action.ADDED, what=f"{key}={value}", why=why)


def last_words(spec: Spec, *, restart: str, hold_s: int) -> Iterator[Change]:
    """Set the restart policy and the grace period."""
    if spec.get("restartPolicy", "Always") != restart:
        before = spec.get("restartPolicy", "Always")
        what, why = f"{before} -> {restart}", "a Job's pod must not restart the server"
        yield Change(path="spec.restartPolicy", action=Action.CHANGED, what=what, why=why)
    spec["restartPolicy"] = restart
    if spec.get("terminationGracePeriodSeconds") != hold_s:
        before = spec.get("terminationGracePeriodSeconds", 30)
        yield Change(
            path="spec.terminationGracePeriodSeconds",
            action=Action.CHANGED,
            what=f"{before} -> {hold_s}",
            why="time to fetch the results after the server has ended",
        )
    spec["terminationGracePeriodSeconds"] = hold_s


def node_memory(spec: Mapping[str, Any]) -> str | None:
    """By what a pod uses its node's shared memory; ``None`` where it has its own."""
    if spec.get("hostIPC"):
        return "hostIPC"
    for volume in spec.get("volumes") or ():
        path = str((volume.get("hostPath") or {}).get("path") or "").rstrip("/")
        if path == SHARED_MEMORY:
            return f"volume {volume.get('name')} (hostPath {path})"
    return None


def stay_put(template: Spec) -> Iterator[Change]:
    """Let no node autoscaler move the pod: one that holds a copy alone looks hardly used."""
    annotations = template["metadata"].setdefault("annotations", {})
    for key, value in STAYS.items():
        annotations[key] = value
        why = "a copy that is moved to pack nodes has spent its GPU-hours for nothing"
        path = f"metadata.annotations[{key}]"
        yield Change(path=path, action=Action.ADDED, what=f"{key}={value}", why=why)


def never_ready(spec: Spec) -> Iterator[Change]:
    """Add a readiness gate that nobody opens: Services send nothing to a pod that is not ready.

    The second net under the labels, which a webhook can change after the proof.
    """
    spec["readinessGates"] = [{"conditionType": NEVER_READY}]
    yield Change(
        path="spec.readinessGates",
        action=Action.ADDED,
        what=f"{NEVER_READY}, a condition that nobody sets",
        why="a pod that is never Ready gets no request, whatever selects it",
    )


def claims_of(spec: Mapping[str, Any]) -> list[str]:
    """The persistent volume claims that a pod uses by name."""
    found = []
    for volume in spec.get("volumes") or ():
        claim = volume.get("persistentVolumeClaim") or {}
        if claim.get("claimName"):
            found.append(str(claim["claimName"]))
    return found


def gpu_count(spec: Mapping[str, Any]) -> int:
    """How many accelerators all containers of a pod ask for."""
    counts = [accelerators(item) for item in spec.get("containers") or ()]
    return sum(int(value) for item in counts for value in item.values() if value.isdigit())


def brief(value: Any) -> str:
    """A field's value in a line; of a list, how many it has."""
    if isinstance(value, list):
        return f"{len(value)} of them"
    return str(value)


def _removed(path: str, what: str, why: str) -> Change:
    return Change(path=path, action=Action.REMOVED, what=what, why=why)
