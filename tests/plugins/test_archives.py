"""What `make dist` writes: the manifest that krew reads, and archives whose bytes hold still."""

from __future__ import annotations

import importlib.util
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("archives", ROOT / "release" / "archives.py")
assert SPEC and SPEC.loader
archives = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(archives)

TEMPLATE = (ROOT / "krew-manifest.yaml").read_text("utf-8")


def test_the_manifest_names_every_platform_and_the_archive_that_is_built_for_it() -> None:
    spec = yaml.safe_load(TEMPLATE)["spec"]
    named = {}
    for platform in spec["platforms"]:
        labels = platform["selector"]["matchLabels"]
        named[f"{labels['os']}/{labels['arch']}"] = (
            platform["uri"].rpartition("/")[2],
            platform["bin"],
        )
    assert named == {
        name: (
            archives.file_name(name),
            "kubectl-gpu_admit.exe" if name.startswith("windows") else "kubectl-gpu_admit",
        )
        for name in archives.WHEELS
    }


def test_the_version_and_the_sums_are_filled_in() -> None:
    sums = {archives.file_name(name): f"{index:064x}" for index, name in enumerate(archives.WHEELS)}
    spec = yaml.safe_load(archives.filled(TEMPLATE, "1.2.3", sums))["spec"]
    assert spec["version"] == "v1.2.3"
    assert [p["sha256"] for p in spec["platforms"]] == [f"{index:064x}" for index in range(6)]
    assert all("/v1.2.3/" in p["uri"] for p in spec["platforms"])


def test_an_archive_that_was_not_built_keeps_no_sum() -> None:
    spec = yaml.safe_load(archives.filled(TEMPLATE, "1.2.3", {}))["spec"]
    assert {p["sha256"] for p in spec["platforms"]} == {""}


def test_the_lock_is_decided_for_the_platform_of_the_archive() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert "sys_platform" not in archives.locked_for("windows/amd64", lock)
    assert "python_version < '3'" in archives.locked_for("linux/amd64", lock)
    markers = {line.partition(" ; ")[2] for line in lock.splitlines() if " ; " in line}
    assert markers <= {"sys_platform == 'win32' \\"}, "a marker that nobody decides"


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
def test_the_same_tree_packs_to_the_same_bytes(tmp_path: Path, name: str) -> None:
    packed = []
    for turn, order in enumerate((["b", "a"], ["a", "b"])):
        tree = tmp_path / str(turn)
        (tree / "lib").mkdir(parents=True)
        for file in order:
            (tree / "lib" / file).write_text(file)
        (tree / "lib" / "a").chmod(0o755)
        packed.append(archives.pack(tree, tmp_path / f"{turn}-{name}").read_bytes())
    assert packed[0] == packed[1]
    if name.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / f"0-{name}") as zipped:
            names = zipped.namelist()
    else:
        with tarfile.open(tmp_path / f"0-{name}") as archive:
            names = archive.getnames()
    assert names == ["lib/a", "lib/b"]


@pytest.mark.parametrize("pythons", [["3.11"], ["3.11", "3.12"]])
def test_what_is_compiled_is_never_common(tmp_path: Path, pythons: list[str]) -> None:
    for python in pythons:
        (tmp_path / python / "pure").mkdir(parents=True)
        (tmp_path / python / "pure" / "a.py").write_text("same")
        (tmp_path / python / "fast").mkdir()
        (tmp_path / python / "fast" / "a.so").write_text("same")
        (tmp_path / python / "one.py").write_text("same")
    archives.share(tmp_path, pythons)
    found = sorted(f.relative_to(tmp_path).as_posix() for f in tmp_path.rglob("*") if f.is_file())
    assert found == [
        *(f"{python}/fast/a.so" for python in pythons),
        "common/one.py",
        "common/pure/a.py",
    ]


def test_the_launcher_finds_its_python_or_says_which_it_needs(tmp_path: Path) -> None:
    archives.launch(tmp_path, "linux/amd64", ["3.11", "3.12"])
    program = tmp_path / "kubectl-gpu_admit"
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "error: no Python of 3.11 to 3.12 on PATH [no-python]",
        "hint: install one of them; kubectl gpu-admit needs nothing else",
    ]
