"""The client's end of an event stream, for those who want each event as it comes (WHATWG HTML 9.2).

    answer = yield from fetch_events(engine, "POST", url, on_event=self.take, body=body)

`on_event` is called for each event. The answer comes when the stream has ended: `Fetched` with an empty body, a
`Fetched` with its body when the server sent no event stream, or a `Failure`. It is an `EventReader` that reads at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.engine.channel import Channel
from svc_proto.engine.client import Fetched
from svc_proto.engine.event_reader import EventReader, open_events
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.sse import ServerSentEvent

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["fetch_events"]


def fetch_events(
    engine: Engine,
    method: str,
    url: str,
    *,
    on_event: Callable[[ServerSentEvent], None],
    on_open: Callable[[Channel], None] | None = None,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    body: bytes = b"",
    within: float = 30.0,
    limits: Limits = DEFAULT_LIMITS,
    prior_knowledge: bool = False,
) -> Flow[Fetched | Failure]:
    """Make one request and read its events to the end. `within` seconds are for the connection and the head.

    `on_open` gets the channel once there is a stream, to `hold` it while the events have nowhere to go.
    """
    reader = yield from open_events(
        engine,
        method,
        url,
        headers=headers,
        body=body,
        connect_within=within,
        answer_within=within,
        limits=limits,
        prior_knowledge=prior_knowledge,
    )
    if not isinstance(reader, EventReader):
        return reader
    try:
        if on_open is not None:
            on_open(reader)
        while isinstance(batch := (yield from reader.read()), tuple):
            for event in batch:
                if not reader.gone:  # whoever listens may have had enough
                    on_event(event)
        return batch or reader.fetched
    finally:
        reader.drop()
