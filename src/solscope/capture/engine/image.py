"""What an image's name says: engine, its version, its CUDA, and how sure that is."""

from __future__ import annotations

import re

from solscope.model.cluster import Fact

_ENGINES = (
    # (what the last part of the repository matches, engine, entrypoint that the image brings)
    (re.compile(r"(?:^|/)nim/|nim-llm|nim_llm"), "nim", "nim"),
    (re.compile(r"sglang"), "sglang", None),
    (re.compile(r"tensorrt-?llm|trtllm"), "tensorrt-llm", None),
    (re.compile(r"vllm-runtime"), "dynamo-vllm", None),
    (re.compile(r"vllm-openai|vllm/vllm|vllmserver"), "vllm", "vllm"),
    (re.compile(r"vllm"), "vllm", None),
    (re.compile(r"text-generation-inference"), "tgi", "tgi"),
)
_VERSION = re.compile(r"(?:^|[_v-])v?(\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?)(?![\d.])")
_CUDA = re.compile(r"cu(?:da)?[-_]?(\d{2})\.?(\d)(?:\.\d+)?(?![\d])")

# vLLM release to the CUDA of its default image (kubernetes truth, 5.1): the last row whose
# release is not newer holds. 0.11 shipped both 12.8 and 12.9.
_VLLM_CUDA: tuple[tuple[tuple[int, int], str], ...] = (
    ((0, 8), "12.4"),
    ((0, 9), "12.8"),
    ((0, 11), "12.9"),
    ((0, 20), "13.0"),
)


def split(image: str) -> tuple[str, str | None]:
    """Repository and tag; a digest is no tag.

    >>> split("docker.io:5000/a/vllm:v0.11.0@sha256:00")
    ('docker.io:5000/a/vllm', 'v0.11.0')
    """
    name = image.partition("@")[0]
    head, _, last = name.rpartition("/")
    base, colon, tag = last.partition(":")
    return (f"{head}/{base}" if head else base), (tag if colon else None)


def engine(image: str) -> tuple[str | None, str | None]:
    """The engine that an image's name points to, and the start command that it brings."""
    repository = split(image)[0]
    return next(
        ((e, start) for pattern, e, start in _ENGINES if pattern.search(repository)), (None, None)
    )


def version(image: str, engine_name: str | None) -> Fact[str]:
    """The engine's version from the tag, where repository and tag are the engine's own."""
    repository, tag = split(image)
    # A stack's own image (llm-d-cuda, nim, vllm-runtime) is numbered by the stack.
    last = repository.rpartition("/")[2]
    own = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "release"}.get(engine_name or "")
    missing = "the server's version: --exec, or GET /version"
    if tag is None or own is None or own not in last or re.match(r"\d{2}\.\d{2}", tag):
        return Fact(missing=missing)
    match = _VERSION.search(tag)
    if match is None:
        return Fact(missing=missing)
    return Fact(value=match[1], source=f"image tag {tag}")


def cuda(image: str, engine_name: str | None, engine_version: str | None) -> Fact[str]:
    """The CUDA toolkit inside the image: from the tag, else from a table by vLLM release."""
    tag = split(image)[1] or ""
    match = _CUDA.search(tag)
    if match:
        return Fact(value=f"{match[1]}.{match[2]}", source=f"image tag {tag}")
    if engine_name == "vllm" and engine_version and "rocm" not in image:
        major, minor = (int(x) for x in engine_version.split(".")[:2])
        held = [value for since, value in _VLLM_CUDA if since <= (major, minor)]
        if held:
            return Fact(
                value=held[-1],
                source=f"default image of vLLM {major}.{minor}, by table; not read from the image",
            )
    return Fact(missing="the image's CUDA: --exec reads it in the container")
