"""A language model of a third of a million random weights: configuration and tokenizer, no file
of weights (``--load-format dummy`` draws them). All of it is written here; nothing is fetched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# More ids than a byte-level tokenizer has, because load generators send ids at random.
VOCABULARY = 4096
CONTEXT = 2048
END = 256


def write(folder: Path) -> None:
    """Write the three files of the model into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "config.json": _config(),
        "tokenizer.json": _tokenizer(),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": CONTEXT,
            "eos_token": "<end>",
            "clean_up_tokenization_spaces": False,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1))


def _config() -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": True,
        "bos_token_id": END,
        "eos_token_id": END,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "dtype": "bfloat16",
    }


def _tokenizer() -> dict[str, Any]:
    """One token a byte, in the printable alphabet of byte-level tokenizers, and an end."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    byte_level["use_regex"] = False
    end = {"id": END, "content": "<end>", "special": True}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{**end, **plain}],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {letter: byte for byte, letter in enumerate(_alphabet())},
            "merges": [],
        },
    }


def _alphabet() -> list[str]:
    """A printable letter for each byte: its own where it has one, else one above 255."""
    own = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = iter(range(256, 512))
    return [chr(byte) if byte in own else chr(next(spare)) for byte in range(256)]
