"""Builds the archives that krew installs, one a platform, and the manifest that names their sha256.

    python release/archives.py [--platform linux/amd64 …] [--python 3.11 …]

Why a folder of wheels and not a zipapp: msgspec, PyYAML and zstandard are compiled, and Python
loads no compiled module out of a zip file. An archive therefore holds ``lib/common`` (what is the
same for every Python) and ``lib/3.N`` (what is compiled for one), and a small launcher that takes
the first Python on PATH that the archive serves. On Windows the launcher is the one that pip puts
before its own scripts. Same inputs, same bytes: names are sorted and times fixed.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
WHEELS = {
    "linux/amd64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "linux/arm64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "darwin/amd64": ("macosx_11_0_x86_64", "macosx_10_13_x86_64", "macosx_10_9_x86_64"),
    "darwin/arm64": ("macosx_11_0_arm64",),
    "windows/amd64": ("win_amd64",),
    "windows/arm64": ("win_arm64",),
}
"""Platform as krew names it -> wheel tags that run there, best first."""
WITHOUT_WHEELS = {("windows/arm64", "3.11")}
"""PyYAML 6.0.4 has no wheel for these."""

MAIN = """\
import os, sys
here = os.path.dirname(os.path.abspath({here}))
version = "%d.%d" % sys.version_info[:2]
own = os.path.join(here, "lib", version)
if not os.path.isdir(own):
    sys.exit("error: this archive does not serve Python %s [python-version]" % version)
