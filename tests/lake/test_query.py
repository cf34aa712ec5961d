"""SQL in, rows out; nothing but the lake in reach, and only committed rows."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from solscope.errors import LakeError, UsageError
from solscope.flows import query as flow
from solscope.flows.world import World
from solscope.lake import query
from solscope.model.lake import Answer, Gap, Judgement
from solscope.render import rows as page
from tests.lake import campaigns as made


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two hardware, two months, one kernel slow in one launch of twenty."""
    root = tmp_path_factory.mktemp("queries")
    folder = root / "pair"
    folder.mkdir()
    (folder / "config.yaml").write_text("name: Pair\n")
    for name, hardware, month, slow in (
        ("new", "h100_sm90", "2026-10", 9_000),
        ("old", "a100_sm80", "2026-09", 2_000),
    ):
        launches = [made.launch("gemm", duration_ns=1_000, dram_bytes=2_000) for _ in range(19)]
        launches.append(made.launch("gemm", duration_ns=slow))
        sums = [
            made.kernel("gemm", kernel_time_ns=19_000 + slow, speed_of_light_profiled=0.75),
            made.kernel("copy", kernel_time_ns=500),
        ]
        made.cell(folder, name, sums, launches, hardware=hardware, captured_at=f"{month}-02")
    made.put(root, "pair", root / "lake", judgement=made.OPEN, no_strict=True)
    return str(root / "lake")


def ask(lake: str, sql: str) -> Answer:
    return query.ask(made.lake_at(lake), sql)


def by_name(lake: str, name: str) -> list[dict[str, object]]:
    answer = ask(lake, query.find(name).sql)
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]


def test_five_queries_are_shipped_and_each_says_what_it_answers() -> None:
    assert [shipped.name for shipped in query.named()] == [
        "across-hardware",
        "kernel-history",
        "launch-spread",
        "open-gaps",
        "worst-kernels",
    ]
    assert all(shipped.summary.endswith(".") for shipped in query.named())


def test_worst_kernels_ranks_by_time_below_the_roof(lake: str) -> None:
    rows = by_name(lake, "worst-kernels")
    assert [(r["hardware"], r["name"], r["lost_ns"], r["cells_unmeasured"]) for r in rows] == [
        ("h100_sm90", "gemm", 7_000.0, 0),  # 28 us, a quarter of it below the roof
        ("a100_sm80", "gemm", 5_250.0, 0),
        ("a100_sm80", "copy", None, 1),
        ("h100_sm90", "copy", None, 1),
    ]


def test_the_speed_of_light_of_a_mean_leaves_out_time_without_one(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "c")
    for cell, measured in (("c1", 0.5), ("c2", None)):
        kernel = made.kernel("k", kernel_time_ns=1_000, speed_of_light_profiled=measured)
        made.cell(folder, cell, [kernel])
    made.put(tmp_path, "c", tmp_path / "lake")
    (row,) = by_name(str(tmp_path / "lake"), "worst-kernels")
    assert (row["time_ns"], row["speed_of_light"], row["lost_ns"]) == (2_000.0, 0.5, 500.0)


def test_a_capture_that_two_campaigns_hold_loses_its_time_once(tmp_path: Path) -> None:
    for slug in ("one", "two"):
        folder = made.campaign(tmp_path, slug)
        made.cell(
            folder,
            "c1",
            [made.kernel("k", kernel_time_ns=1_000, speed_of_light_profiled=0.5)],
            reports=["a" * 64],
        )
        made.put(tmp_path, slug, tmp_path / "lake")
    (row,) = by_name(str(tmp_path / "lake"), "worst-kernels")
    assert (row["cells"], row["time_ns"], row["lost_ns"]) == (1, 1_000.0, 500.0)


def test_launch_spread_finds_the_kernel_whose_launches_differ(lake: str) -> None:
    first, second = by_name(lake, "launch-spread")
    # 19 launches of 1 us and one of 9: the 99th percentile lies 0.81 of the way to the last.
    assert first["hardware"] == "h100_sm90"
    assert (first["median_ns"], first["p99_ns"]) == (1_000.0, pytest.approx(7_480.0))
    assert second["p99_over_median"] == pytest.approx(1.81)


def test_worst_kernels_counts_cells_not_rows_and_loses_no_time_above_a_roof(
    tmp_path: Path,
) -> None:
    folder = made.campaign(tmp_path, "c")
    rows = [
        made.kernel("Kernel", name_full=f"Kernel<{size}>", kernel_time_ns=1_000, **speed)
        for size, speed in (
            (1, {"speed_of_light_profiled": 0.5}),
            (2, {"speed_of_light_profiled": 1.2}),  # above its roof: nothing is lost, or won back
            (3, {}),
        )
    ]
    made.cell(folder, "c1", rows)
    made.put(tmp_path, "c", tmp_path / "lake")
    (row,) = by_name(str(tmp_path / "lake"), "worst-kernels")
    assert (row["variants"], row["cells"], row["cells_unmeasured"]) == (3, 1, 1)
    assert row["lost_ns"] == 500.0


