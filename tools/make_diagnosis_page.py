"""Write docs/reference/diagnoses.md from the rules that `solscope diagnose` applies.

Usage: python -m tools.make_docs
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from solscope.capture.diagnosis.knowledge import CauseRule, Clause, Knowledge, load
from solscope.capture.diagnosis.stated import MEANINGS

ROLES = {
    "cause": "a cause",
    "suspect": "undecided until its check is made",
    "advice": "a remark on a command, a manifest or a report",
    "well": "all is well",
    "harmless": "looks bad and is harmless",
}
TITLES = {
    "permission": "Permission",
    "devices": "Devices",
    "installation": "Driver, libraries, installation",
    "conflict": "Other tools",
    "hang": "Hangs and attaching",
    "progress": "Progress and ends",
    "selection": "Which launches are profiled",
    "options": "Options that ncu refuses",
    "lint": "Commands, before they run",
    "replay": "Replay and memory",
    "report": "Reports",
    "nsys": "Nsight Systems",
    "server": "Server and workers",
    "cluster": "Pod and cluster",
    "containers": "Container engines",
    "batch": "Schedulers, launchers, ranks",
    "faults": "Faults of the GPU",
    "build": "Compilers and builds",
    "traces": "Torch profiler and endpoints",
    "tools": "nvprof, compute-sanitizer, dcgmi",
    "figures": "Stated figures",
}


def page(knowledge: Knowledge) -> str:
    """The whole page."""
    return "\n".join(_lines(knowledge)).rstrip() + "\n"


def _lines(knowledge: Knowledge) -> Iterator[str]:
    causes = len(knowledge.causes)
    yield "# What `solscope diagnose` can tell"
    yield ""
    yield "<!-- Made from the rules by `make docs`; do not edit. -->"
    yield ""
    yield (
        f"{causes} answers from {len(knowledge.templates)} recognised lines and facts. The rules "
        "are data (`src/solscope/capture/diagnosis/data`); a new one needs no code. "
        "A value in ‹brackets› is filled from the log."
    )
    yield ""
    yield '"No kernels were profiled" is in no list below: it follows from a cause and is none.'
    order = list(TITLES)
    told = [topic for topic in knowledge.topics if topic.cause]
    told.sort(key=lambda topic: order.index(topic.topic))
    yield ""
    for topic in told:
        title = TITLES[topic.topic]
        yield f"- [{title}](#{_anchor(title)}): {len(topic.cause)} answers. {topic.about}"
    for topic in told:
        yield ""
        yield f"## {TITLES[topic.topic]}"
        yield ""
        yield topic.about
        for cause in topic.cause:
            yield from _cause(cause, knowledge)
    yield ""
    yield "## Lines that only follow from a cause"
    yield ""
    for template in knowledge.templates.values():
        if template.is_consequence:
            yield f"- {_code(template.match[0])}: {template.means}"
    yield ""
    yield "## Adding an answer"
    yield ""
    yield (
        "A line is a `[[template]]` in `data/lines/TOPIC.toml`: its words with placeholders such "
        "as `{pid:int}`, its level, what it means, where the wording is known from. A cause is a "
        "`[[cause]]` in `data/causes/TOPIC.toml`: conditions on lines and facts (`all`, `any`, "
        "`none`), why, remedies, checks, sources. Both are validated when they are loaded; "
        "`knowledge.py` describes the small language. Then `make docs`."
    )


def _anchor(title: str) -> str:
    """The anchor that Markdown readers give to a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _cause(cause: CauseRule, knowledge: Knowledge) -> Iterator[str]:
    yield ""
    yield f"### {_filled(cause.title)}"
    yield ""
    yield f"`{cause.id}`, {ROLES[cause.role]}."
    yield ""
    yield f"Told by: {_conditions(cause, knowledge)}."
    yield ""
    for text in cause.why:
        yield _filled(text)
        yield ""
    yield from _lists(cause)
    for clause in cause.also:
        yield f"Where also: {_conditions(clause, knowledge)}."
        yield ""
        for text in clause.why:
            yield _filled(text)
            yield ""
        yield from _lists(clause)
    yield f"Sources: {'; '.join(cause.sources)}."


def _lists(part: CauseRule | Clause) -> Iterator[str]:
    for text in part.remedies:
        yield f"- do: {_filled(text)}"
    for check in part.checks:
        yield f"- check: {_filled(check.do)}: {_filled(check.decides)}"
    if part.remedies or part.checks:
        yield ""


def _conditions(part: CauseRule | Clause, knowledge: Knowledge) -> str:
    every = [_condition(text, knowledge) for text in part.all]
    some = [_condition(text, knowledge) for text in part.any]
    told = [" and ".join(every)] if every else []
    if some:
        told.append(
            (" and any of: " if every else "any of: " if len(some) > 1 else "") + ", ".join(some)
        )
    text = "".join(told)
    if part.none:
        text += "; not with " + ", ".join(_condition(one, knowledge) for one in part.none)
    if isinstance(part, CauseRule) and part.overcome_by:
        later = ", ".join(_condition(one, knowledge) for one in part.overcome_by)
        text += f"; told as passed where one of these follows in the same file: {later}"
    return text


def _condition(text: str, knowledge: Knowledge) -> str:
    code = re.split(r"[.\s]", text, maxsplit=1)[0]
    template = knowledge.templates.get(code)
    rest = text[len(code) :].lstrip(".")
    where = f" (`{rest}`)" if rest else ""
    if template is not None:
        return f"{template.means}{where}"
    if code.startswith("opt-"):
        return f"the option `--{code[4:]}`{where}"
    return f"{MEANINGS.get(code, code.replace('-', ' '))}{where}"


def _filled(text: str) -> str:
    """The text with its fields as ``<field>``, safe in Markdown."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"([*_<|\[\]])", r"\\\1", parts[index])
    joined = "`".join(parts)
    return re.sub(r"\{([\w-]+)\.(\w+)\}", lambda hit: f"‹{hit.group(2)}›", joined)


def _code(text: str) -> str:
    return f"`{text.strip('^$')}`"


def current() -> str:
    """The page of the packaged rules."""
    return page(load())
