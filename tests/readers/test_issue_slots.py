"""Whose cycles "Issue Slots Busy" counts: proven by a page's own numbers, or left open."""

from __future__ import annotations

from typing import Any

import pytest
from tests import corpus

from solscope.errors import ReportError
from solscope.model.report import Report
from solscope.render import ncu_pages
from solscope.render.ncu_pages import Spelling
from solscope.reports import formats
from solscope.reports.ncu_csv import details_page
from solscope.reports.ncu_csv.layout import find_table
from solscope.reports.printed.issue_slots import era_by_arithmetic
from solscope.reports.printed.labels import Era
from solscope.reports.printed.launches import Identity
from solscope.reports.printed.notes import Notes
from solscope.reports.printed.number_format import of_locale
from solscope.reports.printed.sections import PrintedLaunch, PrintedMetric

SECTION = "Compute Workload Analysis"
ACTIVE = "sm__inst_issued.avg.pct_of_peak_sustained_active"
ELAPSED = "sm__inst_issued.avg.pct_of_peak_sustained_elapsed"
MEANING = {ACTIVE: Era.BEFORE_RECENT, ELAPSED: Era.RECENT}


def a_launch(**printed: str) -> PrintedLaunch:
    """Rows of one section by label; underscores are spaces."""
    rows = [
        PrintedMetric(SECTION, "", label.replace("_", " "), "", text)
        for label, text in printed.items()
    ]
    return PrintedLaunch(Identity(), metrics=rows)


def era(*launches: PrintedLaunch) -> Era:
    return era_by_arithmetic(launches, of_locale("C"))


# 2.00 instructions a cycle of 4 slots are 50 % of the active cycles; half of all cycles are
# active, so that they are 25 % of the elapsed ones.
IPC = {"Issued_Ipc_Active": "2.00", "Executed_Ipc_Active": "1.00", "Executed_Ipc_Elapsed": "0.50"}


def test_the_share_that_the_other_numbers_give_is_the_meaning() -> None:
    assert era(a_launch(Issue_Slots_Busy="50.10", **IPC)) is Era.BEFORE_RECENT
    assert era(a_launch(Issue_Slots_Busy="25.20", **IPC)) is Era.RECENT


def test_digits_that_fit_both_meanings_decide_nothing() -> None:
    busy = {**IPC, "Executed_Ipc_Elapsed": "1.00"}  # every cycle active: both are 50 %
    assert era(a_launch(Issue_Slots_Busy="50.00", **busy)) is Era.UNCLEAR
    idle = {**IPC, "Issued_Ipc_Active": "0.00"}  # between 0 and 0.005: 0 to 0.125 %
    assert era(a_launch(Issue_Slots_Busy="0.05", **idle)) is Era.UNCLEAR
    assert era(a_launch(Issue_Slots_Busy="50.00")) is Era.UNCLEAR


def test_what_fits_neither_meaning_and_launches_that_disagree_decide_nothing() -> None:
    assert era(a_launch(Issue_Slots_Busy="90.00", **IPC)) is Era.UNCLEAR
    active, elapsed = (a_launch(Issue_Slots_Busy=x, **IPC) for x in ("50.00", "25.00"))
    assert era(active, elapsed) is Era.UNCLEAR
    missing = {**IPC, "Issued_Ipc_Active": "n/a"}
    assert era(a_launch(Issue_Slots_Busy="50.00", **missing), active) is Era.BEFORE_RECENT


@pytest.mark.corpus
@pytest.mark.parametrize("record", corpus.records("ncu-rep"), ids=lambda r: str(r["file"]))
def test_a_page_is_never_taken_for_the_other_meaning(record: dict[str, Any]) -> None:
    try:
        report = formats.read(str(corpus.CORPUS / record["file"]))
    except ReportError as error:
        pytest.skip(f"no report: {error.what}")
    assert isinstance(report, Report)
    meant = {
        MEANING[entry.metric]
        for launch in report.launches
        for section in launch.details.sections()
        for entry in section.header
        if entry.label == "Issue Slots Busy" and entry.metric in launch.metrics
    }
    if not meant:
        pytest.skip("the report has no Issue Slots Busy")
    table = find_table("".join(ncu_pages.details_csv(report, spelling=Spelling.NEW)))
    assert table is not None
    launches = details_page.gather(table, Notes()).launches.values()
    (known,) = meant
    for one in launches:
        assert era_by_arithmetic([one], of_locale("C")) in (known, Era.UNCLEAR)
    assert era_by_arithmetic(launches, of_locale("C")) in (known, Era.UNCLEAR)


@pytest.mark.corpus
def test_one_page_of_the_corpus_is_proven_and_one_stays_open() -> None:
    text = formats.read(str(corpus.find("copy_blocked", "ncu-text")))
    table = formats.read(str(corpus.find("copy_blocked", "ncu-csv")))
    assert isinstance(text, Report)
    assert isinstance(table, Report)
    # 100,718.20 instructions in 12,168,381.57 active cycles: 0.828 %; in 491,382,808 / 40
    # elapsed ones: 0.820 %. The page says 0.83.
    assert text.launches[0].metrics[ACTIVE] == 0.83
    # 12,217,197.85 active cycles, 491,573,176 / 40 elapsed ones: both are 0.82, as printed.
    assert ACTIVE not in table.launches[0].metrics
    (issue,) = [issue for issue in table.issues if issue.code == "ambiguous-label"]
    assert "Issue Slots Busy" in issue.what
    reading = formats.explain(str(corpus.find("copy_blocked", "ncu-csv")))
    (column,) = [c for c in reading.columns if c.column.endswith("Issue Slots Busy")]
    assert column.metric is None
    assert "one of 2 metrics" in (column.note or "")
