"""Relays of a cluster: pairing, commands, revocations and phones, in simulated clusters or with a scripted Redis."""

from functools import partial
from typing import Any, cast

import pytest

from fuzz.cluster.actors import ClusterPhone
from fuzz.cluster.deployment import ClusterDeployment
from fuzz.cluster.invariants import SOON
from svc_proto.basics.errors import Refused
from svc_proto.machines.bridge_commands import CommandOutcome
from svc_proto.machines.paired_session_registry import MAX_CLUSTER_SESSIONS, MAX_SESSIONS, PairedSessionRegistry
from svc_proto.relay.change_notifier import DEVICES, NOTIFICATIONS
from svc_proto.relay.cluster import coordinator
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.settings import RedisAddress
from tests.cluster.harness import WHERE, RedisHarness
from tests.relay.coordinator_harness import CoordinatorHarness, PhoneRouteStub
from tests.support.core_harness import HOME
from tests.support.playbook import counting_entropy
from tests.support.sim_http import RequestClient


def answered_command(cluster: ClusterDeployment, node: int, token: str) -> RequestClient:
    """Send a bridge command to a node and return it with its answer."""
    call = cluster.send_command(node, token)
    cluster.run(lambda: call.is_closed)
    return call


def refused_phone(cluster: ClusterDeployment, name: str, node: int, *, code: str = "", token: str = "") -> ClusterPhone:
    """Connect a phone to a node with a wrong credential, and return it when it is refused."""
    phone = cluster.new_phone(name, node, code=code, token=token)
    cluster.run(lambda: phone.closed or bool(phone.token or phone.refused))
    return phone


def test_code_pairs_on_another_node_once(two_nodes: ClusterDeployment) -> None:
    code = two_nodes.create_pairing_code(0)
    phone = two_nodes.new_phone("P", 1, code=code)
    two_nodes.run(lambda: bool(phone.token or phone.refused))
    assert phone.token
    for node in (0, 1):
        late = refused_phone(two_nodes, f"late-{node}", node, code=code)
        assert "pairing" in late.refused
        assert "invalid" in late.refused


def test_revoked_session_ends_on_all_nodes(three_nodes: ClusterDeployment) -> None:
    phone = three_nodes.pair_phone("P", 1)
    deletion = three_nodes.revoke(2, phone.token)
    three_nodes.run(lambda: deletion.is_closed)
    assert deletion.answer.status == 200, deletion.answer
    gone = three_nodes.sim.now
    three_nodes.run(lambda: phone.closed, limit=1.0)
    assert three_nodes.sim.now - gone < 1.0
    for node in range(3):
        assert three_nodes.request_and_wait(node, "GET", "/ping", token=phone.token).status == 401
    assert not three_nodes.hosts[0].store.sessions


def check_return(cluster: ClusterDeployment, token: str) -> None:
    """Connect a phone with this session token to node 2, and check that it answers a command sent at node 0."""
    back = cluster.new_phone("P", 2, token=token)
    cluster.run(lambda: back.is_authenticated)
    again = cluster.send_command(0, token)
    cluster.run(lambda: again.is_closed)
    assert again.answer.status == 200


def test_command_to_a_lost_node_fails_at_once(three_nodes: ClusterDeployment) -> None:
    phone = three_nodes.pair_phone("P", 1)
    phone.mute = True
    call = three_nodes.send_command(0, phone.token)
    three_nodes.run(lambda: len(phone.performed) == 1)
    gone = three_nodes.sim.now
    three_nodes.kill(1)
    three_nodes.run(lambda: call.is_closed)
    assert (call.answer.status, call.answer.json["code"]) == (502, "phone_disconnected")
    assert three_nodes.sim.now - gone < 0.6
    check_return(three_nodes, phone.token)


def test_partitioned_node_does_not_restore_a_revoked_session(three_nodes: ClusterDeployment) -> None:
    phone = three_nodes.pair_phone("P", 1)
    three_nodes.sim.run_for(0.1)
    three_nodes.partition_from_redis(2)
    three_nodes.sim.run_for(3.0)
    assert three_nodes.request_and_wait(0, "DELETE", f"/sessions/{phone.token}").status == 200
    patch = three_nodes.request_and_wait(2, "PATCH", f"/sessions/{phone.token}", body={"ttl_seconds": 60})
    assert patch.status == 404, patch.answer
    assert not three_nodes.store.sessions
    assert three_nodes.request_and_wait(2, "GET", "/sessions", token=phone.token).status == 401


