"""Text files that people wrote: YAML in, mappings out; and files that appear whole."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from solscope.errors import ReportError, UsageError


def yaml_mapping(path: Path, *, hint: str) -> Mapping[str, Any]:
    """The mapping that a YAML file holds; an empty file is an empty mapping.

    Raises UsageError where the file cannot be opened, ReportError where it is not a mapping.
    """
    return parse_yaml(read_bytes(path, hint=hint), where=str(path), hint=hint)


def parse_yaml(content: bytes, *, where: str, hint: str) -> Mapping[str, Any]:
    """The same from a file's bytes.

    Raises ReportError also where a value contains itself, as an anchor can make it, and where a
    name stands twice, of which YAML would silently keep the last.
    """
    import yaml

    try:
        loader = _loader()(content)
        node = loader.get_single_node()
        twice = _twice(node, set())
        document = None if node is None or twice else loader.construct_document(node)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise ReportError(f"not YAML: {said}", where=where, hint=hint) from error
    if twice is not None:
        raise ReportError(
            f"{twice.value!r} stands twice in one mapping",
            where=f"{where}:{twice.start_mark.line + 1}",
            hint="keep the one that is meant",
        )
    if document is None:
        return {}
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise ReportError("not a mapping of names to values", where=where, hint=hint)
    _refuse_endless(document, (), set(), where)
    return document


def _twice(node: Any, done: set[int]) -> Any:
    """The first key that its mapping holds already, ``None`` where there is none.

    Looked for before merge keys are resolved: what is merged may be overruled.
    """
    if id(node) in done or isinstance(getattr(node, "value", None), str | None):
        return None
    done.add(id(node))
    seen: set[tuple[str, str]] = set()
    for item in node.value:
        key, *values = item if isinstance(item, tuple) else (None, item)
        if key is not None and isinstance(key.value, str):
            if (key.tag, key.value) in seen:
                return key
            seen.add((key.tag, key.value))
        for value in values:
            if (found := _twice(value, done)) is not None:
                return found
    return None


def _refuse_endless(value: object, above: tuple[int, ...], done: set[int], where: str) -> None:
    """``done`` holds what was looked at: aliases of aliases would be walked without end."""
    if not isinstance(value, dict | list) or id(value) in done:
        return
    if id(value) in above:
        raise ReportError("a value contains itself", where=where, hint="write it out")
    for inner in value.values() if isinstance(value, dict) else value:
        _refuse_endless(inner, (*above, id(value)), done, where)
    done.add(id(value))


@lru_cache(maxsize=1)
def _loader() -> Any:
    """YAML 1.1 without its two traps for numbers: 010 is 8 there, and 1:30 is 90.

    Such a value stays the text that it is, and is refused where a number is expected.
    """
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc, valid-type]
        pass

    def number(loader: Any, node: Any) -> object:
        text = node.value
        digits = text.lstrip("+-")
        if ":" in text or (len(digits) > 1 and digits[0] == "0" and digits.isdigit()):
            return text
        if node.tag.endswith(":int"):
            return loader.construct_yaml_int(node)
        return loader.construct_yaml_float(node)

    for kind in ("int", "float"):
        Loader.add_constructor(f"tag:yaml.org,2002:{kind}", number)
    return Loader


def read_bytes(path: Path, *, hint: str) -> bytes:
    """A file's bytes. Raises UsageError where it cannot be opened."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from error


def write_whole(path: Path, content: bytes) -> Path:
    """Write under a temporary name beside it, then rename: never half a file.

    Raises UsageError where the folder cannot be written; nothing is then left behind.
    """
    write_together([(path, content)])
    return path


def write_together(files: Sequence[tuple[Path, bytes]]) -> tuple[Path, ...]:
    """Write files that belong together: all of them lie on the disk before the first is renamed.

    A disk that fills up, or a signal while they are written, leaves all of the old ones. Raises
    UsageError as ``write_whole``.
    """
    staged: list[tuple[str, Path]] = []
    made: list[Path] = []
    is_renaming = False
    try:
        for path, content in files:
            made += _make_folder(path)
            staged.append((_stage(path, content), path))
        is_renaming = True
        while staged:
            temporary, path = staged[0]
            os.replace(temporary, path)
            staged.pop(0)
            made.clear()
    except BaseException as error:
        for temporary, _path in staged:
            Path(temporary).unlink(missing_ok=True)
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise UsageError(
                f"cannot be written: {error.strerror}",
                where=str(path),
                hint="nothing was changed; make room, or check the folder's owner and mode"
                if len(staged) == len(files) or not is_renaming
                else "the files before it are the new ones; mend this, and run it again",
            ) from error
        raise
    return tuple(path for path, _content in files)


def _make_folder(path: Path) -> list[Path]:
    """The folders that had to be made for a file, outermost first."""
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def _stage(path: Path, content: bytes) -> str:
    """The content under a temporary name beside its place."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".solscope-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary
