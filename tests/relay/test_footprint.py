"""What the core keeps in memory for each idle phone."""

from __future__ import annotations

import gc
import json
import tracemalloc

import pytest

from bench.in_memory import CALLER, LOCAL, MemoryRelay
from bench.wire import auth_message, request, upgrade
from svc_proto.facts import Accepted, Address, ChannelId, Closed

PHONES = 50
BOUND = 4200  # bytes for each: 3,370 with CPython 3.11


def pair(relay: MemoryRelay, ch: ChannelId) -> ChannelId:
    answer = relay.sent(CALLER, request("POST", "/pairing"))
    code = json.loads(answer.partition(b"\r\n\r\n")[2])["code"]
    relay.tell(Accepted(ch, Address("127.0.0.1", 40_000 + ch), LOCAL))
    assert relay.sent(ch, upgrade()).startswith(b"HTTP/1.1 101")
    assert b"auth.ok" in relay.sent(ch, auth_message(code, f"phone-{ch}"))
    return ch


@pytest.mark.lane  # a connection of wsproto that is never dropped takes more
def test_an_idle_phone_takes_little_memory() -> None:
    relay = MemoryRelay()
    relay.pair()  # what all phones share is there then
    gc.collect()
    traced = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        phones = [pair(relay, ChannelId(100 + 2 * number)) for number in range(PHONES)]
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / PHONES
    finally:
        if not traced:
            tracemalloc.stop()
    assert each < BOUND
    for ch in phones:
        relay.tell(Closed(ch))
    assert relay.engine.channel_count == 2  # the caller and the first phone