def test_revocation_missed_by_the_store_survives_restarts(three_nodes: ClusterDeployment) -> None:
    phone = three_nodes.pair_phone("P", 0)
    three_nodes.partition_from_store(1)
    assert three_nodes.request_and_wait(1, "DELETE", f"/sessions/{phone.token}").status == 500  # the relay retries
    for n in range(3):
        three_nodes.kill(n)
    three_nodes.heal()
    for n in (0, 2):
        three_nodes.restart(n)
    three_nodes.run(lambda: three_nodes.count_known_nodes(0) == three_nodes.count_known_nodes(2) == 1)
    assert three_nodes.request_and_wait(0, "GET", "/sessions", token=phone.token).status == 200  # read from the store
    three_nodes.hosts[1].store.seconds = 2.0  # so that erasing takes a while
    three_nodes.restart(1)
    three_nodes.run(lambda: three_nodes.count_known_nodes(0) == three_nodes.count_known_nodes(2) == 2)
    three_nodes.sim.run_for(SOON)
    assert phone.token
    for n in (0, 2):
        assert three_nodes.request_and_wait(n, "GET", "/sessions", token=phone.token).status == 401


def test_partitioned_node_applies_a_withdrawn_grant_after_healing(three_nodes: ClusterDeployment) -> None:
    phone = three_nodes.pair_phone("P", 1)
    three_nodes.sim.run_for(0.1)
    three_nodes.partition_from_redis(0)
    three_nodes.sim.run_for(5.0)
    patch = three_nodes.request_and_wait(2, "PATCH", f"/sessions/{phone.token}", body={"grants": {"bridge": False}})
    assert patch.status == 200, patch.answer
    assert three_nodes.request_and_wait(1, "GET", "/ping", token=phone.token).status == 403
    assert three_nodes.request_and_wait(0, "GET", "/ping", token=phone.token).status == 503  # not received there
    three_nodes.heal()
    three_nodes.sim.run_for(1.0)
    assert three_nodes.request_and_wait(0, "GET", "/ping", token=phone.token).status == 403


def test_phone_without_bridge_grant_is_removed_on_all_nodes(three_nodes: ClusterDeployment) -> None:
    phone = three_nodes.pair_phone("P", 1)
    three_nodes.sim.run_for(0.1)
    patch = three_nodes.request_and_wait(2, "PATCH", f"/sessions/{phone.token}", body={"grants": {"bridge": False}})
    assert patch.status == 200
    three_nodes.sim.run_for(0.1)
    for node in (0, 2, 1):
        assert three_nodes.request_and_wait(node, "GET", "/bridge/devices").answer.json["count"] == 0, node


def test_without_redis_nodes_serve_local_phones_only(two_nodes: ClusterDeployment) -> None:
    phone, other = two_nodes.pair_phone("P", 0), two_nodes.pair_phone("Q", 1)
    code = two_nodes.create_pairing_code(0)
    two_nodes.kill_redis()
    two_nodes.sim.run_for(1.0)
    mine = two_nodes.request_and_wait(0, "GET", "/ping?device=device-P", token=other.token)
    assert mine.status == 200
    for node, method, path, token in (
        (0, "GET", "/ping?device=device-Q", phone.token),
        (0, "POST", "/pairing", ""),
        (1, "DELETE", f"/sessions/{other.token}", ""),
    ):
        answer = two_nodes.request_and_wait(node, method, path, token=token).answer
        assert (answer.status, answer.json["code"]) == (503, "cluster_unavailable"), path
    late = two_nodes.new_phone("R", 1, code=code)
    two_nodes.run(lambda: bool(late.refused))
    assert "pairing" not in late.refused
    two_nodes.restart_redis()
    two_nodes.sim.run_for(1.0)
    assert two_nodes.request_and_wait(0, "GET", "/ping", token=other.token).status == 401  # received
    assert two_nodes.pair_phone("S", 0, at=1).is_authenticated


