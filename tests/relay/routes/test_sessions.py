"""Paired sessions over HTTP (wire core 4.2 to 4.4)."""

from typing import Any

import pytest

from svc_proto.cli.operator_requests import revoked_changes
from svc_proto.commands import Level
from svc_proto.facts import Closed
from svc_proto.machines.agent_changes import FILE, AgentChange, write_changes
from svc_proto.machines.paired_session_registry import session_record
from svc_proto.relay.routes import sessions as routes
from svc_proto.relay_config import RelayConfig, SessionPolicy
from svc_proto.schema.json_object import JsonObject
from svc_proto.store_requests import DeleteSession, SaveSession
from tests.relay.harness import HOME, REMOTE, RelayHarness, paired_relay

DAY = 86_400


def test_records_are_online_while_their_sockets_are_open(book: RelayHarness) -> None:
    paired = book.pair(operator={"ttl_seconds": 0}, device_name="Kitchen tablet", device_id="d-1")
    book.after(5)
    (session,) = book.relay.sessions.active(book.now)
    answer = book.request("GET", "/sessions", token=paired.token, peer=REMOTE)
    assert answer.json == {"sessions": [{**session_record(session, True), "online": True}]}  # tests/machines has it
    (record,) = answer.json["sessions"]
    assert (record["device_name"], record["device_id"], record["transport_hint"]) == ("Kitchen tablet", "d-1", "ws")
    assert (record["last_seen"], record["expires_at"], record["grants"]) == (book.now.wall, None, paired.ok["grants"])
    book = RelayHarness()
    one, two = book.pair(), book.pair()
    start = book.now.wall

    def seen() -> dict[str, tuple[bool, float]]:
        return {each["token_prefix"]: (each["online"], each["last_seen"] - start) for each in book.sessions()}

    book.after(60)
    one.phone.send("chat", "hello")
    book.after(60)
    two.phone.binary(b"x")
    assert seen() == {two.prefix: (True, 120.0), one.prefix: (True, 60.0)}
    book.after(60)
    one.phone.close()
    book.after(60)
    assert seen() == {one.prefix: (False, 180.0), two.prefix: (True, 120.0)}
    book.after(60)
    book.call("GET", "/ping", token=one.token)  # a request counts, too
    assert seen()[one.prefix] == (False, 300.0)


