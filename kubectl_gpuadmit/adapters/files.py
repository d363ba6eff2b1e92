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
            yield sys.stdin.buffer.read(), "<stdin>"
            continue
        path = Path(given)
        if path.is_dir():
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
    """The content of one file, decompressed if its name or first bytes say gzip."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            said = f"{size:,} bytes is more than {MAX_BYTES:,}"
            raise BadInput("too-large", said, file=str(path))
        raw = path.read_bytes()
    except FileNotFoundError:
        raise BadInput(
            "no-such-path", "no such file or directory", file=str(path), hint=_nearby(path)
        ) from None
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise BadInput("unreadable", f"cannot be read: {reason}", file=str(path)) from None
    if raw[:2] == b"\x1f\x8b":
        return _gunzip(raw, str(path))
    return raw


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