def test_unknown_token_is_looked_up_in_the_store(two_nodes: ClusterDeployment) -> None:
    two_nodes.partition_from_redis(0)
    phone = two_nodes.pair_phone("P", 1)
    again = two_nodes.new_phone("P", 0, token=phone.token)
    two_nodes.run(lambda: again.is_authenticated)
    two_nodes.partition_from_redis(0)
    other = two_nodes.pair_phone("Q", 1)
    assert two_nodes.request_and_wait(0, "GET", "/sessions", token=other.token).status == 200
    hasty = two_nodes.new_phone("R", 0, token=two_nodes.pair_phone("R", 1).token)
    assert hasty.talker is not None
    two_nodes.run(lambda: bool(hasty.talker and hasty.talker.accepted))
    two_nodes.kill(0)  # during the lookup
    two_nodes.run(lambda: hasty.closed)


def test_unknown_token_opens_voice_routes_after_lookup(two_nodes: ClusterDeployment) -> None:
    two_nodes.partition_from_redis(0)
    phone = two_nodes.pair_phone("P", 1)
    answer = two_nodes.request_and_wait(0, "GET", "/voice/config", token=phone.token).answer
    assert answer.status == 200, answer
    other = two_nodes.request_and_wait(0, "GET", "/voice/config", token="A" * 43)
    assert other.status == 403  # not a session's token: HTTPS is required


def test_requests_in_progress_complete_before_the_stop(two_nodes: ClusterDeployment) -> None:
    phone = two_nodes.pair_phone("P", 1)
    asking = two_nodes.request(0, "POST", "/pairing")
    ending = two_nodes.request(0, "DELETE", f"/sessions/{phone.token}")
    two_nodes.sim.run_for(0.0005)  # received by the nodes, while Redis is further away
    two_nodes.stop(0)
    two_nodes.run(lambda: asking.is_closed and ending.is_closed)
    assert (asking.status, ending.status) == (200, 200)
    two_nodes.run(lambda: phone.closed, limit=1.0)
    late = two_nodes.new_phone("Q", 1, code=asking.answer.json["code"])
    two_nodes.run(lambda: late.is_authenticated)
    assert two_nodes.count_known_nodes(1) == 0


def test_a_stopping_node_answers_commands_that_phones_of_other_nodes_execute(two_nodes: ClusterDeployment) -> None:
    phone = two_nodes.pair_phone("P", 1)
    phone.delay = 1.0
    call = two_nodes.send_command(0, phone.token)
    two_nodes.run(lambda: bool(phone.performed))
    two_nodes.stop(0)
    asked = two_nodes.sim.now
    two_nodes.run(lambda: call.is_closed)
    assert call.status == 200
    assert two_nodes.sim.now - asked < phone.delay + 0.1
    two_nodes.run(lambda: not two_nodes.nodes[0].alive, limit=1.0)


def test_command_reaches_a_phone_on_any_node_and_is_listed_on_all(three_nodes: ClusterDeployment) -> None:
    phone = three_nodes.pair_phone("P", 1, at=0)
    for node in range(3):
        call = answered_command(three_nodes, node, phone.token)
        assert (call.answer.status, call.answer.json["by"]) == (200, "P"), node
    assert len(phone.performed) == 3
    for node in range(3):
        rows = three_nodes.request_and_wait(node, "GET", "/bridge/activity").answer.json["activity"]
        assert [row["decision"] for row in rows] == ["executed"] * 3
        assert [row["sent_at"] for row in rows] == sorted((row["sent_at"] for row in rows), reverse=True)


def test_five_failures_anywhere_block_an_address_everywhere(two_nodes: ClusterDeployment) -> None:
    for n in range(5):
        refused_phone(two_nodes, f"guess-{n}", n % 2, token="11111111-1111-4111-8111-111111111111")
    two_nodes.sim.run_for(0.1)
    for node in range(2):
        assert two_nodes.request_and_wait(node, "GET", "/health").status == 200
        late = refused_phone(two_nodes, "late", node, token="11111111-1111-4111-8111-111111111111")
        assert late.talker is not None
        assert late.talker.status == 429


