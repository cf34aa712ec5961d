"""The knowledge as data: templates from ``data/lines``, causes from ``data/causes``, validated.

A pattern is plain text with placeholders: ``{name}`` (shortest text), ``{name:int}``,
``{name:word}``, ``{name:hex}``, ``{name:version}``, ``{name:path}``, ``{name:file}``,
``{name:quoted}`` and ``{name:rest}``; ``{:…}`` is not kept. Case and the shape of quotes do not
matter. A pattern matches anywhere in a line unless it begins with ``^``; a closing ``$`` pins
the end.

A condition is ``code`` (such a fact exists), ``code.field``, or ``code.field OP value`` with OP
one of ``= != ~ !~ < <= > >=`` (``~`` is a regular expression, found anywhere).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from solscope.errors import SolscopeError

Level = Literal["error", "warning", "progress", "verbose", "fact"]
RoleName = Literal["cause", "suspect", "advice", "well", "harmless"]


class BadKnowledge(SolscopeError):
    """A packaged or added knowledge file breaks its rules; ``where`` names the entry."""


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line that is recognised. ``match`` are patterns of the same message.

    ``unless`` are patterns that must not match the line; ``file`` restricts the file's name
    (globs), for contents that say nothing by themselves; ``from_source`` tells how the wording
    is known; ``begins`` are the messages' first words (placeholders allowed) where no pattern
    starts with them, for lines that were cut;
    ``is_consequence`` marks lines that only follow from a cause.
    """

    id: str
    level: Level
    means: str
    match: tuple[str, ...]
    from_source: str = ""
    unless: tuple[str, ...] = ()
    file: tuple[str, ...] = ()
    is_consequence: bool = False
    begins: tuple[str, ...] = ()
    sample: tuple[str, ...] = ()


class CheckData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    do: str
    decides: str


class Clause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """More to say of a cause when its own conditions hold too. ``instead`` drops what the
    cause itself says before."""

    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    checks: tuple[CheckData, ...] = ()
    instead: bool = False


class CauseRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cause, told by facts.

    ``overcome_by`` are facts that, later in the same file, show that the trouble passed: the cause
    is then told as harmless. ``hides`` names causes that this one explains away; ``rank`` breaks
    ties (lower first); a ``fallback`` stands only where no cause of a lower one does; ``sources``
    and ``cases`` say where it was learnt.
    """

    id: str
    role: RoleName
    title: str
    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    why: tuple[str, ...]
    remedies: tuple[str, ...] = ()
    checks: tuple[CheckData, ...] = ()
    also: tuple[Clause, ...] = ()
    overcome_by: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    rank: int = 50
    fallback: int = 0
    sources: tuple[str, ...]
    cases: tuple[str, ...] = ()


class Topic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One knowledge file."""

    topic: str
    about: str
    template: tuple[Template, ...] = ()
    cause: tuple[CauseRule, ...] = ()


PLACEHOLDER = re.compile(r"\{(\w*)(?::(\w+))?\}")
_KINDS = {
    "int": r"\d(?:[\d.,'\u00a0\u202f]*\d)?",
    "word": r"[^\s,;\"'()]+",
    "hex": r"(?:0x)?[0-9a-fA-F]+",
    "version": r"\d+(?:\.\d+)+",
    "file": r"[\w./+-]+\.\w+",
    "path": r"[^\s\"'<>|]+",
    "quoted": r"[^\"'\u201c\u201d\u2018\u2019`]+",
    "rest": r".*\S",
}
_SAMPLES = {
    "int": "7",
    "word": "word",
    "hex": "1f",
    "version": "2024.1.1",
    "file": "a.json",
    "path": "/some/path",
    "quoted": "a kernel",
    "rest": "the rest of it",
    "": "something",
    "any": "…",
}
_IDENTIFIER = re.compile(r"^\w+$")
_QUOTES = re.compile(r"\\?[\"'\u201c\u201d\u2018\u2019`]")
_SHORTEST_ANCHOR = 4
_LONGEST_ANCHOR = 28


class Pattern:
    """A compiled pattern: its regular expression, and the literals that a matching line holds.

    ``anchor`` is a stretch of text; ``word`` a whole word of it, ``None`` where none is sure to
    stand alone.
    """

    __slots__ = ("_loose", "anchor", "is_pinned", "regex", "text", "word")

    def __init__(self, text: str) -> None:
        self.text = text
        self.regex = re.compile(_expression(text), re.IGNORECASE)
        self.anchor = _anchor(text)
        self.word = _word(text)
        self.is_pinned = text.startswith("^")
        self._loose: re.Pattern[str] | None = None

    def match(self, line: str) -> dict[str, str] | None:
        """The values of the placeholders, or ``None`` where the line does not match."""
        found = self.regex.search(line)
        if found is None:
            return None
        # A quote may be escaped, as in a message within a record.
        values = {k: v.strip() for k, v in found.groupdict().items() if v is not None}
        return {k: v.rstrip("\\") for k, v in values.items()}

    def match_across(self, text: str, seam: int) -> dict[str, str] | None:
        """The values of the placeholders in a text without blanks, or ``None`` where it does not
        match, or matches on one side of the seam alone."""
        found = self._search_loosely(text)
        if found is None or not found.start() < seam < found.end():
            return None
        return {k: v for k, v in found.groupdict().items() if v is not None}

    def is_within(self, text: str) -> bool:
        """Whether a text without blanks holds a match."""
        return self._search_loosely(text) is not None

    def _search_loosely(self, text: str) -> re.Match[str] | None:
        if self._loose is None:
            self._loose = re.compile(self.regex.pattern.replace(r"\s+", r"\s*"), re.IGNORECASE)
        return self._loose.search(text)


