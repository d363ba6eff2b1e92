"""A file is written whole or not at all, and nothing is overwritten unasked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from kubectl_gpuadmit.adapters.writing import write_whole
from kubectl_gpuadmit.errors import GpuAdmitError


def refused(path: Path, *, replace: bool = False) -> tuple[str, int]:
    with pytest.raises(GpuAdmitError) as caught:
        write_whole(path, b"new", replace=replace)
    assert caught.value.file == str(path)
    return caught.value.ref, caught.value.exit_code


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.json", b"new")
    assert (tmp_path / "a.json").read_bytes() == b"new"
    assert (tmp_path / "a.json").stat().st_mode & 0o077 == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_a_name_in_zst_is_compressed(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.json.zst", b"new" * 1000)
    raw = (tmp_path / "a.json.zst").read_bytes()
    assert zstandard.ZstdDecompressor().decompress(raw) == b"new" * 1000


def test_what_is_there_is_overwritten_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    assert refused(path) == ("file-exists", 2)
    assert path.read_bytes() == b"old"
    write_whole(path, b"new", replace=True)
    assert path.read_bytes() == b"new"


def test_a_link_keeps_leading_where_it_did(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"new", replace=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_folder_that_is_missing_or_in_the_way_is_said(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere" / "a.json") == ("cannot-write", 3)
    assert refused(tmp_path) == ("cannot-write", 3)
    assert refused(tmp_path, replace=True) == ("cannot-write", 3)
    assert list(tmp_path.iterdir()) == []


def test_a_full_device_is_said() -> None:
    assert refused(Path("/dev/full")) == ("cannot-write", 3)


def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """The limit on file size stands in for the end of a disk: both come as an error of write."""
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    script = (
        "import resource, sys; from pathlib import Path;"
        "from kubectl_gpuadmit.adapters.writing import write_whole;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "write_whole(Path(sys.argv[1]), b'x' * 100_000, replace=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "cannot be written: File too large [cannot-write]" in done.stderr
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