def test_online_state_is_the_same_on_all_nodes(three_nodes: ClusterDeployment) -> None:
    phones = [three_nodes.pair_phone(name, node) for node, name in enumerate("PQR")]
    phones[2].disconnect()
    three_nodes.sim.run_for(1.0)
    for node in range(3):
        rows = three_nodes.request_and_wait(node, "GET", "/sessions", token=phones[0].token).answer.json["sessions"]
        assert sorted((row["device_name"], row["online"]) for row in rows) == [("P", True), ("Q", True), ("R", False)]
    three_nodes.kill_redis()
    three_nodes.sim.run_for(1.0)
    rows = three_nodes.request_and_wait(0, "GET", "/sessions", token=phones[0].token).answer.json["sessions"]
    assert sorted((row["device_name"], row["online"]) for row in rows) == [("P", True), ("Q", False), ("R", False)]


def test_phones_of_other_nodes_are_listed(harness: CoordinatorHarness) -> None:
    harness.came(
        status={"device": {"x": 1}}, age=7.5, form_factor="phone", surface="android", session_prefix="12345678"
    )
    (device,) = harness.devices()["devices"]
    assert (device["device_id"], device["last_seen_seconds_ago"], device["aliases"]) == ("X", 7, ["X", "x", "phone"])
    assert device["session_token_prefix"] == "12345678"
    harness.deliver("said", {"socket": 4, "status": {"device": {"x": 2}}})
    (device,) = harness.devices()["devices"]
    assert (device["device"]["x"], device["last_seen_seconds_ago"]) == (2, 0)
    harness.deliver("said", {"socket": 5, "status": {}})
    harness.deliver("left", {"socket": 5})
    harness.deliver("left", {})
    harness.deliver("unheard of", {"socket": 4})
    assert harness.devices()["count"] == 1
    harness.deliver("left", {"socket": 4})
    assert harness.devices()["count"] == 0
    assert harness.new_messages() == []  # no message about a phone of another node
    harness.came("", 5)
    harness.came(socket="x")  # type: ignore[arg-type]  # invalid input
    assert harness.devices()["count"] == 0
    harness = CoordinatorHarness()
    harness.came("socket-4")
    assert harness.devices()["devices"][0]["device_id"] == "b-socket-4"
    harness.deliver("bye")
    harness.told = -2  # it sends -1 for a message that it completes
    harness.came()
    assert harness.devices()["count"] == 0


def test_a_new_name_of_a_phone_reaches_the_other_nodes(harness: CoordinatorHarness) -> None:
    harness.came("X", 4, name="Pixel", status={"device": {"x": 1}}, age=7.5)
    outcomes: list[CommandOutcome] = []
    begin(harness, harness.relay.phone_for("Pixel")[0].socket, outcomes)
    harness.came("Y", 5, since=1.5)
    harness.came("X", 4, since=2.0, name="Kitchen", status={"device": {"x": 1}}, age=8.5)
    device, _ = harness.devices()["devices"]
    assert (device["device_name"], device["last_seen_seconds_ago"]) == ("Kitchen", 8)
    assert harness.devices()["most_recent_device_id"] == "X"
    assert harness.relay.phone_for("kitchen")[0].device_id == "X"
    assert not outcomes  # the phone is still connected there


def test_a_renamed_phone_has_its_new_name_on_all_nodes(three_nodes: ClusterDeployment) -> None:
    phone = three_nodes.pair_phone("P", 1)
    patch = three_nodes.request_and_wait(2, "PATCH", f"/sessions/{phone.token}", body={"device_name": "Kitchen"})
    assert patch.status == 200
    three_nodes.sim.run_for(0.1)
    for node in range(3):
        rows = three_nodes.request_and_wait(node, "GET", "/bridge/devices").answer.json["devices"]
        assert [row["device_name"] for row in rows] == ["Kitchen"], node


def test_changes_of_phones_at_other_nodes_are_notified(harness: CoordinatorHarness) -> None:
    notified: list[str] = []
    for what in (DEVICES, NOTIFICATIONS):
        harness.relay.changes.subscribe(what, partial(notified.append, what))
    messages: list[tuple[str, dict[str, object], str]] = [
        ("came", {"socket": 4, "device_id": "X", "since": 1.0}, DEVICES),
        ("said", {"socket": 4, "status": {}}, DEVICES),
        ("active", {"device_id": "X", "since": 2.0}, DEVICES),
        ("left", {"socket": 4}, DEVICES),
        ("notified", {"source": "1", "posted": {"title": "theirs"}}, NOTIFICATIONS),
    ]
    for word, body, what in messages:
        notified.clear()
        harness.deliver(word, body)
        assert set(notified) == {what}, word


