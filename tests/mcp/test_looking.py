"""Changes that nobody tells of."""

from __future__ import annotations

from svc_proto.basics.errors import ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.mcp.looking import EVERY, watch_by_looking
from tests.mcp.desk import Desk, Shop


def test_a_change_is_told_once(desk: Desk, shop: Shop) -> None:
    engine: Engine = desk.engine
    words = iter(["a", "a", "b", None, "b", "c", "c"])
    told: list[float] = []

    def read() -> Flow[str]:
        yield from ()
        word = next(words)
        if word is None:
            raise ToolError("it is not there")
        return word

    stops = []
    shop.on_echo = lambda: stops.append(
        watch_by_looking(engine, read, lambda: told.append(round(engine.now.mono - begun)))
    )
    desk.open()
    begun = engine.now.mono
    desk.say(id=99, method="tools/call", params={"name": "echo"})
    for _ in range(5):
        desk.after(EVERY)
    assert told == [round(2 * EVERY), round(5 * EVERY)]
    shop.on_echo = stops[0]
    desk.say(id=99, method="tools/call", params={"name": "echo"})
    desk.after(10 * EVERY)
    assert next(words) == "c"  # nobody looks any more
