"""The pages run: every command that they show, every example, every generated page."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from solscope.cli import commands, main
from solscope.flows import catalog

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def shown(page: Path) -> list[str]:
    """Commands behind `$ ` in console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


COMMANDS = [(page, command) for page in PAGES for command in shown(page)]


def test_messages_advise_only_commands_that_exist() -> None:
    sources = [path for kind in ("*.py", "*.toml") for path in sorted((ROOT / "src").rglob(kind))]
    advised = {
        verb for path in sources for verb in re.findall(r"`solscope ([a-z]+)", path.read_text())
    }
    assert "plan" in advised
    assert advised <= {verb.name for verb in catalog.VERBS}


def test_pages_show_commands() -> None:
    assert len(COMMANDS) >= 5


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[c for _, c in COMMANDS])
def test_a_shown_command_runs(
    page: Path,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    assert words[0] == "solscope"
    assert commands.call(words[1:]) in (0, 1)
    assert capsys.readouterr().out.strip()


def test_the_readmes_python_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    assert "flash_fwd_splitkv_kernel dram" in capsys.readouterr().out


def test_every_relative_link_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_verb_is_documented_and_helps(capsys: pytest.CaptureFixture[str]) -> None:
    reference = (ROOT / "docs" / "reference" / "commands.md").read_text()
    for verb in catalog.VERBS:
        assert f"## `solscope {verb.name}`" in reference
        assert verb.name in main.overview()
        assert commands.call([verb.name, "--help"]) == 0
        assert verb.name in capsys.readouterr().out


def test_generated_pages_are_current() -> None:
    sys.path.insert(0, str(ROOT))
    from tools import make_docs

    for name, page in make_docs.PAGES.items():
        written = (ROOT / "docs" / "reference" / name).read_text()
        assert written == page(), f"docs/reference/{name} is stale: run `make docs`"


def test_the_sample_is_what_its_program_makes() -> None:
    sys.path.insert(0, str(ROOT))
    from tools import make_sample

    assert make_sample.SAMPLE.read_bytes() == make_sample.sample()


def test_the_changelog_has_an_unreleased_section() -> None:
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()
