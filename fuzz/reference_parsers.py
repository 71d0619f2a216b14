"""The laws alone, in place of the plain lanes and the laws: for tests that have both do the same.

`disable_fast_paths()` turns the lanes off for a whole process. The product has no switch for it: nobody who runs it
needs one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from wsproto.frame_protocol import Frame, FrameProtocol

from svc_proto.basics.entropy import Entropy
from svc_proto.engine import client_channel, server_channel
from svc_proto.wire import websocket
from svc_proto.wire.connection import Role, ServerConnection
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import Limits
from svc_proto.wire.websocket_deflate import InflateGuard


class ReferenceServerConnection(Http1Connection, ServerConnection):
    """A server's connection that has every request and every answer event by event, by h11."""

    def __init__(self, *, limits: Limits, entropy: Entropy) -> None:
        super().__init__(Role.SERVER, limits=limits, entropy=entropy)


class ReferenceClientConnection(Http1Connection):
    """A call that is asked, and answered, event by event, by h11."""

    def __init__(self, *, limits: Limits, entropy: Entropy) -> None:
        super().__init__(Role.CLIENT, limits=limits, entropy=entropy)

    def try_whole_body(self, data: bytes) -> None:
        """It is asked event by event."""


class ReferenceFrameReader:
    """The frames of a WebSocket as wsproto reads them."""

    def __init__(self, client: bool, guard: InflateGuard) -> None:
        self._law = FrameProtocol(client, [guard])
        self.receive_bytes = self._law.receive_bytes

    def read_texts(self, data: bytes) -> tuple[list[str], bool]:
        """None: it is asked frame by frame."""
        self.receive_bytes(data)
        return [], True

    def next_frame(self) -> Frame | None:
        """The next frame, or what there is of it."""
        return next(self._law.received_frames(), None)

    def close(self) -> None:
        """Let go of all that has come."""
        self._law._parse_more.close()


def disable_fast_paths() -> None:
    """From now on connections of servers, calls, and all WebSockets of this process are the laws' alone."""
    for module, name, law in _LANES:
        setattr(module, name, law)


@contextmanager
def without_fast_paths() -> Iterator[None]:
    """Those that are made in here are."""
    lanes = [vars(module)[name] for module, name, _ in _LANES]
    disable_fast_paths()
    try:
        yield
    finally:
        for (module, name, _), lane in zip(_LANES, lanes, strict=True):
            setattr(module, name, lane)


_LANES: tuple[tuple[ModuleType, str, type], ...] = (
    (server_channel, "FastPathServerConnection", ReferenceServerConnection),
    (client_channel, "FastPathClientConnection", ReferenceClientConnection),
    (websocket, "FrameReader", ReferenceFrameReader),
)
