"""Real claims, classes and slices use the features that their authors turned on, and no others."""

from __future__ import annotations

from kubectl_gpuadmit.devices import features, normal
from kubectl_gpuadmit.kube import dra
from kubectl_gpuadmit.kube.decode import decode_object
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from tests.corpus import items, needs_corpus

NVIDIA = {
    "031-nv-consumable-memory.yaml": {"ConsumableShares"},
    "032-nv-fm-partition-vfio.yaml": {"FabricManagerPartitioning", "PassthroughSupport"},
    "038-nv-timeslicing-config.yaml": {"TimeSlicingSettings"},
    "039-nv-mps-v1.yaml": {"MPSSupport"},
}
"""Files that use features of NVIDIA's driver."""
CAPACITY = {
    "023-apitest-ResourceClaim-v1.yaml",
    "024-apitest-ResourceClaim-v1beta2-json.json",
    "031-nv-consumable-memory.yaml",
    "046-ex-native-resource.yaml",
    "050-ex-multi-alloc-partitionable.yaml",
    "056-amd-partitions-distinct-parents.yaml",
    "062-kueue-dra-capacity-job.yaml",
    "066-ks-claim-rich.yaml",
}
"""Files whose claims need DRAConsumableCapacity."""
ALTERNATIVES = {
    "023-apitest-ResourceClaim-v1.yaml",
    "024-apitest-ResourceClaim-v1beta2-json.json",
    "066-ks-claim-rich.yaml",
}
"""Files whose claims have alternatives."""


def used() -> dict[str, set[tuple[str, str]]]:
    """File -> features (component, name) that its claims use."""
    found: dict[str, set[tuple[str, str]]] = {}
    for item in items("dra"):
        documents = read_documents(item.path.read_bytes(), item.path.name)
        objects = [decode_object(d) for d in documents if isinstance(d, Document)]
        classes = {o.name: normal.of_class(o) for o in objects if isinstance(o, dra.DeviceClass)}
        for obj in objects:
            if isinstance(obj, dra.ResourceClaim):
                claim = normal.of_claim(obj)
            elif isinstance(obj, dra.ResourceClaimTemplate):
                claim = normal.of_template(obj)
            else:
                continue
            uses = features.of_claim(claim, classes.get)
            found.setdefault(item.path.name, set()).update((u.component, u.feature) for u in uses)
    return found


@needs_corpus
def test_features_of_real_claims_are_those_that_their_authors_turned_on() -> None:
    found = used()
    assert len(found) > 25
    nvidia = {
        file: {name for component, name in uses if component == "nvidia-dra-driver"}
        for file, uses in found.items()
    }
    assert {file: names for file, names in nvidia.items() if names} == NVIDIA
    for feature, files in (
        ("DRAConsumableCapacity", CAPACITY),
        ("DRAPrioritizedList", ALTERNATIVES),
    ):
        assert {f for f, uses in found.items() if ("kubernetes", feature) in uses} == files
