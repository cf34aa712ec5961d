"""The pages for the corpus's logs, looked at by eye once and kept.

``SOLSCOPE_GOLDEN=write`` rewrites them. Only our own words and the profiler's are kept: paths,
process numbers and everything else that belongs to the logs' authors is masked.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests import corpus

from solscope.flows.diagnose import DiagnoseRequest, run
from solscope.flows.world import World

PAGES = Path(__file__).parent / "diagnose"
LOGS = corpus.records("ncu-log")
MASKS = (
    (re.compile(r"(?<![\w.`])~?/[\w~./+-]*"), "<path>"),
    (re.compile(r"process \d+"), "process <pid>"),
)


def page(record: dict[str, str], folder: Path) -> str:
    """The page of a log under a neutral name, masked."""
    name = "log" + Path(record["file"].removesuffix(".gz")).suffix
    (folder / name).write_bytes(corpus.raw(corpus.CORPUS / record["file"]))
    text = run(DiagnoseRequest(paths=(name,), format="markdown"), World()).text
    quoted = re.compile(r"(?m)^(   - seen: |- `+log).*$")
    return quoted.sub(lambda hit: _masked(hit.group()), text)


def _masked(text: str) -> str:
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


@pytest.mark.corpus
@pytest.mark.parametrize("record", LOGS, ids=[r["sha256"][:8] for r in LOGS])
def test_the_page_of_a_corpus_log_is_as_it_was_agreed(
    record: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = PAGES / f"{record['sha256'][:8]}.md"
    text = page(record, tmp_path)
    if os.environ.get("SOLSCOPE_GOLDEN") == "write":
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8")


@pytest.mark.corpus
def test_every_corpus_log_has_a_page_and_every_page_a_log() -> None:
    corpus.require(corpus.CORPUS)
    assert {p.stem for p in PAGES.glob("*.md")} == {r["sha256"][:8] for r in LOGS}
