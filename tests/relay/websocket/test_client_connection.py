"""Authentication of a WebSocket (wire core 1.3 to 1.6)."""

import json
from typing import Any

import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.commands import Level
from svc_proto.engine.core import MAX_TASKS_PER_CALL
from svc_proto.facts import Address
from svc_proto.machines.auth_rate_limiter import MAX_FAILURES
from svc_proto.machines.grants import default_grants
from svc_proto.machines.transitions import step
from svc_proto.relay.websocket.client_connection import CLIENT_TABLE, ClientState, ClientTrigger
from svc_proto.relay_config import LocalTrustPolicy, RelayConfig
from svc_proto.store_requests import SaveSession
from svc_proto.version import VERSION
from tests.relay.harness import PEER, PairedPhone, RelayHarness, paired_relay
from tests.relay.phone_client import PhoneClient

DAY = 86_400


@pytest.mark.parametrize("path", ["/ws", "/", "/ws?client=1"])
def test_a_code_gives_a_session(book: RelayHarness, path: str) -> None:
    book.register()
    phone = book.websocket(path)
    answer = phone.auth(pairing_code=" q7m2zk ", device_name="Kitchen tablet", client_surface="android")
    now = book.now.wall
    assert (answer["channel"], answer["type"], answer["id"]) == ("system", "auth.ok", "auth-1")
    ok = answer["payload"]
    assert (len(ok["session_token"]), ok["server_version"]) == (64, VERSION)
    assert (ok["expires_at"], ok["grants"]) == (now + 30 * DAY, default_grants(now, now + 30 * DAY))
    assert (ok["client_surface"], ok["device_form_factor"], ok["transport_hint"]) == ("android", "unknown", "ws")
    assert ok["profiles"] == book.relay.profiles
    assert phone.is_open


@pytest.mark.parametrize(("trusted", "hint"), [(("127.0.0.1",), "wss"), ((), "ws")])
def test_transport_hint_behind_a_trusted_proxy(trusted: tuple[str, ...], hint: str) -> None:
    book = RelayHarness(RelayConfig(trusted_proxies=trusted, local_trust=LocalTrustPolicy.ADDRESS))
    book.register()
    phone = book.websocket(peer=Address("127.0.0.1", 9), headers=[(b"x-forwarded-proto", b"https")])
    assert phone.auth(pairing_code="Q7M2ZK")["payload"]["transport_hint"] == hint


def test_lifetimes_are_limited_by_operator_and_maximum(book: RelayHarness) -> None:
    wishes: dict[str, Any] = {"ttl_seconds": 3600, "grants": {"terminal": 60, "bad": "x", "worse": True}}
    now = book.now.wall
    ok = book.pair(operator={"ttl_seconds": 7200}, **wishes).ok
    assert (ok["expires_at"], ok["grants"]["terminal"]) == (now + 7200, now + 60)
    ok = book.pair(operator={"grants": {"terminal": 90}}, **wishes).ok
    assert (ok["expires_at"], ok["grants"]["terminal"]) == (now + 3600, now + 90)
    assert "bad" not in ok["grants"]
    book = RelayHarness(RelayConfig(max_session_ttl=1000.0))
    for ttl in (0, 2000, None):
        assert book.pair(ttl_seconds=ttl).ok["expires_at"] == book.now.wall + 1000


def test_a_token_reconnects_and_keeps_the_detected_transport(book: RelayHarness, paired: PairedPhone) -> None:
    book.after(10)
    phone = book.websocket(tls=True)
    ok = phone.auth(session_token=paired.token)["payload"]
    assert ok == paired.ok
    assert book.sessions()[0]["last_seen"] == book.now.wall
    book.register()
    assert book.websocket(tls=True).auth(pairing_code="Q7M2ZK")["payload"]["transport_hint"] == "wss"


