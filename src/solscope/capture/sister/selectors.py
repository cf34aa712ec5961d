"""Kubernetes label selectors: the three notations, one meaning.

``{"app": "x"}`` (Services), ``{"matchLabels": ..., "matchExpressions": ...}`` (most others) and
``"app=x,tier in (a,b)"`` (command lines). An empty selector matches everything here; callers
whose kind means "nothing" by it must ask :func:`is_empty` first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_STRUCTURED = frozenset({"matchLabels", "matchExpressions"})


def is_selector(value: Any) -> bool:
    """Whether a value has the shape of a selector."""
    if not isinstance(value, Mapping):
        return False
    if set(value) & _STRUCTURED or isinstance(value.get("labels"), Mapping):
        return True
    return all(isinstance(item, str | bool | int | float) for item in value.values())


def is_empty(selector: Mapping[str, Any]) -> bool:
    """Whether a selector asks for nothing at all."""
    return not any(True for _ in _requirements(selector))


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy every requirement. An unknown operator counts as satisfied.

    >>> matches({"app": "vllm"}, {"app": "vllm", "experiment": "e1"})
    True
    >>> matches({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, {})
    True
    """
    return all(
        _satisfied(key, operator, values, labels)
        for key, operator, values in _requirements(selector)
    )


def _requirements(selector: Mapping[str, Any]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    if isinstance(selector.get("labels"), Mapping):
        # Istio's workloadSelector.
        selector = {"matchLabels": selector["labels"]}
    structured = bool(set(selector) & _STRUCTURED)
    plain = selector.get("matchLabels") or {} if structured else selector
    for key, value in plain.items() if isinstance(plain, Mapping) else ():
        yield str(key), "In", (_text(value),)
    expressions = selector.get("matchExpressions") if structured else None
    for item in expressions if isinstance(expressions, list) else ():
        if not isinstance(item, Mapping):
            continue
        values = tuple(_text(value) for value in item.get("values") or ())
        yield str(item.get("key", "")), str(item.get("operator", "")), values


def _text(value: Any) -> str:
    # YAML reads `true` as a boolean; the API server only takes strings, spelled this way.
    return str(value).lower() if isinstance(value, bool) else str(value)


def _satisfied(key: str, operator: str, values: tuple[str, ...], labels: Mapping[str, str]) -> bool:
    name = operator.lower()
    if name == "in":
        return labels.get(key) in values
    if name == "notin":
        # As Kubernetes has it: a pod without the key is "not in" as well.
        return key not in labels or labels[key] not in values
    if name == "exists":
        return key in labels
    if name == "doesnotexist":
        return key not in labels
    return True


_ITEM = re.compile(
    r"\s*(?:"
    r"(?P<absent>!)\s*(?P<absent_key>[^\s,=!()]+)"
    r"|(?P<set_key>[^\s,=!()]+)\s+(?P<set_op>in|notin)\s*\((?P<values>[^)]*)\)"
    r"|(?P<key>[^\s,=!()]+)\s*(?:(?P<op>==|=|!=)\s*(?P<value>[^\s,()]*))?"
    r")\s*(?:,|$)"
)


def parse(text: str) -> dict[str, Any]:
    """The selector that a command line's text means; what cannot be read matches everything.

    >>> parse("environment=test,release=test")["matchExpressions"][0]
    {'key': 'environment', 'operator': 'In', 'values': ['test']}
    """
    found: list[dict[str, Any]] = []
    position = 0
    while position < len(text):
        match = _ITEM.match(text, position)
        if match is None or match.end() == position:
            found.append({"key": text[position:], "operator": "unreadable"})
            break
        found.append(_expression(match))
        position = match.end()
    return {"matchExpressions": found}


def _expression(match: re.Match[str]) -> dict[str, Any]:
    if match["absent"]:
        return {"key": match["absent_key"], "operator": "DoesNotExist"}
    if match["set_key"]:
        values = [value.strip() for value in match["values"].split(",")]
        operator = "In" if match["set_op"] == "in" else "NotIn"
        return {"key": match["set_key"], "operator": operator, "values": values}
    if match["op"] is None:
        return {"key": match["key"], "operator": "Exists"}
    operator = "NotIn" if match["op"] == "!=" else "In"
    return {"key": match["key"], "operator": operator, "values": [match["value"]]}


def show(selector: Mapping[str, Any]) -> str:
    """A selector in the notation that ``kubectl -l`` takes.

    >>> show({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a", "b"]}]})
    'tier notin (a,b)'
    """
    parts = [_show_one(*item) for item in _requirements(selector)]
    return ",".join(parts) or "(everything)"


def _show_one(key: str, operator: str, values: tuple[str, ...]) -> str:
    name = operator.lower()
    if name == "exists":
        return key
    if name == "doesnotexist":
        return f"!{key}"
    if name == "in" and len(values) == 1:
        return f"{key}={values[0]}"
    if name in ("in", "notin"):
        return f"{key} {name} ({','.join(values)})"
    return f"{key} {operator or '?'} {','.join(values)}".rstrip()
