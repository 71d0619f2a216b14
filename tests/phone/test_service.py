import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.entropy import sha256_hex
from svc_proto.commands import Abort, Connect, Exit, Notify, Ready, Send
from svc_proto.facts import ChannelId, Closed, OperationId, ReadClosed, Received, Sent, Started
from svc_proto.phone.backend import CommandReply, DelayedReply, UploadReply
from svc_proto.phone.service import PhoneState
from svc_proto.wire.events import AcceptWebSocket, BinaryMessage, CloseWebSocket, TextMessage, WebSocketClosed
from tests.phone.harness import STREAM, TOKEN, PhoneHarness, SentEnvelope, is_status, opened_phone
from tests.schema.test_envelope import JSON
from tests.support.playbook import SendMatcher

S = PhoneState
IDENTITY: dict[str, object] = {
    "device_name": "Reference phone",
    "device_hostname": "Reference phone",
    "device_id": "reference-phone",
    "device_model": "Simulated handset",
    "device_platform": "Android 16",
    "client_surface": "android",
    "device_form_factor": "phone",
    "supports": {"typed_stream_events": True, "event_schema_version": 1},
    "names": "svc",
}


# --- authentication -----------------------------------------------------------------------------------------------


def test_pairing_and_a_status_every_thirty_seconds() -> None:
    rig = PhoneHarness()
    book = rig.book
    order = Connect(OperationId(1), ChannelId(1), "127.0.0.1", 8767, tls=False)
    book >> Started() << [Ready(), order]
    assert rig.is_in(S.CONNECTING)
    head = rig.asked(order)
    assert (head.method, head.target, head.headers.get(b"host")) == ("GET", "/ws", b"127.0.0.1:8767")
    book >> rig.end.received_fact(AcceptWebSocket(STREAM)) << [SendMatcher(1)]
    assert rig.is_in(S.SIGNING_IN)
    assert rig.sent_envelopes() == [
        SentEnvelope("system", "auth", {**IDENTITY, "pairing_code": "ABC123", "ttl_seconds": 604_800})
    ]
    rig.welcome()
    paired = Notify("paired", {"token": TOKEN, "expires_at": None, "grants": {"bridge": 5.0}})
    book << [paired, SendMatcher(1)]
    assert rig.is_in(S.ONLINE)
    (status,) = rig.sent_envelopes()
    assert is_status(status)
    assert rig.new_notifications() == [paired]
    for _ in range(3):
        rig.delivered()
        rig.book.after(29.5)
        assert rig.sent_envelopes() == []
        rig.book.after(0.5)
        (status,) = rig.sent_envelopes()
        assert is_status(status)


def test_no_status_is_sent_before_the_sign_in_of_the_next_connection() -> None:
    rig = PhoneHarness()
    rig.online()
    rig.delivered()
    rig.book.after(20.0)
    rig.vanish()
    auth = rig.opened(rig.next_connect())
    assert auth.type == "auth"
    rig.book.after(14.0)  # more than 30 s since the last status
    assert rig.sent_envelopes() == []
    rig.welcome()
    (status,) = rig.sent_envelopes()
    assert is_status(status)


def test_status_bug_is_logged_and_the_next_status_follows() -> None:
    rig = opened_phone()
    rig.backend.fault = RuntimeError("secret")
    rig.welcome()
    assert rig.sent_envelopes() == []
    assert rig.is_in(S.ONLINE)
    assert [log.event for log in rig.book.logs] == ["bug"]
    assert "secret" not in repr(rig.book.logs)
    rig.backend.fault = None
    rig.book.after(30.0)
    assert [said.type for said in rig.sent_envelopes()] == ["bridge.status"]


