"""An evidence bundle is whole, honest about secrets, and cannot change unseen."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from solscope.errors import CaptureError, UsageError
from solscope.evidence import bundle, files, receipts, sealing
from solscope.evidence.redaction import MASK, Redactor
from solscope.evidence.running import Finished, run
from solscope.flows.bundle import BundleRequest, commit_of
from solscope.flows.bundle import run as verb
from solscope.flows.world import Outcome, World
from solscope.model.evidence import BundleSource, ChangeKind, MeasurementContext

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)
OK = Finished(stdout=b"out\n", stderr=b"", exit_code=0)


def a_redactor() -> Redactor:
    """Masks ``hunter2`` by shape, and options whose name holds ``token``."""
    return Redactor(
        lambda text: text.replace("hunter2", MASK), lambda name: "token" in name.lower()
    )


def a_bundle(folder: Path) -> bundle.Bundle:
    source = BundleSource(experiment="run-1", family="attention", intent="see")
    return bundle.init(folder, source, a_redactor(), lambda: NOON)


@pytest.fixture
def opened(tmp_path: Path) -> bundle.Bundle:
    return a_bundle(tmp_path / "attention" / "run-1")


def names(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in files.entries(folder)]


def unlock(folder: Path) -> None:
    """Give the write permissions back, as someone who tampers would."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def test_a_new_bundle_holds_the_files_of_the_contract(opened: bundle.Bundle) -> None:
    assert names(opened.folder) == [
        "SOURCE.md",
        "capture_sources.json",
        "context.yaml",
        "findings/01-observations.md",
        "findings/02-mechanisms.md",
        "receipts.jsonl",
        "summary.md",
    ]
    assert (opened.folder / "commands").is_dir()
    assert (opened.folder / "ncu-profiles").is_dir()
    assert "Status: DRAFT" in (opened.folder / "summary.md").read_text()
    assert json.loads((opened.folder / "capture_sources.json").read_text()) == {
        "captured_sources": []
    }


def test_the_source_says_what_was_stated_and_what_was_not(opened: bundle.Bundle) -> None:
    text = (opened.folder / "SOURCE.md").read_text()
    assert "- experiment: run-1\n" in text
    assert "- when: 2026-01-02T12:00:00Z\n" in text
    assert "- commit: (not stated)\n" in text
    assert bundle.experiment_of(opened.folder) == "run-1"


def test_a_context_that_is_not_known_is_null(opened: bundle.Bundle) -> None:
    body = yaml.safe_load((opened.folder / "context.yaml").read_text())
    assert body["gpu"] is None
    assert body["isl_tokens"] is None
    told = bundle.context_text(MeasurementContext(gpu="H100", isl_tokens=1024))
    assert yaml.safe_load(told)["isl_tokens"] == 1024


def test_an_existing_bundle_is_refused(opened: bundle.Bundle) -> None:
    before = {path: path.read_bytes() for path in files.entries(opened.folder)}
    with pytest.raises(UsageError, match="a bundle is already there"):
        a_bundle(opened.folder)
    assert {path: path.read_bytes() for path in files.entries(opened.folder)} == before
    assert [p.name for p in opened.folder.parent.iterdir()] == ["run-1"]


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises(UsageError, match="the folder is not empty"):
        a_bundle(tmp_path)
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize("name", ["", "a b", "-a", "a-", "a/b", "x" * 64])
def test_an_experiment_must_be_a_kubernetes_label(tmp_path: Path, name: str) -> None:
    source = BundleSource(experiment=name, family="f")
    with pytest.raises(UsageError, match="cannot be called"):
        bundle.init(tmp_path / "b", source, a_redactor(), lambda: NOON)


def test_a_command_is_four_files_and_a_receipt(opened: bundle.Bundle) -> None:
    done = Finished(stdout=b"\x00\xffout", stderr=b"err\n", exit_code=3)
    name, receipt = opened.record("check-node", ["echo", "it's", "a b"], done, NOON)
    assert name == "01-check-node"
    commands = opened.folder / "commands"
    assert (commands / f"{name}.cmd").read_text() == """echo 'it'"'"'s' 'a b'\n"""
    assert (commands / f"{name}.stdout").read_bytes() == b"\x00\xffout"
    assert (commands / f"{name}.stderr").read_bytes() == b"err\n"
    assert (commands / f"{name}.exit").read_text() == "3\n"
    assert receipts.read(opened.folder) == (receipt,)
    assert (receipt.exit_status, receipt.is_ok, len(receipt.artifacts)) == (3, False, 4)


