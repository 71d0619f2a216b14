from functools import partial
from typing import Any

import pytest

from svc_proto.mcp.event_store import KEEPALIVE_INTERVAL
from svc_proto.mcp.subscriptions import MAX_LISTENING, UPDATE_INTERVAL
from svc_proto.wire.sse import encode_comment
from tests.mcp.http_harness import McpHttpHarness, McpHttpSession, events, status, stream_messages
from tests.mcp.stdio_harness import McpStdioHarness, ToyMcpServer, modern

SIGN = "shop://sign"
UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": SIGN}}


def test_updates_are_sent_once_a_second(shop: ToyMcpServer, peer: McpStdioHarness) -> None:
    peer.open()
    assert peer.request("resources/unsubscribe", uri=SIGN) == {}
    assert peer.request("resources/subscribe", uri=SIGN) == peer.request("resources/subscribe", uri=SIGN) == {}
    assert len(shop.watching) == 1
    assert [said for _ in range(5) for said in peer.act(shop.turn_sign)] == [UPDATED]
    assert peer.after(UPDATE_INTERVAL / 2) == []
    assert peer.act(shop.turn_sign) == []
    assert peer.after(UPDATE_INTERVAL / 2) == [UPDATED]
    assert peer.after(10 * UPDATE_INTERVAL) == []
    assert [said for _ in range(2) for said in peer.act(shop.turn_sign)] == [UPDATED]
    assert peer.request("resources/unsubscribe", uri=SIGN) == {}
    assert peer.after(UPDATE_INTERVAL) == []
    assert shop.watching == []


def test_invalid_subscriptions(shop: ToyMcpServer, peer: McpStdioHarness) -> None:
    assert peer.request("resources/subscribe", uri=SIGN)["code"] == -32600
    peer.open()
    refused = peer.request("resources/subscribe", uri="shop://photo")
    assert (refused["code"], "does not say when it changes" in refused["message"]) == (-32602, True)
    assert peer.request("resources/subscribe", uri="shop://nothing")["code"] == -32002
    assert peer.request("resources/subscribe", **modern(uri=SIGN))["code"] == -32601
    assert peer.request("subscriptions/listen", notifications={})["code"] == -32601
    for wrong in ({}, {"notifications": 5}, {"notifications": {"resourceSubscriptions": 5}}, None):
        params = modern(notifications={"resourceSubscriptions": [5]}) if wrong is None else modern(**wrong)
        assert peer.request("subscriptions/listen", **params)["code"] == -32602


def test_updates_wait_for_a_slow_client_and_end_with_it(shop: ToyMcpServer, peer: McpStdioHarness) -> None:
    def hold(holding: bool) -> list[Any]:
        return peer.act(partial(peer.server.set_read_paused, holding))

    peer.open()
    assert hold(True) == []  # without a subscription
    peer.request("resources/subscribe", uri=SIGN)
    assert hold(True) == []
    for _ in range(3):
        assert peer.act(shop.turn_sign) == []
        assert peer.after(UPDATE_INTERVAL) == []
    assert hold(False) == [UPDATED]
    assert hold(True) == peer.act(shop.turn_sign) == hold(False) == []  # an update was just sent
    assert peer.after(UPDATE_INTERVAL) == [UPDATED]
    peer.stop()
    assert shop.watching == []


def subscribed(web: McpHttpHarness) -> McpHttpSession:
    session = web.open()
    assert session.request("resources/subscribe", uri=SIGN) == {}
    return session


def test_listening_client_receives_events(web: McpHttpHarness) -> None:
    session = subscribed(web)
    listening, other = session.listen(), web.open().listen()
    web.book.within(web.shop.turn_sign)
    assert (stream_messages(listening), stream_messages(other)) == ([UPDATED], [])
    assert [event.id for event in events(listening)] == ["0-1"]
    assert stream_messages(session.listen()) == []  # sent already
    assert stream_messages(session.listen("0-0")) == [UPDATED]
    session.end()
    assert web.shop.watching == []


def test_returning_client_finds_each_change_once(web: McpHttpHarness) -> None:
    session = subscribed(web)
    for _ in range(200):
        web.book.within(web.shop.turn_sign)
        web.book.after(UPDATE_INTERVAL)
    listening = session.listen("0-3")
    assert stream_messages(listening) == [UPDATED]
    assert [event.id for event in events(listening)] == ["0-200"]
    assert listening.answer is None  # still open


SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def note(identity: object, method: str, **params: object) -> dict[str, object]:
    params["_meta"] = {SUBSCRIPTION: identity}
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


def acknowledged(identity: object, **notifications: object) -> dict[str, object]:
    return note(identity, "subscriptions/acknowledged", notifications=notifications)


def listening(*uris: object, **more: object) -> dict[str, Any]:
    return modern(notifications={"resourceSubscriptions": list(uris), **more})


