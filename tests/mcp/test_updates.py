"""Updates of resources: who is told, how often, and what a slow reader finds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from svc_proto.mcp.call import MODERN
from svc_proto.mcp.updates import EVERY
from tests.mcp.desk import Desk, Shop, modern
from tests.mcp.web import Web, events, message

SIGN = "shop://sign"
UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": SIGN}}


def during(shop: Shop, desk: Desk, what: Callable[[], None], times: int = 1) -> list[Any]:
    """Something happens as many times; what is told beside the answers of the tool that does it."""
    shop.on_echo = what
    said = [each for _ in range(times) for each in desk.say(id=99, method="tools/call", params={"name": "echo"})]
    assert len([each for each in said if each.get("id") == 99]) == times
    return [each for each in said if "method" in each]


def turn(shop: Shop, desk: Desk, times: int = 1) -> list[Any]:
    return during(shop, desk, shop.turn_sign, times)


def turn_on_the_web(web: Web, session: str) -> None:
    web.shop.on_echo = web.shop.turn_sign
    assert web.tool(session, "echo").result.status == 200


def test_a_client_is_told_once_a_second(shop: Shop, desk: Desk) -> None:
    assert desk.open()["capabilities"]["resources"] == {"subscribe": True}
    assert desk.ask("resources/unsubscribe", uri=SIGN) == {}
    assert desk.ask("resources/subscribe", uri=SIGN) == desk.ask("resources/subscribe", uri=SIGN) == {}
    assert len(shop.watching) == 1
    assert turn(shop, desk, 5) == [UPDATED]
    assert desk.after(EVERY / 2) == []
    assert turn(shop, desk) == []
    assert desk.after(EVERY / 2) == [UPDATED]
    assert desk.after(10 * EVERY) == []
    assert turn(shop, desk, 2) == [UPDATED]
    assert desk.ask("resources/unsubscribe", uri=SIGN) == {}
    assert desk.after(EVERY) == []
    assert shop.watching == []


def test_what_cannot_be_subscribed(shop: Shop, desk: Desk) -> None:
    assert desk.ask("resources/subscribe", uri=SIGN)["code"] == -32600
    desk.open()
    assert desk.ask("resources/subscribe", uri="shop://photo")["code"] == -32602
    assert desk.ask("resources/subscribe", uri="shop://nothing")["code"] == -32002
    assert desk.ask("resources/subscribe", **modern(uri=SIGN))["code"] == -32601
    found = desk.ask("server/discover", **modern())
    assert (MODERN in found["supportedVersions"], found["capabilities"]["resources"]) == (True, {})


def test_lines_wait_for_a_client_that_does_not_read(shop: Shop, desk: Desk) -> None:
    def hold(holding: bool) -> list[Any]:
        return during(shop, desk, partial(desk.server.hold, holding))

    desk.open()
    assert hold(True) == []  # it has subscribed to nothing
    desk.ask("resources/subscribe", uri=SIGN)
    assert hold(True) == []
    for _ in range(3):
        assert turn(shop, desk) == []
        assert desk.after(EVERY) == []
    assert hold(False) == [UPDATED]
    assert hold(True) == turn(shop, desk) == hold(False) == []  # a round has just been
    assert desk.after(EVERY) == [UPDATED]


def test_the_end_of_a_client(shop: Shop, desk: Desk) -> None:
    desk.open()
    desk.ask("resources/subscribe", uri=SIGN)
    desk.stop()
    assert shop.watching == []


def subscribed(web: Web) -> str:
    session = web.open()
    assert web.post(message("resources/subscribe", uri=SIGN), web.of(session)).json["result"] == {}
    return session


def listen(web: Web, session: str, **headers: str) -> Any:
    return web.call("GET", headers=web.of(session, **headers))


def test_who_listens_is_told_as_events(web: Web) -> None:
    session = subscribed(web)
    listening = listen(web, session)
    turn_on_the_web(web, session)
    assert web.told(listening) == [UPDATED]
    assert [event.id for event in events(listening)] == ["0-1"]
    assert web.told(listen(web, session)) == []  # it was told already
    assert web.told(listen(web, session, **{"last-event-id": "0-0"})) == [UPDATED]
    web.call("DELETE", headers=web.of(session))
    assert web.shop.watching == []


def test_who_does_not_listen_finds_each_change_once(web: Web) -> None:
    session = subscribed(web)
    for _ in range(200):
        turn_on_the_web(web, session)
        web.book.after(EVERY)
    listening = listen(web, session, **{"last-event-id": "0-3"})
    assert web.told(listening) == [UPDATED]
    assert [event.id for event in events(listening)] == ["0-200"]
    assert listening.answer is None  # it goes on


def test_sessions_have_their_own(web: Web) -> None:
    mine, other = subscribed(web), web.open()
    listening, quiet = listen(web, mine), listen(web, other)
    turn_on_the_web(web, mine)
    assert (web.told(listening), web.told(quiet)) == ([UPDATED], [])
