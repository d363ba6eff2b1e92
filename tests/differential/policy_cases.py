"""Random admission policies of both kinds, their bindings and parameters, and a pod for them."""

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
PARAM_CHECKS = (
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
    plain = [one for one in CHECKS if "variables" not in one]
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
    policies = [_policy(rng, number) for number in range(validating)]
    mutations = [_mutation(rng, number) for number in range(mutating)]
    if policies and chance(rng, 0.1):
        _costly(rng, policies[0])
    labels = {"env": rng.choice(("prod", "dev"))} if chance(rng, 0.7) else {}
    return {
        "objects": [
            {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": HOME, "labels": labels}}
        ],
        "pod": {
            "pod": pod(rng),
            "policies": policies,
            "bindings": [b for p in policies for b in _bindings(rng, p, validating=True)],
            "mutatingPolicies": mutations,
            "mutatingBindings": [b for p in mutations for b in _bindings(rng, p, validating=False)],
            "params": [
                {
                    "kind": "ConfigMap",
                    "apiVersion": "v1",
                    "metadata": {"name": "settings", "namespace": HOME, "labels": {"for": "gpu"}},
                    "data": {"limit": rng.choice(("1", "4", "")), "team": "a"},
                }
            ]
            if chance(rng, 0.7)
            else [],
        },
    }


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


def _matched(rng: Random) -> Json:
    rule = {
        "apiGroups": rng.choice(([""], ["*"], [""], ["apps"])),
        "apiVersions": rng.choice((["v1"], ["*"], ["v1"])),
        "operations": rng.choice((["CREATE"], ["*"], ["CREATE", "UPDATE"], ["UPDATE"])),
        "resources": rng.choice((["pods"], ["*"], ["pods"], ["pods/*"], ["deployments"])),
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


def _common(rng: Random, *, params: bool) -> Json:
    spec: Json = {"matchConstraints": _matched(rng) if chance(rng, 0.5) else _pods()}
    if chance(rng, 0.4):
        spec["failurePolicy"] = rng.choice(("Fail", "Ignore"))
    if params:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    if chance(rng, 0.3):
        spec["matchConditions"] = [
            {"name": f"m{n}", "expression": text}
            for n, text in enumerate(some(rng, CONDITIONS, 1, 2))
        ]
    spec["variables"] = list(VARIABLES)
    return spec


def _pods() -> Json:
    return {
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
            }
        ]
    }


def _policy(rng: Random, number: int) -> Json:
    params = chance(rng, 0.25)
    spec = _common(rng, params=params)
    checks = some(rng, CHECKS, 1, 2)
    if params and chance(rng, 0.7):
        checks[0] = rng.choice(PARAM_CHECKS)
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


def _mutation(rng: Random, number: int) -> Json:
    spec = _common(rng, params=chance(rng, 0.1))
    spec["reinvocationPolicy"] = rng.choice(("Never", "IfNeeded"))
    spec["mutations"] = []
    for _ in range(rng.randint(1, 2)):
        if chance(rng, 0.5):
            text = rng.choice(APPLY)
            one = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
        else:
            one = {"patchType": "JSONPatch", "jsonPatch": {"expression": rng.choice(PATCHES)}}
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
                    )
                ),
                "parameterNotFoundAction": rng.choice(("Allow", "Deny")),
            }
        if chance(rng, 0.15):
            spec["matchResources"] = {"objectSelector": {"matchLabels": {"team": "a"}}}
        kind = f"{policy['kind']}Binding"
        name = f"{policy['metadata']['name']}b{number}"
        found.append({"kind": kind, "metadata": {"name": name}, "spec": spec})
    return found
