"""A stand-in for ``vllm serve``: the routes, metrics, process titles and slowness, no model.

Runs inside containers of the test cluster; standard library only. What it answers follows facts
recorded from vLLM 0.32: HTTP starts only after loading; ``/start_profile`` and
``/stop_profile`` are 404 unless a profiler was configured; children carry their titles as
their whole command line. Called ``sglang`` or ``trtllm-serve`` it has the profiler routes of
those: SGLang's are always there, and open a window only where asked for CUDA_PROFILER (the
default is torch's profiler); TensorRT-LLM has none.

Environment (all optional): STANDIN_LOAD_S seconds of loading, STANDIN_CRASH_AFTER requests that
it answers before it falls, STANDIN_TOKEN_S seconds a token, STANDIN_KERNELS comma-separated kernel
names, STANDIN_NVTX the NVTX range around all but a request's first token, STANDIN_TELLS names of
variables that it prints with their values, as careless servers do. A profiler sets STANDIN_WINDOW:
a folder where ``open`` lies while a profiling window is open, and where ``launches`` gets a line
for each kernel launch in it: NVTX range, tab, name.
"""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

VERSION = "0.32.0"
KERNELS = (
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(Flash_fwd_params)",
    "nvjet_tst_64x8_64x16_4x1_v_bz_TNT",
    "void vllm::rms_norm_kernel<__nv_bfloat16>(__nv_bfloat16*, const __nv_bfloat16*, float, int)",
)


