"""Names and the experiment's id: short, from a hash, the same for the same request."""

from __future__ import annotations

import hashlib
import re

from solscope.errors import UsageError

LABEL_LIMIT = 63
EXPERIMENT_LABEL = "experiment"
SISTER_LABEL = "solscope-sister"
# A Job's pods get five characters and a dash more, and a hostname ends at 63.
_NAME_LIMIT = 52
_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_KEY = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


def digest(*parts: str) -> str:
    """Ten hexadecimal digits that stand for ``parts``."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]


def experiment_id(given: str | None, *parts: str) -> str:
    """The experiment's id: the user's, or one made from the request. Raises UsageError."""
    if given is None:
        return f"sol-{digest(*parts)}"
    return check_experiment(given, "--experiment")


def check_experiment(given: str, where: str) -> str:
    """An experiment's id as it was given. Raises UsageError where it can be no label's value."""
    if not _LABEL_VALUE.fullmatch(given):
        raise UsageError(
            f"{given!r} cannot be a label's value",
            where=where,
            hint="use at most 63 letters, digits, '-', '_' and '.', the ends being no signs",
        )
    return given


def sister_name(target: str, mark: str) -> str:
    """A name that shows the target and cannot grow too long.

    It does not begin as the target's does: dashboards, alerts and autoscalers find the pods of a
    workload by ``pod=~"NAME-.*"``.

    >>> sister_name("vllm.gemma-deployment", "0123456789")
    'sister-vllm-gemma-deployment-0123456789'
    """
    stem = re.sub(r"[^a-z0-9-]+", "-", target.lower()).strip("-") or "pod"
    room = _NAME_LIMIT - len(f"sister--{mark}")
    return f"sister-{stem[:room].rstrip('-')}-{mark}"


def check_label(text: str) -> tuple[str, str]:
    """``KEY=VALUE`` as a label. Raises UsageError for what the API server would refuse."""
    key, equals, value = text.partition("=")
    fine = _LABEL_KEY.fullmatch(key) and (not value or _LABEL_VALUE.fullmatch(value))
    if not equals or not fine:
        raise UsageError(
            f"{text!r} is no label", where="--label", hint="write KEY=VALUE as for kubectl label"
        )
    return key, value
