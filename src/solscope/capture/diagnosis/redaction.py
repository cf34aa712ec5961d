"""Secrets and names of people's machines out of quoted lines, before anything is kept.

Masked: tokens and passwords, addresses, user and host names, home folders. What stays is what
the diagnosis needs: option names, program names, kernel names, device paths.
"""

from __future__ import annotations

import re

LONGEST_QUOTE = 200

_MASKS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), mask)
    for pattern, mask in (
        (r"\b(hf_|sk-|ghp_|gho_|glpat-|xox[bap]-|nvapi-|AKIA)[\w-]{8,}", "<token>"),
        (r"\beyJ[\w-]{8,}\.[\w-]{8,}(\.[\w-]+)?", "<token>"),
        (r"(\b(?:bearer|basic)\s+)[\w.~+/=-]{6,}", r"\1<token>"),
        (
            r"([\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key)(?:[_-][\w-]+)?"
            r"[\"']?\s*[=:]\s*[\"']?)[^\s\"',})]+",
            r"\1<secret>",
        ),
        (r"(://)[^/\s:@]+:[^/\s@]+@", r"\1<secret>@"),
        (r"\b[\w.+-]+@[\w-]+(\.[\w-]+)+\b", "<mail>"),
        (r"\b[\w.-]+@[\w-]+(?=:[~/])", "<user>@<host>"),
        (r"(?<![\w./-])\d{1,3}(?:\.\d{1,3}){3}(?![\w.-]|\.\d)", "<ip>"),
        (r"(?<![\w:])(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}(?![\w:])", "<ip>"),
        (r"/(?:home|Users)/[^/\s\"':)]+", "~"),
        (r"(?<![\w/.-])/root(?=/|\b)", "~"),
        (r"\b[a-z]:\\Users\\[^\\\s\"']+", "~"),
        (r"\b((?:host(?:name)?|user(?:name)?|login)\s*[=:]\s*)[^\s,;\"']+", r"\1<name>"),
        (r"\b(GPU|MIG)-[0-9a-f]{4,}(?:-[0-9a-f]{2,})+", r"\1-<uuid>"),
    )
)

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[@-_]")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\u00a0-\uffff]+")


def without_ansi(text: str) -> str:
    """The text without terminal colours and cursor movements."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def redact(text: str) -> str:
    """The text with secrets, addresses, user and host names masked."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


def quote(text: str) -> str:
    """A line as it is shown: redacted, printable, at most ``LONGEST_QUOTE`` characters."""
    shown = redact(_UNPRINTABLE.sub(" ", text).strip()[: 4 * LONGEST_QUOTE])
    return shown if len(shown) <= LONGEST_QUOTE else shown[: LONGEST_QUOTE - 2] + " …"
