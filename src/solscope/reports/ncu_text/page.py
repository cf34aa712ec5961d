"""Lines of ncu's text pages to launches, summaries and session tables, still as text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from solscope.errors import ReportError
from solscope.model.report import NvtxRange, RuleAdvice
from solscope.reports.ncu_text import loose
from solscope.reports.printed import collected
from solscope.reports.printed.launches import Identity
from solscope.reports.printed.sections import PrintedLaunch, PrintedMetric, rule_kind
from solscope.reports.printed.session import TITLES

_PROCESS = re.compile(r"\s*\[(\d+)\] (.*)@(\S*)")
_SECTION_WORD = "Section: "
_LONGEST_MARK = 200
_ENDS_A_MARK = re.compile(r"[\d\])>]\S*\s*$")
_DIMS = r"(\(\d+, \d+, \d+\))x(\(\d+, \d+, \d+\))"
_TORN = re.compile(r"\S.*\[\d+\] \S+@\S+\s*$")
_LAUNCH = re.compile(
    rf"\s*(\S.*?) {_DIMS}, Context (\d+), Stream (\d+)(?:, Device (\d+), CC ([\d.]+))?"
)
_OLD_LAUNCH = re.compile(
    r"\s*(\S.*), \d{4}-\w{3}-\d{2} \d{2}:\d{2}:\d{2}, Context (\d+), Stream (\d+)"
)
_SUMMARY = re.compile(rf"\s*(\S.*?)(?: {_DIMS})?, Invocations (\d+)")
_DEVICE = re.compile(r"\s*Device (\d+), CC ([\d.]+)")
_SECTION = re.compile(r"\s*Section: (.*)")
_DASHES = re.compile(r"\s*-{3,}(?: -{3,})*\s*")
_RULE = re.compile(r"\s*(OK|INF|WRN|ERR|OPT) {2,4}(\S.*)")
_SPEEDUP = re.compile(r"Est\. (?:(Local|Global) )?Speedup: ([\d.,]+)%")
_THREAD = re.compile(r"\s+NVTX Push/Pop Stack for Thread (\d+):")
_RANGE = re.compile(r"\s+<\d+,(.*)>")
_DOMAIN = re.compile(r"\s+(\S.*)")
_BLANK = re.compile(r"(?<!\d)\xa0|\xa0(?!\d)")
_ENDS_IN_A_NUMBER = re.compile(r"\d\s*$")
_COLUMN_TITLES = ("Metric Name", "Metric Unit")
UNNAMED = "(no kernel is named in the text)"


@dataclass(slots=True)
class SummaryText:
    """A summary of one kernel as text: its identity, invocations, and rows of three numbers."""

    identity: Identity
    invocations: str
    rows: list[tuple[str, str, str, tuple[str, ...]]] = field(default_factory=list)


@dataclass(slots=True)
class TextPages:
    """What stands in a text: launches, summaries, session tables, lines of ncu itself."""

    launches: list[PrintedLaunch] = field(default_factory=list)
    summaries: list[SummaryText] = field(default_factory=list)
    session: dict[str, list[list[str]]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    is_cut: bool = False
    loose_rows: int = 0
    """Rows that do not stand under the dashes of their table, and were read by their words."""
    unread_rows: int = 0
    """Those of them whose words do not tell what they say."""


def without_marks(text: str) -> tuple[str, str]:
    """The text without what a collector of logs, or a mail, put before each of its lines, and
    that mark as it stands before the first section; empty where there is none."""
    text = _as_printed(text)
    marks = list(_marks(text))
    return (collected.without_marks(text, marks), marks[0]) if marks else (text, "")


def _marks(text: str) -> Iterator[str]:
    """What stands before the sections. ncu indents them by four; some strip what they mark."""
    at = text.find(_SECTION_WORD)
    while at >= 0:
        near = text[max(0, at - _LONGEST_MARK) : at]
        before = near[max(near.rfind("\n"), near.rfind("\r")) + 1 :]
        if before.strip() and not before[0].isspace() and len(before) < _LONGEST_MARK:
            if before.endswith("    "):
                yield before[:-4]
            elif _ENDS_A_MARK.search(before):
                yield before
        at = text.find(_SECTION_WORD, at + 1)


def _as_printed(text: str) -> str:
    """Without what web pages and word processors made of blanks and angle brackets; a no-break
    space between digits parts thousands."""
    if "\xa0" in text:
        text = _BLANK.sub(" ", text)
    return html.unescape(text) if "&lt;" in text or "&gt;" in text else text


def looks_like_a_page(text: str) -> bool:
    """Whether the text holds a table of a section, or a session table."""
    lines = without_marks(text)[0].splitlines()
    for number, line in enumerate(lines):
        if _LAUNCH.fullmatch(line.rstrip()) or _OLD_LAUNCH.fullmatch(line.rstrip()):
            return True
        if _is_header(line) and number and _DASHES.fullmatch(lines[number - 1]):
            return True
        following = lines[number + 1 : number + 2]
        if line.strip() in TITLES and following and _DASHES.fullmatch(following[0]):
            return True
    return False


def _is_header(line: str) -> bool:
    return all(title in line for title in _COLUMN_TITLES)


class PageParser:
    """Reads line by line; knows the launch, section, table and rule that a line belongs to."""

    def __init__(self) -> None:
        self.pages = TextPages()
        self._process = ("", "", "")
        self._device = ("", "")
        self._section = ""
        self._spans: list[tuple[int, int]] = []
        self._in_table = False
        self._titled = False
        self._is_new_section = False
        self._is_after_dashes = False
        self._before: list[str] = []  # lines that were nothing: a name that a terminal has broken
        self._sections: set[str] = set()  # of this launch
        self._processes: set[tuple[str, str, str]] = set()
        self._rule: list[str] | None = None
        self._thread: str | None = None
        self._domain = ""
        self._title = ""

    def parse(self, text: str) -> TextPages:
        """All lines, then what was still open. A last line without its end may be cut in a
        number: in a table it is no row."""
        lines = text.splitlines()
        is_cut = bool(lines) and not text.endswith(("\n", "\r"))
        for line in lines[:-1] if is_cut else lines:
            self._line(line)
        if is_cut and not (self._in_table and not self._title and lines[-1].strip(" -")):
            self._line(lines[-1])
        self._end_rule()
        is_open = bool(self._spans) or is_cut  # without dashes, a table ends where the text does
        self.pages.is_cut = self._in_table and not self._title and is_open
        return self.pages

    def _line(self, line: str) -> None:
        if line.startswith("=="):
            self.pages.said.append(line)
        elif _DASHES.fullmatch(line):
            self._dashes(line)
            return
        elif not self._begins_something(line.rstrip()) and line.strip():
            self._belongs(line)
        elif not line.strip():
            self._end_rule()
            self._before = []
            self._thread = None
            self._in_table = self._in_table and bool(self._title)
        self._is_after_dashes = False

    def _dashes(self, line: str) -> None:
        self._end_rule()
        self._spans = [found.span() for found in re.finditer(r"-+", line)]
        # Dashes stand above and below the column titles, and below the last row. Up to 2022
        # there were no titles, and the rows began under the section's first dashes.
        self._in_table, self._titled = self._titled or self._is_new_section, False
        self._is_new_section = False
        self._is_after_dashes = True

    def _begins_something(self, line: str) -> bool:
        process = _PROCESS.fullmatch(line)
        if process is not None:
            self._process, self._device = (process[1], process[2], process[3]), ("", "")
            self._before = []
            self._processes.add(self._process)
            self._title = ""
            return True
        if line.strip() in TITLES and not line.startswith(" "):
            self._title = line.strip()
            return True
        section = _SECTION.fullmatch(line)
        if section is not None:
            self._end_rule()
            self._begin_section(section.group(1).strip())
            return True
        if _is_header(line):
            # Without the dashes above it, its rows follow at once.
            self._in_table, self._titled = not self._is_after_dashes, True
            if self._in_table:
                self._spans, self._is_new_section = [], False
            return True
        return self._begins_launch(line) or self._begins_rule(line)

    def _begin_section(self, name: str) -> None:
        """ncu prints a section of a launch once."""
        if name in self._sections:
            if len(self._processes) > 1:
                raise _mixture(f"the section {name!r} stands twice under one launch")
            self._begin_unnamed()
        self._sections.add(name)
        self._section = name
        self._in_table, self._is_new_section = False, True

    def _begins_launch(self, line: str) -> bool:
        device = _DEVICE.fullmatch(line)
        if device is not None:
            self._device = (device[1], device[2])
            return True
        summary = _SUMMARY.fullmatch(line)
        if summary is not None:
            name, grid, block, invocations = summary.groups()
            identity = self._identity(name, grid or "", block or "", "", "", *self._device)
            self.pages.summaries.append(SummaryText(identity, invocations))
            self._sections = set()
            return True
        launch = _LAUNCH.fullmatch(line)
        if launch is not None:
            name, *cells = (cell or "" for cell in launch.groups())
            if not line[0].isspace():
                name = loose.whole_name(name, self._before)
            self._begin(self._identity(name, *cells))
            return True
        old = _OLD_LAUNCH.fullmatch(line)
        if old is not None:
            name, context, stream = old.groups()
            self._begin(self._identity(name, "", "", context, stream, "", ""))
            return True
        return False

    def _begin(self, identity: Identity) -> None:
        self._end_rule()
        self._section = ""
        self._sections = set()
        self._in_table = False
        self.pages.launches.append(PrintedLaunch(identity))

    def _identity(
        self, name: str, grid: str, block: str, context: str, stream: str, device: str, cc: str
    ) -> Identity:
        process_id, process_name, host = self._process
        return Identity(
            process_id=process_id,
            process_name=process_name,
            host_name=host,
            kernel_name=name,
            context=context,
            stream=stream,
            block=block,
            grid=grid,
            device=device,
            capability=cc,
        )

    def _begins_rule(self, line: str) -> bool:
        rule = _RULE.fullmatch(line)
        if rule is None or (self._in_table and self._spans):
            return False
        self._end_rule()
        self._rule = [rule.group(1), rule.group(2).strip()]
        return True

    def _end_rule(self) -> None:
        if self._rule is None:
            return
        kind, *lines = self._rule
        self._rule = None
        message = " ".join(lines)
        estimate = _SPEEDUP.match(message)
        scope = None if estimate is None or estimate[1] is None else estimate[1].lower()
        advice = RuleAdvice(
            rule="",
            name="",
            section=self._section or None,
            message=message if estimate is None else message[estimate.end() :].strip(),
            kind=rule_kind(kind),
            speedup_kind=scope,
            speedup_pct=None if estimate is None else _percent(estimate[2]),
        )
        if self.pages.launches:
            self.pages.launches[-1].rules.append(advice)

    def _belongs(self, line: str) -> None:
        is_row = self._in_table and not self._title
        if (is_row or self._rule is not None) and _TORN.search(line) is not None:
            raise _mixture(f"another process begins in the midst of {line.strip()[:40]!r}")
        if self._rule is not None:
            self._rule.append(line.strip())
        elif self._title:
            self._session_row(line)
        elif self._in_table:
            self._table_row(line)
        else:
            self._nvtx(line)

    def _session_row(self, line: str) -> None:
        cells = [line[begin:end].strip() for begin, end in self._spans]
        rows = self.pages.session.setdefault(self._title, [])
        if len(cells) < 2:
            return
        if cells[0] or not rows:
            rows.append(cells)
        else:
            # A long value goes on in the next line, under an empty first cell.
            rows[-1][1:] = [
                f"{old} {new}".strip() for old, new in zip(rows[-1][1:], cells[1:], strict=False)
            ]

    def _table_row(self, line: str) -> None:
        cells = self._cells(line)
        if len(cells) == 5 and self.pages.summaries:
            row = (self._section, cells[0], cells[1], tuple(cells[2:]))
            self.pages.summaries[-1].rows.append(row)
        elif len(cells) == 3:
            if not self.pages.launches:
                self._begin_unnamed()
            self.pages.launches[-1].metrics.append(
                PrintedMetric(self._section, "", cells[0], cells[1], cells[2])
            )

    def _cells(self, line: str) -> Sequence[str]:
        if self._spans and len(line.rstrip()) == self._spans[-1][1]:
            return _cut(line, self._spans)
        found = loose.cells(self._section, line, 3 if self.pages.summaries else 1)
        if found is not None:
            self.pages.loose_rows += 1
        elif _ENDS_IN_A_NUMBER.search(line):
            self.pages.unread_rows += 1
        return found or ()

    def _begin_unnamed(self) -> None:
        section = self._section
        self._begin(self._identity(UNNAMED, "", "", "", "", "", ""))
        self._section, self._in_table = section, True

    def _nvtx(self, line: str) -> None:
        thread = _THREAD.fullmatch(line)
        if thread is not None:
            self._thread = thread.group(1)
            return
        if self._thread is None or not self.pages.launches:
            self._before.append(line)
            return
        ranges = _RANGE.fullmatch(line.rstrip())
        domain = _DOMAIN.fullmatch(line.rstrip())
        if ranges is not None:
            launch = self.pages.launches[-1]
            thread_id = int(self._thread[:18])
            found = NvtxRange(domain=self._domain, name=ranges.group(1), thread_id=thread_id)
            self.pages.launches[-1] = replace(launch, nvtx=(*launch.nvtx, found))
        elif domain is not None:
            self._domain = domain.group(1)


def _mixture(seen: str) -> ReportError:
    return ReportError(
        f"{seen}: the output of several processes is mixed, so that rows cannot be given to their "
        "kernels",
        hint="give each process a file of its own: ncu --log-file out.%p.txt",
    )


def _percent(text: str) -> float | None:
    bare = text.replace(",", ".")
    return float(bare) if bare.count(".") <= 1 and bare.strip(".") else None


def _cut(line: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Cells by the dashes above them. The first column is to the left, the others to the right,
    so that a cell may begin before its dashes and never ends after them."""
    cells = []
    for position, (begin, _end) in enumerate(spans):
        last = position == len(spans) - 1
        cells.append(line[begin : None if last else spans[position + 1][0]].strip())
    return cells


def number_texts(pages: TextPages) -> Iterator[str]:
    """All value cells, to find out how numbers are written."""
    for launch in pages.launches:
        yield from (metric.text for metric in launch.metrics)
    for summary in pages.summaries:
        for row in summary.rows:
            yield from row[3]
