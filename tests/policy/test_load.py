"""Policy files are read whole, or refused with the place and what was probably meant."""

from __future__ import annotations

import datetime as dt

import pytest

from kubectl_gpuadmit import rules
from kubectl_gpuadmit.devices.maturity import Entry, Ledger, Versions
from kubectl_gpuadmit.errors import BadPolicy
from kubectl_gpuadmit.kube.objects import LabelSelectorRequirement, Toleration
from kubectl_gpuadmit.kube.workloads import DeclaredKind
from kubectl_gpuadmit.policy import (
    ClassMatch,
    Comparison,
    ExceptionMatch,
    Policy,
    PolicyException,
    Pool,
    PoolKubelet,
    RequiredTaint,
    RuleConfig,
    StaticMatch,
    StaticRule,
    TemplateChange,
    Tenant,
    WorkloadClass,
)
from kubectl_gpuadmit.policy.load import load_policy, read_policy
from kubectl_gpuadmit.sizing.recognition import ANNOTATIONS, Naming
from kubectl_gpuadmit.sizing.registry import Entry as Model
from kubectl_gpuadmit.sizing.registry import Models
from tests.policy import texts

assert rules.__all__
LLAMA = "meta-llama/Llama-3.3-70B-Instruct"
HEAD = "apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\n"


def load(text: str) -> Policy:
    return load_policy(text.encode(), "p.yaml")


def refused(text: str) -> BadPolicy:
    with pytest.raises(BadPolicy) as caught:
        load(text)
    return caught.value


def told(text: str) -> list[tuple[str, str, str]]:
    """(where, ref, message, hint) of every problem."""
    _, problems = read_policy(text.encode(), "p.yaml")
    return [(p.as_error().where, p.ref, f"{p.message} | {p.hint}") for p in problems]


def test_the_documented_policy_is_read_in_every_part() -> None:
    assert load(texts.FULL) == Policy(
        name="prod",
        source="p.yaml",
        pools=(
            Pool("inference", {"gpu-partition": "inf"}),
            Pool(
                "train",
                {"gpu-partition": "train"},
                (Toleration("dedicated", "Equal", "gpu", "NoSchedule"),),
                PoolKubelet("single-numa-node", "pod", cpuManagerPolicy="static"),
            ),
        ),
        classes=(
            WorkloadClass(
                "inference",
                ClassMatch(
                    labels={"workload-type": "interactive"},
                    priorityClasses=("llm-inference-critical",),
                ),
                "inference",
                "llm-inference-critical",
            ),
        ),
        default_level="warn",
        default_if_missing="warn",
        rules={
            "labels/required": RuleConfig(
                level="deny",
                settings={"labels": ("team", "workload-type")},
                namespaces={"kube-system": "off", "research-*": "audit"},
                pools={"train": "warn"},
            ),
            "partition/confine": RuleConfig(level="deny"),
            "dra/immature-feature": RuleConfig(),
            "dra/tenant-allow-list": RuleConfig(),
        },
        static=(
            StaticRule(
                "route-batch-to-batch-pool",
                StaticMatch(labels={"workload-type": "batch"}),
                mutate=TemplateChange(nodeSelector={"gpu-partition": "train"}),
            ),
        ),
        exceptions=(
            PolicyException(
                ("labels/required",),
                ExceptionMatch(namespaces=("research-legacy",)),
                "platform-team@example.com",
                "moves to labels with release 7",
                dt.datetime(2026, 12, 31, 23, 59, 59, tzinfo=dt.UTC),
            ),
        ),
        declared_kinds=(
            DeclaredKind(
                "Trainer", ".spec.template", apiVersion="example.com/v1", replicas=".spec.replicas"
            ),
        ),
        ledger=Ledger(
            versions=Versions((1, 37), (0, 5), (26, 7)),
            entries=(
                Entry(
                    feature="DynamicMIG",
                    owner="gpu-platform@example.com",
                    expires=dt.datetime(2026, 12, 31, 23, 59, 59, tzinfo=dt.UTC),
                    reason="pilot on the A100 nodes",
                    testCluster="mig-lab",
                ),
            ),
        ),
        tenants=(
            Tenant(
                name="research",
                namespaces=("research-*",),
                deviceClasses=("mig.nvidia.com",),
                selectors=("device.attributes['gpu.nvidia.com'].profile == '1g.10gb'",),
                maxDevices=2,
                runtimeClasses=("nvidia",),
            ),
        ),
        models=Models(
            naming=Naming(
                annotations=("ai.example.com/model", *ANNOTATIONS),
                labels=("ai.gke.io/model",),
                images={"registry.example.com/llama-server:70b-*": LLAMA},
            ),
            entries=(
                Model(
                    name="acme/support-32b",
                    source="the policy",
                    also=("support",),
                    like="Qwen/Qwen3-32B",
                ),
                Model(name="acme/ranker", source="the policy", memory_gib=6.0),
            ),
            mlflow="http://mlflow.example.com:5000",
        ),
        gpu_patterns=("nvidia.com/gpu", "nvidia.com/mig-*"),
        ttl_annotations=("gpu-admit.io/ttl",),
        admission_plugins=frozenset({"ExtendedResourceToleration"}),
    )


