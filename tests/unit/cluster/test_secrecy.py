"""What counts as a secret, and that free text loses it."""

from __future__ import annotations

import json
import time

import pytest

from solscope.cluster.secrecy import is_secret, masked


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "abc"),
        ("HUGGING_FACE_HUB_TOKEN", "x"),
        ("OPENAI_API_KEY", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("DB_PASSWORD", "x"),
        ("ANY", "sk-abcdefgh"),
        ("ANY", "hf_abcdefghijkl"),
        ("PROXY", "http://user:pass@host:1"),
    ],
)
def test_a_secret_is_known_by_its_name_or_its_look(name: str, value: str) -> None:
    assert is_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", ""),
        ("HF_TOKEN", "$HF_TOKEN"),
        ("TOKENIZERS_PARALLELISM", "true"),
        ("MAX_NUM_BATCHED_TOKENS", "1024"),
        ("HF_TOKEN_PATH", "/secrets/t"),
        ("SECRET_NAME", "hf"),
        ("VLLM_PORT", "8000"),
    ],
)
def test_a_harmless_value_is_shown(name: str, value: str) -> None:
    assert not is_secret(name, value)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("vllm serve m --api-key plain --port 1", "plain"),
        ("HF_TOKEN=plain vllm serve m", "plain"),
        ('{"api_key": "plain"}', "plain"),
        ("curl -H 'Authorization: Bearer abc.def'", "abc.def"),
        ("git clone https://me:plain@host/x", "plain"),
    ],
)
def test_free_text_loses_its_secrets(text: str, secret: str) -> None:
    assert secret not in masked(text)


def test_free_text_keeps_the_rest() -> None:
    assert masked("--api-key x --max-num-batched-tokens 1024").endswith(" 1024")


def test_an_empty_value_does_not_take_the_next_line_s_first_word() -> None:
    assert masked("HF_TOKEN=\nINFO ready") == "HF_TOKEN=\nINFO ready"
    assert masked("HF_TOKEN: \nINFO ready") == "HF_TOKEN: \nINFO ready"
    assert masked("serve --api-key\nINFO ready") == "serve --api-key\nINFO ready"
    assert masked("serve --api-key \\\n  abc") == "serve --api-key \\\n  <redacted>"


def test_numbers_of_tokens_are_no_secrets() -> None:
    text = "isl_tokens: 1024\nosl_tokens: null\nmax_tokens=128 num_tokens: 8_192"
    assert masked(text) == text
    assert masked("api_tokens: abc123") == "api_tokens: <redacted>"
    assert masked("HF_TOKEN=12345678") == "HF_TOKEN=<redacted>"


@pytest.mark.parametrize(
    "text",
    [
        # vLLM writes its options at every start, as Python writes a dictionary.
        "non-default args: {'model_tag': 'm', 'api_key': ['first1', 'second2'], 'port': 8}",
        "Namespace(api_key=['first1', 'second2'], port=8)",
        "{'hf_token': 'first1'}",
        "vllm serve m --api-key first1 second2 --port 8",
        'said "{\\"api_key\\": \\"first1\\"}"',
        "x-api-key: first1",
        "Authorization: Basic first1second2",
        '{"Authorization": "Basic first1second2"}',
        "redis://:first1@cache:6379/0",
        "https://b.s3.amazonaws.com/k?X-Amz-Signature=first1&x=1",
        "https://a.blob.core.windows.net/c?sv=1&sig=first1%3D",
    ],
)
def test_secrets_are_masked_however_a_program_spells_them(text: str) -> None:
    shown = masked(text)
    assert "first1" not in shown
    assert "second2" not in shown


def test_a_document_stays_one_that_can_be_read() -> None:
    document = {
        "volumes": [{"name": "hub", "secret": {"secretName": "hub-login"}}],
        "token": "abc",
        "password": ["abc"],
    }
    for indent in (None, 2):
        shown = json.loads(masked(json.dumps(document, indent=indent)))
        assert shown["volumes"] == document["volumes"]
        assert (shown["token"], shown["password"]) == ("<redacted>", ["<redacted>"])


def test_long_texts_without_a_blank_are_read_in_their_length() -> None:
    begun = time.process_time()
    for text in ("a-" * 200_000, "--a" * 100_000, '["' * 100_000):
        assert masked(text) == text
    assert time.process_time() - begun < 20
