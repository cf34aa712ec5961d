"""Every way of starting a server that was met in real manifests, read as the server would."""

from __future__ import annotations

import time
from typing import Any

import pytest

from solscope.capture import engine
from solscope.capture.snapshot import podspec
from solscope.model.cluster import EngineArgs


def read(
    command: list[str] | None = None,
    args: list[str] | None = None,
    *,
    image: str = "example.org/vllm:x",
    env: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
) -> EngineArgs:
    raw: dict[str, Any] = {
        "name": "server",
        "image": image,
        "command": command or [],
        "args": args or [],
        "env": [{"name": k, "value": v} for k, v in (env or {}).items()],
    }
    pod = podspec.pod({"spec": {"containers": [raw]}})
    return engine.from_container(pod.containers[0], files=files)


@pytest.mark.parametrize(
    "command",
    [
        ["vllm", "serve", "org/m"],
        ["/opt/venv/bin/vllm", "serve", "org/m"],
        ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "org/m"],
        ["python", "-u", "-m", "vllm.entrypoints.openai.api_server", "--model=org/m"],
        ["python3", "-m", "vllm.entrypoints.cli.main", "serve", "org/m"],
        ["/usr/bin/python3.12", "/usr/local/bin/vllm", "serve", "org/m"],
        ["env", "A=b", "vllm", "serve", "org/m"],
        ["sh", "-c", "vllm serve org/m"],
        ["/bin/bash", "-lc", "--", "vllm serve org/m"],
        ["bash", "-c", "exec vllm serve org/m"],
        ["bash", "-c", "sleep 5; cd /w && vllm serve \\\n  org/m"],
        ["bash", "-c", "vllm serve org/m > /tmp/log 2>&1 & wait"],
        ["bash", "-ec", 'eval "exec vllm serve org/m $@"', "--"],
        ["bash", "-c", "M=org/m; vllm serve $M"],
        ["bash", "-c", "vllm serve ${MODEL:-org/m}"],
        ["bash", "-c", 'exec "$0" serve org/m', "vllm"],
        ['/bin/bash -c "vllm serve org/m"'],
        ["sh", "-c", "# vllm serve other\r\nvllm serve org/m\r\n"],
    ],
)  # fmt: skip
def test_each_form_of_starting_vllm_gives_the_model(command: list[str]) -> None:
    args = read(command)
    assert (args.engine, args.model) == ("vllm", "org/m")


def test_args_of_a_shell_string_are_found_in_args_too() -> None:
    args = read(["/bin/sh", "-c"], ["vllm serve org/m --max_num_batched_tokens 1024"])
    assert (args.form, args.max_num_batched_tokens) == ("shell", 1024)


def test_the_entrypoint_of_the_servers_own_image_takes_the_args() -> None:
    args = read(None, ["--model", "org/m"], image="vllm/vllm-openai:v0.9.1")
    assert (args.engine, args.form, args.model) == ("vllm", "entrypoint", "org/m")


def test_nothing_but_an_image_of_another_maker_leaves_the_engine_unknown() -> None:
    assert read(image="registry.example/own-server:1").engine is None


def test_args_that_begin_with_serve_are_read_and_doubted() -> None:
    args = read(None, ["serve", "org/m", "--port=8000"], image="vllm/vllm-openai:latest")
    assert (args.model, args.port) == ("org/m", 8000)
    assert "entrypoint" in args.notes[0]


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--tensor-parallel-size", "4"], "tensor_parallel", 4),
        (["--tensor-parallel-size=4"], "tensor_parallel", 4),
        (["--tensor_parallel_size", "4"], "tensor_parallel", 4),
        (["-tp", "4"], "tensor_parallel", 4),
        (["-tp=4"], "tensor_parallel", 4),
        (["-pp", "2"], "pipeline_parallel", 2),
        (["-dp", "8"], "data_parallel", 8),
        (["--enable-expert-parallel"], "expert_parallel", 1),
        (["--max-num-batched-token", "512"], "max_num_batched_tokens", 512),
        (["--max-model-len", "32k"], "max_model_len", 32000),
        (["--max-model-len", "32K"], "max_model_len", 32768),
        (["--kv-cache-dtype", "fp8"], "kv_cache_dtype", "fp8"),
        (["-q", "modelopt_fp4"], "quantization", "modelopt_fp4"),
        (["--enforce-eager"], "is_eager", True),
        (["-cc.cudagraph_mode=NONE"], "is_eager", True),
        (["--compilation-config", '{"cudagraph_mode": "FULL"}'], "is_eager", False),
        (["--enable-prefix-caching"], "prefix_caching", True),
        (["--no-enable-prefix-caching"], "prefix_caching", False),
        (["--no-enable-chunked-prefill"], "chunked_prefill", False),
        (["--speculative-config", '{"method": "eagle3", "num_speculative_tokens": 3}'],
         "speculative", "eagle3"),
        (["--speculative-config.method", "ngram"], "speculative", "ngram"),
        (["--profiler-config", '{"profiler": "cuda"}'], "profiler", "cuda"),
        (["--profiler-config.profiler=torch"], "profiler", "torch"),
        (["--distributed-executor-backend", "ray"], "executor", "ray"),
        (["--kv-transfer-config", '{"kv_connector":"NixlConnector"}'], "kv_transfer",
         "NixlConnector"),
        (["--served-model-name", "a", "b", "--port", "1"], "served_names", ("a", "b")),
        (["--port", "1", "--port", "2"], "port", 2),
    ],
)  # fmt: skip
def test_each_way_of_writing_an_option_is_understood(
    words: list[str], field: str, value: object
) -> None:
    assert getattr(read([*["vllm", "serve", "org/m"], *words]), field) == value


