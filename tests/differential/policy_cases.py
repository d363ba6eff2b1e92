"""Random admission policies of both kinds, their bindings and parameters, an object for them (a pod
or a workload), and who creates it."""

from __future__ import annotations

from random import Random

from tests.differential.vocabulary import GPU, Json, chance, some

HOME = "team-a"
LABELS = ("team", "tier", "gpu-admit.io/pool", "app")
VALUES = ("a", "b", "gold", "")
IMAGES = ("nginx", "nginx:latest", "nginx:1.25", "ghcr.io/x/y@sha256:aaaa", "registry:5000/a/b:v2")

CHECKS = (
    "has(object.metadata.labels) && 'team' in object.metadata.labels",
    "object.metadata.labels['team'] != ''",
    "object.metadata.?labels[?'tier'].orValue('none') == 'gold'",
    "object.spec.containers.all(c, has(c.resources.limits) && 'nvidia.com/gpu' in"
    " c.resources.limits)",
    "object.spec.containers.all(c, !has(c.resources.limits) || !('nvidia.com/gpu' in"
    " c.resources.limits) || quantity(c.resources.limits['nvidia.com/gpu'])"
    ".isLessThan(quantity('5')))",
    "object.spec.containers.all(c, c.image.contains(':') && !c.image.endsWith(':latest'))",
    "object.spec.containers.exists(c, c.imagePullPolicy == 'Always')",
    "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
    "object.spec.terminationGracePeriodSeconds <= 30",
    "has(object.spec.securityContext.runAsNonRoot) && object.spec.securityContext.runAsNonRoot",
    "object.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.privileged) &&"
    " !c.securityContext.privileged)",
    "object.spec.?nodeSelector.orValue({}).size() == 0",
    "request.operation == 'CREATE' && request.namespace == 'team-a'",
    "request.kind.kind == 'Pod' && request.resource.resource == 'pods'",
    "namespaceObject.metadata.labels['env'] == 'prod'",
    "namespaceObject.metadata.name.startsWith('team-')",
    "oldObject == null",
    "size(object.spec.containers) < 2",
    "object.spec.volumes.all(v, !has(v.hostPath))",
    "!has(object.spec.volumes) || object.spec.volumes.all(v, has(v.emptyDir) || has(v.configMap))",
    "object.spec.tolerations.exists(t, t.key == 'nvidia.com/gpu')",
    "object.spec.containers.map(c, c.name).join(',').matches('^[a-z,]+$')",
    "object.spec.priority > 5",
    "variables.gpus == 0 || variables.team in ['a', 'b']",
    "variables.gpus < 3",
    "variables.bad",
    "has(object.status) && object.kind == 'Pod' && object.apiVersion == 'v1'",
    "object.spec.restartPolicy == 'Always'",
    "object.spec.containers.all(c, c.ports.all(p, p.protocol == 'TCP'))",
    "object.spec.containers[0].env.exists(e, e.name == 'A' && e.value == '1')",
    "object.metadata.name.size() < 20",
    "object.metadata.annotations['x'] == 'y'",
    "object.spec.containers.all(c, has(c.livenessProbe) && c.livenessProbe.periodSeconds == 10)",
    "object.spec",
    "object.spec.containers.all(c, c.resources.requests['cpu'] == '1')",
    "has(request.subResource)",
    "object.spec.schedulerName == 'default-scheduler' && object.spec.dnsPolicy == 'ClusterFirst'",
    "object.spec.serviceAccountName == 'default'",
)
USER_CHECKS = (
    "request.userInfo.username == 'someone'",
    "request.userInfo.username.startsWith('system:serviceaccount:kube-system:')",
    "'system:masters' in request.userInfo.groups",
    "request.userInfo.groups.exists(g, g.startsWith('system:serviceaccounts:'))",
    "!has(request.userInfo.uid) || request.userInfo.uid != ''",
    "has(request.userInfo.extra) && 'scopes' in request.userInfo.extra",
    "request.userInfo.?extra.?scopes.orValue([]).exists(s, s == 'admin')",
    "request.userInfo.username in ['alice', 'bob'] || variables.gpus == 0",
    "!request.dryRun",
    "request.?userInfo.?username.orValue('') != 'alice'",
)
WORKLOAD_CHECKS = (
    "object.spec.replicas <= 2",
    "object.spec.?replicas.orValue(1) < 3",
    "object.spec.template.metadata.labels['app'] == 'web'",
    "object.spec.template.spec.containers.all(c, c.imagePullPolicy == 'Always')",
    "object.spec.selector.matchLabels.size() == 1",
    "object.spec.strategy.type == 'RollingUpdate' && object.spec.strategy.rollingUpdate.maxSurge =="
    " '25%'",
    "object.spec.backoffLimit == 6 && object.spec.completions == 1",
    "object.spec.completionMode == 'Indexed'",
    "object.spec.jobTemplate.spec.template.spec.restartPolicy == 'Never'",
    "object.spec.template.spec.?nodeSelector[?'pool'].orValue('') == 'a'",
    "object.spec.updateStrategy.rollingUpdate.partition == 0",
    "object.metadata.?annotations[?'x'].orValue('') == 'y'",
    "object.metadata.labels['team'] == 'b'",
    "object.spec.template.metadata.labels['job-name'] == 'web'",
    "has(object.spec.revisionHistoryLimit) && object.spec.revisionHistoryLimit == 10",
    "object.spec.volumeClaimTemplates.all(c, c.spec.volumeMode == 'Filesystem')",
    "has(object.status) && has(object.spec.template.spec.securityContext)",
    "object.spec.manualSelector == false && object.spec.suspend == false",
)
WORKLOAD_APPLY = (
    "Object{metadata: Object.metadata{labels: {'team': 'b'}}}",
    "Object{metadata: Object.metadata{annotations: {'x': 'y'}}}",
    "Object{spec: Object.spec{replicas: 2}}",
    "Object{spec: Object.spec{template: Object.spec.template{metadata:"
    " Object.spec.template.metadata{labels: {'team': 'b', 'tier': 'gold'}}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
    "terminationGracePeriodSeconds: 10}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
    "containers: object.spec.template.spec.containers.map(c,"
    " Object.spec.template.spec.containers{name: c.name, env:"
    " [Object.spec.template.spec.containers.env{name: 'A', value: '1'}]})}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
    "tolerations: []}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
    "nodeSelector: {'pool': 'a'}}}}}",
    "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}",
    "Object{spec: Object.spec{strategy: Object.spec.strategy{type: 'Recreate'}}}",
    "Object{spec: Object.spec{parallelism: 3}}",
    "Object{spec: Object.spec{suspend: true}}",
    "has(object.spec.jobTemplate) ? Object{spec: Object.spec{jobTemplate: Object.spec.jobTemplate{"
    "spec: Object.spec.jobTemplate.spec{template: Object.spec.jobTemplate.spec.template{spec:"
    " Object.spec.jobTemplate.spec.template.spec{priorityClassName: 'low'}}}}}} : Object{}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
    "initContainers: [Object.spec.template.spec.initContainers{name: 'new', image: 'busybox'}]}}}}",
)
WORKLOAD_PATCHES = (
    "[JSONPatch{op: 'replace', path: '/spec/replicas', value: 1}]",
    "[JSONPatch{op: 'add', path: '/spec/template/spec/nodeSelector', value: {'pool': 'a'}}]",
    "[JSONPatch{op: 'add', path: '/spec/template/metadata/labels/tier', value: 'gold'}]",
    "[JSONPatch{op: 'add', path: '/spec/template/spec/containers/-', value:"
    " Object.spec.template.spec.containers{name: 'side', image: 'envoy:1'}}]",
    "[JSONPatch{op: 'remove', path: '/spec/strategy'}]",
    "[JSONPatch{op: 'test', path: '/spec/template/spec/restartPolicy', value: 'Never'},"
    " JSONPatch{op: 'replace', path: '/spec/template/spec/restartPolicy', value: 'OnFailure'}]",
    "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'team': 'b'}}]",
    "[JSONPatch{op: 'add', path: '/spec/jobTemplate/spec/template/spec/priorityClassName',"
    " value: 'low'}]",
    "[JSONPatch{op: 'add', path: '/spec/template/spec/tolerations', value:"
    " [Object.spec.template.spec.tolerations{key: 'nvidia.com/gpu', operator: 'Exists'}]}]",
    "[JSONPatch{op: 'remove', path: '/spec/template/metadata/labels'}]",
    "[JSONPatch{op: 'add', path: '/spec/unheard', value: 1}]",
    "[JSONPatch{op: 'copy', from: '/metadata/name', path: '/spec/template/spec/schedulerName'}]",
    "[JSONPatch{op: 'copy', from: '/metadata/absent', path: '/metadata/generateName'}]",
    "[JSONPatch{op: 'move', from: '/spec/absent', path: '/metadata/generateName'}]",
    "[JSONPatch{op: 'test', path: '/spec/absent', value: null}, JSONPatch{op: 'remove', path:"
    " '/spec/template/spec/containers/3'}]",
)
USER_APPLY = "Object{metadata: Object.metadata{annotations: {'by': request.userInfo.username}}}"
PARAM_APPLY = (
    "Object{metadata: Object.metadata{labels: {'team': params.metadata.name}}}",
    "Object{metadata: Object.metadata{annotations: {params.metadata.name: 'seen'}}}",
    "Object{metadata: Object.metadata{labels: {'k': has(params.kind) ? params.kind : 'none'}}}",
    "params == null ? Object{} : Object{metadata: Object.metadata{labels: params.data}}",
)
LIMIT_KIND = {"apiVersion": "example.com/v1", "kind": "Limit"}
FLEET_KIND = {"apiVersion": "example.com/v1", "kind": "Fleet"}
PARAM_KINDS = (
    {"apiVersion": "v1", "kind": "ConfigMap"},
    {"apiVersion": "v1", "kind": "ConfigMap"},
    LIMIT_KIND,
    FLEET_KIND,
    {"apiVersion": "example.com/v1", "kind": "Gone"},
)
CUSTOM_CHECKS = (
    "params == null || params.spec.limit > 3",
    "params.kind == 'Limit' && params.apiVersion == 'example.com/v1'",
    "params.spec.teams.exists(t, t == 'a')",
    "'a' in params.spec.teams",
    "has(params.spec.limit) && double(params.spec.limit) < 3.5",
    "params.metadata.name.startsWith('s')",
    "!has(params.metadata.labels) || params.metadata.labels['for'] == 'gpu'",
    "has(params.metadata.namespace) && params.metadata.namespace == request.namespace",
    "params.?spec.?strict.orValue(false)",
)
PARAM_CHECKS = (
    "params.kind == 'ConfigMap'",
    "has(params.metadata.labels) && params.metadata.labels['for'] == 'gpu'",
    "has(params.apiVersion) || has(params.spec)",
    "params.data.all(k, v, v != '')",
    "params.metadata.namespace == 'team-a'",
    "params == null || 'team' in params.data",
    "has(params.data) && params.data['limit'] != '' && variables.gpus <= int(params.data['limit'])",
    "params.metadata.name == 'settings'",
)
VARIABLES: tuple[Json, ...] = (
    {
        "name": "gpus",
        "expression": "object.spec.containers.map(c, c.?resources.limits[?'nvidia.com/gpu']"
        ".orValue('0')).map(q, quantity(q).asInteger()).sum()",
    },
    {"name": "team", "expression": "object.metadata.?labels[?'team'].orValue('')"},
    {"name": "bad", "expression": "object.spec.nothing == 1"},
)
CONDITIONS = (
    "object.spec.containers.exists(c, has(c.resources.limits) && 'nvidia.com/gpu' in"
    " c.resources.limits)",
    "request.namespace != 'kube-system'",
    "object.metadata.labels['app'] == 'web'",
    "has(object.metadata.labels)",
    "true",
    "variables.gpus > 0",
    "false",
)
MESSAGES = (
    "'pod ' + object.metadata.name + ' wants ' + string(variables.gpus)",
    "'  '",
    "object.metadata.labels['team']",
    "string(size(object.spec.containers))",
    "'a\\nb'",
)
APPLY = (
    "Object{metadata: Object.metadata{labels: {'team': 'b'}}}",
    "Object{metadata: Object.metadata{annotations: {'x': 'y', 'z': string(variables.gpus)}}}",
    "Object{spec: Object.spec{terminationGracePeriodSeconds: 10}}",
    "Object{spec: Object.spec{containers: object.spec.containers.map(c,"
    " Object.spec.containers{name: c.name, imagePullPolicy: 'Never'})}}",
    "Object{spec: Object.spec{containers: object.spec.containers.map(c,"
    " Object.spec.containers{name: c.name, env: [Object.spec.containers.env{name: 'A',"
    " value: '1'}]})}}",
    "Object{spec: Object.spec{tolerations: []}}",
    "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}",
    "Object{spec: Object.spec.wrong{}}",
    "Object{spec: Object.spec{priorityClassName: object.metadata.labels['tier']}}",
    "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'new',"
    " image: 'busybox'}]}}",
    "has(object.metadata.labels) ? Object{} : Object{metadata: Object.metadata{labels:"
    " {'tier': 'gold'}}}",
    "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c0', resources:"
    " Object.spec.containers.resources{limits: {'memory': '1Gi'}}}]}}",
)
PATCHES = (
    "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'team': 'a'}}]",
    "[JSONPatch{op: 'add', path: '/metadata/labels/tier', value: 'gold'}]",
    "[JSONPatch{op: 'replace', path: '/spec/terminationGracePeriodSeconds', value: 5}]",
    "[JSONPatch{op: 'test', path: '/spec/dnsPolicy', value: 'ClusterFirst'},"
    " JSONPatch{op: 'replace', path: '/spec/dnsPolicy', value: 'Default'}]",
    "[JSONPatch{op: 'test', path: '/spec/dnsPolicy', value: 'Other'},"
    " JSONPatch{op: 'add', path: '/metadata/labels/never', value: 'x'}]",
    "[JSONPatch{op: 'add', path: '/spec/nodeSelector', value: {'pool': variables.team}}]",
    "[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'side',"
    " image: 'envoy:1'}}]",
    "[JSONPatch{op: 'remove', path: '/spec/containers/0/image'}]",
    "[JSONPatch{op: 'add', path: '/spec/tolerations', value: [Object.spec.tolerations{key:"
    " 'nvidia.com/gpu', operator: 'Exists'}]}]",
    "[JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('a/b'),"
    " value: 'c'}]",
    "has(object.spec.nodeSelector) ? [] : [JSONPatch{op: 'add', path: '/spec/priorityClassName',"
    " value: 'high'}]",
)


