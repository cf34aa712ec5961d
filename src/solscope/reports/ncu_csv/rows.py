"""Cells by column name, and which rows are rows of the table at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter

from solscope.errors import ReportError
from solscope.reports.ncu_csv.layout import is_nvtx
from solscope.reports.printed.launches import Identity, whole

_TELLING = ("ID", "Process ID", "Host Name", "Kernel Name", "Context", "Stream", "Device")


class Columns:
    """Positions of the columns that every page has."""

    def __init__(self, header: Sequence[str]) -> None:
        self.width = len(header)
        self.position = {name: i for i, name in reversed(list(enumerate(header)))}
        self._telling = [self.position[name] for name in _TELLING if name in self.position]
        # One twice, as one alone would not come as a tuple; none that tells nothing, such as the
        # row number of a data frame.
        doubled = [*self._telling, *(self._telling[:1] or [0]), *(self._telling[:1] or [0])]
        self._pick: Callable[[Sequence[str]], tuple[str, ...]] = itemgetter(*doubled)
        self.nvtx = tuple((i, name) for i, name in enumerate(header) if is_nvtx(name))

    def cell(self, row: Sequence[str], name: str) -> str:
        """The cell of a column; empty where row or table does not have it."""
        position = self.position.get(name, -1)
        return row[position] if 0 <= position < len(row) else ""

    def identity(self, row: Sequence[str]) -> Identity:
        """The fixed cells of a row."""
        return Identity(
            id=self.cell(row, "ID").strip(),
            process_id=self.cell(row, "Process ID").strip(),
            process_name=self.cell(row, "Process Name"),
            host_name=self.cell(row, "Host Name"),
            kernel_name=self.cell(row, "Kernel Name"),
            context=self.cell(row, "Context"),
            stream=self.cell(row, "Stream"),
            block=self.cell(row, "Block Size"),
            grid=self.cell(row, "Grid Size"),
            device=self.cell(row, "Device"),
            capability=self.cell(row, "CC"),
        )

    def launch_key(self, row: Sequence[str]) -> tuple[str, ...]:
        """The cells that tell launches apart. IDs begin anew in each process, and containers on
        several hosts may all have their work in process 1."""
        try:
            return self._pick(row)
        except IndexError:  # a row that was cut
            return tuple([row[at] for at in self._telling if at < len(row)])

    def refuse_moved(self, row: Sequence[str]) -> None:
        """Raises ReportError where cells stand under other columns than their own, because the
        quotes around names and dimensions, which hold commas, were cut off."""
        is_longer = any(cell.strip() for cell in row[self.width :])
        block = self.cell(row, "Block Size").strip()
        if is_longer or (block.startswith("(") and not block.endswith(")")):
            raise ReportError(
                f"the row that begins with {', '.join(row[:3])} has {len(row)} cells under "
                f"{self.width} columns: without the quotes that ncu puts around names, cells "
                "cannot be told apart",
                hint="give the file as ncu wrote it, or export it again",
            )

    def lost_its_number(self, row: Sequence[str]) -> bool:
        """Whether a line that is no row was one: as long as a row and with a kernel, but a
        spreadsheet has made its ID or process another text."""
        kernel = self.cell(row, "Kernel Name").strip()
        last = self.position.get("Metric Value", self.width - 1)
        return len(row) > last and kernel not in ("", "Kernel Name")

    def is_row(self, row: Sequence[str]) -> bool:
        """Whether a line belongs to the table: its ID and process are numbers, the process of a
        full row may be blank (reports of 2019 do not hold it).

        Programs under profile print into the same stream, and ncu puts small tables of NUMA
        and NVLink topology between the rows; those lines are no rows.
        """
        if len(row) <= self.position.get("Kernel Name", 0):
            return False
        if "ID" not in self.position:
            return bool(self.cell(row, "Kernel Name"))
        if whole(self.cell(row, "ID")) is None:
            return False
        process = self.cell(row, "Process ID").strip()
        if process == "" and "Process ID" in self.position:
            return len(row) == self.width and bool(self.cell(row, "Kernel Name").strip())
        return "Process ID" not in self.position or whole(process) is not None
