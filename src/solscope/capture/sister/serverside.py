"""The server's command, made to stand alone: it joins nobody, is reached by nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solscope.capture.sister import environment, notices, refusal, secrecy, serving
from solscope.capture.sister.command import ServerCommand
from solscope.model.finding import Finding
from solscope.model.sister import Change, SisterTarget


def alone(
    target: SisterTarget,
    server: dict[str, Any],
    command: ServerCommand,
    memory: float | None,
) -> tuple[ServerCommand, list[Change], list[Finding]]:
    """The command as the sister starts it, what changed, and what forbids or limits it.

    ``memory`` is the share of GPU memory that was planned. Variables that stand for removed
    options are set in ``server``.
    """
    name = target.container
    changes: list[Change] = []
    findings: list[Finding] = []
    command, made = serving.leave_groups(command, name)
    changes += made
    command, made = serving.listen_on_loopback(command, name, _ports(target))
    changes += made
    command, made, secrets = serving.drop_secrets(command, name)
    changes += made
    if secrets:
        findings.append(notices.secret_options_dropped(target, secrets))
    command, made, options = serving.drop_references(command, name)
    changes += made
    for option, names in options.items():
        read_from = environment.READ_FROM.get(option.replace("_", "-"))
        if read_from is None:
            findings.append(notices.secret_reference_dropped(target, option))
            continue
        changes += environment.rename(server, f"spec.containers[{name}]", names, read_from)
    findings += of_secret_words(target, server, command.edited())
    command, made = serving.lower_memory(command, name, memory)
    return command, [*changes, *made], findings


def _ports(target: SisterTarget) -> list[int]:
    """The ports that the target's server declares; the sister's declares none."""
    every = target.template["spec"].get("containers") or ()
    named = (item for item in every if item.get("name") == target.container)
    return [
        int(port["containerPort"])
        for item in named
        for port in item.get("ports") or ()
        if str(port.get("containerPort")).isdigit()
    ]


def of_secret_words(
    target: SisterTarget, server: Mapping[str, Any], words: Sequence[str]
) -> Iterator[Finding]:
    """Secrets that would be written into the command line, which ncu's report holds."""
    secret = {
        str(entry.get("name"))
        for entry in server.get("env") or ()
        if (entry.get("valueFrom") or {}).get("secretKeyRef")
    }
    for name in sorted({name for word in words for name in secrecy.names_in(word)} & secret):
        yield refusal.block(
            "sister-secret-in-command",
            f"{target.reference} container {target.container}",
            f"the server's command holds the value of ${name}, a key of a Secret, and ncu keeps "
            "its command line in the report",
            "let the server read it from its environment; if it is no secret, write it out: "
            "--server-command",
            name,
        )
