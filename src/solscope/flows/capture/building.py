"""From a request, or from a bundle, to a run that can begin."""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from solscope.capture import planfile
from solscope.capture.execution import cleanup
from solscope.capture.execution.journal import Facts, Journal
from solscope.capture.execution.patience import Patient
from solscope.capture.execution.run import Run
from solscope.capture.execution.stage import RUN_ANNOTATION, Stage, file_of
from solscope.capture.sister import admission, creation, documents, naming, tooling
from solscope.cluster import secrecy
from solscope.cluster.port import Cluster
from solscope.errors import CaptureError, ClusterError, UsageError
from solscope.evidence import bundle as bundles
from solscope.evidence.redaction import MASK, Redactor
from solscope.flows import bundle as bundle_flow
from solscope.flows import sister as sister_flow
from solscope.flows.capture.request import CaptureRequest, check_traffic, limits, traffic
from solscope.flows.world import World
from solscope.model.capture import CaptureResult, CaptureSettings
from solscope.model.evidence import BundleSource
from solscope.model.finding import Finding
from solscope.model.plan import CapturePlan, Strategy
from solscope.model.sister import Sister, SisterOptions, ToolsSource

FOLDER = "capture"
PLAN, SISTER, MANIFEST = f"{FOLDER}/plan.json", f"{FOLDER}/sister.json", f"{FOLDER}/sister.yaml"
SETTINGS = f"{FOLDER}/settings.json"
_COLLECT_S = 600.0
"""Kept for the way home of the reports, within the copy's deadline."""
_LISTENS = re.compile(r"--host 127\.0\.0\.1 --port (\d+)")
_PORT = re.compile(r"--port(?:=|\s+)[\"']?(\d+)")
_DEFAULT_PORT = 8000
"""Of a server that is none that solscope knows: the others' is always stated in their command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """All of a capture that is known before anything is made."""

    cluster: Cluster
    plan: CapturePlan
    sisters: tuple[Sister, ...]
    settings: CaptureSettings

    @property
    def sister(self) -> Sister:
        """The first stage's; those of the others differ in ncu's options only."""
        return self.sisters[0]

    def result(self, *, is_dry_run: bool) -> CaptureResult:
        """The result so far."""
        return CaptureResult(
            experiment=self.settings.experiment,
            target=self.settings.workload,
            namespace=self.settings.namespace,
            is_dry_run=is_dry_run,
            bundle=self.settings.output,
            objects=tuple(item for sister in self.sisters for item in sister.objects),
        )


def build(request: CaptureRequest, world: World) -> Built:
    """Plan, sister and settings of a request. Reads the cluster, makes nothing."""
    assert request.plan is not None
    plan, digest = _plan(request.plan)
    workload = request.workload or plan.target
    if workload is None:
        raise UsageError("no target", hint="name one: solscope capture --plan F deploy/NAME")
    if plan.strategy is Strategy.HARNESS:
        raise UsageError(
            "the plan replays one operation alone, and a capture profiles a server",
            where=str(request.plan),
            hint="solscope sister --harness FILE.py --apply makes that copy; or plan with launch",
        )
    cluster = world.cluster(request.context, request.namespace)
    experiment = _experiment(request, digest, workload, world)
    sisters = _sisters(request, world, plan, workload, experiment)
    sister = next((one for one in sisters if one.is_refused), sisters[0])
    kind = "Job"
    check_traffic(request, _command_of(sister))
    settings = CaptureSettings(
        experiment=sister.experiment,
        run=secrets.token_hex(8),
        context=cluster.context,
        namespace=cluster.namespace,
        workload=workload,
        sister=sister.name,
        sister_kind=kind,
        container=sister.container,
        port=request.port or _port(sister, is_wrapped=plan.strategy is Strategy.ATTACH),
        health=request.health,
        ncu=_ncu(request),
        output=str(_output(request, workload, sister.experiment)),
        traffic=traffic(request),
        limits=limits(request, plan.cost.total_s),
        perfbench=str(request.perfbench.absolute()) if request.perfbench else None,
        seal=not request.no_seal,
    )
    return Built(
        cluster=cluster,
        plan=plan,
        sisters=(sister,) if sister.is_refused else sisters,
        settings=settings,
    )


def _plan(path: Path) -> tuple[CapturePlan, str]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(
            error.strerror or str(error), where=str(path), hint="`solscope plan ... -o` writes one"
        ) from error
    return planfile.from_json(raw, where=str(path)), hashlib.sha256(raw).hexdigest()


def _experiment(request: CaptureRequest, digest: str, workload: str, world: World) -> str:
    """The user's, an open bundle's, else a new one: two runs never share their objects."""
    given = request.experiment
    if request.output is not None and (request.output / bundles.SOURCE).is_file():
        own = bundles.experiment_of(request.output)
        if given not in (None, own):
            raise UsageError(
                f"the bundle is of experiment {own}, not {given}",
                where=str(request.output),
                hint="leave --experiment out, or give another bundle",
            )
        return own
    if given is not None:
        return naming.check_experiment(given, "--experiment")
    return naming.experiment_id(None, digest, workload, world.now().isoformat())


def _sisters(
    request: CaptureRequest, world: World, plan: CapturePlan, workload: str, experiment: str
) -> tuple[Sister, ...]:
    assert request.plan is not None
    wanted = sister_flow.SisterRequest(
        workload=workload,
        plan=request.plan,
        namespace=request.namespace,
        context=request.context,
        container=request.container,
        server_command=request.server_command,
        exec=request.exec,
        tools=request.tools,
        tools_image=request.tools_image,
        ncu=request.ncu,
        experiment=experiment,
        label=request.label,
        accept=request.accept,
        deadline=_deadline(request, plan) if request.deadline is None else request.deadline,
        hold=request.hold,
        sys_admin=request.sys_admin,
        read_only_claims=request.read_only_claims,
        without=request.without,
    )
    return sister_flow.of_each(wanted, world)


def _deadline(request: CaptureRequest, plan: CapturePlan) -> int:
    """Seconds after which the cluster ends the copy: not before the run's own limits do."""
    most = limits(request, plan.cost.total_s)
    waits = (most.schedule_s, most.ready_s, most.warm_up_s, most.window_s, most.finish_s)
    return max(3600, math.ceil(sum(waits) + _COLLECT_S))


