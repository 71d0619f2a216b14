"""Memory of the core for each idle phone."""

import gc
import tracemalloc

import pytest

from bench.in_memory import MemoryRelay
from svc_proto.facts import ChannelId, Closed

PHONES = 50
BOUND = 4800  # bytes for each: 4,400 to 4,600 with CPython 3.11, by what ran before


@pytest.mark.unmeasured
@pytest.mark.fast_path  # a connection of wsproto that is never dropped takes more
def test_an_idle_phone_takes_little_memory() -> None:
    relay = MemoryRelay()
    relay.pair()  # so that what all phones share is allocated
    gc.collect()
    traced = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        phones = [ChannelId(100 + 2 * number) for number in range(PHONES)]
        for ch in phones:
            relay.pair(ch)
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / PHONES
    finally:
        if not traced:
            tracemalloc.stop()
    assert each < BOUND
    for ch in phones:
        relay.tell(Closed(ch))
    assert relay.engine.channel_count == 2  # the caller and the first phone