def test_sessions_are_listed_in_pages_and_for_their_caller(book: RelayHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = book.pair(), book.pair()
    book.after(1)
    sessions = book.request("GET", "/sessions", token=one.token).json["sessions"]
    assert [(each["token_prefix"], each["is_current"]) for each in sessions] == [
        (one.prefix, True),
        (two.prefix, False),
    ]
    assert [each["is_current"] for each in book.sessions()] == [False, False]
    book = RelayHarness()
    paired = [book.pair() for _ in range(3)]
    prefixes = sorted(each.prefix for each in paired)
    first = book.request("GET", "/sessions?limit=2").json
    assert [each["token_prefix"] for each in first["sessions"]] == prefixes[:2]
    last = book.request("GET", f"/sessions?limit=2&cursor={first['next_cursor']}", token=paired[0].token).json
    assert [each["token_prefix"] for each in last["sessions"]] == prefixes[2:]
    assert last.keys() == {"sessions"}
    assert [each["token_prefix"] for each in book.request("GET", "/sessions?cursor=").json["sessions"]] == prefixes
    monkeypatch.setattr(routes, "MAX_LISTED", 3)
    book.after(1)
    latest, *_ = book.request("GET", "/sessions", token=paired[2].token).json["sessions"]
    assert latest["token_prefix"] == paired[2].prefix
    monkeypatch.setattr(routes, "MAX_LISTED", 2)
    assert [each["token_prefix"] for each in book.request("GET", "/sessions").json["sessions"]] == prefixes
    book = RelayHarness()
    limited, other = book.pair(operator={"grants": {"chat": False}}), book.pair()
    for path in ("/sessions", "/sessions?limit=1", f"/sessions?cursor={other.prefix}"):
        sessions = book.request("GET", path, token=limited.token, peer=REMOTE).json["sessions"]
        assert [each["token_prefix"] for each in sessions] == [limited.prefix]


@pytest.mark.parametrize("own", [False, True])
def test_revoke(book: RelayHarness, own: bool) -> None:
    caller, other = book.pair(), book.pair()
    target = caller if own else other
    answer = book.request("DELETE", f"/sessions/{target.prefix}", token=caller.token, peer=REMOTE)
    assert (answer.status, answer.json) == (200, {"ok": True, "revoked": target.prefix, "revoked_self": own})
    assert [each["token_prefix"] for each in book.sessions()] == [other.prefix if own else caller.prefix]
    assert len(book.store) == 1
    assert "session revoked" in book.events()
    assert book.request("GET", "/sessions", token=target.token, peer=REMOTE).status == 401


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
@pytest.mark.parametrize("length", [9, 35])
def test_prefixes_beyond_the_stored_characters_are_refused(book: RelayHarness, method: str, length: int) -> None:
    """Refuse nine or more characters short of the whole token: only its hash and eight characters are stored."""
    paired = book.pair()
    before = book.sessions()
    for name in (paired.token[:length], paired.token[:8] + "x" * (length - 8)):
        answer = book.request(method, f"/sessions/{name}", {"ttl_seconds": 60}, token=paired.token)
        assert (answer.status, answer.json["code"], answer.json["field"]) == (400, "invalid_prefix", "token_prefix")
    assert book.request(method, f"/sessions/{paired.token[:36]}", {"ttl_seconds": 60}).status == 404
    assert book.sessions() == before


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
def test_several_match(method: str) -> None:
    entropy = (b"\xab\xcd" + bytes([number]) * 14 for number in range(1, 4))
    book = RelayHarness(entropy=lambda n: next(entropy)[:n])
    first, _ = (book.pair(client_surface="desktop") for _ in range(2))
    answer = book.request(method, "/sessions/abcd", {"ttl_seconds": 60}, token=first.token)
    error = answer.json["error"]
    assert error.startswith("2 ")
    assert answer.status == 409
    assert answer.json == {"ok": False, "error": error, "code": "ambiguous_prefix", "matches": 2}
    assert len(book.sessions()) == 2


def test_patches_are_stored_for_live_sessions(book: RelayHarness) -> None:
    phone = book.pair()
    book.store.clear()
    answer = book.request("PATCH", f"/sessions/{phone.prefix}", {"ttl_seconds": 60})
    assert (answer.status, answer.json["code"], book.store) == (404, "not_found", {})
    assert book.request("GET", "/sessions", token=phone.token).status == 401
    assert book.events(Level.ERROR) == []
    book = RelayHarness()
    book.refuse = (SaveSession,)
    phone = book.pair()
    answer = book.request("PATCH", f"/sessions/{phone.prefix}", {"ttl_seconds": 60})
    assert (answer.status, answer.json["code"]) == (500, "store_failed")
    book.refuse = ()
    assert book.request("PATCH", f"/sessions/{phone.prefix}", {"ttl_seconds": 60}).status == 200
    assert len(book.store) == 1


def test_failed_erasures_are_retried_later_and_at_the_stop(book: RelayHarness) -> None:
    paired = book.pair()
    book.refuse = (DeleteSession,)
    assert book.request("DELETE", f"/sessions/{paired.prefix}").status == 500
    assert book.request("GET", "/sessions", token=paired.token).status == 401
    book.after(60)
    assert len(book.store) == 1
    book.refuse = ()
    book.after(59)
    assert len(book.store) == 1
    book.after(1)
    assert book.store == {}
    assert book.events(Level.ERROR) == ["session not erased"] * 2
    assert book.request("DELETE", f"/sessions/{paired.prefix}").status == 404
    book, paired = paired_relay()
    book.refuse = (DeleteSession,)
    book.request("DELETE", f"/sessions/{paired.prefix}")
    book.refuse = ()
    book.stop()
    assert (book.store, [exit_.code for exit_ in book.exits]) == ({}, [0])
    book, paired = paired_relay()
    book.hold = (DeleteSession,)
    call = book.call("DELETE", f"/sessions/{paired.prefix}")
    book.feed(Closed(call.ch))
    book.release()
    assert book.store == {}


def patch(book: RelayHarness, token: str, body: object, prefix: str | None = None) -> Any:
    return book.request("PATCH", f"/sessions/{prefix or token[:8]}", body, token=token, peer=REMOTE)


def test_a_device_is_renamed(book: RelayHarness) -> None:
    paired, other = book.pair(device_id="d-1", device_name="Pixel 8"), book.pair(device_id="d-2", device_name="Other")
    paired.phone.send("bridge", "bridge.status", {"device": {"x": 1}})
    grants = book.sessions()
    answer = book.request("PATCH", f"/sessions/{paired.prefix}", {"device_name": "Kitchen"})
    assert (answer.status, answer.json["device_name"]) == (200, "Kitchen")
    after = {each["device_name"]: each["grants"] for each in book.sessions()}
    assert after == {"Kitchen" if each["device_name"] == "Pixel 8" else "Other": each["grants"] for each in grants}
    phones = {each["device_id"]: each["device_name"] for each in book.request("GET", "/bridge/devices").json["devices"]}
    assert phones == {"d-1": "Kitchen", "d-2": "Other"}
    assert {record["device_name"] for record in book.store.values()} == {"Kitchen", "Other"}
    again = book.request("PATCH", f"/sessions/{paired.prefix}", {"device_name": "Kitchen", "ttl_seconds": 60})
    assert (again.status, again.json["expires_at"]) == (200, book.now.wall + 60)
    assert book.request("PATCH", f"/sessions/{other.prefix}", {"device_name": ""}).json["field"] == "device_name"


def reporter(book: RelayHarness) -> object:
    """Return the member `of` of the device status that the relay reports, or None."""
    return book.request("GET", "/bridge/status").json["device"].get("of")


def test_a_status_takes_no_other_open_socket_its_place(book: RelayHarness) -> None:
    first = book.pair(device_id="d-1")
    second = book.pair(operator={"keep_earlier": True}, device_id="d-1")
    for phone in (second, first):
        phone.phone.send("bridge", "bridge.status", {"device": {"of": phone.prefix}})
        assert reporter(book) == second.prefix
    assert book.events().count("phone connected") == 2
    second.phone.vanish()
    first.phone.send("bridge", "bridge.status", {"device": {"of": first.prefix}})
    assert reporter(book) == first.prefix


def test_patched_lifetimes_start_now_within_the_policy(book: RelayHarness) -> None:
    paired = book.pair()
    book.after(1000)
    answer = patch(book, paired.token, {"ttl_seconds": 2 * DAY})
    expiry = book.now.wall + 2 * DAY
    assert answer.json == {
        "ok": True,
        "token_prefix": paired.prefix,
        "expires_at": expiry,
        "grants": dict.fromkeys(paired.ok["grants"], expiry),
    }
    (record,) = book.store.values()
    assert record["expires_at"] == expiry
    paired.phone.vanish()
    book.after(2 * DAY)
    assert book.sessions() == []
    assert book.store == {}
    book = RelayHarness(RelayConfig(session_policy=SessionPolicy.REDUCE_ONLY))
    caller, other = book.pair(), book.pair()
    answer = patch(book, caller.token, {"ttl_seconds": 60}, other.prefix)
    assert (answer.status, answer.json["code"]) == (403, "self_only")
    answer = patch(book, caller.token, {"ttl_seconds": 60 * DAY})
    assert (answer.status, answer.json["code"]) == (403, "reduce_only")
    assert patch(book, caller.token, {"ttl_seconds": 60}).status == 200


def test_a_revocation_counts_the_changes_at_the_agent(book: RelayHarness) -> None:
    device = book.pair(device_name="Tablet")
    change = AgentChange(at=1.0, principal=f"{device.prefix} Tablet", kind="memory", target="user", after="x")
    book.disk.put(f"{HOME}/{FILE}", write_changes([change, change]).encode())
    answer = book.request("DELETE", f"/sessions/{device.prefix}").json
    assert answer["agent_changes"] == 2
    assert revoked_changes(JsonObject(answer)) == [
        f"Changes that it made at the agent: 2. List and undo them with: svc undo {device.prefix}"
    ]
    other = book.request("DELETE", f"/sessions/{book.pair().prefix}").json
    assert revoked_changes(JsonObject(other)) == []
