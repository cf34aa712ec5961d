"""What the user should know about a sister that is not refused, or why its proof refuses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from solscope.capture.sister import podspec, refusal, rules, tooling
from solscope.capture.sister.command import Engine
from solscope.model.cluster import KubernetesObject
from solscope.model.finding import Finding, Severity
from solscope.model.sister import (
    Change,
    Effect,
    IsolationProof,
    SisterKind,
    SisterOptions,
    SisterTarget,
    ToolsSource,
)

_INTENDED = frozenset(
    {
        rules.TRAFFIC,
        rules.METRICS,
        rules.ADOPTION,
        rules.DISRUPTION,
        rules.SCALING,
    }
)
# What brings traffic: without having seen these, nothing is proven.
_INDISPENSABLE = frozenset({"services", "inferencepools"})
# Labels that some namespaces demand of every pod, or that give a pod its identity.
_NEEDED_LABELS = {
    "kueue.x-k8s.io/queue-name": "a queue may admit only pods that name it",
    "kai.scheduler/queue": "its scheduler leaves a pod pending that names no queue",
    "runai/queue": "its scheduler leaves a pod pending that names no queue",
    "azure.workload.identity/use": "gives the pod its cloud identity",
}


def _say(severity: Severity, code: str, where: str, fact: str, remedy: str, *more: str) -> Finding:
    return Finding(
        code=code, severity=severity, where=where, fact=fact, remedy=remedy, evidence=more
    )


def secrets_not_copied(target: SisterTarget, names: Sequence[str], secret: str) -> Finding:
    """Plain secrets of the target that the sister refers to instead."""
    namespace = f"-n {target.namespace} " if target.namespace else ""
    keys = " ".join(f"--from-literal={name}=..." for name in names)
    return _say(
        Severity.WARNING,
        "sister-secret-not-copied",
        target.reference,
        f"{', '.join(names)} stands as plain text in the target and was not copied",
        f"if the sister needs it: `kubectl {namespace}create secret generic {secret} {keys}`, and "
        "delete that afterwards: no clean-up touches Secrets",
    )


def secret_options_dropped(target: SisterTarget, names: Sequence[str]) -> Finding:
    """Options whose values are secrets, which the sister starts without."""
    return _say(
        Severity.WARNING,
        "sister-secret-not-copied",
        target.reference,
        f"{', '.join(names)} carries a plain secret on the command line and was not copied",
        "if the sister needs it, let the target refer to a Secret as $(NAME)",
    )


def secret_reference_dropped(target: SisterTarget, option: str) -> Finding:
    """An option for a secret that would stand with its value in the report."""
    return _say(
        Severity.WARNING,
        "sister-secret-not-copied",
        target.reference,
        f"{option} tells the server a secret on its command line, which ncu keeps in the report",
        "if the sister needs it, let the server read it from its environment or a file",
    )


def preload_unverified(target: SisterTarget) -> Finding:
    """The strategy that no known release of ncu supports."""
    return _say(
        Severity.WARNING,
        "sister-preload-unverified",
        target.reference,
        "no release of ncu is known to read NV_NCU_INJECTION64_PATH; nothing may be called "
        "attachable before an endpoint answers on port 49152",
        "plan with --strategy launch unless that variable is known to work in your ncu",
    )


def may_be_ready(target: SisterTarget, label: str) -> Finding:
    """A sister without the readiness gate: its labels alone keep requests away."""
    return _say(
        Severity.INFO,
        "sister-may-be-ready",
        target.reference,
        f"label {label}: a queue may want its pods ready, so that the pod gets no readiness gate, "
        "and only its labels keep requests away",
        "rehearse it with --apply, so that labels of webhooks are seen",
    )


def first_run_only(target: SisterTarget, runs: int) -> Finding:
    """A plan that starts the server several times: one sister runs once."""
    return _say(
        Severity.WARNING,
        "sister-first-run-only",
        target.reference,
        f"the plan has {runs} runs; this sister is the first one's",
        "`solscope capture --plan` makes them one after the other",
    )


def variables_unseen(target: SisterTarget, sources: Sequence[str]) -> Finding:
    """``envFrom`` sources whose variables could not be looked at."""
    return _say(
        Severity.INFO,
        "sister-variables-unseen",
        target.reference,
        f"{', '.join(sources)} sets variables that were not seen",
        "see that it names no peer, registry or profiler",
    )


def another_target(planned: str, target: SisterTarget) -> Finding:
    """A plan that was made for something else."""
    return _say(
        Severity.WARNING,
        "sister-plan-of-another-target",
        target.reference,
        f"the plan was made for {planned}: its estimates may not fit",
        "plan again for this target",
    )


def version_unknown(image: str) -> Finding:
    """An image whose tag does not tell which vLLM it holds."""
    return _say(
        Severity.WARNING,
        "sister-engine-version-unknown",
        image,
        "the tag names no vLLM release; --profiler-config, which opens the window, needs 0.13",
        "see `vllm --version` in the image; for an older one plan with --window whole-run",
    )


def of_proof(proof: IsolationProof, accept: Sequence[str]) -> Iterator[Finding]:
    """Matches, which refuse, and rules that the target has and the sister loses."""
    for item in proof.evidence:
        where = f"{item.kind}/{item.name}"
        if item.effect is Effect.REFUSES:
            yield refusal.block(
                "sister-not-isolated",
                where,
                f"its {item.path} ({item.rule}) matches the sister: {item.channel}",
                "narrow that selector: it would send requests to the sister"
                if item.channel == rules.TRAFFIC
                else f"narrow that selector, or allow it knowingly with --accept {where.lower()}",
                item.rule,
            )
        elif item.effect is Effect.APPLIES and item.note and item.path == "spec.podSelector":
            yield _say(
                Severity.INFO,
                "sister-policy-applies",
                where,
                item.note,
                "see that it lets the sister reach the model's store and the DNS",
            )
        elif item.stops_matching and item.channel not in _INTENDED:
            fact = f"{item.path} ({item.rule}) selects the target and not the sister"
            if item.channel == rules.POLICY:
                fact += ": what it allowed, the sister may lack"
            yield _say(
                Severity.WARNING if item.channel == rules.POLICY else Severity.INFO,
                "sister-selector-lost",
                where,
                fact,
                "if the sister cannot reach what it needs, allow it by the label "
                "experiment, or add a label of its own with --label",
                item.rule,
            )
    for name in proof.unread:
        yield _unread(name, accept)


def _unread(name: str, accept: Sequence[str]) -> Finding:
    kind = name.partition(":")[0]
    if kind in _INDISPENSABLE and kind not in accept:
        return refusal.block(
            "sister-unproven",
            name,
            f"{kind} could not be read, and a proof without them proves nothing",
            f"ask for that right, or take the risk knowingly with --accept {kind}",
        )
    return _say(
        Severity.WARNING,
        "sister-unread",
        name,
        "could not be read, so its selectors were not matched",
        "ask for the right to list it, or have its owner look at the sister's labels",
    )


def of_target(
    target: SisterTarget,
    options: SisterOptions,
    objects: Sequence[KubernetesObject],
    changes: Sequence[Change],
    engine: Engine,
    image: str,
) -> Iterator[Finding]:
    """What follows from the target itself."""
    spec = target.template["spec"]
    yield from _volumes(target, options, objects)
    yield from _node_folders(target)
    yield from _companions(target, options)
    if target.owner is not None:
        yield _say(
            Severity.INFO,
            "sister-owned-target",
            target.reference,
            f"the target is made by {target.owner}, which may change it at any time",
            "make the sister again after a change of its owner",
        )
    yield from _labels(target, options)
    if engine is Engine.UNKNOWN:
        yield _say(
            Severity.WARNING,
            "sister-engine-unknown",
            target.reference,
            "the server is none that solscope knows: its options were left as they are",
            "see in the command that it joins no peer and registers nowhere",
        )
    if any("--kv-transfer-config" in c.what or "disaggregation" in c.what for c in changes):
        yield _say(
            Severity.INFO,
            "sister-without-kv-transfer",
            target.reference,
            "the sister moves no KV cache: results exclude the cost of the transfer",
            "say so beside the numbers",
        )
    if spec.get("enableServiceLinks", True) and _service_called(objects, "vllm"):
        yield _say(
            Severity.WARNING,
            "sister-service-links",
            target.reference,
            "a Service called vllm sets VLLM_PORT in every new pod, and vLLM refuses to start",
            "set enableServiceLinks: false in the target, or rename the Service",
        )
    if options.kind is SisterKind.DEPLOYMENT:
        yield _say(
            Severity.WARNING,
            "sister-without-end",
            target.reference,
            "a Deployment never ends by itself and holds its GPUs until somebody deletes it",
            "use the default --kind Job",
        )
    if image == tooling.DEFAULT_IMAGE and options.tools is not ToolsSource.IN_IMAGE:
        yield _say(
            Severity.INFO,
            "sister-tools-image",
            "solscope-tools",
            "the tools image has 11.87 GB: its first pull on a node takes minutes",
            "wait while the pod is in Init or ContainerCreating; it does not hang",
        )
    if image.startswith("nvcr.io/") and options.tools is not ToolsSource.IN_IMAGE:
        yield _say(
            Severity.INFO,
            "sister-tools-image",
            image,
            "NVIDIA's registry may want a pull secret in the namespace",
            "add one to the target's imagePullSecrets, or mirror the image: --tools-image",
        )
    yield from _mutable_image(target)


def _volumes(
    target: SisterTarget, options: SisterOptions, objects: Sequence[KubernetesObject]
) -> Iterator[Finding]:
    modes = refusal.access_modes(objects)
    for name in dict.fromkeys(podspec.claims_of(target.template["spec"])):
        where = f"PersistentVolumeClaim/{name}"
        if name not in modes:
            yield _say(
                Severity.WARNING,
                "sister-claim-unread",
                where,
                "its access mode is unknown: ReadWriteOncePod would keep the sister pending",
                f"`kubectl get pvc {name} -o jsonpath='{{.spec.accessModes}}'`",
            )
        elif modes[name] == ("ReadWriteOnce",) and target.node is None:
            yield _say(
                Severity.WARNING,
                "sister-one-node-volume",
                where,
                "ReadWriteOnce: the sister must run on the target's node, which needs "
                f"{podspec.gpu_count(target.template['spec'])} more free GPU(s)",
                "name a live target so that its node is known, or use another claim",
            )
        elif modes[name] == ("ReadWriteOnce",):
            yield _say(
                Severity.INFO,
                "sister-one-node-volume",
                where,
                "ReadWriteOnce: the sister is bound to the target's node, which needs "
                f"{podspec.gpu_count(target.template['spec'])} more free GPU(s)",
                "see that the node has them free",
            )
        if not options.read_only_claims:
            yield _say(
                Severity.INFO,
                "sister-shared-cache",
                where,
                "mounted writable, as in the target: the sister may write caches and locks there",
                "--read-only-claims mounts it read-only, if the model lies there complete",
            )


def _node_folders(target: SisterTarget) -> Iterator[Finding]:
    spec = target.template["spec"]
    paths = {
        str(volume.get("name")): str((volume.get("hostPath") or {}).get("path"))
        for volume in spec.get("volumes") or ()
        if volume.get("hostPath")
        and str(volume["hostPath"].get("path")).rstrip("/") != podspec.SHARED_MEMORY
    }
    written = {
        str(mount.get("name"))
        for _, container in podspec.containers(spec)
        for mount in container.get("volumeMounts") or ()
        if not mount.get("readOnly")
    }
    for name, path in paths.items():
        if name in written:
            yield _say(
                Severity.INFO,
                "sister-shared-cache",
                f"volume {name} (hostPath {path})",
                "a folder of the node, mounted writable as in the target: pods of the target on "
                "the sister's node write there, too",
                "see that the server writes only caches and locks there",
            )


def _companions(target: SisterTarget, options: SisterOptions) -> Iterator[Finding]:
    spec = target.template["spec"]
    kept = [
        str(container.get("name"))
        for group in ("initContainers", "containers")
        for container in spec.get(group) or ()
        if container.get("name") != target.container
        and (group == "containers" or container.get("restartPolicy") == "Always")
        and not podspec.is_traffic_sidecar(container)
        and container.get("name") not in options.without
    ]
    if kept:
        yield _say(
            Severity.INFO,
            "sister-companions-kept",
            target.reference,
            f"{', '.join(kept)} runs beside the sister as beside the target",
            f"see that it registers nowhere; --without {kept[0]} leaves it out",
        )


def _labels(target: SisterTarget, options: SisterOptions) -> Iterator[Finding]:
    labels = (target.template.get("metadata") or {}).get("labels") or {}
    for key, why in _NEEDED_LABELS.items():
        if key in labels and key not in (options.labels or {}):
            yield _say(
                Severity.WARNING,
                "sister-label-lost",
                target.reference,
                f"label {key} is not copied: {why}",
                f"keep it knowingly: --label {key}={labels[key]}",
            )


def _service_called(objects: Sequence[KubernetesObject], name: str) -> bool:
    return any(
        item.get("kind") == "Service" and (item.get("metadata") or {}).get("name") == name
        for item in objects
    )


def _mutable_image(target: SisterTarget) -> Iterator[Finding]:
    for container in target.template["spec"].get("containers") or ():
        image = str(container.get("image", ""))
        tag = image.rpartition("/")[2].partition(":")[2]
        if container.get("name") == target.container and "@" not in image and tag in ("", "latest"):
            yield _say(
                Severity.WARNING,
                "sister-mutable-image",
                image,
                "the tag may name another image by now than the one that the target runs",
                "compare imageID in both pods' status before you trust a comparison",
            )
