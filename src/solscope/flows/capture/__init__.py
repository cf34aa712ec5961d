"""``solscope capture``: run a plan on an isolated copy, bring the reports home, leave nothing."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from solscope.capture.execution import cleanup, preview
from solscope.capture.execution.run import Run
from solscope.capture.sister import naming
from solscope.errors import CaptureError, SolscopeError, UsageError
from solscope.evidence import files, sealing
from solscope.flows.capture import building, reading
from solscope.flows.capture.request import CaptureRequest
from solscope.flows.world import Outcome, World
from solscope.model.capture import CaptureResult
from solscope.model.finding import Finding, Severity
from solscope.render import capture as page

_SECONDS = tuple(
    f"{name}_limit" for name in ("pending", "ready", "warm_up", "window", "finish", "cleanup")
)


def run(request: CaptureRequest, world: World) -> Outcome:
    """The verb. Exit code 1: refused, something is left, or production is not as before."""
    _check(request)
    if request.cleanup is not None:
        return _clean_up(request, request.cleanup, world)
    if request.resume is not None:
        return _conclude(building.resumed(request.resume, world), request, world)
    built = building.build(request, world)
    if built.sister.is_refused:
        result = replace(built.result(is_dry_run=True), findings=built.sister.findings)
        return Outcome(value=result, text=page.refused(built.sister, result), exit_code=1)
    if not request.yes:
        steps = preview.steps(built.settings, built.sisters, built.plan)
        result = replace(built.result(is_dry_run=True), steps=steps, findings=built.sister.findings)
        text = _text(request, result, page.dry_run(built.sister, built.plan, result))
        return Outcome(value=result, text=text)
    return _conclude(building.begun(built, world), request, world)


def _check(request: CaptureRequest) -> None:
    modes = [request.plan, request.resume, request.cleanup]
    if sum(mode is not None for mode in modes) != 1:
        raise UsageError(
            "give one of --plan, --resume and --cleanup",
            hint="solscope capture --plan plan.json deploy/NAME -n NS",
        )
    for name in ("isl", "osl", "concurrency"):
        if getattr(request, name) < 1:
            raise UsageError(f"--{name} {getattr(request, name)} sends nothing")
    for name in (*_SECONDS, "deadline", "hold"):
        value = getattr(request, name)
        if value is not None and not 0 < value < math.inf:
            option = name.replace("_", "-")
            raise UsageError(f"--{option} {value:g} is no time to wait", hint="give seconds")
    if request.cleanup is not None:
        naming.check_experiment(request.cleanup, "--cleanup")
        if request.namespace is None:
            raise UsageError("--cleanup needs the namespace", hint="add -n NAMESPACE")


def _clean_up(request: CaptureRequest, experiment: str, world: World) -> Outcome:
    cluster = world.cluster(request.context, request.namespace)
    seen = cleanup.look(cluster, experiment)
    found = seen.objects
    names = tuple(cleanup.reference(item) for item in found)
    result = CaptureResult(
        experiment=experiment,
        target="",
        namespace=cluster.namespace,
        context=cluster.context,
        is_dry_run=not request.yes,
        leftovers=names,
        findings=tuple(_unseen(seen.unseen, cluster.namespace)),
    )
    if not request.yes or not found:
        text = _text(request, result, page.leftovers(result))
        return Outcome(value=result, text=text, exit_code=1 if found else 0)
    told = cleanup.remove(cluster, experiment, request.cleanup_limit)
    result = replace(result, leftovers=(), done=tuple(told["removed"]))
    return Outcome(value=result, text=_text(request, result, page.leftovers(result)))


def _unseen(kinds: Sequence[str], namespace: str) -> Iterator[Finding]:
    if kinds:
        yield Finding(
            code="kinds-unseen",
            severity=Severity.WARNING,
            where=f"namespace {namespace}",
            fact=f"you may not list {', '.join(kinds)}: what is left among them is not known",
            remedy="a capture makes none of them; for a sister of kind Deployment ask its owner",
        )


def _text(request: CaptureRequest, result: CaptureResult, table: str) -> str:
    return page.as_json(result) if request.format == "json" else table


# -- a run and its end ---------------------------------------------------------------------------


def _conclude(made: Run, request: CaptureRequest, world: World) -> Outcome:
    """Run to the end; whatever happens, everything made is removed and told."""
    with _alone(made), _stopped_politely():
        if made.journal.has("cleanup"):
            if made.journal.has("inspect"):
                reading.keep(made, world)
            return _finished(made, request, world)
        try:
            made.capture(
                rehearse=building.rehearse,
                admit=building.admit,
                inspect=lambda: reading.inspect(made),
            )
            reading.keep(made, world)
            _clean(made)
        except (Exception, KeyboardInterrupt) as error:
            _give_up(made, error)
        return _finished(made, request, world)


def _clean(made: Run) -> None:
    """Remove everything; what a slow node still holds is waited for once more."""
    try:
        made.clean()
    except CaptureError:
        made.clean()


def _give_up(made: Run, error: BaseException) -> None:
    """Keep what was said, clean up, look at production, then say why. Always raises.

    A second Ctrl-C ends the clean-up, too.
    """
    try:
        notes, problems = _last_words(made, error)
        problems += _cleaned(made)
    except KeyboardInterrupt:
        made.say(f"interrupted before everything was removed; {_go_on(made)}")
        raise
    if isinstance(error, SolscopeError | OSError):
        raise _explained(made, error, notes, problems) from error
    folder = made.journal.bundle.folder
    made.say("; ".join([f"ended, what was found is in {folder}", *(problems or [_removed(made)])]))
    if problems:
        made.say(_go_on(made))
    raise error


def _last_words(made: Run, error: BaseException) -> tuple[list[str], list[str]]:
    """The diagnosis and what is to do, and why there is none.

    Whatever goes wrong here, the clean-up comes next.
    """
    notes = []
    is_interrupted = isinstance(error, KeyboardInterrupt)
    try:
        if not is_interrupted:
            made.hear_out()
            notes = [note for note in (made.free_clocks(),) if note]
        made.save_logs()
        diagnosis = None if is_interrupted else reading.diagnose(made)
    except (SolscopeError, OSError):
        return notes, []
    except Exception as problem:
        return notes, [f"its logs could not be read ({type(problem).__name__}: {problem})"]
    return [*([f"diagnosis: {diagnosis}"] if diagnosis else []), *notes], []


def _cleaned(made: Run) -> list[str]:
    """Remove everything and look at production; what went wrong."""
    problems = []
    steps = [made.clean] if made.owns_objects else []
    for last in (*steps, *([made.compare_production] if _was_read(made) else [])):
        try:
            last()
        except Exception as problem:
            problems.append(getattr(problem, "what", None) or str(problem))
    return problems


def _removed(made: Run) -> str:
    return "everything made is deleted" if made.owns_objects else "nothing was made"


def _go_on(made: Run) -> str:
    settings = made.settings
    return (
        f"next: solscope capture --resume {made.journal.bundle.folder}, or remove what is left: "
        f"solscope capture --cleanup {settings.experiment} -n {settings.namespace} --yes"
    )


def _was_read(made: Run) -> bool:
    return made.journal.has("production-before")


def _explained(
    made: Run, error: BaseException, notes: list[str], problems: list[str]
) -> CaptureError:
    folder = made.journal.bundle.folder
    receipt = getattr(error, "receipt", None)
    what = getattr(error, "what", None) or str(error) or type(error).__name__
    place = getattr(error, "where", None)
    parts = [f"{what} ({place})" if place else what]
    parts += [*notes, *problems]
    if not problems and made.owns_objects:
        parts.append(_removed(made))
    if made.owns_objects and not made.journal.has("cleanup"):
        parts.append(f"the copy may still be there, {_go_on(made)}")
    where = f"{folder}/commands/{receipt}.stderr" if receipt else str(folder)
    return CaptureError(
        "; ".join(parts), where=where, hint=getattr(error, "hint", None), receipt=receipt
    )


def _finished(made: Run, request: CaptureRequest, world: World) -> Outcome:
    if not made.journal.has("inspect"):
        raise CaptureError(
            "this run failed and was cleaned up: there is nothing to go on with",
            where=str(made.journal.bundle.folder),
            hint="its receipts say why; capture again into another bundle",
        )
    after, differences = made.compare_production()
    result = reading.result(made, after)
    if differences:
        result = replace(result, findings=(*result.findings, _changed(differences, made)))
    if made.settings.seal:
        sealing.seal(made.journal.bundle.folder, world.now())
        result = replace(result, is_sealed=True)
    code = 1 if differences else 0
    text = _text(request, result, page.captured(result))
    return Outcome(value=result, text=text, exit_code=code)


def _changed(differences: tuple[str, ...], made: Run) -> Finding:
    return Finding(
        code="production-changed",
        severity=Severity.WARNING,
        where=made.settings.workload,
        fact=f"not as before the capture: {'; '.join(differences)}",
        remedy="look whether that was a roll-out of its own; the capture only reads it",
    )


@contextlib.contextmanager
def _alone(made: Run) -> Iterator[None]:
    """Raise UsageError where another process works on the same run: each would undo the other."""
    folder = made.journal.bundle.folder
    with files.claimed(folder / building.FOLDER) as is_ours:
        if not is_ours:
            raise UsageError(
                "a capture is at work on this bundle",
                where=str(folder),
                hint="wait for it, or end its process: it then removes what it made",
            )
        yield


@contextlib.contextmanager
def _stopped_politely() -> Iterator[None]:
    """SIGTERM, and the end of the terminal, end a run as Ctrl-C does: by cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    # Under nohup the end of the terminal is to be ignored: it stays so.
    caught = [
        one
        for one in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(one) is not signal.SIG_IGN
    ]
    before = {one: signal.signal(one, interrupt) for one in caught}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


__all__ = ["CaptureRequest", "run"]
