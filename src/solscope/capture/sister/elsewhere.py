"""Options of the server that stand elsewhere than in its command: in a variable, in a file.

They cannot be taken out there, and one that joins a peer must not reach the copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solscope.capture.sister import environment
from solscope.capture.sister.command import Engine, ServerCommand
from solscope.capture.sister.options import GROUP, JOINING
from solscope.capture.sister.refusal import block
from solscope.model.cluster import KubernetesObject
from solscope.model.finding import Finding, Severity
from solscope.model.sister import SisterTarget

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
        values[str(entry.get("name"))] = str(entry.get("value") or "")
    for variable, value in values.items():
        for name in names:
            if re.search(rf"(?<![\w-])--{_spelled(name)}(?![\w-])", value):
                yield _hidden(where, f"variable {variable}", f"--{name}")
    for path in _files(command):
        text = _text_of(path, server, target.template["spec"], objects)
        if text is None:
            yield Finding(
                code="sister-options-unseen",
                severity=Severity.WARNING,
                where=where,
                fact=f"its options in {path} were not seen",
                remedy="see that they join no peer: kv-transfer-config, data-parallel-address, "
                "api-key and their kin",
            )
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
