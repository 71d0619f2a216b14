"""Changes that nobody tells of."""

from __future__ import annotations

from collections.abc import Callable

from svc_proto.basics.errors import ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.mcp.polling import EVERY, watch_by_looking
from tests.mcp.stdio_harness import Desk


def test_a_change_is_told_once(desk: Desk) -> None:
    engine: Engine = desk.engine
    words = iter(["a", "a", "b", None, "b", "c", "c"])
    told: list[float] = []

    def read() -> Flow[str]:
        yield from ()
        word = next(words)
        if word is None:
            raise ToolError("it is not there")
        return word

    def tell() -> None:
        told.append(round(engine.now.mono - begun))

    stops: list[Callable[[], None]] = []
    begun = engine.now.mono
    desk.act(lambda: stops.append(watch_by_looking(engine, read, tell)))
    for _ in range(5):
        desk.after(EVERY)
    assert told == [round(2 * EVERY), round(5 * EVERY)]
    desk.act(stops[0])
    desk.after(10 * EVERY)
    assert next(words) == "c"  # nobody looks any more
