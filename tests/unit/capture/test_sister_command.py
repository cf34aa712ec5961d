"""Scripts are read by words and changed at words; everything else of them stays."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solscope.capture.sister import serving, shell
from solscope.capture.sister.command import Engine, ServerCommand, engine_of, locate


def words(script: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in shell.commands(script)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a b; c", [["a", "b"], ["c"]]),
        ("a && b || c & d", [["a"], ["b"], ["c"], ["d"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a \\\n  b \\\r\n  c", [["a", "b", "c"]]),
        ("a > out 2>&1 b", [["a", "b"]]),
        ("a $(echo 'x y') ${B:-c d} `e f`", [["a", "$(echo 'x y')", "${B:-c d}", "`e f`"]]),
        ("# no\na # no\nb#c", [["a"], ["b#c"]]),
        ("a '' b", [["a", "", "b"]]),
    ],
)
def test_a_script_falls_into_the_words_that_a_shell_sees(
    script: str, expected: list[list[str]]
) -> None:
    assert words(script) == expected


@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1)))
def test_quoted_words_are_read_back_as_they_were(texts: list[str]) -> None:
    script = shlex.join(["run", *texts])
    assert words(script) == [["run", *texts]]


def test_the_server_is_found_behind_other_commands_and_assignments() -> None:
    found = locate(["bash", "-lc"], ["cd /x && A=1 exec python3 -m sglang.launch_server --tp 2"])
    assert found is not None
    assert found.engine is Engine.SGLANG
    assert found.before == ("A=1", "exec")
    assert found.words[:3] == ("python3", "-m", "sglang.launch_server")


def test_a_server_inside_eval_is_not_guessed_at() -> None:
    assert locate(["/bin/bash", "-c", 'eval "exec vllm serve x"'], ["--"]) is None


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        (["vllm", "serve"], Engine.VLLM),
        (["/opt/venv/bin/vllm", "serve"], Engine.VLLM),
        (["python3", "/usr/local/bin/vllm", "serve"], Engine.VLLM),
        (["python", "-m", "vllm.entrypoints.openai.api_server"], Engine.VLLM),
        (["trtllm-serve", "model"], Engine.TENSORRT_LLM),
        (["python3", "-m", "dynamo.vllm"], Engine.DYNAMO),
        (["/opt/nim/start_server.sh"], Engine.UNKNOWN),
        ([], Engine.UNKNOWN),
    ],
)
def test_an_engine_is_known_by_its_program_or_module(command: list[str], engine: Engine) -> None:
    assert engine_of(command) is engine


def test_a_list_goes_behind_the_prefix_and_a_dollar_survives_the_kubelet() -> None:
    found = locate(["vllm", "serve"], ["m"])
    assert found is not None
    assert found.under(["ncu", "-k", "regex:a$(b)"]) == (
        ["ncu", "-k", "regex:a$$(b)"],
        ["vllm", "serve", "m"],
    )


def test_a_script_keeps_its_shape_around_the_changes() -> None:
    script = "echo start\nexec vllm serve m \\\n  --kv-transfer-config '{}' \\\n  --port 80 > log\n"
    found = locate(["sh", "-c"], [script])
    assert found is not None
    found, _ = serving.leave_groups(found, "c")
    command, args = found.add("--x", "a b").under(["ncu", "-k", "regex:a b"])
    assert command == ["sh", "-c"]
    assert args == [
        "echo start\nexec ncu -k 'regex:a b' vllm serve m \\\n  --port 80 --x 'a b' > log\n"
    ]


def test_a_changed_script_runs_in_a_real_shell() -> None:
    script = "A='1 2'; exec echo \\\n  vllm \"$A\" 'x y'; echo never"
    found = locate(["sh", "-c"], [script.replace("echo \\\n  vllm", "vllm")])
    assert found is not None
    _, (changed,) = found.under(["printf", "%s|"])
    done = subprocess.run(["sh", "-c", changed], capture_output=True, text=True, check=True)
    assert done.stdout == "vllm|1 2|x y|"


def vllm(*arguments: str) -> ServerCommand:
    found = locate(["vllm", "serve", "m"], arguments)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ("--kv-transfer-config", "{}"),
        ("--kv_transfer_config", "{}"),
        ("--kv-transfer-config={}",),
        ("--kv-transf", "{}"),
        ("--kv-transfer-config.kv_connector", "Nixl"),
        ("--kv-transfer-config.kv_connector=Nixl",),
        ("--otlp-traces-endpoint=http://x:1", "--collect-detailed-traces", "all"),
    ],
)
def test_joining_options_are_removed_in_every_spelling(arguments: tuple[str, ...]) -> None:
    changed, changes = serving.leave_groups(vllm("--seed", "1", *arguments, "--port", "1"), "c")
    assert changed.edited() == ("vllm", "serve", "m", "--seed", "1", "--port", "1")
    assert changes


def test_options_that_decide_the_profile_stay() -> None:
    kept = ("--kv-cache-dtype", "fp8", "--enforce-eager", "--max-num-seqs=4", "-tp", "2")
    changed, changes = serving.leave_groups(vllm(*kept), "c")
    assert changed.edited()[3:] == kept
    assert changes == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--gpu-memory-utilization", "0.9"), ("--gpu-memory-utilization", "0.6")),
        (("--gpu-memory-utilization=0.9",), ("--gpu-memory-utilization=0.6",)),
        (("--gpu-memory-util", "0.9"), ("--gpu-memory-util", "0.6")),
        (("--gpu-memory-utilization", "0.5"), ("--gpu-memory-utilization", "0.5")),
        ((), ("--gpu-memory-utilization", "0.6")),
    ],
)
def test_memory_is_lowered_to_the_plan_and_never_raised(
    arguments: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    changed, _ = serving.lower_memory(vllm(*arguments), "c", 0.6)
    assert changed.edited()[3:] == expected


def test_each_engine_gets_its_own_spelling_of_the_memory_option() -> None:
    sglang = locate(["python3", "-m", "sglang.launch_server"], [])
    tensorrt = locate(["trtllm-serve", "m"], [])
    assert sglang is not None
    assert tensorrt is not None
    assert serving.lower_memory(sglang, "c", 0.5)[0].added == ("--mem-fraction-static", "0.5")
    assert serving.lower_memory(tensorrt, "c", 0.5)[0].added == (
        "--kv_cache_free_gpu_memory_fraction",
        "0.5",
    )


def test_the_profiler_of_the_target_makes_way_for_the_cuda_profiler() -> None:
    changed, changes, _ = serving.open_window_on_request(
        vllm("--profiler-config.profiler", "torch", "--seed", "1"), "c", (0, 19)
    )
    assert changed.edited()[3:] == ("--seed", "1", "--profiler-config", '{"profiler":"cuda"}')
    assert len(changes) == 2


def test_vllm_0_12_opens_the_window_by_a_variable() -> None:
    changed, changes, values = serving.open_window_on_request(vllm(), "c", (0, 12, 0))
    assert (changed.added, changes) == ((), [])
    assert values == {"VLLM_TORCH_CUDA_PROFILE": "1"}


@pytest.mark.parametrize(
    "arguments", [("--headless",), ("--nnodes", "2"), ("--distributed-executor-backend=ray",)]
)
def test_a_rank_of_a_group_is_recognised(arguments: tuple[str, ...]) -> None:
    assert list(serving.group_evidence(vllm(*arguments))) == [" ".join(arguments)]


def test_one_node_is_no_group() -> None:
    assert list(serving.group_evidence(vllm("--nnodes", "1"))) == []


def test_a_secret_option_goes_and_a_reference_stays() -> None:
    changed, _, names = serving.drop_secrets(
        vllm("--hf-token", "hf_abcdefgh1", "--password=$(PW)", "--max-num-batched-tokens", "5"),
        "c",
    )
    assert names == ["--hf-token"]
    assert changed.edited()[3:] == ("--password=$(PW)", "--max-num-batched-tokens", "5")


# -- where it listens ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "declared", "kept", "port"),
    [
        # Requests come from inside its own container; nobody else may reach it.
        (("--host", "0.0.0.0", "--port", "8080"), (), (), "8080"),
        (("--host=$(POD_IP)",), (8081,), (), "8081"),
        # A number that only a variable holds, a socket, and a file are no ports to wait at.
        (("--port", "$(PORT)"), (9000,), (), "9000"),
        (("--uds", "/run/vllm.sock"), (), (), "8000"),
        (("--config", "/etc/vllm.yaml"), (), ("--config", "/etc/vllm.yaml"), "8000"),
        # By HTTPS alone, every question would go unanswered until the limit.
        (
            ("--ssl-certfile", "/tls/crt", "--ssl-keyfile=/tls/key", "--enable-ssl-refresh"),
            (),
            (),
            "8000",
        ),
    ],
)
def test_the_server_listens_on_loopback_at_a_stated_port(
    arguments: tuple[str, ...], declared: tuple[int, ...], kept: tuple[str, ...], port: str
) -> None:
    changed, changes = serving.listen_on_loopback(vllm(*arguments), "c", declared)
    listens = ("--host", "127.0.0.1", "--port", port)
    assert changed.edited() == (*vllm().edited(), *kept, *listens)
    assert changes


def test_what_a_variable_may_say_later_in_a_script_does_not_count() -> None:
    found = locate(["sh", "-c"], ["exec vllm serve m --host 0.0.0.0 $MORE"])
    assert found is not None
    changed, _ = serving.listen_on_loopback(found, "c", ())
    assert changed.under(())[1] == ["exec vllm serve m $MORE --host 127.0.0.1 --port 8000"]


def test_a_server_that_is_not_known_listens_where_it_did() -> None:
    found = locate(["my-server"], ["--host", "0.0.0.0"])
    assert found is not None
    assert serving.listen_on_loopback(found, "c", (80,)) == (found, [])
