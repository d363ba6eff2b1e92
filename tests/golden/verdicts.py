"""Reports made by hand, one for each thing that a renderer must be able to say."""

from __future__ import annotations

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.verdict import (
    Evidence,
    Finding,
    Group,
    Mutation,
    NodeVerdict,
    Outcome,
    PodPlace,
    Ref,
    Remedy,
    Report,
    Shortfall,
    Skipped,
    Source,
    Unknown,
    Verdict,
    unreadable,
)

AS_OF = "2026-03-01T12:00:00Z"
SNAPSHOT = Source("snapshot", "examples/cluster", 260)
GPU = "nvidia.com/gpu"


def ref(kind: str, name: str, namespace: str = "team-a", api: str = "apps/v1") -> Ref:
    return Ref(api, kind, namespace, name)


def report(*verdicts: Verdict, **more: object) -> Report:
    return Report(AS_OF, SNAPSHOT, verdicts, policy="examples/policy.yaml", **more)  # type: ignore[arg-type]


def gpu_short(
    used: int, capacity: int = 8, asked: int = 4, *, permanent: bool = False
) -> Shortfall:
    return Shortfall(
        "NodeResourcesFit",
        f"Insufficient {GPU}",
        "placement/insufficient",
        asked,
        used,
        capacity,
        permanent,
        "",
        GPU,
    )


def taint(text: str = f"{GPU}=present:NoSchedule") -> Shortfall:
    return Shortfall(
        "TaintToleration",
        f"node(s) had untolerated taint {{{text}}}",
        "placement/taint",
        permanent=True,
        subject=text,
    )


CLEAR = Verdict(
    ref=ref("Deployment", "embedder"),
    location="serving.yaml:1",
    pods=3,
    gpus={GPU: 3},
    admission="admitted",
    placement="fits",
    running="fits",
    nodes=(
        NodeVerdict("inf-0", True),
        NodeVerdict("inf-1", True),
        NodeVerdict("cpu-0", False, (taint(),)),
    ),
    places=(
        PodPlace("embedder-0", "", "inf-0"),
        PodPlace("embedder-1", "", "inf-0"),
        PodPlace("embedder-2", "", "inf-1"),
    ),
    groups=(Group("", 3, {GPU: 1}),),
)

MUTATED = Verdict(
    ref=ref("Job", "finetune", "research", "batch/v1"),
    location="train.yaml:22",
    pods=1,
    gpus={GPU: 8},
    admission="mutated",
    placement="fits",
    running="not-a-model",
    patch=(
        {"op": "add", "path": "/spec/nodeSelector", "value": {"gpu-partition": "train"}},
        {
            "op": "add",
            "path": "/spec/tolerations/-",
            "value": {"key": "dedicated", "operator": "Equal", "value": "gpu"},
        },
        {"op": "replace", "path": "/spec/priorityClassName", "value": "llm-training-batch"},
        {"op": "add", "path": "/metadata/labels/gpu-admit.io~1class", "value": "batch"},
    ),
    mutations=(
        Mutation(
            (
                {"op": "add", "path": "/spec/nodeSelector", "value": {"gpu-partition": "train"}},
                {
                    "op": "add",
                    "path": "/spec/tolerations/-",
                    "value": {"key": "dedicated", "operator": "Equal", "value": "gpu"},
                },
                {"op": "replace", "path": "/spec/priorityClassName", "value": "llm-training-batch"},
            ),
            summary="route batch work to the batch pool",
            rule="partition/route",
            at="/spec/template",
            before={"/spec/priorityClassName": "default"},
        ),
        Mutation(
            ({"op": "add", "path": "/metadata/labels/gpu-admit.io~1class", "value": "batch"},),
            rule="labels/class",
            at="/spec/template",
        ),
        Mutation(
            (
                {
                    "op": "add",
                    "path": "/spec/schedulingGates",
                    "value": [{"name": "gpu-admit.io/hold"}],
                },
            ),
            rule="static/hold",
            level="audit",
            at="/spec/template",
        ),
    ),
    nodes=(NodeVerdict("trn-0", True),),
    places=(PodPlace("finetune-0", "", "trn-0"),),
    groups=(Group("", 1, {GPU: 8}),),
)