@pytest.mark.parametrize("is_here", [True, False])
def test_an_updated_app_names_its_brand(book: RelayHarness, is_here: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    paired, relay = book.pair(), book.relay
    (session,) = relay.sessions.find(paired.prefix, book.now)
    if not is_here:  # another node of the service has created the session
        unknown = iter([None])
        monkeypatch.setattr(relay.sessions, "lookup", lambda token, now: next(unknown, session))
        monkeypatch.setattr(relay.coordinator, "lookup_session", lambda token: relay.coordinator.flush())
    assert book.websocket().auth(session_token=paired.token, names="svc")["type"] == "auth.ok"
    assert session.names == "svc"


def test_the_token_is_tried_first_then_the_code(book: RelayHarness, paired: PairedPhone) -> None:
    book.register("AAAAAA")
    assert book.websocket().auth(session_token=paired.token, pairing_code="AAAAAA")["type"] == "auth.ok"
    assert len(book.sessions()) == 1
    assert book.websocket().auth(session_token="gone", pairing_code="AAAAAA")["type"] == "auth.ok"
    assert len(book.sessions()) == 2
    assert "authentication failed" not in book.events()


@pytest.mark.parametrize(
    ("payload", "needs", "avoids"),
    [
        ({"pairing_code": "AAAAAA"}, ("pairing code", "invalid"), ("rate",)),
        ({"pairing_code": "A"}, ("pairing code", "invalid"), ()),
        ({"pairing_code": "AAAAAA", "session_token": "x"}, ("pairing code", "invalid"), ()),
        ({"session_token": "gone"}, ("session token",), ("pairing", "expired")),
        ({"session_token": "gone", "pairing_code": ""}, ("session token",), ("pairing", "expired")),
        ({}, ("session token",), ("pairing", "expired")),
        ({"pairing_code": 123456, "session_token": ["x"]}, ("session token",), ("pairing", "expired")),
    ],
)
def test_refused_credentials(
    book: RelayHarness, payload: dict[str, object], needs: tuple[str, ...], avoids: tuple[str, ...]
) -> None:
    phone = book.websocket()
    answer = phone.auth(**payload)
    assert (answer["type"], answer["id"]) == ("auth.fail", "auth-1")
    reason = answer["payload"]["reason"]
    assert all(word in reason for word in needs)
    assert not any(word in reason for word in avoids)
    assert phone.closed is not None
    assert (phone.closed.code, phone.closed.reason) == (1000, "")
    assert book.events(Level.WARNING) == ["authentication failed"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "null",
        json.dumps({"channel": "system", "type": "ping"}),
        json.dumps({"channel": "chat", "type": "auth", "payload": {}}),
        json.dumps({"type": "auth"}),
        json.dumps({"channel": ["system"], "type": "auth"}),
    ],
)
def test_first_message_other_than_auth_is_refused_and_not_counted(book: RelayHarness, text: str) -> None:
    phone = book.websocket()
    phone.text(text)
    answer = phone.only()
    assert answer["type"] == "auth.fail"
    assert len(answer["id"]) > 0
    assert phone.close_code == 1000
    assert "authentication failed" not in book.events()


def test_clients_that_are_silent_or_leave_end_in_rounds(book: RelayHarness) -> None:
    phone = book.websocket()
    book.after(15)
    phone.binary(b"skipped")  # without a restart of the timer
    book.after(14.5)
    assert phone.is_open
    book.after(0.5)
    reason = phone.only()["payload"]["reason"]
    assert "auth" in reason
    assert "timeout" in reason
    assert phone.close_code == 1000
    assert "authentication failed" not in book.events()
    book = RelayHarness()
    phone = book.websocket()
    phone.close()
    assert phone.envelopes() == []
    vanished = book.websocket()
    vanished.vanish()
    book.after(60)
    assert book.events(Level.INFO) == ["ready"]
    book = RelayHarness()
    phones = [book.websocket() for _ in range(MAX_TASKS_PER_CALL + 1)]
    book.clock.now += 30.0
    phones[0].binary(b"a fact of the same round")
    assert all(phone.is_open for phone in phones)
    for left in (1, 0):
        book.wake(book.clock.now)
        assert sum(phone.is_open for phone in phones) == left


