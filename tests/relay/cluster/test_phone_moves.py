"""Phones that move from a stopping node to another one, and the commands that are sent for them meanwhile."""

from collections import Counter
from functools import partial
from types import SimpleNamespace

import pytest

from fuzz.cluster.actors import ClusterPhone
from fuzz.cluster.deployment import ClusterDeployment
from svc_proto.relay.cluster.phone_moves import CLOSE_MARGIN, MOVE_TIMEOUT, SPREAD
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from tests.cluster.harness import WHERE
from tests.relay.cluster.test_coordinator import check_return
from tests.relay.coordinator_harness import CoordinatorHarness
from tests.support.core_harness import HOME
from tests.support.sim_http import RequestClient

AWAY = 0.4  # s from a phone's disconnection to its next connection


def follow(cluster: ClusterDeployment, phone: ClusterPhone) -> None:
    """Whenever the phone is disconnected, connect it again after `AWAY` seconds, to the first stable node."""

    def look() -> None:
        if not phone.closed:
            cluster.sim.after(0.01, look)
            return
        cluster.sim.after(AWAY, connect)

    def connect() -> None:
        up = [n for n, node in enumerate(cluster.nodes) if node in cluster.stable_nodes]
        follow(cluster, cluster.new_phone(phone.name, up[0], token=phone.token))

    look()


def restart(cluster: ClusterDeployment, n: int) -> None:
    """Stop a node, start it again, and give the phones time to move."""
    stopping = cluster.nodes[n]
    cluster.sim.after(0.11, partial(cluster.stop, n))
    cluster.run(lambda: not stopping.alive, limit=0.1 + SPREAD + 0.3)
    cluster.restart(n)
    cluster.sim.run_for(2.5)


def test_a_rolling_restart_loses_no_command(three_nodes: ClusterDeployment) -> None:
    phones = [three_nodes.pair_phone(f"P{n}", n % 3) for n in range(9)]
    for phone in phones:
        phone.delay = 0.1
        follow(three_nodes, phone)
    calls: list[RequestClient] = []

    def call(number: int) -> None:
        phone = phones[number % len(phones)]
        node = three_nodes.nodes.index(three_nodes.stable_nodes[number % len(three_nodes.stable_nodes)])
        calls.append(three_nodes.send_command(node, phone.token, device=phone.device))

    for n in range(3):
        for number in range(120):
            three_nodes.sim.after(number / 60, partial(call, number))
        restart(three_nodes, n)
    three_nodes.run(lambda: all(call.is_closed for call in calls))
    assert len(calls) == 360
    assert Counter(call.status for call in calls) == {200: 360}
    performed = Counter(each for phone in three_nodes.phones for each in phone.performed)
    assert set(performed.values()) == {1}
    assert len(performed) == 360
    for phone in phones:
        assert sum(each.name == phone.name for each in three_nodes.phones) in (2, 3, 4)  # it has moved


def test_the_selected_phone_is_that_of_all_nodes(two_nodes: ClusterDeployment) -> None:
    devices = [two_nodes.pair_phone(name, node).device for node, name in enumerate("PQ")]
    for device in reversed(devices):
        two_nodes.sim.run_for(0.2)
        selected = two_nodes.request_and_wait(0, "POST", "/bridge/select-active", body={"device": device})
        assert selected.status == 200
        two_nodes.sim.run_for(0.2)
        for node in range(2):
            shown = two_nodes.request_and_wait(node, "GET", "/bridge/devices").answer.json
            assert shown["active_device_id"] == device


@pytest.mark.parametrize("selected", [True, False])
def test_a_command_waits_for_its_phone_and_no_other_gets_it(three_nodes: ClusterDeployment, selected: bool) -> None:
    phone = three_nodes.pair_phone("P", 1)
    other = three_nodes.pair_phone("Q", 2)
    chosen = three_nodes.request_and_wait(0, "POST", "/bridge/select-active", body={"device": phone.device})
    assert chosen.status == 200
    three_nodes.stop(1)
    three_nodes.run(lambda: phone.closed, limit=0.2)
    call = three_nodes.send_command(0, other.token, device=phone.device if selected else "")
    elsewhere = three_nodes.send_command(0, other.token, device=other.device)
    three_nodes.run(lambda: elsewhere.is_closed, limit=0.1)
    three_nodes.sim.run_for(1.0)
    assert not call.is_closed
    back = three_nodes.new_phone("P", 2, token=phone.token)
    three_nodes.run(lambda: call.is_closed, limit=0.2)
    assert (call.status, len(back.performed), len(other.performed)) == (200, 1, 1)


@pytest.mark.parametrize(
    ("selected", "refusal"), [(True, (404, "unknown_device")), (False, (503, "phone_not_connected"))]
)
def test_a_command_for_a_phone_that_does_not_return_is_refused(
    two_nodes: ClusterDeployment, selected: bool, refusal: tuple[int, str]
) -> None:
    phone = two_nodes.pair_phone("P", 1)
    two_nodes.stop(1)
    two_nodes.run(lambda: phone.closed)
    began = two_nodes.sim.now
    call = two_nodes.send_command(0, phone.token, device=phone.device if selected else "")
    two_nodes.run(lambda: call.is_closed, limit=MOVE_TIMEOUT)
    assert (call.status, call.answer.json["code"]) == refusal
    assert MOVE_TIMEOUT - 0.2 < two_nodes.sim.now - began < MOVE_TIMEOUT


