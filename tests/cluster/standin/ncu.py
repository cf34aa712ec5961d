"""A stand-in for ``ncu``: options, waiting, messages and failures of the real one, no GPU.

Runs inside containers of the test cluster; standard library only. It starts the program after
its options with STANDIN_WINDOW set: a folder where a file ``open`` lies while launches count, from
the start or, with ``--profile-from-start off``, from the program's cudaProfilerStart on. It sees
the launches that the program notes there (the stand-in engine, or the real one through
``realengine/cuda.py``), prints what ncu prints, and in the end copies a ready report to ``-o``.

``--report-from FILE`` (or STANDIN_NCU_REPORT) names that report, or a folder with one for each
kernel, called by the function; without it eight bytes are written that begin like a report and
hold nothing. STANDIN_NCU_FAIL makes it fail as the real
one does: permission, driver-busy, no-kernels, device-error, memory, hang, truncated, no-driver.
STANDIN_NCU_PASSES and STANDIN_NCU_PASS_S say how many passes a kernel takes, and how long each.

A program that would launch one empty kernel through the driver (a control probe) is not run, as
there is no driver: its launch is seen, unless STANDIN_NO_CUDA is set.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

VERSION = "2026.2.1.0"
BASE_PORT = 49152
VALUED = {
    "-k": "kernel",
    "--kernel-name": "kernel",
    "-c": "count",
    "--launch-count": "count",
    "-s": "skip",
    "--launch-skip": "skip",
    "-o": "output",
    "--export": "output",
    "--profile-from-start": "from_start",
    "--kill": "kill",
    "--mode": "mode",
    "--hostname": "hostname",
    "--port": "port",
    "--report-from": "report",
    "--log-file": "log",
}
OTHERS = (
    "--set",
    "--section",
    "--metrics",
    "--target-processes",
    "--replay-mode",
    "--graph-profiling",
    "--clock-control",
    "--cache-control",
    "--config-file",
    "--kernel-name-base",
    "--filter-mode",
    "--target-processes-filter",
    "--check-exit-code",
    "--max-connections",
    "--kernel-id",
    "--range-filter",
    "--pipeline-boost-state",
)
FLAGS = ("-f", "--force-overwrite", "--nvtx", "--verbose", "--csv", "--quiet")
FLAGS += ("--disable-extra-suffixes",)
PERMISSION = (
    "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
    "Counters on the target device 0. For instructions on enabling permissions and to get more "
    "information see https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)
PROBE = "solscope_probe"
BUSY = (
    "Profiling failed because a driver resource was unavailable. Ensure that no other tool "
    "(like DCGM) is concurrently collecting profiling data."
)


class Options:
    """The command line. Raises SystemExit as ncu does for what it does not know."""

    def __init__(self, argv: list[str]) -> None:
        self.values = {"from_start": "on", "kill": "off", "mode": "launch-and-attach"}
        self.values |= {"hostname": "localhost", "port": str(BASE_PORT)}
        self.force = False
        self.nvtx = False
        self.ranges: list[str] = []
        self.program: list[str] = []
        index = 0
        while index < len(argv):
            part, joined, value = argv[index].partition("=")
            if not part.startswith("-"):
                self.program = argv[index:]
                break
            if part in VALUED or part in OTHERS or part == "--nvtx-include":
                if not joined:
                    index += 1
                    value = argv[index] if index < len(argv) else ""
                if part == "--nvtx-include":
                    self.ranges.append(value)
                else:
                    self.values[VALUED.get(part, part)] = value
            elif part in FLAGS:
                self.force |= part in ("-f", "--force-overwrite")
                self.nvtx |= part == "--nvtx"
            else:
                say("ERROR", f"unrecognised option '{part}'. Use --help for further details.")
                raise SystemExit(1)
            index += 1

    def wanted(self, name: str, around: str = "") -> bool:
        """Whether a launch passes ``-k`` (by the function's name, exact or ``regex:``) and,
        where NVTX is on, lies in one of the included push/pop ranges."""
        if self.nvtx and self.ranges and f"{around}/" not in self.ranges:
            return False
        pattern = self.values.get("kernel")
        if pattern is None:
            return True
        base = function_name(name)
        if pattern.startswith("regex:"):
            return re.search(pattern[6:], base) is not None
        return base == pattern


def function_name(name: str) -> str:
    """The bare function of a demangled kernel name."""
    without = re.sub(r"<.*>", "", name.split("(")[0])
    return without.split(" ")[-1].split("::")[-1]


def say(level: str, text: str) -> None:
    """One line as ncu prints it."""
    print(f"=={level}== {text}", flush=True)


class Window:
    """The folder shared with the program: is the window open, which kernels were launched."""

    def __init__(self, *, is_open: bool) -> None:
        self.folder = tempfile.mkdtemp(prefix="ncu-window-")
        self._at = 0
        if is_open:
            with open(os.path.join(self.folder, "open"), "w"):
                pass

    def launches(self) -> list[str]:
        """Names that are new since the last call."""
        path = os.path.join(self.folder, "launches")
        if not os.path.exists(path):
            return []
        with open(path) as log:
            log.seek(self._at)
            text = log.read()
        whole = text[: text.rfind("\n") + 1]
        self._at += len(whole)
        return whole.splitlines()


class Profiler:
    """One session: what was seen, what was profiled, how it ends."""

    def __init__(self, options: Options, pid: int) -> None:
        self.options, self.pid = options, pid
        self.fail = os.environ.get("STANDIN_NCU_FAIL", "")
        self.skip = int(options.values.get("skip", 0))
        self.count = int(options.values["count"]) if "count" in options.values else None
        self._most = float("inf") if self.count is None else self.count
        self.seen: dict[str, int] = {}
        self.profiled = 0
        self.first = ""
        self.broken = False

    def _count(self, key: str) -> int:
        return max(0, self.seen.get(key, 0) - self.skip)

    @property
    def is_full(self) -> bool:
        """Whether the launch count is reached; each kernel's for itself never is."""
        is_each = self.options.values.get("--filter-mode") == "per-launch-config"
        return not is_each and self._count("") >= self._most

    def see(self, line: str) -> None:
        """Take one launch: filter, skip, profile."""
        around, _, name = line.rpartition("\t")
        if self.broken or not self.options.wanted(name, around):
            return
        # Launches are counted together, or each kernel's for itself.
        each = self.options.values.get("--filter-mode") == "per-launch-config"
        key = name if each else ""
        if self.fail == "no-kernels" or self._count(key) >= self._most:
            return
        self.seen[key] = self.seen.get(key, 0) + 1
        if self.seen[key] <= self.skip:
            return
        if self.fail == "permission":
            self._break(PERMISSION)
        elif self.fail == "driver-busy":
            self._break(BUSY)
        elif self.fail == "memory":
            self._break("Unhandled C++ exception: bad allocation")
        elif self.fail == "device-error" and self.profiled == 1:
            self._break("Unknown Error on device 0.")
            say("ERROR", f'Failed to profile "{function_name(name)}" in process {self.pid}')
        else:
            self._profile(name)

    def _break(self, text: str) -> None:
        say("ERROR", text)
        self.broken = True

    def _profile(self, name: str) -> None:
        passes = int(os.environ.get("STANDIN_NCU_PASSES", "8"))
        each = float(os.environ.get("STANDIN_NCU_PASS_S", "0.002"))
        head = f'==PROF== Profiling "{function_name(name)}" - {self.profiled}: 0%'
        sys.stdout.write(head)
        sys.stdout.flush()
        if self.fail == "hang":
            while True:
                time.sleep(1)
        for step in ("....50%", "....100%"):
            time.sleep(passes * each / 2)
            sys.stdout.write(step)
        sys.stdout.write(f" - {passes} passes\n")
        sys.stdout.flush()
        self.profiled += 1
        self.first = self.first or function_name(name)

    def finish(self, program_code: int | None) -> int:
        """Say how it went, write the report, give the exit code."""
        say("PROF", f"Disconnected from process {self.pid}")
        if program_code:
            say("ERROR", f"The application returned an error code ({program_code}).")
        if self.profiled == 0:
            say("WARNING", "No kernels were profiled.")
            return 1 if self.broken or program_code else 0
        if self.broken:
            say("ERROR", "An error occurred while trying to profile.")
        self._write()
        return 1 if self.broken or program_code else 0

    def _write(self) -> None:
        output = self.options.values.get("output")
        if output is None:
            return
        path = expanded(output, self.pid)
        source = self.options.values.get("report") or os.environ.get("STANDIN_NCU_REPORT")
        data = b"NVR\0\0\0\0\0"
        if source and os.path.isdir(source):
            source = os.path.join(source, f"{self.first}.ncu-rep")
        if source:
            with open(source, "rb") as ready:
                data = ready.read()
        if self.fail == "truncated":
            data = data[: len(data) // 2]
        try:
            with open(path, "wb") as report:
                report.write(data)
        except OSError:
            say("ERROR", f"Failed to save the report to file {path}")
            return
        say("PROF", f"Report: {path}")


def expanded(name: str, pid: int) -> str:
    """The macros of ``-o`` put in: %h, %p, %q{ENV}, %i, %%."""

    def one(found: re.Match[str]) -> str:
        text = found.group(0)
        if text.startswith("%q"):
            return os.environ.get(found.group(1), "")
        return {"%h": os.uname().nodename, "%p": str(pid), "%i": "1", "%%": "%"}[text]

    path = re.sub(r"%q\{(\w+)\}|%h|%p|%i|%%", one, name)
    return path if path.endswith(".ncu-rep") else path + ".ncu-rep"


def run(options: Options) -> int:
    """Launch and attach: start the program, profile it, end with it."""
    output = options.values.get("output")
    if output and not options.force and os.path.exists(expanded(output, 0)):
        say("ERROR", f"File {expanded(output, 0)} already exists. Use '-f' for overwriting it.")
        return 1
    if os.environ.get("STANDIN_NCU_FAIL") == "no-driver":
        say("ERROR", "Cuda driver is not compatible with Nsight Compute.")
        return 1
    if shutil.which(options.program[0]) is None:
        name = options.program[0]
        say("ERROR", f"'{name}' does not exist or is not an executable.")
        return 1
    if any(PROBE in word for word in options.program) and not os.environ.get("STANDIN_NO_CUDA"):
        return probe(options)
    window = Window(is_open=options.values["from_start"] != "off")
    with child_of(options.program, window) as child:
        say("PROF", f"Connected to process {child.pid} ({shutil.which(options.program[0])})")
        profiler = Profiler(options, child.pid)
        killed = False
        while child.poll() is None:
            for name in window.launches():
                profiler.see(name)
            ends = profiler.is_full and options.values["kill"] == "on"
            if ends or (profiler.broken and profiler.fail == "device-error"):
                say("PROF", "Trying to shutdown target application")
                child.terminate()
                killed = True
                child.wait()
            time.sleep(0.02)
        for name in window.launches():
            profiler.see(name)
        return profiler.finish(None if killed else max(0, child.returncode))


def probe(options: Options) -> int:
    """What profiling one launch of an empty kernel says."""
    pid = os.getpid()
    say("PROF", f"Connected to process {pid} ({shutil.which(options.program[0])})")
    profiler = Profiler(options, pid)
    if profiler.fail not in ("permission", "driver-busy"):
        profiler.fail = ""
    profiler.see(f"\t{PROBE}")
    return profiler.finish(0)


@contextlib.contextmanager
def child_of(program: list[str], window: Window) -> Iterator[subprocess.Popen[bytes]]:
    """The program with the window in its environment; SIGTERM and SIGINT go on to it."""
    env = dict(os.environ, STANDIN_WINDOW=window.folder)
    child = subprocess.Popen(program, env=env)

    def forward(*_: object) -> None:
        say("PROF", "Received signal - ending profile session.")
        child.terminate()

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        shutil.rmtree(window.folder, ignore_errors=True)


def launch(options: Options) -> int:
    """``--mode launch``: the program starts only when a tool attaches."""
    port = int(options.values["port"])
    with socket.create_server(("127.0.0.1", port)) as listener:
        say("PROF", f"Waiting for profiler to attach on ports {port}-{port + 63}.")
        connection, _ = listener.accept()
    window = Window(is_open=options.values["from_start"] != "off")
    with connection, child_of(options.program, window) as child:
        out = connection.makefile("w")

        def tell(body: object) -> None:
            with contextlib.suppress(OSError):
                out.write(json.dumps(body) + "\n")
                out.flush()

        tell({"pid": child.pid, "program": shutil.which(options.program[0])})
        while child.poll() is None:
            for name in window.launches():
                tell({"launch": name})
            time.sleep(0.02)
        tell({"ended": child.returncode})
        return child.returncode


def attach(options: Options) -> int:
    """``--mode attach``: profile what ``--mode launch`` holds."""
    host, port = options.values["hostname"], int(options.values["port"])
    try:
        connection = socket.create_connection((host, port), 5)
    except OSError:
        say("ERROR", f"No processes found on {host} (ports {port}-{port + 63}).")
        return 1
    profiler = None
    connection.settimeout(None)
    with connection:
        for line in connection.makefile("r"):
            told = json.loads(line)
            if "pid" in told:
                say("PROF", f"Connected to process {told['pid']} ({told['program']})")
                profiler = Profiler(options, told["pid"])
            elif "launch" in told and profiler is not None:
                profiler.see(told["launch"])
                if profiler.is_full:
                    break
    return 1 if profiler is None else profiler.finish(None)


def main() -> int:
    """Do what the options say."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"NVIDIA (R) Nsight Compute Command Line Profiler\nVersion {VERSION} (stand-in)")
        return 0
    options = Options(sys.argv[1:])
    if options.values["mode"] == "attach":
        return attach(options)
    if options.values.get("--clock-control") == "reset":
        return 0
    if not options.program:
        say("ERROR", "No target application specified.")
        return 1
    return launch(options) if options.values["mode"] == "launch" else run(options)


if __name__ == "__main__":
    sys.exit(main())
