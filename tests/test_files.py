"""What is read of files, folders, standard input and gzip, and what each refusal says."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest
from msgspec import Struct

from kubectl_gpuadmit.adapters.files import MAX_BYTES, read_file, read_inputs
from kubectl_gpuadmit.errors import GpuAdmitError

POD = b"kind: Pod\n"


class Said(Struct):
    """An error as a person meets it."""

    type: str
    ref: str
    message: str
    file: str
    hint: str


def refusal(*paths: str) -> Said:
    with pytest.raises(GpuAdmitError) as caught:
        list(read_inputs(paths))
    e = caught.value
    return Said(type(e).__name__, e.ref, e.message, e.file, e.hint)


def test_a_named_file_may_have_any_name_and_keeps_it(tmp_path: Path) -> None:
    file = tmp_path / "manifest.txt"
    file.write_bytes(POD)
    assert list(read_inputs([str(file), str(file)])) == [(POD, str(file)), (POD, str(file))]


def test_a_folder_gives_its_manifests_in_the_order_of_their_paths(tmp_path: Path) -> None:
    wanted = ("a.yaml", "b/c.yml", "b/d.json", "b/e.yaml.gz", "z.json.gz")
    left_out = (".hidden.yaml", ".git/x.yaml", "b/.cache/y.json", "README.md", "b/script.sh")
    for name in (*left_out, *reversed(wanted)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(POD) if name.endswith(".gz") else POD)
    (tmp_path / "folder.yaml").mkdir()
    expected = [(POD, str(tmp_path / name)) for name in wanted]
    assert list(read_inputs([str(tmp_path)])) == expected


def test_gzip_is_told_by_its_first_bytes_and_not_by_the_name(tmp_path: Path) -> None:
    packed, plain = tmp_path / "packed.yaml", tmp_path / "plain.yaml.gz"
    packed.write_bytes(gzip.compress(POD) + gzip.compress(POD))
    plain.write_bytes(POD)
    assert (read_file(packed), read_file(plain)) == (POD + POD, POD)


def test_standard_input_may_be_packed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for raw in (POD, gzip.compress(POD)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        assert list(read_inputs(["-"])) == [(POD, "<stdin>")]


def test_a_path_that_is_not_there_names_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "deploy.yaml").write_bytes(POD)
    missing, far = tmp_path / "deploi.yaml", tmp_path / "no" / "such.yaml"
    assert refusal(str(missing)) == Said(
        "BadInput",
        "no-such-path",
        "no such file or directory",
        str(missing),
        f"did you mean {tmp_path / 'deploy.yaml'}?",
    )
    assert refusal(str(far)).hint == "check the path"


def test_an_empty_folder_is_nothing_checked_and_no_silent_success(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(POD)
    assert refusal(str(tmp_path)) == Said(
        "NothingChecked",
        "empty-directory",
        "no .yaml, .yml, .json file in this directory",
        str(tmp_path),
        "name the directory that holds the manifests",
    )


def test_what_the_system_refuses_is_said_in_its_words(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(POD)
    below, long = str(file / "y.yaml"), str(tmp_path / ("n" * 300))
    assert [refusal(below), refusal(long)] == [
        Said("BadInput", "unreadable", "cannot be read: Not a directory", below, ""),
        Said("BadInput", "unreadable", "cannot be read: File name too long", long, ""),
    ]


def test_a_cut_gzip_file_is_refused_whole(tmp_path: Path) -> None:
    file = tmp_path / "cut.yaml.gz"
    file.write_bytes(gzip.compress(POD * 1_000)[:-9])
    said = refusal(str(file))
    assert (said.ref, said.file, said.hint) == ("unreadable", str(file), "was it cut?")
    assert said.message.startswith("is no whole gzip file: ")


def test_a_file_of_more_than_a_gibibyte_is_not_even_opened(tmp_path: Path) -> None:
    file = tmp_path / "sparse.yaml"
    with file.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    assert refusal(str(file)) == Said(
        "BadInput", "too-large", "is larger than 1,073,741,824 bytes", str(file), ""
    )