def _expression(text: str) -> str:
    body = text.removeprefix("^").removesuffix("$")
    out: list[str] = [r"^\s*"] if text.startswith("^") else []
    position = 0
    for hit in PLACEHOLDER.finditer(body):
        out.append(_literal(body[position : hit.start()]))
        position = hit.end()
        name, kind = hit.group(1), hit.group(2) or ""
        at_end = position == len(body) and not text.endswith("$")
        shape = _KINDS.get(kind) or (".*" if at_end else ".*?")
        out.append(f"(?P<{name}>{shape})" if name else f"(?:{shape})")
    out.append(_literal(body[position:]))
    if text.endswith("$"):
        out.append(r"\s*$")
    expression = "".join(out)
    return rf"(?<![\w]){expression}(?![\w])" if _IDENTIFIER.match(text) else expression


def _literal(text: str) -> str:
    words = re.split(r"(\s+)", text)
    out = [r"\s+" if word.isspace() else re.escape(word) for word in words if word]
    return _QUOTES.sub("\\\\\\\\?[\"'\u201c\u201d\u2018\u2019`]", "".join(out))


def _anchor(text: str) -> str:
    """The longest literal stretch, lower case, without quotes: what a line is searched for.

    Blanks inside it are single ones; a line with wider gaps is not found by it.
    """
    pieces = PLACEHOLDER.sub("\0", text.removeprefix("^").removesuffix("$"))
    parts = re.split(r"[\0\"'\u201c\u201d\u2018\u2019`]+", pieces.lower())
    return max((" ".join(part.split()) for part in parts), key=len)[:_LONGEST_ANCHOR]


def _word(text: str) -> str | None:
    """The longest word that every matching line holds as a word of its own, lower case.

    Not one that touches a placeholder, and not the last one (a plural may follow it) unless the
    pattern is that one word.
    """
    body = PLACEHOLDER.sub("x\0x", text.removeprefix("^").removesuffix("$")).lower()
    words = [hit for hit in re.finditer(r"[a-z0-9_\0]+", body) if "\0" not in hit.group()]
    sure = [w.group() for w in words if w.end() < len(body) or _IDENTIFIER.match(text)]
    sure = [w for w in sure if len(w) >= _SHORTEST_ANCHOR]
    return max(sure, key=len) if sure else None


def sample_of(text: str) -> str:
    """A line that the pattern must recognise, its placeholders filled with sample values."""
    body = text.removeprefix("^").removesuffix("$")
    return PLACEHOLDER.sub(lambda hit: _SAMPLES[hit.group(2) or ""], body)


_OPERATOR = re.compile(r"^\s*([\w-]+)(?:\.([\w-]+))?(?:\s*(!=|!~|<=|>=|=|~|<|>)\s*(.*?))?\s*$")


class Condition:
    """A parsed condition on facts."""

    __slots__ = ("code", "field", "operator", "regex", "text", "value")

    def __init__(self, text: str) -> None:
        hit = _OPERATOR.match(text)
        if hit is None or (hit.group(3) and not hit.group(2)):
            raise BadKnowledge(f"condition {text!r} is not understood")
        self.text = text
        self.code, self.field, self.operator, value = hit.groups()
        self.value: str = value or ""
        self.regex = re.compile(self.value, re.IGNORECASE) if self.operator in ("~", "!~") else None

    def holds(self, fields: dict[str, str] | object) -> bool:
        """Whether a fact of this code, with these fields, satisfies the condition."""
        if self.field is None:
            return True
        value = fields.get(self.field) if isinstance(fields, dict) else None
        if value is None:
            return False
        if self.operator is None:
            return True
        if self.regex is not None:
            return (self.regex.search(value) is not None) == (self.operator == "~")
        if self.operator in ("=", "!="):
            return (value.lower() == self.value.lower()) == (self.operator == "=")
        return _compare(value, self.operator, self.value)


def _compare(left: str, operator: str, right: str) -> bool:
    a, b = numbers_of(left), numbers_of(right)
    if not a or not b:
        return False
    if operator == "<":
        return a < b
    if operator == "<=":
        return a <= b
    return a > b if operator == ">" else a >= b


