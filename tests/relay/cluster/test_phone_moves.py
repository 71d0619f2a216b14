"""Phones that move from a stopping node to another one, and the commands that are sent for them meanwhile."""

from __future__ import annotations

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


def follow(scene: ClusterDeployment, phone: ClusterPhone) -> None:
    """Whenever the phone is disconnected, connect it again after `AWAY` seconds, to the first stable node."""

    def look() -> None:
        if not phone.closed:
            scene.sim.after(0.01, look)
            return
        scene.sim.after(AWAY, connect)

    def connect() -> None:
        up = [n for n, node in enumerate(scene.nodes) if node in scene.stable_nodes]
        follow(scene, scene.new_phone(phone.name, up[0], token=phone.token))

    look()


def restart(scene: ClusterDeployment, n: int) -> None:
    """Stop a node, start it again, and give the phones time to move."""
    stopping = scene.nodes[n]
    scene.sim.after(0.11, partial(scene.stop, n))
    scene.run(lambda: not stopping.alive, limit=0.1 + SPREAD + 0.3)
    scene.restart(n)
    scene.sim.run_for(2.5)


def test_a_rolling_restart_loses_no_command(trio: ClusterDeployment) -> None:
    phones = [trio.pair_phone(f"P{n}", n % 3) for n in range(9)]
    for phone in phones:
        phone.delay = 0.1
        follow(trio, phone)
    calls: list[RequestClient] = []

    def call(number: int) -> None:
        phone = phones[number % len(phones)]
        node = trio.nodes.index(trio.stable_nodes[number % len(trio.stable_nodes)])
        calls.append(trio.send_command(node, phone.token, device=phone.device))

    for n in range(3):
        for number in range(120):
            trio.sim.after(number / 60, partial(call, number))
        restart(trio, n)
    trio.run(lambda: all(call.is_closed for call in calls))
    assert len(calls) == 360
    assert Counter(call.status for call in calls) == {200: 360}
    performed = Counter(each for phone in trio.phones for each in phone.performed)
    assert set(performed.values()) == {1}
    assert len(performed) == 360
    for phone in phones:
        assert sum(each.name == phone.name for each in trio.phones) in (2, 3, 4)  # it has moved


@pytest.mark.parametrize("selected", [True, False])
def test_a_command_waits_for_its_phone_and_no_other_gets_it(trio: ClusterDeployment, selected: bool) -> None:
    phone = trio.pair_phone("P", 1)
    other = trio.pair_phone("Q", 2)
    chosen = trio.request_and_wait(0, "POST", "/bridge/select-active", body={"device": phone.device})
    assert chosen.status == 200
    trio.stop(1)
    trio.run(lambda: phone.closed, limit=0.2)
    call = trio.send_command(0, other.token, device=phone.device if selected else "")
    elsewhere = trio.send_command(0, other.token, device=other.device)
    trio.run(lambda: elsewhere.is_closed, limit=0.1)
    trio.sim.run_for(1.0)
    assert not call.is_closed
    back = trio.new_phone("P", 2, token=phone.token)
    trio.run(lambda: call.is_closed, limit=0.2)
    assert (call.status, len(back.performed), len(other.performed)) == (200, 1, 1)


@pytest.mark.parametrize(
    ("selected", "refusal"), [(True, (404, "unknown_device")), (False, (503, "phone_not_connected"))]
)
def test_a_command_for_a_phone_that_does_not_return_is_refused(
    scene: ClusterDeployment, selected: bool, refusal: tuple[int, str]
) -> None:
    phone = scene.pair_phone("P", 1)
    scene.stop(1)
    scene.run(lambda: phone.closed)
    began = scene.sim.now
    call = scene.send_command(0, phone.token, device=phone.device if selected else "")
    scene.run(lambda: call.is_closed, limit=MOVE_TIMEOUT)
    assert (call.status, call.answer.json["code"]) == refusal
    assert MOVE_TIMEOUT - 0.2 < scene.sim.now - began < MOVE_TIMEOUT


def test_a_waiting_command_ends_with_the_grant_or_the_session(scene: ClusterDeployment) -> None:
    phone, withheld, revoked = (scene.pair_phone(name, n) for name, n in (("P", 1), ("Q", 0), ("R", 0)))
    scene.stop(1)
    scene.run(lambda: phone.closed)
    calls = [scene.send_command(0, each.token, device=phone.device) for each in (withheld, revoked)]
    scene.sim.run_for(0.1)
    scene.revoke_bridge_grant(0, withheld.token)
    scene.revoke(0, revoked.token)
    scene.sim.run_for(0.1)
    back = scene.new_phone("P", 0, token=phone.token)
    scene.run(lambda: all(call.is_closed for call in calls))
    assert [call.status for call in calls] == [403, 401]
    assert not back.performed


