"""The stand-in engine and profiler behave as the recorded facts say."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

STANDIN = Path(__file__).parent / "standin"
ENGINE = [sys.executable, str(STANDIN / "engine.py"), "serve", "tiny"]
NCU = [sys.executable, str(STANDIN / "ncu.py")]
CUDA = ["--profiler-config.profiler=cuda"]


class Running:
    """A process, its port and what it has printed."""

    def __init__(self, command: list[str], port: int, log: Path, **env: str) -> None:
        self.port, self.log = port, log
        with log.open("wb") as sink:
            environment = {**os.environ, "STANDIN_LOAD_S": "0", **env}
            self.process = subprocess.Popen(
                command, stdout=sink, stderr=subprocess.STDOUT, env=environment
            )

    def ask(
        self, path: str, body: object = None, kind: str = "application/json"
    ) -> tuple[int, str]:
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data, {"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()

    def ready(self) -> None:
        self.until(lambda: self.ask("/health"))

    def says(self, text: str) -> None:
        """Wait until its output holds a text."""
        self.until(lambda: text in self.log.read_text())

    def until(self, holds: Callable[[], object]) -> None:
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            with contextlib.suppress(OSError):
                if holds():
                    return
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def end(self) -> str:
        self.process.terminate()
        self.process.wait(60)
        return self.log.read_text()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def begin(before: list[str], *arguments: str, **env: str) -> Running:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [*before, *ENGINE, "--port", str(port), *arguments]
        running.append(Running(command, port, tmp_path / f"{len(running)}.log", **env))
        return running[-1]

    yield begin
    for one in running:
        # A profiler that is killed at once would leave the engine that it started behind.
        one.process.terminate()
        try:
            one.process.wait(5)
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.wait()


def test_profile_routes_are_absent_unless_a_profiler_was_configured(
    start: Callable[..., Running],
) -> None:
    plain, with_cuda = start([]), start([], *CUDA)
    for engine in (plain, with_cuda):
        engine.ready()
    assert plain.ask("/start_profile", {})[0] == 404
    assert with_cuda.ask("/start_profile", {})[0] == 200


def test_counters_move_with_requests_and_rest_without(start: Callable[..., Running]) -> None:
    engine = start([])
    engine.ready()
    engine.ask("/v1/completions", {"prompt": "a", "max_tokens": 7})
    text = engine.ask("/metrics")[1]
    assert 'vllm:generation_tokens_total{engine="0",model_name="tiny"} 7.0' in text
    assert engine.ask("/metrics")[1] == text


def test_the_model_is_listed_under_its_served_name_and_no_other_is_there(
    start: Callable[..., Running],
) -> None:
    engine = start([], "--served-model-name", "chat", "--max-model-len", "4096")
    engine.ready()
    (model,) = json.loads(engine.ask("/v1/models")[1])["data"]
    assert (model["id"], model["root"], model["max_model_len"]) == ("chat", "tiny", 4096)
    ask = {"prompt": [7, 8, 9], "max_tokens": 1}
    assert engine.ask("/v1/completions", {**ask, "model": "other"})[0] == 404
    assert engine.ask("/v1/completions", ask, kind="text/plain")[0] == 400
    code, text = engine.ask("/v1/completions", {**ask, "model": "chat"})
    assert (code, json.loads(text)["usage"]["prompt_tokens"]) == (200, 3)


def test_the_child_has_its_title_as_its_whole_command_line(start: Callable[..., Running]) -> None:
    engine = start([])
    engine.ready()
    pid = engine.process.pid
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert Path(f"/proc/{child}/cmdline").read_bytes() == b"VLLM::EngineCore\0"
    assert Path(f"/proc/{child}/comm").read_text() == "VLLM::EngineCor\n"


def profile(
    start: Callable[..., Running], output: Path, *options: str, opens: bool = True, **env: str
) -> str:
    """Profile the engine through one request in a window; gives ncu's output."""
    window = ("--profile-from-start", "off", "-k", "regex:rms_norm")
    engine = start([*NCU, *window, "-o", str(output), *options], *CUDA, **env)
    engine.ready()
    engine.ask("/v1/completions", {"prompt": "before", "max_tokens": 2})
    if opens:
        engine.ask("/start_profile", {})
    # A failing profiler may take the engine down in the middle of this.
    with contextlib.suppress(OSError, http.client.HTTPException):
        engine.ask("/v1/completions", {"prompt": "in", "max_tokens": 3})
        engine.ask("/stop_profile", {})
    # What was launched in the window is profiled after the engine's end, too.
    return engine.end()


