"""The ``solscope`` command: errors become text and exit codes here, and nowhere else.

The overview (``solscope``, ``solscope --help``, ``--version``) is printed from the catalog
without importing anything else, because people ask for it often.
"""

from __future__ import annotations

import sys

from solscope.flows import catalog


def main(argv: list[str] | None = None) -> None:
    """Run one command line and exit with its code."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview())
        sys.exit(0)
    if arguments[0] in ("--version", "-V"):
        from solscope import __version__

        print(f"solscope {__version__}")
        sys.exit(0)
    from solscope.cli import commands, leaving

    if argv is None:
        leaving.clean_up_on_sigterm()
    leaving.leave(commands.call(arguments), is_guest=argv is not None)


def overview() -> str:
    """The text of ``solscope --help``."""
    width = max(len(verb.name) for verb in catalog.VERBS)
    lines = [
        "solscope: how far each GPU kernel stands from the speed of light, what holds it back,",
        "and the proof.",
        "",
        "Usage: solscope VERB [ARGUMENTS]      solscope VERB --help",
        "",
        *(f"  {verb.name:<{width}}  {verb.summary}" for verb in catalog.VERBS),
        "",
        "Start here: solscope analyze YOUR.ncu-rep",
        "Exit codes: 0 yes, 1 the answer is no, 2 usage, 3 report, 4 cluster, 5 capture, 6 lake.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
