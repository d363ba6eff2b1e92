"""Reads manifest inputs: files, directories, standard input, gzip. Decides nothing about them."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from kubectl_gpuadmit.errors import BadInput, NothingChecked

SUFFIXES = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
"""What a directory is searched for; a file that is named outright may have any name."""

MAX_BYTES = 1 << 30
"""Nobody writes a manifest of 1 GiB: a larger one is a mistake or a compression bomb."""


def read_inputs(paths: Iterable[str]) -> Iterator[tuple[bytes, str]]:
    """Yields ``(content, name)`` for each file, directories walked in sorted order, ``-`` is stdin.

    Raises BadInput (``no-such-path``, ``unreadable``, ``too-large``) and NothingChecked
    (``empty-directory``): a path that holds nothing is never a silent success.
    """
    for given in paths:
        if given == "-":
            yield _whole(sys.stdin.buffer.read(), "<stdin>"), "<stdin>"
            continue
        path = Path(given)
        if _is_directory(path):
            files = sorted(manifests_below(path))
            if not files:
                raise NothingChecked(
                    "empty-directory",
                    f"no {', '.join(SUFFIXES[:3])} file in this directory",
                    file=given,
                    hint="name the directory that holds the manifests",
                )
            for file in files:
                yield read_file(file), str(file)
        else:
            yield read_file(path), given


def manifests_below(directory: Path) -> Iterator[Path]:
    """Files that may be manifests, hidden folders such as ``.git`` left out."""
    for path in directory.rglob("*"):
        if path.name.endswith(SUFFIXES) and path.is_file():
            inside = path.relative_to(directory).parts
            if not any(part.startswith(".") for part in inside):
                yield path


def read_file(path: Path) -> bytes:
    """The content of one file, decompressed if its first bytes say gzip."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _too_large(str(path))
        raw = path.read_bytes()
    except FileNotFoundError:
        raise BadInput(
            "no-such-path", "no such file or directory", file=str(path), hint=_nearby(path)
        ) from None
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise BadInput("unreadable", f"cannot be read: {reason}", file=str(path)) from None
    return _whole(raw, str(path))


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long, a folder above that may not be looked into
        return False


def _whole(raw: bytes, name: str) -> bytes:
    if len(raw) > MAX_BYTES:
        raise _too_large(name)
    return _gunzip(raw, name) if raw[:2] == b"\x1f\x8b" else raw


def _too_large(name: str) -> BadInput:
    return BadInput("too-large", f"is larger than {MAX_BYTES:,} bytes", file=name)


def _gunzip(raw: bytes, name: str) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise BadInput(
            "unreadable", f"is no whole gzip file: {problem}", file=name, hint="was it cut?"
        ) from None
    if len(content) > MAX_BYTES:
        raise BadInput("too-large", f"unpacks to more than {MAX_BYTES:,} bytes", file=name)
    return content


def _nearby(path: Path) -> str:
    import difflib

    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return "check the path"
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean {path.parent / close[0]}?" if close else "check the path"
