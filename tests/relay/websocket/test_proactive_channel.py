"""The channel `proactive`: subscription, backlog and grant."""

from __future__ import annotations

from tests.relay.harness import PairedPhone, RelayHarness


def post(book: RelayHarness, text: str = "Backup done") -> dict[str, object]:
    answer = book.request("POST", "/phone/message", {"text": text})
    assert answer.status == 200
    return dict(answer.json)


def test_message_reaches_a_subscribed_phone(book: RelayHarness, paired: PairedPhone) -> None:
    phone = paired.phone
    phone.send("proactive", "proactive.subscribe", {}, "p-1")
    assert phone.only() == {
        "channel": "proactive", "type": "proactive.subscribed", "id": "p-1", "payload": {"ts": book.now.wall}
    }  # fmt: skip
    sent = post(book)
    message = phone.only()
    assert (message["channel"], message["type"]) == ("proactive", "phone.message")
    assert message["payload"]["text"] == "Backup done"
    assert sent == {"ok": True, "delivered": True, "message_id": message["payload"]["message_id"]}


def test_queued_messages_are_delivered_with_the_marker(book: RelayHarness, paired: PairedPhone) -> None:
    first = post(book, "one")
    assert {**first, "message_id": ""} == {
        "ok": True, "delivered": False, "queued": True, "buffered": 1, "message_id": ""
    }  # fmt: skip
    assert post(book, "two")["buffered"] == 2
    assert book.request("GET", "/phone/outbound").json["count"] == 2
    paired.phone.send("proactive", "proactive.cancel", {"message_id": first["message_id"]}, "p")
    paired.phone.send("proactive", "proactive.subscribe", {}, "p")
    kinds = [(each["type"], each["payload"].get("text")) for each in paired.phone.envelopes()]
    assert kinds == [
        ("proactive.subscribed", None), ("phone.message", "two"), ("proactive.backlog.complete", None)
    ]  # fmt: skip
    assert book.request("GET", "/phone/outbound").json["messages"] == []


def test_message_waits_after_the_phone_has_left(book: RelayHarness, paired: PairedPhone) -> None:
    paired.phone.send("proactive", "proactive.subscribe", {}, "p")
    paired.phone.send("proactive", "proactive.unsubscribe", {}, "p")
    assert post(book)["delivered"] is False
    paired.phone.send("proactive", "proactive.subscribe", {}, "p")
    paired.phone.close()
    assert post(book)["delivered"] is False
    assert book.request("DELETE", "/phone/outbound").json == {"ok": True, "deleted": 1}


def test_channel_needs_a_chat_grant(book: RelayHarness) -> None:
    phone = book.pair(operator={"grants": {"chat": 60}}).phone
    phone.send("proactive", "proactive.subscribe", {}, "p")
    assert phone.only()["type"] == "proactive.subscribed"
    book.after(61)
    assert post(book)["buffered"] == 1
    phone.send("proactive", "proactive.subscribe", {}, "p")
    answer = phone.only()
    assert (answer["channel"], answer["payload"]["error"]) == ("system", "grant_required")
    assert post(book)["buffered"] == 2


def test_unknown_message_is_ignored(book: RelayHarness, paired: PairedPhone) -> None:
    paired.phone.send("proactive", "proactive.dance", {}, "p")
    assert paired.phone.envelopes() == []
