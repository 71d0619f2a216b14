"""Polling for changes without notifications."""

from __future__ import annotations

from collections.abc import Callable

from svc_proto.basics.errors import ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.mcp.polling import POLL_INTERVAL, watch_by_polling
from tests.mcp.stdio_harness import McpStdioHarness


def test_change_is_reported_once(peer: McpStdioHarness) -> None:
    engine: Engine = peer.engine
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
    peer.act(lambda: stops.append(watch_by_polling(engine, read, tell)))
    for _ in range(5):
        peer.after(POLL_INTERVAL)
    assert told == [round(2 * POLL_INTERVAL), round(5 * POLL_INTERVAL)]
    peer.act(stops[0])
    peer.after(10 * POLL_INTERVAL)
    assert next(words) == "c"  # polling has stopped
