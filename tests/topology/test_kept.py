"""Maps in snapshots: kept whole, and under pseudonyms the same map of other names."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.policy.landing import HOSTNAME
from kubectl_gpuadmit.snapshots.redact import Redactor
from kubectl_gpuadmit.snapshots.trim import trimmed
from kubectl_gpuadmit.topology.maps import node_map
from kubectl_gpuadmit.topology.standing import standing
from tests.topology.objects import cluster, node, pod, topology

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
MATRIX = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-23\nGPU1\tNV4\t X \t0-23\n"
MAPS = [
    topology(held={0: "serves"}, nics=[], problems=["PodResources of node a: permission denied"]),
    topology(held=None, gpus={3: {"pcieSwitch": "", "lost": True, "xids": [{"code": 79}]}}),
    topology(schema=1, matrix="root@a:/# nvidia-smi topo -m\n" + MATRIX, gpus={}, links=["X"]),
]


@pytest.mark.parametrize("document", MAPS)
def test_a_map_is_kept_as_it_is_read(document: dict[str, Any]) -> None:
    (read,), _ = decode_bulk(json.dumps(document).encode(), "map.json")
    (again,), _ = decode_bulk(json.dumps(trimmed(read)).encode(), "again.json")
    assert again == read


@pytest.mark.parametrize("document", MAPS)
def test_a_map_under_pseudonyms_tells_the_same(document: dict[str, Any]) -> None:
    objects = [node("a"), pod("serves"), document]
    redactor = Redactor.of(objects)
    hidden = [redactor.object(one) for one in objects]
    name = hidden[0]["metadata"]["name"]
    assert name != "a" and hidden[0]["metadata"]["labels"][HOSTNAME] == name
    text = json.dumps(hidden)
    assert "serves" not in text and "root@" not in text
    known, veiled = cluster(*objects), cluster(*hidden)
    before, after = node_map(known, "a", NOW), node_map(veiled, name, NOW)
    assert before and after
    assert (after.gpus, after.links) == (before.gpus, before.links)
    ours = standing(before, known.nodes["a"].pods, None)
    theirs = standing(after, veiled.nodes[name].pods, None)
    assert (ours.free, ours.loose, sorted(ours.held)) == (
        theirs.free,
        theirs.loose,
        sorted(theirs.held),
    )
