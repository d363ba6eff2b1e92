"""Names, labels and keys as the API judges them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_gpuadmit.kube import names, quota_keys, resource_names


@pytest.mark.parametrize(
    ("value", "complaints"),
    [
        ("a-1", ()),
        ("a.b", ("must not contain dots",)),
        ("x" * 64, ("must be no more than 63 characters",)),
        (
            "A",
            (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or"
                " '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or"
                " '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            ),
        ),
    ],
)
def test_labels_of_dns(value: str, complaints: tuple[str, ...]) -> None:
    assert names.dns_label(value) == complaints


@pytest.mark.parametrize(
    ("value", "heads"),
    [
        ("nvidia.com/gpu", []),
        ("gpu", []),
        ("/gpu", ["prefix part must be non-empty"]),
        ("Nvidia.com/gpu", ["prefix part a lowercase RFC 1123 subdomain"]),
        ("nvidia.com/", ["name part must be non-empty", "name part must consist of"]),
        ("a/b/c", ["a valid label key must consist of"]),
        ("x" * 64, ["name part must be no more than 63 bytes"]),
    ],
)
def test_label_keys(value: str, heads: list[str]) -> None:
    found = names.label_key(value)
    assert len(found) == len(heads)
    assert all(text.startswith(head) for text, head in zip(found, heads, strict=True))


def test_label_values_may_be_empty_and_end_alphanumeric() -> None:
    assert (names.label_value(""), names.label_value("a_b.c-d")) == ((), ())
    assert len(names.label_value("a-")) == 1
    assert names.label_value("x" * 64) == ("must be no more than 63 bytes",)


def test_generated_names_may_end_in_a_dash() -> None:
    assert (names.generate_name("web-"), len(names.generate_name("Web-"))) == ((), 1)


@pytest.mark.parametrize(
    ("value", "complaints"),
    [
        ("http", ()),
        ("123", ("must contain at least one letter (a-z)",)),
        ("-a--b-", ("must not contain consecutive hyphens", "must not begin or end with a hyphen")),
        ("much-too-long-name", ("must be no more than 15 characters",)),
        (
            "A",
            (
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "must contain at least one letter (a-z)",
            ),
        ),
    ],
)
def test_port_names(value: str, complaints: tuple[str, ...]) -> None:
    assert names.port_name(value) == complaints


@pytest.mark.parametrize(
    ("name", "native", "extended", "overcommit"),
    [
        ("cpu", True, False, True),
        ("gpu", True, False, True),
        ("hugepages-2Mi", True, False, False),
        ("nvidia.com/gpu", False, True, False),
        ("requests.nvidia.com/gpu", False, False, False),
        ("example.kubernetes.io/x", True, False, True),
        ("deviceclass.resource.kubernetes.io/gpu", True, False, True),
    ],
)
def test_classes_of_resource_names(
    name: str, native: bool, extended: bool, overcommit: bool
) -> None:
    assert (
        resource_names.is_native(name),
        resource_names.is_extended(name),
        resource_names.may_overcommit(name),
    ) == (native, extended, overcommit)


@pytest.mark.parametrize(
    ("key", "counter"),
    [
        ("requests.nvidia.com/gpu", "pods"),
        ("nvidia.com/gpu", None),
        ("limits.nvidia.com/gpu", None),
        ("request.nvidia.com/gpu", None),
        ("requests.example.kubernetes.io/x", None),
        ("requests.deviceclass.resource.kubernetes.io/gpu", "pods"),
        ("gpu.deviceclass.resource.k8s.io/devices", "resourceclaims"),
        ("gpu.deviceclass.resource.k8s.io/device", None),
        ("count/resourceclaims.resource.k8s.io", "resourceclaims"),
        ("count/deployments.apps", "objects"),
        ("configmaps", "objects"),
        ("services.nodeports", "services"),
        ("requests.storage", "persistentvolumeclaims"),
        ("fast.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims"),
        ("fast.storageclass.storage.k8s.io/storage", None),
        ("hugepages-1Gi", "pods"),
        ("requests.hugepages-1Gi", "pods"),
        ("count/pods", "pods"),
        ("limits.ephemeral-storage", "pods"),
    ],
)
def test_who_counts_a_quota_key(key: str, counter: str | None) -> None:
    assert quota_keys.counter(key) == counter


@given(st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,8}){0,2}/[a-z][a-z0-9.-]{0,8}[a-z0-9]", fullmatch=True))
def test_what_is_counted_for_extended_resources_is_never_called_dead(resource: str) -> None:
    if resource_names.is_extended(resource):
        assert quota_keys.counter(f"requests.{resource}") == "pods"


def test_the_patch_command_sets_and_removes_keys() -> None:
    assert quota_keys.patch_command("a", "q", {"x": "1", "y": None}) == (
        "kubectl -n a patch resourcequota q --type=merge -p"
        ' \'{"spec":{"hard":{"x":"1","y":null}}}\''
    )
