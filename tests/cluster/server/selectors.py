"""Label and field selectors, with the server's own complaints."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.cluster.server.resources import Resource
from tests.cluster.server.status import Json, bad_request

Match = Callable[[Json], bool]

_FIELDS = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
    ),
    "events": (
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "involvedObject.uid",
        "reason",
        "type",
    ),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "secrets": ("type",),
    "jobs": ("status.successful",),
}
_SET = re.compile(r"^\s*(\S+)\s+(in|notin)\s+\((.*)\)\s*$")


def split_terms(text: str) -> list[str]:
    """Split at commas that stand outside parentheses."""
    return [part for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def labels(text: str) -> Match:
    """A predicate over objects for a label selector."""
    terms = [_label_term(term) for term in split_terms(text)]
    return lambda body: all(t(body["metadata"].get("labels") or {}) for t in terms)


def _label_term(term: str) -> Callable[[Json], bool]:
    found = _SET.match(term)
    if found:
        key, operator, listed = found.groups()
        values = {value.strip() for value in listed.split(",")}
        if operator == "in":
            return lambda have: have.get(key) in values
        return lambda have: have.get(key) not in values
    term = term.strip()
    operator_found = re.match(r"^([^=!]+)(==|=|!=)(.*)$", term)
    if operator_found:
        key, operator, value = (part.strip() for part in operator_found.groups())
        if value.startswith("="):
            raise bad_request("unable to parse requirement: found '=', expected: identifier")
        if operator == "!=":
            return lambda have: have.get(key) != value
        return lambda have: have.get(key) == value
    if term.startswith("!"):
        return lambda have: term[1:].strip() not in have
    return lambda have: term in have


def by_label_selector(selector: Json | None) -> Callable[[Json], bool]:
    """A predicate over label maps for a LabelSelector object. An absent one matches nothing."""
    if selector is None:
        return lambda _: False
    wanted = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []

    def match(have: Json) -> bool:
        if any(have.get(key) != value for key, value in wanted.items()):
            return False
        return all(_expression(e, have) for e in expressions)

    return match


def _expression(expression: Json, have: Json) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return have.get(key) in values
        case "NotIn":
            return have.get(key) not in values
        case "Exists":
            return key in have
        case _:
            return key not in have


def fields(resource: Resource, text: str) -> Match:
    """A predicate over objects for a field selector."""
    allowed = ("metadata.name", "metadata.namespace", *_FIELDS.get(resource.plural, ()))
    terms: list[tuple[str, str, bool]] = []
    for term in split_terms(text):
        found = re.match(r"^([^=!]+)(==|=|!=)(.*)$", term)
        if not found:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        path, operator, value = found.groups()
        if path not in allowed:
            raise bad_request(f"field label not supported: {path}")
        terms.append((path, value, operator != "!="))
    return lambda body: all((_at(body, path) == value) is wanted for path, value, wanted in terms)


def _at(body: Json, path: str) -> str:
    node: object = body
    for part in path.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return "" if node is None else str(node)


def both(resource: Resource, label_text: str, field_text: str) -> Match:
    """Both selectors of a list or a watch."""
    by_label = labels(label_text) if label_text else None
    by_field = fields(resource, field_text) if field_text else None
    return lambda body: (not by_label or by_label(body)) and (not by_field or by_field(body))
