"""A sister as a page for the terminal: the answer, each change, the proof, what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from solscope.model.finding import Finding, Severity
from solscope.model.sister import Action, Evidence, IsolationProof, Sister

_SIGNS: Mapping[Action, str] = {Action.ADDED: "+", Action.CHANGED: "~", Action.REMOVED: "-"}
_ORDER: Mapping[Severity, int] = {Severity.BLOCKS: 0, Severity.WARNING: 1, Severity.INFO: 2}


def page(sister: Sister, *, manifest: str | None = None) -> str:
    """The whole page. ``manifest`` is where the objects were written, if they were."""
    return "\n".join(_lines(sister, manifest))


def _lines(sister: Sister, manifest: str | None) -> Iterator[str]:
    if sister.is_refused:
        blocks = [finding for finding in sister.findings if finding.blocks]
        yield f"{sister.target}: no sister, for {len(blocks)} reason{_s(len(blocks))}"
    else:
        owner = sister.objects[-1]
        yield f"{sister.target} -> {owner['kind']}/{sister.name}: isolated, nothing matches it"
        yield (
            f"  experiment={sister.experiment}  strategy {sister.strategy}  "
            f"container {sister.container}"
        )
        yield f"  {_cost(sister)}"
    yield from _findings(sister.findings)
    if sister.changes:
        yield ""
        yield f"target -> sister, {len(sister.changes)} change{_s(len(sister.changes))}"
        for change in sister.changes:
            yield f"  {_SIGNS[change.action]} {change.path}: {change.what}  ({change.why})"
    if sister.admitted:
        yield ""
        number = len(sister.admitted)
        yield f"sister -> pod as the cluster would admit it, {number} change{_s(number)}"
        for change in sister.admitted:
            yield f"  {_SIGNS[change.action]} {change.path}: {change.what}"
    if sister.proof is not None:
        is_relabelled = any(c.path.startswith("metadata.labels") for c in sister.admitted)
        yield from _proof(sister.proof, "asked-for labels" if is_relabelled else "labels")
    if not sister.is_refused:
        yield from _next(sister, manifest)


def _cost(sister: Sister) -> str:
    """What the sister takes from the cluster, and for how long."""
    owner = sister.objects[-1]["spec"]
    containers = owner["template"]["spec"]["containers"]
    server = next(item for item in containers if item["name"] == sister.container)
    resources = server.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    shown = ", ".join(f"{name} {amount}" for name, amount in sorted(asked.items()))
    deadline = owner.get("activeDeadlineSeconds")
    end = "until it is deleted" if deadline is None else f"for {deadline} s at most"
    return f"takes {shown or 'what its resource claims ask for'}, {end}"


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    if findings:
        yield ""
    for finding in sorted(findings, key=lambda item: _ORDER[item.severity]):
        yield f"  {finding.severity.value:<7} {finding.code}  {finding.where}: {finding.fact}"
        yield f"          next: {finding.remedy}"


def _proof(proof: IsolationProof, labels_called: str) -> Iterator[str]:
    number = len(proof.evidence)
    matched = len(proof.matches)
    answer = f"{matched} match{'es' if matched == 1 else ''}" if matched else "none matches"
    yield ""
    yield f"isolation, {number} rule{_s(number)} against the sister's {labels_called}: {answer}"
    labels = ", ".join(f"{key}={value}" for key, value in proof.labels.items())
    yield f"  labels {labels}"
    for item in proof.evidence:
        yield "  " + _evidence(item)
    if not proof.evidence:
        yield "  no object that was seen picks pods"


def _evidence(item: Evidence) -> str:
    target = "target yes" if item.matches_target else "target no"
    sister = "sister YES" if item.matches_sister else "sister no"
    note = f"  ({item.note})" if item.note else ""
    where = f"{item.kind}/{item.name} {item.path}"
    return (
        f"{item.effect.value:<8} {where}: {item.rule}  [{item.channel}; {target}, {sister}]{note}"
    )


def _next(sister: Sister, manifest: str | None) -> Iterator[str]:
    namespace = f" -n {sister.namespace}" if sister.namespace else ""
    kind = str(sister.objects[-1]["kind"]).lower()
    yield ""
    yield "next"
    if sister.created:
        for item in sister.created:
            yield f"  created: {item.kind}/{item.name}, uid {item.uid or 'unknown'}"
    elif sister.rehearsed:
        yield "  rehearsed: the cluster would take it; to create it, add --yes"
    elif manifest is None:
        yield "  write it: add -o DIR; create it: add --apply --yes"
    else:
        yield f"  create it: kubectl{namespace} create -f {manifest}, or add --apply --yes"
    if sister.attach_command:
        import shlex

        yield (
            f"  attach at once, the server stands still until then: kubectl{namespace} exec "
            f"{kind}/{sister.name} -c solscope-results -- {shlex.join(sister.attach_command)}"
        )
    yield (
        f"  results: kubectl{namespace} exec {kind}/{sister.name} -c solscope-results -- "
        "ls -l /solscope/results"
    )
    # A Job deleted by hand leaves its pod, and the GPU, for the whole grace period.
    where = sister.namespace or "NAMESPACE"
    yield f"  remove it: solscope capture --cleanup {sister.experiment} -n {where} --yes"


def _s(number: int) -> str:
    return "" if number == 1 else "s"
