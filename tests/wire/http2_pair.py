"""Helpers for HTTP/2: our client or server with bare h2 as its peer."""

import struct
from typing import TypeVar

import h2.events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings

from svc_proto.wire.connection import Role
from svc_proto.wire.events import Event, StreamId, StreamReset
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.wire.connection_pair import drain, feed, merged, seeded

E = TypeVar("E", bound=h2.events.Event)
SETTINGS = 4  # the type of a frame
GET = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/health?x=1"), (b":authority", b"a")]
POST = [(b":method", b"POST"), *GET[1:]]
CONNECT = [(b":method", b"CONNECT"), *GET[1:], (b":protocol", b"websocket"), (b"sec-websocket-version", b"13")]


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    """Return an HTTP/2 frame; its parts are not checked."""
    return len(payload).to_bytes(3, "big") + struct.pack(">BBL", kind, flags, stream) + payload


class Bare:
    """Peer of our HTTP/2 connection: h2 without its checks of outgoing headers, so that it can break rules."""

    def __init__(self, us: Http2Connection, *, client: bool) -> None:
        self.us = us
        self.heard: list[h2.events.Event] = []
        self.h2 = H2Connection(
            H2Configuration(
                client_side=client,
                header_encoding=None,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
                validate_inbound_headers=False,
            )
        )
        if not client:
            opens = {SettingCodes.ENABLE_CONNECT_PROTOCOL: 1}
            self.h2.local_settings = Settings(client=False, initial_values=opens)
        self.h2.initiate_connection()

    def talk(self, more: bytes = b"") -> list[Event]:
        """Exchange bytes until both sides are idle; return the events of our connection."""
        events: list[Event] = []
        while (data := self.h2.data_to_send() + more) + (ours := self.us.data_to_send()):
            more = b""
            events += feed(self.us, data)
            self.heard += self.h2.receive_data(ours)
            events += drain(self.us)
        return merged(events)

    def last(self, kind: type[E]) -> list[E]:
        return [event for event in self.heard if isinstance(event, kind)]


class BareClient(Bare):
    """h2 as client of our server."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(Http2Connection(Role.SERVER, limits=limits, entropy=seeded()), client=True)
        assert self.talk() == []


class BareServer(Bare):
    """h2 as server of our client."""

    def __init__(self, *, deflate: bool = True) -> None:
        super().__init__(Http2Connection(Role.CLIENT, entropy=seeded(), deflate=deflate), client=False)
        assert self.talk() == []


def resets(events: list[Event]) -> list[StreamId]:
    return [event.stream for event in events if isinstance(event, StreamReset)]