def test_ncu_profiles_the_wanted_kernels_of_the_window(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    ready = tmp_path / "ready.ncu-rep"
    ready.write_bytes(b"NVR\0 made elsewhere")
    text = profile(start, tmp_path / "out", "-c", "5", "--report-from", str(ready))
    # Three tokens launch the kernel three times; the two before the window do not count.
    assert text.count("==PROF== Profiling") == 3
    # The server's own lines may stand between these, as they do with the real one.
    assert '==PROF== Profiling "rms_norm_kernel" - 0: 0%' in text
    assert text.count("100% - 8 passes\n") == 3
    assert (tmp_path / "out.ncu-rep").read_bytes() == ready.read_bytes()


def test_ncu_profiles_nothing_while_the_window_is_shut(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    text = profile(start, tmp_path / "out", opens=False)
    assert "==WARNING== No kernels were profiled." in text
    assert not (tmp_path / "out.ncu-rep").exists()


@pytest.mark.parametrize(("from_start", "profiled"), [("on", 2), ("off", 0)])
def test_without_a_profiler_in_the_engine_the_window_is_ncu_s_alone(
    start: Callable[..., Running], from_start: str, profiled: int
) -> None:
    engine = start([*NCU, "--profile-from-start", from_start, "-k", "regex:rms_norm"])
    engine.ready()
    engine.ask("/v1/completions", {"prompt": "a", "max_tokens": 2})
    assert engine.end().count("==PROF== Profiling") == profiled


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ("permission", "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"),
        ("driver-busy", "==ERROR== Profiling failed because a driver resource was unavailable."),
        ("memory", "==ERROR== Unhandled C++ exception: bad allocation"),
        ("no-kernels", "==WARNING== No kernels were profiled."),
        ("device-error", "==ERROR== Unknown Error on device 0."),
    ],
)
def test_ncu_fails_in_its_own_words(
    start: Callable[..., Running], tmp_path: Path, failure: str, message: str
) -> None:
    assert message in profile(start, tmp_path / "out", STANDIN_NCU_FAIL=failure)


def test_ncu_s_report_can_be_cut(start: Callable[..., Running], tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    ready.write_bytes(bytes(1000))
    options = ("--report-from", str(ready))
    profile(start, tmp_path / "out", *options, STANDIN_NCU_FAIL="truncated")
    assert (tmp_path / "out.ncu-rep").stat().st_size == 500


def test_an_unknown_option_is_refused_as_ncu_refuses_it() -> None:
    done = subprocess.run([*NCU, "--attach", "1"], capture_output=True, text=True, check=False)
    text = "==ERROR== unrecognised option '--attach'. Use --help for further details.\n"
    assert (done.stdout, done.returncode) == (text, 1)


def test_a_program_launched_to_be_attached_starts_with_the_attaching(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    engine = start([*NCU, "--mode", "launch", "--port", port])
    engine.says("Waiting for profiler to attach")
    with pytest.raises(OSError, match="refused"):
        engine.ask("/health")
    command = [*NCU, "--mode", "attach", "--port", port, "-c", "1", "-o", str(tmp_path / "a")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tool:
        engine.ready()
        engine.ask("/v1/completions", {"prompt": "a", "max_tokens": 1})
        assert tool.stdout is not None
        assert "==PROF== Profiling" in tool.stdout.read()
    assert (tmp_path / "a.ncu-rep").exists()


def test_launches_in_a_range_are_told_from_those_outside(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    def profiled(*options: str) -> int:
        command = [*NCU, "-k", "regex:rms_norm", "-o", str(tmp_path / "n"), "-f", *options]
        engine = start(command, STANDIN_NVTX="decode")
        engine.ready()
        engine.ask("/v1/completions", {"prompt": "a", "max_tokens": 4})
        return engine.end().count("100% - 8 passes")

    assert profiled() == 4
    assert profiled("--nvtx", "--nvtx-include", "decode/") == 3
    assert profiled("--nvtx", "--nvtx-include", "decode") == 0  # no push/pop range without a slash
    assert profiled("--nvtx-include", "decode/") == 4  # and no filter at all without --nvtx


def test_each_kernel_is_counted_for_itself_where_asked(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    options = ("-c", "2", "--filter-mode", "per-launch-config", "-o", str(tmp_path / "n"))
    engine = start([*NCU, *options])
    engine.ready()
    engine.ask("/v1/completions", {"prompt": "a", "max_tokens": 4})
    assert engine.end().count("100% - 8 passes") == 2 * 3


@pytest.mark.parametrize(
    ("fault", "said"),
    [("", "100% - 8 passes"), ("permission", "ERR_NVGPUCTRPERM"), ("hang", "100% - 8 passes")],
)
def test_a_control_probe_tells_only_whether_counters_can_be_read(fault: str, said: str) -> None:
    program = "kernel = 'solscope_probe'"
    command = [*NCU, "--metrics", "a", "-c", "1", "python3", "-c", program]
    env = {**os.environ, "STANDIN_NCU_FAIL": fault}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert said in done.stdout


def test_sglang_s_window_opens_for_the_cuda_profiler_only(tmp_path: Path) -> None:
    link = tmp_path / "sglang"
    link.symlink_to(STANDIN / "engine.py")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(link), "serve", "--port", str(port)]
    engine = Running(command, port, tmp_path / "log", STANDIN_WINDOW=str(tmp_path))
    try:
        engine.ready()
        for body, opened in (({}, False), ({"activities": ["CUDA_PROFILER"]}, True)):
            assert engine.ask("/start_profile", body)[0] == 200
            assert (tmp_path / "open").exists() is opened
            engine.ask("/stop_profile", {})
    finally:
        engine.end()