def test_notifications_of_all_nodes_are_shared(harness: CoordinatorHarness) -> None:
    harness.deliver("notified", {"source": "1", "posted": {"title": "theirs"}})
    harness.deliver("notified", {"source": "1", "posted": {"title": "x" * 20_000}})  # no node stores this
    harness.book.within(lambda: harness.coordinator.notification_received("2", {"title": "ours"}))
    assert harness.new_messages() == [("notified", {"source": "2", "posted": {"title": "ours"}})]
    assert harness.relay.notifications.recent(5) == [{"title": "theirs"}]


def test_later_connection_of_a_phone_wins(harness: CoordinatorHarness) -> None:
    harness.came("X", 4, since=5.0)
    harness.came("X", 3, since=4.0)
    outcomes: list[CommandOutcome] = []
    begin(harness, harness.relay.phones.choose("X").socket, outcomes)
    harness.came("X", 4, since=5.0)  # sent twice
    assert not outcomes
    harness.came("X", 9, since=6.0)
    assert [outcome.status for outcome in outcomes] == [502]
    assert harness.devices()["count"] == 1
    harness.deliver("left", {"socket": 4})
    assert harness.devices()["count"] == 1
    harness.came("X", 11, since=6.0)  # of the same instant: the phone that arrived last
    harness.deliver("left", {"socket": 9})
    assert harness.devices()["count"] == 1


def begin(harness: CoordinatorHarness, socket: int, outcomes: list[CommandOutcome], request_id: str = "r-1") -> None:
    """Register a pending bridge command at a node; its outcome will be appended to `outcomes`."""
    now = harness.book.engine.now
    harness.relay.bridge.begin(
        request_id, socket=socket, method="GET", path="/ping", params={}, body={}, now=now, on_outcome=outcomes.append
    )


def test_command_for_a_phone_of_another_node(harness: CoordinatorHarness) -> None:
    harness.came()
    phone, line = harness.relay.phone_for("X")
    outcomes: list[CommandOutcome] = []
    begin(harness, phone.socket, outcomes)
    harness.book.within(lambda: line.send_text("text"))
    assert harness.new_messages() == [("command", {"socket": 4, "text": "text"})]
    answer = {"request_id": "r-1", "status": 200, "result": {"a": 1}}
    harness.deliver("answered", {"socket": 5, "payload": answer}, to_me=True)
    assert not outcomes
    harness.deliver("answered", {"socket": 4, "payload": answer}, to_me=True)
    harness.deliver("answered", {"socket": 4, "payload": answer}, to_me=True)
    assert outcomes == [CommandOutcome(200, {"a": 1})]


def test_phones_of_a_lost_node_are_removed(harness: CoordinatorHarness) -> None:
    harness.came()
    harness.deliver("hello", node="c")
    harness.deliver("came", {"socket": 4, "device_id": "Z", "since": 2.0}, node="c")
    harness.new_messages()
    outcomes: list[CommandOutcome] = []
    begin(harness, harness.relay.phones.choose("X").socket, outcomes)
    harness.deliver("bye")
    assert [outcome.status for outcome in outcomes] == [502]
    assert [device["device_id"] for device in harness.devices()["devices"]] == ["Z"]
    with pytest.raises(Refused) as refused:
        harness.relay.phone_for("X")
    assert refused.value.code == "unknown_device"
    harness.book.close()
    with pytest.raises(Refused) as refused:
        harness.relay.phone_for(None)
    assert (refused.value.status, refused.value.code) == (503, "cluster_unavailable")


