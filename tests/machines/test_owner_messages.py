from collections.abc import Mapping

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.machines.owner_messages import (
    MAX_METADATA,
    MAX_QUEUED,
    MAX_RATE,
    MAX_REPLIES,
    MAX_TEXT,
    MAX_THREADS,
    RATE_PERIOD,
    OwnerMessage,
    OwnerMessages,
    parse_message,
    parse_wait,
)
from tests.machines.fixed_inputs import at


def test_subscribers_receive_a_message_at_once() -> None:
    messages = OwnerMessages()
    assert messages.subscribe(3) == messages.subscribe(4) == []
    payload = messages.post(OwnerMessage(text="Done", title="Backup", metadata={"a": 1}), "m1", at(0))
    told = {"message_id": "m1", "chat_id": "owner", "text": "Done", "title": "Backup", "metadata": {"a": 1}}
    assert payload == {**told, "surfacing": None, "reply_to": None, "sent_at": int(at(0).wall * 1000)}
    messages.unsubscribe(3)
    assert messages.post(OwnerMessage(text="For the other one"), "m0", at(1)) is not None
    messages.unsubscribe(4)
    assert messages.post(OwnerMessage(text="Later"), "m2", at(1)) is None


def test_queue_and_rate_are_limited() -> None:
    messages = OwnerMessages()
    for number in range(MAX_QUEUED + 2):
        messages.post(OwnerMessage(text=str(number)), f"m{number}", at(number * RATE_PERIOD))
    messages.cancel("m5")
    messages.cancel("unknown")
    for number in range(MAX_QUEUED + 2, MAX_QUEUED + 4):
        messages.post(OwnerMessage(text=str(number)), f"m{number}", at(number * RATE_PERIOD))
    backlog = messages.subscribe(1)
    assert [each["text"] for each in backlog] == [str(n) for n in range(3, MAX_QUEUED + 4) if n != 5]
    assert all(each["queued_delivery"] is True for each in backlog)
    assert messages.outbound() == []
    messages = OwnerMessages()
    messages.post(OwnerMessage(text="a"), "m", at(0))
    assert (messages.clear(), messages.clear(), messages.subscribe(1)) == (1, 0, [])
    messages = OwnerMessages()
    for number in range(MAX_RATE):
        messages.post(OwnerMessage(text="a"), "m", at(number))
    with pytest.raises(Refused) as caught:
        messages.post(OwnerMessage(text="a"), "m", at(RATE_PERIOD - 0.5))
    assert (caught.value.status, caught.value.headers) == (429, ((b"retry-after", b"1"),))
    messages.post(OwnerMessage(text="a"), "m", at(RATE_PERIOD))


def test_threads_are_listed_latest_first_under_their_title() -> None:
    messages = OwnerMessages()
    for number in range(MAX_THREADS + 1):
        messages.post(OwnerMessage(text="x", chat_id=f"c{number}"), "m", at(number * RATE_PERIOD))
    messages.post(OwnerMessage(text="y", title="News", chat_id="c7", session_id="s"), "m", at(1e6))
    messages.post(OwnerMessage(text="z", chat_id="c7"), "m", at(2e6))
    threads = messages.threads()
    assert (len(threads), threads[0]) == (MAX_THREADS, {"session_id": None, "chat_id": "c7", "title": "News"})
    assert "c0" not in [thread["chat_id"] for thread in threads]


def test_replies_are_fetched_once() -> None:
    messages = OwnerMessages()
    given = {"text": "Yes", "chat_id": "c1", "reply_to": "m1", "client_msg_id": "k", "message_id": 5}
    assert messages.add_reply(given, "Pixel", at(1))
    kept = {**given, "message_id": None, "device_name": "Pixel", "received_at": at(1).wall}
    assert messages.take_replies() == [kept]
    assert messages.take_replies() == []
    for number in range(MAX_REPLIES + 1):
        messages.add_reply({"text": f"{number}" * MAX_TEXT}, "Pixel", at(1))
    found = messages.take_replies()
    assert (len(found), len(str(found[-1]["text"])), found[0]["chat_id"]) == (MAX_REPLIES, MAX_TEXT, "owner")


def test_replies_to_one_message_are_fetched_apart() -> None:
    messages = OwnerMessages()
    messages.add_reply({"text": "fetched"}, "Pixel", at(0))
    messages.take_replies()
    messages.add_reply({"text": "early"}, "Pixel", at(0))
    for number in (1, 2):
        messages.post(OwnerMessage(text="Sure?"), f"m{number}", at(number))
    for text, names in (
        ("unnamed", {}),
        ("named", {"reply_to": "m1"}),
        ("also named", {"message_id": "m1"}),
        ("in the thread of m2", {"reply_to": "m1", "message_id": "m2"}),
        ("other", {"reply_to": "m2"}),
        ("to a push", {"reply_to": "x"}),
    ):
        messages.add_reply({"text": text, **names}, "Pixel", at(3))
    messages.post(OwnerMessage(text="Now?"), "m3", at(4))

    def taken(message_id: str | None = None) -> list[object]:
        return [reply["text"] for reply in messages.take_replies(message_id)]

    assert taken("m3") == taken("unknown") == []
    assert taken("m1") == ["unnamed", "named", "also named", "in the thread of m2", "to a push"]
    assert taken("m2") == ["other"]
    assert taken() == ["early"]


@pytest.mark.parametrize("text", [None, "", "  ", 5])
def test_reply_without_text_is_rejected(text: object) -> None:
    messages = OwnerMessages()
    assert not messages.add_reply({"text": text}, "Pixel", at(0))
    assert messages.take_replies() == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": " "}, "text"),
        ({"text": "x" * (MAX_TEXT + 1)}, "text"),
        ({"text": "x", "title": "a\nb"}, "title"),
        ({"text": "x", "chat_id": ""}, "chat_id"),
        ({"text": "x", "surfacing": "loud"}, "surfacing"),
        ({"text": "x", "metadata": []}, "metadata"),
        ({"text": "x", "metadata": {"a": "x" * (MAX_METADATA - 7)}}, "metadata"),
    ],
)
def test_bad_message_is_refused(body: Mapping[str, object], field: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_message(body)
    assert (caught.value.status, caught.value.extra["field"]) == (400, field)


def test_message_is_parsed() -> None:
    body = {"text": " Hi ", "title": "T", "chat_id": "c", "session_id": "s", "surfacing": "inbox", "reply_to": "m"}
    assert parse_message({**body, "metadata": {}}) == OwnerMessage(
        text="Hi", title="T", chat_id="c", session_id="s", surfacing="inbox", reply_to="m", metadata={}
    )
    assert parse_message({"text": "Hi", "title": None}) == OwnerMessage(text="Hi")
    text, metadata = "x" * MAX_TEXT, {"a": "x" * (MAX_METADATA - len('{"a":""}'))}
    assert parse_message({"text": text, "metadata": metadata}) == OwnerMessage(text=text, metadata=metadata)


@pytest.mark.parametrize(("value", "seconds"), [(None, 0.0), ("0", 0.0), (" 7 ", 7.0), ("31", 30.0)])
def test_wait(value: str | None, seconds: float) -> None:
    assert parse_wait(value) == seconds


@pytest.mark.parametrize("value", ["", "-1", "1.5", "\u0665"])
def test_bad_wait_is_refused(value: str) -> None:
    with pytest.raises(Refused):
        parse_wait(value)
