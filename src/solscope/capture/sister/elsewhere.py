"""Options of the server that stand elsewhere than in its command: in a variable, in a file.

They cannot be taken out there, and one that joins a peer must not reach the copy.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solscope.capture.sister import environment
from solscope.capture.sister.command import Engine, ServerCommand, assignments
from solscope.capture.sister.options import GROUP, JOINING
from solscope.capture.sister.refusal import block
from solscope.model.cluster import KubernetesObject
from solscope.model.finding import Finding, Severity
from solscope.model.sister import SisterTarget

# ``$EXTRA_ARGS``, ``$(VLLM_OPTS)``, ``${FLAGS[@]}``.
_OPTIONS_WORD = re.compile(
    r"\$[({]?(\w*(?:ARGS|OPTS|OPTIONS|FLAGS)\w*)(?:\[@\])?(?::-[^}]*)?[)}]?", re.IGNORECASE
)
# What names a file of options: vLLM and SGLang, TensorRT-LLM.
_FILES = re.compile(r"--(?:config|extra[-_]llm[-_]api[-_]options)(?:=(?P<file>.+))?\Z", re.DOTALL)


def of_target(
    target: SisterTarget,
    server: Mapping[str, Any],
    command: ServerCommand,
    objects: Sequence[KubernetesObject],
) -> Iterator[Finding]:
    """Options that would join the copy to others, and files that may hold some."""
    where = f"{target.reference} container {target.container}"
    names = _joining(command.engine)
    values, _ = environment.from_maps(server, objects)
    for entry in server.get("env") or ():
        if "valueFrom" not in entry:
            values[str(entry.get("name"))] = str(entry.get("value") or "")
    values |= assignments(command)
    for variable, value in values.items():
        for name in names:
            if re.search(rf"(?<![\w-])--{_spelled(name)}(?![\w-])", value):
                yield _hidden(where, f"variable {variable}", f"--{name}")
    rest = _rest_of_script(command)
    for name in names:
        # Other commands of a script may have a key of their own.
        if name != "api-key" and re.search(rf"(?<![\w-])--{_spelled(name)}(?![\w-])", rest):
            yield _hidden(where, "the start script, before the server's command,", f"--{name}")
    for word in _unseen_words(command, values, rest):
        yield _unseen(where, word)
    for path in _files(command):
        text = _text_of(path, server, target.template["spec"], objects)
        if text is None:
            yield _unseen(where, path)
            continue
        for name in names:
            found = re.search(rf"^\s*[\"']?{_spelled(name)}[\"']?\s*:\s*(.*)$", text, re.MULTILINE)
            if found and (name, found[1].strip()) != ("nnodes", "1"):
                yield _hidden(where, f"file {path}", name)


def _joining(engine: Engine) -> list[str]:
    """Names without dashes, of an engine or, where that is not known, of all."""
    every = (
        option.name.removeprefix("--")
        for option in (*JOINING, *GROUP)
        if engine in (option.engine, Engine.UNKNOWN)
    )
    return list(dict.fromkeys(every))


def _spelled(name: str) -> str:
    return name.replace("-", "[-_]")


def _hidden(where: str, place: str, name: str) -> Finding:
    return block(
        "sister-options-hidden",
        where,
        f"{place} holds {name}, which would join the copy to others and cannot be taken out there",
        'give the whole command without it: --server-command "..."; or write the options into the '
        "target's args",
        f"{place}: {name}",
    )


def _unseen(where: str, place: str) -> Finding:
    return Finding(
        code="sister-options-unseen",
        severity=Severity.WARNING,
        where=where,
        fact=f"its options in {place} were not seen",
        remedy="see that they join no peer: kv-transfer-config, data-parallel-address, api-key and "
        "their kin; or give the whole command: --server-command",
    )


def _rest_of_script(command: ServerCommand) -> str:
    """A start script without the server's own words: an array or a function may hold options."""
    text, end = [], 0
    for begin, after in command.spans:
        text.append((command.script or "")[end:begin])
        end = after
    return " ".join([*text, (command.script or "")[end:]])


def _unseen_words(command: ServerCommand, values: Mapping[str, str], rest: str) -> Iterator[str]:
    """Words that stand for several options, of variables that nobody saw or of a command."""
    words = command.edited()
    for before, word in itertools.pairwise(words):
        is_value = before.startswith("--") and "=" not in before
        name = _OPTIONS_WORD.fullmatch(word)
        if is_value or word.startswith("--") or not word.startswith("$"):
            continue
        if word.startswith("$(") and " " in word:
            yield word
        elif name and name[1] not in values and not re.search(rf"\b{name[1]}\+?=", rest):
            yield f"${name[1]}"


def _files(command: ServerCommand) -> Iterator[str]:
    words = command.edited()
    for index, word in enumerate(words):
        found = _FILES.match(word)
        if found is None:
            continue
        following = words[index + 1] if index + 1 < len(words) else ""
        path = found["file"] or following
        if path and not path.startswith("-"):
            yield path


def _text_of(
    path: str,
    server: Mapping[str, Any],
    spec: Mapping[str, Any],
    objects: Sequence[KubernetesObject],
) -> str | None:
    """A file's text where a ConfigMap that was seen holds it."""
    folder, _, file = path.rpartition("/")
    volumes = {str(volume.get("name")): volume for volume in spec.get("volumes") or ()}
    for mount in server.get("volumeMounts") or ():
        source = (volumes.get(str(mount.get("name"))) or {}).get("configMap") or {}
        place = str(mount.get("mountPath") or "").rstrip("/")
        key = str(mount.get("subPath") or file)
        if not source or place not in (folder, path):
            continue
        for item in source.get("items") or ():
            if item.get("path") == key:
                key = str(item.get("key"))
        for found in objects:
            named = (found.get("metadata") or {}).get("name") == source.get("name")
            if found.get("kind") == "ConfigMap" and named and key in (found.get("data") or {}):
                return str(found["data"][key])
    return None