@pytest.mark.parametrize(
    ("config", "credentials"),
    [
        ({"token": "T"}, {"session_token": "T"}),
        ({"token": "T", "code": "ABC123"}, {"session_token": "T", "pairing_code": "ABC123", "ttl_seconds": 604_800}),
        ({"code": "ABC123", "ttl_seconds": 60}, {"pairing_code": "ABC123", "ttl_seconds": 60}),
        ({"token": "T", "ttl_seconds": 60}, {"session_token": "T"}),
        ({"token": "T", "scheme": "hermes-relay"}, {"session_token": "T", "names": "hermes"}),
        *(({"token": "T", "scheme": scheme}, {"session_token": "T"}) for scheme in ("svc-relay", "other")),
    ],
)
def test_credentials(config: dict[str, Any], credentials: dict[str, object]) -> None:
    assert PhoneHarness(**config).opened() == SentEnvelope("system", "auth", {**IDENTITY, **credentials})


def test_token_replaces_the_code_after_pairing() -> None:
    rig = PhoneHarness(code="ABC123", ttl_seconds=60)
    rig.online()
    rig.vanish()
    auth = rig.opened(rig.next_connect())
    assert auth.payload == {**IDENTITY, "session_token": TOKEN}
    rig.new_notifications()
    rig.welcome()
    rig.book.drain_commands()
    assert rig.new_notifications() == [
        Notify("online", {"token": TOKEN, "expires_at": None, "grants": {"bridge": 5.0}})
    ]


def test_a_refusal_is_the_end() -> None:
    rig = opened_phone()
    rig.message("system", "auth.fail", {"reason": "the pairing code is\x1b[2J invalid"})
    assert rig.is_in(S.GIVEN_UP)
    (closing,) = rig.end.receive(rig.book.drain_commands())
    assert closing == WebSocketClosed(STREAM, 1000)
    # The reason is shown on terminals and must not contain control characters.
    refusal = "the relay refused: the pairing code is [2J invalid"
    rig.book >> Received(rig.end.ch, rig.end.conn.data_to_send()) << [Exit(1, refusal)]


@pytest.mark.parametrize("payload", [{}, {"reason": 5}, {"reason": ""}, None, [1]])
def test_a_refusal_without_a_reason(payload: object) -> None:
    rig = opened_phone()
    rig.message("system", "auth.fail", payload)
    rig.book.drain_commands()
    assert Exit(1, "the relay refused: no reason given") in (rig.book >> Closed(rig.end.ch)).drain_commands()


def test_refusal_with_an_immediate_close_or_none() -> None:
    rig = opened_phone()
    fact = rig.end.received_fact(
        TextMessage(STREAM, '{"channel":"system","type":"auth.fail","payload":{"reason":"no"}}'),
        CloseWebSocket(STREAM, 1000),
    )
    assert Exit(1, "the relay refused: no") in [
        *(rig.book >> fact).drain_commands(),
        *(rig.book >> Closed(rig.end.ch)).drain_commands(),
    ]
    rig = opened_phone()
    rig.message("system", "auth.fail", {"reason": "no"})
    rig.book.drain_commands()
    rig.book.after(5.0) << [Abort(rig.end.ch)]
    rig.book >> Closed(rig.end.ch) << [Exit(1, "the relay refused: no")]


def test_a_timeout_of_the_relay_is_no_refusal() -> None:
    rig = opened_phone()
    rig.message("system", "auth.fail", {"reason": "auth timeout: nothing came"})
    assert rig.is_in(S.SIGNING_IN)
    rig.hang_up()
    rig.book.drain_commands()
    assert rig.is_in(S.BACKING_OFF)


@pytest.mark.parametrize("token", [None, "", 5, "caf\u00e9", "a\nb"])
def test_a_welcome_without_a_token(token: object) -> None:
    rig = opened_phone()
    rig.message("system", "auth.ok", {"session_token": token})
    rig.book.drain_commands()
    assert rig.is_in(S.GIVEN_UP)
    assert Exit(1, "the relay sent no session token") in (rig.book >> Closed(rig.end.ch)).drain_commands()


def test_silent_relay() -> None:
    rig = opened_phone()
    rig.book.after(14.9) << []
    rig.book.after(0.1)
    assert rig.end.receive(rig.book.drain_commands()) == [WebSocketClosed(STREAM, 1002, "no answer to system/auth")]
    rig.book.after(5.0) << [Abort(rig.end.ch)]
    rig.vanish()
    rig.book << [Notify("offline", {"retry_in": rig.pause()})]
    assert rig.is_in(S.BACKING_OFF)


