"""A manifest's text into Kubernetes objects; its errors with their line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from solscope.capture.sister import shapes
from solscope.errors import UsageError
from solscope.model.cluster import KubernetesObject
from solscope.model.sister import Sister


def read(text: str, *, where: str) -> tuple[KubernetesObject, ...]:
    """Every object of YAML documents or of JSON; ``List`` objects are taken apart.

    Raises UsageError with the line for text that is neither, and for documents that are no
    Kubernetes objects.
    """
    found: list[KubernetesObject] = []
    for number, document in enumerate(_load(text, where), start=1):
        if document is None:
            continue
        if not isinstance(document, dict):
            raise UsageError(
                f"document {number} is a {type(document).__name__}, not a Kubernetes object",
                where=where,
            )
        found.extend(_flatten(document, number, where))
    return tuple(found)


def _load(text: str, where: str) -> list[Any]:
    # JSON is YAML as well, but a hundred times quicker as itself.
    if text.lstrip("\ufeff").lstrip().startswith("{"):
        try:
            return [json.loads(text.lstrip("\ufeff"))]
        except json.JSONDecodeError:
            pass
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return list(yaml.load_all(text.lstrip("\ufeff"), Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark is not None else ""
        raise UsageError(
            f"not YAML: {error.problem or error.context}",
            where=f"{where}{line}",
            hint="see that line and the one above it: indentation, quotes, tabs",
        ) from error
    except yaml.YAMLError as error:
        raise UsageError(f"not YAML: {error}".splitlines()[0], where=where) from error


def _flatten(document: dict[str, Any], number: int, where: str) -> Iterator[KubernetesObject]:
    kind = document.get("kind")
    if not isinstance(kind, str):
        raise UsageError(
            f"document {number} has no kind", where=where, hint="is it a values file of a chart?"
        )
    if kind.endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            if not isinstance(item, dict):
                raise UsageError(f"document {number} lists no objects", where=where)
            yield from _flatten(item, number, where)
        return
    shapes.check(document, where)
    yield document


def write(objects: Sequence[KubernetesObject], *, comment: str) -> str:
    """Objects as YAML documents that ``kubectl apply -f`` takes, under a comment."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Long texts as blocks, no aliases: what a person would write."""

        def ignore_aliases(self, _data: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value.rstrip("\n") else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    head = "".join(f"# {line}\n" for line in comment.splitlines())
    body = yaml.dump_all(
        [dict(item) for item in objects], Dumper=Dumper, sort_keys=False, width=100
    )
    return head + body


def to_json(sister: Sister) -> str:
    """A sister as indented JSON, schema ``solscope.sister/1``."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(sister), indent=2).decode()