def pairing(**device: object) -> tuple[RelayHarness, PhoneClient]:
    """Return a relay, and a phone that has sent its pairing code but whose session is not stored yet."""
    book = RelayHarness()
    book.register()
    book.hold = (SaveSession,)
    phone = book.websocket()
    phone.send("system", "auth", {"pairing_code": "Q7M2ZK", **device})
    return book, phone


def test_messages_before_auth_ok_wait_are_limited_or_dropped() -> None:
    book, phone = pairing()
    phone.send("system", "ping", {"ts": 1})  # before auth.ok: answered after it
    assert phone.envelopes() == []
    assert book.request("GET", "/health").json["clients"] == 0
    book.release()
    assert [envelope["type"] for envelope in phone.envelopes()] == ["auth.ok", "pong"]
    assert len(book.store) == 1
    book, phone = pairing()
    phone.mute = True  # no close frame of its own: the socket is still closing when the store answers
    for _ in range(65):
        phone.send("system", "ping")
    (refusal,) = phone.envelopes()
    assert refusal["type"] == "auth.fail"
    assert "too many messages" in refusal["payload"]["reason"]
    book.release()
    assert book.store == {}
    book, phone = pairing()
    for _ in range(100):
        phone.text("no JSON")
    book.release()
    assert phone.only()["type"] == "auth.ok"


@pytest.mark.parametrize("how", ["token", "code"])
def test_sign_in_clears_the_failures_of_its_address(book: RelayHarness, paired: PairedPhone, how: str) -> None:
    for _ in range(3):
        for _ in range(MAX_FAILURES - 1):
            assert book.websocket().auth(session_token="unknown")["type"] == "auth.fail"
        if how == "token":
            book.reconnect(paired.token)
        else:
            book.pair()


def test_of_two_pairings_under_way_the_later_one_remains() -> None:
    book, first = pairing(device_id="d-1")
    book.clock.now += 1.0
    book.register("Q7M2ZL")
    second = book.websocket()
    second.send("system", "auth", {"pairing_code": "Q7M2ZL", "device_id": "d-1"})
    book.hold = ()
    book.release()
    assert [envelope["type"] for envelope in first.envelopes()] == ["auth.ok", "error"]
    assert [envelope["type"] for envelope in second.envelopes()] == ["auth.ok"]
    assert [phone.is_open for phone in (first, second)] == [False, True]


@pytest.mark.parametrize("fail", [False, True])
def test_client_lost_during_pairing_leaves_no_session(fail: bool) -> None:
    book, phone = pairing()
    phone.vanish()
    book.release(fail=fail)
    assert book.store == {}
    assert book.sessions() == []


@pytest.mark.parametrize("step", [40 * 86_400.0, -40 * 86_400.0])
def test_lifetimes_use_the_current_wall_clock(book: RelayHarness, step: float) -> None:
    book.after(100)
    book.step_clock(step)
    paired = book.pair(operator={"ttl_seconds": 1_000, "grants": {"terminal": 60}})
    assert paired.ok["expires_at"] == book.now.wall + 1_000
    assert paired.ok["grants"]["terminal"] == book.now.wall + 60
    book.step_clock(7)
    changes = {"ttl_seconds": 500, "grants": {"bridge": 20}}
    patch = book.request("PATCH", f"/sessions/{paired.prefix}", changes, token=paired.token)
    assert patch.json["expires_at"] == book.now.wall + 500
    assert patch.json["grants"]["bridge"] == book.now.wall + 20


