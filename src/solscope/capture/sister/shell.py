"""A shell script's words with their places, so that a few can be changed and the rest kept.

Reads the POSIX shell grammar as far as start scripts of servers use it: quotes, backslash
continuations, ``$( )``, ``${ }``, backquotes, comments, redirections, and ``; & && || |`` and
new lines between commands. A here-document ends the reading: what follows it is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word: ``text`` without its quotes, and where it stands in the script."""

    text: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleCommand:
    """The words of one command, redirections left out."""

    words: tuple[Word, ...]


_OPERATORS = ("&&", "||", ";;", ";", "&", "|", "(", ")", "\n")
_BLANK = " \t\r"


def commands(script: str) -> tuple[SimpleCommand, ...]:
    """Every simple command of a script, in order.

    >>> [w.text for w in commands("sleep 1; exec vllm serve 'a b' \\\\\\n --port 80")[1].words]
    ['exec', 'vllm', 'serve', 'a b', '--port', '80']
    """
    found: list[SimpleCommand] = []
    words: list[Word] = []
    for word in _tokens(script):
        if word is None:
            if words:
                found.append(SimpleCommand(words=tuple(words)))
            words = []
        else:
            words.append(word)
    if words:
        found.append(SimpleCommand(words=tuple(words)))
    return tuple(found)


def _tokens(script: str) -> Iterator[Word | None]:
    """Words, and None between commands."""
    position, redirected = 0, False
    while position < len(script):
        if script[position] in _BLANK:
            position += 1
        elif script.startswith("\\\n", position):
            position += 2
        elif script.startswith("\\\r\n", position):
            position += 3
        elif script[position] == "#":
            position = _line_end(script, position)
        elif script.startswith("<<", position):
            return
        elif (length := _redirection(script, position)) > 0:
            position, redirected = position + length, True
        elif operator := next((o for o in _OPERATORS if script.startswith(o, position)), None):
            position += len(operator)
            yield None
        else:
            word = _word(script, position)
            position = word.end
            if not redirected:
                yield word
            redirected = False


def _line_end(script: str, position: int) -> int:
    end = script.find("\n", position)
    return len(script) if end < 0 else end


def _redirection(script: str, position: int) -> int:
    """The length of a redirection operator at ``position``, or 0."""
    end = position
    while end < len(script) and script[end].isdigit():
        end += 1
    if script.startswith("&>", end) and end == position:
        return 3 if script.startswith("&>>", end) else 2
    if end >= len(script) or script[end] not in "<>":
        return 0
    end += 1
    while end < len(script) and script[end] in ">&|":
        end += 1
    return end - position


def _word(script: str, begin: int) -> Word:
    text: list[str] = []
    position = begin
    while position < len(script):
        char = script[position]
        if char in _BLANK or char in "\n;&|()<>":
            break
        if char == "\\":
            position = _escaped(script, position, text)
        elif char == "'":
            position = _single(script, position, text)
        elif char == '"':
            position = _double(script, position, text)
        elif char in "$`":
            position = _expansion(script, position, text)
        else:
            text.append(char)
            position += 1
    return Word(text="".join(text), begin=begin, end=max(position, begin + 1))


def _escaped(script: str, position: int, text: list[str]) -> int:
    following = script[position + 1 : position + 2]
    if following == "\n":
        return position + 2
    if script.startswith("\r\n", position + 1):
        return position + 3
    text.append(following)
    return position + 2


def _single(script: str, position: int, text: list[str]) -> int:
    end = script.find("'", position + 1)
    end = len(script) if end < 0 else end
    text.append(script[position + 1 : end])
    return end + 1


def _double(script: str, position: int, text: list[str]) -> int:
    position += 1
    while position < len(script) and script[position] != '"':
        if script[position] == "\\" and script[position + 1 : position + 2] in '"\\$`\n':
            if script[position + 1] != "\n":
                text.append(script[position + 1])
            position += 2
        elif script[position] in "$`":
            position = _expansion(script, position, text)
        else:
            text.append(script[position])
            position += 1
    return position + 1


_CLOSERS = {"$(": ")", "${": "}"}


def _expansion(script: str, position: int, text: list[str]) -> int:
    """Copy ``$( )``, ``${ }`` or backquotes whole; they keep their spelling in the text."""
    if script[position] == "`":
        end = script.find("`", position + 1)
        end = len(script) if end < 0 else end + 1
    elif (opener := script[position : position + 2]) in _CLOSERS:
        end = _closing(script, position + 2, opener[1], _CLOSERS[opener])
    else:
        end = position + 1
    text.append(script[position:end])
    return end


def _closing(script: str, position: int, opener: str, closer: str) -> int:
    depth = 1
    while position < len(script) and depth:
        char = script[position]
        depth += (char == opener) - (char == closer)
        position += 1
    return position
