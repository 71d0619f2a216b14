"""Messages after authentication (wire core 1.7, wire bridge 1)."""

import json

import pytest

from svc_proto.commands import Level
from tests.relay.harness import PairedPhone, RelayHarness
from tests.relay.phone_client import PhoneClient


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", "null", '"text"', "{", '{"channel": NaN}'])
def test_non_object_messages_are_ignored(text: str) -> None:
    phone = RelayHarness().pair().phone
    phone.text(text)
    assert phone.envelopes() == []
    assert phone.is_open


@pytest.mark.parametrize("channel", ["desktop", "chat", "", "x" * 1000, None, 5])
def test_unknown_channel_is_answered_with_the_same_id(channel: object) -> None:
    phone = RelayHarness().pair().phone
    phone.text(json.dumps({"channel": channel, "type": "tui.attach", "id": "m-7", "payload": {}}))
    answer = phone.only()
    assert (answer["channel"], answer["type"], answer["id"]) == ("system", "error", "m-7")
    assert answer["payload"]["error"] == "unknown_channel"
    assert len(answer["payload"]["message"]) < 100
    assert phone.is_open


@pytest.mark.parametrize("ts", [12, 1.5, "now", {"a": 1}])
def test_ping_is_answered_with_its_ts(ts: object) -> None:
    phone = RelayHarness().pair().phone
    phone.send("system", "ping", {"ts": ts}, "p-1")
    assert phone.only() == {"channel": "system", "type": "pong", "id": "p-1", "payload": {"ts": ts}}


@pytest.mark.parametrize("payload", [None, {}, {"ts": None}, []])
def test_a_ping_without_ts_gets_the_time(book: RelayHarness, payload: object) -> None:
    phone = book.pair().phone
    phone.send("system", "ping", payload, "p-1")
    assert phone.only()["payload"] == {"ts": book.now.wall}


def test_messages_without_id_and_binary_ones() -> None:
    phone = RelayHarness().pair().phone
    phone.send("system", "ping", identity=None)
    assert len(phone.only()["id"]) == 36
    phone = RelayHarness().pair().phone
    phone.binary(b"\x00" * 100)
    phone.send("system", "ping", {"ts": 1})
    assert phone.only()["type"] == "pong"
    phone = RelayHarness().pair().phone
    phone.send("chat", "chat.send", {"message": "hi"}, "m-8")
    answer = phone.only()
    assert (answer["channel"], answer["type"], answer["id"]) == ("chat", "chat.error", "m-8")
    assert answer["payload"]["error"] == "unknown_channel"
    assert "API server" in answer["payload"]["message"]
    assert phone.is_open


@pytest.mark.parametrize("kind", ["pong", "auth", "error", "", "anything"])
def test_other_system_messages_are_ignored(kind: str) -> None:
    phone = RelayHarness().pair().phone
    phone.send("system", kind, {"pairing_code": "AAAAAA"})
    assert phone.envelopes() == []
    assert phone.is_open


def test_bridge_without_a_live_grant_is_refused_under_the_same_id(book: RelayHarness) -> None:
    paired = book.pair(operator={"grants": {"bridge": 60}})
    book.after(60)
    for kind in ("bridge.status", "bridge.response", "other"):
        paired.phone.send("bridge", kind, {"device": {}}, "b-1")
        answer = paired.phone.only()
        assert (answer["channel"], answer["type"], answer["id"]) == ("system", "error", "b-1")
        assert answer["payload"]["error"] == "grant_required"
    assert book.request("GET", "/bridge/status").status == 503
    assert paired.phone.is_open


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("bridge.command", {"request_id": "x", "method": "GET", "path": "/ping"}),
        ("other", {"a": 1}),
        ("", {"a": 1}),
        ("bridge.status", []),
        ("bridge.status", {}),
        ("bridge.status", None),
        ("bridge.response", "text"),
    ],
)
def test_other_bridge_messages_are_ignored_and_logged(book: RelayHarness, kind: str, payload: object) -> None:
    phone = book.pair(client_surface="desktop").phone
    phone.send("bridge", kind, payload)
    assert phone.envelopes() == []
    assert phone.is_open
    assert "ignored bridge message" in book.events(Level.DEBUG)
    assert book.request("GET", "/bridge/status").status == 503  # no client counts as a phone


@pytest.mark.parametrize("request_id", [None, 5, "unknown", ""])
def test_unmatched_response_is_ignored(book: RelayHarness, paired: PairedPhone, request_id: object) -> None:
    call = book.call("GET", "/ping", token=paired.token)
    paired.phone.send("bridge", "bridge.response", {"request_id": request_id, "status": 200, "result": {}})
    assert call.answer is None
    paired.phone.reply(paired.phone.command(), 200, {"late": False})
    assert call.result.json == {"late": False}


def post(book: RelayHarness, text: str = "Backup done") -> dict[str, object]:
    answer = book.request("POST", "/phone/message", {"text": text})
    assert answer.status == 200
    return dict(answer.json)


