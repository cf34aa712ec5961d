"""Which launches and metrics an ncu command selects: values that cannot mean what is meant."""

from __future__ import annotations

import difflib
import re

from solscope.capture.diagnosis.command import Command, Say
from solscope.capture.diagnosis.options import CHIPS, SECTIONS, SETS
from solscope.capture.diagnosis.scanning import Facts

_CHIP = re.compile(r"(?:gv|tu|ga|ad|gh|gb)\d\w\w")
_COLONS = 3  # of a kernel id, an empty field for any: ::NAME:2


def state(command: Command, facts: Facts) -> None:
    """Add the facts of an ncu command's filters, sets, sections and chips."""
    if command.broken or not command.tool or command.tool.startswith("nsys"):
        return

    def say(code: str, text: str, **fields: str) -> None:
        facts.add(code, command.where, text, fields)

    for name, value in command.options:
        if name == "nvtx-exclude" and value and not re.search(r"[/\[\]]", value):
            say("nvtx-exclude-plain-name", f"--{name} {value}", name=value.split("@")[-1])
        if name in ("kernel-name", "section") and value.startswith("regex:"):
            _state_regex(name, value.removeprefix("regex:"), say)
        if name in ("launch-skip", "launch-skip-before-match") and not value.isdigit():
            whole = {"allowed": "a whole number", "nearest": "0"}
            say("option-value-bad", f"--{name} {value}", name=f"--{name}", value=value, **whole)
        if name == "nvtx-include" and value and not re.search(r"[/\[\]]", value):
            say("nvtx-plain-name", f"--{name} {value}", name=value.split("@")[-1])
        if name == "kernel-name" and value and not value.startswith("regex:"):
            base = command.value("kernel-name-base") or "function"
            if re.search(r"[*.|^$+?\\]|\[|\]", value):
                guess = re.sub(r"(?<!\.)\*", ".*", value)
                say("kernel-exact-name", f"-k {value}", name=value, regex=f"regex:{guess}")
            elif base == "function" and re.search(r"[<(]|::|^void\b", value):
                say("kernel-name-of-template", f"-k {value}", name=value)
        if name == "kernel-name" and value.startswith("regex:"):
            base = command.value("kernel-name-base") or "function"
            if base == "function" and re.search(r"[<]|::|\\\(|:\^?void\b", value):
                say("kernel-name-of-template", f"-k {value}", name=value)
        if name == "kernel-id" and value.replace("regex:", "").count(":") < _COLONS:
            form = {"allowed": "CONTEXT:STREAM:NAME:INVOCATION", "nearest": _whole_id(value)}
            say("option-value-bad", f"--{name} {value}", name=f"--{name}", value=value, **form)
        if name == "kernel-id" and any(_places(value)):
            say("kernel-id-with-place", f"--{name} {value}", name=value)
        if name == "launch-count" and not value.isdigit():
            say("launch-count-not-positive", f"--{name} {value}", value=value)
        if name == "launch-count" and value.isdigit() and int(value) == 0:
            say("launch-count-not-positive", f"--{name} {value}", value=value)
    for name, value in command.options:
        if name == "section" and re.search(r"[*+|^$\\]", value) and not value.startswith("regex:"):
            say("section-pattern", f"--section {value}", name=value)
    if command.value("set") == "basic" and command.value("metrics") is None:
        say("set-without-roofline", "--set basic", name="basic")
    for name, value in command.options:
        if name == "set" and value and value not in SETS and not value.startswith("regex:"):
            near = difflib.get_close_matches(value, SETS, n=1, cutoff=0.4)
            say("option-typo", f"--set {value}", given=value, nearest=near[0] if near else "full")
        if name == "section" and command.value("section-folder") is None:
            _state_section(value, say)
        if name == "metrics":
            _state_metrics(value, say)
        if name == "chips":
            _state_chips(value, say)


def _state_section(value: str, say: Say) -> None:
    """A section's name that is nearly one of the stock sections'."""
    if value in SECTIONS or value.startswith("regex:"):
        return
    if "," in value:
        instead = " ".join(f"--section {part.strip()}" for part in value.split(","))
        say("section-list", f"--section {value}", name=value, instead=instead)
        return
    near = difflib.get_close_matches(value.lower(), map(str.lower, SECTIONS), n=1, cutoff=0.75)
    if near:
        nearest = next(name for name in SECTIONS if name.lower() == near[0])
        say("section-misspelt", f"--section {value}", name=value, nearest=nearest)


def _state_metrics(value: str, say: Say) -> None:
    """A pattern in a list of metrics that is not said to be one."""
    for part in value.split(","):
        if re.search(r"[*?\[^$]", part) and not re.match(r"\w+:", part):
            regex = re.sub(r"(?<![.\])])\*", ".*", part)
            say("metric-pattern", f"--metrics {part}", name=part, regex=regex)


def _state_chips(value: str, say: Say) -> None:
    """A product's name where the name of its chip is wanted."""
    for part in value.split(","):
        if part.strip() and not _CHIP.fullmatch(part.strip()):
            chip = CHIPS.get(part.strip().lower(), "gh100")
            whole = {"allowed": "the names that `ncu --list-chips` prints", "nearest": chip}
            say("option-value-bad", f"--chips {value}", name="--chips", value=part.strip(), **whole)


def _whole_id(value: str) -> str:
    """A kernel id of four fields for one that has too few: `NAME` or `NAME:INVOCATION`."""
    return f"::{value}" if ":" in value.removeprefix("regex:") else f"::{value}:"


def _places(value: str) -> tuple[str, str, str]:
    """Context, stream and invocation of a kernel id, ``CONTEXT:STREAM:[regex:]NAME:INVOCATION``."""
    parts = value.split(":")
    return (parts[0], parts[1], parts[-1]) if len(parts) > _COLONS else ("", "", "")


def _state_regex(option: str, text: str, say: Say) -> None:
    try:
        re.compile(text)
    except re.error as error:
        say("regex-broken", f"--{option} regex:{text}", name=f"--{option}", why=str(error))
