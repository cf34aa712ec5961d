"""``HANDOFF.md``: a part between two marks is ours and is rewritten; the rest is people's."""

from __future__ import annotations

BEGIN = "<!-- solscope: frontier, rewritten by `solscope next` -->"
END = "<!-- solscope: end -->"


def merged(existing: str | None, title: str, ours: str) -> str:
    """The file's new text: our part replaced, or put below a title where there is none yet.

    >>> merged("# mine\\n", "T", "new").splitlines()[0]
    '# mine'
    """
    part = f"{BEGIN}\n\n{ours.strip()}\n\n{END}"
    if existing is not None and "\r\n" in existing:
        part = part.replace("\n", "\r\n")
    if existing is None or not existing.strip():
        return f"# {title}\n\n{part}\n"
    begin = existing.rfind(BEGIN)  # an earlier mark without its end is people's by now
    end = existing.find(END, begin)
    if 0 <= begin < end:
        return f"{existing[:begin]}{part}{existing[end + len(END) :]}"
    line = "\r\n" if "\r\n" in existing else "\n"
    return f"{existing.rstrip()}{line}{line}{part}{line}"
