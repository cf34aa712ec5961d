"""Killed, raced, starved, damaged: a reader sees all of a publish or nothing of it."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from solscope.errors import LakeError
from solscope.lake import query, schema
from tests.lake import campaigns as made
from tests.lake import workers

# A campaign's rows as its own row states them, next to the rows that are there.
WHOLE = """
SELECT c.campaign, c.kernel_launch_count, c.kernel_count,
    (SELECT count(*) FROM kernel_launches l WHERE l.campaign = c.campaign),
    (SELECT count(*) FROM kernels k WHERE k.campaign = c.campaign)
FROM campaigns c ORDER BY c.campaign
"""


STRAYS = """
SELECT count(*) FROM kernel_launches WHERE campaign NOT IN (SELECT campaign FROM campaigns)
"""


def whole_campaigns(lake: str) -> set[str]:
    """The campaigns that a reader sees, each complete; and no row of any other."""
    with query.connection(made.lake_at(lake)) as database:
        seen, strays = query.answer(database, WHOLE).rows, query.answer(database, STRAYS).rows
    for campaign, said_launches, said_kernels, launches, kernels in seen:
        assert (launches, kernels) == (said_launches, said_kernels), campaign
    assert strays == ((0,),)
    return {row[0] for row in seen}


KILLS = 50


@pytest.mark.slow
def test_publishers_killed_at_fifty_random_moments_leave_a_whole_lake(tmp_path: Path) -> None:
    lake, context = str(tmp_path / "lake"), workers.processes()
    slugs, dice = [f"c{i:02}" for i in range(KILLS)], random.Random(20261130)
    for salt in (0, 1):  # the first one also loads the libraries
        made.campaign(tmp_path, "first", launches=200, salt=salt)
        begun = time.monotonic()
        made.put(tmp_path, "first", lake)
    one_publish = time.monotonic() - begun
    published, seen_before = 0, {"first"}
    for slug in slugs:
        is_ready = context.Event()
        publisher = context.Process(
            target=workers.publish_without_end, args=(tmp_path, slug, lake, is_ready)
        )
        publisher.start()
        assert is_ready.wait(60)
        # It publishes one state of its campaign after the other, so any moment is amid its work.
        time.sleep(dice.uniform(0.0, 3.0) * one_publish)
        publisher.kill()
        publisher.join()
        assert publisher.exitcode == -9
        seen = whole_campaigns(lake)
        assert seen >= seen_before, "what was visible stays visible"
        published, seen_before = published + (slug in seen), seen
    assert 0 < published < KILLS, "every moment was before, or after, the first publish"
    for slug in slugs:
        # Its files may have been cut in writing, too.
        made.campaign(tmp_path, slug, launches=200)
        made.put(tmp_path, slug, lake)
    assert whole_campaigns(lake) == {"first", *slugs}


@pytest.mark.slow
def test_four_publishers_at_once_lose_nothing(tmp_path: Path) -> None:
    lake, context = str(tmp_path / "lake"), workers.processes()
    made.campaign(tmp_path, "same", launches=40)
    own = [[f"p{n}-{i}" for i in range(3)] for n in range(4)]
    for slug in (slug for slugs in own for slug in slugs):
        made.campaign(tmp_path, slug, launches=40)
    publishers = [
        context.Process(target=workers.publish, args=(tmp_path, ["same", *slugs], lake))
        for slugs in own
    ]
    for publisher in publishers:
        publisher.start()
    while any(publisher.is_alive() for publisher in publishers):
        if (Path(lake) / schema.COMMITS / "_delta_log").exists():
            whole_campaigns(lake)
        time.sleep(0.05)
    assert [publisher.exitcode for publisher in publishers] == [0, 0, 0, 0]
    assert len(whole_campaigns(lake)) == 13
    counted = query.ask(made.lake_at(lake), "SELECT count(*) FROM kernel_launches")
    assert counted.rows == ((13 * 40,),)


@pytest.mark.parametrize("limit", [100, 4_000, 20_000])
def test_a_disk_without_room_leaves_what_was_there(tmp_path: Path, limit: int) -> None:
    lake, context = str(tmp_path / "lake"), workers.processes()
    made.campaign(tmp_path, "small", launches=4)
    made.put(tmp_path, "small", lake)
    folder = made.campaign(tmp_path, "large", launches=4)
    many = [made.launch(f"kernel{i}", duration_ns=i * 1.1) for i in range(5_000)]
    made.cell(folder, "c2", [made.kernel("kernel")], many)
    log = tmp_path / "log"
    args = (tmp_path, "large", lake, limit, log)
    starved = context.Process(target=workers.publish_with_little_room, args=args)
    starved.start()
    starved.join()
    assert "no room left to write" in log.read_text()
    assert whole_campaigns(lake) == {"small"}
    made.put(tmp_path, "large", lake)
    assert whole_campaigns(lake) == {"small", "large"}


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may not mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_file_system_leaves_what_was_there(tmp_path: Path, tiny_disk: Path) -> None:
    lake, context = str(tiny_disk / "lake"), workers.processes()
    made.campaign(tmp_path, "small", launches=4)
    made.put(tmp_path, "small", lake)
    filler = tiny_disk / "filler"
    with filler.open("wb") as file, pytest.raises(OSError, match="No space"):
        file.write(b"\0" * 400_000)
    made.campaign(tmp_path, "second", launches=4)
    log = tmp_path / "log"
    starved = context.Process(target=workers.publish_and_say, args=(tmp_path, "second", lake, log))
    starved.start()
    starved.join()
    assert "LakeError" in log.read_text()
    assert "no room left to write" in log.read_text()
    assert whole_campaigns(lake) == {"small"}
    filler.unlink()
    made.put(tmp_path, "second", lake)
    assert whole_campaigns(lake) == {"small", "second"}


def damaged(lake: Path, table: str, text: str) -> Path:
    """Overwrite the newest log entry of a table."""
    entry = max((lake / table / "_delta_log").glob("*.json"))
    entry.write_text(text)
    return entry


@pytest.mark.parametrize("table", list(schema.TABLES))
@pytest.mark.parametrize("text", ['{"add": {"path"', "\x00\x01 no log", '{"add": {"path": 1}}\n'])
def test_a_damaged_log_entry_is_said_and_nothing_is_written_over_it(
    tmp_path: Path, table: str, text: str
) -> None:
    lake = tmp_path / "lake"
    folder = made.campaign(tmp_path, "a")
    made.cell(folder, "c2", [made.kernel("k")], context={"identity": {"model": "m"}})
    made.campaign(tmp_path, "b")
    made.put(tmp_path, "a", lake)
    kept = max((lake / table / "_delta_log").glob("*.json")).read_text()
    entry = damaged(lake, table, text)
    with pytest.raises(LakeError, match="damaged") as raised:
        query.ask(made.lake_at(lake), "SELECT 1")
    assert raised.value.where == str(lake / table)
    with pytest.raises(LakeError, match="damaged"):
        made.put(tmp_path, "b", lake)
    assert entry.read_text() == text
    entry.write_text(kept)
    assert whole_campaigns(str(lake)) == {"a"}


def test_a_data_file_that_has_gone_is_said(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    made.campaign(tmp_path, "a")
    made.put(tmp_path, "a", lake)
    (gone,) = lake.glob("kernels/**/*.parquet")
    gone.unlink()
    with pytest.raises(LakeError, match="has gone"):
        query.ask(made.lake_at(lake), "SELECT sum(kernel_time_ns) FROM kernels")


def test_a_lake_of_which_only_some_tables_exist_is_readable(tmp_path: Path) -> None:
    import shutil

    lake = tmp_path / "lake"
    made.campaign(tmp_path, "a")
    made.put(tmp_path, "a", lake)
    shutil.rmtree(lake / schema.COMMITS)
    assert whole_campaigns(str(lake)) == set()
    made.put(tmp_path, "a", lake)
    assert whole_campaigns(str(lake)) == {"a"}


def test_a_folder_that_may_not_be_written_is_said(tmp_path: Path) -> None:
    made.campaign(tmp_path, "a")
    (tmp_path / "lake").write_text("a file, no folder")
    with pytest.raises(LakeError) as raised:
        made.put(tmp_path, "a", tmp_path / "lake")
    assert raised.value.hint
