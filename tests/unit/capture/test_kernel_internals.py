"""What other tools read of a capture: one entry a kernel, and none lost for its name."""

from __future__ import annotations

from dataclasses import replace

from tests import analyses

from solscope.flows.capture import reading


def test_a_second_shape_of_a_kernel_does_not_take_the_place_of_the_longest() -> None:
    first = analyses.a_gemm().totals
    other = replace(first, key=replace(first.key, grid=(2, 1, 1)), registers_per_thread=7)
    told = reading._per_kernel([first, other])
    block = "x".join(map(str, first.key.block or ()))
    assert list(told) == [first.name, f"{first.name} [2x1x1, {block}]"]
    assert told[first.name]["regs_per_thread"] == first.registers_per_thread
    assert list(told.values())[1]["regs_per_thread"] == 7


def test_kernels_of_one_name_and_shape_are_all_kept() -> None:
    rows = [
        analyses.a_kernel("same", us=us, bound="dram", name_full=f"same<{us}>").totals
        for us in (9, 5, 3, 1)
    ]
    first, second, *others = reading._per_kernel(rows)
    assert (first, second.partition(" ")[0]) == ("same", "same")
    assert others == [f"{second} #2", f"{second} #3"]
