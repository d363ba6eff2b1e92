"""Which names are GPUs, what they mean, and how many a pod books."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.gpus import Bypass, Means, Share
from kubectl_gpuadmit.kube.objects import Pod


def pod(**spec: Any) -> Pod:
    annotations = spec.pop("annotations", {})
    return msgspec.convert(
        {"kind": "Pod", "metadata": {"annotations": annotations}, "spec": spec}, Pod
    )


def asks(**limits: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": limits}}


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("nvidia.com/gpu", Means("whole", "nvidia")),
        ("nvidia.com/gpu.shared", Means("shared", "nvidia")),
        ("nvidia.com/gpu-24gb", Means("whole", "nvidia")),
        ("nvidia.com/mig-3g.20gb", Means("mig", "nvidia", profile="3g.20gb")),
        ("nvidia.com/mig-1g.10gb.me", Means("mig", "nvidia", profile="1g.10gb.me")),
        ("amd.com/gpu", Means("whole", "amd")),
        ("amd.com/cpx_nps4", Means("mig", "amd", profile="cpx_nps4")),
        ("gpu.intel.com/i915", Means("whole", "intel")),
        ("gpu.intel.com/xe", Means("whole", "intel")),
        ("gpu.intel.com/memory.max", Means("memory", "intel", "bytes")),
        ("nvidia.com/gpumem", Means("memory", "nvidia", "MiB")),
        ("nvidia.com/gpumem-percentage", Means("memory", "nvidia", "percent")),
        ("nvidia.com/gpucores", Means("cores", "nvidia", "percent")),
        ("nvidia.com/total-gpucores", Means("cores", "nvidia", "percent")),
        ("aliyun.com/gpu-mem", Means("memory", "nvidia", "GiB or MiB")),
        ("alpha.kubernetes.io/nvidia-gpu", Means("whole", "nvidia", legacy="nvidia.com/gpu")),
        ("google.com/tpu", None),
        ("aws.amazon.com/neuroncore", None),
        ("vpc.amazonaws.com/efa", None),
        ("gpu", None),
        ("cpu", None),
    ],
)
def test_a_resource_name_has_one_physical_meaning(name: str, meaning: Means | None) -> None:
    assert gpus.means(name) == meaning


def test_shares_beside_a_count_are_no_gpus_and_accelerators_are_apart() -> None:
    names = [
        "nvidia.com/gpu",
        "nvidia.com/gpumem",
        "nvidia.com/gpucores",
        "gpu.intel.com/millicores",
        "aliyun.com/gpu-mem",
        "google.com/tpu",
        "aws.amazon.com/neuron",
        "NVIDIA.com/gpu",
        "nvidia.com/gpus",
    ]
    assert [n for n in names if gpus.is_gpu(n)] == ["nvidia.com/gpu", "aliyun.com/gpu-mem"]
    assert [n for n in names if gpus.is_accelerator(n)] == [
        "google.com/tpu",
        "aws.amazon.com/neuron",
    ]


def test_a_policys_own_patterns_replace_ours() -> None:
    patterns = ("example.com/card-*",)
    card = pod(containers=[asks(**{"example.com/card-a": 2, "nvidia.com/gpu": 1})])
    assert gpus.pod_gpus(card, patterns) == {"example.com/card-a": 2}


def test_limits_stand_for_requests_that_are_silent() -> None:
    silent = {"name": "c", "resources": {"requests": {"cpu": 1}, "limits": {"nvidia.com/gpu": "8"}}}
    assert gpus.pod_gpus(pod(containers=[silent])) == {"nvidia.com/gpu": 8}


def test_init_containers_count_by_the_maximum_and_sidecars_add() -> None:
    gpu = {"nvidia.com/gpu": 1}
    sidecar = {**asks(**gpu), "restartPolicy": "Always"}
    init = asks(**{"nvidia.com/gpu": 4})
    assert gpus.pod_gpus(pod(initContainers=[init], containers=[asks(**gpu)])) == {
        "nvidia.com/gpu": 4
    }
    assert gpus.pod_gpus(pod(initContainers=[sidecar, init], containers=[asks(**gpu)])) == {
        "nvidia.com/gpu": 5
    }
    assert gpus.pod_gpus(pod(initContainers=[init, sidecar], containers=[asks(**gpu)])) == {
        "nvidia.com/gpu": 4
    }


def test_tolerations_selectors_and_zeros_ask_for_nothing() -> None:
    quiet = pod(
        nodeSelector={"nvidia.com/gpu": "1"},
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
        containers=[asks(**{"nvidia.com/gpu": 0})],
    )
    assert gpus.pod_gpus(quiet) == {}


@pytest.mark.parametrize(
    ("annotations", "limits", "booked", "share"),
    [
        (
            {"gpu-fraction": "0.5"},
            {},
            {"gpu-fraction": 1},
            Share(None, 50.0, None, "annotation gpu-fraction"),
        ),
        (
            {"gpu-memory": "4096", "gpu-fraction-num-devices": "2"},
            {},
            {"gpu-fraction": 2},
            Share(4096, None, None, "annotation gpu-memory"),
        ),
        ({"nvidia.com/mig-1g.5gb": "1"}, {}, {"nvidia.com/mig-1g.5gb": 1}, None),
        (
            {},
            {"nvidia.com/gpu": 2, "nvidia.com/gpumem-percentage": 30, "nvidia.com/gpucores": 25},
            {"nvidia.com/gpu": 2},
            Share(None, 30.0, 25, "HAMi resources"),
        ),
        (
            {},
            {"nvidia.com/gpumem": 3000},
            {"nvidia.com/gpu": 1},
            Share(3000, None, None, "HAMi resources"),
        ),
        ({}, {"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1}, None),
    ],
)
def test_shares_are_booked_on_devices_and_bound_by_what_says_so(
    annotations: dict[str, str],
    limits: dict[str, Any],
    booked: dict[str, int],
    share: Share | None,
) -> None:
    asked = pod(annotations=annotations, containers=[asks(**limits)])
    assert (gpus.pod_gpus(asked), gpus.share(asked)) == (booked, share)


def test_an_amount_that_is_no_quantity_counts_nothing_and_raises_nothing() -> None:
    assert gpus.pod_gpus(pod(containers=[asks(**{"nvidia.com/gpu": "two"})])) == {}


def test_every_way_past_the_booking_is_named_with_its_place() -> None:
    sneaky = pod(
        annotations={"cdi.k8s.io/x": "nvidia.com/gpu=all"},
        volumes=[{"name": "all", "hostPath": {"path": "/dev/null"}}],
        containers=[
            {
                "name": "c",
                "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0,1"}],
                "volumeMounts": [
                    {"name": "all", "mountPath": "/var/run/nvidia-container-devices/all"}
                ],
            }
        ],
    )
    assert gpus.bypasses(sneaky) == (
        Bypass("c", "visible-devices", "0,1", "/spec/containers/0/env/0"),
        Bypass(
            "c",
            "device-mount",
            "/var/run/nvidia-container-devices/all",
            "/spec/containers/0/volumeMounts/0",
        ),
        Bypass("", "cdi", "nvidia.com/gpu=all", "/metadata/annotations/cdi.k8s.io~1x"),
    )
