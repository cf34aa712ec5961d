"""Value cells to numbers in base units, or to the reason why there is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import isfinite

from solscope.model.metric_units import unit_of
from solscope.model.report import Instance, MetricValue
from solscope.model.units import PrintedUnit
from solscope.reports.printed.number_format import NumberFormat


class Absent(Enum):
    """Why a cell has no value. None of them is a zero."""

    NOT_COLLECTED = "not collected"
    NOT_AVAILABLE = "not available"
    NOT_FINITE = "not a finite number"
    NOT_A_NUMBER = "text in the place of a number"


@dataclass(frozen=True, slots=True)
class Instanced:
    """A cell of ``--print-metric-instances``: the aggregate, and the instances."""

    aggregate: MetricValue | Absent
    instances: tuple[Instance, ...]


_NOT_AVAILABLE = frozenset({"n/a", "no data", "not available"})
_NOT_FINITE = frozenset({"nan", "inf", "infinity", "-nan(ind)", "nan(ind)", "1.#qnan", "1.#inf"})
_INSTANCED = re.compile(r"(?s)(?:(\S.*?)\s)?\((.*)\)")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?")
_DIGITS = 4000


# Units that ncu scales by what is printed, so that a number alone may mean several things.
_SCALED = frozenset({"byte", "ns", "hz"})
# Two decimals of a value scaled to at least 1 are right to half a percent; more is a difference.
_SAME_WITHIN = 0.02


def needs_unit(metric: str) -> bool:
    """Whether a number of the metric says nothing without the unit that it was printed in.

    >>> needs_unit("dram__bytes_read.sum"), needs_unit("launch__shared_mem_per_block")
    (True, True)
    >>> needs_unit("sm__inst_executed.sum")
    False
    """
    above, _, below = (unit_of(metric) or "").partition("/")
    return above in _SCALED or below in _SCALED or (below == "s" and above != "")


def measured(
    value: MetricValue | Absent | Instanced, unit: PrintedUnit
) -> MetricValue | Absent | Instanced:
    """The value of a cell with this unit: a text, such as a spreadsheet's date, is none."""
    return Absent.NOT_A_NUMBER if isinstance(value, str) and unit.base else value


def is_other_value(
    first: MetricValue | Absent | Instanced, second: MetricValue | Absent | Instanced
) -> bool:
    """Whether two cells of one metric contradict each other; they may have been printed in two
    units, rounded in each."""
    one, two = (v.aggregate if isinstance(v, Instanced) else v for v in (first, second))
    if isinstance(one, int | float) and isinstance(two, int | float):
        return abs(one - two) > _SAME_WITHIN * max(abs(one), abs(two))
    return one != two


_NULLS = frozenset({"nan", "none", "null", "<na>"})


_FEW_DIGITS = re.compile(r"(?<![\w.])\d(?:[.,]\d{1,2})?E\+\d\d(?!\w)")


def count_few_digits(text: str) -> int:
    """How many numbers a spreadsheet has left three digits, such as 1.23E+05."""
    return len(_FEW_DIGITS.findall(text)) if "E+" in text else 0


def unit_text(cell: str) -> str:
    """What a cell of a unit or a name says; empty for what data frames write in an empty one.

    >>> unit_text(" us "), unit_text("NaN")
    ('us', '')
    """
    bare = cell.strip()
    return "" if bare.lower() in _NULLS else bare


def absent(text: str) -> Absent | None:
    """Which kind of absence the cell states, ``None`` where it holds something.

    >>> absent("no data")
    <Absent.NOT_AVAILABLE: 'not available'>
    """
    bare = text.strip().lower().removeprefix("(!)").strip()
    if bare == "":
        return Absent.NOT_COLLECTED
    if bare in _NOT_AVAILABLE:
        return Absent.NOT_AVAILABLE
    return Absent.NOT_FINITE if bare.lstrip("+-") in _NOT_FINITE else None


def plain_number(text: str, exponent: int) -> MetricValue | None:
    """A number with a decimal point, times ten to ``exponent``; ``None`` where it is no number.

    Scaled as text, so that ``25.170176`` of 10**6 is 25170176 and nothing beside it.
    """
    if _NUMBER.fullmatch(text) is None or len(text) > _DIGITS:
        return None
    if exponent == 0:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    if "e" in text or "E" in text:
        return float(text) * 10.0**exponent
    return float(f"{text}e{exponent}")


PER_CYCLE = ".sum.per_cycle_elapsed"
"""How a counter ends that totals are made of by its cycles, so that its digits matter."""


