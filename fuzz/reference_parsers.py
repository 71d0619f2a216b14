"""Reference implementations without fast paths, for fuzzers, simulations and benchmarks that compare the two.

`disable_fast_paths()` disables the fast paths for a whole process. The product has no switch for this, since no
operator needs one.
"""

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
    """Server connection that handles every request and response event by event, by h11."""

    def __init__(self, *, limits: Limits, entropy: Entropy) -> None:
        super().__init__(Role.SERVER, limits=limits, entropy=entropy)


class ReferenceClientConnection(Http1Connection):
    """Client connection that handles requests and responses event by event, by h11."""

    def __init__(self, *, limits: Limits, entropy: Entropy) -> None:
        super().__init__(Role.CLIENT, limits=limits, entropy=entropy)

    def try_whole_body(self, data: bytes) -> None:
        """Return None without reading `data`: the caller continues event by event."""


class ReferenceFrameReader:
    """WebSocket frame reader by wsproto."""

    def __init__(self, client: bool, guard: InflateGuard) -> None:
        self._reference = FrameProtocol(client, [guard])
        self.receive_bytes = self._reference.receive_bytes

    def read_texts(self, data: bytes) -> tuple[list[str], bool]:
        """Receive the data, and return no texts, so that the caller continues frame by frame."""
        self.receive_bytes(data)
        return [], True

    def next_frame(self) -> Frame | None:
        """Return the next frame, or a part of its payload; None when more bytes are needed."""
        return next(self._reference.received_frames(), None)

    def close(self) -> None:
        """Close wsproto's frame parser."""
        self._reference._parse_more.close()


def disable_fast_paths() -> None:
    """Use reference implementations for all new connections and WebSockets of this process."""
    for module, name, reference in _FAST_PATHS:
        setattr(module, name, reference)


@contextmanager
def without_fast_paths() -> Iterator[None]:
    """Use reference implementations for connections that are made in this context."""
    fast_paths = [vars(module)[name] for module, name, _ in _FAST_PATHS]
    disable_fast_paths()
    try:
        yield
    finally:
        for (module, name, _), fast_path in zip(_FAST_PATHS, fast_paths, strict=True):
            setattr(module, name, fast_path)


_FAST_PATHS: tuple[tuple[ModuleType, str, type], ...] = (
    (server_channel, "FastPathServerConnection", ReferenceServerConnection),
    (client_channel, "FastPathClientConnection", ReferenceClientConnection),
    (websocket, "FrameReader", ReferenceFrameReader),
)