HEAVY = "sets.intersects(lists.range(1000), lists.range(990))"
"""992013 cost units in a moment: the sets are charged as if each pair was compared."""


def _up_to(rng: Random, left: int, text: str) -> str:
    """An expression with so many units beside ``text`` that a few more or less decide whether it
    costs more than is left. ``lists.range(n).size() > 0`` costs n + 13."""
    return f"lists.range({left - 13 - rng.randint(0, 40)}).size() > 0 && ({text})"


def _costly(rng: Random, policy: Json) -> None:
    """Brings one of the limits of cost near."""
    spec = policy["spec"]
    every = (*CHECKS, *USER_CHECKS, *WORKLOAD_CHECKS)
    plain = [one for one in every if "variables" not in one]
    text = rng.choice(plain)
    roll = rng.random()
    if roll < 0.35:
        checks = [f"{HEAVY} && {_up_to(rng, 7987, one)}" for one in some(rng, plain, 8, 8)]
        spec["validations"] = [{"expression": one} for one in checks]
    elif roll < 0.5:
        last = _up_to(rng, 14451, text)
        half = "sets.intersects(lists.range(1000), lists.range(500))"
        conditions = (HEAVY, HEAVY, f"{half} && {last}")
        spec["matchConditions"] = [
            {"name": f"m{n}", "expression": one} for n, one in enumerate(conditions)
        ]
    elif roll < 0.6:
        spec["variables"] = [*VARIABLES, {"name": "heavy", "expression": HEAVY}]
        checks = ["variables.heavy", *[HEAVY] * 9, _up_to(rng, 79868, text)]
        spec["validations"] = [{"expression": one} for one in checks]
    elif roll < 0.7:
        spec["variables"] = [{"name": "over", "expression": f"{HEAVY} && {HEAVY}"}]
        spec["validations"] = [{"expression": "variables.over"}, {"expression": text}]
    elif roll < 0.85:
        checks = [*[HEAVY] * 10, _up_to(rng, 79870, text)]
        spec["validations"] = [{"expression": one} for one in checks]
    else:
        checks = [*[HEAVY] * 9, text]
        spec["validations"] = [
            {"expression": one, "messageExpression": f"{HEAVY} ? 'x' : 'y'"} for one in checks
        ]


