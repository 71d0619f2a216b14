"""Suite of an external parser that reads our event streams: eventsource (npm)."""

import time
import urllib.request
from pathlib import Path

from tests.conformance.external_tools import echo_server, npm_package, program, run_json
from tests.conformance.result import Result

HERE = Path(__file__).parent
EVENTSOURCE = "eventsource@4.1.1"
WITHIN = 60.0  # s for all streams
NOTICED_WITHIN = 5.0  # s until the server has noticed a connected or disconnected client
GREET = ("greet", "hello", "1")
FIVE = [GREET, ("message", "line one\nline two", "2"), ("message", "café", "2"), ("message", "", "2")]
FIVE.append(("message", "last", "3"))


def eventsource(runtime: str) -> Result:
    """Read each stream with eventsource, which reconnects after `retry` with the last id, and compare the events."""
    env = {"NODE_PATH": str(npm_package(EVENTSOURCE))}
    with echo_server(runtime) as port:
        seen = run_json((program("node"), HERE / "client_eventsource.cjs", _url(port)), within=WITHIN, env=env)
        left = open_streams(port)
    result = Result(f"event streams, {EVENTSOURCE} on {runtime}")
    # For an event without an id, eventsource reports none; the standard requires the last one. On reconnecting it sends
    # the right one.
    five = [event if event[2] != "2" or "line" in event[1] else (*event[:2], "") for event in FIVE]
    result.compare("plain, and back", _triples(seen["plain"]), [*five, ("resumed", "3", "")])
    result.compare("slow", _triples(seen["slow"]), five)
    result.compare("endless", _triples(seen["endless"]), [("tick", "tick", "")] * 3)
    result.compare("gone", left, 0)
    return result


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _triples(events: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    return [(event["type"], event["data"], event["id"]) for event in events]


def open_streams(port: int, wanted: int = 0) -> int:
    """Return the number of open endless streams, as soon as it is `wanted` or after `NOTICED_WITHIN` seconds."""
    until = time.monotonic() + NOTICED_WITHIN
    while True:
        with urllib.request.urlopen(f"{_url(port)}/sse-open", timeout=NOTICED_WITHIN) as answer:
            count = int(answer.read())
        if count == wanted or time.monotonic() > until:
            return count
