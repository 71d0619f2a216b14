"""WebSockets of the sans-IO HTTP drivers of the tests, by wsproto."""

from collections.abc import Iterator
from typing import Any

import h11
from wsproto import events as ws
from wsproto.connection import Connection as FrameConnection
from wsproto.connection import ConnectionState, ConnectionType
from wsproto.extensions import PerMessageDeflate
from wsproto.frame_protocol import XorMaskerSimple
from wsproto.utilities import LocalProtocolError as FrameError

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire import events
from tests.support.http_codec import Entropy

DEFLATE = b"permessage-deflate"
OFFER = DEFLATE + b"; client_max_window_bits"
EXTENSIONS = b"sec-websocket-extensions"
NO_CLOSE = 1006  # RFC 6455 section 7.1.5


class WebSocketCodec:
    """Frames of one WebSocket, by wsproto; the masks of a client come from the injected entropy."""

    def __init__(
        self, stream: events.StreamId, kind: ConnectionType, entropy: Entropy, extension: PerMessageDeflate | None
    ) -> None:
        self._stream = stream
        self._entropy = entropy if kind is ConnectionType.CLIENT else None
        self._frames = FrameConnection(kind, [extension] if extension is not None else [])
        self._out = bytearray()
        self._pieces: list[Any] = []  # of a message
        self.is_closed = False

    def data_to_send(self) -> bytes:
        data = bytes(self._out)
        self._out.clear()
        return data

    def send(self, event: events.Event) -> None:
        """Queue a message or a part, a ping, a pong or a close frame; raise LocalProtocolError for any other event.

        A close frame is dropped if the WebSocket is closing or closed; the other events are then errors too.
        """
        match event:
            case events.CloseWebSocket(code=code, reason=reason):
                if self._frames.state is ConnectionState.OPEN and not self.is_closed:
                    self._write(ws.CloseConnection(code=code, reason=reason or None))
            case events.TextMessage(text=text):
                self._write(ws.TextMessage(data=text))
            case events.TextFragment(text=text, is_last=is_last):
                self._write(ws.TextMessage(data=text, message_finished=is_last))
            case events.BinaryMessage(data=data):
                self._write(ws.BytesMessage(data=data))
            case events.Ping(payload=payload):
                self._write(ws.Ping(payload=payload))
            case events.Pong(payload=payload):
                self._write(ws.Pong(payload=payload))
            case _:
                raise LocalProtocolError(f"{type(event).__name__} cannot be sent on a WebSocket")

    def receive_data(self, data: bytes) -> Iterator[events.Event]:
        """Yield the events in bytes of the peer, which are empty for their end; nothing once the WebSocket is closed.

        Unless this side has sent a close frame, close frames, pings and violations are answered. Afterwards messages,
        pings and pongs are dropped.
        """
        if self.is_closed:
            return
        if not data:
            yield self._close(NO_CLOSE, "the peer closed without a close frame", clean=False)
            return
        self._frames.receive_data(data)
        for event in self._frames.events():
            yield from self._translate(event)

    def _translate(self, event: ws.Event) -> Iterator[events.Event]:
        stream, closing = self._stream, self._frames.state is ConnectionState.LOCAL_CLOSING
        match event:
            case ws.CloseConnection(code=code, reason=reason):
                if self._frames.state in (ConnectionState.REMOTE_CLOSING, ConnectionState.CLOSED):
                    if self._frames.state is ConnectionState.REMOTE_CLOSING:
                        self._write(ws.CloseConnection(code=code))
                    yield self._close(int(code), reason or "", clean=True)
                else:  # wsproto found a violation
                    if not closing:
                        self._write(ws.CloseConnection(code=code, reason=reason))
                    yield self._close(NO_CLOSE, reason or "", clean=False, ours=None if closing else int(code))
            case _ if closing:
                pass  # RFC 6455 section 1.4
            case ws.Ping(payload=payload):
                self._write(event.response())
                yield events.Ping(stream, bytes(payload))
            case ws.Pong(payload=payload):
                yield events.Pong(stream, bytes(payload))
            case ws.TextMessage() | ws.BytesMessage():
                self._pieces.append(event.data)
                if event.message_finished:
                    whole = self._pieces[0][:0].join(self._pieces)
                    self._pieces.clear()
                    yield (
                        events.TextMessage(stream, whole)
                        if isinstance(whole, str)
                        else events.BinaryMessage(stream, bytes(whole))
                    )

    def _close(self, code: int, reason: str, *, clean: bool, ours: int | None = None) -> events.WebSocketClosed:
        self.is_closed = True
        return events.WebSocketClosed(self._stream, code, reason, clean, ours)

    def _write(self, event: ws.Event) -> None:
        if self.is_closed:
            raise LocalProtocolError("the WebSocket is closed")
        try:
            frame = self._frames.send(event)
        except FrameError as error:
            raise LocalProtocolError(str(error)) from None
        self._out += frame if self._entropy is None else _mask_anew(frame, self._entropy(4))


def agreed_extension(headers: events.Headers, *, offered: bool) -> PerMessageDeflate | None:
    """Return the extension that the server's response agrees to, if any; raise `RemoteProtocolError` of h11."""
    chosen = headers.get(EXTENSIONS)
    if chosen is None:
        return None
    if not offered or chosen.partition(b";")[0].strip() != DEFLATE:
        raise h11.RemoteProtocolError("the server chose an extension that was not offered")
    extension = PerMessageDeflate()
    extension.finalize(chosen.decode())
    return extension


def subprotocol_of(headers: events.Headers) -> str | None:
    """Return the subprotocol of the server's response."""
    chosen = headers.get(b"sec-websocket-protocol")
    return None if chosen is None else chosen.decode()


def _mask_anew(frame: bytes, key: bytes) -> bytes:
    """Return a client's frame with its mask replaced by `key`."""
    start = 2 + {254: 2, 255: 8}.get(frame[1], 0)
    old = frame[start : start + 4]
    masker = XorMaskerSimple(bytes(a ^ b for a, b in zip(old, key, strict=True)))
    return frame[:start] + key + bytes(masker.process(bytearray(frame[start + 4 :])))