def test_owner_messages_reach_a_subscribed_phone_or_wait(book: RelayHarness, paired: PairedPhone) -> None:
    phone = paired.phone
    first = post(book, "one")
    assert (first["delivered"], first["queued"], first["buffered"]) == (False, True, 1)
    assert post(book, "two")["buffered"] == 2
    assert book.request("GET", "/phone/outbound").json["count"] == 2
    phone.send("proactive", "proactive.cancel", {"message_id": first["message_id"]}, "p")
    phone.send("proactive", "proactive.subscribe", {}, "p-1")
    told = phone.envelopes()
    assert (told[0]["channel"], told[0]["id"], told[0]["payload"]) == ("proactive", "p-1", {"ts": book.now.wall})
    kinds = [(each["type"], each["payload"].get("text")) for each in told]
    assert kinds == [("proactive.subscribed", None), ("phone.message", "two"), ("proactive.backlog.complete", None)]
    assert book.request("GET", "/phone/outbound").json["messages"] == []
    sent = post(book)
    message = phone.only()
    assert (message["channel"], message["type"]) == ("proactive", "phone.message")
    assert message["payload"]["text"] == "Backup done"
    assert sent == {"ok": True, "delivered": True, "message_id": message["payload"]["message_id"]}
    phone.send("proactive", "proactive.unsubscribe", {}, "p")
    assert post(book)["delivered"] is False
    phone.send("proactive", "proactive.subscribe", {}, "p")
    phone.close()
    assert post(book)["delivered"] is False
    assert book.request("DELETE", "/phone/outbound").json == {"ok": True, "deleted": 1}


def test_proactive_channel_needs_a_chat_grant_and_known_messages(book: RelayHarness, paired: PairedPhone) -> None:
    phone = book.pair(operator={"grants": {"chat": 60}}).phone
    phone.send("proactive", "proactive.subscribe", {}, "p")
    assert phone.only()["type"] == "proactive.subscribed"
    book.after(61)
    assert post(book)["buffered"] == 1
    phone.send("proactive", "proactive.subscribe", {}, "p")
    answer = phone.only()
    assert (answer["channel"], answer["payload"]["error"]) == ("system", "grant_required")
    assert post(book)["buffered"] == 2
    paired.phone.send("proactive", "proactive.dance", {}, "p")
    assert paired.phone.envelopes() == []


def test_notifications_go_to_the_other_nodes(
    book: RelayHarness, paired: PairedPhone, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[object] = []
    monkeypatch.setattr(book.relay.coordinator, "notification_received", lambda *each: passed.append(each))
    paired.phone.send("notifications", "notification.posted", {"title": "Mail"})
    assert passed == [(paired.prefix, {"title": "Mail"})]


def respond(phone: PhoneClient, result: str) -> None:
    """Answer the phone's one command; `result` is inserted into the message unchanged."""
    identity = phone.command()["request_id"]
    payload = f'{{"request_id":"{identity}","status":200,"result":{result}}}'
    phone.text(f'{{"channel":"bridge","type":"bridge.response","id":"r","payload":{payload}}}')


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (r'{"text":"cut \ud83d"}', {"text": "cut \ufffd"}),
        ('{"x":NaN,"y":-Infinity,"z":1e999}', {"x": None, "y": None, "z": None}),
        ('{"a":1,"a":2}', {"a": 2}),
        ('{"a":"x\ny"}', {"a": "x\ny"}),
    ],
)
def test_phone_results_are_read_leniently(book: RelayHarness, paired: PairedPhone, text: str, result: object) -> None:
    call = book.call("GET", "/ping", token=paired.token)
    respond(paired.phone, text)
    assert (call.result.status, call.result.json) == (200, result)
    assert "a peer deviates from JSON" in book.events(Level.WARNING)


@pytest.mark.parametrize("text", ['{"a":}', "[" * 70 + "]" * 70, '{"a":1'])
def test_unreadable_phone_result_fails_its_command_at_once(book: RelayHarness, paired: PairedPhone, text: str) -> None:
    call = book.call("GET", "/ping", token=paired.token)
    respond(paired.phone, text)
    assert call.result.status == 502
    assert call.result.json["error"].startswith("the phone's answer cannot be read: ")
    assert paired.phone.is_open


def test_notifications_are_read_leniently_and_other_channels_are_not(book: RelayHarness) -> None:
    phone = book.pair().phone
    posted = '{"package":"a.b","title":"x \\ud83d","title":"y \\ud83d","text":"z"}'
    phone.text(f'{{"channel":"notifications","type":"notification.posted","payload":{posted}}}')
    assert "ignored notification" not in book.events(Level.DEBUG)
    (row,) = book.request("GET", "/notifications/recent").json["notifications"]
    assert row["title"] == "y \ufffd"
    for text in ('{"channel":"system","type":"ping","payload":{"ts":NaN}}', '{"type":"bridge.response","x":}', "[NaN]"):
        phone.text(text)
    assert phone.envelopes() == []
