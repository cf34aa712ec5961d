"""Which character is the decimal mark: decided by the file's own numbers, never by our locale.

ncu prints through the locale of its process, also in CSV (seen with 2024.1.1: ``63,343``,
``63.343``, ``63 343``, ``63'343`` for one count). One number with one mark and three digits
after it can be read two ways; what another number of the file proves holds for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from solscope.errors import ReportError, UsageError

# Marks that only ever part groups. U+202F, U+00A0 and U+2009 are spaces of French and others.
_GROUP_ONLY = " '\u2019\u00a0\u202f\u2009"
_STRIP_GROUP_ONLY = str.maketrans("", "", _GROUP_ONLY)

# Every line of a text of numbers that may hold a group, or two points.
_SUSPECT = re.compile(
    rf"^[-+]?\d[\d.]*[,{_GROUP_ONLY}][\d.,{_GROUP_ONLY}]*(?:[eE][-+]?\d+)?$"
    r"|^[-+]?\d+\.\d+\.[\d.,]*$",
    re.MULTILINE,
)
_POINT_PROOF = re.compile(r"^[-+]?(?:\d+\.(?:\d{1,2}|\d{4,})|(?:0|\d{4,})\.\d+)$", re.MULTILINE)
_POINT_DOUBT = re.compile(r"^[-+]?\d{1,3}\.\d{3}$", re.MULTILINE)
_UNGROUPED = re.compile(r"^[-+]?\d{5,}(?:\.\d*)?$", re.MULTILINE)

_ONE_MARK = re.compile(r"[-+]?(\d+)([.,])(\d+)([eE][-+]?\d+)?")
_TWO_MARKS = re.compile(r"[-+]?[\d]{1,3}(?:([.,])\d{2,3})+(?!\1)([.,])\d+(?:[eE][-+]?\d+)?")
_GROUPS = re.compile(r"[-+]?\d{1,3}(?:([.,])\d{2,3})*([.,])\d{3}")

_COMMA_LANGUAGES = re.compile(
    "af|az|be|bg|bs|ca|cs|da|de|el|es|et|eu|fi|fr|gl|hr|hu|hy|id|is|it|ka|kk|lt|lv|mk|nb|nl|nn|no|"
    "pl|pt|ro|ru|sk|sl|sq|sr|sv|tr|uk|uz|vi"
)
_POINT_LOCALES = re.compile("(de|fr|it)_CH|de_LI|es_(MX|US|GT|PR)")
_LOCALE = re.compile(r"([a-z]{2,3})(?:_([A-Z]{2}))?|C|POSIX")


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """The decimal mark of a file's numbers, and what proved it."""

    decimal: str
    proof: str
    is_plain: bool = True
    _drop: Mapping[int, str | None] = field(default_factory=dict, repr=False)

    def plain(self, text: str) -> str:
        """The number with a decimal point and without groups."""
        return text if self.is_plain else text.translate(self._drop)


def _format(decimal: str, proof: str, *, is_plain: bool = False) -> NumberFormat:
    drop: dict[int, str | None] = {ord(mark): None for mark in _GROUP_ONLY}
    drop[ord("," if decimal == "." else ".")] = None
    drop[ord(decimal)] = "."
    return NumberFormat(decimal, proof, is_plain, drop)


PLAIN = _format(".", "no number has a mark but the decimal point", is_plain=True)


def of_locale(name: str) -> NumberFormat:
    """The number format of a locale that the user named, as ``de_DE`` or ``C``.

    Raises UsageError for a name that is no locale.
    """
    bare = name.split(".")[0].split("@")[0].replace("-", "_")
    found = _LOCALE.fullmatch(bare)
    if found is None:
        raise UsageError(
            f"{name!r} is no locale",
            where="--locale",
            hint="name the one that ncu ran under, as C, en_US or de_DE",
        )
    language = found.group(1) or ""
    comma = _COMMA_LANGUAGES.fullmatch(language) and not _POINT_LOCALES.fullmatch(bare)
    return _format("," if comma else ".", f"--locale {name}")