def _ncu(request: CaptureRequest) -> str:
    return tooling.ncu_path(SisterOptions(tools=ToolsSource(request.tools), ncu=request.ncu))


def _output(request: CaptureRequest, workload: str, experiment: str) -> Path:
    if request.output is not None:
        return request.output
    return Path("experiments/artifacts") / workload.rpartition("/")[2] / experiment


def marked(stage: Stage) -> Sister:
    """Its sister with the stage's mark: what another run made must not be taken for it."""
    return replace(
        stage.sister, objects=tuple(_marked(item, stage.mark) for item in stage.sister.objects)
    )


def _marked(item: Mapping[str, Any], mark: str) -> Mapping[str, Any]:
    metadata = item["metadata"]
    annotations = {**(metadata.get("annotations") or {}), RUN_ANNOTATION: mark}
    return {**item, "metadata": {**metadata, "annotations": annotations}}


def _command_of(sister: Sister) -> list[str]:
    server = server_of(sister)
    return [str(word) for word in (*(server.get("command") or ()), *(server.get("args") or ()))]


def _port(sister: Sister, *, is_wrapped: bool) -> int:
    """The server's port, as its command states it."""
    words = _command_of(sister)
    stated = _LISTENS.search(" ".join(words))
    if stated is not None:
        return int(stated[1])
    found = _PORT.findall(" ".join(words))
    if is_wrapped:
        found = found[1:]  # the first is the port that the second ncu attaches to
    if found:
        return int(found[-1])
    return _DEFAULT_PORT


def server_of(sister: Sister) -> Mapping[str, Any]:
    """The profiled container of a sister; empty where it was refused."""
    if not sister.objects:
        return {}
    containers = sister.objects[-1]["spec"]["template"]["spec"]["containers"]
    return next((c for c in containers if c.get("name") == sister.container), {})


# -- a bundle begins, or is gone on with ---------------------------------------------------------


def begun(built: Built, world: World) -> Run:
    """The run with its bundle made and its own documents in it."""
    import msgspec

    folder = Path(built.settings.output)
    redactor = _redactor(built.cluster, built.settings.workload)
    bundle = _bundle(built, folder, redactor, world)
    run = _run(built, bundle, world)
    bundle.write_document(PLAN, planfile.to_json(built.plan))
    for stage in run.stages:
        sister = stage.sister = marked(stage)
        comment = f"{sister.target} -> {sister.name}, experiment {sister.experiment}"
        bundle.write_document(file_of(SISTER, stage.number), documents.to_json(sister))
        text = documents.write(sister.objects, comment=comment)
        bundle.write(file_of(MANIFEST, stage.number), text)
    bundle.write_document(SETTINGS, msgspec.json.encode(built.settings))
    return run


def _bundle(built: Built, folder: Path, redactor: Redactor, world: World) -> bundles.Bundle:
    if (folder / bundles.SOURCE).is_file():
        opened = bundles.open_bundle(folder, redactor, world.now)
        if (folder / SETTINGS).exists():
            raise UsageError(
                "a capture was run into this bundle already",
                where=str(folder),
                hint=f"go on with it: solscope capture --resume {folder}; "
                "or give another folder with -o",
            )
        return opened
    settings = built.settings
    where = f"context {settings.context or '(none)'}, namespace {settings.namespace}"
    source = BundleSource(
        experiment=settings.experiment,
        family=settings.workload.rpartition("/")[2],
        intent=f"{built.plan.level.value} of {built.plan.launches.kernel or 'every kernel'}",
        who=bundle_flow.user(),
        where=where,
        commit=bundle_flow.commit_of(Path.cwd()),
    )
    return bundles.init(folder, source, redactor, world.now)