def case(rng: Random) -> Json:
    validating = rng.randint(0, 3)
    mutating = rng.randint(0, 2) if validating else rng.randint(1, 2)
    kind = "Pod" if chance(rng, 0.6) else rng.choice(tuple(WORKLOADS))
    policies = [_policy(rng, number, kind) for number in range(validating)]
    mutations = [_mutation(rng, number, kind) for number in range(mutating)]
    if policies and chance(rng, 0.1):
        _costly(rng, policies[0])
    labels = {"env": rng.choice(("prod", "dev"))} if chance(rng, 0.7) else {}
    return {
        "objects": [
            {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": HOME, "labels": labels}}
        ],
        "pod": {
            "pod": pod(rng) if kind == "Pod" else workload(rng, kind),
            **({"user": rng.choice(USERS)} if chance(rng, 0.5) else {}),
            "policies": policies,
            "bindings": [b for p in policies for b in _bindings(rng, p, validating=True)],
            "mutatingPolicies": mutations,
            "mutatingBindings": [b for p in mutations for b in _bindings(rng, p, validating=False)],
            "params": [one for one in _params(rng) if chance(rng, 0.7)],
            "paramKinds": [
                {**LIMIT_KIND, "namespaced": True},
                {**FLEET_KIND, "namespaced": False},
            ],
        },
    }


USERS: tuple[Json, ...] = (
    {"username": "alice", "groups": ["developers", "system:authenticated"]},
    {"username": "alice", "uid": "7", "groups": ["system:masters", "system:authenticated"]},
    {"username": "bob", "groups": [], "extra": {"scopes": ["admin", "read"]}},
    {
        "username": "system:serviceaccount:kube-system:replicaset-controller",
        "uid": "123",
        "groups": [
            *("system:serviceaccounts", "system:serviceaccounts:kube-system"),
            "system:authenticated",
        ],
    },
)


def _params(rng: Random) -> list[Json]:
    """Three kinds of parameters, of each several, some elsewhere."""
    found: list[Json] = []
    for name, place in (("settings", HOME), ("more", HOME), ("settings", "shared")):
        labels = {"for": rng.choice(("gpu", "gpu", "cpu"))} if chance(rng, 0.8) else {}
        data = {"limit": rng.choice(("1", "4", "")), "team": "a"} if chance(rng, 0.9) else {}
        metadata: Json = {"name": name, "namespace": place}
        if labels:
            metadata["labels"] = labels
        found.append({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data})
        spec: Json = {"limit": rng.choice((1, 4, 3.5)), "teams": some(rng, ("a", "b"), 0, 2)}
        if chance(rng, 0.3):
            spec["strict"] = True
        found.append({**LIMIT_KIND, "metadata": metadata, "spec": spec})
        if place == HOME:
            bare = {key: value for key, value in metadata.items() if key != "namespace"}
            found.append({**FLEET_KIND, "metadata": bare, "spec": spec})
    return found


def workload(rng: Random, kind: str) -> Json:
    """A built-in workload: what its kind has of its own, and a template that is a pod."""
    api, fields = WORKLOADS[kind]
    made = pod(rng)
    template: Json = {"metadata": {"labels": {"app": "web"}}, "spec": made["spec"]}
    if "labels" in made["metadata"]:
        template["metadata"]["labels"] |= made["metadata"]["labels"]
    if kind in ("Job", "CronJob"):
        template["spec"]["restartPolicy"] = rng.choice(("Never", "OnFailure"))
        if chance(rng, 0.2):
            del template["metadata"]
    spec: Json = {"template": template}
    if api == "apps/v1":
        spec["selector"] = {"matchLabels": {"app": "web"}}
    if kind == "CronJob":
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
    for name, values in fields:
        if chance(rng, 0.3):
            spec[name] = rng.choice(values)
    metadata: Json = {"name": "web", "namespace": HOME}
    if chance(rng, 0.6):
        metadata["labels"] = {key: rng.choice(VALUES) for key in some(rng, LABELS, 0, 3)}
    if chance(rng, 0.2):
        metadata["annotations"] = {"x": rng.choice(("y", "z"))}
    return {"kind": kind, "apiVersion": api, "metadata": metadata, "spec": spec}


_CLAIMS = (
    [{"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
    [{"metadata": {"name": "v"}, "spec": {"volumeMode": "Block"}}],
)
WORKLOADS: dict[str, tuple[str, tuple[tuple[str, tuple[object, ...]], ...]]] = {
    "Deployment": (
        "apps/v1",
        (
            ("replicas", (0, 1, 3)),
            ("strategy", ({"type": "Recreate"}, {"rollingUpdate": {"maxSurge": 1}}, {})),
            ("minReadySeconds", (0, 5)),
            ("revisionHistoryLimit", (3,)),
        ),
    ),
    "ReplicaSet": ("apps/v1", (("replicas", (0, 1, 3)),)),
    "StatefulSet": (
        "apps/v1",
        (
            ("replicas", (0, 3)),
            ("updateStrategy", ({"type": "OnDelete"}, {"type": "RollingUpdate"}, {})),
            ("podManagementPolicy", ("Parallel",)),
            ("volumeClaimTemplates", _CLAIMS),
            ("persistentVolumeClaimRetentionPolicy", ({"whenDeleted": "Delete"},)),
            ("serviceName", ("web",)),
        ),
    ),
    "DaemonSet": (
        "apps/v1",
        (("updateStrategy", ({"type": "OnDelete"}, {"rollingUpdate": {"maxSurge": 1}})),),
    ),
    "Job": (
        "batch/v1",
        (
            ("completions", (1, 4)),
            ("parallelism", (1, 2)),
            ("backoffLimit", (0, 3)),
            ("backoffLimitPerIndex", (1,)),
            ("completionMode", ("Indexed", "NonIndexed")),
            ("suspend", (True, False)),
            (
                "podFailurePolicy",
                (
                    {
                        "rules": [
                            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
                        ]
                    },
                ),
            ),
            ("ttlSecondsAfterFinished", (0, 60)),
        ),
    ),
    "CronJob": (
        "batch/v1",
        (
            ("concurrencyPolicy", ("Forbid",)),
            ("suspend", (True,)),
            ("successfulJobsHistoryLimit", (0, 1)),
        ),
    ),
}
"""Kind -> its API version and fields of its own."""


def pod(rng: Random) -> Json:
    metadata: Json = {"namespace": HOME}
    metadata["name" if chance(rng, 0.6) else "generateName"] = "web-"[: rng.choice((3, 4))].rstrip(
        "-"
    ) + rng.choice(("", "-0"))
    if "generateName" in metadata:
        metadata["generateName"] = "web-7d9-"
    if chance(rng, 0.7):
        metadata["labels"] = {key: rng.choice(VALUES) for key in some(rng, LABELS, 0, 3)}
    if chance(rng, 0.3):
        metadata["annotations"] = {"x": rng.choice(("y", "z"))}
    spec: Json = {"containers": [_container(rng, n) for n in range(rng.randint(1, 2))]}
    if chance(rng, 0.2):
        spec["initContainers"] = [_container(rng, 7)]
    for field, values in (
        ("hostNetwork", (True, False)),
        ("terminationGracePeriodSeconds", (0, 5, 60)),
        ("restartPolicy", ("Never", "Always")),
        ("nodeSelector", ({"pool": "a"}, {})),
        ("securityContext", ({}, {"runAsNonRoot": True}, {"runAsUser": 0})),
        ("tolerations", ([{"key": GPU, "operator": "Exists"}], [])),
        ("serviceAccountName", ("default", "other")),
        ("priority", (1, 10)),
        ("automountServiceAccountToken", (False,)),
        (
            "volumes",
            (
                [{"name": "v", "emptyDir": {}}],
                [{"name": "v", "hostPath": {"path": "/x"}}],
                [{"name": "v", "configMap": {"name": "c"}}],
                [{"name": "v"}],
            ),
        ),
    ):
        if chance(rng, 0.2):
            spec[field] = rng.choice(values)
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def _container(rng: Random, number: int) -> Json:
    made: Json = {"name": f"c{number}", "image": rng.choice(IMAGES)}
    if chance(rng, 0.7):
        made["resources"] = {"limits": {GPU: rng.choice(("1", "2", "8", 4))}}
        if chance(rng, 0.4):
            made["resources"]["requests"] = {"cpu": rng.choice(("1", "1000m", "0.5", 2))}
    if chance(rng, 0.3):
        made["securityContext"] = rng.choice(({"privileged": False}, {"privileged": True}, {}))
    if chance(rng, 0.2):
        made["ports"] = [{"containerPort": 80, **rng.choice(({}, {"protocol": "UDP"}))}]
    if chance(rng, 0.3):
        made["env"] = [{"name": "A", "value": rng.choice(("1", "2", ""))}]
    if chance(rng, 0.2):
        made["livenessProbe"] = {"httpGet": {"port": 80}, **rng.choice(({}, {"periodSeconds": 3}))}
    if chance(rng, 0.2):
        made["imagePullPolicy"] = "Always"
    return made


def _matched(rng: Random, kind: str) -> Json:
    group = WORKLOADS[kind][0].partition("/")[0] if kind != "Pod" else ""
    mine = f"{kind.lower()}s"
    rule = {
        "apiGroups": rng.choice(([group], ["*"], [group], ["apps"])),
        "apiVersions": rng.choice((["v1"], ["*"], ["v1"])),
        "operations": rng.choice((["CREATE"], ["*"], ["CREATE", "UPDATE"], ["UPDATE"])),
        "resources": rng.choice(([mine], ["*"], [mine], [f"{mine}/*"], ["deployments"], ["pods"])),
    }
    made: Json = {"resourceRules": [rule]}
    if chance(rng, 0.15):
        made["namespaceSelector"] = {"matchLabels": {"env": rng.choice(("prod", "dev"))}}
    if chance(rng, 0.15):
        made["objectSelector"] = rng.choice(
            (
                {"matchLabels": {"team": "a"}},
                {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            )
        )
    if chance(rng, 0.1):
        made["excludeResourceRules"] = [{**rule, "resourceNames": ["web"]}]
    return made


def _common(rng: Random, kind: str, *, params: bool) -> Json:
    spec: Json = {"matchConstraints": _matched(rng, kind) if chance(rng, 0.5) else _all(kind)}
    if chance(rng, 0.4):
        spec["failurePolicy"] = rng.choice(("Fail", "Ignore"))
    if params:
        spec["paramKind"] = rng.choice(PARAM_KINDS)
    if chance(rng, 0.3):
        spec["matchConditions"] = [
            {"name": f"m{n}", "expression": text}
            for n, text in enumerate(some(rng, (*CONDITIONS, *USER_CHECKS[:2]), 1, 2))
        ]
    spec["variables"] = list(VARIABLES)
    if kind != "Pod":
        gpus = str(VARIABLES[0]["expression"]).replace("object.spec.", "object.spec.template.spec.")
        spec["variables"][0] = {"name": "gpus", "expression": gpus}
    return spec


def _all(kind: str) -> Json:
    group = WORKLOADS[kind][0].partition("/")[0] if kind != "Pod" else ""
    return {
        "resourceRules": [
            {
                "apiGroups": [group],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": [f"{kind.lower()}s"],
            }
        ]
    }


def _policy(rng: Random, number: int, kind: str) -> Json:
    params = chance(rng, 0.3)
    spec = _common(rng, kind, params=params)
    own = CHECKS if kind == "Pod" else (*WORKLOAD_CHECKS, *WORKLOAD_CHECKS, *CHECKS)
    checks = some(rng, own, 1, 2)
    if chance(rng, 0.2):
        checks[-1] = rng.choice(USER_CHECKS)
    if params and chance(rng, 0.7):
        of_maps = spec["paramKind"]["kind"] == "ConfigMap"
        checks[0] = rng.choice(PARAM_CHECKS if of_maps else CUSTOM_CHECKS)
    spec["validations"] = []
    for text in checks:
        one: Json = {"expression": text}
        if chance(rng, 0.4):
            one["message"] = " no "
        if chance(rng, 0.4):
            one["messageExpression"] = rng.choice(MESSAGES)
        if chance(rng, 0.2):
            one["reason"] = rng.choice(("Forbidden", "Invalid", "Unauthorized"))
        spec["validations"].append(one)
    if chance(rng, 0.1):
        spec["auditAnnotations"] = [
            {"key": "k", "valueExpression": rng.choice(("'x'", "null", "object.metadata.labels.x"))}
        ]
    return {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": f"v{number}"}, "spec": spec}


def _mutation(rng: Random, number: int, kind: str) -> Json:
    spec = _common(rng, kind, params=chance(rng, 0.15))
    spec["reinvocationPolicy"] = rng.choice(("Never", "IfNeeded"))
    spec["mutations"] = []
    for _ in range(rng.randint(1, 2)):
        if chance(rng, 0.5):
            text = rng.choice(APPLY if kind == "Pod" else (*WORKLOAD_APPLY, *APPLY[:2]))
            if "paramKind" in spec and chance(rng, 0.6):
                text = rng.choice(PARAM_APPLY)
            elif chance(rng, 0.1):
                text = USER_APPLY
            one = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
        else:
            text = rng.choice(PATCHES if kind == "Pod" else (*WORKLOAD_PATCHES, *PATCHES[:2]))
            one = {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
        spec["mutations"].append(one)
    return {"kind": "MutatingAdmissionPolicy", "metadata": {"name": f"m{number}"}, "spec": spec}


def _bindings(rng: Random, policy: Json, *, validating: bool) -> list[Json]:
    found = []
    for number in range(rng.choice((1, 1, 1, 2, 0))):
        spec: Json = {"policyName": policy["metadata"]["name"]}
        if validating:
            spec["validationActions"] = rng.choice(
                (["Deny"], ["Warn"], ["Audit"], ["Warn", "Audit"], ["Deny", "Audit"])
            )
        if "paramKind" in policy["spec"] and chance(rng, 0.85):
            spec["paramRef"] = {
                **rng.choice(
                    (
                        {"name": "settings"},
                        {"name": "settings"},
                        {"name": "absent"},
                        {"selector": {"matchLabels": {"for": "gpu"}}},
                        {"selector": {}},
                        {"selector": {"matchExpressions": [{"key": "for", "operator": "Exists"}]}},
                    )
                ),
                **({"namespace": rng.choice(("shared", "nowhere"))} if chance(rng, 0.2) else {}),
                "parameterNotFoundAction": rng.choice(("Allow", "Deny")),
            }
        if chance(rng, 0.15):
            spec["matchResources"] = {"objectSelector": {"matchLabels": {"team": "a"}}}
        kind = f"{policy['kind']}Binding"
        name = f"{policy['metadata']['name']}b{number}"
        found.append({"kind": kind, "metadata": {"name": name}, "spec": spec})
    return found
