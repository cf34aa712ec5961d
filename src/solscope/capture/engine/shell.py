"""Start scripts as simple commands: quotes, variables, continuations, ``eval``, templates.

Reads the POSIX shell as far as start scripts of servers use it. Nothing is run: what a command
substitution would print stays unresolved and is said so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_OPERATOR = re.compile(r"&&|\|\||;;|[;&|()\n]")
_REDIRECTION = re.compile(r"\d*(?:&>>?|>>|>&|<<<|<|>\|?)(?:&?\d+-?(?=\s|$))?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_EXPANSION = re.compile(
    r"\$(?:\{(?P<braced>[^}]*)\}|(?P<name>[A-Za-z_]\w*)|(?P<special>[@*#?$!0-9]))"
)
_BRACED = re.compile(r"(?P<name>\w+)(?::?(?P<operator>[-=+?])(?P<default>.*))?", re.DOTALL)
_KUBELET = re.compile(r"\$\$|\$\((?P<name>[A-Za-z_][\w.-]*)\)")
_CONDITION = re.compile(
    r"\{\{-?\s*if\s+(?P<test>[^}]*?)\s*-?\}\}(?P<body>.*?)\{\{-?\s*end\s*-?\}\}", re.DOTALL
)
_TEMPLATE = re.compile(r"\{\{-?\s*([^}]*?)\s*-?\}\}")


def expand_kubelet(word: str, env: Mapping[str, str], unresolved: list[str]) -> str:
    """``$(NAME)`` as the kubelet expands it in command and args; ``$$`` is one dollar.

    >>> expand_kubelet("--model=$(M)", {"M": "a/b"}, [])
    '--model=a/b'
    """

    def value(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return "$"
        if name not in env:
            unresolved.append(match[0])
        return env.get(name, match[0])

    return _KUBELET.sub(value, word)


def without_templates(text: str, unresolved: list[str]) -> str:
    """A Go template's conditional parts left out, its values kept as one word each.

    >>> without_templates("a {{ if .X }}--tp 2{{ end }} {{ .Name }}", [])
    'a  {{.Name}}'
    """

    def condition(match: re.Match[str]) -> str:
        body = " ".join(match["body"].split())
        unresolved.append(f"{{{{if {match['test']}}}}} {body}")
        return ""

    def value(match: re.Match[str]) -> str:
        return "{{" + re.sub(r"\s+", "·", match[1]) + "}}"

    if "{{" not in text:
        return text
    return _TEMPLATE.sub(value, _CONDITION.sub(condition, text))


@dataclass(slots=True)
class Script:
    """A script being read. ``variables`` grows with the assignments that it makes."""

    variables: dict[str, str]
    positional: tuple[str, ...] = ()
    unresolved: list[str] = field(default_factory=list)

    def commands(self, text: str, depth: int = 0) -> list[list[str]]:
        """The words of every simple command, in order, ``eval`` already looked into.

        >>> Script(variables={"M": "a b"}).commands("x=1; exec vllm serve \\"$M\\" $M --n $x &")
        [['exec', 'vllm', 'serve', 'a b', 'a', 'b', '--n', '1']]
        """
        found: list[list[str]] = []
        for words in _Reader(text, self).commands():
            if words[0] == "eval" and depth < 3:
                found += self.commands(" ".join(words[1:]), depth + 1)
            else:
                found.append(words)
        return found

    def takes(self, words: list[str]) -> bool:
        """Whether the command only sets variables; if so, they are remembered."""
        names = words[1:] if words[0] in ("export", "local", "readonly", "declare") else words
        matches = [_ASSIGNMENT.fullmatch(word) for word in names]
        if not names or not all(matches):
            return False
        self.variables.update((m[1], m[2]) for m in matches if m)
        return True

    def value(self, match: re.Match[str]) -> str | None:
        """What an expansion stands for; ``None`` (and noted) where that is not known."""
        special = match["special"]
        if special in ("@", "*"):
            return " ".join(self.positional[1:])
        if special and special.isdigit() and int(special) < len(self.positional):
            return self.positional[int(special)]
        braced = _BRACED.fullmatch(match["braced"] or match["name"] or "")
        value = self.variables.get(braced["name"]) if braced else None
        if value is None and braced and braced["operator"] in ("-", "="):
            value = braced["default"]
        if value is None:
            self.unresolved.append(match[0])
        return value


class _Reader:
    """One pass over a text: words split and unquoted, expansions replaced."""

    def __init__(self, text: str, script: Script) -> None:
        self._text = text.replace("\r\n", "\n")
        self._script = script
        self._at = 0
        self._words: list[str] = []
        self._word: str | None = None

    def commands(self) -> list[list[str]]:
        found: list[list[str]] = []
        while self._at < len(self._text):
            if self._blank():
                continue
            redirection = _REDIRECTION.match(self._text, self._at) if self._word is None else None
            operator = _OPERATOR.match(self._text, self._at)
            if redirection:
                self._at = redirection.end()
                if redirection[0].endswith((">", "<", "|")):
                    self._skip_word()
            elif operator:
                self._at = operator.end()
                self._end_word()
                self._end_command(found)
            elif self._text[self._at] == "#" and self._word is None:
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                self._character()
        self._end_word()
        self._end_command(found)
        return found

    def _end_command(self, found: list[list[str]]) -> None:
        if self._words and not self._script.takes(self._words):
            found.append(self._words)
        self._words = []

    def _blank(self) -> bool:
        if self._text.startswith("\\\n", self._at):
            self._at += 2
        elif self._text[self._at] in " \t\r":
            self._end_word()
            self._at += 1
        else:
            return False
        return True

    def _skip_word(self) -> None:
        target = re.compile(r"\s*\S+").match(self._text, self._at)
        self._at = target.end() if target else self._at

    def _end_word(self) -> None:
        if self._word is not None:
            self._words.append(self._word)
        self._word = None

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _character(self) -> None:
        text, at = self._text, self._at
        if text[at] == "'":
            end = text.find("'", at + 1)
            end = len(text) if end < 0 else end
            self._add(text[at + 1 : end])
            self._at = end + 1
        elif text[at] == '"':
            self._double_quoted()
        elif text[at] == "\\" and at + 1 < len(text):
            self._add(text[at + 1])
            self._at += 2
        elif text.startswith("$(", at) or text[at] == "`":
            self._substitution()
        elif match := _EXPANSION.match(text, at):
            self._at = match.end()
            self._splice(self._script.value(match), match[0])
        else:
            self._add(text[at])
            self._at += 1

    def _splice(self, value: str | None, written: str) -> None:
        """An unquoted expansion: its blanks separate words."""
        if value is None:
            self._add(written)
            return
        parts = value.split()
        if not parts:
            return
        self._add(parts[0])
        for part in parts[1:]:
            self._end_word()
            self._add(part)

    def _double_quoted(self) -> None:
        self._add("")
        self._at += 1
        while self._at < len(self._text) and self._text[self._at] != '"':
            text, at = self._text, self._at
            if text.startswith("\\\n", at):
                self._at += 2
            elif text[at] == "\\" and at + 1 < len(text) and text[at + 1] in '"$`\\':
                self._add(text[at + 1])
                self._at += 2
            elif text.startswith("$(", at) or text[at] == "`":
                self._substitution()
            elif match := _EXPANSION.match(text, at):
                value = self._script.value(match)
                self._add(match[0] if value is None else value)
                self._at = match.end()
            else:
                self._add(text[at])
                self._at += 1
        self._at += 1

    def _substitution(self) -> None:
        """A command substitution: kept as written, because nothing is run."""
        begin = self._at
        if self._text[begin] == "`":
            end = self._text.find("`", begin + 1)
            self._at = len(self._text) if end < 0 else end + 1
        else:
            depth = 0
            end = begin + 1
            while end < len(self._text):
                depth += {"(": 1, ")": -1}.get(self._text[end], 0)
                end += 1
                if depth == 0:
                    break
            self._at = end
        self._script.unresolved.append(self._text[begin : self._at])
        self._add(self._text[begin : self._at])
