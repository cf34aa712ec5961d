"""The command line: the same answer as from Python, errors with codes, nothing half-written."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import builder, corpus
from tests.builder import Kernel

import solscope
from solscope.cli import commands
from solscope.flows.pages import whole

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = str(ROOT / "samples" / "decode-step-h100.ncu-rep")


def run(*arguments: str) -> int:
    return commands.call(list(arguments))


def test_json_on_the_command_line_is_the_analysis_from_python(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("analyze", SAMPLE, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    analysis = solscope.analyze([solscope.read(SAMPLE)])
    assert document["schema"] == "solscope.analysis/1"
    assert [k["name"] for k in document["kernels"]] == [k.totals.name for k in analysis.kernels]
    first, expected = document["kernels"][0], analysis.kernels[0]
    assert first["flop_count"] == expected.totals.flop.total
    assert first["arithmetic_intensity"] == expected.point.intensity
    assert first["bound"] == expected.verdict.bound
    binding = expected.point.datasheet_binding
    assert binding is not None
    assert first["speed_of_light"]["datasheet"]["ceiling_key"] == binding.ceiling


def test_the_table_fits_100_columns_and_has_no_colour_in_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("analyze", SAMPLE) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert max(len(line) for line in out.splitlines()) <= 100


def test_files_are_written_whole_and_nothing_else_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    targets = [tmp_path / name for name in ("p.html", "p.pdf", "p.svg")]
    assert run(
        "analyze", SAMPLE, "--html", str(targets[0]), "--pdf", str(targets[1]),
        "--figure", str(targets[2]),
    ) == 0  # fmt: skip
    assert sorted(tmp_path.iterdir()) == sorted(targets)
    assert targets[0].read_text().startswith("<!")
    assert targets[1].read_bytes().startswith(b"%PDF-")
    assert b"<svg" in targets[2].read_bytes()[:200]
    assert "wrote" in capsys.readouterr().err


def test_a_write_that_fails_leaves_the_old_file_and_no_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "page.html"
    target.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(solscope.errors.UsageError, match="No space left"):
        whole(str(target), b"new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["analize"], 2, "did you mean `solscope analyze`"),
        (["nonsense-verb"], 2, "no verb called"),
        (["analyze"], 2, "requires an argument"),
        (["analyze", "/nonexistent.ncu-rep"], 2, "no such file"),
        (["analyze", SAMPLE, "--format", "yaml"], 2, "yaml"),
        (["analyze", SAMPLE, "--kernel", "("], 2, "regular expression"),
        (["analyze", SAMPLE, "--kernel", "no such kernel"], 2, "no kernel matches"),
        (["analyze", SAMPLE, "--chip", "h100"], 2, "h100_sxm"),
        (["analyze", SAMPLE, "--top", "0"], 2, "above zero"),
        (["analyze", SAMPLE, "--figure", "x.gif"], 2, ".svg or .png"),
        (["analyze", SAMPLE, "--html", "/nonexistent/x.html"], 2, "cannot write"),
        (["analyze", SAMPLE, "--ceilings", "/nonexistent.yaml"], 2, "cannot be read"),
        (["analyze", str(ROOT / "README.md")], 3, "text"),
        (["read", SAMPLE, "--metric", "("], 2, "regular expression"),
    ],
)
def test_errors_say_what_where_and_what_next(
    arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == code
    captured = capsys.readouterr()
    assert says in captured.err + captured.out


def test_a_bug_exits_70_and_leaves_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from solscope.flows import analyze

    monkeypatch.setattr(analyze, "analyze", lambda *_, **__: 1 / 0)
    assert run("analyze", SAMPLE) == 70
    message = capsys.readouterr().err
    log = message.split("report it with ")[1].strip()
    assert "ZeroDivisionError" in Path(log).read_text()
    Path(log).unlink()


def test_an_interrupt_exits_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from solscope.flows import analyze

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(analyze, "analyze", stop)
    assert run("analyze", SAMPLE) == 130


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m solscope.cli.main read {SAMPLE} --format csv | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("report,launch")


def test_a_closed_pipe_keeps_the_answer() -> None:
    plan = "plan --chip H100 --no-library --memory-gb 100 --host-memory-gb 1 --format json"
    command = f"exec {sys.executable} -m solscope.cli.main {plan}"
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 1


def test_a_file_given_twice_or_by_its_folder_counts_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = builder.report([Kernel("k", metrics={"gpu__time_duration.sum": 1000})])
    (tmp_path / "a.ncu-rep").write_bytes(data)
    (tmp_path / "b.ncu-rep").symlink_to(tmp_path / "a.ncu-rep")
    (tmp_path / "notes.txt").write_text("not a report")
    assert run("analyze", str(tmp_path), str(tmp_path / "a.ncu-rep"), "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["reports"]) == 1
    assert document["kernels"][0]["launches"] == 1


def test_reports_of_other_files_stay_other_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, time in (("a.ncu-rep", 1000), ("b.ncu-rep", 1001)):
        data = builder.report([Kernel("k", metrics={"gpu__time_duration.sum": time})])
        (tmp_path / name).write_bytes(data)
    assert run("analyze", str(tmp_path), "--format", "json") == 0
    assert len(json.loads(capsys.readouterr().out)["kernels"]) == 2


def test_a_page_that_names_a_kernel_otherwise_does_not_count_beside_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = Path(__file__).parents[2] / "samples" / "decode-step-h100.ncu-rep"
    assert run("read", str(sample), "--as", "ncu-raw-csv") == 0
    page = tmp_path / "page.csv"
    page.write_text(capsys.readouterr().out)
    assert run("analyze", str(sample), str(page)) == 2
    assert "the same 9 launches in two formats" in capsys.readouterr().err


SECRETS = ("host.invalid", "192.0.2.7", "--secret-option", "VLLM::Worker")


@pytest.mark.parametrize("format", ["table", "json", "csv", "markdown"])
def test_what_names_a_machine_stays_out_of_every_output_unless_asked_for(
    format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = Kernel("k", metrics={"gpu__time_duration.sum": 1000}, process_name="VLLM::Worker")
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(builder.report([kernel], command_line="ncu --secret-option"))
    html = tmp_path / "x.html"
    assert run("analyze", str(path), "--format", format, "--html", str(html)) == 0
    everything = capsys.readouterr().out + html.read_text()
    for secret in (*SECRETS, str(tmp_path)):
        assert secret not in everything
    assert run("read", str(path), "--format", "json") == 0
    assert "host.invalid" not in capsys.readouterr().out
    assert run("read", str(path), "--show-session") == 0
    assert "host.invalid" in capsys.readouterr().out


def test_incomplete_is_said_on_every_face(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = builder.report([Kernel("k", metrics={"gpu__time_duration.sum": 1000})] * 2)
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(whole[:-40])
    html, pdf = tmp_path / "x.html", tmp_path / "x.pdf"
    for format in ("table", "markdown"):
        pages = ("--html", str(html), "--pdf", str(pdf))
        assert run("analyze", str(path), "--format", format, *pages) == 0
        assert "incomplete" in capsys.readouterr().out.lower()
    assert "incomplete" in html.read_text().lower()
    from pypdf import PdfReader

    for page in PdfReader(pdf).pages:
        assert "incomplete" in page.extract_text().lower()
    assert run("analyze", str(path), "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["reports"][0]["complete"] is False
    assert run("read", str(path)) == 0
    assert "INCOMPLETE" in capsys.readouterr().out


@pytest.mark.corpus
def test_read_gives_every_metric_as_json_and_csv(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(corpus.find("vec_add.ncu-rep"))
    assert run("read", path, "--format", "json") == 0
    launch = json.loads(capsys.readouterr().out)["reports"][0]["launches"][0]
    assert len(launch["metrics"]) + len(launch["valueless"]) == 1113
    assert run("read", path, "--format", "csv", "--metric", "^dram__bytes") == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "report,launch,kernel,metric,value,unit"
    assert len(rows) > 5
    assert all(",dram__bytes" in row for row in rows[1:])
    assert any(row.endswith(",byte") for row in rows[1:])


def test_a_bare_hyphen_is_stdin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = b"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log)))
    assert run("diagnose", "-", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["code"] == "counter-permission"
    assert document["causes"][0]["evidence"][0]["where"] == "stdin:1"


def test_a_system_without_file_locks_is_told_which_verbs_it_has(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['fcntl'] = None; from solscope.cli.main import main; "
        "sys.argv = ['solscope', *sys.argv[1:]]; sys.exit(main())"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    refused = run("bundle", "init", "b")
    assert refused.returncode == 2
    assert "Linux and macOS only" in refused.stderr
    assert "WSL" in refused.stderr
    read = run("analyze", SAMPLE, "--html", "page.html")
    assert (read.returncode, (tmp_path / "page.html").exists()) == (0, True)
