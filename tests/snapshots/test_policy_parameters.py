"""A snapshot keeps what policies read of their parameters, and of these objects nothing else."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kubectl_gpuadmit.adapters.snapshot import load_snapshot
from kubectl_gpuadmit.admission.native.kept import read_by
from kubectl_gpuadmit.cli.main import main
from kubectl_gpuadmit.kube.policy_parameters import KEPT, record
from kubectl_gpuadmit.snapshots import trim
from tests.snapshots.clusters import as_documents, cluster, verdicts
from tests.snapshots.test_capsule import made, question, replayed

Json = dict[str, Any]

GROUP = "admissionregistration.k8s.io/v1"
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
LIMIT = {"apiVersion": "example.com/v1", "kind": "Limit"}


def policy(called: str, kind: Json, *checks: str, **ref: Any) -> list[Json]:
    named = "ValidatingAdmissionPolicy"
    spec = {
        "paramKind": kind,
        "matchConstraints": {"resourceRules": [PODS]},
        "validations": [{"expression": one} for one in checks],
    }
    bound = {
        "policyName": called,
        "validationActions": ["Deny"],
        "paramRef": {"parameterNotFoundAction": "Deny", **ref},
    }
    return [
        {"apiVersion": GROUP, "kind": named, "metadata": {"name": called}, "spec": spec},
        {
            "apiVersion": GROUP,
            "kind": f"{named}Binding",
            "metadata": {"name": called},
            "spec": bound,
        },
    ]


def config(name: str, namespace: str = "team-a", **data: str) -> Json:
    metadata = {"name": name, "namespace": namespace, "labels": {"for": name}}
    return {**CONFIG_MAP, "metadata": metadata, "data": data}


POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "team-a"},
    "spec": {"containers": [{"name": "main", "image": "nginx"}]},
}
LIMITS: Json = {
    **LIMIT,
    "metadata": {"name": "all"},
    "spec": {"max": 1, "contact": "hunter2"},
}
WORLD: list[Json] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}},
    *policy("by-map", CONFIG_MAP, "int(params.data.max) > 5 || 'off' in params.data", name="gpu"),
    *policy("by-limit", LIMIT, "params.spec.?max.orValue(9) > 5", name="all"),
    config("gpu", max="2", password="hunter2"),
    config("gpu", "team-b", max="9", note="hunter2"),
    config("other", max="hunter2"),
    LIMITS,
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "gpu", "namespace": "team-a"},
        "data": {"max": "hunter2"},
    },
]
KINDS = ["ConfigMap", "Limit", "Namespace", "LimitRange", "ServiceAccount", "PriorityClass"]


@pytest.mark.parametrize(
    ("expression", "paths"),
    [
        ("params.data.max == '1'", {"data/max"}),
        ("params.data['max'] == '1' || 'min' in params.data", {"data/max", "data/min"}),
        ("has(params.data) && has(params.data.max)", {"data/", "data/max"}),
        (
            "params.?data[?'max'].orValue('') == params.?data.?min.orValue('')",
            {"data/max", "data/min"},
        ),
        ("params == null || params.metadata.name == 'x'", set()),
        ("params.data.all(k, v, v != '')", {"data"}),
        ("params.data[object.metadata.name] == ''", {"data"}),
        ("params.spec.limits.gpu > object.spec.replicas", {"spec/limits"}),
        ("[params].exists(p, p.data.max == '1')", {""}),
        ("cel.bind(p, params, p.data.max == '1')", {""}),
        ("this is no expression", {""}),
    ],
)
def test_what_an_expression_reads_of_its_parameter(expression: str, paths: set[str]) -> None:
    spec = {"validations": [{"expression": expression}]}
    assert set(read_by(spec)) == paths
    assert set(read_by({"variables": [{"name": "v", "expression": expression}]})) == paths


def test_of_parameters_only_what_is_read_is_kept() -> None:
    items = trim.items(cluster(WORLD, KINDS))
    assert "hunter2" not in json.dumps(items)
    kept = {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one
        for one in items
        if one["kind"] in ("ConfigMap", "Limit", "Secret")
    }
    assert {key: (one.get("data"), one.get("spec")) for key, one in kept.items()} == {
        ("ConfigMap", "team-a", "gpu"): ({"max": "2"}, None),
        ("ConfigMap", "team-b", "gpu"): ({"max": "9"}, None),
        ("ConfigMap", "team-a", "other"): (None, None),
        ("Limit", "", "all"): (None, {"max": 1}),
    }
    marked = kept["ConfigMap", "team-a", "gpu"]["metadata"]["annotations"]
    assert marked == {KEPT: '["data/max","data/off"]'}


def test_a_trimmed_cluster_answers_like_the_whole_one() -> None:
    whole = cluster(WORLD, KINDS)
    again = cluster(trim.items(whole), trim.known_kinds(whole))
    docs = as_documents([POD])
    default = question([]).policy
    answer = verdicts(docs, whole, default)
    assert answer["workloads"][0]["blockers"] == ["admission-policy/denied"]
    assert len(answer["workloads"][0]["findings"]) == 2, "either kind of parameter refuses it"
    assert verdicts(docs, again, default) == answer
    twice = cluster(trim.items(again), trim.known_kinds(again))
    assert trim.items(twice) == trim.items(again)


def test_a_snapshot_of_one_namespace_keeps_parameters_that_lie_elsewhere() -> None:
    there = [
        *policy("by-map", CONFIG_MAP, "params.data.max == '9'", name="gpu", namespace="team-b"),
        config("gpu", "team-b", max="9"),
        config("other", "team-b", max="9"),
    ]
    items = trim.items(cluster(there, KINDS), namespace="team-a")
    assert [one["metadata"]["name"] for one in items if one["kind"] == "ConfigMap"] == ["gpu"]


def test_a_record_of_what_was_read_is_kept() -> None:
    read = record("example.com/v1", "Limit", served=True, namespaced=False).document
    items = trim.items(cluster([*WORLD, read], KINDS))
    assert read in items


def test_a_capsule_holds_the_parameters_that_its_verdict_read() -> None:
    asked = question(as_documents([POD]), cluster=cluster(WORLD, KINDS))
    held = made(asked)
    assert replayed(held) == held.verdict
    assert "hunter2" not in json.dumps(held.objects)
    assert asked.answer().workloads[0].admission == "denied"


def test_redact_leaves_parameters_and_expressions_out_and_the_answer_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "cluster.json"
    source.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": WORLD}))
    file = tmp_path / "out.json"
    assert main(["snapshot", "--snapshot", str(source), "-o", str(file), "--redact"]) == 0
    said = capsys.readouterr().err
    assert "what 2 admission policies say is unknown in it" in said
    text = file.read_text()
    assert "hunter2" not in text
    assert "params" not in text
    manifest = tmp_path / "pod.json"
    manifest.write_text(json.dumps({**POD, "metadata": {"name": "web"}}))
    home = next(one.name for one in load_snapshot(str(file)).cluster.every("Namespace"))
    main(["explain", "-f", str(manifest), "--snapshot", str(file), "-n", home, "-o", "json"])
    (workload,) = json.loads(capsys.readouterr().out)["workloads"]
    unknown = [one["missing"] for one in workload["unknowns"] if one["rule"] == "admission/policy"]
    assert len(unknown) == 2
    assert all("left out when the snapshot was redacted" in one for one in unknown)


def by_root(tmp_path: Path) -> tuple[Path, Path]:
    """A cluster where only root may create pods, and a pod."""
    check = policy("root-only", CONFIG_MAP, "request.userInfo.username == 'root'", name="gpu")
    source, manifest = tmp_path / "cluster.json", tmp_path / "pod.json"
    world = [*check, *WORLD[:1], WORLD[5]]
    source.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": world}))
    manifest.write_text(json.dumps(POD))
    return source, manifest


def test_as_says_who_applies_the_manifests_of_a_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, manifest = by_root(tmp_path)

    def verdict(*words: str) -> tuple[list[str], list[str]]:
        main(["explain", "-f", str(manifest), "--snapshot", str(source), "-o", "json", *words])
        (one,) = json.loads(capsys.readouterr().out)["workloads"]
        unknown = [u["hint"] for u in one["unknowns"] if u["rule"] == "admission/policy"]
        return one["blockers"], unknown

    assert verdict() == ([], ["--as USER --as-group GROUP says who"])
    assert verdict("--as", "root") == ([], [])
    assert verdict("--as", "dev", "--as-group", "admins") == (["admission-policy/denied"], [])


def test_a_capsule_knows_who_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, manifest = by_root(tmp_path)
    file = tmp_path / "capsule.json"
    words = ["explain", "-f", str(manifest), "--snapshot", str(source), "--as", "dev"]
    main([*words, "--capsule", str(file)])
    held = json.loads(file.read_text())
    assert held["requester"]["username"] == "dev"
    schema = json.loads(
        (resources.files("kubectl_gpuadmit") / "schema" / "capsule-v1.json").read_text()
    )
    jsonschema.validate(held, schema)
    capsys.readouterr()
    main(["explain", "--from-capsule", str(file), "-o", "json"])
    out, err = capsys.readouterr()
    assert json.loads(out)["workloads"][0]["blockers"] == ["admission-policy/denied"]
    assert "the same verdict" in err
