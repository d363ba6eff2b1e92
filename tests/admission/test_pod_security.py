"""Pod Security refuses, warns and records as the namespace's labels say, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_gpuadmit.admission import chain, pod_security
from kubectl_gpuadmit.admission.pod_security import levels, mend, registry
from kubectl_gpuadmit.admission.pod_security.levels import Asked, Labelled
from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy, Unknown
from tests.admission.objects import cluster, container, obj, pod

SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
SAFE_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def home(**modes: str) -> KubeObject:
    """team-b with its labels; ``enforce_version`` is ``enforce-version``."""
    labels = {levels.PREFIX + mode.replace("_", "-"): value for mode, value in modes.items()}
    return obj("Namespace", "team-b", metadata={"labels": labels}, status={"phase": "Active"})


def checked(
    asking: Pod, owner: str = "Pod", **modes: str
) -> tuple[tuple[Finding, ...], tuple[Unknown, ...]]:
    return pod_security.check(asking, "team-b", cluster(home(**modes)), owner=owner)


def told(asking: Pod, owner: str = "Pod", **modes: str) -> list[tuple[str, str, str]]:
    return [(f.reason, f.level, f.detail) for f in checked(asking, owner, **modes)[0]]


def complaints(asking: Pod, level: str, minor: int | None = None) -> str:
    found = registry.violations(asking, Asked(level, minor))  # type: ignore[arg-type]
    return pod_security.text(found)


def test_a_bare_pod_breaks_restricted_and_the_finding_says_where_and_what_mends_it() -> None:
    text = (
        'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container'
        ' "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities'
        ' (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true'
        ' (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or'
        ' container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or'
        ' "Localhost")'
    )
    at = "/spec/containers/0/securityContext"

    def missing(what: str, wanted: str, pointer: str) -> Evidence:
        return Evidence('container "c"', f"securityContext.{what}", None, wanted, pointer)

    assert checked(pod(container("c")), enforce="restricted") == (
        (
            Finding(
                reason="pod-security/violates",
                detail=text,
                evidence=(
                    Evidence(
                        "Namespace team-b",
                        "label pod-security.kubernetes.io/enforce",
                        "restricted:latest",
                        None,
                        "metadata.labels",
                    ),
                    missing("allowPrivilegeEscalation", "false", f"{at}/allowPrivilegeEscalation"),
                    missing("capabilities.drop", "ALL", f"{at}/capabilities/drop"),
                    missing("runAsNonRoot", "true", "/spec/securityContext/runAsNonRoot"),
                    missing(
                        "seccompProfile.type",
                        "RuntimeDefault",
                        "/spec/securityContext/seccompProfile/type",
                    ),
                    Evidence("kube-apiserver", "message", f'pods "p" is forbidden: {text}', None),
                ),
                field=f"{at}/allowPrivilegeEscalation",
                suggest=(
                    Remedy(
                        summary="set the securityContext that the namespace asks for; the image"
                        " must name a user other than root",
                        patch=(
                            {"op": "add", "path": at, "value": SAFE},
                            {"op": "add", "path": "/spec/securityContext", "value": SAFE_POD},
                        ),
                        cost=mend.HARDENING,
                    ),
                ),
            ),
        ),
        (
            Unknown(
                rule="admission/pod-security",
                missing="whether the API server's own configuration exempts the user, the"
                " RuntimeClass or namespace team-b from Pod Security",
                level="audit",
                hint="kubectl apply --dry-run=server -f …",
            ),
        ),
    )


def test_a_pod_that_meets_restricted_is_admitted() -> None:
    asking = pod(container("c", securityContext=SAFE), securityContext=SAFE_POD)
    assert checked(asking, enforce="restricted", warn="restricted", audit="restricted") == ((), ())


def test_a_template_is_accepted_and_only_its_pods_are_refused() -> None:
    detail = (
        'violates PodSecurity "baseline:v1.30": host namespaces (hostNetwork=true); the Deployment'
        " is accepted, its pods are not"
    )
    asking = pod(container("c"), hostNetwork=True)
    assert told(asking, "Deployment", enforce="baseline", enforce_version="v1.30") == [
        ("pod-security/violates", "deny", detail)
    ]


def test_modes_that_ask_the_same_speak_once_and_others_each_at_their_level() -> None:
    asking = pod(container("c", securityContext=SAFE), hostPID=True, securityContext=SAFE_POD)
    would = 'would violate PodSecurity "{}:latest": host namespaces (hostPID=true)'
    assert told(asking, enforce="privileged", warn="baseline", audit="restricted") == [
        ("pod-security/would-warn", "warn", would.format("baseline")),
        ("pod-security/would-audit", "audit", would.format("restricted")),
    ]
    refused = 'violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'
    assert told(asking, enforce="baseline", warn="restricted") == [
        ("pod-security/violates", "deny", refused)
    ]
    assert told(asking, "PyTorchJob", enforce="baseline", warn="restricted") == [
        (
            "pod-security/violates",
            "deny",
            f"{refused}; the PyTorchJob is accepted, its pods are not",
        ),
        (
            "pod-security/would-warn",
            "warn",
            would.format("restricted") + "; only the controller of the PyTorchJob sees the warning",
        ),
    ]


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ({}, Labelled()),
        ({"team": "a"}, Labelled()),
        (
            {levels.ENFORCE: "baseline", f"{levels.ENFORCE}-version": "v1.30"},
            Labelled(enforce=Asked("baseline", 30), warn=Asked("baseline", 30)),
        ),
        (
            {levels.ENFORCE: "restricted", f"{levels.PREFIX}warn": "privileged"},
            Labelled(enforce=Asked("restricted")),
        ),
        (
            {levels.ENFORCE: "strict", f"{levels.PREFIX}audit-version": "1.30"},
            Labelled(
                enforce=Asked("restricted"),
                errors=(
                    (
                        levels.ENFORCE,
                        "strict",
                        "must be one of privileged, baseline, restricted",
                    ),
                    (f"{levels.PREFIX}audit-version", "1.30", 'must be "latest" or "v1.x"'),
                ),
            ),
        ),
    ],
)
def test_labels_are_read_as_the_api_server_reads_them(
    labels: dict[str, str], wanted: Labelled
) -> None:
    assert levels.read(labels) == wanted


def test_a_label_that_means_nothing_is_said_and_restricts() -> None:
    asking = pod(container("c", securityContext=SAFE), securityContext=SAFE_POD)
    assert told(asking, enforce="strict") == [
        (
            "pod-security/bad-label",
            "warn",
            "namespace team-b has pod-security.kubernetes.io/enforce=strict, which must be one of"
            " privileged, baseline, restricted",
        )
    ]


@pytest.mark.parametrize(
    ("minor", "text"),
    [
        (26, "forbidden sysctls (net.ipv4.tcp_rmem, net.ipv4.ip_local_reserved_ports)"),
        (27, "forbidden sysctls (net.ipv4.tcp_rmem)"),
        (32, ""),
        (None, ""),
    ],
)
def test_what_is_forbidden_depends_on_the_version_of_the_level(
    minor: int | None, text: str
) -> None:
    names = ("net.ipv4.tcp_rmem", "net.ipv4.ip_local_reserved_ports")
    asking = pod(securityContext={"sysctls": [{"name": name, "value": "1"} for name in names]})
    assert complaints(asking, "baseline", minor) == text


def test_latest_is_the_version_of_the_api_server() -> None:
    sysctl = {"name": "net.ipv4.tcp_notsent_lowat", "value": "1"}
    asking = pod(securityContext={"sysctls": [sysctl]})
    there = cluster(home(enforce="baseline"))
    assert pod_security.check(asking, "team-b", there) == ((), ())
    found, _ = pod_security.check(asking, "team-b", there, kubernetes="v1.36.2")
    assert [f.detail for f in found] == [
        'violates PodSecurity "baseline:latest": forbidden sysctls (net.ipv4.tcp_notsent_lowat)'
    ]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"hostUsers": False, "runAsUser": 0}, ""),
        ({"hostUsers": True, "runAsUser": 0}, "runAsUser=0 (pod must not set runAsUser=0)"),
    ],
)
def test_root_of_a_user_namespace_is_no_root(spec: dict[str, Any], text: str) -> None:
    user = spec.pop("runAsUser")
    asking = pod(
        container("c", securityContext=SAFE),
        securityContext={**SAFE_POD, "runAsUser": user},
        **spec,
    )
    assert complaints(asking, "restricted") == text


def test_a_deprecated_app_armor_annotation_becomes_the_field_before_it_is_judged() -> None:
    made = obj(
        "Pod",
        "p",
        "team-b",
        metadata={
            "annotations": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}
        },
    )
    asking = pod(container("c"))
    asking = type(asking)(apiVersion="v1", metadata=made.metadata, spec=asking.spec)
    there = cluster(home(enforce="baseline"))
    stored = chain.mutate(asking, there).pod
    found, _ = pod_security.check(stored, "team-b", there)
    assert [f.detail for f in found] == [
        'violates PodSecurity "baseline:latest": forbidden AppArmor profiles (container "c" and'
        ' annotation must not set AppArmor profile type to "Unconfined",'
        ' "container.apparmor.security.beta.kubernetes.io/c="unconfined"")'
    ]


def remedies(asking: Pod, level: str) -> tuple[Remedy, ...]:
    return mend.remedies(asking, registry.violations(asking, Asked(level)))  # type: ignore[arg-type]


def test_shared_memory_of_the_node_is_replaced_by_an_emptydir() -> None:
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "shm", "hostPath": {"path": "/dev/shm"}}]
    assert remedies(pod(volumes=volumes), "baseline") == (
        Remedy(
            summary="set the securityContext that the namespace asks for",
            patch=(
                {"op": "remove", "path": "/spec/volumes/1/hostPath"},
                {"op": "add", "path": "/spec/volumes/1/emptyDir", "value": {"medium": "Memory"}},
            ),
            cost=mend.HARDENING,
        ),
    )


def test_what_the_program_loses_is_said() -> None:
    rdma = {"privileged": True, "capabilities": {"add": ["IPC_LOCK", "CHOWN"]}}
    at = "/spec/containers/0/securityContext"
    assert remedies(pod(container("c", securityContext=rdma)), "baseline") == (
        Remedy(
            summary="set the securityContext that the namespace asks for, without capability"
            " IPC_LOCK and privileged mode",
            patch=(
                {"op": "replace", "path": f"{at}/capabilities/add", "value": ["CHOWN"]},
                {"op": "replace", "path": f"{at}/privileged", "value": False},
            ),
            cost=mend.WITHOUT,
        ),
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": [{"name": "dev", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}]},
        {"hostNetwork": True},
        {"hostIPC": True, "hostPID": True},
    ],
)
def test_what_needs_the_node_is_not_patched_away(spec: dict[str, Any]) -> None:
    assert remedies(pod(**spec), "baseline") == ()


def test_every_check_is_asked_once_and_overrides_name_baseline_checks() -> None:
    ids = [check.id for check in registry.CHECKS]
    assert len(ids) == len(set(ids)) == 19
    baseline = {check.id for check in registry.CHECKS if check.level == "baseline"}
    overridden = {name for c in registry.CHECKS for v in c.versions for name in v.overrides}
    assert overridden <= baseline
    assert registry.NEWEST == 37


def test_a_running_pod_has_no_security_settings_to_judge() -> None:
    running = obj("Pod", "p", "team-b")
    assert isinstance(running, Pod)
    assert checked(running, enforce="baseline") == (
        (),
        (
            Unknown(
                rule="admission/pod-security",
                missing="the pod's security settings, which namespace team-b (baseline:latest)"
                " asks for",
                hint="kubectl apply --dry-run=server -f …",
            ),
        ),
    )
