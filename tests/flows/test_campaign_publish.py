"""What the lake is told of a campaign by the gates that run inside publish."""

from __future__ import annotations

import hashlib
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.campaigns import a_busy_kernel, a_cell, grounded

from solscope.errors import ReportError
from solscope.evidence import receipts
from solscope.evidence.campaign import folder as folders
from solscope.flows import publish
from solscope.flows.campaign import CampaignRequest, run
from solscope.flows.world import World
from solscope.lake import query
from solscope.lake.delta import Lake
from solscope.model.evidence import Receipt

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "decode-step-h100.ncu-rep"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a campaign ``dec`` of one cell that states L3."""
    monkeypatch.chdir(tmp_path)
    place = folders.named("campaigns", "dec")
    folders.init(place, b"name: Decode\nkrhpa_exempt_reason: stock engine\n")
    cell = a_cell(a_busy_kernel(), cell_id="c1", context=grounded())
    folders.write_cell(place, cell, b"grounding: {sol_rigor: L3}\n")
    return tmp_path


@pytest.mark.parametrize("stale", [None, {"sol_rigor": "L4", "tier": "VERDICT", "gates": []}])
def test_the_row_says_what_the_gates_say_now(home: Path, stale: dict[str, object] | None) -> None:
    if stale is not None:
        Path("campaigns/dec/verdict.json").write_text(json.dumps(stale))
    publish.run(publish.PublishRequest(slug="dec", no_strict=True, yes=True), World())
    sql = "SELECT tier, sol_rigor, verdict_json FROM campaigns"
    ((tier, rigor, said),) = query.ask(Lake(location="lake"), sql).rows
    assert (tier, rigor) == ("DRAFT", "L3")
    document = json.loads(said)
    assert (document["tier"], document["sol_rigor"]) == ("DRAFT", "L3")
    assert "taken_at" not in document
    assert {gate["gate"] for gate in document["gates"]} >= {"context", "trials", "next-lever"}


def test_the_receipts_of_a_capture_go_into_the_lake(home: Path) -> None:
    bundle = home / "run-1"
    (bundle / "ncu-profiles").mkdir(parents=True)
    shutil.copy(SAMPLE, bundle / "ncu-profiles")
    (bundle / "capture_sources.json").write_text('{"captured_sources": ["ncu"]}')
    begun, ended = (datetime(2026, 1, 2, 3, minute, tzinfo=UTC) for minute in (4, 5))
    receipts.append(
        bundle,
        Receipt(step="window", begun=begun, ended=ended, is_ok=True, command="ncu", exit_status=0),
    )
    request = CampaignRequest(action="add", slug="dec", cell="c2", bundle="run-1")
    run(request, World())
    publish.run(publish.PublishRequest(slug="dec", no_strict=True, yes=True), World())
    sql = "SELECT cell, step, began_at, ended_at, exit_status FROM receipts WHERE step = 'window'"
    (row,) = query.ask(Lake(location="lake"), sql).rows
    assert row == ("c2", "window", "2026-01-02T03:04:00Z", "2026-01-02T03:05:00Z", 0)
    # What was read stands there too, by the digest of the report as it lay in the bundle.
    sql = "SELECT artifact, sha256, size_bytes FROM receipts WHERE step = 'report' AND cell = 'c2'"
    (read,) = query.ask(Lake(location="lake"), sql).rows
    digest = hashlib.sha256(SAMPLE.read_bytes()).hexdigest()
    assert read == (SAMPLE.name, digest, SAMPLE.stat().st_size)
    # Another capture in the same cell does not keep the receipts of the one before.
    (bundle / "receipts.jsonl").unlink()
    run(request, World())
    assert not Path("campaigns/dec/cells/c2/receipts.jsonl").exists()
    (bundle / "receipts.jsonl").write_text("{}\nnothing\n")
    with pytest.raises(ReportError, match="no receipt") as raised:
        run(request, World())
    assert raised.value.where == "run-1/receipts.jsonl:2"
