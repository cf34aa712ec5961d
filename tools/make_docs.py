"""Writes the generated pages of docs/reference, and the README's picture.

A test holds the pages to this program: they are never edited by hand.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

from solscope.cli.commands import load
from solscope.flows import catalog
from solscope.reports import tables
from tools import make_diagnosis_page, make_lake_page

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"


def commands() -> str:
    """Every verb with its options, from the catalog."""
    lines = [
        "# Commands",
        "",
        "Made from the catalog of verbs by `make docs`. Exit codes: 0 yes, 1 the answer is no,",
        "2 usage, 3 report, 4 cluster, 5 capture, 6 lake, 70 a bug, 130 interrupted.",
    ]
    for verb in catalog.VERBS:
        request = load(verb.request)
        lines += ["", f"## `solscope {verb.name}`", "", *paragraphs(request.__doc__ or "")]
        lines += [
            "",
            f"Effect: {verb.effect}.",
            "",
            "| option | meaning | default |",
            "|---|---|---|",
        ]
        lines += [row(field, hint) for field, hint in fields(request)]
    return "\n".join(lines) + "\n"


def paragraphs(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def fields(request: Any) -> list[tuple[dataclasses.Field[Any], Any]]:
    hints = get_type_hints(request)
    return [(field, hints[field.name]) for field in dataclasses.fields(request)]


def row(field: dataclasses.Field[Any], hint: Any) -> str:
    meta = field.metadata
    if meta["positional"]:
        name = field.name.upper()
    else:
        names = [meta["name"] or "--" + field.name.replace("_", "-"), *meta["alias"]]
        name = ", ".join(f"`{n}`" for n in names)
    choices = [str(c) for c in get_args(hint) if isinstance(c, str)]
    meaning = meta["help"] + (f" One of {', '.join(choices)}." if choices else "")
    default = field.default
    shown = "" if default in (dataclasses.MISSING, None, False) else f"`{default}`"
    return f"| {name} | {meaning.replace('|', 'or')} | {shown} |"


def ceilings() -> str:
    """Every ceiling with its source."""
    lines = [
        "# Ceilings",
        "",
        "Made from the packaged `sol-ceilings.yaml` by `make docs`. Dense unless the key says",
        "sparse; per GPU; a multiply-add counts 2. Confidence: A agrees with a real report, B seen",
        "in a document, C published and reproduced by arithmetic, D unverified.",
    ]
    for chip in tables.ceilings().chips.values():
        lines += ["", f"## {chip.name}: `{chip.key}`", ""]
        lines += ["| key | value | clock | confidence | source |", "|---|---|---|---|---|"]
        for name, ceiling in chip.ceilings.items():
            clock = ceiling.clock_basis or ""
            lines.append(
                f"| `{name}` | {ceiling.value:g} {ceiling.units} | {clock} | "
                f"{ceiling.confidence or ''} | {ceiling.source} |"
            )
    return "\n".join(lines) + "\n"


def families() -> str:
    """Every kernel-name pattern."""
    lines = [
        "# Kernel families",
        "",
        "Made from the packaged patterns by `make docs`. The first that matches the function name",
        "or the head of the demangled name decides.",
        "",
        "| family | category | role | collective | pattern |",
        "|---|---|---|---|---|",
    ]
    for pattern in tables.family_patterns():
        shown = pattern.match.pattern.replace("|", "\\|")
        collective = "yes" if pattern.is_collective else ""
        lines.append(
            f"| {pattern.family} | {pattern.category} | {pattern.role} | {collective} | `{shown}` |"
        )
    return "\n".join(lines) + "\n"


def json_schema() -> str:
    """The JSON of `analyze`, from the schema that ships."""
    return schema_page("analysis-1")


def diagnosis_schema() -> str:
    """The JSON of `diagnose`, from the schema that ships."""
    return schema_page("diagnosis-1")


def schema_page(name: str) -> str:
    """A shipped schema as a page: the document, then each of its parts."""
    path = ROOT / "src" / "solscope" / "render" / "schemas" / f"{name}.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        f"# JSON: `solscope.{name.replace('-', '/')}`",
        "",
        "Made from the JSON Schema that ships in the package (`solscope/render/schemas`) by",
        "`make docs`.",
        "",
        schema["description"],
    ]
    lines += ["", "## the document", *properties(schema)]
    for part, value in schema["$defs"].items():
        lines += ["", f"## {part}", *properties(value)]
    return "\n".join(lines) + "\n"


def properties(part: dict[str, Any]) -> list[str]:
    lines = ["", "| key | type | meaning |", "|---|---|---|"]
    for key, value in part.get("properties", {}).items():
        lines.append(f"| `{key}` | {kind(value)} | {value.get('description', '')} |")
    return lines


def kind(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return value["$ref"].rpartition("/")[2]
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return " or ".join(f"`{option}`" for option in value["enum"])
    if value.get("type") == "array":
        return f"list of {kind(value.get('items', {}))}"
    found = value.get("type", "any")
    if "anyOf" in value:
        return " or ".join(kind(option) for option in value["anyOf"])
    return " or ".join(found) if isinstance(found, list) else str(found)


PAGES = {
    "commands.md": commands,
    "ceilings.md": ceilings,
    "kernel-families.md": families,
    "json.md": json_schema,
    "json-diagnosis.md": diagnosis_schema,
    "diagnoses.md": make_diagnosis_page.current,
    "lake.md": make_lake_page.page,
}


def main() -> None:
    """Write the pages; with `--picture`, the README's picture too (needs Chromium)."""
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page())
        print(f"wrote docs/reference/{name}")
    if "--picture" in sys.argv:
        picture()


def picture() -> None:
    """A screenshot of the sample's page, as the README shows it."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        sample = ROOT / "samples" / "decode-step-h100.ncu-rep"
        solscope = [sys.executable, "-m", "solscope.cli.main"]
        command = [*solscope, "analyze", str(sample), "--html", str(page)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        target = ROOT / "docs" / "images" / "page.png"
        subprocess.run(
            [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--hide-scrollbars",
                f"--user-data-dir={folder}/profile",
                "--window-size=1280,1760",
                f"--screenshot={target}",
                page.as_uri(),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        print(f"wrote {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
