"""Relays of a cluster: pairing, commands, revocations and phones, in simulated clusters or with a scripted Redis."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import pytest

from fuzz.cluster.deployment import ClusterDeployment
from fuzz.cluster.invariants import SOON
from svc_proto.basics.errors import Refused
from svc_proto.machines.bridge_commands import CommandOutcome
from svc_proto.machines.paired_session_registry import MAX_CLUSTER_SESSIONS, MAX_SESSIONS
from svc_proto.relay.cluster import coordinator
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.settings import RedisAddress
from tests.cluster.harness import WHERE, RedisHarness
from tests.relay.coordinator_harness import CoordinatorHarness, PhoneRouteStub
from tests.support.core_harness import HOME


def test_code_pairs_on_another_node_once(scene: ClusterDeployment) -> None:
    code = scene.create_pairing_code(0)
    phone = scene.new_phone("P", 1, code=code)
    scene.run(lambda: bool(phone.token or phone.refused))
    assert phone.token
    for node in (0, 1):
        late = scene.new_phone(f"late-{node}", node, code=code)
        scene.run(lambda late=late: bool(late.token or late.refused))  # type: ignore[misc]
        assert "pairing" in late.refused
        assert "invalid" in late.refused


def test_command_reaches_a_phone_on_any_node(trio: ClusterDeployment) -> None:
    phone = trio.pair_phone("P", 1, at=0)
    for node in range(3):
        call = trio.send_command(node, phone.token)
        trio.run(lambda call=call: call.is_closed)  # type: ignore[misc]
        assert call.answer.status == 200, (node, call.answer)
        assert call.answer.json["by"] == "P"
    assert len(phone.performed) == 3


def test_revoked_session_ends_on_all_nodes(trio: ClusterDeployment) -> None:
    phone = trio.pair_phone("P", 1)
    deletion = trio.revoke(2, phone.token)
    trio.run(lambda: deletion.is_closed)
    assert deletion.answer.status == 200, deletion.answer
    gone = trio.sim.now
    trio.run(lambda: phone.closed, limit=1.0)
    assert trio.sim.now - gone < 1.0
    for node in range(3):
        assert trio.request_and_wait(node, "GET", "/ping", token=phone.token).status == 401
    assert not trio.hosts[0].store.sessions


def check_return(scene: ClusterDeployment, token: str) -> None:
    """Connect a phone with this session token to node 2, and check that it answers a command sent at node 0."""
    back = scene.new_phone("P", 2, token=token)
    scene.run(lambda: back.is_authenticated)
    again = scene.send_command(0, token)
    scene.run(lambda: again.is_closed)
    assert again.answer.status == 200


def test_command_to_a_lost_node_fails_at_once(trio: ClusterDeployment) -> None:
    phone = trio.pair_phone("P", 1)
    phone.mute = True
    call = trio.send_command(0, phone.token)
    trio.run(lambda: len(phone.performed) == 1)
    gone = trio.sim.now
    trio.kill(1)
    trio.run(lambda: call.is_closed)
    assert (call.answer.status, call.answer.json["code"]) == (502, "phone_disconnected")
    assert trio.sim.now - gone < 0.6
    check_return(trio, phone.token)


def test_partitioned_node_does_not_restore_a_revoked_session(trio: ClusterDeployment) -> None:
    phone = trio.pair_phone("P", 1)
    trio.sim.run_for(0.1)
    trio.partition_from_redis(2)
    trio.sim.run_for(3.0)
    assert trio.request_and_wait(0, "DELETE", f"/sessions/{phone.token}").status == 200
    patch = trio.request_and_wait(2, "PATCH", f"/sessions/{phone.token}", body={"ttl_seconds": 60})
    assert patch.status == 404, patch.answer
    assert not trio.store.sessions
    assert trio.request_and_wait(2, "GET", "/sessions", token=phone.token).status == 401


def test_revocation_missed_by_the_store_survives_restarts(trio: ClusterDeployment) -> None:
    phone = trio.pair_phone("P", 0)
    trio.partition_from_store(1)
    assert trio.request_and_wait(1, "DELETE", f"/sessions/{phone.token}").status == 500  # the relay retries
    for n in range(3):
        trio.kill(n)
    trio.heal()
    for n in (0, 2):
        trio.restart(n)
    trio.run(lambda: trio.count_known_nodes(0) == trio.count_known_nodes(2) == 1)
    assert trio.request_and_wait(0, "GET", "/sessions", token=phone.token).status == 200  # read from the store
    trio.hosts[1].store.seconds = 2.0  # so that erasing takes a while
    trio.restart(1)
    trio.run(lambda: trio.count_known_nodes(0) == trio.count_known_nodes(2) == 2)
    trio.sim.run_for(SOON)
    assert phone.token
    for n in (0, 2):
        assert trio.request_and_wait(n, "GET", "/sessions", token=phone.token).status == 401


def test_partitioned_node_applies_a_withdrawn_grant_after_healing(trio: ClusterDeployment) -> None:
    phone = trio.pair_phone("P", 1)
    trio.sim.run_for(0.1)
    trio.partition_from_redis(0)
    trio.sim.run_for(5.0)
    patch = trio.request_and_wait(2, "PATCH", f"/sessions/{phone.token}", body={"grants": {"bridge": False}})
    assert patch.status == 200, patch.answer
    assert trio.request_and_wait(1, "GET", "/ping", token=phone.token).status == 403
    assert trio.request_and_wait(0, "GET", "/ping", token=phone.token).status == 503  # not received there
    trio.heal()
    trio.sim.run_for(1.0)
    assert trio.request_and_wait(0, "GET", "/ping", token=phone.token).status == 403


def test_phone_without_bridge_grant_is_removed_on_all_nodes(trio: ClusterDeployment) -> None:
    phone = trio.pair_phone("P", 1)
    trio.sim.run_for(0.1)
    assert (
        trio.request_and_wait(2, "PATCH", f"/sessions/{phone.token}", body={"grants": {"bridge": False}}).status == 200
    )
    trio.sim.run_for(0.1)
    for node in (0, 2, 1):
        assert trio.request_and_wait(node, "GET", "/bridge/devices").answer.json["count"] == 0, node


def test_without_redis_nodes_serve_local_phones_only(scene: ClusterDeployment) -> None:
    phone, other = scene.pair_phone("P", 0), scene.pair_phone("Q", 1)
    code = scene.create_pairing_code(0)
    scene.kill_redis()
    scene.sim.run_for(1.0)
    mine = scene.request_and_wait(0, "GET", "/ping?device=device-P", token=other.token)
    assert mine.status == 200
    for node, method, path, token in (
        (0, "GET", "/ping?device=device-Q", phone.token),
        (0, "POST", "/pairing", ""),
        (1, "DELETE", f"/sessions/{other.token}", ""),
    ):
        answer = scene.request_and_wait(node, method, path, token=token).answer
        assert (answer.status, answer.json["code"]) == (503, "cluster_unavailable"), path
    late = scene.new_phone("R", 1, code=code)
    scene.run(lambda: bool(late.refused))
    assert "pairing" not in late.refused
    scene.restart_redis()
    scene.sim.run_for(1.0)
    assert scene.request_and_wait(0, "GET", "/ping", token=other.token).status == 401  # received
    assert scene.pair_phone("S", 0, at=1).is_authenticated


def test_unknown_token_is_looked_up_in_the_store(scene: ClusterDeployment) -> None:
    scene.partition_from_redis(0)
    phone = scene.pair_phone("P", 1)
    again = scene.new_phone("P", 0, token=phone.token)
    scene.run(lambda: again.is_authenticated)
    scene.partition_from_redis(0)
    other = scene.pair_phone("Q", 1)
    assert scene.request_and_wait(0, "GET", "/sessions", token=other.token).status == 200
    hasty = scene.new_phone("R", 0, token=scene.pair_phone("R", 1).token)
    assert hasty.talker is not None
    scene.run(lambda: bool(hasty.talker and hasty.talker.accepted))
    scene.kill(0)  # during the lookup
    scene.run(lambda: hasty.closed)


def test_unknown_token_opens_voice_routes_after_lookup(scene: ClusterDeployment) -> None:
    scene.partition_from_redis(0)
    phone = scene.pair_phone("P", 1)
    answer = scene.request_and_wait(0, "GET", "/voice/config", token=phone.token).answer
    assert answer.status == 200, answer
    assert (
        scene.request_and_wait(0, "GET", "/voice/config", token="A" * 43).status == 403
    )  # not a session's token: HTTPS is required


def test_requests_in_progress_complete_before_the_stop(scene: ClusterDeployment) -> None:
    phone = scene.pair_phone("P", 1)
    asking = scene.request(0, "POST", "/pairing")
    ending = scene.request(0, "DELETE", f"/sessions/{phone.token}")
    scene.sim.run_for(0.0005)  # received by the nodes, while Redis is further away
    scene.stop(0)
    scene.run(lambda: asking.is_closed and ending.is_closed)
    assert (asking.status, ending.status) == (200, 200)
    scene.run(lambda: phone.closed, limit=1.0)
    late = scene.new_phone("Q", 1, code=asking.answer.json["code"])
    scene.run(lambda: late.is_authenticated)
    assert scene.count_known_nodes(1) == 0


def test_a_stopping_node_answers_commands_that_phones_of_other_nodes_execute(scene: ClusterDeployment) -> None:
    phone = scene.pair_phone("P", 1)
    phone.delay = 1.0
    call = scene.send_command(0, phone.token)
    scene.run(lambda: bool(phone.performed))
    scene.stop(0)
    asked = scene.sim.now
    scene.run(lambda: call.is_closed)
    assert call.status == 200
    assert scene.sim.now - asked < phone.delay + 0.1
    scene.run(lambda: not scene.nodes[0].alive, limit=1.0)


def test_activity_merges_the_commands_of_all_nodes(trio: ClusterDeployment) -> None:
    phone = trio.pair_phone("P", 1)
    for node in range(3):
        call = trio.send_command(node, phone.token)
        trio.run(lambda call=call: call.is_closed)  # type: ignore[misc]
    for node in range(3):
        rows = trio.request_and_wait(node, "GET", "/bridge/activity").answer.json["activity"]
        assert [row["decision"] for row in rows] == ["executed"] * 3
        assert [row["sent_at"] for row in rows] == sorted((row["sent_at"] for row in rows), reverse=True)


def test_five_failures_anywhere_block_an_address_everywhere(scene: ClusterDeployment) -> None:
    for n in range(5):
        phone = scene.new_phone(f"guess-{n}", n % 2, token="11111111-1111-4111-8111-111111111111")
        scene.run(lambda phone=phone: bool(phone.refused))  # type: ignore[misc]
    scene.sim.run_for(0.1)
    for node in range(2):
        assert scene.request_and_wait(node, "GET", "/health").status == 200
        late = scene.new_phone("late", node, token="11111111-1111-4111-8111-111111111111")
        scene.run(lambda late=late: late.closed or bool(late.refused))  # type: ignore[misc]
        assert late.talker is not None
        assert late.talker.status == 429


def test_online_state_is_the_same_on_all_nodes(trio: ClusterDeployment) -> None:
    phones = [trio.pair_phone(name, node) for node, name in enumerate("PQR")]
    phones[2].disconnect()
    trio.sim.run_for(1.0)
    for node in range(3):
        rows = trio.request_and_wait(node, "GET", "/sessions", token=phones[0].token).answer.json["sessions"]
        assert sorted((row["device_name"], row["online"]) for row in rows) == [("P", True), ("Q", True), ("R", False)]
    trio.kill_redis()
    trio.sim.run_for(1.0)
    rows = trio.request_and_wait(0, "GET", "/sessions", token=phones[0].token).answer.json["sessions"]
    assert sorted((row["device_name"], row["online"]) for row in rows) == [("P", True), ("Q", False), ("R", False)]


def test_phones_of_other_nodes_are_listed(one: CoordinatorHarness) -> None:
    one.came(status={"device": {"x": 1}}, age=7.5, form_factor="phone", surface="android", session_prefix="12345678")
    (device,) = one.devices()["devices"]
    assert (device["device_id"], device["last_seen_seconds_ago"], device["aliases"]) == ("X", 7, ["X", "x", "phone"])
    assert device["session_token_prefix"] == "12345678"
    one.deliver("said", {"socket": 4, "status": {"device": {"x": 2}}})
    (device,) = one.devices()["devices"]
    assert (device["device"]["x"], device["last_seen_seconds_ago"]) == (2, 0)
    one.deliver("said", {"socket": 5, "status": {}})
    one.deliver("left", {"socket": 5})
    one.deliver("left", {})
    one.deliver("unheard of", {"socket": 4})
    assert one.devices()["count"] == 1
    one.deliver("left", {"socket": 4})
    assert one.devices()["count"] == 0
    assert one.new_messages() == []  # no message about a phone of another node
    one.came("", 5)
    one.came(socket="x")  # type: ignore[arg-type]  # invalid input
    assert one.devices()["count"] == 0


def test_notifications_of_all_nodes_are_shared(one: CoordinatorHarness) -> None:
    one.deliver("notified", {"source": "1", "posted": {"title": "theirs"}})
    one.deliver("notified", {"source": "1", "posted": {"title": "x" * 20_000}})  # no node stores this
    one.book.within(lambda: one.coordinator.notification_received("2", {"title": "ours"}))
    assert one.new_messages() == [("notified", {"source": "2", "posted": {"title": "ours"}})]
    assert one.relay.notifications.recent(5) == [{"title": "theirs"}]


def test_phone_without_device_id_is_prefixed_with_its_node(one: CoordinatorHarness) -> None:
    one.came("socket-4")
    assert one.devices()["devices"][0]["device_id"] == "b-socket-4"


def test_phone_of_a_departed_node_is_ignored(one: CoordinatorHarness) -> None:
    one.deliver("bye")
    one.told = -2  # it sends -1 for a message that it completes
    one.came()
    assert one.devices()["count"] == 0


def test_later_connection_of_a_phone_wins(one: CoordinatorHarness) -> None:
    one.came("X", 4, since=5.0)
    one.came("X", 3, since=4.0)
    outcomes: list[CommandOutcome] = []
    begin(one, one.relay.phones.choose("X").socket, outcomes)
    one.came("X", 4, since=5.0)  # sent twice
    assert not outcomes
    one.came("X", 9, since=6.0)
    assert [outcome.status for outcome in outcomes] == [502]
    assert one.devices()["count"] == 1
    one.deliver("left", {"socket": 4})
    assert one.devices()["count"] == 1
    one.came("X", 11, since=6.0)  # of the same instant: the phone that arrived last
    one.deliver("left", {"socket": 9})
    assert one.devices()["count"] == 1


def begin(one: CoordinatorHarness, socket: int, outcomes: list[CommandOutcome], request_id: str = "r-1") -> None:
    """Register a pending bridge command at a node; its outcome will be appended to `outcomes`."""
    now = one.book.engine.now
    one.relay.bridge.begin(
        request_id, socket=socket, method="GET", path="/ping", params={}, body={}, now=now, on_outcome=outcomes.append
    )


def test_command_for_a_phone_of_another_node(one: CoordinatorHarness) -> None:
    one.came()
    phone, line = one.relay.phone_for("X")
    outcomes: list[CommandOutcome] = []
    begin(one, phone.socket, outcomes)
    one.book.within(lambda: line.send_text("text"))
    assert one.new_messages() == [("command", {"socket": 4, "text": "text"})]
    answer = {"request_id": "r-1", "status": 200, "result": {"a": 1}}
    one.deliver("answered", {"socket": 5, "payload": answer}, to_me=True)
    assert not outcomes
    one.deliver("answered", {"socket": 4, "payload": answer}, to_me=True)
    one.deliver("answered", {"socket": 4, "payload": answer}, to_me=True)
    assert outcomes == [CommandOutcome(200, {"a": 1})]


def test_phones_of_a_lost_node_are_removed(one: CoordinatorHarness) -> None:
    one.came()
    one.deliver("hello", node="c")
    one.deliver("came", {"socket": 4, "device_id": "Z", "since": 2.0}, node="c")
    one.new_messages()
    outcomes: list[CommandOutcome] = []
    begin(one, one.relay.phones.choose("X").socket, outcomes)
    one.deliver("bye")
    assert [outcome.status for outcome in outcomes] == [502]
    assert [device["device_id"] for device in one.devices()["devices"]] == ["Z"]
    with pytest.raises(Refused) as refused:
        one.relay.phone_for("X")
    assert refused.value.code == "unknown_device"
    one.book.close()
    with pytest.raises(Refused) as refused:
        one.relay.phone_for(None)
    assert (refused.value.status, refused.value.code) == (503, "cluster_unavailable")


def test_command_from_another_node_for_a_local_phone(one: CoordinatorHarness) -> None:
    ours, theirs = PhoneRouteStub(6), PhoneRouteStub(8)
    one.relay.clients = {6: cast("Any", ours), 8: cast("Any", theirs)}
    text = '{"channel":"bridge","type":"bridge.command","id":"r-9","payload":{"request_id":"r-9"}}'
    one.deliver("command", {"socket": 6, "text": text}, to_me=True)
    assert ours.sent == [text]
    payload = {"request_id": "r-9", "status": 200}
    for client, said in ((theirs, 0), (ours, 1), (ours, 0)):
        one.book.within(partial(one.coordinator.forward_answer, client.number, payload))
        assert one.new_messages() == [("answered", {"socket": 6, "payload": payload})] * said
    one.book.within(lambda: one.coordinator.forward_answer(ours.number, {}))
    theirs.may = False
    for socket, written in ((7, text), (None, text), (8, text), (6, "no envelope")):
        one.deliver("command", {"socket": socket, "text": written}, to_me=True)
        assert one.new_messages() == [("left", {"socket": socket})]


def test_node_state_replaces_earlier_knowledge(one: CoordinatorHarness) -> None:
    record = one.record()
    one.deliver("saved", record)
    one.came("X", 4, since=2.0)
    one.came("Y", 5, since=3.0)
    one.deliver(
        "state",
        {
            "phones": [{"socket": 9, "device_id": "Z", "since": 9.0}, {"socket": 5, "device_id": "Y", "since": 3.0}],
            "active": "Y",
            "active_since": 8.0,
            "ended": [record["token_hash"]],
        },
        to_me=True,
    )
    assert not one.knows(record)
    assert one.devices()["active_device_id"] == "Y"
    assert one.devices()["most_recent_device_id"] == "Z"
    assert {device["device_id"] for device in one.devices()["devices"]} == {"Y", "Z"}
    one.deliver("active", {"device_id": "Z", "since": 7.0})  # sent earlier
    assert one.devices()["active_device_id"] == "Y"
    for device, since in (("Z", 8.25), ("Y", 8.5)):  # and later
        one.deliver("active", {"device_id": device, "since": since})
        assert one.devices()["active_device_id"] == device
    one.deliver("left", {"socket": 9})
    assert one.devices()["most_recent_device_id"] == "Y"
    one.deliver("which", to_me=True)
    ((word, state),) = one.new_messages()
    assert word == "state"
    assert state == {"phones": [], "active": "Y", "active_since": 8.5, "ended": [record["token_hash"]]}


def test_local_phone_replaces_a_remote_one(one: CoordinatorHarness) -> None:
    one.came("X", 4, since=1.0)
    line = PhoneRouteStub(6)
    one.relay.clients = {6: cast("Any", line)}

    def come() -> None:
        replaced = one.relay.register_phone(
            6, device_id="X", name="X", surface="android", form_factor="phone", session_prefix=None
        )
        one.coordinator.phone_connected(6, replaced)

    one.book.within(come)
    came, active = one.new_messages()
    assert (came[0], came[1]["socket"], came[1]["since"]) == ("came", 6, 1_800_000_000.0)
    assert active == ("active", {"device_id": "X", "since": 1_800_000_000.0})
    assert one.relay.phone_for("X")[1] is line
    one.relay.phones.status(6, {"device": {}}, one.book.engine.now)
    one.book.within(lambda: one.coordinator.phone_status_changed(6))
    assert one.new_messages() == [("said", {"socket": 6, "status": {"device": {}}})]
    one.came("Z", 5, since=2e9)
    one.book.within(lambda: one.relay.phones.select_active("Z"))
    one.book.within(one.coordinator.phone_selected)
    assert one.new_messages() == [("active", {"device_id": "Z", "since": 1_800_000_000.0})]
    one.book.within(come)  # a second report selects another active phone
    assert [word for word, _ in one.new_messages()] == ["came"]
    assert one.devices()["active_device_id"] == "Z"
    one.book.within(lambda: one.relay.remove_phone(6))
    assert one.new_messages() == [("left", {"socket": 6})]
    phones = next(each for each in one.coordinator.metrics() if each.name == "svc_cluster_node_phones")
    assert phones.values == (((one.coordinator.node.id,), 0.0),)


def test_activity_of_a_silent_node_is_omitted(one: CoordinatorHarness) -> None:
    begin(one, 1, [])
    rows: list[Any] = []
    one.run(one.coordinator.activity(3), rows)
    ((word, body),) = one.new_messages()
    assert (word, body["word"], body["body"]) == ("asks", "activity", {"limit": 3})
    one.deliver(
        "says", {"ticket": body["ticket"], "body": {"records": [{"sent_at": 5.0}, {"sent_at": 9e15}]}}, to_me=True
    )
    assert [row["sent_at"] for row in rows[0]] == [9e15, one.book.engine.now.wall * 1000, 5.0]
    one.run(one.coordinator.activity(3), rows)
    one.deliver("bye")
    assert [row["method"] for row in rows[1]] == ["GET"]
    one.deliver("asks", {"word": "activity", "body": {"limit": 1}, "ticket": 3}, to_me=True, node="c")
    one.deliver("asks", {"word": "else", "body": {}, "ticket": 4}, to_me=True, node="c")
    answers = [body["body"] for word, body in one.new_messages() if word == "says"]
    assert [len(found.get("records", ())) for found in answers] == [1, 0]


def test_ownership_query_returns_the_node_url(one: CoordinatorHarness) -> None:
    one.coordinator.relay.config = RelayConfig(home=HOME, cluster=WHERE, node_url="http://10.0.0.1:8767")
    entry = one.relay.media.register("/tmp/a", content_type="text/plain", file_name="a", size=1)
    sought = [("media", entry.token), ("media", "A" * 22), ("mcp", "x"), ("voice", "x"), ("else", "x")]
    for ticket, (what, name) in enumerate(sought):
        one.deliver("asks", {"word": "has", "body": {"what": what, "name": name}, "ticket": ticket}, to_me=True)
    answers = [body["body"] for word, body in one.new_messages() if word == "says"]
    assert answers == [{"url": "http://10.0.0.1:8767"}, {}, {}, {}, {}]


def test_start_does_not_wait_longer_than_the_timeout() -> None:
    book: RedisHarness[Relay] = RedisHarness(lambda engine: Relay(RelayConfig(home=HOME, cluster=WHERE)))
    relay, started = book.made, list[object]()
    book.within(lambda: relay.bind(book.engine))
    book.within(lambda: book.engine.spawn(relay.coordinator.start(), on_done=started.append))
    book.give_secret()
    book.after(coordinator.START_TIMEOUT - 0.1)
    assert not started
    book.after(0.1)
    assert started == [None]


def test_start_waits_for_the_states_of_the_other_nodes() -> None:
    for answers in (True, False):
        one = CoordinatorHarness(greeted=1)
        if answers:
            one.deliver("state", to_me=True)
            assert one.started == [None]
        one.book.after(coordinator.JOIN_TIMEOUT)  # of a node that hangs
        assert one.started == [None]


def test_each_node_holds_all_sessions_of_the_service() -> None:
    caps = [Relay(RelayConfig(cluster=where)).sessions.cap for where in (RedisAddress("redis.example"), None)]
    assert caps == [MAX_CLUSTER_SESSIONS, MAX_SESSIONS]
