"""Pages of a campaign: there, checked, offline, and honest about what was not measured."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from pypdf import PdfReader
from tests import corpus
from tests.campaigns import a_busy_kernel, a_cell, a_fma_kernel, a_tensor_kernel, grounded

from solscope.evidence.campaign import folder as folders
from solscope.flows import campaign as campaign_flow
from solscope.flows import gate, report
from solscope.flows import next as next_flow
from solscope.flows.world import World
from solscope.model.campaign import Cell
from solscope.model.context import MeasurementContext

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "decode-step-h100.ncu-rep"
CONFIG = b"name: Decode <on> H100\ndescription: A & B\nkrhpa_exempt_reason: stock engine\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folders.init(folders.named("campaigns", "dec"), CONFIG)
    return tmp_path


def put(*cells: Cell) -> None:
    for cell in cells:
        folders.write_cell(folders.named("campaigns", "dec"), cell, None)


def import_sample(home: Path) -> None:
    bundle = home / "run-1"
    (bundle / "ncu-profiles").mkdir(parents=True)
    shutil.copy(SAMPLE, bundle / "ncu-profiles")
    (bundle / "capture_sources.json").write_text('{"captured_sources": ["ncu"]}')
    campaign_flow.run(
        campaign_flow.CampaignRequest(action="add", slug="dec", cell="c1", bundle="run-1"), World()
    )


def render() -> dict[str, Any]:
    state: dict[str, Any] = report.run(report.ReportRequest(slug="dec"), World()).value
    return state


def page(name: str) -> bytes:
    return Path("campaigns/dec", name).read_bytes()


def pdf_text(number: int) -> str:
    return PdfReader(BytesIO(page("report.pdf"))).pages[number - 1].extract_text()


def test_page_five_is_the_roofline_and_the_status_says_so(home: Path) -> None:
    import_sample(home)
    state = render()
    pages = {p["name"]: p for p in state["pages"]}
    assert pages["roofline"] == {"name": "roofline", "page": 5, "is_there": True, "why": None}
    assert [pages[n]["page"] for n in ("summary", "context", "kernels")] == [1, 2, 3]
    assert pages["stalls and occupancy"]["page"] == 4
    assert "Roofline" in pdf_text(5)
    assert state["page_count"] == len(PdfReader(BytesIO(page("report.pdf"))).pages)
    assert state["kernel_rows"] == 7
    assert json.loads(page("report_status.json")) == state
    for name, digest in state["files"].items():
        assert hashlib.sha256(page(name)).hexdigest() == digest
    first = pdf_text(1).replace("\u200b", "")
    assert all(word in first for word in ("DRAFT", "Next lever", "cross_device_reduce_1stage"))
    html = page("report.html").decode()
    observed = html[html.index('id="observations"') : html.index('id="mechanisms"')]
    assert "limited by" not in observed
    assert "At the roof" not in observed
    assert "At the roof" in html[html.index('id="mechanisms"') :]


def test_a_missing_page_says_why(home: Path) -> None:
    state = render()
    missing = {p["name"]: p["why"] for p in state["pages"] if not p["is_there"]}
    assert missing["roofline"] == "the campaign has no cell"
    assert "summary" not in missing


def test_the_pages_load_nothing_escape_names_and_name_no_machine(home: Path) -> None:
    put(a_cell(a_tensor_kernel(name="k<script>alert(1)</script>#[#panic()]")))
    render()
    html = page("report.html").decode()
    assert "<script" not in html
    assert "alert(1)" in html
    assert "default-src 'none'" in html
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", html)
    assert "Decode &lt;on&gt; H100" in html
    assert "A &amp; B" in html
    count = len(PdfReader(BytesIO(page("report.pdf"))).pages)
    everything = html + "".join(pdf_text(n + 1) for n in range(count))
    for secret in ("hunter2", "node-17", "10.20.30.40", "/home/someone"):
        assert secret not in everything


def test_percentages_alone_stand_hollow_at_an_x_that_says_placeholder(home: Path) -> None:
    put(a_cell(a_busy_kernel(90.0, category="cuBLAS"), context=grounded(sol_rigor="L3")))
    state = render()
    text = " ".join(pdf_text(5).split())
    assert "placeholder" in text
    assert "90.0 % of h100_sxm.bf16_dense_pflops" in text.replace("\u200b", "")
    assert "SM busy percentages, not rates" in text.replace("\u200b", "")
    assert next(p for p in state["pages"] if p["name"] == "roofline")["is_there"]


def test_each_kernel_of_the_table_carries_its_own_shape(home: Path) -> None:
    one = a_cell(a_tensor_kernel(), cell_id="c64")
    small = grounded()
    small = replace(small, workload=replace(small.workload, concurrency=1, input_tokens=4096))
    put(one, a_cell(a_tensor_kernel(us=200), cell_id="c1", context=small))
    folder = folders.named("campaigns", "dec")
    for cell_id, context in (("c64", grounded()), ("c1", small)):
        document: dict[str, Any] = {}
        for name, value in context.values():
            section, _, key = name.partition(".")
            if section == "workload":
                document.setdefault(section, {})[key] = value
        folder.cell_file(cell_id, "context.yaml").write_text(yaml.safe_dump(document))
    render()
    html = page("report.html").decode()
    assert "random, 1024 in / 256 out, c=64" in html
    assert "random, 4096 in / 256 out, c=1" in html


def test_many_cells_and_kernels_leave_the_roofline_on_page_five(home: Path) -> None:
    long = "void_cutlass_gemm_with_a_long_name_" * 4
    put(
        *(
            a_cell(
                *(a_tensor_kernel(name=f"{long}{i}", us=100 + i) for i in range(5)),
                cell_id=f"cell-{n}",
            )
            for n in range(5)
        )
    )
    state = render()
    pages = {p["name"]: p["page"] for p in state["pages"]}
    assert pages["roofline"] == 5
    assert state["kernel_rows"] == 25


@pytest.mark.parametrize(
    ("exempt", "failed"),
    # Without arms and without a reason five more checks fail: the page is then made smaller.
    [("krhpa_exempt_reason: stock engine\n", "45 of 70"), ("", "50 of 70")],
)
def test_long_words_and_many_open_gates_leave_every_page_where_it_belongs(
    home: Path, exempt: str, failed: str
) -> None:
    words = "long words of a long tale " * 60
    lever = f"{{what: {words[:400]}, unlock: {words[:300]}, gate: {words[:300]}}}"
    config = f"name: Decode\ndescription: {words}\nfocus: {words}\n{exempt}"
    Path("campaigns/dec/config.yaml").write_text(f"{config}next_lever: {lever}\n")
    kernels = [a_tensor_kernel(name=f"a_kernel_with_quite_a_name_{i}") for i in range(5)]
    put(
        *(
            a_cell(*kernels, cell_id=f"a-cell-with-a-long-name-{n}", context=MeasurementContext())
            for n in range(9)
        )
    )
    state = render()
    assert [page["page"] for page in state["pages"]][:5] == [1, 2, 3, 4, 5]
    first = " ".join(pdf_text(1).replace("\u200b", "").split())
    assert f"{failed} checks do not pass" in first
    # What nine cells lack alike is said once.
    assert first.count("no trials stated") == 1
    assert "and 8 more: no trials stated" in first
    assert page("report.html").count(b"no trials stated") == 9


def test_a_gate_writes_its_verdict_and_exits_one_on_a_draft(home: Path) -> None:
    import_sample(home)
    outcome = gate.run(gate.GateRequest(slug="dec", format="json"), World())
    assert outcome.exit_code == 1
    document = json.loads(outcome.text)
    assert document == json.loads(page("verdict.json"))
    assert document["tier"] == "DRAFT"
    assert {g["standing"] for g in document["gates"]} <= {"pass", "draft", "refuted"}
    assert all(g["promote"] for g in document["gates"] if not g["passes"])


def test_an_empty_campaign_does_not_pass(home: Path) -> None:
    outcome = gate.run(gate.GateRequest(slug="dec"), World())
    assert outcome.exit_code == 1
    assert "nothing was there to check" in " ".join(outcome.text.split())


def test_next_keeps_the_hand_off_and_peoples_findings(home: Path) -> None:
    import_sample(home)
    Path("campaigns/dec/HANDOFF.md").write_text("# Mine\n\nwords of people\n")
    Path("campaigns/dec/value-findings.yaml").write_text(
        "findings:\n"
        "- {id: g, title: graphs off, status: not done, next_lever: turn graphs on,"
        " max_win: 0.9, cost: setting}\n"
        "- {id: w, title: wider tiles, status: closed negative, next_lever: none, why: slower}\n"
    )
    outcome = next_flow.run(next_flow.NextRequest(slug="dec"), World())
    assert outcome.exit_code == 0
    assert "turn graphs on" in outcome.text.splitlines()[0]
    kept = page("HANDOFF.md").decode()
    assert "words of people" in kept
    assert "wider tiles: slower" in kept
    assert "turn graphs on" in kept
    # 90 % of end-to-end time beside shares of the profiled kernel time: no like with like.
    assert "wins are shares of different times" in outcome.text
    assert "Wins are shares of different times" in kept
    Path("campaigns/dec/config.yaml").write_bytes(CONFIG + b"end_to_end_share: 0.5\n")
    assert "different times" not in next_flow.run(next_flow.NextRequest(slug="dec"), World()).text


def test_the_hand_off_keeps_peoples_line_ends_and_says_what_it_leaves_out(home: Path) -> None:
    put(a_cell(*(a_fma_kernel(us=100, name=f"k{i:02}") for i in range(25))))
    mine = b"# Mine\r\n\r\nwords of people\r\n"
    Path("campaigns/dec/HANDOFF.md").write_bytes(mine)
    for _again in (1, 2):
        next_flow.run(next_flow.NextRequest(slug="dec"), World())
        kept = page("HANDOFF.md")
        assert kept.startswith(mine)
        assert kept.count(b"\n") == kept.count(b"\r\n")
        assert kept.count(b"## Frontier") == 1
    assert b"And 5 smaller levers" in kept


def test_next_without_a_campaign_ranks_all_together(home: Path) -> None:
    import_sample(home)
    shutil.copytree("campaigns/dec", "campaigns/other")
    outcome = next_flow.run(next_flow.NextRequest(format="json", dry_run=True), World())
    document = json.loads(outcome.text)
    assert [c["campaign"] for c in document["campaigns"]] == ["dec", "other"]
    assert outcome.files == ()
    assert not Path("campaigns/dec/HANDOFF.md").exists()


@pytest.mark.corpus
@pytest.mark.parametrize(
    "fragments",
    [
        ("2025-04-21-77_06-MT", "2025-04-21_v2-float4"),
        ("R_decode_c1_out2k", "R_decode_c128_out256"),
    ],
    ids=["A100 and H100", "two H200 decode captures"],
)
def test_campaigns_of_real_reports_go_from_bundle_to_frontier(
    home: Path, fragments: tuple[str, str]
) -> None:
    for index, fragment in enumerate(fragments):
        bundle = home / f"run-{index}"
        (bundle / "ncu-profiles").mkdir(parents=True)
        shutil.copy(corpus.find(fragment), bundle / "ncu-profiles")
        (bundle / "capture_sources.json").write_text('{"captured_sources": ["ncu"]}')
        campaign_flow.run(
            campaign_flow.CampaignRequest(
                action="add", slug="dec", cell=f"c{index}", bundle=str(bundle)
            ),
            World(),
        )
    state = render()
    assert next(p for p in state["pages"] if p["name"] == "roofline")["page"] == 5
    assert next_flow.run(next_flow.NextRequest(slug="dec"), World()).exit_code == 0
    assert gate.run(gate.GateRequest(slug="dec"), World()).exit_code == 1