sys.path[0:0] = [os.path.join(here, "lib", "common"), own]
from kubectl_gpuadmit.cli.main import program
program()
"""
LAUNCHER = """\
#!/bin/sh
# Runs gpu-admit with the first Python on PATH that lib/ has the compiled modules for.
self=$0
while [ -L "$self" ]; do
    target=$(readlink "$self")
    case $target in /*) self=$target ;; *) self=$(dirname "$self")/$target ;; esac
done
here=$(cd "$(dirname "$self")" && pwd -P)
for python in python3 {pythons} python; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) ||
        continue
    if [ -d "$here/lib/$version" ]; then exec "$python" "$here/launch.py" "$@"; fi
done
echo "error: no Python of {served} on PATH [no-python]" >&2
echo "hint: install one of them; kubectl gpu-admit needs nothing else" >&2
exit 3
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platform", nargs="+", default=list(WHEELS), choices=list(WHEELS))
    parser.add_argument("--python", nargs="+", default=list(PYTHONS), choices=list(PYTHONS))
    asked = parser.parse_args()
    out = ROOT / "dist"
    out.mkdir(exist_ok=True)
    sums: dict[str, str] = {}
    for platform in asked.platform:
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "tree"
            pythons = [p for p in asked.python if (platform, p) not in WITHOUT_WHEELS]
            collect(tree, platform, pythons)
            launch(tree, platform, pythons)
            archive = pack(tree, out / file_name(platform))
        sums[archive.name] = hashlib.sha256(archive.read_bytes()).hexdigest()
        print(f"{sums[archive.name]}  {archive.relative_to(ROOT)}")
    manifest = filled((ROOT / "krew-manifest.yaml").read_text("utf-8"), version(), sums)
    (out / "krew-manifest.yaml").write_text(manifest, "utf-8")


def file_name(platform: str) -> str:
    system, machine = platform.split("/")
    return f"gpu-admit_{system}_{machine}." + ("zip" if system == "windows" else "tar.gz")


def version() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["version"])


def collect(tree: Path, platform: str, pythons: list[str]) -> None:
    """lib/common and lib/3.N, from the locked wheels and this project."""
    lib = tree / "lib"
    lock = tree.parent / "requirements.lock"
    lock.write_text(locked_for(platform, (ROOT / lock.name).read_text("utf-8")), "utf-8")
    kind = ["--implementation", "cp", "--only-binary=:all:", "--require-hashes", "-r", str(lock)]
    kind += [word for tag in WHEELS[platform] for word in ("--platform", tag)]
    for python in pythons:
        pip("--target", str(lib / python), "--python-version", python, *kind)
        for scripts in ("bin", "Scripts"):
            shutil.rmtree(lib / python / scripts, ignore_errors=True)
    common = share(lib, pythons)
    pip("--target", str(common), "--no-deps", "--upgrade", str(ROOT))
    for scripts in ("bin", "Scripts"):
        shutil.rmtree(common / scripts, ignore_errors=True)


def share(lib: Path, pythons: list[str]) -> Path:
    """Moves to lib/common what is the same for every Python and not compiled, even for one Python
    alone: the launcher knows by lib/3.N whom the archive serves."""
    common = lib / "common"
    common.mkdir()
    for entry in sorted((lib / pythons[0]).iterdir()):
        twins = [lib / python / entry.name for python in pythons]
        prints = {fingerprint(twin) for twin in twins}
        if len(prints) == 1 and not prints.pop().startswith("compiled"):
            shutil.move(entry, common)
            for twin in twins[1:]:
                shutil.rmtree(twin) if twin.is_dir() else twin.unlink()
    return common


def locked_for(platform: str, lock: str) -> str:
    """The lock with its one marker decided: pip decides markers for where it runs, not for where
    the archive will."""
    keep = platform.startswith("windows/")
    decided = " " if keep else " ; python_version < '3' "
    return lock.replace(" ; sys_platform == 'win32' ", decided)


def pip(*args: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*command, "--no-compile", *args], check=True)


def fingerprint(path: Path) -> str:
    """Of a file or a whole folder; a folder with something compiled in it is like no other."""
    if not path.exists():
        return f"absent {path}"
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() and file.name not in ("RECORD", "WHEEL"):
            if file.suffix in (".so", ".pyd", ".dylib"):
                return f"compiled {path}"
            digest.update(f"{file.relative_to(path.parent)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def launch(tree: Path, platform: str, pythons: list[str]) -> None:
    """The program that krew links, and the licence."""
    shutil.copy(ROOT / "LICENSE", tree)
    if platform.startswith("windows/"):
        from pip._vendor import distlib

        name = "t64-arm.exe" if platform.endswith("arm64") else "t64.exe"
        stub = (Path(distlib.__file__).parent / name).read_bytes()
        inner = io.BytesIO()
        with zipfile.ZipFile(inner, "w") as archive:
            archive.writestr(member("__main__.py"), MAIN.format(here="sys.argv[0]"))
        program = stub + b"#!/usr/bin/env python\r\n" + inner.getvalue()
        (tree / "kubectl-gpu_admit.exe").write_bytes(program)
        return
    (tree / "launch.py").write_text(MAIN.format(here="__file__"), "utf-8")
    served = f"{pythons[0]} to {pythons[-1]}" if len(pythons) > 1 else pythons[0]
    names = " ".join(f"python{python}" for python in reversed(pythons))
    script = LAUNCHER.replace("{pythons}", names).replace("{served}", served)
    (tree / "kubectl-gpu_admit").write_text(script, "utf-8")
    (tree / "kubectl-gpu_admit").chmod(0o755)


def member(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0))


def pack(tree: Path, target: Path) -> Path:
    """A tar.gz or zip of the folder whose bytes depend on its content alone."""
    files = sorted(file for file in tree.rglob("*") if file.is_file())
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                info = member(file.relative_to(tree).as_posix())
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, file.read_bytes())
        return target
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for file in files:
            info = tarfile.TarInfo(file.relative_to(tree).as_posix())
            info.size = file.stat().st_size
            info.mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
            with file.open("rb") as stream:
                archive.addfile(info, stream)
    return target


def filled(manifest: str, of_version: str, sums: dict[str, str]) -> str:
    """The manifest with the version, and the sum below each uri whose archive was built."""
    manifest = manifest.replace("v0.0.0", f"v{of_version}")

    def with_sum(found: re.Match[str]) -> str:
        return f'{found[1]}{sums.get(found[2], "")}"'

    return re.sub(r'(uri: \S*/(\S+)\n\s+sha256: ")"', with_sum, manifest)


if __name__ == "__main__":
    main()