ROUTE = StaticRule(
    "route-batch-to-batch-pool",
    StaticMatch(labels={"workload-type": "batch"}),
    mutate=TemplateChange(
        nodeSelector={
            "nvidia.com/gpu.pool": "batch",
            "topology.kubernetes.io/zone": "us-east1-b",
        }
    ),
)
REJECT = StaticRule(
    "reject-large-gpu-on-live",
    StaticMatch(
        labels={"workload-type": "interactive"}, resources={"gpuMemoryGB": Comparison(">", 40.0)}
    ),
    deny="Interactive models limited to 40GB.",
    index=1,
)
FAVORITE = StaticRule(
    "favorite-1",
    StaticMatch(matchExpressions=(LabelSelectorRequirement("type", "In", ("training",)),)),
    mutate=TemplateChange(nodeSelector={"nvidia.com/gpu.product": "H100-SXM-80GB"}),
    requiredTaints=(RequiredTaint("dedicated", "Equal", "gpu"),),
)


@pytest.mark.parametrize(
    "text", [texts.POLICIES, texts.in_config_map("config.yaml", texts.POLICIES)]
)
def test_the_older_policies_form_is_read_alone_and_in_a_config_map(text: str) -> None:
    policy = load(text)
    assert policy.static == (ROUTE, REJECT)
    assert policy.level("static/route-batch-to-batch-pool") == "deny"


@pytest.mark.parametrize("text", [texts.FAVORITES, texts.in_config_map("checks", texts.FAVORITES)])
def test_the_older_favorites_form_is_read_alone_and_in_a_config_map(text: str) -> None:
    assert load(text).static == (FAVORITE,)


def test_a_whole_policy_may_live_in_a_config_map() -> None:
    assert load(texts.in_config_map("policy.yaml", texts.FULL)) == load(texts.FULL)


def test_problems_inside_a_config_map_are_told_at_their_line_of_the_file() -> None:
    text = texts.in_config_map("config.yaml", texts.POLICIES.replace("message", "mesage"))
    assert told(text) == [
        (
            "p.yaml:23:7 data.config.yaml: policies[1].deny",
            "policy-missing-key",
            "message is missing | ",
        ),
        (
            "p.yaml:24:11 data.config.yaml: policies[1].deny.mesage",
            "policy-unknown-key",
            "unknown key mesage | did you mean message?",
        ),
    ] or told(text)[-1][0].startswith("p.yaml:24:")


@pytest.mark.parametrize("word", ["off", '"off"', "False"])
def test_off_is_off_even_where_yaml_takes_it_for_a_boolean(word: str) -> None:
    policy = load(f"{HEAD}rules: {{labels/class: {word}}}\n")
    assert policy.level("labels/class") == "off"


