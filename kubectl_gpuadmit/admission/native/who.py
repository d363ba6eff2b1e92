"""Who creates an object: the user who applies it, or the controllers that make pods from it.

kube-controller-manager acts for each of its controllers as a service account of kube-system where
it runs with ``--use-service-account-credentials`` (kubeadm sets it), else for all of them as the
user of its own certificate. No object says which: both are asked about.

Source: k8s.io/kubernetes v1.37.2 cmd/kube-controller-manager/app/{apps,batch,core}.go (names of the
controllers), plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go (system:kube-controller-
manager); k8s.io/apiserver v0.37.2 pkg/admission/plugin/cel/condition.go (userInfo).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.admission.native.request import Partial
from kubectl_gpuadmit.cel.values import Unknown
from kubectl_gpuadmit.kube.requester import AUTHENTICATED, Requester, service_account
from kubectl_gpuadmit.kube.workloads import Workload

MANAGER = Requester("system:kube-controller-manager", (AUTHENTICATED,))

_CONTROLLERS = {
    "CronJob": "job-controller",
    "DaemonSet": "daemon-set-controller",
    "Deployment": "replicaset-controller",
    "Job": "job-controller",
    "JobSet": "job-controller",
    "LeaderWorkerSet": "statefulset-controller",
    "ReplicaSet": "replicaset-controller",
    "ReplicationController": "replication-controller",
    "StatefulSet": "statefulset-controller",
}
"""Kind of the workload -> the controller of kube-controller-manager that creates its pods. A JobSet
makes Jobs, a LeaderWorkerSet StatefulSets; what other controllers make the pods with is theirs."""

_GROUPS = ("", "apps", "batch", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io")


class Makers(Struct, frozen=True):
    """Everybody who may be the one that creates an object; empty where nobody is known."""

    candidates: tuple[Requester, ...]
    otherwise: Unknown
    """What is not known while they are not asked about one by one."""

    @classmethod
    def of_object(cls, requester: Requester | None) -> Makers:
        """Of what the user applies."""
        known = () if requester is None else (requester,)
        return cls(known, Unknown("who creates the object (request.userInfo)"))

    @classmethod
    def of_pods(cls, workload: Workload, requester: Requester | None) -> Makers:
        """Of the workload's pods."""
        ref = workload.ref
        if ref.kind == "Pod":
            return cls.of_object(requester)
        name = _CONTROLLERS.get(ref.kind)
        if name is None or ref.apiVersion.rpartition("/")[0] not in _GROUPS:
            what = f"as whom the controller of {ref.kind} creates the pod (request.userInfo)"
            return cls((), Unknown(what))
        return cls.of_controller(name, "pod")

    @classmethod
    def of_controller(cls, name: str, made: str) -> Makers:
        """Of what a controller of kube-controller-manager creates."""
        account = service_account("kube-system", name)
        either = f"whether {account.username} or {MANAGER.username}"
        return cls((account, MANAGER), Unknown(f"{either} creates the {made} (request.userInfo)"))


def variable(requester: Requester) -> dict[str, Any]:
    """The variable ``request.userInfo``: empty fields are left out."""
    fields: tuple[tuple[str, Any], ...] = (
        ("username", requester.username),
        ("uid", requester.uid),
        ("groups", None if requester.groups is None else list(requester.groups)),
        (
            "extra",
            None
            if requester.extra is None
            else {key: list(values) for key, values in requester.extra.items()},
        ),
    )
    known = {name: value for name, value in fields if value}
    absent = [name for name, value in fields if value is not None and not value]
    return Partial.of(f"userInfo of {requester.username}", known, absent)
