"""A bundle becomes a cell, or it is said why not; the version 1 keys stay as they are."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests import corpus

from solscope.errors import ReportError, SolscopeError, UsageError
from solscope.evidence.campaign import cell as cells
from solscope.evidence.campaign import folder as folders
from solscope.flows.campaign import CampaignRequest, Skipped, run
from solscope.flows.world import World

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "decode-step-h100.ncu-rep"
CONFIG = "name: Decode on H100\nkrhpa_exempt_reason: stock engine\nother_tool: {kept: true}\n"

V1 = [
    "name",
    "name_full",
    "category",
    "kernel_time_ns",
    "dram_bytes_total",
    "sm_flops_total",
    "tensor_flops_total",
    "arithmetic_intensity_flops_per_byte",
    "achieved_dram_pct_peak",
    "achieved_sm_pct_peak",
    "achieved_occupancy_pct",
    "block_limit_factor",
    "achieved_tflops",
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a campaign ``dec``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    run(CampaignRequest(action="init", slug="dec", config="config.yaml"), World())
    return tmp_path


def a_bundle(home: Path, sources: Any = ("ncu",), name: str = "run-1") -> Path:
    """A bundle that declares these sources and holds the sample."""
    bundle = home / name
    (bundle / "ncu-profiles").mkdir(parents=True)
    shutil.copy(SAMPLE, bundle / "ncu-profiles" / "decode.ncu-rep")
    if sources is not None:
        text = json.dumps({"captured_sources": list(sources)})
        (bundle / "capture_sources.json").write_text(text)
    return bundle


def add(bundle: Path, **changes: Any) -> Any:
    return run(
        CampaignRequest(action="add", slug="dec", cell="c1", bundle=str(bundle), **changes), World()
    )


def written(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (home / "campaigns" / "dec" / "cells" / "c1" / "ncu_kernels.json").read_text()
    )
    return found


def test_the_version_1_keys_come_first_and_whole(home: Path) -> None:
    add(a_bundle(home, ("ncu", "nsys")))
    document = written(home)
    assert list(document)[:4] == ["schema_version", "captured_sources", "hw_key", "kernels"]
    assert document["schema_version"] == 1
    assert document["captured_sources"] == ["ncu", "nsys"]
    assert document["hw_key"] == "h100_sxm"
    assert all(list(kernel)[:13] == V1 for kernel in document["kernels"])
    assert list(cells.KEYS) == V1


def test_numbers_are_the_reports(home: Path) -> None:
    add(a_bundle(home))
    first = written(home)["kernels"][0]
    assert first["name"] == "flash_fwd_splitkv_kernel"
    assert first["kernel_time_ns"] == 98304
    assert first["dram_bytes_total"] == 268435456 + 1310720
    assert first["tensor_flops_total"] == 4294967296
    assert first["sm_flops_total"] == 117440512
    # 4 412 407 808 FLOP in 98.304 µs
    assert first["achieved_tflops"] == pytest.approx(44.885, abs=0.001)
    assert first["block_limit_factor"] == "registers"


def test_a_cell_comes_back_as_it_was_written(home: Path) -> None:
    cell = add(a_bundle(home)).value
    campaign = folders.read(folders.named("campaigns", "dec"))
    assert campaign.cells[0].analysis.kernels == cell.analysis.kernels
    assert campaign.cells[0].run_id == "run-1"


def test_no_machine_and_no_path_gets_into_a_cell(home: Path) -> None:
    add(a_bundle(home))
    text = (home / "campaigns" / "dec" / "cells" / "c1" / "ncu_kernels.json").read_text()
    for secret in (str(home), "host.invalid", "192.0.2.7"):
        assert secret not in text


def test_what_was_not_measured_is_null(home: Path) -> None:
    bundle = a_bundle(home)
    (bundle / "ncu-profiles" / "decode.ncu-rep").unlink()
    page = (
        '"ID","Kernel Name","Block Size","Grid Size","Device","CC",'
        '"gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed"\n'
        '"","","","","","","ns","%"\n'
        '"0","toy_kernel","(128, 1, 1)","(64, 1, 1)","0","9.0","2000","91.5"\n'
    )
    (bundle / "ncu-profiles" / "k-raw.csv").write_text(page)
    add(bundle)
    (kernel,) = written(home)["kernels"]
    assert kernel["achieved_sm_pct_peak"] == 91.5
    for key in ("dram_bytes_total", "tensor_flops_total", "achieved_tflops", "sm_flops_total"):
        assert kernel[key] is None
    assert kernel["is_at_roof"] is None


def test_a_dry_run_writes_nothing(home: Path) -> None:
    outcome = add(a_bundle(home), dry_run=True)
    assert outcome.text.startswith("would add cell c1 to dec")
    assert not (home / "campaigns" / "dec" / "cells").exists()


@pytest.mark.parametrize("sources", [(), ("nsys",), ("nsys", "zymtrace"), None])
def test_a_bundle_that_does_not_declare_ncu_is_skipped(home: Path, sources: Any) -> None:
    outcome = add(a_bundle(home, sources))
    assert isinstance(outcome.value, Skipped)
    assert outcome.exit_code == 0
    assert "capture_sources.json" in outcome.text
    assert not (home / "campaigns" / "dec" / "cells").exists()


def only(bundle: Path, content: bytes | None, name: str = "decode.ncu-rep") -> None:
    """The bundle holds one file of ncu with this content, or none."""
    (bundle / "ncu-profiles" / "decode.ncu-rep").unlink()
    if content is not None:
        (bundle / "ncu-profiles" / name).write_bytes(content)


@pytest.mark.parametrize(
    ("content", "name", "why"),
    [
        (None, "", "holds no file of it: missing"),
        (b"", "decode.ncu-rep", r"empty \(0 bytes\)"),
        (b"", "k-raw.csv", r"empty \(0 bytes\)"),
        (b"hello\n", "decode.ncu-rep", "malformed"),
        (b"a,b\n1,2\n", "k-raw.csv", "malformed"),
        (SAMPLE.read_bytes()[:600], "decode.ncu-rep", "cut before its first result|malformed"),
    ],
    ids=["missing", "empty", "empty page", "malformed", "malformed page", "cut"],
)
def test_a_bundle_that_declares_ncu_and_has_none_is_an_error(
    home: Path, content: bytes | None, name: str, why: str
) -> None:
    bundle = a_bundle(home)
    only(bundle, content, name)
    with pytest.raises(ReportError, match=why):
        add(bundle)
    assert not (home / "campaigns" / "dec" / "cells").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"captured_sources": "ncu"}', "{}"])
def test_malformed_sources_are_an_error(home: Path, text: str) -> None:
    bundle = a_bundle(home)
    (bundle / "capture_sources.json").write_text(text)
    with pytest.raises(ReportError):
        add(bundle)


def test_a_sealed_bundle_whose_report_changed_is_said(home: Path) -> None:
    bundle = a_bundle(home)
    row = {"path": "ncu-profiles/decode.ncu-rep", "sha256": "0" * 64, "size_bytes": 1}
    (bundle / "manifest.json").write_text(json.dumps({"artifacts": [row]}))
    cell = add(bundle).value
    assert cell.capture.is_sealed
    assert any("digest differs" in problem for problem in cell.capture.problems)


def sealed(bundle: Path) -> None:
    """Write the manifest of everything that lies in the bundle now."""
    files = [path for path in bundle.rglob("*") if path.is_file()]
    rows = [
        {
            "path": path.relative_to(bundle).as_posix(),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in files
    ]
    (bundle / "manifest.json").write_text(json.dumps({"artifacts": rows}))


def test_a_context_that_changed_after_the_seal_is_said(home: Path) -> None:
    bundle = a_bundle(home)
    (bundle / "context.yaml").write_text("workload: {concurrency: 64}\n")
    sealed(bundle)
    assert add(bundle).value.capture.problems == ()
    (bundle / "context.yaml").write_text("workload: {concurrency: 1}\n")
    (problem,) = add(bundle).value.capture.problems
    assert problem == "context.yaml is not what was sealed: its digest differs"
    (home / "mine.yaml").write_text("workload: {concurrency: 1}\n")
    assert add(bundle, context=str(home / "mine.yaml")).value.capture.problems == ()


def test_the_context_of_the_bundle_goes_into_the_cell(home: Path) -> None:
    bundle = a_bundle(home)
    (bundle / "context.yaml").write_text(
        "model: toy-7b\nconcurrency: 64\ngpu: H100\n"
        "workload: {input_tokens: 1024-4096, output_tokens: 256}\n"
        "regime: {state: lukewarm}\nnovel: {x: 1}\n"
    )
    context = add(bundle).value.context
    assert context.identity.model == "toy-7b"
    assert context.workload.concurrency == 64
    assert context.workload.output_tokens == 256
    assert context.workload.input_tokens is None
    assert set(context.refused) == {"workload.input_tokens", "regime.state", "novel"}
    assert "workload.input_tokens" in context.missing()


def test_a_context_that_was_stated_by_hand_stays_with_its_reports_alone(home: Path) -> None:
    add(a_bundle(home))
    stated = home / "campaigns" / "dec" / "cells" / "c1" / "context.yaml"
    stated.write_text("workload: {concurrency: 64}\n")
    assert add(home / "run-1").value.context.workload.concurrency == 64
    assert stated.read_text() == "workload: {concurrency: 64}\n"
    other = a_bundle(home, name="run-2")
    only(other, gzip.compress(SAMPLE.read_bytes()), "decode.ncu-rep.gz")
    with pytest.raises(UsageError, match="that of other reports"):
        add(other)
    (home / "mine.yaml").write_text("workload: {concurrency: 1}\n")
    (stated.parent / "ncu_kernels.json").write_text("{")
    with pytest.raises(UsageError, match="that of other reports"):
        add(other)
    found = add(other, context=str(home / "mine.yaml")).value
    assert found.context.workload.concurrency == 1


def test_another_tools_cell_is_refused_with_the_way_out(home: Path) -> None:
    add(a_bundle(home))
    path = home / "campaigns" / "dec" / "cells" / "c1" / "ncu_kernels.json"
    document = json.loads(path.read_text())
    del document["solscope"]
    path.write_text(json.dumps(document))
    with pytest.raises(ReportError, match="import the bundle again"):
        folders.read(folders.named("campaigns", "dec"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema_version", 2),
        ("kernels", []),
        ("solscope.schema", "solscope.cell/9"),
        ("solscope.analysis.reports", []),
        ("solscope.analysis.kernels.0.totals.duration_ns", "long"),
        ("solscope.analysis.kernels.0.totals.key.report", 7),
    ],
)
def test_a_cell_that_was_changed_by_hand_is_refused(home: Path, path: str, value: Any) -> None:
    add(a_bundle(home))
    file = home / "campaigns" / "dec" / "cells" / "c1" / "ncu_kernels.json"
    document = json.loads(file.read_text())
    *parents, last = path.split(".")
    place = document
    for name in parents:
        place = place[int(name) if name.isdigit() else name]
    place[last] = value
    file.write_text(json.dumps(document))
    with pytest.raises(ReportError):
        folders.read(folders.named("campaigns", "dec"))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"slug": "../evil"}, "no name of a campaign"),
        ({"slug": "no-such"}, "no such campaign"),
        ({"cell": "a/b"}, "no name of a cell"),
        ({"cell": None}, "needs a bundle and --cell"),
        ({"hw_key": "h900"}, "names no single chip"),
        ({"bundle": "nowhere"}, "no such bundle"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(home: Path, changes: dict[str, Any], why: str) -> None:
    given = {"action": "add", "slug": "dec", "cell": "c1", "bundle": str(a_bundle(home))}
    with pytest.raises(UsageError, match=why):
        run(CampaignRequest(**{**given, **changes}), World())


def test_the_same_config_twice_is_no_error_and_another_is(home: Path) -> None:
    again = CampaignRequest(action="init", slug="dec", config="config.yaml")
    run(again, World())
    (home / "config.yaml").write_text(CONFIG + "wall: none\n")
    with pytest.raises(UsageError, match="with another config"):
        run(again, World())
    assert (home / "campaigns" / "dec" / "config.yaml").read_text() == CONFIG


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name: [1]",
        "- a",
        "name: x\nclaims: [{says: fastest}]",
        "name: x\nend_to_end_share: 3",
        "name: x\nvaries: [colour]",
    ],
)
def test_a_config_that_is_none_is_refused(home: Path, text: str) -> None:
    (home / "bad.yaml").write_text(text)
    with pytest.raises(SolscopeError):
        run(CampaignRequest(action="init", slug="bad", config="bad.yaml"), World())
    assert not (home / "campaigns" / "bad").exists()


@pytest.mark.corpus
def test_a_pair_of_pages_is_one_capture(home: Path) -> None:
    """A wide raw page and a long details page of the same report, from the corpus."""
    folder = corpus.require(corpus.CORPUS / "ncu-csv" / "CodeGandee__accelsim-test")
    bundle = a_bundle(home)
    only(bundle, None)
    stem = "n1000_int8_abt_view_algo23__ncu__"
    shutil.copy(folder / f"{stem}raw.csv", bundle / "ncu-profiles" / "gemm-raw.csv")
    shutil.copy(folder / f"{stem}details.csv", bundle / "ncu-profiles" / "gemm-sol.csv")
    pair = add(bundle).value.analysis.kernels[0].totals
    (bundle / "ncu-profiles" / "gemm-sol.csv").unlink()
    raw = add(bundle).value.analysis.kernels[0].totals
    assert pair.launches == raw.launches == 1
    assert pair.duration_ns == raw.duration_ns
    (bundle / "ncu-profiles" / "gemm-raw.csv").unlink()
    shutil.copy(folder / f"{stem}details.csv", bundle / "ncu-profiles" / "gemm-sol.csv")
    long = add(bundle).value.analysis.kernels[0].totals
    assert long.sm_busy_pct == pytest.approx(raw.sm_busy_pct, abs=0.01)


def test_a_report_in_gzip_is_read(home: Path) -> None:
    bundle = a_bundle(home)
    only(bundle, gzip.compress(SAMPLE.read_bytes()), "decode.ncu-rep.gz")
    assert len(add(bundle).value.analysis.kernels) == 7


def test_what_was_made_added_or_skipped_is_told_as_json_too(home: Path) -> None:
    request = CampaignRequest(action="init", slug="dec", config="config.yaml", format="json")
    made = json.loads(run(request, World()).text)
    assert (made["status"], made["krhpa_problems"]) == ("made", [])
    added = json.loads(
        run(
            CampaignRequest(
                action="add",
                slug="dec",
                cell="c1",
                bundle=str(a_bundle(home)),
                format="json",
                dry_run=True,
            ),
            World(),
        ).text
    )
    assert (added["status"], added["cell"], added["hw_key"]) == ("would add", "c1", "h100_sxm")
    assert len(added["kernels"]) == 7
    assert added["kernels"][0]["time_share"] > added["kernels"][1]["time_share"]
    assert "identity.model" in added["context_missing"]
    other = a_bundle(home, sources=("nsys",), name="run-2")
    request = CampaignRequest(action="add", slug="dec", cell="c2", bundle=str(other), format="json")
    skipped = json.loads(run(request, World()).text)
    assert skipped["status"] == "skipped"
    assert "declares nsys" in skipped["reason"]


def test_a_chip_that_is_not_the_devices_is_warned_of_and_refuted(home: Path) -> None:
    bundle = a_bundle(home)
    outcome = add(bundle, hw_key="b200_sm100")
    words = "compute capability 9.0, b200_sm100 10.0; the device has 132 SMs, b200_sm100 148"
    assert "warning: the device is not the product of the data sheet" in outcome.text
    assert words in outcome.text


@pytest.mark.corpus
def test_one_capture_under_two_names_is_not_counted_double(home: Path) -> None:
    bundle = a_bundle(home)
    only(bundle, corpus.find("vec_add").read_bytes(), "vec_add.ncu-rep")
    page = next((corpus.CORPUS / "golden").rglob("LakshyaSingh354__CudaCode/vec_add.raw.csv.gz"))
    (bundle / "ncu-profiles" / "printed-raw.csv").write_bytes(gzip.decompress(page.read_bytes()))
    with pytest.raises(UsageError, match="count double"):
        add(bundle)


@pytest.mark.parametrize("ending", [".ncu-rep", ".ncu-rep.gz"])
def test_one_report_under_two_names_is_no_second_capture(home: Path, ending: str) -> None:
    bundle = a_bundle(home)
    report = next((bundle / "ncu-profiles").glob("*.ncu-rep")).read_bytes()
    packed = gzip.compress(report) if ending.endswith("gz") else report
    (bundle / "ncu-profiles" / f"second{ending}").write_bytes(packed)
    with pytest.raises(UsageError, match="count double"):
        add(bundle)


def test_a_part_of_a_chips_key_is_kept_in_full(home: Path) -> None:
    assert add(a_bundle(home), hw_key="b200").value.hw_key == "b200_sm100"
    assert written(home)["hw_key"] == "b200_sm100"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("achieved_tflops", 999.0),
        ("kernel_time_ns", None),
        ("is_at_roof", False),
        ("tensor_engagement", "none"),
        ("clock_control", "boost"),
        ("grid", [1, 1, 1]),
    ],
)
def test_numbers_that_were_changed_by_hand_are_refused(home: Path, key: str, value: Any) -> None:
    add(a_bundle(home))
    path = home / "campaigns" / "dec" / "cells" / "c1" / "ncu_kernels.json"
    document = json.loads(path.read_text())
    (index,) = [i for i, k in enumerate(document["kernels"]) if "flash" in k["name"]]
    document["kernels"][index]["of_another_tool"] = 1
    path.write_text(json.dumps(document))
    assert folders.read(folders.named("campaigns", "dec")).cells
    document["kernels"][index][key] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ReportError, match=rf"kernels\[{index}\]\.{key} is .* changed by hand"):
        folders.read(folders.named("campaigns", "dec"))
