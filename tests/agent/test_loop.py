"""The loop above real sources and an API server on a socket; time is ours."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_gpuadmit.adapters.kube.connection import Access
from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
from kubectl_gpuadmit.adapters.kube.node_maps import CustomObjects
from kubectl_gpuadmit.agent.loop import Agent, Settings
from tests.agent.node import Node
from tests.fakes import machines
from tests.fakes.apiserver import ApiServer, Reply, refusal
from tests.fakes.kubelet import devices, pod

PATH = "/apis/gpu-admit.io/v1alpha1/gputopologies/n-0"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0", "uid": "u-1"}}
START = dt.datetime(2026, 11, 29, 10, tzinfo=dt.UTC)


class World:
    """An agent, its node, its API server, and a clock that moves when we say so."""

    def __init__(self, node: Node, server: ApiServer, folder: Path, **settings: Any) -> None:
        self.node = node
        self.server = server
        self.folder = folder
        self.settings = Settings(node="n-0", version="1", **settings)
        self.seconds = 0.0
        self.said: list[str] = []
        self.agent = self.restarted()

    def restarted(self) -> Agent:
        connection = connect(
            Access(kubeconfig=str(self.server.kubeconfig(self.folder))), sleep=lambda _: None
        )
        self.agent = Agent(
            self.node.sources,
            CustomObjects(connection),
            self.settings,
            clock=lambda: START + dt.timedelta(seconds=self.seconds),
            steady=lambda: self.seconds,
            say=self.said.append,
            spread=lambda: 0.5,
        )
        return self.agent

    def live(self, seconds: float) -> int:
        """Passes for that long; how many there were."""
        end, passes = self.seconds + seconds, 0
        while self.seconds < end:
            self.seconds += self.agent.step()
            passes += 1
        return passes

    @property
    def stored(self) -> Any:
        found = [o["spec"] for o in self.server.objects if o["kind"] == "GpuTopology"]
        return found[0] if found else None

    @property
    def writes(self) -> list[str]:
        """``apply`` or ``merge`` of each request that would write."""
        return [
            request.headers["Content-Type"].partition("/")[2].partition("-")[0]
            for request in self.server.asked
            if request.method == "PATCH"
        ]


@pytest.fixture
def world(h100: Node, tmp_path: Path) -> Iterator[World]:
    with ApiServer([NODE]) as server:
        yield World(h100, server, tmp_path)


def test_an_hour_at_rest_is_one_report_and_a_heartbeat_each_few_minutes(world: World) -> None:
    assert world.live(3600) == 120
    assert world.writes == ["apply", *["merge"] * 14]
    assert world.stored["asOf"] == "2026-11-29T10:56:00Z"
    assert world.agent.status.writes == {"report": 1, "heartbeat": 14}
    assert world.said == []


def test_a_report_is_never_older_than_its_heartbeat_says(world: World) -> None:
    oldest = 0.0
    for _ in range(240):
        world.seconds += world.agent.step()
        told = dt.datetime.fromisoformat(world.stored["asOf"])
        oldest = max(oldest, world.seconds - (told - START).total_seconds())
    assert oldest <= world.settings.heartbeat == world.stored["heartbeatSeconds"]


def test_a_change_is_written_by_the_next_pass(world: World) -> None:
    world.live(60)
    uuid = machines.uuid("GPU", 0x1002)
    world.node.kubelet.pods = [pod("a", "b", devices=devices("nvidia.com/gpu", uuid))]
    world.live(30)
    assert world.writes == ["apply", "apply"]
    assert [holder["pod"] for holder in world.stored["holders"]] == ["b"]


def test_memory_that_comes_and_goes_costs_no_write_a_pass(world: World) -> None:
    for step in range(240):
        used = 1000 + 40_000 * (step % 2)
        world.node.driver.show(machines.hgx_h100().with_gpu(0, used_mib=used))
        world.seconds += world.agent.step()
    assert world.seconds == 7200
    assert 25 <= len(world.writes) <= 40
    assert world.stored["gpus"][0]["usedMiB"] in (1000, 41_000)


def test_an_api_server_that_is_away_for_an_hour_costs_few_tries_and_one_write(
    world: World,
) -> None:
    world.live(60)
    before = len(world.server.asked)
    world.server.away = True
    world.node.driver.show(machines.links_down(machines.hgx_h100(), 1, 4))
    assert world.live(3600) >= 115
    tries = [r for r in world.server.asked[before:] if r.method == "GET"]
    assert 10 <= len({id(r) for r in tries}) / 3 <= 30  # each asks for the Node up to three times
    assert world.agent.status.write_failures <= 30
    assert "connection-broken" in world.agent.status.write_problem
    world.node.driver.show(machines.links_down(machines.hgx_h100(), 1, 4, 5))
    world.server.away = False
    written = len(world.writes)
    world.live(330)
    assert world.writes[written] == "apply"
    assert world.stored["gpus"][1]["nvlinks"]["down"] == [4, 5]
    assert [text.partition(":")[0] for text in world.said] == ["cannot write", "writing again"]


def test_an_agent_that_starts_without_an_api_server_writes_once_there_is_one(
    world: World,
) -> None:
    world.server.away = True
    world.live(3600)
    assert world.stored is None
    assert world.agent.status.write_failures <= 30
    assert world.agent.status.unready(world.seconds, heartbeat=300).startswith("not written:")
    world.server.away = False
    world.live(330)
    assert len(world.stored["gpus"]) == 8
    assert world.agent.status.unready(world.seconds, heartbeat=300) == ""


def test_a_restart_writes_nothing_where_nothing_changed_and_keeps_the_dates(world: World) -> None:
    world.live(30)
    world.node.driver.show(machines.links_down(machines.hgx_h100(), 1, 4))
    world.live(60)
    since = world.stored["gpus"][1]["nvlinks"]["downSince"]
    written = len(world.writes)
    world.restarted()
    world.live(600)
    assert set(world.writes[written:]) == {"merge"}
    assert world.stored["gpus"][1]["nvlinks"]["downSince"] == since


def test_an_object_that_somebody_removed_or_changed_is_written_again(world: World) -> None:
    world.live(30)
    world.server.objects = [NODE]
    world.live(400)
    assert len(world.stored["gpus"]) == 8
    world.stored["gpus"][0]["uuid"] = "forged"
    world.live(400)
    assert world.stored["gpus"][0]["uuid"] == machines.uuid("GPU", 0x1000)


def test_an_object_of_a_newer_agent_is_replaced_and_nothing_taken_over(world: World) -> None:
    newer = {
        "apiVersion": "gpu-admit.io/v1alpha1",
        "kind": "GpuTopology",
        "metadata": {"name": "n-0"},
        "spec": {"schema": 9, "asOf": "2026-11-29T09:59:00Z"},
    }
    world.server.objects.append(newer)
    world.live(30)
    assert (world.stored["schema"], len(world.stored["gpus"])) == (2, 8)


def test_a_driver_restart_is_told_once_and_its_report_grows_old(world: World) -> None:
    world.live(30)
    world.node.driver.unload()
    world.live(1200)
    assert world.writes == ["apply", "apply"]
    assert world.stored["asOf"] == "2026-11-29T10:00:00Z"
    assert world.stored["problems"] == ["the driver: the driver does not answer: Driver Not Loaded"]
    assert world.agent.status.unready(world.seconds, heartbeat=300).startswith("driver silent")
    assert world.agent.status.unhealthy(world.seconds) == ""
    world.node.driver.show(machines.hgx_h100())
    world.live(60)
    assert "problems" not in world.stored
    assert world.said == [
        "driver silent: the driver does not answer: Driver Not Loaded",
        "driver is back",
    ]


def test_a_driver_that_was_replaced_asks_for_a_new_container(world: World) -> None:
    world.live(30)
    world.node.driver.show(machines.hgx_h100(), error="18")
    world.live(300)
    assert world.agent.status.unhealthy(world.seconds) == ""
    world.live(600)
    assert world.agent.status.unhealthy(world.seconds) == (
        "the driver was replaced: this process has the old libnvidia-ml.so.1"
    )


def test_a_kubelet_restart_is_a_pass_without_holders(world: World) -> None:
    uuid = machines.uuid("GPU", 0x1002)
    world.node.kubelet.pods = [pod("a", "b", devices=devices("nvidia.com/gpu", uuid))]
    world.live(30)
    world.node.kubelet.stop()
    world.live(30)
    assert "holders" not in world.stored
    world.node.kubelet.start()
    world.live(30)
    assert [holder["pod"] for holder in world.stored["holders"]] == ["b"]
    assert [text.partition(":")[0] for text in world.said] == ["kubelet silent", "kubelet is back"]


def test_a_refusal_is_told_once_with_its_reason(world: World) -> None:
    denied = refusal(403, "an agent writes the map of its own node", reason="Forbidden")
    world.server.on(PATH, denied, method="PATCH")
    world.live(1800)
    assert len(world.said) == 1
    assert "an agent writes the map of its own node" in world.said[0]
    assert world.agent.status.write_failures <= 15


def test_a_fault_of_our_own_ends_no_process(world: World) -> None:
    world.server.on("/api/v1/nodes/n-0", Reply(b'{"metadata": 7}'))
    world.live(120)
    assert world.agent.status.faults == 0
    assert world.said == [
        "cannot write: the cluster has no node n-0 [no-such-node]; --node NAME, or NODE_NAME"
    ]


def test_a_broken_source_is_counted_and_the_next_pass_goes_on(world: World) -> None:
    class Broken:
        def __init__(self) -> None:
            self.left = 3

        def look(self) -> Any:
            self.left -= 1
            if self.left >= 0:
                raise ZeroDivisionError("a bug")
            return world.node.sources.look()

        def close(self) -> None: ...

    world.agent._sources = Broken()
    world.live(120)
    assert (world.agent.status.faults, len(world.stored["gpus"])) == (3, 8)
    assert world.said == ["a fault of this program: ZeroDivisionError: a bug"]


def test_a_node_without_a_gpu_writes_nothing(world: World) -> None:
    world.node.driver.unload()
    for link in (world.node.root / "sys/bus/pci/devices").iterdir():
        link.unlink()
    world.live(600)
    assert world.writes == []
    assert world.agent.status.unready(world.seconds, heartbeat=300) == ""


def test_it_ends_when_it_is_told_to_and_lets_the_driver_go(world: World) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        world.seconds += seconds
        return len(waits) == 3

    world.agent.run(wait)
    assert waits == [30.0, 30.0, 30.0]
    assert world.node.nvml._open is False
