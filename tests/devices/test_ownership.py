"""Who keeps a claim and its devices, and which claims nobody keeps any more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from examples import make_devices
from kubectl_gpuadmit.cli.main import main
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import ownership
from kubectl_gpuadmit.devices.ownership import Ownership
from kubectl_gpuadmit.render import ownership as rendered
from tests.rules.cases import decoded

FINALIZER = "resource.kubernetes.io/delete-protection"


def pod(name: str, phase: str = "Running") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}"},
        "spec": {"nodeName": "h100-0", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": phase},
    }


def claim(
    name: str,
    *devices: str,
    users: tuple[str, ...] = (),
    owner: str = "",
    deleting: bool = False,
    finalizers: tuple[str, ...] = (FINALIZER,),
    **status: Any,
) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "ml", "finalizers": list(finalizers)}
    meta["creationTimestamp"] = "2026-11-29T12:00:00Z"
    if deleting:
        meta["deletionTimestamp"] = "2026-11-29T13:00:00Z"
    if owner:
        meta["annotations"] = {"resource.kubernetes.io/pod-claim-name": "gpu"}
        reference = {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": f"uid-{owner}"}
        meta["ownerReferences"] = [{**reference, "controller": True}]
    results = [
        {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "h100-0", "device": d}
        for d in devices
    ]
    if results:
        status["allocation"] = {"devices": {"results": results}}
    if users:
        status["reservedFor"] = [
            {"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users
        ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": {"devices": {"requests": [{"name": "gpu"}]}},
        "status": status,
    }


def owned(*objects: dict[str, Any]) -> dict[str, Ownership]:
    given = [*make_devices.h100(), *objects]
    found = ownership.of_cluster(Cluster.of(map(decoded, given), known=["Pod"]))
    return {one.claim: one for one in found}


@pytest.mark.parametrize(
    ("made", "pods", "state", "kept_by"),
    [
        (claim("c"), (), "waiting", "no pod uses it yet"),
        (claim("c", owner="p"), (pod("p"),), "waiting", "waits for pod ml/p to be scheduled"),
        (claim("c", "gpu-0", users=("p",)), (pod("p"),), "in-use", "pod ml/p"),
        (
            claim("c", "gpu-0", users=("p", "q")),
            (pod("p"),),
            "in-use",
            "pod ml/p; pod ml/q gone",
        ),
        (
            claim("c", "gpu-0", users=("p",)),
            (pod("p", "Succeeded"),),
            "ending",
            "pod ml/p finished, about to be released",
        ),
        (claim("c", "gpu-0", users=("p",)), (), "leaked", "reserved for pod ml/p, gone"),
        (claim("c", "gpu-0"), (), "leaked", "reserved for nobody"),
        (
            claim("c", "gpu-0", owner="p"),
            (),
            "leaked",
            "made for pod ml/p, which is gone",
        ),
        (
            claim("c", "gpu-0", deallocationRequested=True),
            (),
            "deallocating",
            "its driver has not confirmed the release",
        ),
        (
            claim("c", "gpu-0", users=("p",), deleting=True),
            (pod("p"),),
            "deleting",
            "deletion waits for pod ml/p",
        ),
        (
            claim("c", "gpu-0", deleting=True),
            (),
            "stuck",
            "nobody uses it; still allocated, so the API keeps it (delete-protection)",
        ),
        (
            claim("c", deleting=True, finalizers=("example.com/mine", FINALIZER)),
            (),
            "stuck",
            "nobody uses it; finalizer example.com/mine keeps it",
        ),
        (
            claim("c", deleting=True),
            (),
            "stuck",
            "nobody uses it; the resource claim controller has not let go of it",
        ),
    ],
)
def test_a_claim_is_kept_by_whom_its_objects_say(
    made: dict[str, Any], pods: tuple[dict[str, Any], ...], state: str, kept_by: str
) -> None:
    found = owned(made, *pods)["ml/c"]
    assert (found.state, found.kept_by) == (state, kept_by)


def test_a_claim_of_several_pods_is_shared_and_names_its_devices_by_uuid() -> None:
    found = owned(claim("c", "gpu-0", users=("p", "q")), pod("p"), pod("q"))["ml/c"]
    assert found.shared
    assert found.users == ("ml/p", "ml/q")
    (held,) = found.devices
    assert held.device == "gpu.nvidia.com/h100-0/gpu-0"
    assert held.uuid == make_devices.uuid_of("h100-0", 0)


def test_a_device_that_no_slice_lists_any_more_is_an_alert() -> None:
    cluster = Cluster.of(
        map(decoded, [*make_devices.h100(), pod("p"), claim("c", "gpu-9", users=("p",))])
    )
    found = ownership.of_cluster(cluster)
    assert list(ownership.alerts(found)) == [
        ("claim ml/c", "has gpu.nvidia.com/h100-0/gpu-9, which no slice lists any more")
    ]


def test_leaks_come_first_and_are_alerts() -> None:
    cluster = Cluster.of(
        map(
            decoded,
            [
                *make_devices.h100(),
                pod("p"),
                claim("a", "gpu-0", users=("p",)),
                claim("b", "gpu-1", "gpu-2", users=("q",)),
            ],
        )
    )
    found = ownership.of_cluster(cluster)
    assert [one.claim for one in found] == ["ml/b", "ml/a"]
    assert list(ownership.alerts(found)) == [
        ("claim ml/b", "2 devices leaked: reserved for pod ml/q, gone")
    ]


def test_without_pods_in_the_source_nobody_is_called_gone() -> None:
    given = [*make_devices.h100(), claim("c", "gpu-0", users=("p",))]
    (found,) = ownership.of_cluster(Cluster.of(map(decoded, given)))
    assert (found.state, found.users, found.gone) == ("in-use", ("ml/p",), ())


def test_the_text_says_state_devices_and_keeper_and_fits() -> None:
    found = tuple(
        owned(
            pod("p"),
            pod("q"),
            claim("a", "gpu-0", users=("p", "q")),
            claim("b", "gpu-1", users=("gone",)),
        ).values()
    )
    text = rendered.text(found).plain
    uuids = [make_devices.uuid_of("h100-0", index) for index in (0, 1)]
    assert text == (
        "  2 claims with 2 devices · 1 in-use · 1 leaked\n"
        "\n"
        "✗ ml/b" + " " * 68 + "leaked\n"
        f"    gpu.nvidia.com/h100-0/gpu-1 {uuids[1]}\n"
        "    reserved for pod ml/gone, gone\n"
        "\n"
        "✓ ml/a" + " " * 59 + "in-use · shared\n"
        f"    gpu.nvidia.com/h100-0/gpu-0 {uuids[0]}\n"
        "    pods ml/p, ml/q\n"
    )
    assert rendered.text(()).plain == "  no claims\n"


def test_the_document_holds_every_field() -> None:
    found = owned(pod("p"), claim("a", "gpu-0", users=("p",), owner="p"))
    assert rendered.document(tuple(found.values())) == [
        {
            "claim": "ml/a",
            "state": "in-use",
            "madeFor": "ml/p",
            "shared": False,
            "users": ["ml/p"],
            "gone": [],
            "keptBy": "pod ml/p",
            "finalizers": [FINALIZER],
            "since": "2026-11-29T12:00:00Z",
            "devices": [
                {
                    "device": "gpu.nvidia.com/h100-0/gpu-0",
                    "request": "gpu",
                    "uuid": make_devices.uuid_of("h100-0", 0),
                    "parentUUID": "",
                    "share": "",
                    "adminAccess": False,
                    "published": True,
                }
            ],
        }
    ]


EXAMPLE = Path(__file__).parents[2] / "examples/devices"


def test_the_command_shows_the_claims_of_a_snapshot(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--claims", "--snapshot", str(EXAMPLE)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "  2 claims with 5 devices · 1 in-use · 1 leaked\n\n✗ ml/sweep-9-gpu-4mzqd"
    )
    assert main(["topo", "--claims", "--snapshot", str(EXAMPLE), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schemaVersion"] == "gpu-admit.io/topology/v1"
    assert [one["state"] for one in document["claims"]] == ["leaked", "in-use"]
    assert main(["topo", "--claims", "-n", "other", "--snapshot", str(EXAMPLE)]) == 0
    assert capsys.readouterr().out == "  no claims\n"


def test_the_overview_alerts_of_a_leaked_claim(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--snapshot", str(EXAMPLE), "-o", "json"]) == 0
    alerts = json.loads(capsys.readouterr().out)["alerts"]
    leaked = [one for one in alerts if one["code"] == "leaked-claim"]
    assert [(one["node"], one["what"]) for one in leaked] == [
        (
            "h100-0",
            "claim ml/sweep-9-gpu-4mzqd keeps gpu-7: reserved for pod ml/sweep-9, gone",
        )
    ]


def test_claims_that_nobody_exported_are_not_an_empty_map(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "n.json").write_text(json.dumps(make_devices.h100()[0]))
    assert main(["topo", "--claims", "--snapshot", str(tmp_path)]) == 3
    assert "ResourceClaim objects are not in the source [not-in-source]" in capsys.readouterr().err
