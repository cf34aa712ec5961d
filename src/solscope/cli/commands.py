"""Every verb of the catalog as a command: request dataclass fields become options."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, get_type_hints

import cyclopts
from rich.console import Console

from solscope.errors import SolscopeError, UsageError
from solscope.flows import catalog
from solscope.flows.world import Outcome, World

EXIT_BUG = 70
EXIT_INTERRUPT = 130
SHOW_PROGRESS_AFTER_S = 1.0

# Annotations are built at run time, from the fields: no types that a checker could read.
_ANNOTATED: Any = Annotated

_STDIN = "\0-"  # the argument parser takes a bare hyphen for an option without a name


def call(arguments: list[str]) -> int:
    """Run a verb and return its exit code. Prints text to stdout, errors to stderr."""
    name = arguments[0]
    verb = next((v for v in catalog.VERBS if v.name == name), None)
    try:
        if verb is None:
            raise _unknown_verb(name)
        outcome = _run(verb, arguments[1:])
    except SolscopeError as error:
        print(f"solscope: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("solscope: interrupted", file=sys.stderr)
        return EXIT_INTERRUPT
    except BrokenPipeError:
        return _closed_pipe()
    except Exception as error:
        return _bug(error)
    if outcome is None:
        return 0
    return _show(outcome)


def _show(outcome: Outcome) -> int:
    try:
        if outcome.text:
            print(outcome.text)
        for path in outcome.files:
            print(f"wrote {path}", file=sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads no further still wants the answer, and a script looks at nothing else.
        _closed_pipe()
    return outcome.exit_code


def _closed_pipe() -> int:
    # The reader (`| head`) has gone; point stdout at nothing so that exit does not complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _unknown_verb(name: str) -> UsageError:
    import difflib

    names = [verb.name for verb in catalog.VERBS]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean `solscope {near[0]}`?" if near else "see `solscope --help`"
    return UsageError(f"no verb called {name!r}", hint=hint)


def _bug(error: Exception) -> int:
    with tempfile.NamedTemporaryFile(
        "w", prefix="solscope-bug-", suffix=".log", delete=False, encoding="utf-8"
    ) as log:
        traceback.print_exception(error, file=log)
    print(
        f"solscope: internal error: {type(error).__name__}: {error}\n"
        f"  next: this is a bug of solscope; please report it with {log.name}",
        file=sys.stderr,
    )
    return EXIT_BUG


def _run(verb: catalog.Verb, arguments: list[str]) -> Outcome | None:
    request_type = load(verb.request)
    function = load(verb.run)
    app = cyclopts.App(
        name=f"solscope {verb.name}",
        help=inspect.cleandoc(request_type.__doc__ or verb.summary),
        help_format="plaintext",
        version_flags=(),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    command = _command(request_type, lambda request: function(request, world()))
    app.default(command)
    try:
        given = [_STDIN if argument == "-" else argument for argument in arguments]
        result = app(given, exit_on_error=False, print_error=False)
    except cyclopts.CycloptsError as error:
        hint = f"see `solscope {verb.name} --help`"
        raise UsageError(_one_line(str(error)), hint=hint) from error
    return result if isinstance(result, Outcome) else None


def _one_line(text: str) -> str:
    return " ".join(text.split())


def load(reference: str) -> Any:
    """The object that ``module:attribute`` names."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _command(request_type: type, function: Callable[[Any], Outcome]) -> Callable[..., Outcome]:
    """A function with one parameter per request field, as the argument parser wants it."""

    def command(*args: Any, **kwargs: Any) -> Outcome:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = {name: _as_given(value) for name, value in bound.arguments.items()}
        return function(request_type(**values))

    parameters, annotations = _parameters(request_type)
    signature = inspect.Signature(parameters)
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = annotations
    command.__doc__ = None
    return command


def _as_given(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple("-" if item == _STDIN else item for item in value)
    return "-" if value == _STDIN else value


def _parameters(request_type: Any) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    hints = get_type_hints(request_type)
    annotations: dict[str, Any] = {}
    positional: list[inspect.Parameter] = []
    named: list[inspect.Parameter] = []
    for field in dataclasses.fields(request_type):
        meta = field.metadata
        is_positional = bool(meta.get("positional"))
        default = _default_of(field)
        options: dict[str, Any] = {"help": meta.get("help", ""), "negative": ()}
        if not is_positional:
            name = meta.get("name") or "--" + field.name.replace("_", "-")
            options["name"] = (name, *meta.get("alias", ()))
        if meta.get("hidden"):
            options["show"] = False
        annotation = _ANNOTATED[hints[field.name], cyclopts.Parameter(**options)]
        annotations[field.name] = annotation
        kind = (
            inspect.Parameter.POSITIONAL_OR_KEYWORD
            if is_positional
            else inspect.Parameter.KEYWORD_ONLY
        )
        parameter = inspect.Parameter(field.name, kind, default=default, annotation=annotation)
        (positional if is_positional else named).append(parameter)
    return [*positional, *named], annotations


def _default_of(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty


def world() -> World:
    """The world of a command line: this terminal, a progress bar on stderr, the wall clock."""
    console = Console()
    return World(
        width=console.width if console.is_terminal else 100,
        color=console.is_terminal and not console.no_color,
        progress=_progress,
        say=_say,
    )


def _say(text: str) -> None:
    """One line on stderr for each new thing that is told.

    A reader that has gone (`2>&1 | head`, a closed terminal) ends nothing: what was made in a
    cluster still wants its clean-up.
    """
    with contextlib.suppress(OSError, ValueError):
        print(f"solscope: {text}", file=sys.stderr, flush=True)


def _progress(items: Iterable[str], label: str) -> Iterator[str]:
    """Show a bar on stderr once the work has taken over a second; never into a pipe."""
    import time

    from rich.progress import Progress

    todo = list(items)
    if not sys.stderr.isatty():
        yield from todo
        return
    begun = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=len(todo), visible=False)
        for item in todo:
            bar.update(task, visible=time.monotonic() - begun > SHOW_PROGRESS_AFTER_S)
            yield item
            bar.advance(task)