DENIED = Verdict(
    ref=ref("Deployment", "llama-70b"),
    location="serving.yaml:40",
    pods=3,
    gpus={GPU: 12},
    admission="denied",
    placement="fits",
    running="fits",
    blockers=("quota/exceeded",),
    findings=(
        Finding(
            "quota/exceeded",
            "pod 3 of 3 needs 4 nvidia.com/gpu, the quota has 0 left of 8",
            (
                Evidence(
                    "ResourceQuota team-a/gpus",
                    f"requests.{GPU} asked",
                    4,
                    None,
                    "status.used, resourceVersion 4711",
                ),
                Evidence(
                    "ResourceQuota team-a/gpus",
                    f"requests.{GPU} used",
                    8,
                    None,
                    "status.used, resourceVersion 4711",
                ),
                Evidence(
                    "ResourceQuota team-a/gpus",
                    f"requests.{GPU} limit",
                    8,
                    None,
                    "status.used, resourceVersion 4711",
                ),
            ),
            field="/spec/replicas",
        ),
        Finding(
            "quota/dead-key",
            'nvidia.com/gpu: "32" is accepted by the API server and never enforced; the key that '
            "counts is requests.nvidia.com/gpu",
            (Evidence("ResourceQuota team-a/legacy", "spec.hard", GPU, f"requests.{GPU}"),),
            rule="quota/dead-keys",
            level="warn",
        ),
    ),
    unknowns=(
        Unknown(
            "topology/island",
            "NVLink topology of pool inf: no agent map",
            "warn",
            "kubectl gpu-admit agent on the nodes of the pool",
            "placement",
        ),
    ),
    nodes=(
        NodeVerdict("inf-0", True),
        NodeVerdict("inf-1", True),
        *(NodeVerdict(f"cpu-{i}", False, (taint(),)) for i in range(4)),
        *(NodeVerdict(f"trn-{i}", False, (gpu_short(8 - i % 3),)) for i in range(6)),
    ),
    places=(PodPlace("llama-70b-0", "", "inf-0"), PodPlace("llama-70b-1", "", "inf-1")),
    remedies=(
        Remedy(
            "two replicas instead of three",
            (
                {"op": "test", "path": "/spec/replicas", "value": 3},
                {"op": "replace", "path": "/spec/replicas", "value": 2},
            ),
            cost=30,
            verified=True,
            result=Outcome("admitted", "fits", "fits"),
        ),
        Remedy(
            "raise the quota to 12",
            command="kubectl -n team-a patch quota gpus --type merge -p "
            '\'{"spec":{"hard":{"requests.nvidia.com/gpu":"12"}}}\'',
            cost=100,
            verified=True,
            result=Outcome("admitted", "fits", "fits"),
        ),
        Remedy("never tried, never printed", command="rm"),
    ),
    groups=(Group("", 3, {GPU: 4}),),
)

NEVER = Verdict(
    ref=ref("Job", "pretrain", "research", "batch/v1"),
    location="train.yaml:1",
    pods=1,
    gpus={GPU: 16},
    admission="admitted",
    placement="never",
    running="not-a-model",
    blockers=("placement/insufficient",),
    findings=(
        Finding(
            "placement/insufficient",
            "no node has 16 nvidia.com/gpu even when empty; the largest has 8",
            (Evidence("Node inf-0", f"allocatable {GPU}", 8, 16, "status.allocatable"),),
            field="/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu",
        ),
    ),
    nodes=(
        *(
            NodeVerdict(f"inf-{i}", False, (gpu_short(5, asked=16, permanent=True),))
            for i in range(3)
        ),
        NodeVerdict(
            "cpu-0",
            False,
            (
                taint("dedicated=cpu:NoSchedule"),
                Shortfall(
                    "NodeResourcesFit",
                    "Insufficient memory",
                    "placement/insufficient",
                    64 << 30,
                    10 << 30,
                    62 << 30,
                    True,
                    "",
                    "memory",
                ),
                Shortfall(
                    "NodeResourcesFit",
                    "Insufficient cpu",
                    "placement/insufficient",
                    16000,
                    500,
                    7500,
                    True,
                    "",
                    "cpu",
                ),
            ),
        ),
        NodeVerdict(
            "old-0",
            False,
            (
                Shortfall(
                    "NodeUnschedulable",
                    "node(s) were unschedulable",
                    "placement/cordoned",
                    permanent=True,
                    until="uncordoned",
                ),
            ),
        ),
    ),
    groups=(Group("", 1, {GPU: 16}),),
)

WAITS = Verdict(
    ref=ref("LeaderWorkerSet", "deepseek", "team-a", "leaderworkerset.x-k8s.io/v1"),
    location="lws.yaml:1",
    pods=4,
    gpus={GPU: 24},
    admission="admitted",
    placement="waits",
    running="unknown",
    blockers=("placement/insufficient",),
    findings=(
        Finding(
            "placement/insufficient",
            "worker 2 of 3 needs 8 nvidia.com/gpu, the best node trn-0 has 2 free",
            (
                Evidence("Node trn-0", f"{GPU} needs", 8, None),
                Evidence("Node trn-0", f"{GPU} free", 2, None),
            ),
            permanent=False,
            fidelity="modelled",
        ),
    ),
    unknowns=(
        Unknown(
            "model/memory",
            "the model's size: no config.json and no catalogue entry",
            "warn",
            "",
            "running",
        ),
    ),
    nodes=(
        NodeVerdict("trn-0", False, (gpu_short(6, asked=8),)),
        NodeVerdict("trn-1", False, (gpu_short(8, asked=8),)),
    ),
    places=(PodPlace("deepseek-0", "leader", "cpu-0"), PodPlace("deepseek-0-1", "worker", "trn-2")),
    waits_for=(
        "8 nvidia.com/gpu on trn-0, free when research/train-x ends (TTL 14:20)",
        "preempting research/train-x (priority 100 < 1000, its budget allows it)",
    ),
    decided_by="Kueue LocalQueue team-a",
    groups=(Group("leader", 1, {}), Group("worker", 3, {GPU: 8})),
)

