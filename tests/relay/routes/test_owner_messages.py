"""Messages to the owner and their replies: routes for programs of this host, and the list of threads for phones."""

from tests.relay.harness import REMOTE, PairedPhone, RelayHarness


def test_replies_end_a_waiting_request(book: RelayHarness, paired: PairedPhone) -> None:
    call = book.call("GET", "/phone/replies?timeout=30")
    book.after(5)
    paired.phone.send("proactive", "proactive.reply", {"text": "Thanks", "client_msg_id": "k1"}, "p-2")
    ack = paired.phone.only()
    assert (ack["type"], ack["id"]) == ("proactive.reply.ack", "p-2")
    assert ack["payload"] == {"client_msg_id": "k1", "status": "accepted", "ts": book.now.wall}
    assert [reply["text"] for reply in call.result.json["replies"]] == ["Thanks"]
    assert book.request("GET", "/phone/replies").json == {"ok": True, "replies": [], "count": 0}
    call = book.call("GET", "/phone/replies?timeout=30")
    paired.phone.send("proactive", "proactive.reply", {"text": ""}, "p")
    assert paired.phone.only()["payload"]["status"] == "rejected"
    book.after(30)
    assert call.result.json["count"] == 0
    assert book.request("POST", "/phone/message", {"text": "Backup done"}).status == 200
    answer = book.request("GET", "/phone/threads", token=paired.token, peer=REMOTE)
    assert answer.json == {
        "ok": True, "threads": [{"session_id": None, "chat_id": "owner", "title": "Backup done"}]
    }  # fmt: skip


def test_reply_of_before_a_message_does_not_answer_it(book: RelayHarness, paired: PairedPhone) -> None:
    paired.phone.send("proactive", "proactive.reply", {"text": "Yes", "client_msg_id": "k1"}, "p-1")
    sent, other = (book.request("POST", "/phone/message", {"text": text}).json for text in ("Delete all?", "Lunch?"))
    call = book.call("GET", f"/phone/replies?timeout=30&message_id={sent['message_id']}")
    book.after(5)
    paired.phone.send("proactive", "proactive.reply", {"text": "Soup", "reply_to": other["message_id"]}, "p-3")
    paired.phone.send("proactive", "proactive.reply", {"text": "No", "client_msg_id": "k2"}, "p-2")
    assert [reply["text"] for reply in call.result.json["replies"]] == ["No"]
    assert book.request("GET", "/phone/replies?message_id=").status == 400
