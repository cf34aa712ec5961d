"""``solscope sister``: the isolated copy that will be profiled, its proof, and what differs."""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from solscope.capture import planfile, snapshot
from solscope.capture.sister import (
    assembly,
    creation,
    documents,
    naming,
    shapes,
    surroundings,
    target,
)
from solscope.capture.sister.surroundings import Surroundings
from solscope.cluster.port import Cluster
from solscope.errors import UsageError
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.cluster import KubernetesObject
from solscope.model.plan import CapturePlan
from solscope.model.sister import Sister, SisterKind, SisterOptions, SisterTarget, ToolsSource
from solscope.render import sister as page


@dataclass(frozen=True, slots=True, kw_only=True)
class SisterRequest:
    """Make an isolated copy of a workload, to be profiled in its place, and prove its isolation.

    The target is a manifest (-f) or a live object (kind/name). Nothing is created without
    --apply --yes. Exit code 1 means refused: the reasons are findings.
    """

    workload: str | None = option(
        "The target, as kind/name (deploy/vllm). With -f: which one of the file.",
        default=None,
        positional=True,
    )
    plan: Path = option("The plan, made by `solscope plan ... -o plan.json`.")
    file: Path | None = option(
        "Read the target from this manifest (/dev/stdin as well).", default=None, alias="-f"
    )
    namespace: str | None = option("Namespace.", default=None, alias="-n")
    context: str | None = option("kubectl context; the current one if left out.", default=None)
    output: Path | None = option(
        "Write sister.yaml, sister.json and sister.txt into this folder.", default=None, alias="-o"
    )
    kind: Literal["Job", "Deployment"] = option(
        "What owns the pod. A Job ends by itself.", default="Job"
    )
    container: str | None = option("Which container to profile.", default=None)
    server_command: str | None = option(
        "The server's whole command line, where only its image knows it.", default=None
    )
    exec: bool = option(
        "Read that command line in the target's running container (reads only).", default=False
    )
    tools: Literal["init-container", "image-volume", "in-image"] = option(
        "How ncu gets into the pod. image-volume needs Kubernetes 1.35 and --ncu.",
        default="init-container",
    )
    tools_image: str | None = option(
        "Image that ncu is taken from; by default one that fits the plan's chip.", default=None
    )
    ncu: str | None = option("Where ncu lies in the tools image.", default=None)
    experiment: str | None = option(
        "Id of the experiment; by default made from target and plan.", default=None
    )
    label: tuple[str, ...] = option(
        "A further label for the sister, KEY=VALUE. May be repeated.", default=()
    )
    accept: tuple[str, ...] = option(
        "Allow this object (kind/name) to match the sister; none that sends requests. "
        "May be repeated.",
        default=(),
    )
    deadline: int | None = option(
        "Seconds after which the Job is ended; by default what the plan needs, an hour at least.",
        default=None,
    )
    keep: int = option("Seconds for which the ended Job stays.", default=3600)
    hold: int = option(
        "Seconds for which results stay reachable after the server ended.", default=300
    )
    sys_admin: bool = option(
        "Add CAP_SYS_ADMIN, for drivers that reserve GPU counters for admins.", default=False
    )
    read_only_claims: bool = option("Mount volume claims read-only.", default=False)
    without: tuple[str, ...] = option(
        "Leave this container or init container out. May be repeated.", default=()
    )
    harness: Path | None = option(
        "The script to run instead of the server, for the plan's strategy harness.", default=None
    )
    apply: bool = option("Create it in the cluster: a rehearsal unless --yes.", default=False)
    yes: bool = option("With --apply: really create it.", default=False)
    format: Literal["table", "json"] = option("Output format.", default="table")


def run(request: SisterRequest, world: World) -> Outcome:
    """Read target and plan, build the sister, prove it, write it, and create it if told so."""
    plan, digest = _plan(request.plan)
    (sister,), cluster = _built(request, world, (plan,), digest)
    if cluster is not None and request.apply and not sister.is_refused:
        sister = creation.rehearse(cluster, sister)
    files = _write(sister, request.output)
    if cluster is not None and request.apply and request.yes and not sister.is_refused:
        sister = creation.create(cluster, sister)
        files = _write(sister, request.output)
    text = documents.to_json(sister) if request.format == "json" else _page(sister, files)
    return Outcome(value=sister, text=text, exit_code=1 if sister.is_refused else 0, files=files)


def of_each(request: SisterRequest, world: World) -> tuple[Sister, ...]:
    """A sister for each start of the server that the plan wants, from one look at the cluster."""
    plan, digest = _plan(request.plan)
    return _built(request, world, plan.each(), digest)[0]


