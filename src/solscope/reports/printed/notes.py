"""What a reader of printed pages has to say about a file, gathered while it reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from solscope.model.finding import Absence, Issue, Severity
from solscope.reports.printed.values import Absent

_NAMED = 3


@dataclass(slots=True)
class Notes:
    """Issues of one file. Names are kept once, in the order met."""

    not_available: dict[str, None] = field(default_factory=dict)
    not_finite: dict[str, None] = field(default_factory=dict)
    not_numbers: dict[str, None] = field(default_factory=dict)
    unknown_labels: dict[str, None] = field(default_factory=dict)
    ambiguous_labels: dict[str, None] = field(default_factory=dict)
    without_unit: dict[str, None] = field(default_factory=dict)
    differing: dict[str, None] = field(default_factory=dict)
    rounded: dict[str, None] = field(default_factory=dict)
    foreign: dict[str, None] = field(default_factory=dict)
    stray_lines: int = 0
    short_rows: int = 0
    repeated: int = 0
    unnumbered: int = 0
    few_digits: int = 0
    loose_rows: int = 0
    unread_rows: int = 0
    prefix: str = ""
    other_pages: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    cut: bool = False

    def absent(self, name: str, why: Absent) -> None:
        """Note a cell without a value, unless it is said already that its unit is missing."""
        if name in self.without_unit:
            return
        if why is Absent.NOT_FINITE:
            self.not_finite[name] = None
        elif why is Absent.NOT_A_NUMBER:
            self.not_numbers[name] = None
        elif why is Absent.NOT_AVAILABLE:
            self.not_available[name] = None

    def issues(self) -> tuple[Issue, ...]:
        """All that was noted, worst first, and then what ncu itself said."""
        return (*self._issues(), *said_by_ncu(self.said))

    def stray(self, cells: Sequence[str]) -> None:
        """Note a line between the rows that is no row."""
        if cells[0].startswith("=="):
            self.said.append(",".join(cells))
        else:
            self.stray_lines += 1

    def _issues(self) -> Iterable[Issue]:
        if self.cut:
            yield _issue(
                "truncated", Severity.WARNING, "the file ends inside a row; that row is left out"
            )
        for code, severity, names, what in (
            ("without-unit", Severity.WARNING, self.without_unit, "have no unit and were not read"),
            (
                "unknown-label",
                Severity.WARNING,
                self.unknown_labels,
                "are labels that name no known metric; kept under section and label",
            ),
            (
                "ambiguous-label",
                Severity.WARNING,
                self.ambiguous_labels,
                "have stood for several metrics, and the page does not tell which: neither its "
                "version nor its digits decide; kept under section and label",
            ),
            (
                "differing-values",
                Severity.WARNING,
                self.differing,
                "are printed for one launch with different values; the first was kept where the "
                "metric is known, and none where only a label is",
            ),
            (
                "rounded-to-zero",
                Severity.INFO,
                self.rounded,
                "show a 0 that may be a small number: the page has too few digits for it",
            ),
            (
                "not-a-number",
                Severity.WARNING,
                self.not_numbers,
                "hold a text where a number belongs and were not read there: a spreadsheet or a "
                "script has changed the file",
            ),
            ("foreign-columns", Severity.INFO, self.foreign, "not read: no columns of ncu"),
            ("not-finite", Severity.WARNING, self.not_finite, "are no finite number"),
            (
                "not-available",
                Severity.INFO,
                self.not_available,
                "are not available (which is no 0)",
            ),
        ):
            if names:
                yield _issue(code, severity, f"{_listed(names)} {what}")
        yield from self._about_lines()

    def _about_lines(self) -> Iterable[Issue]:
        for page in self.other_pages:
            yield _issue(
                "table-not-read",
                Severity.WARNING,
                f"{page} is another page, which may show the same launches; put it into a file of "
                "its own to read it",
            )
        if self.repeated:
            yield _issue(
                "repeated-launches",
                Severity.WARNING,
                ("1 launch stands" if self.repeated == 1 else f"{self.repeated} launches stand")
                + " in the file twice, equal in every cell, and counted twice: is a page doubled?",
            )
        if self.unnumbered:
            rows = "1 row has" if self.unnumbered == 1 else f"{self.unnumbered} rows have"
            yield _issue(
                "rows-without-id",
                Severity.WARNING,
                f"{rows} no number for ID or process and were left out: a spreadsheet or a script "
                "has changed the file",
            )
        if self.few_digits:
            numbers = "1 number is" if self.few_digits == 1 else f"{self.few_digits} numbers are"
            yield _issue(
                "few-digits",
                Severity.WARNING,
                f"{numbers} written as 1.23E+05: a spreadsheet saved what it showed, three digits",
            )
        yield from self._about_loose_rows()
        if self.prefix:
            yield _issue(
                "line-prefix",
                Severity.INFO,
                f"what stands before the table's lines, as {self.prefix!r}, was cut off",
            )
        if self.stray_lines:
            yield _issue(
                "stray-lines",
                Severity.INFO,
                "1 line between the rows belongs to no table"
                if self.stray_lines == 1
                else f"{self.stray_lines} lines between the rows belong to no table",
            )
        if self.short_rows:
            rows = "1 row ends" if self.short_rows == 1 else f"{self.short_rows} rows end"
            yield _issue("short-rows", Severity.INFO, f"{rows} before the last column")

    def _about_loose_rows(self) -> Iterable[Issue]:
        if self.unread_rows:
            rows = "1 row does" if self.unread_rows == 1 else f"{self.unread_rows} rows do"
            yield _issue(
                "rows-not-read",
                Severity.WARNING,
                f"{rows} not stand under the columns of the table, and the words do not tell what "
                "is label and what is unit: left out",
            )
        if self.loose_rows:
            rows = "1 row does" if self.loose_rows == 1 else f"{self.loose_rows} rows do"
            yield _issue(
                "loose-rows",
                Severity.INFO,
                f"{rows} not stand under the columns of the table: read by label, unit and number",
            )


def is_rounded_to_zero(text: str) -> bool:
    """Whether a number was too small for two decimals: a true zero is printed as ``0``."""
    return text in ("0.00", "0,00", "-0.00", "-0,00")


def _issue(code: str, severity: Severity, what: str) -> Issue:
    return Issue(code=code, severity=severity, what=what)


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    shown = ", ".join(every[:_NAMED])
    return shown if len(every) <= _NAMED else f"{shown} and {len(every) - _NAMED} more"


def said_by_ncu(lines: Iterable[str]) -> tuple[Issue, ...]:
    """Warnings and errors that ncu printed around the table, as issues, each once."""
    issues: dict[str, Issue] = {}
    for line in _joined(lines):
        for mark, severity in (
            ("==WARNING== ", Severity.INFO),
            ("==ERROR== ", Severity.WARNING),
        ):
            _, found, message = line.partition(mark)
            if found:
                code = "metrics-not-accessible" if "Unable to access" in message else "ncu-message"
                issues.setdefault(message, _issue(code, severity, message.strip()))
    return tuple(issues.values())


def _joined(lines: Iterable[str]) -> list[str]:
    """Lines, with the one advice that ncu prints on a line of its own put to its warning."""
    joined: list[str] = []
    for line in lines:
        if joined and line.startswith("Set the HOME environment variable"):
            joined[-1] += " " + line
        else:
            joined.append(line)
    return joined


def not_printed(requested: Iterable[str], printed: Iterable[str]) -> tuple[Absence, ...]:
    """Metrics that were asked for and that the file does not hold.

    ``ncu --import --metrics`` drops unknown names without a word (seen with 2024.1.1).
    """
    held = set(printed)
    return tuple(
        Absence(
            field=name,
            reason="was asked for and is not in the file; ncu drops unknown names silently",
            remedy="capture again with this metric, or with a section that holds it",
        )
        for name in requested
        if name not in held
    )