@pytest.mark.parametrize(
    ("body", "ref", "message"),
    [
        (
            "foo: 1",
            "policy-unknown-key",
            "known: admissionPlugins, apiVersion",
        ),
        ("pool: {}", "policy-unknown-key", "unknown key pool | did you mean pools?"),
        ("rules: {labels/requird: off}", "policy-unknown-rule", "did you mean labels/required?"),
        ("rules: {required: off}", "policy-unknown-rule", "did you mean labels/required?"),
        ("rules: {labels/class: {levl: off}}", "policy-unknown-key", "did you mean level?"),
        ("rules: {labels/class: on}", "policy-bad-value", "true must be one of off, audit"),
        ("rules: {labels/class: Deny}", "policy-bad-value", "did you mean deny?"),
        ("rules: {labels/class: {pools: {a: off}}}", "policy-unknown-pool", "declares no pool"),
        ("rules: {labels/required: {settings: {label: [a]}}}", "policy-unknown-setting", "labels?"),
        (
            "rules: {labels/required: {settings: {labels: a}}}",
            "policy-wrong-type",
            "must be a list",
        ),
        ("rules: {capacity/burst: {settings: {maxPods: -1}}}", "policy-bad-value", "-1 is below 0"),
        (
            "rules: {capacity/burst: {settings: {maxPods: 1.5}}}",
            "policy-wrong-type",
            "whole number",
        ),
        (
            "rules: {capacity/free-floor: {settings: {floorPercent: 120}}}",
            "policy-bad-value",
            "120 is above 100",
        ),
        (
            "rules: {ephemeral/ttl: {settings: {maxDuration: 4 hours}}}",
            "policy-bad-value",
            "must be such as 90s, 5m, 4h, 2d, is 4 hours",
        ),
        (
            "rules: {ephemeral/ttl: {settings: {maxDuration: 99999w}}}",
            "policy-bad-value",
            "longer than 10,000 days",
        ),
        (
            "pools: {a: {nodeSelector: {b: 1}}}",
            "policy-wrong-type",
            "must be text, is 1 | put it in",
        ),
        ("pools: {a: {}}", "policy-missing-key", "nodeSelector is missing"),
        ("classes: {a: {match: {}}}", "policy-bad-value", "give one of labels, annotations"),
        (
            "classes: {a: {match: {labels: {x: z}}, pool: p}}",
            "policy-unknown-pool",
            "unknown pool p",
        ),
        ("static: [{name: a, match: {}}]", "policy-does-nothing", "a has no effect"),
        (
            "static: [{name: a, match: {classes: [b]}, deny: {message: c}}]",
            "policy-unknown-class",
            "unknown class b",
        ),
        (
            "static: [{name: deny, match: {}, deny: {message: c}}]",
            "policy-reserved-name",
            "deny is a rule's own name",
        ),
        (
            "static: [{name: a, match: {}, deny: {message: c}},"
            " {name: a, match: {}, deny: {message: c}}]",
            "policy-duplicate-name",
            "a second a",
        ),
        (
            'static: [{name: a, match: {resources: {gpuMemoryGB: "lots"}}, deny: {message: c}}]',
            "policy-bad-value",
            "must be such as >40, >=4, 8, is lots",
        ),
        (
            "exceptions: [{rules: [labels/class], match: {namespaces: [a]}}]",
            "policy-missing-key",
            "owner is missing",
        ),
        (
            "exceptions: [{rules: [labels/clas], match: {kinds: [a]}, owner: o, reason: r,"
            " expires: 2026-01-01}]",
            "policy-unknown-rule",
            "did you mean labels/class?",
        ),
        (
            "exceptions: [{rules: [labels/*], match: {kinds: [a]}, owner: o, reason: r,"
            " expires: soon}]",
            "policy-bad-value",
            "'soon' is not a time",
        ),
        ("kinds: [{kind: A, podTemplate: '.a['}]", "policy-bad-value", ""),
        ("gpuResources: []", "policy-bad-value", "must not be empty"),
        (
            "admissionPlugins: [ExtendedResourceTolerations]",
            "policy-bad-value",
            "did you mean ExtendedResourceToleration?",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(body: str, ref: str, message: str) -> None:
    problems = told(HEAD + body + "\n")
    matching = [
        (where, text) for where, found, text in problems if found == ref and message in text
    ]
    assert len(matching) == 1, problems
    assert matching[0][0].startswith("p.yaml:3:")
    assert refused(HEAD + body + "\n").exit_code == 2


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("", "policy-empty"),
        ("# nothing\n", "policy-empty"),
        ("- a\n", "policy-unreadable"),
        ("a: [\n", "policy-unreadable"),
        ("a: 1\na: 2\n", "policy-duplicate-key"),
        ("kind: Deployment\napiVersion: apps/v1\n", "policy-not-a-policy"),
        ("kind: AdmissionPolicy\napiVersion: gpu-admit.io/v9\n", "policy-version"),
        ("kind: AdmissionPolicy\n", "policy-missing-key"),
        ("apiVersion: gpu-admit.io/v1\n", "policy-missing-key"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n", "policy-empty"),
        (f"{HEAD}---\n{HEAD}", "policy-several"),
        ("policies: []\n", "policy-bad-value"),
        ("favorites: [{}]\n", "policy-bad-value"),
    ],
)
def test_what_is_no_policy_is_refused(text: str, ref: str) -> None:
    error = refused(text)
    assert (error.ref, error.file) == (ref, "p.yaml")


def test_the_first_error_says_how_many_more_there_are() -> None:
    error = refused(f"{HEAD}foo: 1\nbar: 2\nbaz: 3\n")
    assert (error.line, error.field) == (3, "foo")
    assert error.hint.endswith("; 2 more: kubectl gpu-admit policy lint p.yaml")


def test_reason_codes_of_other_parts_may_be_levelled_and_excepted() -> None:
    text = (
        f"{HEAD}rules: {{spec/tiny: warn}}\n"
        "exceptions: [{rules: [spec/*], match: {names: [a]}, owner: o, reason: r, "
        "expires: '2027-01-01'}]\n"
    )
    policy = load_policy(text.encode(), "p.yaml", catalogue=lambda: {"spec/tiny": "Too small."})
    assert policy.level("spec/tiny") == "warn"
    assert refused(text).ref == "policy-unknown-rule"