def test_launches_of_other_shapes_or_cells_are_no_spread_and_no_history(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "c")
    for cell, grid, duration in (("c1", 1, 1_000), ("c1", 2, 9_000), ("c2", 1, 5_000)):
        launches = [made.launch("gemm", duration_ns=duration, grid=[grid, 1, 1]) for _ in range(10)]
        held = folder / "cells" / cell / "launches.json"
        before = json.loads(held.read_text())["launches"] if cell == "c1" and grid == 2 else []
        made.cell(folder, cell, [made.kernel("gemm")], [*before, *launches])
    made.put(tmp_path, "c", tmp_path / "lake")
    lake = str(tmp_path / "lake")
    assert [
        (r["cell"], r["grid"], r["p99_over_median"]) for r in by_name(lake, "launch-spread")
    ] == [
        ("c1", "2x1x1", 1.0),
        ("c2", "1x1x1", 1.0),
        ("c1", "1x1x1", 1.0),
    ]
    assert [(r["grid"], r["launches"], r["mean_ns"]) for r in by_name(lake, "kernel-history")] == [
        ("1x1x1", 20, 3_000.0),
        ("2x1x1", 10, 9_000.0),
    ]


def test_open_gaps_names_each_gate_once(tmp_path: Path) -> None:
    made.campaign(tmp_path, "c")
    gaps = tuple(Gap(gate=gate, reason=f"{gate} {i}") for i in (1, 2) for gate in ("b", "a"))
    open_ = Judgement(tier="DRAFT", gaps=gaps)
    made.put(tmp_path, "c", tmp_path / "lake", judgement=open_, no_strict=True)
    (row,) = by_name(str(tmp_path / "lake"), "open-gaps")
    assert (row["gap_count"], row["gates"]) == (4, "a, b")


def test_kernel_history_counts_launches_by_month(lake: str) -> None:
    rows = by_name(lake, "kernel-history")
    assert [(r["month"], r["launches"], r["mean_ns"]) for r in rows] == [
        ("2026-09", 20, 1_050.0),
        ("2026-10", 20, 1_400.0),
    ]


def test_across_hardware_takes_rates_over_measured_launches_only(lake: str) -> None:
    old, new = by_name(lake, "across-hardware")
    assert (old["hardware"], new["hardware"]) == ("a100_sm80", "h100_sm90")
    # 2000 byte in 1000 ns are 2 GB/s, however long the launch without bytes took.
    assert (old["dram_gb_per_s"], new["dram_gb_per_s"]) == (2.0, 2.0)
    assert old["tflop_per_s"] is None


def test_open_gaps_lists_the_draft_with_its_reason(lake: str) -> None:
    (row,) = by_name(lake, "open-gaps")
    assert (row["campaign"], row["gap_count"], row["strict"]) == ("pair", 1, False)
    assert row["gates"] == "trials"
    assert row["time_ns"] == 28_000 + 21_000 + 2 * 500


@pytest.mark.parametrize(
    "sql",
    [
        "COPY kernels TO 'out.csv'",
        "SELECT * FROM read_csv('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "DROP VIEW kernels",
        "ATTACH 'x.duckdb'",
        "SELECT 1; SELECT 2",
        "",
        "SELECT nothing FROM kernels",
        "SELECT * FROM kernel",
        "SELEC 1",
        "SELECT CAST('x' AS INTEGER)",
    ],
)
def test_a_query_that_is_no_reading_select_is_refused(
    lake: str, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as raised:
        ask(lake, sql)
    assert raised.value.hint
    assert list(tmp_path.iterdir()) == []


def test_no_python_variable_is_a_table(lake: str) -> None:
    import pyarrow as pa

    secret = pa.table({"a": [1]})
    assert secret.num_rows == 1
    with pytest.raises(UsageError, match="secret"):
        ask(lake, "SELECT * FROM secret")


def test_a_folder_without_a_lake_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="no lake here") as raised:
        ask(str(tmp_path), "SELECT 1")
    assert "solscope publish" in str(raised.value.hint)


