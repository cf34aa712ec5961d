"""Which plain values are, or may be, secrets. They are masked where they enter, never later."""

from __future__ import annotations

import re

MASK = "<redacted>"

_NAME = re.compile(
    r"(?:^|[_.-])(?:tokens?|secrets?|passwords?|passwd|passphrase|credentials?|api[_-]?keys?|"
    r"access[_-]?keys?|private[_-]?keys?|auth[_-]?key|bearer|connection[_-]?string)"
    r"(?:[_.-](?:id|value|[0-9]+|base64))?$",
    re.IGNORECASE,
)
_NAMED_WITHIN = re.compile(r"(?:^|_)(?:HF_TOKEN|API_KEY|SECRET|PASSWORD|ACCESS_KEY)(?:_|$)", re.I)
# A name that says where a secret lies, or how long it is, holds none.
_ABOUT = re.compile(
    r"[_-](?:path|file|dir|name|url|uri|ttl|count|limit|length|env|header)s?$|"
    r"max[_-](?:new[_-])?tokens$|batched[_-]tokens$|num[_-]tokens$|special[_-]tokens$|"
    r"prefill[_-]tokens$|total[_-]tokens$",
    re.IGNORECASE,
)
# Language models count tokens: a plural with a number, or with none, is no secret.
_COUNT = re.compile(r"tokens$", re.IGNORECASE)
_NUMBER = re.compile(r"\d[\d_,]*(?:\.\d+)?|null|None")
_VALUE = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-[A-Za-z0-9][A-Za-z0-9_-]{2,}|hf_[A-Za-z0-9]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|"
    r"AKIA[0-9A-Z]{8,}|nvapi-[A-Za-z0-9_-]{4,}|glpat-[A-Za-z0-9_-]{4,}|xox[abp]-[A-Za-z0-9-]{4,}|"
    r"eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)*)|(?<=Bearer )\S+|"
    r"(?<=uthorization: Basic )\S+|(?<=uthorization[\"']: [\"']Basic )[^\s\"']+|"
    r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)|"
    # A signed URL opens a store to whoever holds it.
    r"(?<=[?&]sig=)[^&\s\"']+|(?<=[?&]X-Amz-Signature=)[^&\s\"']+|"
    r"(?<=[?&]X-Goog-Signature=)[^&\s\"']+"
)
_REFERENCE = re.compile(r"\$\(?\{?\w+\}?\)?|\$\{\w+:?[-?+]\}")
_SUBSTITUTION = re.compile(r"\$\([^()]*\)|`[^`]*`")
# A value stands on the line of its name, or after a backslash that joins the next one to it: an
# empty one must not take the next line's first word.
_SPACE = r"(?:[^\S\n]|\\\n)"
# What begins with a brace, or with a bracket that stays open, is a document and no value.
_ASSIGNED = re.compile(
    rf"(?P<lead>(?<![\w-])--?(?P<option>[A-Za-z][A-Za-z0-9_.-]{{0,199}})(?:{_SPACE}*={_SPACE}*|{_SPACE}+)|"
    rf"(?<![\w-])(?P<name>[A-Za-z][\w-]{{0,199}})\\?[\"']?{_SPACE}*[=:]{_SPACE}*)"
    r"(?P<value>\"[^\"]*\"|'[^']*'|\[[^\[\]]{0,1000}\]|[^\s,;}{\[][^\s,;}]*)"
)
# vLLM takes several keys after one option.
_KEYS = re.compile(r"(?P<lead>--api[-_]key(?:=| +))(?P<keys>[^\s-]\S*(?: +[^\s-]\S*)+)")
_LONGEST_COMMAND = 4000


def is_secret_name(name: str) -> bool:
    """Whether a variable or an option of that name holds a secret.

    >>> [is_secret_name(n) for n in ("HF_TOKEN", "api-key", "TOKENIZERS_PARALLELISM", "max-tokens")]
    [True, True, False, False]
    """
    if _ABOUT.search(name):
        return False
    return bool(_NAME.search(name) or _NAMED_WITHIN.search(name))


def is_secret(name: str, value: str) -> bool:
    """Whether this value of this name may be a secret. A reference (``$NAME``, or a command that
    reads it) is none.

    >>> [is_secret("HF_TOKEN", v) for v in ("", "$HF_TOKEN", "x")]
    [False, False, True]
    >>> [is_secret("HF_TOKEN", v) for v in ("$(cat /hf/token)", "${HF_TOKEN:-}", "${A:-x}")]
    [False, False, True]
    >>> [is_secret("isl_tokens", v) for v in ("1024", "null", "x7Gq")]
    [False, False, True]
    """
    if not value or _REFERENCE.fullmatch(value):
        return False
    if _SUBSTITUTION.fullmatch(value):
        return bool(_VALUE.search(value))
    if _COUNT.search(name) and _NUMBER.fullmatch(value):
        return False
    return is_secret_name(name) or bool(_VALUE.search(value))


def masked(text: str) -> str:
    """Free text with everything that looks like a secret replaced.

    >>> masked("vllm serve m --api-key abc --port 80")
    'vllm serve m --api-key <redacted> --port 80'
    """

    def assignment(match: re.Match[str]) -> str:
        name = match["option"] or match["name"]
        if is_secret_name(name) and is_secret(name, match["value"].strip("\"'")):
            return f"{match['lead']}{_mask_for(match['value'])}"
        return match[0]

    def keys(match: re.Match[str]) -> str:
        before = match.string[max(0, match.start() - _LONGEST_COMMAND) : match.start()]
        is_server = "vllm" in before.rpartition("\n")[2]
        return f"{match['lead']}{MASK}" if is_server else match[0]

    text = _KEYS.sub(keys, text)
    return _VALUE.sub(MASK, _ASSIGNED.sub(assignment, text))


def _mask_for(value: str) -> str:
    """The mask in the value's own quotes and brackets: a document stays one that can be read."""
    if value.startswith("["):
        inner = value[1:-1].strip()
        return f"[{_mask_for(inner)}]"
    quote = value[0] if value[0] in "\"'" else ""
    return f"{quote}{MASK}{quote}"
