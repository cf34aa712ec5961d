"""Opcode histograms: what was executed, where no counter of the work was collected."""

from __future__ import annotations

from collections.abc import Mapping

from solscope.model.report import Metrics

_WITHOUT_OPCODES = "the opcode histogram was printed without its opcodes"
_OPCODES_REMEDY = (
    "read the report itself (.ncu-rep), or print it with `--page raw --print-metric-instances "
    "details` (ncu after 2024.1; `solscope read --as ncu-raw-csv` has the same option)"
)


def without_counter(reason: str, remedy: str, histogram: Opcodes) -> tuple[str, str]:
    """(reason, remedy) for work without a counter; a histogram that lacks its opcodes on a
    printed page would tell, and is cheaper to print again than counters are to collect."""
    if not histogram.lacks_opcodes:
        return reason, remedy
    return f"{reason}, and {_WITHOUT_OPCODES}", _OPCODES_REMEDY


class Opcodes:
    """An opcode histogram: executed threads (predicate true) or warps by opcode.

    Empty where it was not collected. Read from the report when first asked: it is long, and
    needed only where counters are missing.
    """

    __slots__ = ("_counts", "_metrics", "_name")

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics = metrics
        self._name = name
        self._counts: dict[str, float] | None = None

    @property
    def counts(self) -> Mapping[str, float]:
        """Executions by opcode."""
        if self._counts is None:
            self._counts = {}
            for instance in self._metrics.instances(self._name):
                key, value = instance.correlation_id, instance.value
                if isinstance(key, str) and isinstance(value, int | float):
                    self._counts[key] = self._counts.get(key, 0.0) + float(value)
        return self._counts

    @property
    def lacks_opcodes(self) -> bool:
        """Whether it was collected, and shows its sum alone, as a printed page does."""
        return not self.counts and self._metrics.get(self._name) not in (None, 0)

    def total(self, *opcodes: str) -> float:
        """Executions of these opcodes; one that did not occur counts zero."""
        return sum(self.counts.get(opcode, 0.0) for opcode in opcodes)

    def __bool__(self) -> bool:
        return bool(self.counts)
