"""A campaign in, rows out: once, whole, and only as proven as its gates say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from solscope.errors import LakeError, ReportError, UsageError
from solscope.lake import delta, query, schema
from solscope.model.lake import Judgement
from tests.lake import campaigns as made


def ask(lake: Path, sql: str) -> list[tuple[Any, ...]]:
    return list(query.ask(made.lake_at(lake), sql).rows)


def test_a_rehearsal_writes_nothing(tmp_path: Path) -> None:
    made.campaign(tmp_path, "decode")
    done = made.put(tmp_path, "decode", tmp_path / "lake", yes=False)
    assert done.exit_code == 0
    assert "nothing was written" in done.text
    assert not (tmp_path / "lake").exists()


def test_every_launch_and_kernel_becomes_a_row(tmp_path: Path) -> None:
    made.campaign(tmp_path, "decode", launches=20)
    made.put(tmp_path, "decode", tmp_path / "lake")
    sql = "SELECT count(*), sum(duration_ns) FROM kernel_launches"
    assert ask(tmp_path / "lake", sql) == [(20, 20_000.0)]
    sql = "SELECT name, launches, kernel_time_ns FROM kernels ORDER BY name"
    assert ask(tmp_path / "lake", sql) == [("attn", 10, 10_000.0), ("gemm", 10, 10_000.0)]
    sql = "SELECT tier, kernel_count, kernel_launch_count, hardware, month FROM campaigns"
    assert ask(tmp_path / "lake", sql) == [("VERDICT", 2, 20, "h100_sm90", "2026-10")]


def test_the_same_campaign_twice_is_the_same_rows(tmp_path: Path) -> None:
    made.campaign(tmp_path, "decode")
    first = made.put(tmp_path, "decode", tmp_path / "lake").value
    second = made.put(tmp_path, "decode", tmp_path / "lake").value
    assert (first.written, second.written, second.already_there) == (True, False, True)
    assert first.publish_id == second.publish_id
    for table, count in first.counts.items():
        assert ask(tmp_path / "lake", f"SELECT count(*) FROM {table}") == [(count,)]


def test_running_the_gates_again_makes_no_new_publish(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "c")
    seen = []
    judged = Judgement(tier="VERDICT", document={"sol_rigor": "L4"})
    for minute in (1, 2):
        # What an earlier run of the gates left there is no content, and is not believed.
        taken = {"sol_rigor": "L1", "taken_at": f"2026-11-05T12:0{minute}:00"}
        (folder / "verdict.json").write_text(json.dumps(taken))
        seen.append(made.put(tmp_path, "c", tmp_path / "lake", judgement=judged).value)
    assert [done.written for done in seen] == [True, False]
    sql = "SELECT sol_rigor, verdict_json FROM campaigns"
    assert ask(tmp_path / "lake", sql) == [("L4", '{"sol_rigor":"L4"}')]


def test_a_context_is_its_cells_own_and_never_smeared_over_all(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "c")
    made.cell(folder, "c2", [made.kernel("k")], context={"workload": {"concurrency": 64}})
    (folder / "context.yaml").write_text("workload: {concurrency: 1}")
    made.put(tmp_path, "c", tmp_path / "lake")
    sql = "SELECT cell, workload_concurrency FROM contexts"
    assert ask(tmp_path / "lake", sql) == [("c2", 64)]


def test_a_changed_campaign_takes_the_place_of_its_older_self(tmp_path: Path) -> None:
    made.campaign(tmp_path, "decode", launches=20)
    made.put(tmp_path, "decode", tmp_path / "lake")
    made.campaign(tmp_path, "decode", launches=6, salt=1)
    made.put(tmp_path, "decode", tmp_path / "lake")
    sql = "SELECT count(*), sum(duration_ns) FROM kernel_launches"
    assert ask(tmp_path / "lake", sql) == [(6, 6_006.0)]
    assert ask(tmp_path / "lake", "SELECT count(*) FROM campaigns") == [(1,)]


def test_going_back_to_an_older_state_shows_that_state_once(tmp_path: Path) -> None:
    for launches in (20, 6, 20):
        made.campaign(tmp_path, "decode", launches=launches)
        made.put(tmp_path, "decode", tmp_path / "lake")
    assert ask(tmp_path / "lake", "SELECT count(*) FROM kernel_launches") == [(20,)]


def test_rows_are_partitioned_by_hardware_and_month(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "pair")
    made.cell(folder, "c2", [made.kernel("gemm")], hardware="a100_sm80", captured_at="2026-09-01")
    made.put(tmp_path, "pair", tmp_path / "lake")
    found = {p.parent.relative_to(tmp_path) for p in tmp_path.glob("lake/kernels/**/*.parquet")}
    assert {str(path) for path in found} == {
        "lake/kernels/hardware=h100_sm90/month=2026-10",
        "lake/kernels/hardware=a100_sm80/month=2026-09",
    }
    sql = "SELECT hardware, month FROM campaigns"
    assert ask(tmp_path / "lake", sql) == [("a100_sm80+h100_sm90", "2026-10")]


def test_what_was_not_measured_is_null_and_what_has_no_column_is_kept(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "c")
    made.cell(folder, "c1", [made.kernel("k", mine={"x": 1})], hardware=None, captured_at=None)
    made.put(tmp_path, "c", tmp_path / "lake")
    sql = "SELECT hardware, month, kernel_time_ns, dram_bytes_total, more_json FROM kernels"
    assert ask(tmp_path / "lake", sql) == [("unknown", "unknown", None, None, '{"mine":{"x":1}}')]


def test_a_context_becomes_columns_and_odd_values_stay_in_its_json(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "c")
    context = {
        "identity": {"model": "llama-3-70b"},
        "parallelism": {"tensor": 8, "data": "two"},
        "regime": {"state": "warm"},
        "grounding": {
            "trials": {"n": 3, "mean": 1.5, "std": 0.1, "quantity": "TPOT", "unit": "ms"}
        },
        "engine": "vllm",
    }
    made.cell(folder, "c1", [made.kernel("k")], context=context)
    made.put(tmp_path, "c", tmp_path / "lake")
    sql = (
        "SELECT identity_model, parallelism_tensor, parallelism_data, grounding_trials_n, "
        "grounding_trials_mean, stack_engine, context_json FROM contexts"
    )
    ((*columns, text),) = ask(tmp_path / "lake", sql)
    assert columns == ["llama-3-70b", 8, None, 3, 1.5, "vllm"]
    assert json.loads(text) == context


def test_each_file_of_a_cell_leaves_its_digest_and_each_receipt_its_step(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "c")
    receipt = {"step": "collect", "exit_status": 0, "began_at": "2026-10-12T09:00:00Z"}
    (folder / "cells" / "c1" / "receipts.jsonl").write_text(json.dumps(receipt) + "\n")
    made.put(tmp_path, "c", tmp_path / "lake")
    sql = "SELECT step, artifact, exit_status FROM receipts ORDER BY receipt_index"
    assert ask(tmp_path / "lake", sql) == [
        ("collect", None, 0),
        ("file", "cells/c1/ncu_kernels.json", None),
        ("file", "cells/c1/launches.json", None),
        ("file", "cells/c1/receipts.jsonl", None),
    ]


def test_strict_refuses_what_the_gates_refuse(tmp_path: Path) -> None:
    made.campaign(tmp_path, "c")
    done = made.put(tmp_path, "c", tmp_path / "lake", judgement=made.OPEN)
    assert done.exit_code == 1
    assert "gap trials: 1 trial; 3 are needed" in done.text
    assert not (tmp_path / "lake").exists()


def test_without_strict_the_gap_stands_on_the_row_and_the_tier_falls(tmp_path: Path) -> None:
    made.campaign(tmp_path, "c")
    claimed = Judgement(tier="VERDICT", gaps=made.OPEN.gaps)
    done = made.put(tmp_path, "c", tmp_path / "lake", judgement=claimed, no_strict=True)
    assert done.exit_code == 0
    ((tier, strict, count, gaps),) = ask(
        tmp_path / "lake", "SELECT tier, strict, gap_count, gaps_json FROM campaigns"
    )
    assert (tier, strict, count) == ("DRAFT", False, 1)
    assert json.loads(gaps) == [{"gate": "trials", "reason": "1 trial; 3 are needed"}]


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("ncu_kernels.json", "{", "truncated"),
        ("ncu_kernels.json", "[]", "not a mapping"),
        ("launches.json", "nothing", "malformed"),
        ("context.yaml", "a: [", "flow node"),
        ("receipts.jsonl", "{", "truncated"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, file: str, content: str, words: str) -> None:
    folder = made.campaign(tmp_path, "c")
    (folder / "cells" / "c1" / file).write_text(content)
    with pytest.raises(ReportError, match=words) as raised:
        made.put(tmp_path, "c", tmp_path / "lake")
    assert raised.value.where == str(folder / "cells" / "c1" / file)


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("kernel_time_ns", "12 us", r"\$\.kernels\[0\]\.kernel_time_ns"),
        ("launches", 1.5, r"\$\.kernels\[0\]\.launches"),
        ("name", None, r"\$\.kernels\[0\]\.name"),
    ],
)
def test_a_value_of_another_kind_is_named_by_its_path(
    tmp_path: Path, field: str, value: object, path: str
) -> None:
    folder = made.campaign(tmp_path, "c")
    made.cell(folder, "c1", [{**made.kernel("k"), field: value}])
    with pytest.raises(UsageError, match=path):
        made.put(tmp_path, "c", tmp_path / "lake")


def test_a_newer_file_of_kernels_is_refused(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "c")
    file = folder / "cells" / "c1" / "ncu_kernels.json"
    file.write_text(json.dumps({"schema_version": 2, "kernels": []}))
    with pytest.raises(UsageError, match=r"schema_version"):
        made.put(tmp_path, "c", tmp_path / "lake")


@pytest.mark.parametrize("slug", ["../c", "a'b", "", "a b"])
def test_a_slug_that_is_no_name_is_refused(tmp_path: Path, slug: str) -> None:
    with pytest.raises(UsageError, match="no slug"):
        made.put(tmp_path, slug, tmp_path / "lake")


def test_a_missing_campaign_and_an_empty_one_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such campaign"):
        made.put(tmp_path, "c", tmp_path / "lake")
    (tmp_path / "c").mkdir()
    with pytest.raises(UsageError, match="no cell"):
        made.put(tmp_path, "c", tmp_path / "lake")


def test_a_delta_table_of_others_is_left_alone(tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "lake" / "campaigns"), pa.table({"a": [1]}))
    made.campaign(tmp_path, "c")
    with pytest.raises(LakeError, match="not one of solscope's"):
        made.put(tmp_path, "c", tmp_path / "lake")


def test_publishing_says_that_another_scheme_is_none(tmp_path: Path) -> None:
    made.campaign(tmp_path, "c")
    with pytest.raises(UsageError, match="no lake can lie at http://"):
        made.put(tmp_path, "c", "http://somewhere/lake")
    with pytest.raises(UsageError, match="is not KEY=VALUE"):
        made.put(tmp_path, "c", "s3://b/l", store=("AWS_REGION",))


def test_a_lost_race_is_run_again_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import deltalake
    from deltalake.exceptions import CommitFailedError

    write, losses = deltalake.write_deltalake, [CommitFailedError("lost"), None]

    def racing(*args: Any, **kwargs: Any) -> None:
        loss = losses.pop(0) if losses else None
        if loss is not None:
            raise loss
        write(*args, **kwargs)

    monkeypatch.setattr(deltalake, "write_deltalake", racing)
    made.campaign(tmp_path, "c")
    pauses: list[float] = []
    written = delta.publish(
        made.lake_at(tmp_path / "lake"), made.rows_of(tmp_path, "c"), pause=pauses.append
    )
    assert (written.retries, len(pauses)) == (1, 1)
    assert ask(tmp_path / "lake", "SELECT count(*) FROM kernel_launches") == [(20,)]


def test_a_broken_try_is_replaced_by_the_next_and_not_added_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import deltalake
    from deltalake import DeltaTable

    write = deltalake.write_deltalake

    def broken(table: DeltaTable, *args: Any, **kwargs: Any) -> None:
        if table.table_uri.rstrip("/").endswith(schema.COMMITS):
            raise OSError("No space left on device")
        write(table, *args, **kwargs)

    made.campaign(tmp_path, "c")
    with monkeypatch.context() as full:
        full.setattr(deltalake, "write_deltalake", broken)
        with pytest.raises(LakeError, match="no room left"):
            made.put(tmp_path, "c", tmp_path / "lake")
    stored = tmp_path / "lake" / "kernel_launches"
    assert DeltaTable(str(stored)).to_pyarrow_dataset().count_rows() == 20
    assert ask(tmp_path / "lake", "SELECT count(*) FROM kernel_launches") == [(0,)]
    made.put(tmp_path, "c", tmp_path / "lake")
    assert DeltaTable(str(stored)).to_pyarrow_dataset().count_rows() == 20
    assert ask(tmp_path / "lake", "SELECT count(*) FROM kernel_launches") == [(20,)]


def test_the_schema_of_a_table_is_what_stands_in_it(tmp_path: Path) -> None:
    made.campaign(tmp_path, "c")
    made.put(tmp_path, "c", tmp_path / "lake")
    for name, columns in schema.TABLES.items():
        table = delta.open_table(made.lake_at(tmp_path / "lake"), name)
        assert table is not None
        assert [f.name for f in table.schema().fields] == [c.name for c in columns]
        assert table.metadata().partition_columns == list(schema.PARTITIONS)


def test_names_of_other_tools_that_are_no_text_are_kept_as_text(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "c")
    with (folder / "config.yaml").open("a") as config:
        config.write("other: {yes: 1, 2: 3, 2026-01-02: x, plain: [{null: 4}]}\n")
    made.put(tmp_path, "c", tmp_path / "lake")
    ((kept,),) = ask(tmp_path / "lake", "SELECT config_json FROM campaigns")
    assert json.loads(kept)["other"] == {
        "true": 1,
        "2": 3,
        "2026-01-02": "x",
        "plain": [{"null": 4}],
    }


@pytest.mark.parametrize("changed", [{"launches": 3}, {"kernel_time_ns": 2_002.0}])
def test_launches_of_another_import_are_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    folder = made.campaign(tmp_path, "c")
    kernels = [made.kernel("k", **{"launches": 2, "kernel_time_ns": 2_001.0, **changed})]
    launches = [made.launch("k", duration_ns=1_000.0), made.launch("k", duration_ns=1_001.0)]
    made.cell(folder, "c1", kernels, launches)
    with pytest.raises(UsageError, match="are not of one import"):
        made.put(tmp_path, "c", tmp_path / "lake")
    made.cell(folder, "c1", [made.kernel("k", launches=2, kernel_time_ns=2_001.0)], launches)
    made.put(tmp_path, "c", tmp_path / "lake")


def test_captures_of_two_time_zones_fall_into_the_month_of_utc(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "c")
    for name, taken in (("c1", "2027-01-01T01:30:00+02:00"), ("c2", "2026-12-31T20:00:00-05:00")):
        made.cell(folder, name, [made.kernel("k")], captured_at=taken)
    made.put(tmp_path, "c", tmp_path / "lake")
    sql = "SELECT month, captured_at FROM kernels ORDER BY captured_at"
    assert ask(tmp_path / "lake", sql) == [
        ("2026-12", "2026-12-31T23:30:00+00:00"),
        ("2027-01", "2027-01-01T01:00:00+00:00"),
    ]


def two_of_one_slug(root: Path) -> None:
    """Campaigns ``decode`` of two people, who know nothing of each other."""
    for salt, home in enumerate(("ours", "theirs")):
        folder = made.campaign(root / home, "decode", salt=salt)
        (folder / "cells" / "c1").rename(folder / "cells" / home)


def test_another_campaign_of_the_same_slug_keeps_its_place(tmp_path: Path) -> None:
    two_of_one_slug(tmp_path)
    made.put(tmp_path / "ours", "decode", tmp_path / "lake")
    for yes in (False, True):
        with pytest.raises(UsageError, match=r"another campaign decode: .* with ours") as refused:
            made.put(tmp_path / "theirs", "decode", tmp_path / "lake", yes=yes)
        assert "--replace" in (refused.value.hint or "")
    sql = "SELECT DISTINCT cell FROM kernels"
    assert ask(tmp_path / "lake", sql) == [("ours",)]
    made.put(tmp_path / "theirs", "decode", tmp_path / "lake", replace=True)
    assert ask(tmp_path / "lake", sql) == [("theirs",)]


def test_a_campaign_that_lost_a_cell_or_got_a_new_name_is_the_same(tmp_path: Path) -> None:
    folder = made.campaign(tmp_path, "decode")
    made.cell(folder, "c2", [made.kernel("k")])
    made.put(tmp_path, "decode", tmp_path / "lake")
    shutil.rmtree(folder / "cells" / "c1")
    (folder / "config.yaml").write_text("name: A better title\n")
    made.put(tmp_path, "decode", tmp_path / "lake")
    assert ask(tmp_path / "lake", "SELECT DISTINCT cell FROM kernels") == [("c2",)]
    made.campaign(tmp_path, "decode", salt=1)  # measured anew, under the older name
    (folder / "config.yaml").write_text("name: A better title\n")
    made.put(tmp_path, "decode", tmp_path / "lake")
    assert len(ask(tmp_path / "lake", "SELECT DISTINCT cell FROM kernels")) == 2


def test_a_campaign_that_won_the_race_for_a_slug_keeps_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_of_one_slug(tmp_path)
    write = delta._replace

    def raced(lake: delta.Lake, name: str, *args: Any) -> int:
        """The other publishes between our look and our commit."""
        if name == schema.COMMITS:
            monkeypatch.setattr(delta, "_replace", write)
            made.put(tmp_path / "theirs", "decode", tmp_path / "lake")
        return write(lake, name, *args)

    monkeypatch.setattr(delta, "_replace", raced)
    with pytest.raises(UsageError, match=r"another campaign decode: .* with theirs"):
        made.put(tmp_path / "ours", "decode", tmp_path / "lake")
    assert ask(tmp_path / "lake", "SELECT DISTINCT cell FROM kernels") == [("theirs",)]
