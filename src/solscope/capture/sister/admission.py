"""What a cluster's admission makes of the sister's pod: webhooks and policies change what is sent.

The pod that was asked for is compared with the one that the server would keep. What every cluster
fills in by itself (defaults, the service account's token) is no change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from solscope.capture.sister import environment, isolation, neighbours, podspec, refusal
from solscope.capture.sister.target import accelerators
from solscope.cluster.quantity import quantity
from solscope.model.cluster import KubernetesObject
from solscope.model.finding import Finding, Severity
from solscope.model.sister import Action, Change, Sister

Object = Mapping[str, Any]

UNREHEARSED, COMMAND = "sister-unrehearsed", "sister-admission-command"
WHY = "the cluster's admission does this"
# By what the injected thing is called: its documented way out.
_WAYS_OUT = {
    "istio": "--label sidecar.istio.io/inject=false keeps it out",
    "linkerd": "let Linkerd's injector leave pods with the label experiment alone",
    "datadog": "--label admission.datadoghq.com/enabled=false keeps it out",
}
_OPT_OUT = (
    "have its webhook leave pods with the label experiment alone, or give the label that it "
    "takes as an opt-out: --label KEY=VALUE"
)
# What a controller puts on the pods that it makes.
_OF_CONTROLLERS = ("job-name", "controller-uid", "pod-template-hash", "batch.kubernetes.io/")
_SPEC_FIELDS = (
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "shareProcessNamespace",
    "nodeSelector",
    "affinity",
    "schedulingGates",
    "schedulerName",
    "runtimeClassName",
    "priorityClassName",
    "securityContext",
)
_SERVER_FIELDS = (
    "image",
    "command",
    "args",
    "workingDir",
    "envFrom",
    "resources",
    "securityContext",
    "lifecycle",
)
_KILLING_PROBES = ("livenessProbe", "startupProbe")
_DEFAULTS: Mapping[str, Any] = {"schedulerName": "default-scheduler"}


def labels_added(sister: Sister, pod: Object) -> dict[str, str]:
    """The labels of a pod that nobody asked for: neither the sister nor what owns its pod."""
    asked = _labels(_template(sister))
    return {
        key: value
        for key, value in _labels(pod).items()
        if asked.get(key) != value and not key.startswith(_OF_CONTROLLERS)
    }


def changes(sister: Sister, pod: Object) -> tuple[Change, ...]:
    """What admission added, changed or took away, by the paths of a pod. Values of env: none."""
    return tuple(_changes(_template(sister), pod, sister.container))


def _changes(asked: Object, pod: Object, server: str) -> Iterator[Change]:
    theirs = {k: v for k, v in _labels(pod).items() if not k.startswith(_OF_CONTROLLERS)}
    yield from _entries("metadata.labels", _labels(asked), theirs, shows=True)
    annotations = (_group(item, "annotations") for item in (asked, pod))
    yield from _entries("metadata.annotations", *annotations, shows=False)
    for name in (pod.get("metadata") or {}).get("finalizers") or ():
        if str(name).startswith(_OF_CONTROLLERS):
            continue
        yield _change(f"metadata.finalizers[{name}]", Action.ADDED, str(name))
    before, after = asked["spec"], pod.get("spec") or {}
    for field in _SPEC_FIELDS:
        yield from _field(f"spec.{field}", before.get(field), after.get(field), field)
    if (after.get("priority") or 0) > 0:
        yield _change("spec.priority", Action.ADDED, str(after["priority"]))
    for group in ("initContainers", "containers"):
        known = {item.get("name"): item for item in before.get(group) or ()}
        for container in after.get(group) or ():
            name = container.get("name")
            path = f"spec.{group}[{name}]"
            if name not in known:
                yield _change(path, Action.ADDED, f"{name}, image {container.get('image')}")
            elif name == server:
                yield from _of_server(path, known[name], container)
        here = {item.get("name") for item in after.get(group) or ()}
        for name in known:
            if name not in here:
                yield _change(f"spec.{group}[{name}]", Action.REMOVED, str(name))


def _of_server(path: str, asked: Object, kept: Object) -> Iterator[Change]:
    for field in _SERVER_FIELDS:
        yield from _field(f"{path}.{field}", asked.get(field), kept.get(field), field)
    for field in _KILLING_PROBES:
        # Of a probe that was asked for, the server fills in the rest.
        if kept.get(field) and not asked.get(field):
            yield _change(f"{path}.{field}", Action.ADDED, field)
    values = [
        {str(entry.get("name")): entry for entry in item.get("env") or ()} for item in (asked, kept)
    ]
    yield from _entries(f"{path}.env", *values, shows=False)


def _entries(
    path: str, asked: Mapping[str, Any], kept: Mapping[str, Any], *, shows: bool
) -> Iterator[Change]:
    """Differences of two maps; values are shown only where they hold no secret."""
    for key, value in kept.items():
        if key not in asked or _plain(asked[key]) != _plain(value):
            action = Action.CHANGED if key in asked else Action.ADDED
            yield _change(f"{path}[{key}]", action, f"{key}={value}" if shows else key)
    for key in asked:
        if key not in kept:
            yield _change(f"{path}[{key}]", Action.REMOVED, key)


def _plain(value: Any) -> Any:
    """An entry of env as the server writes it: with its default, without an empty text."""
    if not isinstance(value, Mapping):
        return value
    entry = {key: inner for key, inner in value.items() if inner != ""}
    source = entry.get("valueFrom")
    if isinstance(source, Mapping) and "fieldRef" in source:
        field = {"apiVersion": "v1", **source["fieldRef"]}
        entry["valueFrom"] = {**source, "fieldRef": field}
    return entry


def _field(path: str, asked: Any, kept: Any, field: str) -> Iterator[Change]:
    default = _DEFAULTS.get(field)
    asked, kept = asked or default, kept or default
    same = asked == kept or not (asked or kept)
    if same or (field == "resources" and _resources(asked) == _resources(kept)):
        return
    action = Action.CHANGED if asked and kept else Action.ADDED if kept else Action.REMOVED
    shown = "" if field in ("command", "args") else f": {podspec.brief(kept or asked)}"
    yield _change(path, action, f"{field}{shown}")


def _resources(value: Any) -> dict[str, dict[str, Any]]:
    """Requests and limits as numbers; a limit that names no request is its request, too."""
    found: dict[str, dict[str, Any]] = {
        group: {
            str(name): _amount(amount) for name, amount in ((value or {}).get(group) or {}).items()
        }
        for group in ("limits", "requests")
    }
    return {**found, "requests": {**found["limits"], **found["requests"]}}


def _amount(text: Any) -> Any:
    """As a number, so that 0.5 is 500m; what is none, as it stands."""
    found = quantity(text)
    return str(text) if found is None else round(found, 9)


def _change(path: str, action: Action, what: str) -> Change:
    return Change(path=path, action=action, what=what, why=WHY)


# -- what follows ----------------------------------------------------------------------------------


def findings(sister: Sister, pod: Object) -> Iterator[Finding]:
    """What the changes mean: what forbids the sister, what to know, and the rest in one line."""
    seen = changes(sister, pod)
    where = f"Pod/{sister.name}"
    told: set[str] = set()
    for change in seen:
        found = _meaning(sister, pod, change)
        if found is not None:
            told.add(change.path)
            yield found
    rest = [change for change in seen if change.path not in told]
    if rest:
        yield Finding(
            code="sister-admission",
            severity=Severity.INFO,
            where=where,
            fact=f"the cluster's admission changes the pod: {', '.join(c.path for c in rest)}",
            remedy="see that none of it matters to what is measured",
            evidence=tuple(f"{c.action.value} {c.path}: {c.what}" for c in rest),
        )


def _meaning(sister: Sister, pod: Object, change: Change) -> Finding | None:
    path, where = change.path, f"Pod/{sister.name}"
    added = change.action is not Action.REMOVED
    if path.startswith("metadata.labels[") and change.action is not Action.ADDED:
        return refusal.block(
            "sister-admission-label",
            where,
            f"admission takes or changes a label of the sister ({change.what}), by which it is "
            "found again and removed",
            _OPT_OUT,
        )
    if path.startswith("metadata.finalizers["):
        return _warning(
            "sister-admission-finalizer",
            where,
            f"admission puts finalizer {change.what} on the pod: it goes only when that is lifted",
            "see that its controller runs; the clean-up waits for it and says if it does not come",
        )
    if path == "spec.hostNetwork" and added:
        return refusal.block(
            "sister-host-network",
            where,
            "admission puts the pod on its node's network, where its ports collide with the "
            "target's",
            _OPT_OUT,
        )
    if path == "spec.hostPID" and added:
        return refusal.block(
            "sister-host-processes",
            where,
            "admission shows the pod the processes of its node, where another ncu's would be taken "
            "for its own",
            _OPT_OUT,
        )
    if path == "spec.priority":
        return _warning(
            "sister-admission-priority",
            where,
            f"the cluster gives the pod priority {change.what}: where GPUs are short, it preempts "
            "pods of a lower one",
            "see that no production pod is below that, or wait until GPUs are free",
        )
    if re.match(r"spec\.(?:init)?[cC]ontainers\[[^\]]*\]\Z", path):
        return _of_container(sister, change)
    if path.startswith(f"spec.containers[{sister.container}]."):
        return _of_profiled(sister, pod, change)
    return None


def _of_container(sister: Sister, change: Change) -> Finding:
    where = f"Pod/{sister.name}"
    if change.action is Action.REMOVED:
        return refusal.block(
            "sister-admission-container",
            where,
            f"admission takes container {change.what} out of the pod",
            _OPT_OUT,
        )
    return _warning(
        "sister-admission-container",
        where,
        f"admission puts a container into the pod: {change.what}",
        _way_out(change.what) or f"see that it registers nowhere and uses no GPU; else {_OPT_OUT}",
    )


def _of_profiled(sister: Sister, pod: Object, change: Change) -> Finding | None:
    where = f"Pod/{sister.name} container {sister.container}"
    field = change.path.partition("].")[2]
    if field in ("command", "args"):
        return refusal.block(
            COMMAND,
            where,
            f"admission changes the server's {field}, so that ncu may not be what starts it",
            _OPT_OUT,
        )
    if field in _KILLING_PROBES:
        return refusal.block(
            "sister-admission-probe",
            where,
            f"admission adds a {field}: while ncu replays a kernel the server does not answer, and "
            "the probe would have it killed",
            _OPT_OUT,
        )
    if field == "resources":
        both = (_server(item, sister.container) for item in (_template(sister), pod))
        asked, kept = (accelerators(server) for server in both)
        if asked != kept:
            return refusal.block(
                "sister-admission-gpus",
                where,
                f"admission changes the GPUs that it asks for: {_shown(asked)} to {_shown(kept)}",
                _OPT_OUT,
            )
    if field == "securityContext" and _is_privileged(pod, sister.container):
        was = _is_privileged(_template(sister), sister.container)
        accepted = sister.proof.accepted if sister.proof else ()
        if not was and neighbours.PRIVILEGED not in accepted:
            return neighbours.privileged(f"{where}, by the cluster's admission")
    name = _env_name(field)
    if name is not None and change.action is not Action.REMOVED:
        return _of_variable(sister, pod, name)
    return None


def _is_privileged(item: Object, container: str) -> bool:
    context = _server(item, container).get("securityContext") or {}
    return bool(context.get(neighbours.PRIVILEGED))


def _of_variable(sister: Sister, pod: Object, name: str) -> Finding | None:
    """A variable that a sister must not have and that its command does not unset."""
    server = _server(pod, sister.container)
    values = {str(e.get("name")): str(e.get("value") or "") for e in server.get("env") or ()}
    why = environment.reason(name, values.get(name, ""))
    words = " ".join(str(w) for w in (*(server.get("command") or ()), *(server.get("args") or ())))
    if why is None or re.search(rf"-u {re.escape(name)}(?!\w)", words):
        return None
    where, fact = f"Pod/{sister.name} container {sister.container}", f"admission sets {name}: {why}"
    remedy = _way_out(f"{name}={values.get(name, '')}") or _OPT_OUT
    if why == environment.TRACE_WHY:
        return _warning("sister-admission-variable", where, fact, remedy)
    return refusal.block("sister-admission-variable", where, fact, remedy)


def _way_out(what: str) -> str | None:
    return next((way for name, way in _WAYS_OUT.items() if name in what.lower()), None)


def _env_name(field: str) -> str | None:
    match = re.fullmatch(r"env\[(.*)\]", field)
    return match[1] if match else None


def reached(
    sister: Sister, added: Mapping[str, str], objects: Iterable[KubernetesObject]
) -> Iterator[Finding]:
    """The rules that pick the sister's pod by the labels that were ``added`` to its own.

    ``objects`` is all that was seen in the namespace.
    """
    if sister.proof is None:
        return
    kind = str(sister.objects[-1]["kind"])
    proof = isolation.prove(
        objects,
        namespace=sister.namespace,
        target=("", ""),
        target_labels={},
        sister=(kind, sister.name),
        sister_labels={**sister.proof.labels, **added},
        container=sister.container,
        accept=sister.proof.accepted,
    )
    before = {(e.kind, e.name, e.path) for e in sister.proof.matches}
    named = ", ".join(f"{key}={value}" for key, value in added.items())
    for item in proof.matches:
        if (item.kind, item.name, item.path) not in before:
            yield refusal.block(
                "sister-admission-reached",
                f"{item.kind}/{item.name}",
                f"the cluster's admission labels the pod {named}, and {item.path} ({item.rule}) "
                f"picks it by that: {item.channel}",
                _OPT_OUT,
                item.rule,
            )


def unrehearsed(where: str, said: str) -> Finding:
    """A webhook that no dry run may ask: what it will do is seen on the pod itself."""
    return _warning(
        UNREHEARSED,
        where,
        f"a webhook of the cluster takes no dry run ({said})",
        "nothing to do: the pod's labels are compared as soon as it is made, before it serves",
    )


def _warning(code: str, where: str, fact: str, remedy: str) -> Finding:
    return Finding(code=code, severity=Severity.WARNING, where=where, fact=fact, remedy=remedy)


def _template(sister: Sister) -> Object:
    template: Object = sister.objects[-1]["spec"]["template"]
    return template


def _server(item: Object, container: str) -> Object:
    every = (item.get("spec") or {}).get("containers") or ()
    return next((one for one in every if one.get("name") == container), {})


def _labels(item: Object) -> dict[str, str]:
    return {str(key): str(value) for key, value in _group(item, "labels").items()}


def _group(item: Object, name: str) -> Mapping[str, Any]:
    return (item.get("metadata") or {}).get(name) or {}


def _shown(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in found.items()) or "none"
