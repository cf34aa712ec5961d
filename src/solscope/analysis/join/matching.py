"""Which names of several sources mean the same kernel."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from solscope.model.kernel_name import short_name

SOURCES = ("samples", "time", "counters")
LEAST_PREFIX = 24
"""A shorter beginning fits too many kernels by accident."""

# nsys writes (int)7 and (bool)1 where others write 7 and true.
_CAST = re.compile(r"\((?:unsigned )?(?:int|bool|long|short|char|size_t|[\w:]+)\)(?=-?\d)")
_IN_NAMESPACES = string.ascii_letters + string.digits + "_:"
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Match:
    """One kernel: the positions of its entries in each source, and how sure that is."""

    name: str
    confidence: str
    members: Mapping[str, tuple[int, ...]]


@lru_cache(maxsize=1 << 14)
def canonical(name: str) -> str:
    """The function with its template arguments, in one spelling; arguments are left out.

    >>> canonical("void ns::f<(int)4, (bool)1, float >(int, T1)")
    'f<4,1,float>'
    >>> canonical("ns::f<4, true, float>")
    'f<4,1,float>'
    """
    short = short_name(name)
    at = name.rfind(short) if short == name else _function_at(name, short)
    text = _CAST.sub("", name[at:])
    text = _without_arguments(text)
    text = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", text))
    return _SPACE.sub("", text)


def qualified(name: str) -> str:
    """The function with namespaces and template arguments, for names that are short of meaning.

    >>> qualified("void internal::gemvx::kernel<(int)7>(int)")
    'internal::gemvx::kernel<7>'
    """
    short = short_name(name)
    at = _function_at(name, short)
    before = name[:at]
    return before[len(before.rstrip(_IN_NAMESPACES)) :] + canonical(name)


def _function_at(name: str, short: str) -> int:
    """Where the function's own name begins: outside of any template arguments."""
    depth = 0
    for index, mark in enumerate(name):
        if depth == 0 and name.startswith(short, index):
            following = name[index + len(short) : index + len(short) + 1]
            if following in ("", "<", "(", " "):
                return index
        depth += {"<": 1, ">": -1}.get(mark, 0)
    return 0


def _without_arguments(text: str) -> str:
    depth = 0
    for index, mark in enumerate(text):
        if mark == "<":
            depth += 1
        elif mark == ">":
            depth -= 1
        elif mark == "(" and depth == 0 and index:
            return text[:index]
    return text


def match(names: Mapping[str, Sequence[str]]) -> list[Match]:
    """Every entry of every source in exactly one match.

    First by canonical name, then by function (all variants of a function together), then by a
    unique beginning; what is left stands alone.
    """
    left = {source: dict(enumerate(names.get(source, ()))) for source in SOURCES}
    found = _by_key(left, canonical, "exact")
    found += _by_key(left, short_name, "function")
    found += _truncated(left)
    for source, entries in left.items():
        for key, positions in _grouped(entries, canonical).items():
            name = entries[positions[0]]
            found.append(Match(short_name(name) or key, "single", {source: positions}))
    return found


def _grouped(entries: Mapping[int, str], key: Callable[[str], str]) -> dict[str, tuple[int, ...]]:
    groups: dict[str, tuple[int, ...]] = {}
    for position, name in entries.items():
        label = key(name)
        groups[label] = (*groups.get(label, ()), position)
    return groups


def _by_key(
    left: dict[str, dict[int, str]], key: Callable[[str], str], confidence: str
) -> list[Match]:
    """Matches of entries with the same key in at least two sources; they are taken out."""
    by_source = {source: _grouped(entries, key) for source, entries in left.items()}
    found = []
    for label in dict.fromkeys(k for groups in by_source.values() for k in groups):
        members = {s: groups[label] for s, groups in by_source.items() if label in groups}
        if label and len(members) > 1:
            found.append(Match(_short(left, members), confidence, members))
            _take(left, members)
    return found


def _truncated(left: dict[str, dict[int, str]]) -> list[Match]:
    """Names cut off by a source, where exactly one kernel of another source begins so."""
    found = []
    for source in SOURCES:
        for position, name in list(left[source].items()):
            start = name.rstrip(".… ")
            if len(start) < LEAST_PREFIX or position not in left[source]:
                continue
            fitting = {
                other: [p for p, n in left[other].items() if _begins(n, start)]
                for other in SOURCES
                if other != source
            }
            members = {s: tuple(hits) for s, hits in fitting.items() if len(hits) == 1}
            if members and not any(len(hits) > 1 for hits in fitting.values()):
                members[source] = (position,)
                found.append(Match(_short(left, members), "truncated", members))
                _take(left, members)
    return found


def _begins(name: str, start: str) -> bool:
    return name.startswith(start) or short_name(name).startswith(start)


def _short(left: dict[str, dict[int, str]], members: Mapping[str, tuple[int, ...]]) -> str:
    """The fullest short name among the members."""
    names = [short_name(left[s][p]) for s, positions in members.items() for p in positions]
    return max(names, key=len)


def _take(left: dict[str, dict[int, str]], members: Mapping[str, tuple[int, ...]]) -> None:
    for source, positions in members.items():
        for position in positions:
            del left[source][position]
