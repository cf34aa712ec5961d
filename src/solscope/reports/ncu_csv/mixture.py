"""Raw pages that several processes printed into one stream at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from solscope.errors import ReportError
from solscope.reports.ncu_csv.raw_page import RawRows
from solscope.reports.printed.launches import whole


def refuse(raws: Sequence[RawRows]) -> None:
    """Raises ReportError where rows of one process may stand under the units of another.

    ncu scales the units of each page for itself. Pages that were appended begin their IDs anew;
    where a process goes on in the table that another one began, whose units its numbers have is
    not known.
    """
    for before, after in combinations(raws, 2):
        if not _units_differ(before, after):
            continue
        first, second = _ids(before), _ids(after)
        goes_on = [
            process
            for process in second
            if process in first and second[process][0] > first[process][1]
        ]
        if goes_on and len(goes_on) < len(second):
            raise ReportError(
                f"rows of process {goes_on[0][1]} go on under the header of another process, which "
                "has other units: the output of several processes is mixed",
                hint="give each process a file of its own (ncu --log-file out.%p.csv), or print "
                "base units (--print-units base)",
            )


def _units_differ(one: RawRows, two: RawRows) -> bool:
    if one.units is None or two.units is None:
        return False
    names = [[name for _, name in raw.metrics] for raw in (one, two)]
    units = dict(zip(names[0], one.units, strict=True))
    return any(units.get(n, u) != u for n, u in zip(names[1], two.units, strict=True))


def _ids(raw: RawRows) -> dict[tuple[str, str], tuple[int, int]]:
    """First and last ID by host and process."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for row in raw.rows:
        number = whole(raw.columns.cell(row, "ID"))
        if number is not None:
            key = (raw.columns.cell(row, "Host Name"), raw.columns.cell(row, "Process ID").strip())
            least, most = found.get(key, (number, number))
            found[key] = (min(least, number), max(most, number))
    return found
