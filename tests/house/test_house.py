"""The house itself: contracts, sizes, a cold `--help`, what may not be in the project."""

from __future__ import annotations

import ast
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FUNCTION_LINES, FILE_LINES = 80, 600


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\n")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= FILE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= FUNCTION_LINES, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_help_does_not_import_what_it_does_not_need() -> None:
    probe = (
        "import sys; sys.argv = ['solscope', '--help']\n"
        "from solscope.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'cyclopts', 'rich', 'altair', 'google.protobuf', 'yaml', 'pyarrow', 'msgspec', "
        "'dataclasses'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "analyze" in done.stdout


def test_importing_the_package_is_cheap() -> None:
    probe = "import solscope, sys; print('dataclasses' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_cold_help_takes_at_most_three_times_an_empty_interpreter() -> None:
    # Processor time, taken in turns: other processes of the machine lengthen the wall clock's.
    def cost(*command: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    empty, helping = zip(
        *((cost("-c", "pass"), cost("-m", "solscope.cli.main", "--help")) for _ in range(9)),
        strict=True,
    )
    assert min(helping) <= 3 * min(empty)


def test_no_registry_host_and_no_machine_path_is_in_the_project() -> None:
    words = ["pyp" + "i.org", "pythonho" + "sted", "registry.np" + "mjs", "deb." + "debian"]
    words.append("/ro" + "ot/")
    pattern = re.compile("|".join(re.escape(word) for word in words))
    guilty = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if pattern.search(text):
            guilty.append(str(path.relative_to(ROOT)))
    assert guilty == []


def test_the_licence_is_apache_2() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text()