def _run(built: Built, bundle: bundles.Bundle, world: World) -> Run:
    return Run(
        cluster=Patient(built.cluster),
        plan=built.plan,
        sisters=built.sisters,
        settings=built.settings,
        journal=Journal.opened(bundle, world.say, built.settings.run),
        say=world.say,
    )


def resumed(folder: Path, world: World) -> Run:
    """The run that a bundle holds. Raises UsageError where it holds none."""
    import msgspec

    bundles.must_exist(folder)
    try:
        settings = msgspec.json.decode((folder / SETTINGS).read_bytes(), type=CaptureSettings)
        plan = planfile.from_json((folder / PLAN).read_bytes(), where=str(folder / PLAN))
        sisters = tuple(
            msgspec.json.decode((folder / file_of(SISTER, number)).read_bytes(), type=Sister)
            for number, _ in enumerate(plan.each(), 1)
        )
    except (OSError, msgspec.MsgspecError) as error:
        file, why = getattr(error, "filename", None), getattr(error, "strerror", None)
        raise UsageError(
            f"no capture to go on with: {why or error}",
            where=str(file or folder),
            hint="nothing was made before these files were; capture again",
        ) from error
    cluster = world.cluster(settings.context, settings.namespace)
    redactor = _redactor(cluster, settings.workload)
    bundle = bundles.open_bundle(folder, redactor, world.now)
    built = Built(cluster=cluster, plan=plan, sisters=sisters, settings=settings)
    run = _run(built, bundle, world)
    if run.is_elsewhere:
        raise UsageError(
            f"{settings.workload} is another one than the one that was copied",
            where=f"context {settings.context}",
            hint="is it another cluster, by another kubeconfig? Go on with the one that it was "
            f"begun with; if it was made anew: solscope capture --cleanup {settings.experiment} "
            f"-n {settings.namespace} --yes",
        )
    for stage in run.stages:
        if not stage.has("create") and MASK in str(stage.sister.objects):
            raise UsageError(
                "the copy cannot be made from the bundle: secrets are masked in it",
                where=str(folder / file_of(SISTER, stage.number)),
                hint=f"remove what there is: solscope capture --cleanup {settings.experiment} "
                f"-n {settings.namespace} --yes; then capture again",
            )
    return run


def _redactor(cluster: Cluster, workload: str) -> Redactor:
    """Masks secrets by name and shape, and those of the target's environment by value."""
    redactor = bundle_flow._redactor()
    kind, _, name = workload.partition("/")
    with contextlib.suppress(ClusterError):
        found = cluster.get(kind, name)
        spec = found.get("spec") or {}
        pod = (spec.get("template") or {}).get("spec") or spec
        for group in ("containers", "initContainers"):
            for container in pod.get(group) or ():
                _learn(redactor, container)
    return redactor


def _learn(redactor: Redactor, container: Mapping[str, Any]) -> None:
    for variable in container.get("env") or ():
        value = variable.get("value")
        if value and secrecy.is_secret(str(variable.get("name")), str(value)):
            redactor.learn(str(value))
    words = (*(container.get("command") or ()), *(container.get("args") or ()))
    redactor.argv([str(word) for word in words])


def rehearse(stage: Stage) -> Facts:
    """Ask the cluster whether it would take the sister. Raises CaptureError with its words."""
    there = cleanup.listed(stage.cluster, stage.settings.experiment)
    if there:
        names = ", ".join(cleanup.reference(item) for item in there)
        experiment, namespace = stage.settings.experiment, stage.settings.namespace
        raise CaptureError(
            f"the experiment has objects already: {names}",
            where=f"experiment={experiment}",
            hint=f"give another --experiment, or remove them: "
            f"solscope capture --cleanup {experiment} -n {namespace} --yes",
        )
    asked = creation.rehearse(stage.cluster, stage.sister)
    _stop_at(asked.findings)
    new = [finding for finding in asked.findings if finding not in stage.sister.findings]
    for finding in new:
        stage.tick(f"rehearse: {finding.fact}; {finding.remedy}")
    told = {"admission": [f"{c.action.value} {c.path}" for c in asked.admitted]}
    return {
        "would_take": [f"{o['kind']}/{o['metadata']['name']}" for o in stage.sister.objects],
        **(told if asked.admitted else {}),
    }


def admit(stage: Stage, pod: Mapping[str, Any]) -> None:
    """Look whether the pod that was made is still the isolated copy.

    Raises CaptureError where a webhook that the rehearsal did not meet has changed that.
    """
    # A bundle that is gone on with may hold the command with a secret masked.
    is_masked = MASK in str(stage.sister.objects)
    _stop_at(
        finding
        for finding in creation.judge(stage.cluster, stage.sister, pod)
        if not (is_masked and finding.code == admission.COMMAND)
    )


def _stop_at(findings: Iterable[Finding]) -> None:
    for finding in findings:
        if finding.blocks:
            raise CaptureError(finding.fact, where=finding.where, hint=finding.remedy)