def test_commands_are_numbered_in_order(opened: bundle.Bundle) -> None:
    made = [opened.record("step", ["true"], OK, NOON)[0] for _ in range(11)]
    assert (made[0], made[9], made[10]) == ("01-step", "10-step", "11-step")


@given(
    st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1)
)
def test_a_recorded_command_line_can_be_run_again(argv: list[str]) -> None:
    plain = Redactor(lambda text: text, lambda name: False)
    assert shlex.split(shlex.join(plain.argv(argv))) == argv


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["x", "--token", "s3cretvalue"], ["x", "--token", MASK]),
        (["x", "--hf-token=s3cretvalue"], ["x", f"--hf-token={MASK}"]),
        (["env", "HF_TOKEN=s3cretvalue", "x"], ["env", f"HF_TOKEN={MASK}", "x"]),
        (["sh", "-c", "use hunter2"], ["sh", "-c", f"use {MASK}"]),
        (["x", "--token", "--other", "v"], ["x", "--token", "--other", "v"]),
        (["x", "--name", "v"], ["x", "--name", "v"]),
    ],
)
def test_secrets_of_a_command_line_are_masked(argv: list[str], shown: list[str]) -> None:
    assert a_redactor().argv(argv) == shown


def test_a_secret_of_the_command_is_masked_in_its_output(opened: bundle.Bundle) -> None:
    done = Finished(stdout=b"using s3cretvalue\n", stderr=b"hunter2\xff", exit_code=0)
    opened.record("x", ["x", "--token", "s3cretvalue"], done, NOON)
    everything = b"".join(path.read_bytes() for path in files.entries(opened.folder))
    assert b"s3cretvalue" not in everything
    assert b"hunter2" not in everything
    stderr = (opened.folder / "commands/01-x.stderr").read_bytes()
    assert stderr == MASK.encode() + b"\xff"


def test_a_secret_inside_a_script_is_masked_in_its_output() -> None:
    redactor = a_redactor()
    shown = redactor.argv(["bash", "-c", "exec server m --token s3cretvalue"])
    assert redactor.text("using s3cretvalue") == f"using {MASK}"
    assert "s3cretvalue" not in " ".join(shown)


def test_every_key_after_one_option_is_masked() -> None:
    redactor = Redactor(lambda text: text, lambda name: name == "api-key")
    argv = ["vllm", "serve", "m", "--api-key", "first-key", "second-key", "--port", "8"]
    assert redactor.argv(argv) == [*argv[:4], MASK, MASK, "--port", "8"]
    argv = ["curl", "--api-key", "first-key", "https://host/v1"]
    assert redactor.argv(argv) == ["curl", "--api-key", MASK, "https://host/v1"]


def test_short_values_are_not_hunted_in_output() -> None:
    redactor = a_redactor()
    redactor.argv(["x", "--token", "no"])
    assert redactor.text("no news") == "no news"


def test_an_added_report_is_copied_byte_for_byte_and_names_its_source(
    opened: bundle.Bundle, tmp_path: Path
) -> None:
    report = tmp_path / "r.ncu-rep"
    report.write_bytes(b"NVR\0hunter2" + os.urandom(3_000_000))
    receipt = opened.add(report, "ncu-profiles/r.ncu-rep")
    assert (opened.folder / "ncu-profiles/r.ncu-rep").read_bytes() == report.read_bytes()
    assert receipt.artifacts[0].size_bytes == 3_000_011
    sources = json.loads((opened.folder / "capture_sources.json").read_text())
    assert sources["captured_sources"] == ["ncu"]


