"""Pasted matrices by hand: each trouble once, with the reading or the refusal that is right."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.errors import BadMatrix
from kubectl_gpuadmit.topology.model import NodeMap
from kubectl_gpuadmit.topology.smi import read_smi

PAIR = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
PAIR += "GPU0\t X \tNV4\tPIX\t0-23\t0\t\tN/A\nGPU1\tNV4\t X \tSYS\t24-47\t1\t\tN/A\n"


def only(text: str) -> NodeMap:
    (found,) = read_smi(text).maps
    return found


def pairs(found: NodeMap) -> dict[tuple[int, int], str]:
    return {(link.a, link.b): link.type for link in found.links or ()}


@pytest.mark.parametrize(
    "text",
    [
        PAIR,
        PAIR.lstrip("\t"),
        PAIR.expandtabs(8),
        PAIR.replace("\n", "\r\n"),
        "node:~$ nvidia-smi topo -m\n" + PAIR + "node:~$ ",
        PAIR.replace("\tGPU0", "\t\x1b[4mGPU0", 1).replace("GPU NUMA ID", "GPU NUMA ID\x1b[0m"),
        "\n".join("> " + line for line in PAIR.split("\n")),
        PAIR.replace("\t X \tSYS", " X SYS"),
        PAIR.replace("NV4\tPIX", "NV4PIX"),
    ],
)
def test_a_whole_matrix_is_read_whole(text: str) -> None:
    found = only(text)
    assert pairs(found) == {(0, 1): "NV4"}
    assert [(gpu.numa, gpu.cpus) for gpu in found.gpus] == [(0, "0-23"), (1, "24-47")]
    (nic,) = found.nics or ()
    assert nic.levels == {0: "PIX", 1: "SYS"}


def test_soc_is_what_sys_was_called_before() -> None:
    text = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSOC\t0-13\nGPU1\tSOC\t X \t0-13\n"
    assert pairs(only(text)) == {(0, 1): "SYS"}


def test_numbers_that_may_have_run_together_are_not_read() -> None:
    found = only(PAIR.replace("0-23\t0\t\tN/A", "0-230N/A"))
    assert pairs(found) == {(0, 1): "NV4"}
    assert (found.gpus[0].cpus, found.gpus[0].numa) == (None, None)
    assert (found.gpus[1].cpus, found.gpus[1].numa) == ("24-47", 1)


def test_a_blank_numa_column_does_not_move_the_next_one_into_its_place() -> None:
    reading = read_smi(PAIR.replace("0-23\t0\t\tN/A", "0-23\t\t\tN/A"))
    (found,) = reading.maps
    assert [gpu.numa for gpu in found.gpus] == [None, 1]


def test_rows_that_were_cut_off_are_said_to_miss() -> None:
    lines = ["\t" + "\t".join(f"GPU{n}" for n in range(4)) + "\tCPU Affinity"]
    for n in range(2):
        cells = ["X" if n == m else "NV6" for m in range(4)]
        lines.append("\t".join([f"GPU{n}", *cells, "0-1"]))
    reading = read_smi("\n".join(lines) + "\n")
    (found,) = reading.maps
    assert found.count == 4
    assert (2, 3) not in pairs(found)
    assert "no row of GPU 2, 3" in reading.missing
    assert any("2-3" in one for one in reading.missing)


def test_a_contradiction_is_believed_on_neither_side() -> None:
    reading = read_smi(PAIR.replace("GPU1\tNV4", "GPU1\tNV2"))
    (found,) = reading.maps
    assert pairs(found) == {}
    assert reading.problems == ("GPU 0 and 1 are NV2 in one row and NV4 in the other",)


def test_a_row_that_has_lost_its_place_is_left_out() -> None:
    reading = read_smi(PAIR.replace("GPU1\tNV4\t X ", "GPU1\t X \tNV4"))
    (found,) = reading.maps
    assert pairs(found) == {(0, 1): "NV4"}
    assert reading.problems == ("row GPU1 does not have X in column GPU1: it is left out",)


def test_an_empty_cell_in_a_row_that_was_cut_is_seen_by_its_width() -> None:
    cells = ["\t" + "\t".join(f"GPU{n}" for n in range(10)) + "\tCPU Affinity"]
    for n in range(10):
        row = [" X " if n == m else "NV2" if {n, m} == {3, 9} else "NV1" for m in range(10)]
        cells.append(f"GPU{n}\t" + "\t".join(["", *row[1:]] if n == 9 else row) + "\t0-3")
    text = "\n".join(line[:59] for line in "\n".join(cells).expandtabs(8).split("\n"))
    reading = read_smi(text)
    assert all(9 not in pair for pair in pairs(reading.maps[0]))
    assert "row GPU9 is cut off before its X" in reading.problems[0]


def test_two_dumps_are_two_maps_and_a_peer_table_is_none() -> None:
    peers = "$ nvidia-smi topo -p2p rw\n\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n"
    reading = read_smi(PAIR + peers + PAIR.replace("NV4", "PHB"))
    assert [found.node for found in reading.maps] == ["matrix 1", "matrix 2"]
    assert [pairs(found)[0, 1] for found in reading.maps] == ["NV4", "PHB"]


@pytest.mark.parametrize(
    ("text", "ref", "words"),
    [
        ("", "not-a-matrix", "there is no text"),
        ("GPU 0: Tesla V100\n Link 0: 25.781 GB/s\n", "not-a-matrix", "nvlink -s"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNS\nGPU1\tNS\tX\n", "not-a-matrix", "topo -p2p"),
        ("The -i command line argument must be used", "not-a-matrix", "printed no matrix"),
        ("kubectl get pods\n", "not-a-matrix", "no matrix of nvidia-smi topo -m is in this text"),
        (PAIR.split("\n", 1)[1], "matrix-without-header", "without a header"),
        (PAIR.split("\n")[0], "matrix-without-rows", "no row of a GPU"),
        (PAIR + PAIR.replace("NV4", "NV2").split("\n", 1)[1], "matrix-twice", "two different rows"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, ref: str, words: str) -> None:
    with pytest.raises(BadMatrix) as refused:
        read_smi(text, file="paste.txt")
    assert refused.value.ref == ref
    assert words in refused.value.message
    assert refused.value.file == "paste.txt"
