"""Whatever stands in a command, reading it ends, and what is secret stays out."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from solscope.capture import engine
from solscope.capture.snapshot import podspec
from solscope.model.cluster import EngineArgs

_PIECES = st.sampled_from(
    ["vllm", "serve", "sh", "-c", "python3", "-m", "sglang.launch_server", "--model", "--port=1",
     "-tp", "2", "$M", "${M:-x}", "$(M)", "`date`", "'", '"', "\\", "\n", ";", "&&", "|", ">", "<",
     "{{ .X }}", "{{- if .Y }}", "{{ end }}", "--a.b.c", "[1]", "--", "-", "#", "eval", "(", ")"]
)  # fmt: skip
WORDS = st.lists(st.one_of(_PIECES, st.text(max_size=8)), max_size=12)


def read(command: list[str], args: list[str]) -> EngineArgs:
    raw = {"name": "s", "image": "vllm/vllm-openai:v1", "command": command, "args": args}
    return engine.from_container(podspec.pod({"spec": {"containers": [raw]}}).containers[0])


@settings(max_examples=300, deadline=None)
@given(command=WORDS, args=WORDS)
def test_reading_any_command_ends_without_an_error(command: list[str], args: list[str]) -> None:
    assert read(command, args).form in ("list", "shell", "entrypoint")


@settings(max_examples=200, deadline=None)
@given(pieces=st.lists(st.one_of(_PIECES, st.text(max_size=8)), max_size=20))
def test_reading_any_script_ends_without_an_error(pieces: list[str]) -> None:
    assert read(["sh", "-c", " ".join(["true", *pieces])], []).form == "shell"


@settings(max_examples=200, deadline=None)
@given(
    secret=st.text("abcdefghijklmnop0123456789", min_size=12, max_size=30),
    option=st.sampled_from(["--api-key", "--api_key", "--hf-token", "--admin-api-key"]),
    glued=st.booleans(),
    shell=st.booleans(),
)
def test_a_secret_option_never_leaves_its_value(
    secret: str, option: str, glued: bool, shell: bool
) -> None:
    words = [f"{option}={secret}"] if glued else [option, secret]
    whole = ["vllm", "serve", "m", *words, "--port", "1"]
    found = read(["sh", "-c", " ".join(whole)] if shell else whole, [])
    assert found.port == 1
    assert secret not in repr(found)


@settings(max_examples=200, deadline=None)
@given(
    tensor=st.integers(1, 64),
    sequences=st.integers(1, 4096),
    equals=st.booleans(),
    underscores=st.booleans(),
    shell=st.booleans(),
)
def test_every_way_of_writing_the_same_options_reads_the_same(
    tensor: int, sequences: int, equals: bool, underscores: bool, shell: bool
) -> None:
    words: list[str] = []
    for name, value in (("tensor-parallel-size", tensor), ("max-num-seqs", sequences)):
        written = "--" + (name.replace("-", "_") if underscores else name)
        words += [f"{written}={value}"] if equals else [written, str(value)]
    whole = ["vllm", "serve", "m", *words]
    found = read(["bash", "-lc", " ".join(whole)] if shell else whole, [])
    assert (found.model, found.tensor_parallel, found.max_num_seqs) == ("m", tensor, sequences)
