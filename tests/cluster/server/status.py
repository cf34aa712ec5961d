"""Refusals as the API server words them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class ApiError(Exception):
    """One refusal: HTTP code, machine-readable reason, message, details."""

    code: int
    reason: str
    message: str
    details: Json | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> Json:
        """The Status object."""
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        return {**status, "code": self.code}


def success(details: Json | None = None) -> Json:
    """A Status object that says yes."""
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return body if details is None else {**body, "details": details}


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def _details(name: str, group: str, kind: str) -> Json:
    details: Json = {"name": name, "kind": kind} if name else {"kind": kind}
    if group:
        details["group"] = group
    return details


def qualified(plural: str, group: str) -> str:
    """``deployments.apps``, or ``pods`` in the core group."""
    return f"{plural}.{group}" if group else plural


def not_found(plural: str, group: str, name: str) -> ApiError:
    """404 for a named object."""
    message = f'{qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(name, group, plural))


def no_such_page() -> ApiError:
    """404 for a path that the server does not serve."""
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", message, {})


def already_exists(plural: str, group: str, name: str) -> ApiError:
    """409 on create."""
    message = f'{qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(name, group, plural))


def forbidden(plural: str, group: str, name: str, why: str) -> ApiError:
    """403, worded by admission."""
    quoted = f'{qualified(plural, group)} "{name}"' if name else qualified(plural, group)
    return ApiError(
        403, "Forbidden", f"{quoted} is forbidden: {why}", _details(name, group, plural)
    )


def conflict(noun: str, group: str, name: str, kind: str, why: str) -> ApiError:
    """409 with the name of the thing as that code path spells it."""
    message = f'Operation cannot be fulfilled on {qualified(noun, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(name, group, kind))


@dataclass(frozen=True)
class Cause:
    """One fault of one field."""

    reason: str
    message: str
    field: str

    def body(self) -> Json:
        """As it stands in a Status's details."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def required(field_path: str, why: str = "") -> Cause:
    """A field that must be there."""
    return Cause("FieldValueRequired", f"Required value{': ' + why if why else ''}", field_path)


def forbidden_field(field_path: str, why: str) -> Cause:
    """A field that must not be there."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field_path)


def bad_value(field_path: str, shown: str, why: str) -> Cause:
    """A field whose value is wrong; ``shown`` is the value as the server prints it."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {why}", field_path)


def missing(field_path: str, name: str) -> Cause:
    """A reference to something that is not there."""
    return Cause("FieldValueNotFound", f'Not found: "{name}"', field_path)


def duplicate(field_path: str, name: str) -> Cause:
    """A name that stands twice."""
    return Cause("FieldValueDuplicate", f'Duplicate value: "{name}"', field_path)


def unsupported(field_path: str, value: str, allowed: tuple[str, ...]) -> Cause:
    """A value outside a closed list."""
    listed = ", ".join(f'"{item}"' for item in allowed)
    message = f'Unsupported value: "{value}": supported values: {listed}'
    return Cause("FieldValueNotSupported", message, field_path)


def invalid(kind: str, group: str, name: str, causes: list[Cause]) -> ApiError:
    """422 with every fault of the object."""
    lines = [f"{cause.field}: {cause.message}" for cause in causes]
    text = lines[0] if len(lines) == 1 else "[" + ", ".join(lines) + "]"
    details = _details(name, group, kind) if kind else {}
    details["causes"] = [cause.body() for cause in causes]
    return ApiError(
        422, "Invalid", f'{qualified(kind, group)} "{name}" is invalid: {text}', details
    )
