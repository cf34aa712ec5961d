"""The ``perftunereport`` command: older names, as thin calls of solscope's verbs."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from solscope.cli import commands, leaving


def main(argv: list[str] | None = None) -> None:
    """Run one command line and exit with its code."""
    options = _parser().parse_args(argv)
    translate: Callable[[argparse.Namespace], list[str]] = options.translate
    if argv is None:
        leaving.clean_up_on_sigterm()
    leaving.leave(commands.call(translate(options)), is_guest=argv is not None)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="perftunereport",
        description="Older names of solscope's verbs: each line says which verb it calls.",
    )
    parser.set_defaults(translate=None)
    names = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (verb, add, translate) in _COMMANDS.items():
        sub = names.add_parser(name, help=f"solscope {verb}")
        sub.add_argument(
            "--campaigns", default="campaigns", metavar="DIR", help="the folder of all campaigns"
        )
        add(sub)
        sub.set_defaults(translate=translate)
    return parser


def _campaign(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--campaign", required=True, metavar="SLUG")


def _init(sub: argparse.ArgumentParser) -> None:
    _campaign(sub)
    sub.add_argument("--config", required=True, metavar="YAML")


def _import(sub: argparse.ArgumentParser) -> None:
    _campaign(sub)
    sub.add_argument("--cell-id", required=True, metavar="CELL")
    sub.add_argument("--bundle", required=True, metavar="DIR")
    sub.add_argument("--hw-key", metavar="KEY")
    sub.add_argument("--dry-run", action="store_true")


def _publish(sub: argparse.ArgumentParser) -> None:
    _campaign(sub)
    sub.add_argument("--lake", metavar="DIR_OR_URL")
    sub.add_argument("--strict", action=argparse.BooleanOptionalAction, default=True)


def _value(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--campaign", metavar="SLUG")
    sub.add_argument("--findings", metavar="YAML")
    sub.add_argument("--lake", metavar="DIR_OR_URL")


def _to_init(given: argparse.Namespace) -> list[str]:
    return [
        "campaign",
        "init",
        given.campaign,
        "--config",
        given.config,
        "--campaigns",
        given.campaigns,
    ]


def _to_import(given: argparse.Namespace) -> list[str]:
    words = ["campaign", "add", given.campaign, given.bundle, "--cell", given.cell_id]
    words += ["--campaigns", given.campaigns]
    if given.hw_key is not None:
        words += ["--hw-key", given.hw_key]
    return [*words, "--dry-run"] if given.dry_run else words


def _to_report(given: argparse.Namespace) -> list[str]:
    return ["report", given.campaign, "--campaigns", given.campaigns]


def _to_publish(given: argparse.Namespace) -> list[str]:
    words = ["publish", given.campaign, "--yes", "--campaigns", given.campaigns]
    if given.lake is not None:
        words += ["--lake", given.lake]
    return words if given.strict else [*words, "--no-strict"]


def _to_next(given: argparse.Namespace) -> list[str]:
    words = ["next"] if given.campaign is None else ["next", given.campaign]
    if given.findings is not None:
        words += ["--findings", given.findings]
    if given.lake is not None:
        words += ["--lake", given.lake]
    return [*words, "--campaigns", given.campaigns]


_Command = tuple[
    str,
    Callable[[argparse.ArgumentParser], None],
    Callable[[argparse.Namespace], list[str]],
]
_COMMANDS: dict[str, _Command] = {
    "campaign_init": ("campaign init", _init, _to_init),
    "import_ncu": ("campaign add", _import, _to_import),
    "report_render": ("report", _campaign, _to_report),
    "publish_to_lake": ("publish", _publish, _to_publish),
    "value_view": ("next", _value, _to_next),
}


if __name__ == "__main__":
    main()