def test_an_abbreviation_that_could_be_several_options_is_said() -> None:
    args = read(["vllm", "serve", "org/m", "--max-num", "4"])
    assert args.max_num_seqs is None
    assert "could be any of" in args.notes[0]


def test_a_switch_takes_no_value_from_the_next_word() -> None:
    args = read(["vllm", "serve", "--trust-remote-code", "org/m"])
    assert args.model == "org/m"


def test_references_to_variables_are_expanded_as_the_kubelet_does() -> None:
    args = read(["vllm", "serve", "$(M)", "--port", "$(P)"], env={"M": "org/m"})
    assert (args.model, args.port, args.unresolved) == ("org/m", None, ("$(P)",))


def test_a_shell_variable_outside_a_shell_stays_as_written() -> None:
    assert read(["vllm", "serve", "$M"], env={"M": "org/m"}).model == "$M"


def test_single_quotes_protect_a_dollar() -> None:
    args = read(["sh", "-c", "vllm serve 'org/$M'"], env={"M": "x"})
    assert args.model == "org/$M"


def test_json_in_quotes_survives_the_shell() -> None:
    script = """vllm serve m --kv-transfer-config '{"kv_connector": "Nixl", "a": "b c"}' -tp 2"""
    args = read(["sh", "-c", script])
    assert (args.kv_transfer, args.tensor_parallel) == ("Nixl", 2)


def test_a_conditional_part_of_a_template_is_not_taken_for_a_flag() -> None:
    script = "vllm serve m {{- if .T }} --tensor-parallel-size {{ .T }}{{- end }} --port 80"
    args = read(["bash", "-c", script])
    assert (args.tensor_parallel, args.port) == (None, 80)
    assert "tensor-parallel-size" in args.unresolved[0]


def test_the_command_line_wins_over_a_config_file() -> None:
    files = {"/etc/v.yaml": "max-num-seqs: 8\nmax_model_len: 1024\nenforce-eager: true\n"}
    args = read(
        ["vllm", "serve", "m", "--config", "/etc/v.yaml", "--max-num-seqs", "4"], files=files
    )
    assert (args.max_num_seqs, args.max_model_len, args.is_eager) == (4, 1024, True)


def test_a_config_file_that_is_not_here_is_said() -> None:
    args = read(["vllm", "serve", "m", "--config", "/etc/v.yaml"])
    assert args.config_file == "/etc/v.yaml"
    assert "not known here" in args.notes[0]


def test_secrets_of_the_command_line_are_never_kept() -> None:
    args = read(["vllm", "serve", "m", "--api-key", "sk-abcdef", "--hf-token=hf_abcdefghij"])
    assert "sk-abcdef" not in repr(args)
    assert "hf_abcdefghij" not in repr(args)
    assert args.argv[-3:] == ("--api-key", "<redacted>", "--hf-token=<redacted>")


def test_a_secret_in_a_shell_string_is_never_kept() -> None:
    args = read(["sh", "-c", "export HF_TOKEN=hf_abcdefghij; vllm serve m --api-key plainword"])
    assert "plainword" not in repr(args)
    assert "hf_abcdefghij" not in repr(args)


