"""What is known of a feature, what a team decided of it, and what of that is still open."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from kubectl_gpuadmit.cli.main import main
from kubectl_gpuadmit.devices import maturity
from kubectl_gpuadmit.devices.gates import KUBERNETES, NVIDIA
from kubectl_gpuadmit.devices.maturity import Entry, Ledger, Row, Versions, rows
from kubectl_gpuadmit.policy.lint import lint
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.render import ledger as rendered

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
LATER = dt.datetime(2026, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
HEAD = "apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\n"


def whole(feature: str, **more: object) -> Entry:
    fields = {"owner": "ann", "expires": LATER, "reason": "pilot", "testCluster": "lab", **more}
    return Entry(feature=feature, **fields)  # type: ignore[arg-type]


def row(ledger: Ledger, feature: str, component: str = NVIDIA) -> Row:
    (found,) = [
        one
        for one in rows(ledger, now=NOW)
        if one.gate.name == feature and one.gate.component == component
    ]
    return found


@pytest.mark.parametrize(
    ("feature", "component", "kubernetes", "stage", "on", "state"),
    [
        ("DRAAdminAccess", KUBERNETES, (1, 31), None, None, "absent"),
        ("DRAAdminAccess", KUBERNETES, (1, 33), "alpha", False, "off"),
        ("DRAAdminAccess", KUBERNETES, (1, 35), "beta", True, "settled"),
        ("DRAAdminAccess", KUBERNETES, (1, 37), "ga", True, "settled"),
        ("DRAConsumableCapacity", KUBERNETES, (1, 35), "alpha", False, "off"),
        ("DRADeviceTaintRules", KUBERNETES, (1, 36), "beta", False, "settled"),
        ("DRAFractionalCapacityRange", KUBERNETES, (1, 37), "beta", False, "settled"),
    ],
)
def test_a_feature_has_the_stage_of_the_release_that_runs(
    feature: str,
    component: str,
    kubernetes: tuple[int, int],
    stage: str | None,
    on: bool | None,
    state: str,
) -> None:
    found = row(Ledger(Versions(kubernetes=kubernetes)), feature, component)
    assert (found.stage, found.step and found.step.on, found.state) == (stage, on, state)


def test_a_whole_decision_allows_an_alpha_feature_until_its_day() -> None:
    ledger = Ledger(Versions((1, 36), (0, 5)), (whole("DynamicMIG"),))
    assert row(ledger, "DynamicMIG").state == "allowed"
    assert row(ledger, "MPSSupport").state == "off"
    late = Ledger(ledger.versions, (whole("DynamicMIG", expires=NOW - dt.timedelta(days=1)),))
    assert row(late, "DynamicMIG").state == "expired"


@pytest.mark.parametrize("field", ["owner", "expires", "reason", "testCluster"])
def test_an_empty_field_is_an_unresolved_decision(field: str) -> None:
    empty = None if field == "expires" else ""
    entry = whole("DynamicMIG", **{field: empty})
    found = row(Ledger(Versions((1, 36), (0, 5)), (entry,)), "DynamicMIG")
    assert (found.state, found.empty) == ("unresolved", (field,))
    assert entry.allows(NOW) == (field in ("reason", "testCluster"))


def test_a_version_that_nobody_gave_is_an_unresolved_decision_too() -> None:
    found = row(Ledger(Versions(kubernetes=(1, 36)), (whole("DynamicMIG"),)), "DynamicMIG")
    assert (found.state, found.empty) == ("unresolved", ("versions.nvidiaDraDriver",))


def test_an_operator_says_which_driver_it_carries_or_that_it_carries_none() -> None:
    assert Versions(operator=(26, 7)).of(NVIDIA) == (0, 5)
    assert row(Ledger(Versions(operator=(26, 3))), "MPSSupport").state == "absent"
    assert row(Ledger(Versions(operator=(26, 3), driver=(0, 4))), "MPSSupport").state == "off"


@pytest.mark.parametrize(
    ("text", "release"),
    [("0.5", (0, 5)), ("v0.4.1", (0, 4)), ("25.8.1", (0, 2)), ("v25.12.0", (0, 3))],
)
def test_a_driver_of_the_calendar_releases_is_counted_as_the_later_ones(
    text: str, release: tuple[int, int]
) -> None:
    assert maturity.driver_release(text) == release


@pytest.mark.parametrize("text", ["24.1.0", "five", "0", "", "0.x"])
def test_what_is_no_version_of_the_driver_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"older than any|not a version"):
        maturity.driver_release(text)


def test_features_that_exclude_each_other_or_need_another_are_conflicts() -> None:
    entries = (whole("DynamicMIG"), whole("MPSSupport"), whole("DeviceMetadata"))
    ledger = Ledger(Versions((1, 35), (0, 5)), entries)
    assert row(ledger, "DynamicMIG").conflicts == (
        "cannot be on beside MPSSupport",
        "needs DRAPartitionableDevices, off by default on Kubernetes 1.35",
    )
    assert row(ledger, "DeviceMetadata").conflicts == ("needs PassthroughSupport, which is off",)
    newer = Ledger(Versions((1, 36), (0, 5)), (whole("DynamicMIG"),))
    assert row(newer, "DynamicMIG").conflicts == ()


def test_the_policy_says_what_is_decided_and_lint_what_is_not() -> None:
    text = HEAD + (
        "ledger:\n"
        '  versions: {kubernetes: "1.36", nvidiaDraDriver: "0.5"}\n'
        "  features:\n"
        "  - {feature: DynamicMIG, owner: ann, expires: 2026-12-31, reason: r, testCluster: t}\n"
        "  - {feature: MPSSupport, owner: ann}\n"
        "  - {feature: ConsumableShares, owner: b, expires: 2026-11-28,"
        " reason: r, testCluster: t}\n"
    )
    policy = load_policy(text.encode(), "p.yaml")
    assert policy.ledger.versions == Versions((1, 36), (0, 5))
    assert policy.ledger.entries[0] == Entry("DynamicMIG", NVIDIA, "ann", LATER, "r", "t", 0)
    assert policy.level("dra/immature-feature") == "deny"
    told = [(p.line, p.ref, p.message) for p in lint(text.encode(), "p.yaml", now=NOW)]
    assert told == [
        (6, "policy-ledger-conflict", "DynamicMIG cannot be on beside MPSSupport"),
        (7, "policy-ledger-conflict", "MPSSupport cannot be on beside DynamicMIG"),
        (7, "policy-ledger-conflict", "MPSSupport cannot be on beside ConsumableShares"),
        (
            7,
            "policy-ledger-unresolved",
            "MPSSupport: expires, reason, testCluster not filled in and allows nothing",
        ),
        (8, "policy-ledger-conflict", "ConsumableShares cannot be on beside MPSSupport"),
        (8, "policy-ledger-expired", "ConsumableShares: expired 12h ago: refused again"),
    ]


@pytest.mark.parametrize(
    ("body", "ref", "message"),
    [
        ("features: [{feature: DynamicMig}]", "policy-unknown-feature", "unknown feature"),
        ("features: [{feature: DynamicMIG, expires: soon}]", "policy-bad-value", "not a time"),
        ("versions: {kubernetes: 1.36}", "policy-wrong-type", "must be text"),
        ("versions: {nvidiaDraDriver: '24.1'}", "policy-bad-value", "older than any DRA driver"),
        (
            "features: [{feature: DynamicMIG}, {feature: DynamicMIG}]",
            "policy-duplicate-name",
            "a second decision for DynamicMIG",
        ),
    ],
)
def test_a_ledger_that_cannot_be_meant_so_is_an_error(body: str, ref: str, message: str) -> None:
    text = f"{HEAD}ledger:\n  {body}\n"
    (found,) = [p for p in lint(text.encode(), "p.yaml", now=NOW) if p.severity == "error"]
    assert found.ref == ref
    assert message in found.message


def test_a_kubernetes_feature_needs_no_component_beside_it_unless_both_have_it() -> None:
    text = HEAD + "ledger:\n  features: [{feature: DRAResourcePoolStatus}]\n"
    (entry,) = load_policy(text.encode(), "p.yaml").ledger.entries
    assert entry.component == KUBERNETES
    text = HEAD + "ledger:\n  features: [{feature: DRAListTypeAttributes, component: kubernetes}]\n"
    (entry,) = load_policy(text.encode(), "p.yaml").ledger.entries
    assert entry.component == KUBERNETES


def test_the_text_names_what_is_allowed_open_and_in_conflict() -> None:
    ledger = Ledger(
        Versions((1, 35), (0, 5)), (whole("DynamicMIG"), Entry("MPSSupport", owner="ann"))
    )
    text = rendered.text(rows(ledger, now=NOW), ledger.versions).plain
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "✓ DynamicMIG                    alpha off  until 2026-12-31\n" in text
    assert "Allowed\n  ✓ DynamicMIG: ann, tried on lab: pilot\n" in text
    assert "Unresolved\n  ? MPSSupport: expires, reason, testCluster not filled in\n" in text
    assert "  ✗ MPSSupport cannot be on beside DynamicMIG\n" in text
    assert text.isascii() is False
    assert rendered.text(rows(ledger, now=NOW), ledger.versions, ascii=True).plain.isascii()


def test_the_json_has_every_feature_and_names_empty_fields() -> None:
    ledger = Ledger(Versions(kubernetes=(1, 35)), (Entry("MPSSupport", owner="ann"),))
    document = rendered.document(rows(ledger, now=NOW), ledger.versions)
    assert document["versions"] == {
        "kubernetes": {"release": "1.35", "assumed": False},
        "nvidia-dra-driver": {"release": "0.5", "assumed": True},
    }
    assert document["unresolved"] == [
        {
            "feature": "MPSSupport",
            "component": "nvidia-dra-driver",
            "empty": ["expires", "reason", "testCluster", "versions.nvidiaDraDriver"],
        }
    ]
    (mps,) = [one for one in document["features"] if one["feature"] == "MPSSupport"]
    assert mps == {
        "feature": "MPSSupport",
        "component": "nvidia-dra-driver",
        "what": "sharing.strategy MPS",
        "release": "0.5",
        "stage": "alpha",
        "since": "0.2",
        "default": False,
        "locked": False,
        "needs": [],
        "excludes": ["DynamicMIG", "ConsumableShares"],
        "source": "kubernetes-sigs/dra-driver-nvidia-gpu pkg/featuregates/featuregates.go",
        "state": "unresolved",
        "decision": {"owner": "ann", "expires": "", "reason": "", "testCluster": ""},
        "empty": ["expires", "reason", "testCluster", "versions.nvidiaDraDriver"],
        "conflicts": [],
    }


def test_the_command_takes_the_versions_that_are_asked_about(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["policy", "ledger", "--kubernetes-version", "1.34", "--driver-version", "25.8.0"]
    assert main([*words, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["versions"] == {
        "kubernetes": {"release": "1.34", "assumed": False},
        "nvidia-dra-driver": {"release": "0.2", "assumed": False},
    }
    stages = {
        one["feature"]: one["stage"]
        for one in document["features"]
        if one["component"] == "nvidia-dra-driver"
    }
    assert (stages["MPSSupport"], stages["DynamicMIG"]) == ("alpha", None)
    assert main(["policy", "ledger", "--driver-version", "24.1"]) == 2
    assert (
        "--driver-version: '24.1' is older than any DRA driver [usage]" in capsys.readouterr().err
    )
