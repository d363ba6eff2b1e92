"""Rule cases: what a YAML document says, and what the rule said to it.

One document of ``tests/rules/FAMILY-WHAT/*.yaml`` is one case of rule ``FAMILY/WHAT``::

    name: a sentence, true when the case passes
    settings: {labels: [team]}      # of the rule, spelled as in the policy file
    policy: {pools: …, classes: …}  # the rest of the policy document
    cluster: [object, …]            # API objects; their kinds are known
    known: [Pod]                    # kinds that are known though there is no object of them
    namespace: team-a               # where the manifest goes, default "default"
    role: worker                    # which pod group is asked, default the first
    now: 2026-11-29T12:00:00Z
    kubernetes: "1.33"              # version of the API server, default the newest
    ask: manifest
    findings: [{reason: …, detail: …, evidence: […]}]    # all of them, in order; keys given count
    mutations: [{ops: […], summary: …}]
    unknowns: [{missing: …}]
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import msgspec
import yaml
from msgspec import Struct, structs

from kubectl_gpuadmit import rules
from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.decode import decode_object
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.kube.times import parse_instant
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.occupants import replaced_by
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.rule import REGISTRY, Ask, Found, Rule
from kubectl_gpuadmit.verdict import Finding, Mutation, Unknown

HERE = Path(__file__).parent
NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
assert rules.__all__


class Case(Struct, forbid_unknown_fields=True):
    name: str
    ask: dict[str, Any]
    settings: dict[str, Any] = {}
    policy: dict[str, Any] = {}
    cluster: list[dict[str, Any]] = []
    known: list[str] = []
    namespace: str = "default"
    role: str = ""
    now: str = "2026-11-29T12:00:00Z"
    kubernetes: str = "1.37"
    findings: list[dict[str, Any]] = []
    mutations: list[dict[str, Any]] = []
    unknowns: list[dict[str, Any]] = []

    @property
    def passes(self) -> bool:
        return not (self.findings or self.mutations or self.unknowns)


def folder(rule: str) -> Path:
    return HERE / rule.replace("/", "-", 1)


def cases(rule: str) -> list[Case]:
    """All cases of a rule by file name."""
    found: list[Case] = []
    for file in sorted(folder(rule).glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text("utf-8")):
            found.append(msgspec.convert(_plain(document), Case))
    return found


def _plain(value: Any) -> Any:
    """Dates as the text that they were: PyYAML reads them as dates."""
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case dt.datetime():
            return value.strftime("%Y-%m-%dT%H:%M:%SZ")
        case dt.date():
            return value.isoformat()
        case _:
            return value


def document(data: dict[str, Any]) -> Document:
    (read,) = read_documents(json.dumps(data).encode(), "case.json")
    assert isinstance(read, Document), read
    return read


def decoded(data: dict[str, Any]) -> KubeObject:
    return decode_object(document(data))


def policy_of(case: Case, rule: str) -> Policy:
    own = {rule: {"level": "deny", **({"settings": case.settings} if case.settings else {})}}
    whole = {
        "apiVersion": "gpu-admit.io/v1",
        "kind": "AdmissionPolicy",
        **case.policy,
        "rules": {**case.policy.get("rules", {}), **own},
    }
    return load_policy(json.dumps(whole).encode(), "policy.json")


def ask_of(case: Case, policy: Policy) -> tuple[Ask, Cluster]:
    """The question as the engine would put it before any mutation."""
    cluster = Cluster.of(map(decoded, case.cluster), known=case.known)
    made = expand(document(case.ask), declared=policy.declared_kinds, namespace=case.namespace)
    assert isinstance(made, Workload), made
    groups = [group for group in made.groups if not case.role or group.role == case.role]
    running = replaced_by(made, cluster)
    for pod in running:
        cluster.remove("Pod", pod.namespace, pod.name)
    pod = chain.mutate(groups[0].pod, cluster).pod
    ask = Ask(
        workload=made,
        group=groups[0],
        pod=pod,
        namespace=made.ref.namespace,
        now=parse_instant(case.now),
        policy=policy,
        pool=policy.pool_of_pod(pod),
        kubernetes=case.kubernetes,
        running=running,
    )
    return ask, cluster


def mutated(ask: Ask, cluster: Cluster, found: list[Found], rule: Rule) -> Ask:
    """The question after the mutations that are in force, as the engine applies them."""
    template, workload = ask.group.template, ask.workload
    for mutation in found:
        if isinstance(mutation, Mutation) and mutation.of == "object":
            manifest = jsonpatch.apply_patch(workload.manifest, list(mutation.ops), in_place=False)
            workload = structs.replace(workload, manifest=manifest)
        if (
            isinstance(mutation, Mutation)
            and mutation.of == "template"
            and ask.policy.level(mutation.rule or rule.name) == "deny"
        ):
            template = jsonpatch.apply_patch(template, list(mutation.ops), in_place=False)
    pod = msgspec.convert({"apiVersion": "v1", **template, "kind": "Pod"}, Pod)
    metadata = structs.replace(
        ask.pod.metadata, labels=pod.metadata.labels, annotations=pod.metadata.annotations
    )
    pod = structs.replace(pod, metadata=metadata)
    group = structs.replace(ask.group, template=template, pod=pod)
    return structs.replace(ask, workload=workload, group=group, pod=chain.mutate(pod, cluster).pod)


def compared(expected: list[dict[str, Any]], found: list[Any]) -> list[dict[str, Any]]:
    """What was found, cut down to the keys that the case speaks of."""
    plain = [msgspec.json.decode(msgspec.json.encode(item)) for item in found]
    for index, item in enumerate(plain):
        if "evidence" in item:
            for evidence in item["evidence"]:
                _drop_unsaid(evidence, index, expected)
    return [
        {key: item.get(key) for key in expected[index]} if index < len(expected) else item
        for index, item in enumerate(plain)
    ]


def _drop_unsaid(evidence: dict[str, Any], index: int, expected: list[dict[str, Any]]) -> None:
    said = expected[index].get("evidence") if index < len(expected) else None
    keys = {key for one in said or () for key in one}
    for key in [key for key in evidence if keys and key not in keys]:
        del evidence[key]


def every() -> Iterator[tuple[str, Case]]:
    for rule in sorted(REGISTRY):
        for case in cases(rule):
            yield rule, case


def split(found: list[Found]) -> tuple[list[Finding], list[Mutation], list[Unknown]]:
    return (
        [one for one in found if isinstance(one, Finding)],
        [one for one in found if isinstance(one, Mutation)],
        [one for one in found if isinstance(one, Unknown)],
    )
