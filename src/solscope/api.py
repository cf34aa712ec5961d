"""The public Python names: the verbs as functions.

>>> import solscope
>>> report = solscope.read("YOUR.ncu-rep")            # doctest: +SKIP
>>> solscope.analyze([report]).kernels[0].verdict     # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable

from solscope.flows import analyze as analyze_flow
from solscope.flows import read as read_flow
from solscope.flows.world import World
from solscope.model.report import Report
from solscope.model.verdict import Analysis


def read(path: str, *, locale: str | None = None) -> Report:
    """The report in a file; content decides what it is.

    ``locale`` is that of the machine that printed a CSV or text, where its numbers do not tell.
    Raises ReportError, UsageError.
    """
    (report,) = read_flow.read_all([path], World(), locale=locale)
    return report


def analyze(
    reports: Report | Iterable[Report],
    *,
    chip: str | None = None,
    ceilings: str | None = None,
    kernel: str | None = None,
) -> Analysis:
    """The verdict on reports: what `solscope analyze` shows.

    ``chip`` chooses ceilings by key, ``ceilings`` is a YAML file laid over the packaged ones,
    ``kernel`` a regular expression on full names. Raises UsageError, ReportError.
    """
    given = [reports] if isinstance(reports, Report) else list(reports)
    return analyze_flow.analyze(given, chip=chip, ceilings_path=ceilings, kernel=kernel)
