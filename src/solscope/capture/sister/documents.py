"""A sister as files: YAML for kubectl, JSON for tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solscope.model.cluster import KubernetesObject
from solscope.model.sister import Sister


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