def _built(
    request: SisterRequest, world: World, plans: Sequence[CapturePlan], digest: str
) -> tuple[tuple[Sister, ...], Cluster | None]:
    options = _options(request)
    chosen, seen, cluster = _target(request, world)
    if cluster is not None and request.exec and not options.server_command:
        command = surroundings.running_command(cluster, chosen, seen.objects)
        options = replace(options, server_command=command)
    sisters = tuple(
        assembly.build(
            chosen,
            plan,
            objects=seen.objects,
            options=options,
            plan_digest=digest,
            unread=seen.unread,
            server_version=seen.version,
        )
        for plan in plans
    )
    return sisters, cluster


def _page(sister: Sister, files: tuple[str, ...]) -> str:
    return page.page(sister, manifest=files[0] if files else None)


def _plan(path: Path) -> tuple[CapturePlan, str]:
    raw = _read(path)
    return planfile.from_json(raw, where=str(path)), hashlib.sha256(raw).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=str(path)) from error


def _target(
    request: SisterRequest, world: World
) -> tuple[SisterTarget, Surroundings, Cluster | None]:
    """The target, all that its sister's labels are matched against, and the cluster if needed."""
    if request.file is None and request.workload is None:
        raise UsageError("no target", hint="name one (deploy/NAME -n NS) or give -f manifest.yaml")
    if request.yes and not request.apply:
        raise UsageError("--yes belongs to --apply", hint="add --apply, or leave --yes out")
    if request.exec and request.file is not None:
        raise UsageError("--exec needs a live target", hint="leave out -f, or leave out --exec")
    if request.file is None:
        return _live(request, world)
    objects = _objects(request.file)
    chosen = target.choose(
        objects,
        wanted=request.workload,
        container=request.container,
        namespace=request.namespace,
        where=str(request.file),
    )
    if not request.apply:
        return chosen, Surroundings(objects=objects, unread=()), None
    cluster = world.cluster(request.context, chosen.namespace)
    chosen = replace(chosen, namespace=cluster.namespace)
    found = surroundings.read(cluster, cluster.namespace, progress=world.progress)
    every = surroundings.distinct((*objects, *found.objects), cluster.namespace)
    return chosen, replace(found, objects=every), cluster


def _live(request: SisterRequest, world: World) -> tuple[SisterTarget, Surroundings, Cluster]:
    kind, slash, name = (request.workload or "").partition("/")
    if not slash or not name:
        raise UsageError(f"{kind!r} names no workload", hint=f"write deploy/{kind} or pod/{kind}")
    cluster = world.cluster(request.context, request.namespace)
    named = cluster.get(kind, name)
    found = surroundings.read(cluster, cluster.namespace, progress=world.progress)
    every = surroundings.distinct((named, *found.objects), cluster.namespace)
    chosen = target.choose(
        every,
        wanted=f"{named.get('kind')}/{name}",
        container=request.container,
        namespace=cluster.namespace,
        where=f"{kind}/{name} -n {cluster.namespace}",
    )
    found = surroundings.with_node(cluster, replace(found, objects=every), chosen.node)
    return chosen, surroundings.with_maps(cluster, found, chosen), cluster


def _objects(file: Path) -> tuple[KubernetesObject, ...]:
    try:
        text = _read(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", where=f"{file}: byte {error.start}") from error
    objects = snapshot.read_objects(text, str(file))
    shapes.check_all(objects, str(file))
    return objects


def _options(request: SisterRequest) -> SisterOptions:
    tools = ToolsSource(request.tools)
    if tools is ToolsSource.IMAGE_VOLUME and request.ncu is None:
        raise UsageError(
            "--tools image-volume needs the place of ncu in the image",
            hint="add --ncu /opt/nvidia/nsight-compute/VERSION/ncu",
        )
    command = shlex.split(request.server_command) if request.server_command else []
    harness = _read(request.harness).decode() if request.harness else None
    return SisterOptions(
        kind=SisterKind(request.kind),
        experiment=request.experiment,
        tools_image=request.tools_image,
        tools=tools,
        ncu=request.ncu,
        server_command=tuple(command),
        labels=dict(naming.check_label(item) for item in request.label),
        accept=request.accept,
        deadline_s=request.deadline,
        time_to_live_s=request.keep,
        hold_s=request.hold,
        sys_admin=request.sys_admin,
        read_only_claims=request.read_only_claims,
        without=request.without,
        harness=harness,
    )


def _write(sister: Sister, folder: Path | None) -> tuple[str, ...]:
    """Write the three files whole or not at all; a refused sister leaves no manifest."""
    if folder is None or sister.is_refused:
        return ()
    comment = f"{sister.target} -> {sister.name}, experiment {sister.experiment}"
    manifest = folder / "sister.yaml"
    texts = {
        manifest: documents.write(sister.objects, comment=comment),
        folder / "sister.json": documents.to_json(sister) + "\n",
        folder / "sister.txt": page.page(sister, manifest=str(manifest)) + "\n",
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            _replace(path, text)
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=str(folder)) from error
    return tuple(str(path) for path in texts)


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(name, path)