def test_command_from_another_node_for_a_local_phone(harness: CoordinatorHarness) -> None:
    ours, theirs = PhoneRouteStub(6), PhoneRouteStub(8)
    harness.relay.clients = {6: cast("Any", ours), 8: cast("Any", theirs)}
    text = '{"channel":"bridge","type":"bridge.command","id":"r-9","payload":{"request_id":"r-9"}}'
    harness.deliver("command", {"socket": 6, "text": text}, to_me=True)
    assert ours.sent == [text]
    payload = {"request_id": "r-9", "status": 200}
    for client, said in ((theirs, 0), (ours, 1), (ours, 0)):
        harness.book.within(partial(harness.coordinator.forward_answer, client.number, payload))
        assert harness.new_messages() == [("answered", {"socket": 6, "payload": payload})] * said
    harness.book.within(lambda: harness.coordinator.forward_answer(ours.number, {}))
    theirs.may = False
    for socket, written in ((7, text), (None, text), (8, text), (6, "no envelope")):
        harness.deliver("command", {"socket": socket, "text": written}, to_me=True)
        assert harness.new_messages() == [("left", {"socket": socket})]


def test_node_state_replaces_earlier_knowledge(harness: CoordinatorHarness) -> None:
    record = harness.record()
    harness.deliver("saved", record)
    harness.came("X", 4, since=2.0)
    harness.came("Y", 5, since=3.0)
    harness.deliver(
        "state",
        {
            "phones": [{"socket": 9, "device_id": "Z", "since": 9.0}, {"socket": 5, "device_id": "Y", "since": 3.0}],
            "active": "Y",
            "active_since": 8.0,
            "ended": [record["token_hash"]],
        },
        to_me=True,
    )
    assert not harness.knows(record)
    assert harness.devices()["active_device_id"] == "Y"
    assert harness.devices()["most_recent_device_id"] == "Z"
    assert {device["device_id"] for device in harness.devices()["devices"]} == {"Y", "Z"}
    harness.deliver("active", {"device_id": "Z", "since": 7.0})  # sent earlier
    assert harness.devices()["active_device_id"] == "Y"
    for device, since in (("Z", 8.0), ("Y", 8.5)):  # at the same time, and later
        harness.deliver("active", {"device_id": device, "since": since})
        assert harness.devices()["active_device_id"] == device
    harness.deliver("left", {"socket": 9})
    assert harness.devices()["most_recent_device_id"] == "Y"
    harness.deliver("which", to_me=True)
    ((word, state),) = harness.new_messages()
    assert word == "state"
    assert state == {"phones": [], "active": "Y", "active_since": 8.5, "ended": [record["token_hash"]]}


def test_local_phone_replaces_a_remote_one(harness: CoordinatorHarness) -> None:
    harness.came("X", 4, since=1.0)
    line = PhoneRouteStub(6)
    harness.relay.clients = {6: cast("Any", line)}
    harness.connect(6, "X")
    came, active = harness.new_messages()
    assert (came[0], came[1]["socket"], came[1]["since"]) == ("came", 6, 1_800_000_000.0)
    assert active == ("active", {"device_id": "X", "since": 1_800_000_000.0})
    assert harness.relay.phone_for("X")[1] is line
    harness.relay.phones.status(6, {"device": {}}, harness.book.engine.now)
    harness.book.within(lambda: harness.coordinator.phone_status_changed(6))
    assert harness.new_messages() == [("said", {"socket": 6, "status": {"device": {}}})]
    session = harness.shared(harness.record())
    harness.book.within(lambda: harness.relay.phone_reported(6, session, {"device": {"x": 1}}))
    assert harness.new_messages() == [("said", {"socket": 6, "status": {"device": {"x": 1}}})]
    harness.came("Z", 5, since=2e9)
    harness.book.within(lambda: harness.relay.phones.select_active("Z"))
    harness.book.within(harness.coordinator.phone_selected)
    assert harness.new_messages() == [("active", {"device_id": "Z", "since": 1_800_000_000.0})]
    harness.connect(6, "X")  # a second report selects another active phone
    assert [word for word, _ in harness.new_messages()] == ["came"]
    assert harness.devices()["active_device_id"] == "Z"
    harness.book.within(lambda: harness.relay.remove_phone(6))
    assert harness.new_messages() == [("left", {"socket": 6})]
    phones = next(each for each in harness.coordinator.metrics() if each.name == "svc_cluster_node_phones")
    assert phones.values == (((harness.coordinator.node.id,), 0.0),)