UNKNOWN = Verdict(
    ref=ref("StatefulSet", "embedder"),
    location="serving.yaml:80",
    pods=2,
    gpus={"nvidia.com/mig-1g.10gb": 2},
    admission="unknown",
    placement="unknown",
    running="not-a-model",
    unknowns=(
        Unknown(
            "quota",
            "ResourceQuota objects of namespace team-a: not in the snapshot",
            "deny",
            "kubectl get resourcequota -A -o yaml > examples/cluster/quotas.yaml",
        ),
        Unknown(
            "placement",
            "pods that run already: not in the snapshot",
            "warn",
            "kubectl get pods -A -o json > examples/cluster/pods.json",
            "placement",
        ),
    ),
    groups=(Group("", 2, {"nvidia.com/mig-1g.10gb": 1}),),
)

WARNED = Verdict(
    ref=ref("Pod", "notebook", "default", "v1"),
    location="pods/notebook.yaml:1",
    pods=1,
    gpus={},
    admission="admitted",
    placement="fits",
    running="not-a-model",
    findings=(
        Finding(
            "spec/bypasses-booking",
            "NVIDIA_VISIBLE_DEVICES=all shows the container every GPU of its node, unasked",
            (Evidence("container jupyter", "env NVIDIA_VISIBLE_DEVICES", "all", None),),
            field="/spec/containers/0/env/0",
            rule="spec/traps",
            level="warn",
            fidelity="modelled",
        ),
        Finding(
            "labels/missing",
            "the pod has no label team",
            (Evidence("pod template", "label team", None, "a team"),),
            rule="labels/required",
            level="audit",
            fidelity="modelled",
        ),
    ),
    places=(PodPlace("notebook", "", "inf-0"),),
    groups=(Group("", 1, {}),),
)

LONG = "a" * 10_000
EVIL = "\x1b[31mred\x1b[0m\x07[/x][bold]\u202egnp.exe|`@all`<b>\r\nline"
HOSTILE = Verdict(
    ref=Ref("v1\x1b]0;title\x07", "Pod", "[/x]", EVIL),
    location=f"{EVIL}.yaml:3",
    pods=1,
    gpus={f"{EVIL}/gpu": 1},
    admission="denied",
    placement="never",
    running="not-a-model",
    blockers=("static/denied",),
    findings=(
        Finding(
            "static/denied",
            f"label {EVIL} of {LONG} is refused",
            (
                Evidence(f"Pod {LONG}", f"label {EVIL} asked", EVIL, None, EVIL),
                Evidence("שלום [link=x]", "资源配额", "\x9b2J\x00\ud800", LONG),
            ),
            rule=EVIL,
        ),
    ),
    unknowns=(Unknown("x", EVIL, "warn", EVIL),),
    mutations=(
        Mutation(
            (
                {
                    "op": "add",
                    "path": f"/metadata/labels/{EVIL.replace('/', '~1')}",
                    "value": {EVIL: [EVIL, LONG]},
                },
            ),
            rule=EVIL,
        ),
    ),
    nodes=(NodeVerdict(LONG, False, (taint(EVIL), gpu_short(8))),),
    waits_for=(EVIL,),
    decided_by=EVIL,
    remedies=(
        Remedy(
            EVIL,
            ({"op": "add", "path": f"/{EVIL}", "value": EVIL},),
            EVIL,
            verified=True,
            result=Outcome("admitted", "waits"),
        ),
    ),
)

BAD = unreadable(
    BadManifest(
        "yaml-syntax",
        "a tab cannot indent YAML",
        file="bad.yaml",
        line=7,
        column=3,
        field="spec.containers",
        hint="use blanks",
    )
)
STRANGE = Skipped(
    Ref("acme.io/v1", "Trainer", "team-a", "bert"),
    "crd.yaml:1",
    "unknown-kind",
    "no known path to its pod template",
    hint="declare it in the policy under kinds",
)
QUOTA = Skipped(Ref("v1", "ResourceQuota", "team-a", "gpus"), "serving.yaml:120", "applied")
SERVICE = Skipped(Ref("v1", "Service", "team-a", "web"), "serving.yaml:140", "not-a-workload")

REPORTS: dict[str, Report] = {
    "clear": report(CLEAR),
    "mutated": report(MUTATED),
    "denied": report(DENIED),
    "never": report(NEVER),
    "waits-other-scheduler": report(WAITS),
    "unknown": report(UNKNOWN),
    "warned": report(WARNED),
    "unknown-kind": report(skipped=(STRANGE,)),
    "bad-among-good": report(CLEAR, skipped=(BAD, STRANGE, QUOTA, SERVICE)),
    "tree": report(
        CLEAR, WAITS, DENIED, MUTATED, NEVER, UNKNOWN, WARNED, skipped=(QUOTA, STRANGE, SERVICE)
    ),
    "hostile": report(HOSTILE),
}
