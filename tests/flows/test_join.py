"""`solscope join`: three kinds of file in, one row a kernel out."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from solscope.errors import UsageError
from solscope.flows.join import JoinRequest, run
from solscope.flows.world import Outcome, World

NCU = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","gpu__time_duration.sum","smsp__cycles_elapsed.avg.per_second"\n'
    '"","","","","","","","","","","","us","Ghz"\n'
    '"0","11","app","host","flash_fwd","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","53.5","1.13"\n'
)


def ask(folder: Path, files: dict[str, str], **options: Any) -> Outcome:
    for name, text in files.items():
        (folder / name).write_text(text)
    paths = tuple(str(folder / name) for name in files)
    return run(JoinRequest(paths=paths, **options), World(width=140))


def test_totals_come_from_the_timeline_and_never_from_ncu(tmp_path: Path) -> None:
    files = {
        "zymtrace.csv": "kernel,share\nflash_fwd,0.41\n",
        "nsys.csv": "kernel,instances,total_ns\nflash_fwd,1000,33100000\n",
        "ncu.csv": NCU,
    }
    outcome = ask(tmp_path, files)
    line = next(row for row in outcome.text.splitlines() if row.startswith("flash_fwd"))
    assert "33.1 ms" in line
    assert "41.0 %" in line
    assert "(exact)" in line
    assert "ncu durations are not used for totals" in outcome.text
    assert "53.5 ms" not in outcome.text
    assert outcome.exit_code == 0


def test_a_slower_clock_under_ncu_is_no_regression(tmp_path: Path) -> None:
    files = {"nsys.csv": "Name,Instances,Avg (ns)\nflash_fwd,1000,33100\n", "ncu.csv": NCU}
    text = ask(tmp_path, files).text
    assert "durations not comparable: ncu 53.5 us at an SM clock of 1.13 GHz" in text
    assert "regression" not in text


def test_graph_launches_of_a_second_table_mark_the_counts(tmp_path: Path) -> None:
    files = {
        "shares.csv": "kernel,share\ndecode_kernel,0.9\n",
        "nsys.csv": "Name,Instances\ndecode_kernel,1\n",
        "api.csv": "Name,Num Calls\ncudaGraphLaunch,500\n",
    }
    text = ask(tmp_path, files).text
    assert "cudaGraphLaunch 500 calls" in text
    assert "launch count not comparable" in text


def test_json_names_the_source_of_every_column(tmp_path: Path) -> None:
    files = {"s.csv": "kernel,share\nk,0.5\n", "n.csv": "kernel,instances,total_ns\nk,2,10\n"}
    document = json.loads(ask(tmp_path, files, format="json").text)
    assert document["schema"] == "solscope.join/1"
    assert [s["format"] for s in document["sources"]["timelines"]] == ["nsys-stats"]
    (kernel,) = document["kernels"]
    assert kernel["samples"]["share"] == 0.5
    assert kernel["timeline"]["total_ns"] == 10
    assert kernel["counters"] == []


def test_one_kind_of_source_is_no_join(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two kinds of source; given: samples"):
        ask(tmp_path, {"s.csv": "kernel,share\nk,0.5\n"})


def test_no_common_kernel_is_exit_code_1(tmp_path: Path) -> None:
    files = {"s.csv": "kernel,share\na,0.5\n", "n.csv": "kernel,instances,total_ns\nb,2,10\n"}
    outcome = ask(tmp_path, files)
    assert outcome.exit_code == 1
    assert outcome.text.count("(single)") == 2


def test_the_json_is_as_its_schema_says(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    text = resources.files("solscope.render").joinpath("schemas", "join-1.schema.json").read_text()
    files = {
        "s.csv": "kernel,share\nk,0.5\nother,0.1\n",
        "n.csv": "kernel,instances,total_ns\nflash_fwd,2,10\nk,2,10\n",
        "ncu.csv": NCU,
    }
    document = json.loads(ask(tmp_path, files, format="json").text)
    checker = jsonschema.Draft202012Validator(json.loads(text))
    assert [error.message for error in checker.iter_errors(document)] == []