def numbers_of(text: str) -> tuple[int, ...]:
    """A version or number as a tuple that compares: ``580.126.09`` is (580, 126, 9)."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


class Knowledge:
    """Templates and causes, ready to use."""

    __slots__ = ("causes", "conditions", "patterns", "templates", "topics")

    def __init__(self, topics: Sequence[Topic]) -> None:
        self.topics = tuple(topics)
        self.templates = {t.id: t for topic in topics for t in topic.template}
        self.causes = {c.id: c for topic in topics for c in topic.cause}
        self.patterns = {
            t.id: (
                tuple(Pattern(text) for text in t.match),
                tuple(Pattern(text) for text in t.unless),
            )
            for t in self.templates.values()
        }
        self.conditions: dict[str, Condition] = {}
        _validate(self)

    def condition(self, text: str) -> Condition:
        """The parsed condition, kept for the next use."""
        if text not in self.conditions:
            self.conditions[text] = Condition(text)
        return self.conditions[text]


def _texts(rule: CauseRule) -> Iterator[str]:
    yield rule.title
    parts: list[CauseRule | Clause] = [rule, *rule.also]
    for part in parts:
        yield from part.why
        yield from part.remedies
        for check in part.checks:
            yield check.do
            yield check.decides


def conditions_of(rule: CauseRule) -> Iterator[str]:
    """Every condition that a cause mentions."""
    parts: list[CauseRule | Clause] = [rule, *rule.also]
    for part in parts:
        yield from (*part.all, *part.any, *part.none)


FIELD_REFERENCE = re.compile(r"\{([\w-]+)\.([\w-]+)\}")


def _validate(knowledge: Knowledge) -> None:
    from solscope.capture.diagnosis.stated import STATED

    count = sum(len(t.template) for t in knowledge.topics)
    if count != len(knowledge.templates):
        raise BadKnowledge("two templates share an id")
    if sum(len(t.cause) for t in knowledge.topics) != len(knowledge.causes):
        raise BadKnowledge("two causes share an id")
    for template in knowledge.templates.values():
        _validate_template(template, knowledge)
    fields = {
        t.id: {name for p in knowledge.patterns[t.id][0] for name in p.regex.groupindex}
        for t in knowledge.templates.values()
    }
    for rule in knowledge.causes.values():
        _validate_cause(rule, knowledge, {**STATED, **fields})


def _validate_template(template: Template, knowledge: Knowledge) -> None:
    patterns, excluded = knowledge.patterns[template.id]
    if not patterns:
        raise BadKnowledge("a template needs a pattern", where=template.id)
    for pattern in patterns:
        if len(pattern.anchor) < _SHORTEST_ANCHOR and not template.file:
            raise BadKnowledge(f"{pattern.text!r} has no literal to look for", where=template.id)
        if any(no.regex.search(sample_of(pattern.text)) for no in excluded):
            raise BadKnowledge(f"{pattern.text!r} excludes itself", where=template.id)


def _validate_cause(rule: CauseRule, knowledge: Knowledge, fields: dict[str, set[str]]) -> None:
    if not (rule.all or rule.any):
        raise BadKnowledge("a cause needs a condition", where=rule.id)
    for text in conditions_of(rule):
        condition = knowledge.condition(text)
        if condition.code not in fields:
            raise BadKnowledge(f"no fact is called {condition.code!r}", where=rule.id)
        if condition.field and condition.field not in fields[condition.code]:
            raise BadKnowledge(f"{condition.code} has no {condition.field!r}", where=rule.id)
    for text in _texts(rule):
        for code, name in FIELD_REFERENCE.findall(text):
            if code not in fields or name not in fields[code]:
                raise BadKnowledge(f"{{{code}.{name}}} is no field of a fact", where=rule.id)
    for code in rule.overcome_by:
        if code not in fields:
            raise BadKnowledge(f"no fact is called {code!r}", where=rule.id)
    for other in rule.hides:
        if other not in knowledge.causes:
            raise BadKnowledge(f"hides {other!r}, which is no cause", where=rule.id)


@cache
def load() -> Knowledge:
    """The packaged knowledge. Raises :class:`BadKnowledge` naming the entry that is wrong."""
    root = resources.files(__package__).joinpath("data")
    topics = []
    for kind in ("lines", "causes"):
        folder = root.joinpath(kind)
        for name in sorted(f.name for f in folder.iterdir() if f.name.endswith(".toml")):
            try:
                text = folder.joinpath(name).read_text(encoding="utf-8")
                topics.append(msgspec.toml.decode(text, type=Topic))
            except (msgspec.ValidationError, msgspec.DecodeError, ValueError) as error:
                raise BadKnowledge(str(error), where=f"{kind}/{name}") from error
    return Knowledge(topics)
