"""One run of the engine over manifests as text and a small cluster, for tests of the whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubectl_gpuadmit.admission.quota import Ledger
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.judge import State, Terms, judge
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.kube.workloads import Workload
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.rule import Rule
from kubectl_gpuadmit.verdict import Report, Source, Verdict
from tests.placement.build import GPU, KNOWN, NOW, decoded

SOURCE = Source("none", "")


def home(*namespaces: str) -> list[KubeObject]:
    """What the control plane makes of a namespace by itself."""
    made = []
    for name in namespaces or ("default",):
        made.append(
            {"kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}}
        )
        made.append({"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}})
    return [decoded(obj) for obj in made]


def world(*objects: KubeObject, known: Iterable[str] = KNOWN) -> Cluster:
    """A cluster of which everything is known, with the namespace ``default``."""
    return Cluster.of([*home(), *objects], known)


def policy(text: str) -> Policy:
    head = "apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\n"
    return load_policy((head + text).encode(), "policy.yaml")


def report(
    manifests: str,
    cluster: Cluster,
    rules: Policy | None = None,
    *,
    remedies: bool = False,
    namespace: str = "default",
) -> Report:
    return evaluate(
        read_documents(manifests.encode(), "m.yaml"),
        cluster,
        rules or Policy.default(),
        now=NOW,
        source=SOURCE,
        namespace=namespace,
        with_remedies=remedies,
    )


def only(made: Report) -> Verdict:
    (verdict,) = made.workloads
    return verdict


def deployment(
    name: str, *, replicas: int | None = 1, gpus: int = 1, spec: str = "", more: str = ""
) -> str:
    """A Deployment of one container; ``spec`` are lines of the pod's spec, ``more`` of the
    container's; both start at their own column 0."""
    count = "" if replicas is None else f"  replicas: {replicas}\n"
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
{count}  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
{_indented(spec, 6)}      containers:
      - name: main
        image: i
{_indented(more, 8)}        resources: {{limits: {{{GPU}: "{gpus}"}}}}
"""


def job(name: str, *, gpus: int = 1, lines: str = "") -> str:
    """A Job; ``lines`` are of its own spec."""
    return f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
{_indented(lines, 2)}  template:
    spec:
      restartPolicy: Never
      containers:
      - {{name: main, image: i, resources: {{limits: {{{GPU}: {gpus}}}}}}}
"""


def quota(name: str = "gpus", namespace: str = "default", **hard: Any) -> str:
    """A ResourceQuota manifest; ``gpu=4`` stands for requests.nvidia.com/gpu."""
    keys = {("requests." + GPU if key == "gpu" else key): str(v) for key, v in hard.items()}
    return f"""\
apiVersion: v1
kind: ResourceQuota
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{hard: {{{", ".join(f'"{k}": "{v}"' for k, v in keys.items())}}}}}
"""


def joined(*documents: str) -> str:
    return "---\n".join(documents)


def _indented(text: str, by: int) -> str:
    return "".join(" " * by + line + "\n" for line in text.splitlines())


QUIET = policy("rules: {spec/rollout-surge: off, spec/shared-memory: off}\n")
"""Without the two remarks that most small manifests earn."""


def outcomes(made: Report) -> list[tuple[str, str, str, str, tuple[str, ...]]]:
    """(name, admission, placement, nodes of its pods, blockers) of each workload."""
    return [
        (v.ref.name, v.admission, v.placement, " ".join(p.node for p in v.places), v.blockers)
        for v in made.workloads
    ]


def judged(workload: Workload, cluster: Cluster, *rules: Rule, by: Policy = QUIET) -> Verdict:
    return judge(workload, State(cluster, Ledger.of(cluster)), Terms(by, NOW, rules))[0]


def decoded_quota(hard: str, *, used: str = "0") -> KubeObject:
    key = f"requests.{GPU}"
    return decoded(
        {
            "kind": "ResourceQuota",
            "metadata": {"name": "gpus", "namespace": "default"},
            "spec": {"hard": {key: hard}},
            "status": {"hard": {key: hard}, "used": {key: used}},
        }
    )