def test_a_waiting_command_ends_with_the_grant_or_the_session(two_nodes: ClusterDeployment) -> None:
    phone, withheld, revoked = (two_nodes.pair_phone(name, n) for name, n in (("P", 1), ("Q", 0), ("R", 0)))
    two_nodes.stop(1)
    two_nodes.run(lambda: phone.closed)
    calls = [two_nodes.send_command(0, each.token, device=phone.device) for each in (withheld, revoked)]
    two_nodes.sim.run_for(0.1)
    two_nodes.revoke_bridge_grant(0, withheld.token)
    two_nodes.revoke(0, revoked.token)
    two_nodes.sim.run_for(0.1)
    back = two_nodes.new_phone("P", 0, token=phone.token)
    two_nodes.run(lambda: all(call.is_closed for call in calls))
    assert [call.status for call in calls] == [403, 401]
    assert not back.performed


def test_commands_of_a_closing_phone_fail(two_nodes: ClusterDeployment, monkeypatch: pytest.MonkeyPatch) -> None:
    phone = two_nodes.pair_phone("P", 1)
    two_nodes.stop(1)
    two_nodes.run(lambda: phone.closed)
    call = two_nodes.send_command(0, phone.token, device=phone.device)
    two_nodes.sim.run_for(0.1)
    find, closing = Relay.phone_for, SimpleNamespace(send_text=lambda text: False)
    monkeypatch.setattr(Relay, "phone_for", lambda relay, selector: (find(relay, selector)[0], closing))
    two_nodes.new_phone("P", 0, token=phone.token)
    two_nodes.run(lambda: call.is_closed)
    assert call.status == 502


def test_phones_that_leave_are_named_to_joining_nodes(harness: CoordinatorHarness) -> None:
    harness.came("X", 4)
    harness.deliver("asks", {"word": "leaving", "body": {"sockets": [4, 9, [4]]}, "ticket": 1}, to_me=True)
    assert harness.coordinator.export_state()["leaving"] == [{"device_id": "X", "aliases": ("X", "x")}]
    harness = CoordinatorHarness()
    harness.came("X", 4)
    harness.came("Y", 5)
    rows = [{"device_id": name, "aliases": [name, f"the {name}"]} for name in ("X", "Y", "Z")]
    harness.deliver("state", {"phones": [{"socket": 4, "device_id": "X", "since": 1.0}], "leaving": rows}, to_me=True)
    harness.came("W", 8)
    outdated = {"device_id": "W", "aliases": ["W"]}
    harness.deliver("state", {"leaving": [*rows[:2], outdated]}, node="c", to_me=True)  # X and W are connected to b
    ended: list[object] = []
    for selector in ("X", "Y", "the Z"):
        harness.run(harness.coordinator.wait_for_phone(selector), ended)
    assert ended == []
    assert harness.coordinator.export_state()["leaving"] == [
        {"device_id": name, "aliases": aliases}
        for name, aliases in (("X", ("X", "x")), ("Y", ("Y", "the Y")), ("Z", ("Z", "the Z")))
    ]
    harness.came("Y", 6)
    assert ended == [None]
    harness.connect(7, "X")
    assert ended == [None] * 2
    harness.book.after(MOVE_TIMEOUT)
    assert ended == [None] * 3
    relay = Relay(RelayConfig(home=HOME, cluster=WHERE))
    assert relay.coordinator.stop() is None


def test_a_command_in_progress_is_answered_before_the_stop(two_nodes: ClusterDeployment) -> None:
    phone, idle = two_nodes.pair_phone("P", 1), two_nodes.pair_phone("Q", 1)
    desktop = two_nodes.new_phone("D", 1, token="", code=two_nodes.create_pairing_code(0), surface="desktop")
    two_nodes.run(lambda: desktop.is_authenticated)
    phone.delay = 3.0
    call = two_nodes.send_command(0, phone.token, device=phone.device)
    two_nodes.run(lambda: bool(phone.performed))
    began = two_nodes.sim.now
    two_nodes.stop(1)
    two_nodes.run(lambda: desktop.closed and idle.closed, limit=SPREAD + 0.1)
    two_nodes.run(lambda: call.is_closed)
    assert call.status == 200
    assert not phone.closed
    assert two_nodes.sim.now - began < phone.delay + 0.1
    two_nodes.run(lambda: not two_nodes.nodes[1].alive, limit=1.0)


def test_the_last_sockets_are_closed_before_the_grace_ends(three_nodes: ClusterDeployment) -> None:
    phone = three_nodes.pair_phone("P", 1)
    phone.mute = True
    call = three_nodes.send_command(0, phone.token)
    three_nodes.run(lambda: len(phone.performed) == 1)
    began = three_nodes.sim.now
    three_nodes.nodes[1].stop(grace=3.0)
    three_nodes.run(lambda: call.is_closed)
    assert (call.answer.status, call.answer.json["code"]) == (502, "phone_disconnected")
    assert 3.0 - CLOSE_MARGIN - 0.3 < three_nodes.sim.now - began < 3.0 - CLOSE_MARGIN
    check_return(three_nodes, phone.token)


def test_a_command_of_a_node_that_holds_none_is_answered_while_the_socket_is_open(
    three_nodes: ClusterDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone = three_nodes.pair_phone("P", 1)
    earlier_version = three_nodes.relays[0].coordinator
    monkeypatch.setattr(earlier_version, "_hold_commands", lambda node, body: None)
    phone.delay = 1.0
    calls = [three_nodes.send_command(2, phone.token, device=phone.device)]
    three_nodes.run(lambda: bool(phone.performed))
    three_nodes.stop(1)
    three_nodes.sim.run_for(0.5)
    calls.append(three_nodes.send_command(0, phone.token, device=phone.device))
    three_nodes.run(lambda: all(call.is_closed for call in calls))
    assert [call.status for call in calls] == [200, 200]
    assert len(phone.performed) == 2
    three_nodes.run(lambda: not three_nodes.nodes[1].alive, limit=1.0)
