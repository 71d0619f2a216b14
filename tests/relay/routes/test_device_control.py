"""Device Control over the wire: commands to the phone and their outcomes (wire bridge 2.2 and 2.3)."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from svc_proto.commands import Level
from svc_proto.machines.phone_registry import ASKS_ITS_USER
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.wire.events import TextMessage
from tests.relay.harness import REMOTE, PairedPhone, RelayHarness, paired_relay
from tests.schema.test_device_control_arguments import BAD, GOOD
from tests.support.http_codec import Response

USABLE = {(method, path): arguments for method, path, arguments in GOOD}


def drive(book: RelayHarness, paired: PairedPhone, method: str, path: str, body: object = None) -> dict[str, Any]:
    """Send a request and return the command that the phone receives."""
    book.call(method, path, body, token=paired.token, peer=REMOTE)
    return paired.phone.command()


def outcome(book: RelayHarness, status: object, result: object, **more: object) -> Response:
    paired = book.pair()
    call = book.call("GET", "/screen", token=paired.token, peer=REMOTE)
    paired.phone.reply(paired.phone.command(), status, result, **more)
    return call.result


def test_confirmation_policy_is_judged_for_the_receiving_phone(book: RelayHarness) -> None:
    first, second = book.pair(device_id="p-1"), book.pair(device_id="t-1")
    message = {"to": "+15550100", "body": "Hello", ASKS_ITS_USER: True}
    for phone in (first, second):
        phone.phone.send("bridge", "bridge.status", {"device": {}, "bridge": {}})
    refused = book.request("POST", "/send_sms", message, token=second.token, peer=REMOTE)
    assert (refused.status, refused.json["code"]) == (409, "phone_asks_nobody")
    first.phone.send("bridge", "bridge.status", {"safety": {"blocklist_count": 0}, "device_id": "t-1"})
    book.call("POST", "/send_sms", message, token=second.token, peer=REMOTE)
    command = first.phone.command()
    assert (command["path"], command["body"]) == ("/send_sms", {"to": "+15550100", "body": "Hello"})
    first.phone.vanish()
    refused = book.request("POST", "/send_sms", message, token=second.token, peer=REMOTE)
    assert (refused.status, refused.json["code"], second.phone.envelopes()) == (409, "phone_asks_nobody", [])
    del message[ASKS_ITS_USER]
    assert drive(book, second, "POST", "/send_sms", message)["path"] == "/send_sms"


@pytest.mark.parametrize(("method", "path"), DEVICE_CONTROL)
def test_every_route_is_forwarded(book: RelayHarness, method: str, path: str) -> None:
    paired = book.pair()
    body = {"x": 310, **USABLE.get((method, path), {})} if method == "POST" else {}
    call = book.call(method, path, body if method == "POST" else None, token=paired.token, peer=REMOTE)
    command = paired.phone.command()
    sent = "/return_to_hermes" if path == "/return_to_svc" else path
    assert command == {"request_id": command["request_id"], "method": method, "path": sent, "params": {}, "body": body}
    assert call.answer is None
    paired.phone.reply(command, 200, {"ok": True})
    assert (call.result.status, call.result.json) == (200, {"ok": True})
    (record,) = book.activity()
    assert (record["method"], record["path"], record["decision"]) == (method, path, "executed")
    (log,) = [log for log in book.logs if log.event == "phone driven"]
    names = {"by": "Unknown device", "phone": "Unknown device", "session": paired.prefix}
    assert log.fields == {**names, "command": f"{method} {sent}", "status": 200}


def test_query_of_a_get_is_the_body_and_that_of_a_post_is_apart(book: RelayHarness, paired: PairedPhone) -> None:
    command = drive(book, paired, "GET", "/events?limit=5&since=0&limit=6&a=%C3%A9+b", {"device": "x", "z": 1})
    assert command["params"] == command["body"] == {"limit": "5", "since": "0", "a": "é b"}
    assert book.activity()[0]["params"] == command["params"]
    command = drive(book, paired, "POST", "/wait?a=1", {"ms": 1})
    assert (command["params"], command["body"]) == ({"a": "1"}, {"ms": 1})
    assert drive(book, paired, "POST", "/wait", {"ms": None, "a": {"b": None}})["body"] == {"a": {"b": None}}
    drive(book, paired, "POST", "/tap?token=abc", {"x": 1, "y": 2})
    drive(book, paired, "POST", "/tap?z=1", {"x": 1, "y": 2, "password": "abc"})
    assert "abc" not in str(book.activity())


@pytest.mark.parametrize("body", [b"", b"no JSON", b"[1]", b"null", b'{"a":NaN}', b"\xff"])
def test_non_object_body_counts_as_empty(book: RelayHarness, body: bytes) -> None:
    assert drive(book, book.pair(), "POST", "/wait", body)["body"] == {}
    answer = book.request("POST", "/type", body, token=book.pair().token)
    assert (answer.status, answer.json["code"], answer.json["field"]) == (400, "invalid_field", "text")


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (b'{ "ms": 1, "n": 1.50,\n "note": "\xc3\xa9" }', '{ "ms": 1, "n": 1.50,\n "note": "\xe9" }'),  # unchanged
        (b'{"ms": 1, "n": 1e1, "\\u0074oken": "t"}', '{"ms":1,"n":10.0,"token":"t"}'),  # an escape may hide a name
        (b'{"ms": 2, "a": null}', '{"ms":2}'),
        (b'{"ms": 3, "device": ""}', '{"ms":3}'),
        (b'{"ms": 4, "pad": "%b"}' % (b"x" * 1024), '{"ms":4,"pad":"%s"}' % ("x" * 1024)),
    ],
)
def test_unchanged_body_is_forwarded_verbatim(book: RelayHarness, body: bytes, sent: str) -> None:
    paired = book.pair()
    command = drive(book, paired, "POST", "/wait", body)
    assert command["body"] == json.loads(sent)
    (text,) = [event.text for event in paired.phone.events if isinstance(event, TextMessage)][-1:]
    assert text.endswith(f'"params":{{}},"body":{sent}}}}}')


@pytest.mark.parametrize("body", [b'{"token": "t"}', b'{ "a" : {"TOKEN" :\n"t"}}', b'{"t\\u006fken":"t"}'])
def test_secrets_are_redacted_under_any_name(book: RelayHarness, body: bytes) -> None:
    drive(book, book.pair(), "POST", "/wait", body[:-1] + b',"ms":1}')
    assert "[redacted]" in json.dumps(book.activity()[0]["params"])


@pytest.mark.parametrize(("method", "path", "arguments", "field"), BAD)
def test_invalid_arguments_do_not_reach_the_phone(
    book: RelayHarness, method: str, path: str, arguments: dict[str, object], field: str
) -> None:
    paired = book.pair()
    target = f"{path}?{urlencode(arguments)}" if method == "GET" else path
    answer = book.request(method, target, None if method == "GET" else arguments, token=paired.token)
    assert (answer.status, answer.json["code"], answer.json["field"]) == (400, "invalid_field", field)
    assert paired.phone.envelopes() == []
    assert book.activity() == []


@pytest.mark.parametrize("key", ["device", "device_id", "deviceId"])
def test_selectors_never_reach_the_phone(book: RelayHarness, key: str) -> None:
    paired = book.pair(device_id="d-1", device_name="Kitchen tablet")
    command = drive(book, paired, "POST", f"/wait?{key}=kitchentablet&a=1", {"deviceId": "other", "device": 5, "ms": 1})
    assert (command["params"], command["body"]) == ({"a": "1"}, {"ms": 1})
    assert drive(book, paired, "POST", "/wait", {key: "d-1", "ms": 1})["body"] == {"ms": 1}
    assert drive(book, paired, "GET", f"/ping?{key}=d-1")["body"] == {}
    assert [record["alias_used"] for record in book.activity()] == ["d-1", "d-1", "kitchentablet"]


def test_phones_without_a_live_grant_are_not_driven(book: RelayHarness) -> None:
    phone = book.pair(device_id="d-1", operator={"grants": {"bridge": 10}}).phone
    caller = book.pair(client_surface="desktop", device_id="d-2")
    book.after(10)
    assert book.request("GET", "/ping", token=caller.token, peer=REMOTE).status == 503
    assert phone.envelopes() == []
    book, lapsing = paired_relay(device_id="d-1", operator={"grants": {"bridge": 20}})
    caller = book.pair(client_surface="desktop")
    call = book.call("GET", "/ping", token=caller.token)
    command = lapsing.phone.command()
    book.after(20)
    lapsing.phone.reply(command, 200, {})
    assert (call.result.status, call.result.json["code"]) == (502, "phone_disconnected")


def test_a_204_and_a_head_have_no_body(book: RelayHarness) -> None:
    answer = outcome(book, 204, {"a": 1})
    assert (answer.status, answer.body) == (204, b"")
    book, paired = paired_relay()
    call = book.call("HEAD", "/ping", token=paired.token, peer=REMOTE)
    command = paired.phone.command()
    assert command["method"] == "GET"
    paired.phone.reply(command, 200, {"pong": True})
    assert (call.result.status, call.result.body) == (200, b"")
    assert call.result.headers.get(b"content-length") == b"13"


def test_commands_without_a_phone_or_its_answer(book: RelayHarness) -> None:
    caller = book.pair(client_surface="desktop")
    answer = book.request("GET", "/ping", token=caller.token, peer=REMOTE)
    assert (answer.status, answer.json["ok"], answer.json["code"]) == (503, False, "phone_not_connected")
    assert book.activity() == []
    book, paired = paired_relay()
    call = book.call("GET", "/ping", token=paired.token)
    command = paired.phone.command()
    book.after(29.75)
    assert call.answer is None
    assert book.activity()[0]["decision"] == "pending"
    book.after(0.25)
    assert (call.result.status, call.result.json["code"]) == (504, "phone_timeout")
    paired.phone.reply(command, 200, {})  # too late to change anything
    (record,) = book.activity()
    assert (record["decision"], record["response_status"]) == ("timeout", None)
    calls = [book.call("GET", "/ping", token=paired.token)]
    book.after(10)
    calls.append(book.call("GET", "/ping", token=paired.token))
    book.after(20)
    assert [call.answer is None for call in calls] == [False, True]
    book.after(10)  # each has its own 30 seconds
    assert [call.result.status for call in calls] == [504, 504]


@pytest.mark.parametrize("how", ["vanish", "close"])
def test_disconnected_phone_fails_the_command(book: RelayHarness, how: str) -> None:
    paired = book.pair()
    call = book.call("GET", "/ping", token=paired.token)
    getattr(paired.phone, how)()
    assert (call.result.status, call.result.json["code"]) == (502, "phone_disconnected")
    assert book.activity()[0]["decision"] == "error"
    assert book.request("GET", "/ping", token=paired.token).status == 503


def test_answers_count_from_the_current_socket_and_without_their_caller(book: RelayHarness) -> None:
    paired = book.pair(device_id="d-1")
    call = book.call("GET", "/ping", token=paired.token)
    old = paired.phone.command()
    fresh = book.reconnect(paired.token)
    assert (call.result.status, call.result.json["code"]) == (502, "phone_disconnected")
    second = book.call("GET", "/ping", token=paired.token)
    command = fresh.command()
    paired.phone.reply(command, 200, {"foreign": True})  # from the old socket: the command stays pending
    paired.phone.reply(old, 200, {"late": True})
    assert second.answer is None
    fresh.reply(command, 200, {"own": True})
    assert second.result.json == {"own": True}
    book, paired = paired_relay()
    call = book.call("GET", "/ping", token=paired.token)
    command = paired.phone.command()
    call.vanish()
    assert book.request("GET", "/relay/info").json["pending_commands"] == 1
    paired.phone.reply(command, 200, {"ok": True})
    assert book.activity()[0]["decision"] == "executed"
    assert not [log for log in book.logs if log.event == "phone driven"]
    assert book.request("GET", "/relay/info").json["pending_commands"] == 0


def test_a_report_of_another_socket_replaces_no_phone(book: RelayHarness) -> None:
    paired = book.pair(device_id="d-1", client_surface="desktop")
    sockets = [paired.phone, book.reconnect(paired.token)]
    for phone in sockets:
        phone.send("bridge", "bridge.status", {"device": {}})
    call = book.call("GET", "/ping", token=paired.token)
    sockets[0].reply(sockets[0].command(), 200, {"pong": True})
    assert call.result.json == {"pong": True}


@pytest.mark.parametrize("how", ["vanish", "close"])
def test_the_old_socket_ends_after_the_new_one_is_welcomed(book: RelayHarness, how: str) -> None:
    paired = book.pair(device_id="d-1")
    fresh = book.reconnect(paired.token)
    call = book.call("GET", "/ping", token=paired.token)
    getattr(paired.phone, how)()
    assert call.answer is None
    fresh.reply(fresh.command(), 200, {"pong": True})
    assert call.result.json == {"pong": True}
    again = book.call("GET", "/ping?device=d-1", token=paired.token)
    fresh.reply(fresh.command(), 200, {"pong": 2})
    assert again.result.json == {"pong": 2}
    assert book.request("GET", "/bridge/devices").json["count"] == 1


def test_stopped_and_closing_sockets_fail_commands(book: RelayHarness) -> None:
    paired = book.pair()
    paired.phone.mute = True
    book.relay.clients[paired.phone.ch].socket.close(1001)  # our close frame is sent, the peer's does not arrive
    call = book.call("GET", "/ping", token=paired.token)
    assert (call.result.status, call.result.json["code"]) == (502, "send_failed")
    assert book.activity()[0]["decision"] == "error"
    book, paired = paired_relay()
    call = book.call("GET", "/ping", token=paired.token)
    book.stop()
    assert (call.result.status, call.result.headers.get(b"connection")) == (502, b"close")


def test_revoked_callers_get_401(book: RelayHarness) -> None:
    phone = book.pair(device_id="d-1")
    caller = book.pair(client_surface="desktop")
    call = book.call("GET", "/ping", token=caller.token, peer=REMOTE)
    other = book.call("GET", "/ping", token=phone.token, peer=REMOTE)
    book.request("DELETE", f"/sessions/{caller.prefix}")
    assert (call.result.status, call.result.json["code"]) == (401, "unauthorized")
    assert other.answer is None
    phone.phone.reply(phone.phone.envelopes()[0]["payload"], 200, {})
    assert book.activity()[1]["decision"] == "executed"
    own = book.call("GET", "/ping", token=phone.token, peer=REMOTE)
    book.request("DELETE", f"/sessions/{phone.prefix}")
    assert (own.result.status, own.result.json["code"]) == (401, "unauthorized")


def test_commands_are_neither_logged_at_warning_nor_recorded_with_hidden_text(book: RelayHarness) -> None:
    book.relay.engine.log_level = Level.WARNING
    assert outcome(book, 200, {"ok": True}).status == 200
    assert not [log for log in book.logs if log.event == "phone driven"]
    book = RelayHarness(RelayConfig(hide_typed_text=True))
    paired = book.pair()
    call = book.call("POST", "/type", {"text": "dear diary"}, token=paired.token, peer=REMOTE)
    command = paired.phone.command()
    assert command["body"] == {"text": "dear diary"}
    paired.phone.reply(command, 200, {"said": "dear diary"})
    assert call.result.json == {"said": "dear diary"}
    assert "dear diary" not in json.dumps(book.activity())