class Engine:
    """What the engine knows of itself."""

    def __init__(self, argv: list[str]) -> None:
        self.arguments = argv
        self.flavour = os.path.basename(sys.argv[0])
        self.model = next((a for a in argv if not a.startswith("-")), "stand-in")
        self.served = self._value("--served-model-name") or self.model
        default = 30000 if self.flavour == "sglang" else 8000
        self.port = int(self._value("--port") or default)
        self.host = self._value("--host") or "127.0.0.1"
        self.key = self._value("--api-key") or os.environ.get("VLLM_API_KEY")
        self.window = os.environ.get("STANDIN_WINDOW", "")
        self.kernels = os.environ.get("STANDIN_KERNELS", "").split(",")
        self.kernels = [name for name in self.kernels if name] or list(KERNELS)
        self.lock = threading.Lock()
        self.running = self.prompt = self.generated = self.succeeded = 0
        self.created = time.time()

    def _value(self, flag: str) -> str | None:
        for index, part in enumerate(self.arguments):
            if part == flag and index + 1 < len(self.arguments):
                return self.arguments[index + 1]
            if part.startswith(flag + "="):
                return part.split("=", 1)[1]
        return None

    @property
    def profiler(self) -> str | None:
        """The configured profiler: ``cuda``, ``torch`` or none."""
        if self.flavour == "sglang":
            return "cuda"
        for part in self.arguments:
            if part.startswith("--profiler-config.profiler="):
                return part.split("=", 1)[1]
        text = self._value("--profiler-config.profiler")
        if text:
            return text
        config = self._value("--profiler-config")
        return json.loads(config).get("profiler") if config else None

    def metrics(self) -> str:
        """The series that tell load, idleness and the cache, under vLLM's names and labels."""
        model = f'model_name="{self.served}"'
        label = f'engine="0",{model}'
        lines: list[str] = []

        def put(name: str, kind: str, values: dict[str, float]) -> None:
            lines.append(f"# TYPE vllm:{name} {kind}")
            lines.extend(f"vllm:{name}{{{labels}}} {float(v)}" for labels, v in values.items())
            if kind == "counter":
                born = f"{name.removesuffix('_total')}_created"
                put(born, "gauge", dict.fromkeys(values, self.created))

        put("num_requests_running", "gauge", {label: self.running})
        put("num_requests_waiting", "gauge", {label: 0})
        waiting = {f'{label},reason="{reason}"': 0.0 for reason in ("capacity", "deferred")}
        put("num_requests_waiting_by_reason", "gauge", waiting)
        states = {"awake": 1.0, "weights_offloaded": 0.0, "discard_all": 0.0}
        sleep = {f'{label},sleep_state="{state}"': v for state, v in states.items()}
        put("engine_sleep_state", "gauge", sleep)
        put("kv_cache_usage_perc", "gauge", {label: 0.0})
        put("prompt_tokens_total", "counter", {label: self.prompt})
        put("generation_tokens_total", "counter", {label: self.generated})
        ends = dict.fromkeys(("stop", "length", "abort", "error", "repetition"), 0)
        ends["length"] = self.succeeded
        done = {f'engine="0",finished_reason="{end}",{model}': v for end, v in ends.items()}
        put("request_success_total", "counter", done)
        share = self._value("--gpu-memory-utilization") or "0.92"
        cache = f'block_size="16",engine="0",gpu_memory_utilization="{share}"'
        put("cache_config_info", "gauge", {f'{cache},num_gpu_blocks="32768"': 1.0})
        return "\n".join(lines) + "\n"

    def models(self) -> dict:
        """The one served model."""
        longest = self._value("--max-model-len") or ""
        model = {
            "id": self.served,
            "object": "model",
            "created": int(time.time()),
            "owned_by": "vllm",
            "root": self.model,
            "parent": None,
            "max_model_len": int(longest) if longest.isdigit() else 32768,
            "permission": [],
        }
        return {"object": "list", "data": [model]}

    def complete(self, body: dict) -> dict:
        """Answer a completion after the time that its tokens take."""
        tokens = int(body.get("max_tokens") or 16)
        prompt = body.get("prompt") or body.get("messages") or ""
        ids = isinstance(prompt, list) and all(isinstance(token, int) for token in prompt)
        length = len(prompt) if ids else len(json.dumps(prompt)) // 4 + 1
        with self.lock:
            self.running += 1
        time.sleep(tokens * float(os.environ.get("STANDIN_TOKEN_S", "0.001")))
        self._launch(tokens)
        with self.lock:
            self.running -= 1
            self.prompt += length
            self.generated += tokens
            self.succeeded += 1
            if self.succeeded == int(os.environ.get("STANDIN_CRASH_AFTER", "0")):
                print("torch.OutOfMemoryError: CUDA out of memory.", flush=True)
                os._exit(1)
        usage = {"prompt_tokens": length, "completion_tokens": tokens}
        usage["total_tokens"] = length + tokens
        choice = {"index": 0, "text": "x" * tokens, "logprobs": None, "finish_reason": "length"}
        return {
            "id": f"cmpl-{self.succeeded}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": self.served,
            "choices": [choice],
            "usage": usage,
        }

    def _launch(self, tokens: int) -> None:
        if not self.window or not os.path.exists(os.path.join(self.window, "open")):
            return
        with self.lock, open(os.path.join(self.window, "launches"), "a") as log:
            for token in range(tokens):
                around = os.environ.get("STANDIN_NVTX", "") if token else ""
                log.writelines(f"{around}\t{name}\n" for name in self.kernels)

    def set_window(self, *, is_open: bool) -> None:
        """What cudaProfilerStart and cudaProfilerStop do."""
        if not self.window:
            return
        path = os.path.join(self.window, "open")
        if is_open:
            with open(path, "w"):
                pass
        elif os.path.exists(path):
            os.remove(path)