@pytest.mark.parametrize(
    ("tag", "version", "cuda"),
    [
        ("vllm/vllm-openai:v0.10.2", "0.10.2", "12.8"),
        ("vllm/vllm-openai:v0.22.0-cu129", "0.22.0", "12.9"),
        ("vllm/vllm-openai:v0.28.0", "0.28.0", "13.0"),
        ("aibrix/vllm-openai:v0.9.2-cu128-nixl-v0.4.1", "0.9.2", "12.8"),
        ("registry.example/vllm-openai-ubi9:0.4.2", "0.4.2", None),
        ("vllm/vllm-openai:latest", None, None),
        ("ghcr.io/llm-d/llm-d-cuda:v0.9.0", None, None),
        ("localhost:5000/vllm-openai@sha256:abc", None, None),
    ],
)
def test_versions_come_from_the_tag_and_say_so(
    tag: str, version: str | None, cuda: str | None
) -> None:
    args = read(["vllm", "serve", "m"], image=tag)
    assert (args.version.value, args.cuda.value) == (version, cuda)
    assert args.version.source or args.version.missing


def test_an_unstated_memory_fraction_names_its_default() -> None:
    older = read(["vllm", "serve", "m"], image="vllm/vllm-openai:v0.11.0").memory_fraction
    newer = read(["vllm", "serve", "m"], image="vllm/vllm-openai:v0.28.0").memory_fraction
    assert (older.value, newer.value) == (0.9, 0.92)
    assert "not stated" in newer.source


def test_the_torch_profiler_is_known_by_its_variable() -> None:
    assert read(["vllm", "serve", "m"], env={"VLLM_TORCH_PROFILER_DIR": "/t"}).profiler == "torch"


@pytest.mark.parametrize(
    "command",
    [
        ["python3", "-m", "sglang.launch_server", "--model-path", "org/m", "--tp", "2"],
        ["sglang", "serve", "--model-path", "org/m", "--tp-size", "2"],
        ["python3", "-m", "sglang.launch_server", "--model", "org/m", "--tensor-parallel-size=2"],
    ],
)
def test_sglang_is_read_in_its_own_words(command: list[str]) -> None:
    args = read([*command, "--mem-fraction-static", "0.8", "--disable-cuda-graph"])
    assert (args.engine, args.model, args.tensor_parallel) == ("sglang", "org/m", 2)
    assert (args.memory_fraction.value, args.is_eager) == (0.8, True)


@pytest.mark.parametrize(
    "command",
    [
        ["trtllm-serve", "org/m", "--tp_size", "2", "--max_batch_size", "16"],
        ["trtllm-serve", "serve", "org/m", "--tp_size", "2", "--max_batch_size", "16"],
        ["mpirun", "-n", "2", "trtllm-llmapi-launch", "trtllm-serve", "org/m", "--tp_size", "2",
         "--max_batch_size", "16"],
        ["python3", "-m", "tensorrt_llm.commands.serve", "org/m", "--tp_size", "2",
         "--max_batch_size", "16"],
    ],
)  # fmt: skip
def test_tensorrt_llm_is_read_in_its_own_words(command: list[str]) -> None:
    args = read(command)
    assert (args.engine, args.model) == ("tensorrt-llm", "org/m")
    assert (args.tensor_parallel, args.max_num_seqs) == (2, 16)


def test_dynamo_starts_vllm_by_another_module() -> None:
    args = read(["python3", "-m", "dynamo.vllm"], ["--model", "org/m"])
    assert (args.engine, args.model) == ("dynamo-vllm", "org/m")


def test_a_server_already_under_a_profiler_is_said() -> None:
    args = read(["nsys", "profile", "-o", "x", "vllm", "serve", "m"])
    assert args.notes == ("the server is already started under nsys",)


def test_the_process_outranks_the_template_and_gives_its_version() -> None:
    pod = podspec.pod({"spec": {"containers": [{"name": "s", "image": "vllm/vllm-openai:latest"}]}})
    args = engine.from_process(
        b"/usr/bin/python3\0/usr/local/bin/vllm\0serve\0org/m\0-tp\0002\0",
        pod.containers[0],
        version='{"version":"0.21.1"}',
    )
    assert (args.form, args.model, args.version.value) == ("process", "org/m", "0.21.1")
    assert args.cuda.value == "13.0"


def test_a_script_of_two_thousand_lines_is_read_quickly() -> None:
    script = "\n".join(f"echo line {n} $X '{{}}'" for n in range(2000)) + "\nvllm serve m"
    begun = time.perf_counter()
    assert read(["sh", "-c", script]).model == "m"
    assert time.perf_counter() - begun < 1.0