def test_a_waiting_command_whose_phone_takes_no_text_fails(
    scene: ClusterDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone = scene.pair_phone("P", 1)
    scene.stop(1)
    scene.run(lambda: phone.closed)
    call = scene.send_command(0, phone.token, device=phone.device)
    scene.sim.run_for(0.1)
    find, closing = Relay.phone_for, SimpleNamespace(send_text=lambda text: False)
    monkeypatch.setattr(Relay, "phone_for", lambda relay, selector: (find(relay, selector)[0], closing))
    scene.new_phone("P", 0, token=phone.token)
    scene.run(lambda: call.is_closed)
    assert call.status == 502


def test_a_leaving_node_names_a_phone_that_is_gone(one: CoordinatorHarness) -> None:
    one.came("X", 4)
    one.deliver("asks", {"word": "leaving", "body": {"sockets": [4, 9, [4]]}, "ticket": 1}, to_me=True)
    assert one.coordinator.export_state()["leaving"] == [{"device_id": "X", "aliases": ("X", "x")}]


def test_a_command_in_progress_is_answered_before_the_stop(scene: ClusterDeployment) -> None:
    phone, idle = scene.pair_phone("P", 1), scene.pair_phone("Q", 1)
    desktop = scene.new_phone("D", 1, token="", code=scene.create_pairing_code(0), surface="desktop")
    scene.run(lambda: desktop.is_authenticated)
    phone.delay = 3.0
    call = scene.send_command(0, phone.token, device=phone.device)
    scene.run(lambda: bool(phone.performed))
    began = scene.sim.now
    scene.stop(1)
    scene.run(lambda: desktop.closed and idle.closed, limit=SPREAD + 0.1)
    scene.run(lambda: call.is_closed)
    assert call.status == 200
    assert not phone.closed
    assert scene.sim.now - began < phone.delay + 0.1
    scene.run(lambda: not scene.nodes[1].alive, limit=1.0)


def test_the_last_sockets_are_closed_before_the_grace_ends(trio: ClusterDeployment) -> None:
    phone = trio.pair_phone("P", 1)
    phone.mute = True
    call = trio.send_command(0, phone.token)
    trio.run(lambda: len(phone.performed) == 1)
    began = trio.sim.now
    trio.nodes[1].stop(grace=3.0)
    trio.run(lambda: call.is_closed)
    assert (call.answer.status, call.answer.json["code"]) == (502, "phone_disconnected")
    assert 3.0 - CLOSE_MARGIN - 0.3 < trio.sim.now - began < 3.0 - CLOSE_MARGIN
    check_return(trio, phone.token)


def test_a_joining_node_holds_commands_for_phones_that_move(one: CoordinatorHarness) -> None:
    one.came("X", 4)
    one.came("Y", 5)
    rows = [{"device_id": name, "aliases": [name, f"the {name}"]} for name in ("X", "Y", "Z")]
    one.deliver("state", {"phones": [{"socket": 4, "device_id": "X", "since": 1.0}], "leaving": rows}, to_me=True)
    one.deliver("state", {"leaving": rows[:2]}, node="c", to_me=True)  # X is connected to b
    ended: list[object] = []
    for selector in ("X", "Y", "the Z"):
        one.run(one.coordinator.wait_for_phone(selector), ended)
    assert ended == []
    assert one.coordinator.export_state()["leaving"] == [
        {"device_id": name, "aliases": aliases}
        for name, aliases in (("X", ("X", "x")), ("Y", ("Y", "the Y")), ("Z", ("Z", "the Z")))
    ]
    one.came("Y", 6)
    assert ended == [None]
    one.book.after(MOVE_TIMEOUT)
    assert ended == [None] * 3


def test_stopping_before_the_start_is_over() -> None:
    relay = Relay(RelayConfig(home=HOME, cluster=WHERE))
    assert relay.coordinator.stop() is None


def test_a_command_of_a_node_that_holds_none_is_answered_while_the_socket_is_open(
    trio: ClusterDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone = trio.pair_phone("P", 1)
    earlier_version = trio.relays[0].coordinator
    monkeypatch.setattr(earlier_version, "_hold_commands", lambda node, body: None)
    phone.delay = 1.0
    calls = [trio.send_command(2, phone.token, device=phone.device)]
    trio.run(lambda: bool(phone.performed))
    trio.stop(1)
    trio.sim.run_for(0.5)
    calls.append(trio.send_command(0, phone.token, device=phone.device))
    trio.run(lambda: all(call.is_closed for call in calls))
    assert [call.status for call in calls] == [200, 200]
    assert len(phone.performed) == 2
    trio.run(lambda: not trio.nodes[1].alive, limit=1.0)
