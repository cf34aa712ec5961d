"""A capture as a page for the terminal: what would be done, or what was done and is left."""

from __future__ import annotations

from collections.abc import Iterator

from solscope.model.capture import CaptureResult
from solscope.model.finding import Finding
from solscope.model.plan import CapturePlan
from solscope.model.sister import Effect, Sister


def as_json(result: CaptureResult) -> str:
    """The result by the schema ``solscope.capture/1``, indented."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(result), indent=2).decode()


def dry_run(sister: Sister, plan: CapturePlan, result: CaptureResult) -> str:
    """Every object and every command of a run that was not made."""
    return "\n".join(_dry_run(sister, plan, result))


def _dry_run(sister: Sister, plan: CapturePlan, result: CaptureResult) -> Iterator[str]:
    import yaml

    yield f"{sister.target}: dry run, nothing was made"
    # Another experiment has other names: what was shown, and made ready for it, is of this one.
    yield f"  run it as shown: add --experiment {result.experiment} --yes"
    yield f"  experiment={result.experiment}  bundle {result.bundle or '(new)'}"
    pause = "unknown" if plan.cost.pause_s is None else f"{plan.cost.pause_s:.3g} s"
    total = "unknown" if plan.cost.total_s is None else f"{plan.cost.total_s:.3g} s"
    passes = plan.passes
    runs = f" in {len(plan.runs)} runs" if plan.runs else ""
    wanted = sum(one.launches.wanted for one in plan.each())
    yield (
        f"  {wanted} launches{runs}, about {passes.predicted} passes each "
        f"({passes.low} to {passes.high}); longest pause {pause}, all launches {total}"
    )
    rules = sister.proof.evidence if sister.proof else ()
    accepted = [rule for rule in rules if rule.effect is Effect.ACCEPTED]
    names = ", ".join(f"{rule.kind}/{rule.name} ({rule.channel})" for rule in accepted)
    matching = f"accepted though they match: {names}" if accepted else "none matches"
    yield f"  isolation: {len(rules)} rules read, {matching} (`solscope sister` lists them)"
    yield from _findings(result.findings)
    yield ""
    yield f"objects, {len(result.objects)}"
    for item in result.objects:
        text = yaml.safe_dump(dict(item), sort_keys=False, width=100)
        yield from (f"  {line}" for line in ("---", *text.splitlines()))
    yield ""
    yield f"steps, {len(result.steps)}"
    for number, step in enumerate(result.steps, 1):
        yield f"  {number:>2}  {step.name}: {step.what}"
        if step.command is not None:
            yield f"      $ {step.command}"


def refused(sister: Sister, result: CaptureResult) -> str:
    """Why there is no capture."""
    blocks = [finding for finding in result.findings if finding.blocks]
    plural = "" if len(blocks) == 1 else "s"
    lines = [f"{sister.target}: no capture, for {len(blocks)} reason{plural}"]
    return "\n".join([*lines, *_findings(tuple(blocks))])


def captured(result: CaptureResult) -> str:
    """What was brought home, and that nothing is left."""
    return "\n".join(_captured(result))


def _captured(result: CaptureResult) -> Iterator[str]:
    kernels = "unknown" if result.kernels is None else str(result.kernels)
    plural = "" if len(result.files) == 1 else "s"
    yield (f"{result.target}: captured, {kernels} launches in {len(result.files)} report{plural}")
    for file in result.files:
        artifact = file.artifact
        yield f"  {artifact.path}  {artifact.size_bytes} bytes  sha256 {artifact.sha256[:16]}"
    yield f"  cleaned up: nothing is left with experiment={result.experiment}"
    if result.before is not None and result.after is not None:
        restarts = sum(pod.restarts for pod in result.after.pods)
        ready = sum(pod.ready for pod in result.after.pods)
        yield (
            f"  production: generation {result.after.generation}, {ready} of "
            f"{len(result.after.pods)} pods ready, {restarts} restarts"
            + ("; the same as before" if result.after == result.before else "")
        )
    yield f"  bundle {result.bundle}, {'sealed' if result.is_sealed else 'open'}"
    yield from _findings(result.findings)
    yield ""
    yield "next"
    yield f"  solscope analyze {result.bundle}/ncu-profiles"
    if result.is_sealed:
        yield f"  solscope bundle verify {result.bundle}"


def leftovers(result: CaptureResult) -> str:
    """What an experiment has left in a namespace, or that it is gone."""
    where = f"experiment={result.experiment} in namespace {result.namespace}"
    if result.context:
        where += f" of context {result.context}"
    head = f"{where}: nothing there"
    if result.leftovers:
        head = f"{where}: {len(result.leftovers)} objects (remove them: add --yes)"
    elif result.done:
        head = f"{where}: removed, nothing is left"
    names = (f"  {name}" for name in (*result.leftovers, *result.done))
    return "\n".join([head, *names, *_findings(result.findings)])


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    for finding in findings:
        yield f"  {finding.severity.value:<7} {finding.code}  {finding.where}: {finding.fact}"
        yield f"          next: {finding.remedy}"
