"""A capture given twice is refused; what only looks like one is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from solscope.errors import UsageError
from solscope.flows import read, twins
from solscope.flows.world import World
from solscope.model.report import Report

HEAD = '"ID","Process ID","Kernel Name","Grid Size","Block Size"'


def page(folder: Path, name: str, *, kernel: str = "k", **metrics: str) -> str:
    """A raw page of one launch; containers give every run the same process id."""
    columns = "".join(f',"{one}"' for one in metrics)
    units = "".join(',"ns"' if "duration" in one else ',"inst"' for one in metrics)
    values = "".join(f',"{value}"' for value in metrics.values())
    path = folder / f"{name}.csv"
    path.write_text(
        f'{HEAD}{columns}\n"","","","",""{units}\n'
        f'"0","7","{kernel}","(8, 1, 1)","(128, 1, 1)"{values}\n'
    )
    return str(path)


def reports(*paths: str) -> list[Report]:
    return read.read_all(paths, World())


def test_the_same_numbers_of_the_same_launches_are_one_capture(tmp_path: Path) -> None:
    numbers = {"gpu__time_duration.sum": "1234", "smsp__inst_executed.sum": "77"}
    one, two = page(tmp_path, "one", **numbers), page(tmp_path, "two", **numbers)
    Path(two).write_text(Path(two).read_text() + "\n")  # not byte for byte
    with pytest.raises(UsageError, match="count double"):
        twins.refuse(reports(one, two))


@pytest.mark.parametrize(
    ("kernel", "numbers"),
    [
        ("other", {"gpu__time_duration.sum": "1234", "smsp__inst_executed.sum": "77"}),
        ("k", {"gpu__time_duration.sum": "1235", "smsp__inst_executed.sum": "77"}),
    ],
    ids=["another-kernel", "another-time"],
)
def test_another_kernel_or_another_time_is_another_capture(
    tmp_path: Path, kernel: str, numbers: dict[str, str]
) -> None:
    first = {"gpu__time_duration.sum": "1234", "smsp__inst_executed.sum": "77"}
    one = page(tmp_path, "one", **first)
    twins.refuse(reports(one, page(tmp_path, "two", kernel=kernel, **numbers)))


def test_equal_counts_without_a_time_prove_no_copy(tmp_path: Path) -> None:
    one = page(tmp_path, "one", **{"smsp__inst_executed.sum": "77"})
    two = page(tmp_path, "two", **{"smsp__inst_executed.sum": "77"})
    Path(two).write_text(Path(two).read_text() + "\n")
    twins.refuse(reports(one, two))
