"""Short names of kernels from whatever ncu printed: demangled, function or mangled."""

from __future__ import annotations

import re

_ANONYMOUS = re.compile(r"<unnamed>|\(anonymous namespace\)|\(anonymous class\)|unnamed>")
_ITANIUM_PART = re.compile(r"(\d+)")
_OPERATORS = ("operator()", "operator<<", "operator>>", "operator<", "operator>", "operator->")


def short_name(printed: str) -> str:
    """The function's name without return type, namespaces, template arguments and parameters.

    >>> short_name("void at::native::elementwise_kernel<(int)4, float>(int, float)")
    'elementwise_kernel'
    >>> short_name("_Z7vec_addPfS_S_i")
    'vec_add'
    >>> short_name("volta_sgemm_128x32_nn")
    'volta_sgemm_128x32_nn'
    """
    if printed.startswith("_Z"):
        return _itanium_name(printed) or printed
    bare = _outer_text(_ANONYMOUS.sub("anonymous", printed)).strip()
    if not bare:
        return printed
    last = bare.rsplit("::", 1)[-1].split()
    return last[-1] if last else printed


def _outer_text(text: str) -> str:
    """Text outside all brackets, up to the parameter list."""
    kept: list[str] = []
    depth = 0
    for position, mark in enumerate(text):
        if mark in "<([{":
            if mark == "(" and depth == 0 and _begins_parameters(text, position, kept):
                break
            depth += 1
        elif mark in ">)]}":
            depth = max(0, depth - (mark != ">" or text[position - 1] != "-"))
        elif depth == 0:
            kept.append(mark)
    return "".join(kept)


def _begins_parameters(text: str, position: int, kept: list[str]) -> bool:
    name = "".join(kept).strip()
    follows = text[position:].find(")::")
    # "(lambda)::operator()" is a scope; a parameter list is what no scope follows.
    return bool(name) and (follows < 0 or "(" not in text[position + follows + 3 :])


def _itanium_name(mangled: str) -> str | None:
    position = 2
    while position < len(mangled) and mangled[position] in "NKVrL":
        position += 1
    name = None
    while True:
        found = _ITANIUM_PART.match(mangled, position)
        if found is None:
            return name
        length = int(found.group(1)[:6])
        begin = found.end()
        name = mangled[begin : begin + length] or name
        position = begin + length
        if mangled[2:3] != "N":
            return name
