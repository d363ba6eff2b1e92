"""Writes one file whole or not at all; knows nothing of what is in it."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path
from typing import IO

from kubectl_gpuadmit.errors import BadInput, Unanswerable

ZSTD_LEVEL = 9


def write_whole(path: Path, raw: bytes, *, replace: bool = False) -> None:
    """Puts ``raw`` at ``path``, compressed where the name ends in ``.zst``; readable by its owner.

    Raises BadInput (``file-exists``) where there is a file already and ``replace`` is not said, and
    Unanswerable (``cannot-write``) for everything that the system refuses: no such folder, no
    permission, a full disk. What was there stays as it was then. A device or pipe is written to.
    """
    if path.suffix == ".zst":
        import zstandard

        raw = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(raw)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(raw)
            return
        free(path, replace=replace)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        _put(path.resolve(), raw, replace=replace)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise Unanswerable(
            "cannot-write",
            f"cannot be written: {reason}",
            file=str(path),
            hint="name a file in a folder that you may write to, on a disk with room",
        ) from None


def free(path: Path, *, replace: bool = False) -> None:
    """Raises BadInput (``file-exists``) where a file would be overwritten: ask before long work."""
    if not replace and path.is_file():
        raise _taken(path)


def _taken(path: Path) -> BadInput:
    return BadInput(
        "file-exists",
        "is there already, and is not overwritten",
        file=str(path),
        hint="name another file, or remove it first",
    )


def _put(path: Path, raw: bytes, *, replace: bool) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as stream:
        beside = Path(stream.name)
        try:
            _fill(stream, raw)
            if replace:
                beside.replace(path)
            else:
                _claim(beside, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                beside.unlink()


def _fill(stream: IO[bytes], raw: bytes) -> None:
    stream.write(raw)
    stream.flush()
    os.fsync(stream.fileno())  # some disks say only now that they are full


def _claim(beside: Path, path: Path) -> None:
    """Gives the file its name unless somebody has taken it meanwhile."""
    try:
        path.hardlink_to(beside)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        beside.replace(path)
