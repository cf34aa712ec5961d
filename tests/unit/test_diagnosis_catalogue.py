"""Every message is recognised from a rendered example, and only by its own template."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator

import pytest
from tests import corpus

from solscope.capture.diagnosis.knowledge import PLACEHOLDER, Knowledge, load, sample_of
from solscope.capture.diagnosis.scanning import Facts, Scanner
from solscope.capture.diagnosis.truncation import FEWEST_LETTERS

MESSAGES = corpus.SHARED / "cases" / "ncu-messages.json"
VALUES = {"%u": "7", "%i": "7", "%d": "7", "%s": "value"}
# Parts of the catalogue that are remarks or fragments rather than whole messages.
REMARK = re.compile(r"\s*\((?:template|same|also|variant)[^)]*\)")
FRAGMENTS = {"with --verbose", "with --log-file", "-"}


def recognised(knowledge: Knowledge, line: str) -> set[str]:
    """The templates that match a line, those of fact files (told by their names) left out."""
    found = set()
    for name, (patterns, excluded) in knowledge.patterns.items():
        template = knowledge.templates[name]
        if template.file or template.level == "fact":
            continue
        if any(p.match(line) is not None for p in patterns) and not any(
            p.match(line) is not None for p in excluded
        ):
            found.add(name)
    return found


def catalogued() -> Iterator[tuple[int, str]]:
    """Each message of the catalogue with its number, placeholders filled."""
    if not MESSAGES.exists():
        return
    for number, message in enumerate(json.loads(MESSAGES.read_text())["messages"]):
        for part in REMARK.sub("", message["template"]).split(" / "):
            text = part.removeprefix("... ").strip()
            if text in FRAGMENTS:
                continue
            text = text.replace("%%", "%").replace("No %ss", "No kernels")
            for placeholder, value in VALUES.items():
                if placeholder == "%i" and "Macro" in text:
                    continue
                text = text.replace(placeholder, value)
            yield number, text


EXAMPLES = list(catalogued())


def test_every_template_recognises_its_own_samples_and_no_other_ones() -> None:
    knowledge = load()
    for template in knowledge.templates.values():
        patterns, excluded = knowledge.patterns[template.id]
        for pattern in patterns:
            line = (
                template.sample[0]
                if template.sample and pattern is patterns[0]
                else sample_of(pattern.text)
            )
            assert pattern.match(line) is not None, (template.id, line)
            assert pattern.anchor in line.lower(), (template.id, line)
            assert not any(p.match(line) is not None for p in excluded), (template.id, line)
            if template.level != "fact" and not template.file:
                assert recognised(knowledge, line) == {template.id}, line


@pytest.mark.parametrize(("number", "text"), EXAMPLES, ids=[f"{n}-{t[:40]}" for n, t in EXAMPLES])
def test_each_catalogued_message_has_exactly_one_template(number: int, text: str) -> None:
    found = recognised(load(), f"==ERROR== {text}")
    assert len(found) == 1, (number, text, found)


# Messages that begin alike for longer than the part that is left; the nearest one is then shown.
ALIKE = {
    1: "ordinary and virtual devices",
    15: "counters and clocks",
    28: "the progress of a launch says that it was begun",
    56: "what the connection failed to reach",
    70: "where the option stood",
    66: "which file failed to be created",
    105: "by regex and by exact name",
    106: "by regex and by exact name",
    107: "which state is incorrect",
    113: "which state is incorrect",
}


@pytest.mark.parametrize("share", [0.6, 0.7, 0.9])
def test_a_message_that_is_cut_is_recognised_or_shown_as_the_nearest(share: float) -> None:
    knowledge = load()
    scanner = Scanner(knowledge)
    by_text = {
        PLACEHOLDER.sub("…", text): name
        for name, template in knowledge.templates.items()
        for text in (*template.match, *template.begins)
    }
    lost = []
    for number, text in EXAMPLES:
        cut = text[: int(share * len(text))]
        if len(cut) < FEWEST_LETTERS:
            continue
        facts = Facts()
        scanner.scan(io.BytesIO(f"==ERROR== {cut}\n".encode()), "x", facts)
        near = {by_text[u.nearest] for u in facts.unknown if u.nearest is not None}
        found = {code for code in facts.counts if code in knowledge.templates} | near
        if not found or not (found & recognised(knowledge, text) or number in ALIKE):
            lost.append((number, cut, found))
    assert lost == [], lost


def test_each_status_name_alone_in_a_line_is_known() -> None:
    names = json.loads(corpus.require(MESSAGES).read_text())["status_names"]
    knowledge = load()
    unknown = [
        entry["name"]
        for entry in names
        if len(recognised(knowledge, f"==ERROR== {entry['name']}")) != 1
    ]
    assert unknown == []


def test_messages_of_one_catalogue_entry_with_different_reasons_stay_apart() -> None:
    knowledge = load()
    held = "==ERROR== Profiling failed because a driver resource was unavailable."
    either = held[:-1] + (
        " or the user does not have permission to access NVIDIA GPU Performance Counters."
    )
    assert recognised(knowledge, held) == {"counters-held"}
    assert recognised(knowledge, either) == {"counters-held-or-refused"}
