"""Say from facts whether, and how, ncu can profile a workload. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from solscope.errors import UsageError
from solscope.flows.request import option
from solscope.flows.world import Outcome, World


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightRequest:
    """Say whether ncu can profile a workload, which way, and what stands against it.

    Reads a live workload (never changes it), or manifest files with no cluster at all. Exit code
    0: possible; 1: refused, or undetermined with the question that decides.
    """

    target: str | None = option(
        "KIND/NAME: deploy/vllm, statefulset/x, pod/y, job/z, lws/a, isvc/b", default=None,
        positional=True,
    )  # fmt: skip
    namespace: str | None = option(
        "namespace (default: that of the context)", default=None, alias="-n"
    )
    context: str | None = option(
        "kubeconfig context (default: the current one, which is never changed)", default=None
    )
    filename: tuple[str, ...] = option(
        "manifest file, YAML or JSON, several documents and kinds in one (/dev/stdin as well); "
        "may be repeated",
        default=(),
        alias="-f",
    )
    exec: bool = option(
        "also look inside the running container (reads only): command line, CUDA, driver, counter "
        "permission, injected libraries, /version",
        default=False,
    )
    container: str | None = option("the container to profile", default=None)
    format: Literal["table", "json"] = option("table or json", default="table")


def run(
    request: PreflightRequest,
    world: World,
    *,
    connect: Callable[[str | None, str | None], Any] | None = None,
) -> Outcome:
    """Snapshot, read the server's command, examine, answer.

    ``connect`` takes context and namespace and gives a Cluster; the user's kubectl by default.
    Raises UsageError for a request or a file that cannot be understood, ClusterError where the
    target cannot be read.
    """
    from solscope.capture import preflight

    snapshots = _from_files(request, world) if request.filename else None
    if snapshots is None:
        snapshots = [_from_cluster(request, world, connect or _kubectl)]
    answers = [preflight.examine(snapshot) for snapshot in snapshots]
    return _shown(answers, request, world)


def _kubectl(context: str | None, namespace: str | None) -> Any:
    from solscope.cluster.kubectl import Kubectl

    return Kubectl(context=context, namespace=namespace)


def _from_files(request: PreflightRequest, world: World) -> list[Any]:
    from solscope.capture import engine, snapshot

    if request.exec:
        raise UsageError("--exec needs a live target", hint="leave out -f, or leave out --exec")
    objects: list[Any] = []
    for name in request.filename:
        objects += snapshot.read_objects(_text(name), name)
    found = snapshot.from_objects(
        objects,
        target=request.target,
        container=request.container,
        namespace=request.namespace,
        source=", ".join(request.filename),
        now=world.now(),
        recognises=engine.recognises,
    )
    return [_with_engine(item) for item in found]


def _text(name: str) -> str:
    try:
        return Path("/dev/stdin" if name == "-" else name).read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read the file: {error.strerror}", where=name) from error
    except UnicodeDecodeError as error:
        raise UsageError("the file is not UTF-8 text", where=name) from error


def _from_cluster(
    request: PreflightRequest, world: World, connect: Callable[[str | None, str | None], Any]
) -> Any:
    from solscope.capture import engine, snapshot

    if request.target is None:
        raise UsageError(
            "nothing to look at", hint="name a live workload (deploy/NAME -n NS) or a file with -f"
        )
    cluster = connect(request.context, request.namespace)
    taken = snapshot.from_cluster(
        cluster,
        request.target,
        container=request.container,
        now=world.now(),
        recognises=engine.recognises,
    )
    taken = _with_engine(taken)
    return _with_inside(taken, cluster) if request.exec else taken


def _with_engine(taken: Any) -> Any:
    """The server's arguments from the template, ``--config`` files out of ConfigMaps."""
    from solscope.capture import engine, snapshot

    if taken.server is None:
        return taken
    maps = taken.seen("configmaps")
    files = snapshot.config_files(taken.server.mounts, taken.template_raw, maps)
    return replace(taken, engine=engine.from_container(taken.server, files=files))


def _with_inside(taken: Any, cluster: Any) -> Any:
    """What the first ready pod's container says; its command line outranks the template's."""
    from solscope.capture import engine, snapshot

    running = [pod for pod in taken.pods if pod.phase in (None, "Running")]
    if taken.server is None or not running:
        note = "no running pod to look inside"
        return replace(taken, notes=(*taken.notes, note))
    pod = next((p for p in running if p.is_ready), running[0])
    name, space = str(pod.name), taken.namespace
    inside = snapshot.look_inside(cluster, pod=name, container=taken.server.name, namespace=space)
    port = engine.port_of(_running_engine(taken, inside) or taken.engine)
    inside = snapshot.ask_server(inside, cluster, pod=name, namespace=space, port=port)
    seen = _running_engine(taken, inside)
    return replace(taken, inside=inside, engine=seen or taken.engine)


def _running_engine(taken: Any, inside: Any) -> Any:
    """The server's arguments as the process has them; None where it cannot be told."""
    from solscope.capture import engine, snapshot

    cmdline = inside.text("cmdline")
    if not cmdline:
        return None
    seen = engine.from_process(
        cmdline.replace(snapshot.WORD_END, "\0").encode(),
        taken.server,
        environment=inside.env,
        version=inside.text("version"),
        metrics=inside.text("metrics"),
    )
    return seen if seen.engine is not None else None


def _shown(answers: Sequence[Any], request: PreflightRequest, world: World) -> Outcome:
    from solscope.render import preflight as page

    exit_code = max(answer.exit_code for answer in answers)
    if request.format == "json":
        import json

        data = [page.as_data(answer) for answer in answers]
        whole: Any = data[0] if len(data) == 1 else {"schema": data[0]["schema"], "workloads": data}
        text = json.dumps(whole, indent=2, ensure_ascii=False)
    else:
        rule = "\n\n" + "-" * min(world.width, 100) + "\n\n"
        text = rule.join(page.as_text(answer, world.width) for answer in answers)
    value = answers[0] if len(answers) == 1 else tuple(answers)
    return Outcome(value=value, text=text, exit_code=exit_code)