class Handler(http.server.BaseHTTPRequestHandler):
    """vLLM's routes."""

    protocol_version = "HTTP/1.1"
    engine: Engine

    def log_message(self, text: str, *args: object) -> None:
        """Access log, as uvicorn has it."""
        print(f'INFO:     127.0.0.1:0 - "{text % args}"', flush=True)

    def _send(self, code: int, body: object) -> None:
        is_text = isinstance(body, str)
        data = body.encode() if is_text else json.dumps(body).encode()
        self.send_response(code)
        kind = "text/plain; version=1.0.0; charset=utf-8" if is_text else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _allowed(self, path: str) -> bool:
        key = self.engine.key
        return not (key and path.startswith("/v1")) or (
            self.headers.get("Authorization") == f"Bearer {key}"
        )

    def _complete(self, raw: bytes) -> None:
        if self.headers.get_content_type() != "application/json":
            self._refuse(400, "BadRequestError", "only application/json is taken")
            return
        body, served = json.loads(raw or b"{}"), self.engine.served
        if body.get("model") in (None, served):
            self._send(200, self.engine.complete(body))
        else:
            self._refuse(404, "NotFoundError", f"no model {body['model']!r} here, only {served!r}")

    def _refuse(self, code: int, kind: str, message: str) -> None:
        error = {"message": message, "type": kind, "param": None, "code": code}
        self._send(code, {"error": error})

    def answer(self) -> None:
        """Answer any request."""
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        path, engine = self.path.split("?")[0], self.engine
        if not self._allowed(path):
            self._send(401, {"error": "Unauthorized"})
        elif self.command == "GET" and path in ("/health", "/ping"):
            self._send(200, "")
        elif self.command == "GET" and path == "/version":
            self._send(200, {"version": VERSION})
        elif self.command == "GET" and path == "/load":
            self._send(200, {"server_load": engine.running})
        elif self.command == "GET" and path == "/metrics":
            self._send(200, engine.metrics())
        elif self.command == "GET" and path == "/v1/models":
            self._send(200, engine.models())
        elif self.command == "POST" and path in ("/v1/completions", "/v1/chat/completions"):
            self._complete(raw)
        elif self.command == "POST" and path in ("/start_profile", "/stop_profile"):
            if engine.profiler is None or engine.flavour == "trtllm-serve":
                self._send(404, {"detail": "Not Found"})
            else:
                opens = path == "/start_profile"
                if engine.flavour == "sglang" and opens:
                    wanted = json.loads(raw or b"{}").get("activities") or ["CPU", "GPU"]
                    opens = "CUDA_PROFILER" in wanted
                engine.set_window(is_open=opens)
                self._send(200, "")
        else:
            self._send(404, {"detail": "Not Found"})


def titled(title: str, folder: str) -> subprocess.Popen[bytes]:
    """A child whose whole command line is its title, as setproctitle leaves it.

    ``cat`` under another name: it ends when this process does, because its input then ends.
    """
    link = os.path.join(folder, title)
    os.symlink("/bin/cat", link)
    return subprocess.Popen([title], executable=link, stdin=subprocess.PIPE)


def main() -> int:
    """Load, serve, end on SIGTERM."""
    argv = sys.argv[1:]
    engine = Engine(argv[1:] if argv[:1] == ["serve"] else argv)
    said = f"(APIServer pid={os.getpid()}) INFO {time.strftime('%m-%d %H:%M:%S')} [api_utils.py:1]"
    print(f"{said} version {VERSION}", flush=True)
    print(f"{said} non-default args: {engine.arguments}", flush=True)
    for name in os.environ.get("STANDIN_TELLS", "").split(","):
        if name:
            print(f"INFO loaded {os.environ.get(name)}, {name}={os.environ.get(name)}", flush=True)
    if os.environ.get("VLLM_PORT", "").startswith("tcp://"):
        # A Service called vllm injects this; the real server refuses to start, too.
        print(f"ValueError: VLLM_PORT '{os.environ['VLLM_PORT']}' appears to be a URI", flush=True)
        return 1
    children = [titled("VLLM::EngineCore", tempfile.mkdtemp())]

    def end(*_: object) -> None:
        for child in children:
            child.kill()
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    time.sleep(float(os.environ.get("STANDIN_LOAD_S", "0.2")))
    methods = {"do_GET": Handler.answer, "do_POST": Handler.answer, "engine": engine}
    bound = type("BoundHandler", (Handler,), methods)
    print("INFO:     Application startup complete.", flush=True)
    http.server.ThreadingHTTPServer((engine.host, engine.port), bound).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
