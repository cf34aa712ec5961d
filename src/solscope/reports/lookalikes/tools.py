"""What other tools print, by titles of columns and by words that nothing else holds."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LINES = 60
_DELIMITERS = ",;\t|"


@dataclass(frozen=True, slots=True)
class Table:
    """A tool's table: titles of which all stand in its header, what it is, and what to do."""

    titles: frozenset[str]
    what: str
    hint: str


def _table(titles: str, what: str, hint: str) -> Table:
    return Table(frozenset(titles.split("|")), what, hint)


_AMD = "AMD's kernels are read from a torch trace: prof.export_chrome_trace('trace.json')"
_NVPROF = "nvprof is no more: capture counters with ncu, times with nsys"
_TRACE = "give the trace that it was made of"
_KEY_AVERAGES = (
    "names are cut in it, and operators stand between kernels; give the trace: "
    "prof.export_chrome_trace('trace.json')"
)
_OWN = "give the file that it was made of"

TABLES = (
    _table("report|launch|kernel|metric|value", "what `solscope read --format csv` printed", _OWN),
    _table(
        "report|kernel|launches_or_samples|total_ns",
        "what `solscope read --format csv` printed",
        _OWN,
    ),
    _table("TotalDurationNs|AverageNs|Calls", "a table of kernel times of AMD's rocprof", _AMD),
    _table("KernelName|BeginNs|EndNs", "a table of kernels of AMD's rocprof", _AMD),
    _table("Kernel_Name|Start_Timestamp|End_Timestamp", "a table of AMD's rocprof", _AMD),
    _table("Time(%)|Time|Calls|Avg|Name", "a table of nvprof", _NVPROF),
    _table("Device|Kernel|Invocations|Metric Name|Avg", "a table of metrics of nvprof", _NVPROF),
    _table("Start|Duration|Grid X|Registers Per Thread", "a GPU trace of nvprof", _NVPROF),
    _table("Name|Self CPU %|Self CPU|# of Calls", "the table of torch's profiler", _KEY_AVERAGES),
    _table("Name|Calls|Mean Blocks Per SM", "a table of TensorBoard's profiler plugin", _TRACE),
    _table("name|sum (us)|mean (us)", "a table of Holistic Trace Analysis", _TRACE),
    _table(
        "Computing Task|Computing Task:Total Time",
        "a table of Intel VTune",
        "Intel's GPUs are not known here",
    ),
)

_TEXTS: Sequence[tuple[re.Pattern[str], str, str]] = (
    (
        re.compile(r'"schema"\s*:\s*"solscope\.'),
        "what solscope itself wrote as JSON",
        _OWN,
    ),
    (
        re.compile(r"^ *Name +Self CPU % [^\r\n]* # of Calls *$", re.MULTILINE),
        "the table of torch's profiler (key_averages)",
        _KEY_AVERAGES,
    ),
    (
        re.compile(r"\butilization\.gpu \[%\]|^\| NVIDIA-SMI ", re.MULTILINE),
        "output of nvidia-smi: use of a whole GPU, no kernels",
        "capture counters with ncu, or times with nsys",
    ),
    (
        re.compile(r"^#\s*(?:HELP|TYPE) \w+ |^#\s?Entity\s+\S", re.MULTILINE),
        "metrics of a monitor (Prometheus, DCGM): of a whole GPU, no kernels",
        "capture counters with ncu, or times with nsys",
    ),
    (
        re.compile(
            r'"CUPTI_ACTIVITY_KIND_\w+"|"CudaEvent"\s*:|^CUPTI_ACTIVITY_KIND_', re.MULTILINE
        ),
        "an nsys export in another form than SQLite",
        "export it again: `nsys export -t sqlite FILE.nsys-rep`",
    ),
    (
        re.compile(r"speedscope\.app/file-format-schema|\"flamebearer\"\s*:"),
        "a flame graph (speedscope, Pyroscope)",
        "export kernel names with their samples as CSV, TSV or JSON",
    ),
    (
        re.compile(r'"frame"\s*:\s*\{(?=(?:.|\n)*"time \(ns\)")'),
        "a profile of Triton's Proton",
        "its times are not read; capture with nsys, or counters with ncu",
    ),
    (
        re.compile(
            r"^\S[^\r\n]{0,80}?\s\d+(?:/\d+)?\s{1,9}(?:\[\d+\]\s{1,9})?\d+\.\d{6}:\s{1,20}\d+\s{1,9}[\w:-]+:",
            re.MULTILINE,
        ),
        "output of perf script: samples of CPUs, no kernels of a GPU",
        "capture times with nsys, or counters with ncu",
    ),
    (
        re.compile(r"\A(?:[^\s,;][^\r\n;]*(?:;[^\r\n;]+)+ \d+\r?(?:\n|\Z)){2}"),
        "folded stacks of a flame graph",
        "give the last frame and its samples as a table: kernel,samples",
    ),
    (
        re.compile(r'\A\s*\{\s*"(?:cells|metadata|nbformat)"\s*:'),
        "a Jupyter notebook",
        "put the output of the cell that ran the profiler into a file of its own",
    ),
    (
        re.compile(r'\A\s*\{"ID":\{"0":'),
        "a data frame as JSON, column by column",
        "write it row by row (orient='records'), or as CSV",
    ),
)

_SIDEWAYS = frozenset({"Kernel Name", "Context", "Stream", "Block Size", "Grid Size"})
_COLUMNS = ("Process ID", "Kernel Name", "Context", "Stream")


def name_of(text: str) -> tuple[str, str] | None:
    """What the text is and what to do about it, ``None`` where no tool is known by it."""
    if "\0" in text:
        return None
    for pattern, what, hint in _TEXTS:
        if pattern.search(text):
            return what, hint
    first: set[str] = set()
    for row in _rows(text):
        titles = {cell.strip() for cell in row}
        for table in TABLES:
            if table.titles <= titles:
                return table.what, table.hint
        first.add(row[0].strip())
    if first >= _SIDEWAYS:
        return "ncu's raw page turned on its side, a column for each launch", (
            "turn it back (df.T), or give the page as ncu wrote it"
        )
    head = text.partition("\n")[0]
    if all(name in head for name in _COLUMNS):
        return "a page of ncu whose quotes or delimiters were changed", (
            "give the file as ncu wrote it: cells in straight double quotes, parted by commas"
        )
    return None


def _rows(text: str) -> Iterator[list[str]]:
    lines = text.lstrip("\ufeff").splitlines()[:_LINES]
    for delimiter in _DELIMITERS:
        try:
            yield from (row for row in csv.reader(lines, delimiter=delimiter) if len(row) > 1)
        except csv.Error:
            continue