def test_pairings_that_are_not_stored_or_cannot_be_completed(book: RelayHarness) -> None:
    book.register()
    book.refuse = (SaveSession,)
    phone = book.websocket()
    assert phone.auth(pairing_code="Q7M2ZK")["type"] == "auth.ok"
    assert book.events(Level.ERROR) == ["session not stored"]
    assert len(book.sessions()) == 1
    book, phone = pairing()
    (record,) = book.sessions()
    deletion = book.call("DELETE", f"/sessions/{record['token_prefix']}")
    book.release()
    assert deletion.result.status == 200
    answer = phone.only()
    assert answer["type"] == "auth.fail"
    assert answer["payload"] == {"reason": "the session token is not accepted any more"}
    assert phone.closed is not None
    assert book.store == {}
    book = RelayHarness()
    book.relay.sessions.cap = 0
    book.register()
    phone = book.websocket()
    answer = phone.auth(pairing_code="Q7M2ZK")
    assert answer["type"] == "auth.fail"
    assert "too many" in answer["payload"]["reason"]
    assert phone.closed is not None
    book = RelayHarness(entropy=lambda n: b"\x01" * n)  # never a fresh token
    book.logs.bugs = True
    book.pair()
    book.register()
    phone = book.websocket()
    answer = phone.auth(pairing_code="Q7M2ZK")
    assert answer["payload"]["reason"] == "internal error bug-1"
    assert phone.closed is not None


@pytest.mark.parametrize("mute", [False, True])
def test_stop_during_pairing_stores_no_session(mute: bool) -> None:
    book, phone = pairing()
    phone.mute = mute  # no close frame of its own: the socket is still closing when the store answers
    book.stop()
    book.release()
    assert phone.envelopes() == []
    assert book.store == {}
    book.after(5)
    assert [exit_.code for exit_ in book.exits] == [0]


def test_sockets_end_with_a_record_or_a_reason(book: RelayHarness) -> None:
    paired = book.pair(device_name="Kitchen")
    paired.phone.close()
    (log,) = [log for log in book.logs if log.event == "client left"]
    assert log.fields == {"device": "Kitchen", "code": 1000}
    assert book.request("GET", "/health").json == {"status": "ok", "version": VERSION, "clients": 0, "sessions": 1}
    book, paired = paired_relay()
    second = book.reconnect(paired.token)
    book.request("DELETE", f"/sessions/{paired.prefix}")
    for phone in (paired.phone, second):
        answer = phone.only()
        assert (answer["channel"], answer["type"]) == ("system", "error")
        assert phone.close_code == 1008
    assert book.websocket(peer=PEER).auth(session_token=paired.token)["type"] == "auth.fail"
    book, paired = paired_relay()
    book.stop()
    assert paired.phone.closed is not None
    assert (paired.phone.closed.code, bool(paired.phone.closed.reason)) == (1001, True)


def test_client_state_table() -> None:
    for state in ClientState:
        assert step(CLIENT_TABLE, state, ClientTrigger.GONE) is ClientState.ENDED
    assert step(CLIENT_TABLE, ClientState.UNAUTHENTICATED, ClientTrigger.TOKEN) is ClientState.OPEN
    with pytest.raises(LocalProtocolError):
        step(CLIENT_TABLE, ClientState.OPEN, ClientTrigger.TOKEN)


@pytest.mark.parametrize("device_id", ["d-1", "unknown"])
@pytest.mark.parametrize("keep", [False, True])
def test_a_device_that_pairs_again_ends_its_earlier_session(book: RelayHarness, device_id: str, keep: bool) -> None:
    bystander = book.pair(device_id="d-2")
    first = book.pair(device_id=device_id)
    second = book.pair(operator={"keep_earlier": keep}, device_id=device_id)
    ended = not keep and device_id == "d-1"
    left = {each["token_prefix"] for each in book.sessions()}
    assert left == {bystander.prefix, second.prefix, *(() if ended else (first.prefix,))}
    assert len(book.store) == len(left)
    assert first.phone.is_open is not ended
    assert second.phone.is_open
    assert book.request("GET", "/sessions", token=first.token).status == (401 if ended else 200)
    if ended:
        (message,) = [each for each in first.phone.envelopes() if each["type"] == "error"]
        assert message["payload"]["message"] == "the device has paired again"
