"""Words around numbers, and names that people can tell apart."""

from __future__ import annotations

import doctest

from solscope.render import wording


def test_the_examples_run() -> None:
    assert doctest.testmod(wording).failed == 0


def test_a_line_that_goes_on_is_indented_further() -> None:
    assert wording.hanging("warning: one two three", 16) == ["  warning: one", "    two three"]


def test_words_that_tell_kernels_apart_are_whole() -> None:
    names = [
        ("Kernel2", "void Kernel2<cutlass_gemm_64x64_align8>(T1::Params)"),
        ("Kernel2", "void Kernel2<cutlass_gemm_64x128_align8>(T1::Params)"),
        ("gemm", "gemm"),
    ]
    assert wording.told_apart(names, 60) == [
        "Kernel2 …cutlass_gemm_64x64_align8…",
        "Kernel2 …cutlass_gemm_64x128_align8…",
        "gemm",
    ]


def test_a_name_that_is_a_part_of_another_is_told_apart_too() -> None:
    assert wording.told_apart([("f", "f<int>(int)"), ("f", "f<int>")], 60) == ["f …(int)…", "f"]


def test_long_names_lose_their_middle() -> None:
    (name,) = wording.told_apart([("a" * 30 + "tail", "a")], 20)
    assert (len(name), name[-4:]) == (20, "tail")