def end_of(identity: object) -> dict[str, object]:
    info = {"name": "shop", "title": "Shop", "version": "1"}
    meta = {SUBSCRIPTION: identity, "io.modelcontextprotocol/serverInfo": info}
    return {"jsonrpc": "2.0", "id": identity, "result": {"resultType": "complete", "_meta": meta}}


def test_stateless_subscription_request(shop: ToyMcpServer, peer: McpStdioHarness) -> None:
    asked = listening(SIGN, "shop://photo", "shop://nothing", SIGN, toolsListChanged=True)
    (told,) = peer.send(id="l", method="subscriptions/listen", params=asked)
    assert told == acknowledged("l", resourceSubscriptions=[SIGN])
    assert peer.send(id=5, method="subscriptions/listen", params=modern(notifications={})) == [acknowledged(5)]
    updated = note("l", "resources/updated", uri=SIGN)
    assert peer.act(shop.turn_sign) == [updated]
    assert peer.act(shop.turn_sign) == []
    assert peer.after(UPDATE_INTERVAL) == [updated]
    assert peer.send(method="notifications/cancelled", params={"requestId": "l"}) == []
    assert (shop.watching, peer.after(UPDATE_INTERVAL)) == ([], [])
    assert peer.end() == [end_of(5)]
    assert peer.is_closed


def test_subscription_request_waits_for_its_reader(shop: ToyMcpServer, peer: McpStdioHarness) -> None:
    peer.send(id="l", method="subscriptions/listen", params=listening(SIGN))
    assert peer.act(partial(peer.server.set_read_paused, True)) == peer.act(shop.turn_sign) == []
    assert peer.act(partial(peer.server.set_read_paused, False)) == [note("l", "resources/updated", uri=SIGN)]
    assert peer.stop() == [end_of("l")]
    assert shop.watching == []


def test_subscription_requests_are_limited(web: McpHttpHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_LISTENING > 1
    monkeypatch.setattr("svc_proto.mcp.subscriptions.MAX_LISTENING", 1)
    first = web.stateless("subscriptions/listen", notifications={})
    assert web.stateless("subscriptions/listen", notifications={}).result.json["error"]["code"] == -32000
    first.vanish()
    assert stream_messages(web.stateless("subscriptions/listen", notifications={})) == [acknowledged(1)]


def test_subscription_request_over_http(web: McpHttpHarness) -> None:
    call = web.stateless("subscriptions/listen", notifications={"resourceSubscriptions": [SIGN]})
    assert (status(call), stream_messages(call)) == (200, [acknowledged(1, resourceSubscriptions=[SIGN])])
    assert [event.id for event in events(call)] == [""]  # the stream cannot be resumed
    for _ in range(3):
        web.book.within(web.shop.turn_sign)
        web.book.after(UPDATE_INTERVAL)
    assert stream_messages(call)[1:] == [note(1, "resources/updated", uri=SIGN)] * 3
    web.book.after(KEEPALIVE_INTERVAL)
    assert encode_comment("keepalive") in bytes(call.heard)
    call.vanish()
    assert web.shop.watching == []
    assert web.book.leaks() == []


def test_end_of_subscription_requests(web: McpHttpHarness) -> None:
    mine = web.stateless("subscriptions/listen", notifications={})
    (caller,) = web.server._answers
    web.book.within(lambda: web.server.close_principal_sessions("another client"))
    assert mine.answer is None
    web.book.within(lambda: web.server.close_principal_sessions(caller))
    assert (stream_messages(mine)[1:], mine.answer is not None) == ([end_of(1)], True)
    other = web.stateless("subscriptions/listen", notifications={"resourceSubscriptions": [SIGN]})
    web.book.stop()
    assert (stream_messages(other)[1:], web.shop.watching) == ([end_of(1)], [])


def test_listening_session_is_kept_before_silent_ones(web: McpHttpHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_proto.mcp.streamable_http.MAX_PRINCIPALS", 2)
    first = web.stateless("subscriptions/listen", notifications={})
    web.open(token=web.book.pair().token)
    web.token = web.book.pair().token
    second = web.stateless("subscriptions/listen", notifications={})
    assert (len(stream_messages(first)), len(stream_messages(second))) == (1, 1)
    web.open(token=web.book.pair().token)
    assert (stream_messages(first)[1:], len(stream_messages(second))) == ([end_of(1)], 1)


def test_recently_used_caller_is_kept(web: McpHttpHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_proto.mcp.streamable_http.MAX_PRINCIPALS", 2)
    tokens = [web.token, *(web.book.pair().token for _ in range(2))]
    calls = []
    for web.token in (*tokens[:2], tokens[0], tokens[2]):
        calls.append(web.stateless("subscriptions/listen", notifications={}))
    assert [stream_messages(call)[1:] for call in calls] == [[], [end_of(1)], [], []]
