"""Which column holds the kernel's name, the samples, the share: recognised, or mapped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solscope.errors import ReportError, UsageError

NAMES = (
    *("kernel_name", "kernel", "cuda_kernel", "function_name", "function", "symbol", "frame"),
    "name",
)
SAMPLES = ("self_samples", "samples", "sample_count", "num_samples", "nr_samples", "n_samples")
LOOSE_SAMPLES = ("count", "cnt", "hits", "value")
"""Words that mean samples only beside a column that surely names a kernel."""

SHARES = ("self_gpu", "self", "share", "samples_share", "gpu_share", "fraction", "ratio", "weight")
PERCENT_WORDS = ("percent", "percentage", "pct")
PERCENT_OF = frozenset({*PERCENT_WORDS, "self", "total", "gpu", "samples", "sample", "share", "of"})
"""A percentage is a share of samples where its title holds no other word than these."""

HINT = "say which column is which: --columns name=COLUMN,samples=COLUMN (or share%=COLUMN)"

_OTHERS = (frozenset({"TotalDurationNs"}), frozenset({"total_ns"}), frozenset({"metric", "value"}))
"""Titles of tables that sum up times, or list metrics: no samples, whatever else they hold."""

_WORD = re.compile(r"[^a-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # KernelName
_ROLE = re.compile(r"(name|samples|share%?|pod|event|time)=(.+)")


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns used, by their titles. ``is_percent`` is ``None`` where only values can tell."""

    name: str
    samples: str | None
    share: str | None
    is_percent: bool | None


def parse(mapping: str | None) -> dict[str, str]:
    """``name=kernel,samples=cnt`` as a mapping of roles. Raises UsageError for other text.

    >>> parse("name=kernel,share%=part")
    {'name': 'kernel', 'share%': 'part'}
    """
    found = {}
    for part in (mapping or "").split(","):
        if not part.strip():
            continue
        match = _ROLE.fullmatch(part.strip())
        if match is None:
            raise UsageError(
                f"--columns does not understand {part!r}",
                hint="roles are name, samples, share (a fraction), share% (percent)",
            )
        found[match[1]] = match[2].strip()
    return found


def layout(titles: Sequence[str], mapping: Mapping[str, str]) -> Layout | None:
    """The layout of a table with these column titles, ``None`` where it is no table of samples.

    Raises ReportError where a mapped column is not there, or two columns fit one role.
    """
    for role, title in mapping.items():
        if title not in titles:
            raise ReportError(
                f"no column {title!r} for {role}; there are {', '.join(titles[:20])}", hint=HINT
            )
    name = mapping.get("name") or _first(titles, NAMES)
    samples = mapping.get("samples") or _first(titles, SAMPLES)
    if samples is None and name is not None and _plain(name) != "name" and not _has_times(titles):
        samples = _first(titles, LOOSE_SAMPLES)
    if name is None:
        return None
    if not mapping and any(other <= set(titles) for other in _OTHERS):
        return None
    if "share" in mapping or "share%" in mapping:
        share = mapping.get("share") or mapping.get("share%")
        is_percent: bool | None = "share%" in mapping
    else:
        share = _share(titles)
        is_percent = None if share is None or not _says_percent(share) else True
    if samples is None and share is None:
        return None
    return Layout(name, samples, share, is_percent)


def _first(titles: Sequence[str], words: Sequence[str]) -> str | None:
    by_word = {_plain(title): title for title in reversed(titles) if "%" not in title}
    return next((by_word[word] for word in words if word in by_word), None)


def _has_times(titles: Sequence[str]) -> bool:
    """Whether a column states a unit of time: what is counted there are launches."""
    return any(title.rstrip().endswith(("(ns)", "(us)", "(µs)", "(ms)", "(s)")) for title in titles)


def _share(titles: Sequence[str]) -> str | None:
    """The column of shares. Self beats total, because totals count callees twice."""
    fitting = [title for title in titles if _plain(title) in SHARES or _is_percentage(title)]
    own = [title for title in fitting if _plain(title).startswith("self")]
    plain = [title for title in fitting if not _plain(title).startswith("total")]
    chosen = own or plain or fitting
    if len(chosen) > 1:
        raise ReportError(f"two columns could be the share: {', '.join(chosen)}", hint=HINT)
    return chosen[0] if chosen else None


def _is_percentage(title: str) -> bool:
    return _says_percent(title) and set(_plain(title).split("_")) - {""} <= PERCENT_OF


def _says_percent(title: str) -> bool:
    return "%" in title or any(word in _plain(title).split("_") for word in PERCENT_WORDS)


def _plain(title: str) -> str:
    return _WORD.sub("_", _HUMP.sub("_", title.strip()).lower()).strip("_")
