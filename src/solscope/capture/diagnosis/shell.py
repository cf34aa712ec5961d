"""A command as a shell would run it: the profiler's own words, whatever was put around them."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Sequence

PROFILERS = ("ncu", "nv-nsight-cu-cli", "nsys")

_RUNS_A_TEXT = re.compile(r"-[a-z]*c")  # bash -c, -lc, -euc
_ENDS = ("&&", "||", ";", "|", "&")
_REDIRECTION = re.compile(r"(?:\d|&)?(?:>>?|<)")
_MANY = {
    "srun": ("-n", "--ntasks"),
    "mpirun": ("-n", "-np", "--np"),
    "mpiexec": ("-n", "-np"),
    "torchrun": ("--nproc_per_node", "--nproc-per-node"),
}


def tool_of(word: str) -> str:
    """A program's name without its folder, and without what Windows puts behind it."""
    return re.sub(r"\.(?:exe|bat)$", "", re.split(r"[\\/]", word)[-1].lower())


def is_profiler(word: str) -> bool:
    """Whether a word names a profiler, with or without its folder."""
    return tool_of(word) in PROFILERS


def split(text: str) -> tuple[list[str], list[str]]:
    """The words before a command's profiler and those from it on. The text that a shell is given
    by ``-c`` is opened where the profiler stands in it. Raises :class:`ValueError` where a shell
    would refuse the line."""
    words = shlex.split(text.replace("\\\n", " "), comments=False)
    before: list[str] = []
    while not any(map(is_profiler, words)):
        inner = next((w for flag, w in itertools.pairwise(words) if _is_script(flag, w)), None)
        if inner is None:
            return words, []
        before += words
        words = shlex.split(inner, comments=False)
    place = next(index for index, word in enumerate(words) if is_profiler(word))
    return [*before, *words[:place]], _until_end(words[place:])


def _is_script(flag: str, text: str) -> bool:
    named = re.search(r"(?:^|[\s/;&|(])(?:" + "|".join(PROFILERS) + r")(?:\s|$)", text)
    return _RUNS_A_TEXT.fullmatch(flag) is not None and named is not None


def _until_end(words: Sequence[str]) -> list[str]:
    """The words of one command: what follows an operator or a redirection is another's."""
    own: list[str] = []
    for word in words:
        if word in _ENDS or _REDIRECTION.match(word):
            break
        if word.endswith(";"):
            own.append(word.rstrip(";"))
            break
        own.append(word)
    return own


def ranks_of(before: Sequence[str]) -> tuple[str, int] | None:
    """The launcher in front of a profiler, and how many copies of it it starts."""
    for place, word in enumerate(before):
        launcher = word.rsplit("/", 1)[-1]
        for flag, value in itertools.pairwise([*before[place:], ""]):
            name, sign, own = flag.partition("=")
            number = own if sign else value
            if name in _MANY.get(launcher, ()) and number.isdigit() and int(number) > 1:
                return launcher, int(number)
    return None
