from __future__ import annotations

import pytest

from svc_proto.cli.operator_requests import local_relay
from svc_proto.cli.owner_messages import message_line, send_message, wait_for_replies
from svc_proto.commands import Exit
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from tests.cli.harness import OneShotHarness, Reply, UpstreamRequest, as_json

RELAY = local_relay(RelayConfig())


def test_message_is_sent() -> None:
    answer = {"ok": True, "delivered": True, "message_id": "m"}
    world = OneShotHarness(lambda engine: send_message(engine, RELAY, "Hi", "T"), http=as_json(answer))
    assert world.run() == answer
    assert (world.asked[0].path, world.asked[0].json) == ("/phone/message", {"text": "Hi", "title": "T"})


def test_refusal_is_explained() -> None:
    refused = as_json({"error": "loopback only"}, 403)
    world = OneShotHarness(lambda engine: send_message(engine, RELAY, "Hi", None), http=refused)
    reason = f"the relay at {RELAY.url} accepts this only from its own host: loopback only (status 403)"
    assert world.fails() == Exit(1, reason)


def test_wait_ends_with_the_first_replies() -> None:
    replies = iter([[], [{"text": "Yes"}, {"text": "No"}]])

    def answer(asked: UpstreamRequest) -> Reply:
        return as_json({"ok": True, "replies": next(replies)})

    world = OneShotHarness(lambda engine: wait_for_replies(engine, RELAY, 60.0), http=answer)
    assert world.run() == [{"text": "Yes"}, {"text": "No"}]
    assert [asked.path for asked in world.asked] == ["/phone/replies?timeout=25"] * 2


def test_wait_ends_without_a_reply() -> None:
    world = OneShotHarness(lambda engine: wait_for_replies(engine, RELAY, 0.0))
    assert world.run() == []


@pytest.mark.parametrize(
    ("sent", "line"),
    [
        ({"delivered": True}, "Delivered to the phone."),
        (
            {"delivered": False, "buffered": 3},
            "No phone listens: the message waits in the queue (3) until one connects.",
        ),
    ],
)
def test_line(sent: dict[str, object], line: str) -> None:
    assert message_line(JsonObject(sent)) == line
