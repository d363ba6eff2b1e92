"""Every incident of the corpus has its established cause, or is said not to be understood.

The corpus belongs to its authors and is not part of the project; without it the test is skipped.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kubectl_gpuadmit.diagnosis.reading import read

ROOT = Path(
    os.environ.get("GPU_ADMIT_CORPUS") or Path(__file__).resolve().parents[2] / "../shared/corpus"
)
FOLDER = ROOT / "incidents"

# file -> (reason, whose move) of each cause, then words that the details must hold
READINGS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "002-topology-affinity-runaway-replicaset.md": (
        [("why/numa-alignment", "user")],
        ["without end"],
    ),
    "004-unexpected-admission-gpu-lost.md": ([("why/gpu-lost", "fault")], ["GPU 5", "drain"]),
    "005-unexpected-admission-zero-available.md": (
        [("why/devices-unavailable", "fault")],
        ["0 of 1", "not a quota", "Failed"],
    ),
    "006-unexpected-admission-unhealthy-amd.md": (
        [("why/devices-unhealthy", "fault")],
        ["amd.com/gpu", "node"],
    ),
    "009-outof-gpu-capacity-zero.md": (
        [("why/plugin-not-registered", "wait")],
        ["used 0 · capacity 0", "not full", "harmless"],
    ),
    "010-quota-exceeded-openshift.md": (
        [("quota/exceeded", "user")],
        ["asked 1 · used 1 · limit 1"],
    ),
    "012-quota-failedcreate-replicaset.md": (
        [("quota/exceeded", "user")],
        ["asked 2 · used 3 · limit 4"],
    ),
    "014-quota-status-unknown.md": (
        [("quota/status-unknown", "platform")],
        ["nothing was exceeded"],
    ),
    "015-gatekeeper-then-quota.md": (
        [("why/policy-denied", "user"), ("why/policy-denied", "user"), ("quota/exceeded", "user")],
        ["Gatekeeper", "no cpu limit", "no memory limit", "cut"],
    ),
    "016-kubesphere-quota-webhook.md": (
        [("why/quota-elsewhere", "user")],
        ["asked 1 · used 9 · limit 9", "resourcesquotas.quota.kubesphere.io", "may not show it"],
    ),
    "017-dra-claim-pending-old-controller.md": (
        [("why/driver-too-old", "platform")],
        ["older than the cluster", "no lack of GPUs"],
    ),
    "019-dra-mig-insufficient.md": (
        [("why/mig-placement", "fault")],
        ["1g.20gb", "not the scheduler's doing"],
    ),
    "020-dra-driver-not-registered.md": (
        [("why/driver-missing", "platform")],
        ["compute-domain.nvidia.com", "has a node"],
    ),
    "022-dra-claims-zombie-finalizer.md": (
        [("why/claim-zombie", "platform")],
        ["taken, not as free"],
    ),
    "023-dra-terminating-driver-gone.md": ([("why/driver-gone", "platform")], ["install it again"]),
    "024-dra-terminating-claim-not-created.md": (
        [("why/unprepare-stuck", "fault")],
        ["kubelet bug", "had existed"],
    ),
    "027-drain-pdb-single-replica.md": (
        [("why/disruption-budget", "user")],
        ["waiting never helps", "second replica", "llm-0"],
    ),
    "029-drain-local-storage.md": ([("why/drain-local-storage", "user")], ["/dev/shm"]),
    "030-drain-unmanaged-operator-pod.md": (
        [("why/drain-unmanaged", "user")],
        ["depends on who made them", "example-etcd-cluster-0002"],
    ),
    "031-drain-k8s-driver-manager.md": ([("why/drain-by-operator", "platform")], ["GPU operator"]),
    "032-webhook-timeout-volcano.md": (
        [("why/webhook-unreachable", "platform")],
        ["did not answer in time", "manifest is not to blame"],
    ),
    "035-sched-untolerated-taint.md": ([("placement/taint", "user")], ["(gpu)"]),
    "036-sched-insufficient-with-preemption.md": (
        [("placement/insufficient", "wait"), ("why/no-preemption", "wait")],
        ["advertises none", "nobody of lower priority"],
    ),
    "037-sched-two-gpus-over-two-nodes.md": (
        [("placement/insufficient", "wait")],
        ["3 of 3", "one node, never the sum"],
    ),
    "039-autoscaler-not-trigger.md": (
        [
            ("why/scale-no-fit", "platform"),
            ("why/scale-no-fit", "user"),
            ("why/scale-maximum", "platform"),
            ("why/scale-maximum", "platform"),
        ],
        ["scales from zero", "maximum size"],
    ),
    "041-gpumanager-quota-policy.md": (
        [("why/extender-refused", "platform")],
        ["not by a Kubernetes ResourceQuota"],
    ),
    "042-vgpu-multi-pod-race.md": ([("why/allocate-race", "wait")], ["next try usually works"]),
    "045-karpenter-no-instance-type.md": (
        [("why/karpenter-offering", "platform")],
        ["GPU count is not to blame"],
    ),
}

UNTOLD = {
    "026-dra-uuid-claims-see-both.md",  # a situation told in prose: objects right, runtime wrong
    "038-sched-wildcard-toleration-fixed-it.md",  # tolerations of a manifest, no message
    "043-kubeflow-toleration-present.md",  # the cause is not in it: the taint must not be blamed
}
"""What holds no message of anybody: said not to be understood, with no cause made up."""

needs_corpus = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"the corpus of incidents is not here ({FOLDER})"
)


def text_of(name: str) -> str:
    found = re.search(r"## Input\s*```\w*\n(.*?)```", (FOLDER / name).read_text("utf-8"), re.DOTALL)
    assert found, name
    return found[1]


@needs_corpus
@pytest.mark.parametrize("name", sorted(READINGS))
def test_an_incident_is_read_rightly(name: str) -> None:
    causes = read(text_of(name)).causes
    expected, words = READINGS[name]
    assert [(cause.reason, cause.who) for cause in causes] == expected
    told = " ".join(cause.detail for cause in causes)
    assert [word for word in words if word not in told] == []


@needs_corpus
@pytest.mark.parametrize("name", sorted(UNTOLD))
def test_what_holds_no_message_gets_no_cause(name: str) -> None:
    diagnosis = read(text_of(name))
    assert diagnosis.causes == ()
    assert diagnosis.not_understood != ()


@needs_corpus
def test_every_incident_has_a_reading() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == {*READINGS, *UNTOLD}
