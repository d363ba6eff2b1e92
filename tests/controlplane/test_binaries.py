"""The version of Kubernetes is one setting; another one never touches the shipped module."""

from __future__ import annotations

import pytest

from tests.controlplane import binaries

SHIPPED = """\
module gpu-admit.io/controlplane

go 1.26.0

require (
\tk8s.io/apiserver v0.37.2
\tk8s.io/kubernetes v1.37.2
)

require (
\tcel.dev/expr v0.25.1 // indirect
\tk8s.io/api v0.37.2 // indirect
)

tool (
\tgo.etcd.io/etcd/server/v3
\tk8s.io/kubernetes/cmd/kubectl
)

replace (
\tk8s.io/api => k8s.io/api v0.37.2
)
"""


def test_a_module_for_another_version_keeps_only_what_we_ask_for_ourselves() -> None:
    lines = binaries.derived_module(SHIPPED, "1.34.12").splitlines()
    assert [line for line in lines if line] == [
        "module gpu-admit.io/controlplane",
        "go 1.26.0",
        "require (",
        "\tk8s.io/apiserver v0.34.12",
        "\tk8s.io/kubernetes v1.34.12",
        ")",
        "replace (",
        "\tk8s.io/api => k8s.io/api v0.34.12",
        ")",
    ]


def test_nothing_of_the_pinned_version_is_left_in_a_derived_module() -> None:
    shipped = (binaries.HERE / "go.mod").read_text(encoding="utf-8")
    derived = binaries.derived_module(shipped, "1.34.12")
    assert [w for w in ("37.2", "// indirect", "tool (", "etcd") if w in derived] == []


def test_the_version_is_one_setting_and_etcd_does_not_follow_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GPU_ADMIT_KUBERNETES", raising=False)
    shipped = {name: binaries.home(name) for name in ("referee", "etcd")}
    assert binaries.kubernetes() == binaries.PINNED
    monkeypatch.setenv("GPU_ADMIT_KUBERNETES", "1.34.12")
    other = {name: binaries.home(name) for name in ("referee", "etcd")}
    assert other["etcd"] == shipped["etcd"]
    assert other["referee"] == binaries.BUILD / "1.34.12" / shipped["referee"].name
