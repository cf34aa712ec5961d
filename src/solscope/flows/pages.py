"""An analysis in, its faces out: text for the terminal, files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile

from solscope.errors import UsageError
from solscope.model.verdict import Analysis


def text(
    analysis: Analysis,
    format: str,
    *,
    width: int,
    color: bool,
    top: int | None,
    sort: str,
    show_session: bool,
) -> str:
    """What `--format` asks for."""
    if format == "json":
        from solscope.render import data

        return data.as_json(analysis, show_session=show_session).decode()
    if format == "csv":
        from solscope.render import data

        return data.as_csv(analysis)
    if format == "markdown":
        from solscope.render import markdown

        return markdown.page(analysis, top=top, sort=sort, show_session=show_session)
    from solscope.render import terminal

    return terminal.table(
        analysis, width=width, color=color, top=top, sort=sort, show_session=show_session
    )


def write(
    analysis: Analysis,
    *,
    html: str | None,
    pdf: str | None,
    figure: str | None,
    show_session: bool,
) -> tuple[str, ...]:
    """Write the pages asked for; the paths written. Nothing is where one of them cannot be made."""
    made: list[tuple[str, bytes]] = []
    if html is not None:
        from solscope.render import html as html_page

        page = html_page.page(analysis, show_session=show_session)
        made.append((html, page.encode()))
    if pdf is not None:
        from solscope.render import pdf as pdf_page

        made.append((pdf, pdf_page.document(analysis, show_session=show_session)))
    if figure is not None:
        made.append((figure, _figure(analysis, figure)))
    return tuple(whole(path, content) for path, content in made)


def _figure(analysis: Analysis, path: str) -> bytes:
    from solscope.render import figure

    if path.endswith(".svg"):
        return figure.svg(analysis)
    if path.endswith(".png"):
        return figure.png(analysis)
    raise UsageError("a figure is .svg or .png", where=path, hint="name it roofline.svg")


def whole(path: str, content: bytes) -> str:
    """Write a file under a temporary name beside it, then rename: never half a file."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".solscope-", suffix=".part")
    except OSError as error:
        raise UsageError(
            f"cannot write here: {error.strerror}", where=path, hint="choose another folder"
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        os.unlink(temporary)
        raise UsageError(f"cannot be written: {error.strerror}", where=path) from error
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
