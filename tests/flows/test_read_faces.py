"""The faces of `solscope read`: what programs read stays whole, and no absence is a zero."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from tests import builder, timelines

from solscope.errors import ReportError, UsageError
from solscope.flows import budget, join, read
from solscope.flows.budget import BudgetRequest
from solscope.flows.join import JoinRequest
from solscope.flows.read import ReadRequest
from solscope.flows.world import Outcome, World

RAW = (
    '"ID","Process ID","Kernel Name","Device","CC","gpu__time_duration.sum"\n"","","","","","us"\n'
    '"0","11","k","0","9.0","10.24"\n"0","12","k","1","9.0","20.48"\n'
)
SUMMARY = (
    '"Process ID","Kernel Name","Invocations","Metric Name","Metric Unit","Minimum","Maximum",'
    '"Average"\n"11","k","5","gpu__time_duration.sum","us","1","3","2"\n'
)
STATS = "Time (%),Total Time (ns),Instances,Name\n100.0,500,5,k\n"


def write(folder: Path, **files: str) -> tuple[str, ...]:
    found = []
    for name, text in files.items():
        path = folder / f"{name}.csv"
        path.write_text(text)
        found.append(str(path))
    return tuple(found)


def run(paths: tuple[str, ...], **options: Any) -> tuple[Outcome, list[str]]:
    said: list[str] = []
    return read.run(ReadRequest(paths=paths, **options), World(say=said.append)), said


def test_json_of_several_files_stays_json_where_one_is_refused(tmp_path: Path) -> None:
    outcome, said = run(write(tmp_path, good=RAW, bad="hello"), format="json")
    document = json.loads(outcome.text)
    assert len(document["reports"]) == 1
    (refused,) = document["refused"]
    assert refused["path"] == "bad.csv"
    assert "this is text" in refused["what"]
    assert outcome.exit_code == 1
    assert "bad.csv: this is text" in said[0]


@pytest.mark.parametrize("options", [{"format": "csv"}, {"as_": "ncu-raw-csv"}])
def test_tables_for_programs_hold_no_error_of_a_refused_file(
    tmp_path: Path, options: dict[str, str]
) -> None:
    outcome, said = run(write(tmp_path, good=RAW, bad="hello"), **options)
    rows = list(csv.reader(outcome.text.splitlines()))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert outcome.exit_code == 1
    assert "bad.csv" in said[0]


def test_people_read_the_refusal_below_the_rest(tmp_path: Path) -> None:
    outcome, said = run(write(tmp_path, good=RAW, bad="hello"))
    assert (
        outcome.text.rstrip()
        .splitlines()[-2]
        .endswith("bad.csv: this is text, not a profiler's report")
    )
    assert said == []


def test_json_tells_processes_and_gpus_apart(tmp_path: Path) -> None:
    (report,) = json.loads(run(write(tmp_path, good=RAW), format="json")[0].text)["reports"]
    places = [
        (x["process"], x["device_ordinal"], x["compute_capability"]) for x in report["launches"]
    ]
    assert places == [(11, 0, "9.0"), (12, 1, "9.0")]


def test_a_page_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (raw, summary) = write(tmp_path, raw=RAW, summary=SUMMARY)
    with pytest.raises(ReportError, match="sections"):
        run((raw,), as_="ncu-details-csv")
    for page in ("ncu-raw-csv", "ncu-details-csv"):
        with pytest.raises(ReportError, match="no launch to print: ncu printed minimum"):
            run((summary,), as_=page)


def test_a_table_of_sums_counts_no_launch_replay_or_copy(tmp_path: Path) -> None:
    (found,) = json.loads(run(write(tmp_path, stats=STATS), format="json")[0].text)["timelines"]
    assert [found[key] for key in ("kernel_launches", "graph_replays", "copies")] == [None] * 3
    assert found["kernels"][0]["launches"] == 5


def test_what_a_file_lacks_is_said_in_every_face(tmp_path: Path) -> None:
    header = RAW.partition("\n")[0] + "\n"
    outcome, _ = run(write(tmp_path, header=header), format="json")
    (report,) = json.loads(outcome.text)["reports"]
    assert [absence["field"] for absence in report["absences"]] == ["launches"]
    assert "not there: launches: the table has a header and no row" in run(
        write(tmp_path, header=header)
    )[0].text.replace("\n    ", " ")
    trace = timelines.write_trace(tmp_path / "t.json", [])
    (found,) = json.loads(run((str(trace),), format="json")[0].text)["timelines"]
    assert [absence["field"] for absence in found["absences"]] == ["kernels"]


def test_csv_of_a_timeline_tells_gpus_apart(tmp_path: Path) -> None:
    rows = [timelines.kernel_row(10, 30, 0, device=device) for device in (0, 1)]
    path = timelines.write_export(tmp_path / "a.sqlite", rows)
    found = list(csv.DictReader(run((str(path),), format="csv")[0].text.splitlines()))
    assert [(row["total_ns"], row["device"]) for row in found] == [("20.0", "0"), ("20.0", "1")]


def test_several_files_are_explained_as_far_as_they_can_be(tmp_path: Path) -> None:
    trace = timelines.write_trace(tmp_path / "t.json", [])
    outcome, _ = run((str(trace), *write(tmp_path, good=RAW)), explain=True)
    assert "gpu__time_duration.sum" in outcome.text
    assert "only printed tables (CSV or text) have columns to explain" in outcome.text
    assert outcome.exit_code == 1


def test_joins_and_budgets_take_the_locale_that_their_errors_ask_for(tmp_path: Path) -> None:
    trace = "Start (ns);Duration (ns);Strm;Name\n1.000;5.000;7;k\n9.000;5.000;7;k\n"
    (path,) = write(tmp_path, trace=trace)
    with pytest.raises(ReportError, match="--locale"):
        budget.run(BudgetRequest(paths=(path,)), World())
    found = budget.run(BudgetRequest(paths=(path,), locale="de_DE"), World()).value
    assert found.devices[0].time.wall_ns == 13_000  # type: ignore[attr-defined]
    (shares,) = write(tmp_path, shares="kernel;samples\nk;1.234\n")
    request = JoinRequest(paths=(path, shares), locale="de_DE")
    (row,) = join.run(request, World()).value.kernels  # type: ignore[attr-defined]
    assert row.time.total_ns == 10_000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"as_": "ncu-raw-csv", "metric": "time"}, "--metric has no part"),
        ({"as_": "ncu-raw-csv", "format": "json"}, "--format has no part"),
        ({"as_": "ncu-raw-csv", "explain": True}, "--explain has no part"),
        ({"print_units": "base"}, "--print-units is for ncu's pages"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        run(write(tmp_path, good=RAW), **options)


def test_pages_that_stand_beside_a_report_are_said_not_to_be_read(tmp_path: Path) -> None:
    write(tmp_path, page=RAW)
    (tmp_path / "x.ncu-rep").write_bytes(builder.report([builder.Kernel("k")]))
    outcome, said = run((str(tmp_path),))
    assert f"not read: {tmp_path / 'page.csv'}: ncu printed this" in outcome.text
    assert (outcome.exit_code, said) == (0, [])
    outcome, said = run((str(tmp_path),), format="json")
    assert len(json.loads(outcome.text)["reports"]) == 1
    assert "not read" in said[0]


# -- into files ------------------------------------------------------------------------------------


def parquet(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    assert table.schema.metadata[b"solscope.schema"] == b"solscope.report/1"
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_parquet_holds_what_csv_holds_typed(tmp_path: Path) -> None:
    paths = write(tmp_path, a=RAW, summary=SUMMARY)
    printed = list(csv.DictReader(run(paths, format="csv")[0].text.splitlines()))
    target = tmp_path / "m.parquet"
    outcome, _ = run(paths, format="parquet", output=target)
    assert (outcome.text, outcome.files) == ("", (str(target),))
    rows = parquet(target)
    assert len(rows) == len(printed)
    for row, line in zip(rows, printed, strict=True):
        told = row["value"] if row["text"] is None else row["text"]
        assert (row["report"], row["kernel"], row["metric"], row["unit"] or "") == (
            line["report"],
            line["kernel"],
            line["metric"],
            line["unit"],
        )
        assert str(row["launch"] if row["launch"] is not None else "") == line["launch"]
        assert told == (float(line["value"]) if row["text"] is None else line["value"])
    (time, *_) = [r for r in rows if r["metric"] == "gpu__time_duration.sum"]
    assert (time["value"], time["unit"], time["text"]) == (10240.0, "ns", None)


def test_a_text_is_no_number_and_an_absence_is_null(tmp_path: Path) -> None:
    page = RAW.replace('"Device"', '"Device","device__attribute_display_name","x__y.sum"')
    page = page.replace('"","","","",""', '"","","","","","",""')
    page = page.replace('"0","9.0"', '"0","H100","(!) nan","9.0"').replace(
        '"1","9.0"', '"1","H100","","9.0"'
    )
    target = tmp_path / "m.parquet"
    run(write(tmp_path, a=page), format="parquet", output=target)
    kept = {(r["launch"], r["metric"]): (r["value"], r["text"]) for r in parquet(target)}
    assert kept[0, "device__attribute_display_name"] == (None, "H100")
    assert kept.get((1, "x__y.sum"), (None, None)) == (None, None)
    assert kept[0, "gpu__time_duration.sum"] == (10240.0, None)


def test_timelines_have_a_table_of_their_own(tmp_path: Path) -> None:
    (stats,) = write(tmp_path, stats=STATS)
    target = tmp_path / "k.parquet"
    run((stats,), format="parquet", output=target)
    (row,) = parquet(target)
    assert (row["kernel"], row["launches_or_samples"], row["total_ns"], row["share"]) == (
        "k",
        5.0,
        500.0,
        1.0,
    )
    with pytest.raises(UsageError, match="two tables"):
        run((stats, *write(tmp_path, a=RAW)), format="parquet", output=tmp_path / "both.parquet")
    assert not (tmp_path / "both.parquet").exists()


def test_parquet_needs_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be printed") as caught:
        run(write(tmp_path, a=RAW), format="parquet")
    assert "-o" in str(caught.value.hint)


@pytest.mark.parametrize(
    "options",
    [{}, {"format": "csv"}, {"format": "json"}, {"as_": "ncu-raw-csv"}, {"explain": True}],
)
def test_every_face_can_go_into_a_file(tmp_path: Path, options: dict[str, Any]) -> None:
    paths = write(tmp_path, a=RAW)
    printed = run(paths, **options)[0].text
    target = tmp_path / "out"
    outcome, _ = run(paths, output=target, **options)
    assert (outcome.text, outcome.files) == ("", (str(target),))
    assert target.read_text() == f"{printed}\n"
    with pytest.raises(UsageError, match="cannot write here"):
        run(paths, output=tmp_path / "nowhere" / "out", **options)


def test_parquet_tells_a_unit_that_is_not_known_from_none(tmp_path: Path) -> None:
    page = (
        '"ID","Process ID","Kernel Name","launch__waves_per_multiprocessor","of_somebody__x"\n'
        '"","","","",""\n"0","11","k","1.5","3"\n'
    )
    target = tmp_path / "m.parquet"
    run(write(tmp_path, a=page), format="parquet", output=target)
    units = {row["metric"]: row["unit"] for row in parquet(target)}
    assert units["launch__waves_per_multiprocessor"] == ""
    assert units["of_somebody__x"] is None