@dataclass(slots=True)
class _Evidence:
    decimal: dict[str, str] = field(default_factory=dict)
    group: dict[str, str] = field(default_factory=dict)
    doubtful: dict[str, str] = field(default_factory=dict)


def detect(
    numbers: Iterable[str], *, where: str, known: Iterable[tuple[str, int]] = ()
) -> NumberFormat:
    """The number format of a file, by all of its value cells.

    ``known`` pairs a printed number with what it is known to be (a grid size beside the grid's
    dimensions), which settles a doubtful one. Cells that are no numbers are passed over.

    Raises ReportError where no number decides, or where numbers contradict each other.
    """
    text = "\n".join(numbers)
    evidence = _Evidence()
    for token in dict.fromkeys(_SUSPECT.findall(text)):
        _weigh(token, evidence)
    point = _POINT_PROOF.search(text)
    if point is not None:
        evidence.decimal.setdefault(".", point.group())
    doubt = None if "." in evidence.decimal else _POINT_DOUBT.search(text)
    if doubt is not None:
        evidence.doubtful.setdefault(".", doubt.group())
    _weigh_known(known, evidence)
    return _judge(evidence, text, where)


def _weigh(token: str, evidence: _Evidence) -> None:
    bare = token.translate(_STRIP_GROUP_ONLY)
    has_space_groups = bare != token
    if has_space_groups and bare[-1:].isdigit():
        evidence.group.setdefault(" ", token)
    one = _ONE_MARK.fullmatch(bare)
    if one is not None:
        whole, mark, rest, power = one.groups()
        certain = len(rest) != 3 or len(whole) > 3 or whole.startswith("0") or power is not None
        if has_space_groups or certain:
            evidence.decimal.setdefault(mark, token)
        else:
            evidence.doubtful.setdefault(mark, token)
        return
    two = _TWO_MARKS.fullmatch(bare)
    if two is not None and two.group(1) != two.group(2):
        evidence.decimal.setdefault(two.group(2), token)
        evidence.group.setdefault(two.group(1), token)
        return
    groups = _GROUPS.fullmatch(bare)
    if groups is not None and groups.group(1) == groups.group(2):
        evidence.group.setdefault(groups.group(2), token)


def _weigh_known(known: Iterable[tuple[str, int]], evidence: _Evidence) -> None:
    for printed, value in known:
        one = _ONE_MARK.fullmatch(printed)
        if one is None or len(one.group(3)) != 3 or value < 1000:
            continue
        if printed.replace(one.group(2), "") == str(value):
            evidence.group.setdefault(one.group(2), f"{printed} for a known {value}")
            evidence.doubtful.pop(one.group(2), None)


def _judge(evidence: _Evidence, text: str, where: str) -> NumberFormat:
    marks = dict(evidence.decimal)
    for mark, token in evidence.group.items():
        if mark in ".,":
            marks.setdefault("," if mark == "." else ".", token)
    if len(marks) == 2:
        first, second = marks["."], marks[","]
        raise ReportError(
            f"the numbers are of two formats: {first!r} and {second!r} cannot both be right",
            where=where,
            hint="split the file by the machine that wrote it, or give --locale",
        )
    if marks:
        ((decimal, token),) = marks.items()
        plain = decimal == "." and not evidence.group and "," not in evidence.doubtful
        return _format(decimal, f"by {token!r}", is_plain=plain)
    if not evidence.doubtful:
        return _format(".", PLAIN.proof, is_plain=not evidence.group)
    if len(evidence.doubtful) == 1:
        ((mark, token),) = evidence.doubtful.items()
        if " " in evidence.group:
            return _format(mark, f"groups are parted otherwise: {evidence.group[' ']!r}")
        ungrouped = _UNGROUPED.search(text) if mark == "." else None
        if ungrouped is not None:
            return _format(".", f"groups are not parted: {ungrouped.group()!r}", is_plain=True)
    token = next(iter(evidence.doubtful.values()))
    raise ReportError(
        f"{token!r} can be read as a decimal or as thousands, and no number of the file decides",
        where=where,
        hint="give the locale of what wrote them: --locale C, --locale en_US, --locale de_DE ...",
    )