# --- invalid input ------------------------------------------------------------------------------------------------


def test_messages_out_of_place_are_ignored() -> None:
    rig = opened_phone()
    rig.command("/ping")
    assert rig.sent_envelopes() == []
    (
        rig.book
        >> rig.end.received_fact(BinaryMessage(STREAM, b"\x00"), TextMessage(STREAM, "["), TextMessage(STREAM, "[]"))
        << []
    )
    rig.welcome()
    rig.book.drain_commands()
    for channel, kind in (("system", "auth.ok"), ("system", "auth.fail"), ("pairing", "profiles.updated"), ("", "")):
        rig.message(channel, kind, {"session_token": "other", "reason": "no"})
        assert rig.sent_envelopes() == []
    assert rig.is_in(S.ONLINE)
    assert rig.phone.token == TOKEN


def test_full_connection_becomes_writable_again() -> None:
    rig = PhoneHarness()
    rig.online()
    rig.backend.answers["/screen"] = CommandReply(200, {"noise": "".join(sha256_hex(str(n)) for n in range(16_000))})
    rig.command("/screen")
    (data,) = [command.data for command in rig.book.drain_commands() if isinstance(command, Send)]
    assert len(data) > 256 * 1024  # high water
    rig.book >> Sent(rig.end.ch, len(data)) << []


ENVELOPES = st.fixed_dictionaries(
    {
        "channel": st.sampled_from(["system", "bridge", "pairing", ""]) | JSON,
        "type": st.sampled_from(["auth.ok", "auth.fail", "bridge.command", "bridge.status", "error"]) | JSON,
        "id": JSON,
        "payload": JSON
        | st.fixed_dictionaries(
            {},
            optional={
                "session_token": st.just("T") | JSON,
                "reason": JSON,
                "request_id": JSON | st.just("r"),
                "method": JSON | st.just("POST"),
                "path": JSON | st.sampled_from(["/ping", "/wait", "/screenshot", "/bug"]),
                "params": JSON,
                "body": JSON,
            },
        ),
    }
)


@given(state=st.sampled_from(["signing in", "online"]), data=st.data())
def test_no_message_makes_the_phone_raise(state: str, data: st.DataObject) -> None:
    rig = PhoneHarness()
    rig.backend.answers = {
        "/wait": DelayedReply(3.0, CommandReply(200, {})),
        "/screenshot": UploadReply("s.png", "image/png", b"png"),
        "/bug": RuntimeError("bug"),
    }
    if state == "online":
        rig.online()
    else:
        rig.opened()
    for _ in range(data.draw(st.integers(1, 5))):
        if rig.end.conn.must_close:
            break
        message = data.draw(ENVELOPES.map(json.dumps) | st.text(max_size=40) | st.binary(max_size=40))
        event = TextMessage(STREAM, message) if isinstance(message, str) else BinaryMessage(STREAM, message)
        for command in (rig.book >> rig.end.received_fact(event)).drain_commands():
            if isinstance(command, Send):
                rig.end.conn.receive_data(command.data)
        while rig.end.conn.next_event() is not None:
            pass
        rig.book.after(data.draw(st.sampled_from([0.0, 4.0]))).drain_commands()
    # Only errors of the backend, which are answered; the engine logs bugs of the phone itself.
    assert all(log.fields.get("error") == "RuntimeError" for log in rig.book.logs if log.event == "bug")


@given(
    state=st.sampled_from(["connecting", "signing in", "online"]), pieces=st.lists(st.binary(max_size=60), max_size=4)
)
def test_no_bytes_make_the_phone_raise(state: str, pieces: list[bytes]) -> None:
    rig = PhoneHarness()
    if state == "connecting":
        rig.asked(rig.start())
    elif state == "signing in":
        rig.opened()
    else:
        rig.online()
    for piece in filter(None, pieces):
        rig.book >> Received(rig.end.ch, piece)
        rig.book.drain_commands()
    rig.book >> ReadClosed(rig.end.ch)
    rig.book.drain_commands()
    rig.book >> Closed(rig.end.ch)
    rig.book.drain_commands()
    assert not [log for log in rig.book.logs if log.event == "bug"]
