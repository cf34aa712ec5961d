"""Kernel names as profilers print them: the same function under many spellings."""

from __future__ import annotations

import re
from functools import lru_cache

# `nsys stats --report x:nvtx-name` puts the innermost NVTX range before the name, with a slash.
_NVTX_PREFIX = re.compile(r"^[^<]*(?<!operator)/(?=[^/\s])")
_LENGTH = re.compile(r"[1-9]\d{0,3}")
_NESTING = re.compile(r"([<>()\[\]])")
_OPENING = {")": "(", ">": "<", "]": "["}
# ncu prints "unnamed>::f", without the first bracket, for some functions of unnamed namespaces.
_UNNAMED = re.compile(r"\(anonymous namespace\)|<?\bunnamed>")


@lru_cache(maxsize=1 << 16)
def short_name(name: str) -> str:
    """The function's own name, without return type, namespaces, templates and arguments.

    >>> short_name("void at::native::vectorized_add<4, at::F<x> >(int, at::F<x>)")
    'vectorized_add'
    >>> short_name("nvjet_tst_64x64_64x16_2x1_v_bz_TNT")
    'nvjet_tst_64x64_64x16_2x1_v_bz_TNT'
    >>> short_name("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bEEvPT0_")
    'add_rmsnorm_quant_kernel'
    >>> short_name("my range (x)/void cutlass::Kernel2<T>(T::Params)")
    'Kernel2'
    >>> short_name("void add<4, unnamed>::f(T &)::[lambda() (instance 1)]::g() h() (2)]>(int)")
    'add'
    """
    if name.startswith("_Z"):
        return _of_mangled(name)
    if name.startswith(("Memcpy", "Memset")):
        return name
    name = _NVTX_PREFIX.sub("", name)
    open_marks: list[str] = []
    kept: list[str] = []
    for part in _NESTING.split(_UNNAMED.sub("", name)):
        if part == "(" and not open_marks and "".join(kept).strip():
            break
        if part in _OPENING.values():
            open_marks.append(part)
        elif part in _OPENING:
            _close(open_marks, part)
        elif not open_marks:
            kept.append(part)
    plain = "".join(kept).strip().split("::")[-1].split(" ")
    return plain[-1] or name


def _close(open_marks: list[str], mark: str) -> None:
    """A closing parenthesis also closes what looked like a bracket in it (``8 < 9``); a mark
    that closes nothing (``->``, or one whose partner ncu left out) is passed over."""
    opening = _OPENING[mark]
    if opening not in open_marks or (mark == ">" and open_marks[-1] != opening):
        return
    while open_marks.pop() != opening:
        continue


def _of_mangled(name: str) -> str:
    """The last plain identifier of an Itanium-mangled name; the name where there is none."""
    at, found = 2, name
    if name.startswith("N", at):
        at += 1
    while name.startswith(("K", "V", "r"), at):
        at += 1
    while (length := _LENGTH.match(name, at)) is not None:
        end = length.end() + int(length[0])
        if end > len(name):
            break
        found, at = name[length.end() : end], end
    return found