def half_digit(text: str, exponent: int, numbers: NumberFormat) -> float:
    """Half of a number's last decimal in base units; 0 for a whole number, which ncu prints only
    where the value is one, and for what is no number.

    >>> from solscope.reports.printed.number_format import PLAIN
    >>> half_digit("0.25", 3, PLAIN), half_digit("17", 0, PLAIN)
    (5.0, 0.0)
    >>> half_digit("1.23E+05", 0, PLAIN)
    500.0
    """
    plain = numbers.plain(text.strip())
    if _NUMBER.fullmatch(plain) is None:
        return 0.0
    mantissa, marked, power = plain.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    if marked:  # a spreadsheet shows 123456 as 1.23E+05
        return 0.5 * 10.0 ** (exponent + int(power) - decimals)
    return 0.5 * 10.0 ** (exponent - decimals) if decimals else 0.0


def plain_column(
    cells: Sequence[str], exponent: int, numbers: NumberFormat
) -> Sequence[int | float] | None:
    """The numbers of a column of plain numbers, all at once; ``None`` where one is none."""
    if not numbers.is_plain:
        return None
    # Attributes of the device and of the launch, a third of a wide page, are alike in every row.
    first = cells[0] if cells else ""
    if len(cells) > 1 and cells[-1] == first and cells.count(first) == len(cells):
        one = plain_column((first,), exponent, numbers)
        return None if one is None else [*one] * len(cells)
    suffix = f"e{exponent}" if exponent else ""
    texts = cells
    if suffix:
        texts = f"{suffix}\n".join((*cells, ""))[:-1].split("\n")
    values: list[int] | list[float]
    try:
        values = list(map(int, texts))
    except ValueError:
        try:
            values = list(map(float, texts))
        except ValueError:
            return None
    # Both take "1_000" and float() takes "nan" and overflows; a sum shows the last two.
    try:
        is_usable = isfinite(sum(values)) and len(values) == len(cells)
    except OverflowError:
        return None
    return values if is_usable and "_" not in "".join(cells) else None


def column_values(
    cells: Sequence[str], exponent: int, numbers: NumberFormat
) -> Sequence[MetricValue | Absent | Instanced]:
    """What each cell of a column says."""
    values = plain_column(cells, exponent, numbers)
    if values is not None:
        return values
    return [value_of(cell, exponent, numbers) for cell in cells]


def value_of(text: str, exponent: int, numbers: NumberFormat) -> MetricValue | Absent | Instanced:
    """What a value cell says: a number in base units, a text, an absence, or instances."""
    bare = text.strip()
    number = plain_number(numbers.plain(bare), exponent)
    if number is not None:
        return number if isinstance(number, str) or isfinite(number) else Absent.NOT_FINITE
    missing = absent(bare)
    if missing is not None:
        return missing
    if bare.endswith(")"):
        found = _INSTANCED.fullmatch(bare)
        if found is not None:
            return _instanced(found, exponent, numbers) or bare
    return bare


def _instanced(found: re.Match[str], exponent: int, numbers: NumberFormat) -> Instanced | None:
    head, body = found.group(1), found.group(2)
    aggregate: MetricValue | Absent = Absent.NOT_COLLECTED
    if head is not None:
        number = plain_number(numbers.plain(head), exponent)
        if number is None:
            return None
        aggregate = number
    elif ";" not in body and plain_number(numbers.plain(body), 0) is None:
        return None
    instances = tuple(_instance(part.strip(), exponent, numbers) for part in body.split(";"))
    return Instanced(aggregate, instances)


def _instance(text: str, exponent: int, numbers: NumberFormat) -> Instance:
    value = plain_number(numbers.plain(text), exponent)
    if value is not None:
        return Instance(None, value)
    key, colon, rest = text.rpartition(": ")
    value = plain_number(numbers.plain(rest.strip()), exponent) if colon else None
    if value is not None:
        number = plain_number(key.strip(), 0)
        return Instance(key.strip() if number is None else number, value)
    return Instance(None, None if absent(text) else text)


def number_texts(text: str) -> list[str]:
    """The numbers in a value cell, for finding out how the file writes numbers."""
    if "(" not in text:
        return [text]
    found = _INSTANCED.fullmatch(text.strip())
    if found is None:
        return [text]
    parts = [part.rpartition(": ")[2].strip() for part in found.group(2).split(";")]
    return parts if found.group(1) is None else [found.group(1), *parts]