def test_secrets_of_an_added_text_are_masked_and_that_is_said(
    opened: bundle.Bundle, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text("password hunter2\n")
    receipt = opened.add(tmp_path / "log", "notes/log")
    assert (opened.folder / "notes/log").read_text() == f"password {MASK}\n"
    assert receipt.message == "secrets masked"


def test_a_text_that_is_too_large_to_search_is_said_to_be_unsearched(
    opened: bundle.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "LARGEST_TEXT_BYTES", 1 << 20)
    (tmp_path / "log").write_text("hunter2\n" * 200_000)
    assert opened.add(tmp_path / "log", "notes/log").message == (
        "over 1 MiB: not searched for secrets"
    )
    (tmp_path / "r.ncu-rep").write_bytes(bytes(2 << 20))
    assert opened.add(tmp_path / "r.ncu-rep", "ncu-profiles/r.ncu-rep").message is None


def test_evidence_is_never_overwritten(opened: bundle.Bundle, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    opened.add(tmp_path / "a", "notes/a")
    (tmp_path / "a").write_text("2")
    with pytest.raises(UsageError, match="already in the bundle"):
        opened.add(tmp_path / "a", "notes/a")
    assert (opened.folder / "notes/a").read_text() == "1"


@pytest.mark.parametrize(
    "inside", ["../x", "/x", "manifest.json", "receipts.jsonl", "commands/01-x.cmd", "a/../../x"]
)
def test_a_file_can_be_added_only_where_it_may_lie(
    opened: bundle.Bundle, tmp_path: Path, inside: str
) -> None:
    (tmp_path / "a").write_text("1")
    with pytest.raises(UsageError, match="no place for a file"):
        opened.add(tmp_path / "a", inside)


def test_a_full_disk_is_told_and_leaves_nothing(
    opened: bundle.Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names(opened.folder)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(CaptureError, match="No space left on device"):
        opened.record("x", ["true"], OK, NOON)
    assert names(opened.folder) == before


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="a file stands where a folder should"):
        a_bundle(tmp_path / "file" / "run")


def test_a_sealed_bundle_is_read_only_and_verifies(opened: bundle.Bundle) -> None:
    opened.record("x", ["true"], OK, NOON)
    manifest = sealing.seal(opened.folder, NOON)
    assert manifest.experiment == "run-1"
    assert [a.path for a in manifest.artifacts] == [
        name for name in names(opened.folder) if name != "manifest.json"
    ]
    writable = [p for p in (opened.folder, *opened.folder.rglob("*")) if p.stat().st_mode & 0o222]
    assert writable == []
    assert sealing.verify(opened.folder) == (manifest, ())


def test_a_sealed_bundle_takes_nothing_more(opened: bundle.Bundle, tmp_path: Path) -> None:
    sealing.seal(opened.folder, NOON)
    for act in (
        lambda: opened.record("x", ["true"], OK, NOON),
        lambda: opened.add(Path(__file__), "notes/x"),
        lambda: opened.write("summary.md", "x"),
        lambda: bundle.open_bundle(opened.folder, a_redactor(), lambda: NOON),
    ):
        with pytest.raises(UsageError, match="sealed"):
            act()
    assert sealing.verify(opened.folder)[1] == ()


def change_content(folder: Path) -> None:
    text = (folder / "summary.md").read_text()
    (folder / "summary.md").write_text(text.replace("DRAFT", "DRAFU"))


def to_link(folder: Path) -> None:
    (folder / "summary.md").rename(folder.parent / "elsewhere")
    (folder / "summary.md").symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    ("tamper", "kind", "path"),
    [
        (change_content, ChangeKind.CHANGED, "summary.md"),
        (lambda f: (f / "summary.md").unlink(), ChangeKind.MISSING, "summary.md"),
        (lambda f: (f / "commands/extra").write_text(""), ChangeKind.EXTRA, "commands/extra"),
        (to_link, ChangeKind.CHANGED, "summary.md"),
    ],
)
def test_verify_finds_what_was_done_to_a_bundle(
    opened: bundle.Bundle, tamper: Callable[[Path], object], kind: ChangeKind, path: str
) -> None:
    sealing.seal(opened.folder, NOON)
    unlock(opened.folder)
    tamper(opened.folder)
    (change,) = sealing.verify(opened.folder)[1]
    assert (change.kind, change.path) == (kind, path)


def test_a_changed_bundle_cannot_be_sealed_anew(opened: bundle.Bundle) -> None:
    sealing.seal(opened.folder, NOON)
    unlock(opened.folder)
    change_content(opened.folder)
    with pytest.raises(UsageError, match="1 files differ"):
        sealing.seal(opened.folder, NOON)


def test_sealing_again_finishes_what_a_crash_left(opened: bundle.Bundle) -> None:
    first = sealing.seal(opened.folder, NOON)
    unlock(opened.folder)
    assert sealing.seal(opened.folder, datetime.now(UTC)) == first
    assert not (opened.folder / "summary.md").stat().st_mode & 0o222


def test_an_unfinished_command_is_not_sealed(opened: bundle.Bundle) -> None:
    opened.record("x", ["true"], OK, NOON)
    (opened.folder / "commands/01-x.exit").unlink()
    with pytest.raises(UsageError, match="never ended"):
        sealing.seal(opened.folder, NOON)


def test_a_link_is_not_sealed(opened: bundle.Bundle) -> None:
    (opened.folder / "notes").symlink_to("/etc")
    with pytest.raises(UsageError, match="plain files only"):
        sealing.seal(opened.folder, NOON)


def test_a_broken_manifest_is_named(opened: bundle.Bundle) -> None:
    sealing.seal(opened.folder, NOON)
    unlock(opened.folder)
    (opened.folder / "manifest.json").write_text("{")
    with pytest.raises(CaptureError, match="manifest cannot be read"):
        sealing.verify(opened.folder)


def test_a_manifest_of_another_kind_is_not_guessed_at(opened: bundle.Bundle) -> None:
    manifest = sealing.seal(opened.folder, NOON)
    unlock(opened.folder)
    text = (opened.folder / "manifest.json").read_text().replace(manifest.schema, "other/9")
    (opened.folder / "manifest.json").write_text(text)
    with pytest.raises(CaptureError, match="other/9"):
        sealing.verify(opened.folder)


def test_an_unsealed_bundle_cannot_be_verified(opened: bundle.Bundle, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not sealed"):
        sealing.verify(opened.folder)
    with pytest.raises(UsageError, match="no evidence bundle"):
        sealing.verify(tmp_path)


def test_a_line_that_is_no_receipt_is_named(opened: bundle.Bundle) -> None:
    opened.record("x", ["true"], OK, NOON)
    with (opened.folder / "receipts.jsonl").open("a") as log:
        log.write("{}\n")
    with pytest.raises(CaptureError, match=r"receipts\.jsonl:2"):
        receipts.read(opened.folder)


def test_a_receipt_survives_the_round_trip(opened: bundle.Bundle) -> None:
    _, receipt = opened.record("x", ["true"], OK, NOON)
    failed = replace(receipt, step="apply", is_ok=False, message="quota", objects=("job/x",))
    opened.receipt(failed)
    assert receipts.read(opened.folder) == (receipt, failed)
    opened.receipt(replace(failed, objects=("job/x", "pod/x-1")))
    text = (opened.folder / "SOURCE.md").read_text()
    assert text.endswith("\n## Cluster objects made\n\n- job/x\n- pod/x-1\n")
    assert text.startswith("# Source of run-1\n")


KILLED_AT = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from solscope.evidence import bundle, files
from solscope.evidence.redaction import Redactor
from solscope.evidence.running import Finished
from solscope.model.evidence import BundleSource

left = int(sys.argv[2])

def counted(real):
    def act(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    return act

for name in ("write", "link", "fsync", "replace", "rename"):
    setattr(os, name, counted(getattr(os, name)))
redactor = Redactor(lambda t: t, lambda n: False)
now = lambda: datetime(2026, 1, 2, tzinfo=UTC)
source = BundleSource(experiment="e", family="f")
opened = bundle.init(Path(sys.argv[1]), source, redactor, now)
opened.record("one", ["true"], Finished(stdout=b"x" * 9, stderr=b"", exit_code=0), now())
opened.write("summary.md", "new\\n")
"""


def test_a_crash_at_any_system_call_leaves_no_half_file(tmp_path: Path) -> None:
    whole = {b"", b"x" * 9, b"0\n", b"true\n", b"new\n"}
    untouched = a_bundle(tmp_path / "whole")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = 0
    for at in range(1, 60, 3):
        folder = tmp_path / str(at) / "run"
        folder.parent.mkdir()
        command = [sys.executable, "-c", KILLED_AT, str(folder), str(at)]
        code = subprocess.run(command, env=env, check=False, capture_output=True).returncode
        assert code in (0, -signal.SIGKILL)
        if code == 0:
            ended += 1
        if not folder.exists():
            continue
        for path in files.entries(folder):
            if path.name.startswith(files.PART):
                continue
            data = path.read_bytes()
            same = (untouched.folder / path.relative_to(folder)).exists()
            assert data in whole or same or path.name == "receipts.jsonl", path
        receipts.read(folder)
    assert ended > 0


def test_two_writers_number_their_commands_apart(opened: bundle.Bundle) -> None:
    import threading

    threads = [
        threading.Thread(target=opened.record, args=("x", ["true"], OK, NOON)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(receipts.read(opened.folder)) == 8
    assert len(list((opened.folder / "commands").iterdir())) == 32


def test_a_command_that_cannot_start_ends_with_127() -> None:
    done = run(["/no/such/program"])
    assert (done.exit_code, done.stdout) == (127, b"")
    assert b"No such file" in done.stderr


def test_a_command_that_a_signal_ends_has_128_and_the_signal() -> None:
    assert run(["sh", "-c", "kill -TERM $$"]).exit_code == 128 + 15


def ask(action: str, folder: Path, *words: str, **options: object) -> Outcome:
    request = BundleRequest(action=action, folder=str(folder), words=words, **options)
    return verb(request, World(now=lambda: NOON))


def test_the_verb_goes_from_init_to_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "a-planted-token")
    folder = tmp_path / "attention" / "run-7"
    ask("init", folder, intent="see a-planted-token")
    assert "- family: attention\n" in (folder / "SOURCE.md").read_text()
    script = "echo $HF_TOKEN; exit 4"
    recorded = ask("record", folder, "ask", "sh", "-c", script)
    assert recorded.exit_code == 1
    assert "01-ask: exit 4" in recorded.text
    sealed = ask("seal", folder)
    digest = sealed.text.split()[-1]
    assert ask("verify", folder, manifest_sha256=digest).exit_code == 0
    assert ask("verify", folder, manifest_sha256="0" * 64).exit_code == 1
    everything = b"".join(path.read_bytes() for path in files.entries(folder))
    assert b"a-planted-token" not in everything


def test_the_verb_says_what_changed(tmp_path: Path) -> None:
    folder = tmp_path / "attention" / "run-7"
    ask("init", folder)
    ask("seal", folder)
    unlock(folder)
    (folder / "summary.md").unlink()
    told = ask("verify", folder)
    assert told.exit_code == 1
    assert "missing  summary.md" in told.text


@pytest.mark.parametrize("words", [(), ("step",)])
def test_nothing_to_record_is_an_error_of_usage(tmp_path: Path, words: tuple[str, ...]) -> None:
    ask("init", tmp_path / "b")
    with pytest.raises(UsageError, match="nothing to record"):
        ask("record", tmp_path / "b", *words)


def test_the_commit_is_read_from_git_s_own_files(tmp_path: Path) -> None:
    assert commit_of(Path("/")) is None
    git = tmp_path / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack\n{'a' * 40} refs/heads/main\n")
    assert commit_of(tmp_path) == "a" * 40
    (git / "HEAD").write_text("b" * 40 + "\n")
    assert commit_of(tmp_path) == "b" * 40


def test_a_step_without_a_proper_name_is_refused_before_its_command_runs(
    opened: bundle.Bundle, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    words = ("Long-Run", "touch", str(made))
    request = BundleRequest(action="record", folder=str(opened.folder), words=words)
    with pytest.raises(UsageError, match="a step cannot be called 'Long-Run'"):
        verb(request, World())
    assert not made.exists()


def test_an_interrupted_command_is_recorded_with_what_it_had_said(
    opened: bundle.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said"
    real = subprocess.Popen.wait

    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        """Ctrl-C reaches the command and who waits for it."""
        monkeypatch.setattr(subprocess.Popen, "wait", real)
        while not said.exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    script = f"echo half; touch {said}; exec sleep 600"
    words = ("long", "env", "--default-signal=INT", "sh", "-c", script)
    request = BundleRequest(action="record", folder=str(opened.folder), words=words)
    with pytest.raises(KeyboardInterrupt):
        verb(request, World())
    (receipt,) = receipts.read(opened.folder)
    assert (receipt.step, receipt.exit_status) == ("01-long", 130)
    assert (opened.folder / "commands/01-long.stdout").read_text() == "half\n"


def test_a_document_is_masked_text_by_text_and_can_be_read_again(opened: bundle.Bundle) -> None:
    document = {
        "script": 'export A="hunter2" && exec server',
        "token": "x",
        "rest": [1, None, {"token": {"name": "hunter2"}}],
    }
    opened.write_document("notes/x.json", json.dumps(document))
    assert json.loads((opened.folder / "notes/x.json").read_text()) == {
        "script": f'export A="{MASK}" && exec server',
        "token": MASK,
        "rest": [1, None, {"token": {"name": MASK}}],
    }


def test_a_folder_that_cannot_be_locked_itself_is_locked_all_the_same(
    opened: bundle.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    real = fcntl.flock

    def as_nfs_does(handle: int, how: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", as_nfs_does)
    opened.record("x", ["true"], OK, NOON)
    with files.claimed(opened.folder) as first, files.claimed(opened.folder) as second:
        assert (first, second) == (True, False)
    with files.claimed(opened.folder) as again:
        assert again
    sealing.seal(opened.folder, NOON)
    assert sealing.verify(opened.folder)[1] == ()
