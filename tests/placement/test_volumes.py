"""Claims and volumes: what refuses everywhere, what refuses a node, what cannot be known."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.placement.cycle import Cycle
from tests.placement.build import KNOWN, ZONE, Told, cluster, decoded, node, pod, refused, told

AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"


def claim(name: str = "data", *, bound: str = "", cls: str = "late", **more: Any) -> KubeObject:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    spec = {
        "volumeName": bound or None,
        "storageClassName": cls,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
    }
    return decoded(
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations}
            | more.pop("meta", {}),
            "spec": spec | more.pop("spec", {}),
            "status": more,
        }
    )


def volume(
    name: str = "pv", *, zone: str = "", labels: dict[str, str] | None = None, **spec: Any
) -> KubeObject:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}} if zone else None
    defaults = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "nodeAffinity": affinity,
    }
    return decoded(
        {
            "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": defaults | spec,
            "status": {"phase": "Available"},
        }
    )


def storage_class(
    name: str = "late",
    mode: str = "WaitForFirstConsumer",
    provisioner: str = "disk.example.com",
    zones: list[str] | None = None,
) -> KubeObject:
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": zones}]}] if zones else None
    return decoded(
        {
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
            "allowedTopologies": terms,
        }
    )


def using(*names: str) -> Pod:
    return pod(
        volumes=[
            {"name": f"v{i}", "persistentVolumeClaim": {"claimName": n}}
            for i, n in enumerate(names)
        ]
    )


def zoned(*more: KubeObject, known: tuple[str, ...] = KNOWN) -> Cluster:
    return cluster(node("a", labels={ZONE: "a"}), node("b", labels={ZONE: "b"}), *more, known=known)


def everywhere(told_: Told) -> dict[str, list[Told]]:
    return {"a": [told_], "b": [told_]}


def test_a_claim_that_does_not_exist_refuses_everywhere() -> None:
    text = 'persistentvolumeclaim "data" not found'
    assert told(zoned(), using("data")) == everywhere(("VolumeRestrictions", text, True, "data"))


def test_an_unbound_immediate_claim_refuses_everywhere_until_it_is_bound() -> None:
    given = zoned(claim(cls="now"), storage_class("now", "Immediate"))
    text = "pod has unbound immediate PersistentVolumeClaims"
    assert told(given, using("data")) == everywhere(("VolumeBinding", text, True, "data"))
    assert {s.until for v in Cycle(given, using("data")).verdicts() for s in v.shortfalls} == {
        "claim data is bound"
    }


def test_a_claim_that_names_a_volume_without_being_bound_counts_as_immediate() -> None:
    given = zoned(claim(spec={"volumeName": "pv"}), volume(), storage_class())
    assert refused(given, using("data")) == {"a": [], "b": []}
    assert [s.code for s in Cycle(given, using("data")).rejections] == ["placement/volume-unbound"]


def test_lost_and_deleted_claims_refuse_everywhere() -> None:
    lost = zoned(claim(bound="pv", phase="Lost"))
    gone = zoned(claim(meta={"deletionTimestamp": "2026-11-29T12:00:00Z"}))
    assert [s.reason for s in Cycle(lost, using("data")).rejections] == [
        'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'
    ]
    assert [s.reason for s in Cycle(gone, using("data")).rejections] == [
        'persistentvolumeclaim "data" is being deleted'
    ]


def test_a_bound_volume_is_reached_from_its_zone_only() -> None:
    given = zoned(claim(bound="pv"), volume(zone="a"), storage_class())
    assert told(given, using("data")) == {
        "a": [],
        "b": [("VolumeBinding", AFFINITY, True, "claim data, volume pv")],
    }


def test_a_bound_volume_that_is_gone_refuses_everywhere() -> None:
    given = zoned(claim(bound="pv"), storage_class())
    assert [s.reason for s in Cycle(given, using("data")).rejections] == [
        'persistentvolume "pv" not found'
    ]
    assert refused(given, using("data"))["a"] == [
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    ]


def test_zone_labels_of_a_volume_must_agree() -> None:
    labels = {"failure-domain.beta.kubernetes.io/zone": "a__c"}
    given = zoned(claim(bound="pv"), volume(labels=labels), storage_class())
    zone = ("VolumeZone", "node(s) had no available volume zone", True, "volume pv in a, c")
    assert told(given, using("data")) == {"a": [], "b": [zone]}
    unlabelled = cluster(node("n"), claim(bound="pv"), volume(labels=labels))
    assert told(unlabelled, using("data")) == {"n": []}


def test_a_waiting_claim_is_provisioned_where_its_class_allows() -> None:
    assert told(zoned(claim(), storage_class(zones=["b"])), using("data")) == {
        "a": [("VolumeBinding", NO_VOLUME, True, "claim data")],
        "b": [],
    }
    assert refused(zoned(claim(), storage_class()), using("data")) == {}


def test_a_waiting_claim_without_provisioner_needs_a_free_volume() -> None:
    local = storage_class(provisioner="kubernetes.io/no-provisioner")
    assert refused(zoned(claim(), local, volume(zone="a")), using("data")) == {"b": [NO_VOLUME]}
    two = zoned(claim("d1"), claim("d2"), local, volume("p1"), volume("p2", zone="a"))
    assert refused(two, using("d1", "d2")) == {"b": [NO_VOLUME]}


def test_a_volume_must_suit_the_claim() -> None:
    local = storage_class(provisioner="kubernetes.io/no-provisioner")
    unsuited = [
        volume(capacity={"storage": "9Gi"}),
        volume(accessModes=["ReadOnlyMany"]),
        volume(storageClassName="other"),
        volume(volumeMode="Block"),
        volume(claimRef={"namespace": "default", "name": "other"}),
        volume(volumeAttributesClassName="gold"),
    ]
    for bad in unsuited:
        assert refused(zoned(claim(), local, bad), using("data")) == {
            "a": [NO_VOLUME],
            "b": [NO_VOLUME],
        }
    reserved = volume(claimRef={"namespace": "default", "name": "data"})
    assert refused(zoned(claim(), local, reserved), using("data")) == {}


def test_a_claim_whose_node_was_chosen_goes_there() -> None:
    chosen = claim(meta={"annotations": {"volume.kubernetes.io/selected-node": "b"}})
    assert refused(zoned(chosen, storage_class()), using("data")) == {"a": [NO_VOLUME]}


def test_one_pod_at_a_time_for_read_write_once_pod() -> None:
    once = claim(bound="pv", spec={"accessModes": ["ReadWriteOncePod"]})
    user = pod(
        "user", on="a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    )
    text = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )
    given = zoned(once, volume(), storage_class(), user)
    assert told(given, using("data")) == everywhere(("VolumeRestrictions", text, False, "data"))


def test_disks_conflict_unless_all_read_only() -> None:
    def disk(name: str, on: str = "", **source: Any) -> Pod:
        return pod(name, on=on, volumes=[{"name": "v", **source}])

    text = "node(s) had no available disk"
    gce = {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}
    writable = {"gcePersistentDisk": {"pdName": "d"}}
    given = zoned(disk("p", "a", **gce))
    assert refused(given, disk("q", **gce)) == {}
    assert refused(given, disk("q", **writable)) == {"a": [text]}
    ebs = {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}}
    assert refused(zoned(disk("p", "a", **ebs)), disk("q", **ebs)) == {"a": [text]}
    rbd = {"rbd": {"monitors": ["m1", "m2"], "image": "i"}}
    other = {"rbd": {"monitors": ["m2"], "image": "i", "pool": "rbd"}}
    assert refused(zoned(disk("p", "a", **rbd)), disk("q", **other)) == {"a": [text]}


def test_a_node_attaches_so_many_volumes_of_a_driver() -> None:
    csi = {"csi": {"driver": "disk.example.com", "volumeHandle": "h1"}}
    limit = decoded(
        {
            "kind": "CSINode",
            "metadata": {"name": "a"},
            "spec": {"drivers": [{"name": "disk.example.com", "allocatable": {"count": 1}}]},
        }
    )
    user = pod(
        "user", on="a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "d1"}}]
    )
    given = zoned(
        limit,
        user,
        claim("d1", bound="p1"),
        volume("p1", **csi),
        claim("d2", bound="p2"),
        volume("p2", csi={"driver": "disk.example.com", "volumeHandle": "h2"}),
    )
    assert refused(given, using("d2")) == {"a": ["node(s) exceed max volume count"]}
    assert refused(given, using("d1")) == {}


def test_what_was_not_exported_is_unknown() -> None:
    known = tuple(k for k in KNOWN if k not in ("PersistentVolumeClaim", "PersistentVolume"))
    assert [u.missing for u in Cycle(zoned(known=known), using("data")).unknowns] == [
        "PersistentVolumeClaim objects: not in the source, the pod uses data"
    ]
    given = zoned(claim(bound="pv"), known=known)
    assert [u.missing for u in Cycle(given, using("data")).unknowns] == [
        "PersistentVolume objects: not in the source"
    ]
    known = tuple(k for k in KNOWN if k != "StorageClass")
    assert [u.missing for u in Cycle(zoned(claim(), known=known), using("data")).unknowns] == [
        "StorageClass late: not in the source, claim data is unbound"
    ]


def test_an_ephemeral_volume_is_judged_by_its_class() -> None:
    template = {"spec": {"storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}}}
    asking = pod(volumes=[{"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}])
    given = zoned(storage_class(zones=["a"]))
    assert refused(given, asking) == {"b": [NO_VOLUME]}
    assert [u.level for u in Cycle(zoned(), asking).unknowns] == ["audit"]
