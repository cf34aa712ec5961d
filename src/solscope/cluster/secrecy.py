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
    r"eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)*)|(?<=Bearer )\S+|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
# A value stands on the line of its name, or after a backslash that joins the next one to it: an
# empty one must not take the next line's first word.
_SPACE = r"(?:[^\S\n]|\\\n)"
_ASSIGNED = re.compile(
    rf"(?P<lead>--?(?P<option>[A-Za-z][A-Za-z0-9_.-]*)(?:{_SPACE}*={_SPACE}*|{_SPACE}+)|"
    rf"\b(?P<name>[A-Za-z]\w*)\"?{_SPACE}*[=:]{_SPACE}*)"
    r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;}]+)"
)


def is_secret_name(name: str) -> bool:
    """Whether a variable or an option of that name holds a secret.

    >>> [is_secret_name(n) for n in ("HF_TOKEN", "api-key", "TOKENIZERS_PARALLELISM", "max-tokens")]
    [True, True, False, False]
    """
    if _ABOUT.search(name):
        return False
    return bool(_NAME.search(name) or _NAMED_WITHIN.search(name))


def is_secret(name: str, value: str) -> bool:
    """Whether this value of this name may be a secret. A reference (``$NAME``) is none.

    >>> [is_secret("HF_TOKEN", v) for v in ("", "$HF_TOKEN", "x")]
    [False, False, True]
    >>> [is_secret("isl_tokens", v) for v in ("1024", "null", "x7Gq")]
    [False, False, True]
    """
    if not value or re.fullmatch(r"\$\(?\{?\w+\}?\)?", value):
        return False
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
            return f"{match['lead']}{MASK}"
        return match[0]

    return _VALUE.sub(MASK, _ASSIGNED.sub(assignment, text))