def test_the_three_formats_hold_the_same_rows(lake: str) -> None:
    sql = "SELECT name, kernel_time_ns AS ns, bound FROM kernels WHERE hardware = 'a100_sm80'"
    sql += " ORDER BY name"
    answer = ask(lake, sql)
    assert page.as_table(answer, limit=10).splitlines() == [
        "name     ns  bound",
        "----  -----  -----",
        "copy    500  -",
        "gemm  21000  -",
        "2 rows",
    ]
    assert json.loads(page.as_json(answer)) == [
        {"name": "copy", "ns": 500.0, "bound": None},
        {"name": "gemm", "ns": 21000.0, "bound": None},
    ]
    read = list(csv.reader(io.StringIO(page.as_csv(answer))))
    assert read == [["name", "ns", "bound"], ["copy", "500.0", ""], ["gemm", "21000.0", ""]]


def test_a_long_answer_says_how_much_is_not_shown(lake: str) -> None:
    shown = page.as_table(ask(lake, "SELECT range FROM range(7)"), limit=3)
    assert shown.splitlines()[-1] == "7 rows, 4 not shown: raise --limit, or use csv"


def test_numbers_that_are_none_become_null_in_json(lake: str) -> None:
    answer = ask(lake, "SELECT 'nan'::DOUBLE AS a, sum(range) AS b FROM range(4)")
    assert json.loads(page.as_json(answer)) == [{"a": None, "b": 6}]


def test_the_flow_lists_runs_and_shows(lake: str) -> None:
    def run(**options: object) -> str:
        return flow.run(flow.QueryRequest(lake=lake, **options), made.world()).text

    assert "worst-kernels" in run()
    assert run(named="worst-kernels", show_sql=True).startswith("-- Kernels that lose")
    assert "gemm" in run(named="worst-kernels")
    assert run(sql="SELECT 1 AS x", format="csv") == "x\n1"
    with pytest.raises(UsageError, match="no query called 'worst'"):
        run(named="worst")
    with pytest.raises(UsageError, match="exclude each other"):
        run(sql="SELECT 1", named="worst-kernels")


def test_a_query_that_stops_early_ends_its_process_in_peace(tmp_path: Path) -> None:
    for number in range(6):
        made.campaign(tmp_path, f"c{number}", launches=50, salt=number)
        made.put(tmp_path, f"c{number}", tmp_path / "lake", judgement=made.OPEN, no_strict=True)
    sql = "select * from kernels limit 1"
    where = str(tmp_path / "lake")
    command = [sys.executable, "-m", "solscope.cli.main", "query", "--lake", where, sql]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}
    for _ in range(10):
        running = [
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for _ in range(4)
        ]
        ends = [(process.communicate(timeout=60), process.returncode) for process in running]
        assert [(code, said[1]) for said, code in ends] == [(0, b"")] * 4
        assert all(said[0].strip() for said, _ in ends)


def test_two_columns_of_one_name_are_refused_where_json_would_lose_one(lake: str) -> None:
    answer = ask(lake, "SELECT 1 AS a, 2 AS a, 3 AS b")
    with pytest.raises(UsageError, match="two columns are called a"):
        page.as_json(answer)
    assert page.as_csv(answer) == "a,a,b\n1,2,3"


def test_lists_are_json_in_csv_and_large_numbers_stay_short(lake: str) -> None:
    answer = ask(lake, "SELECT [DATE '2026-01-02'] AS days, {'a': 1} AS pair, 1e300 AS big")
    assert page.as_csv(answer).splitlines()[1].startswith('"[""2026-01-02""]","{""a"": 1}"')
    assert "1e+300" in page.as_table(answer, limit=5)


def test_the_list_of_queries_and_their_sql_are_json_too() -> None:
    everything = flow.run(flow.QueryRequest(format="json"), World())
    assert [row["name"] for row in json.loads(everything.text)] == [q.name for q in query.named()]
    request = flow.QueryRequest(named="worst-kernels", show_sql=True, format="json")
    (row,) = json.loads(flow.run(request, World()).text)
    assert row["sql"] == query.find("worst-kernels").sql


@pytest.mark.parametrize("format", ["table", "json", "csv"])
def test_intervals_nanoseconds_and_bytes_have_every_face(lake: str, format: str) -> None:
    sql = (
        "SELECT INTERVAL 3 DAY AS k, '2026-01-02 03:04:05.000000006'::TIMESTAMP_NS AS t, "
        "'a'::BLOB AS b, [INTERVAL 1 MONTH] AS l, map {'x': 1} AS m"
    )
    said = flow.run(flow.QueryRequest(sql=sql, lake=lake, format=format), World()).text
    for words in ("P0M3DT0S", "2026-01-02T03:04:05.000000006", "61", "P1M0DT0S"):
        assert words in said


def test_a_limit_that_shows_nothing_is_refused(lake: str) -> None:
    with pytest.raises(UsageError, match="--limit 0 shows nothing"):
        flow.run(flow.QueryRequest(sql="SELECT 1", lake=lake, limit=0), World())
