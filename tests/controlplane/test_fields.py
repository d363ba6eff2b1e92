"""The shipped table of fields is what Kubernetes' own Go types say."""

from __future__ import annotations

import json

import pytest

from kubectl_gpuadmit.kube.fields.table import table
from tests.controlplane import binaries, fields

SHIPPED = json.loads(fields.SHIPPED.read_bytes())


def test_the_shipped_table_is_what_the_generator_prints() -> None:
    try:
        printed = fields.pinned()
    except binaries.Missing as missing:
        pytest.skip(f"{missing}: the shipped table of fields not compared with Kubernetes' types")
    version = fields.minor(binaries.kubernetes())
    assert fields.of_version(SHIPPED, version, printed) == printed


def test_the_shipped_file_is_written_one_type_a_line() -> None:
    assert fields.SHIPPED.read_text(encoding="utf-8") == fields.text(SHIPPED)


def test_fields_that_came_or_went_are_marked_with_the_versions_that_have_them() -> None:
    pod = {"A": {"types": {"v1.X": {"old": "string", "kept": "int32"}}, "kinds": {"v1 X": "v1.X"}}}
    versions = {
        "1.35.4": pod["A"],
        "1.36.3": {"types": {"v1.X": {"kept": "int32", "new": "bool"}}, "kinds": {}},
        "1.37.2": {"types": {"v1.X": {"kept": "int32", "new": "bool"}}, "kinds": {}},
    }
    assert fields.merged(versions) == {
        "kinds": {"v1 X": "v1.X"},
        "types": {"v1.X": {"old": "string#-1.35", "kept": "int32", "new": "bool#1.36-"}},
    }


def test_a_version_beyond_the_table_is_read_by_the_nearest_one() -> None:
    of_pod = {v: table(v).type("core/v1.PodSpec").fields for v in ("1.29", "1.35", "1.36", "1.40")}
    assert ["workloadRef" in fields for fields in of_pod.values()] == [False, True, False, False]
    assert ["schedulingGroup" in fields for fields in of_pod.values()] == [False, False, True, True]


def test_every_type_of_the_table_can_be_unfolded() -> None:
    known = table()
    kinds = {"struct", "list", "map", "string", "bool", "int", "uint", "float", "bytes", "custom"}
    customs = set()
    for name in known.types:
        of = known.type(name)
        assert of.kind in kinds, name
        if of.kind == "custom":
            customs.add(name)
        for field in of.fields.values():
            assert field.type.kind in kinds, (name, field.name)
    assert customs == {
        "intstr.IntOrString",
        "meta/v1.FieldsV1",
        "meta/v1.Time",
        "resource.Quantity",
        "runtime.RawExtension",
    }