def test_connected_phone_is_selected_unless_another_one_is(harness: CoordinatorHarness) -> None:
    harness.came("X", 4)
    harness.deliver("active", {"device_id": "X", "since": 1.0})
    harness.deliver("left", {"socket": 4})
    for socket, device in ((6, "Y"), (7, "Z")):
        harness.connect(socket, device)
        assert harness.devices()["active_device_id"] == "Y"
    harness.connect(8, "Z")
    harness.book.within(lambda: harness.relay.remove_phone(8))
    assert harness.devices()["most_recent_device_id"] == "Y"


def test_activity_of_a_silent_node_is_omitted(harness: CoordinatorHarness) -> None:
    begin(harness, 1, [])
    rows: list[Any] = []
    harness.run(harness.coordinator.activity(3), rows)
    ((word, body),) = harness.new_messages()
    assert (word, body["word"], body["body"]) == ("asks", "activity", {"limit": 3})
    harness.deliver(
        "says",
        {"ticket": body["ticket"], "body": {"records": [{"sent_at": at} for at in (5.0, 9e15, 4.0)]}},
        to_me=True,
    )
    assert [row["sent_at"] for row in rows[0]] == [9e15, harness.book.engine.now.wall * 1000, 5.0]
    harness.run(harness.coordinator.activity(3), rows)
    harness.deliver("bye")
    assert [row["method"] for row in rows[1]] == ["GET"]
    harness.deliver("asks", {"word": "activity", "body": {"limit": 1}, "ticket": 3}, to_me=True, node="c")
    harness.deliver("asks", {"word": "else", "body": {}, "ticket": 4}, to_me=True, node="c")
    answers = [body["body"] for word, body in harness.new_messages() if word == "says"]
    assert [len(found.get("records", ())) for found in answers] == [1, 0]


def test_ownership_query_returns_the_node_url(harness: CoordinatorHarness) -> None:
    harness.coordinator.relay.config = RelayConfig(home=HOME, cluster=WHERE, node_url="http://10.0.0.1:8767")
    entry = harness.relay.media.register("/tmp/a", content_type="text/plain", file_name="a", size=1)
    sought = [("media", entry.token), ("media", "A" * 22), ("mcp", "x"), ("voice", "x"), ("else", "x")]
    for ticket, (what, name) in enumerate(sought):
        harness.deliver("asks", {"word": "has", "body": {"what": what, "name": name}, "ticket": ticket}, to_me=True)
    answers = [body["body"] for word, body in harness.new_messages() if word == "says"]
    assert answers == [{"url": "http://10.0.0.1:8767"}, {}, {}, {}, {}]


def test_revocations_that_the_store_has_missed_are_in_the_state_of_a_started_node() -> None:
    book: RedisHarness[Relay] = RedisHarness(lambda engine: Relay(RelayConfig(home=HOME, cluster=WHERE)))
    relay = book.made
    book.within(lambda: relay.bind(book.engine))
    _, session = PairedSessionRegistry().create(book.engine.now, counting_entropy())
    relay.sessions.remember_revoked(session)
    book.spawn(relay.coordinator.start())
    assert isinstance(relay.coordinator, coordinator.ClusterCoordinator)
    assert relay.coordinator.export_state()["ended"] == [session.token_hash]


def test_start_waits_for_the_states_of_other_nodes_up_to_a_timeout() -> None:
    book: RedisHarness[Relay] = RedisHarness(lambda engine: Relay(RelayConfig(home=HOME, cluster=WHERE)))
    relay, started = book.made, list[object]()
    book.within(lambda: relay.bind(book.engine))
    book.within(lambda: book.engine.spawn(relay.coordinator.start(), on_done=started.append))
    book.give_secret()
    book.after(coordinator.START_TIMEOUT - 0.1)
    assert not started
    book.after(0.1)
    assert started == [None]
    for answers in (True, False):
        one = CoordinatorHarness(greeted=1)
        if answers:
            one.deliver("state", to_me=True)
            assert one.started == [None]
        one.book.after(coordinator.JOIN_TIMEOUT)  # of a node that hangs
        assert one.started == [None]
    caps = [Relay(RelayConfig(cluster=where)).sessions.cap for where in (RedisAddress("redis.example"), None)]
    assert caps == [MAX_CLUSTER_SESSIONS, MAX_SESSIONS]
