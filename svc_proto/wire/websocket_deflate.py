"""permessage-deflate (RFC 7692) with a limit on the inflated size of a message.

This replaces the extension class of wsproto, which has no such limit. That class also loses the compressed state of a
message when a control frame comes between its fragments, and lets malformed parameters escape as ValueError. The
replacement uses the same public hooks (`wsproto.extensions.Extension`), which `FrameProtocol` calls for each frame.

Our compression uses a window of at most 2**12 bytes: 25 KiB of memory per WebSocket instead of 256 KiB, for little loss
on short JSON. As a server we request the same of the client if its offer permits that.
"""

import re
import zlib
from collections.abc import Iterable
from functools import lru_cache

from wsproto.extensions import Extension
from wsproto.frame_protocol import CloseReason, FrameDecoder, FrameProtocol, Opcode, RsvBits

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.basics.fast_frozen import fast_frozen

__all__ = [
    "OFFER",
    "DeflateParameters",
    "Deflater",
    "InflateGuard",
    "accept_extension_offer",
    "parse_extension_response",
]

NAME = "permessage-deflate"
OFFER = b"permessage-deflate; client_max_window_bits"
MAX_OFFERS = 8  # cached offers; each is within a head
WINDOW_BITS = 12  # log2 of bytes, for our own compression
MEMORY_LEVEL = 5  # of zlib, 1 to 9
MAX_WINDOW_BITS = 15  # RFC 7692 section 7.1.2: the default
MIN_ZLIB_BITS = 9  # zlib writes no raw stream with a window of 2**8
MAX_FRAGMENTS = 65_536  # frames of one message
INFLATER = 8 * 1024  # bytes of zlib's state besides the window, zconf.h
TAIL = b"\x00\x00\xff\xff"  # RFC 7692 section 7.2.2: removed after compression, appended again before inflation
MAX_UNUSED = 1 + len(TAIL)  # bytes after a final block: RFC 7692 section 7.2.3.4 has one, then our tail
_BITS = re.compile(r'8|9|1[0-5]|"(?:8|9|1[0-5])"')  # RFC 7692 section 7.1.2.1: 8 to 15 without leading zeros

SERVER_NO_CONTEXT_TAKEOVER = "server_no_context_takeover"
CLIENT_NO_CONTEXT_TAKEOVER = "client_no_context_takeover"
SERVER_BITS = "server_max_window_bits"
CLIENT_BITS = "client_max_window_bits"


@fast_frozen(kw_only=True)
class DeflateParameters:
    """Agreed parameters of both ends. Window sizes are log2 of bytes."""

    server_max_window_bits: int = MAX_WINDOW_BITS
    client_max_window_bits: int = MAX_WINDOW_BITS
    server_no_context_takeover: bool = False
    client_no_context_takeover: bool = False


NO_DEFLATE = DeflateParameters()  # placeholder without an agreement; nothing is compressed then


def accept_extension_offer(values: Iterable[bytes]) -> tuple[DeflateParameters, bytes] | None:
    """Server: return the agreement and its `Sec-WebSocket-Extensions` value, or None if no offer is acceptable.

    `values` are the field values of the request. An offer with unknown or malformed parameters is declined, as RFC 7692
    section 7.1 requires, and the next one is tried.
    """
    return _accepted(tuple(values))


@lru_cache(maxsize=MAX_OFFERS)
def _accepted(values: tuple[bytes, ...]) -> tuple[DeflateParameters, bytes] | None:
    for name, offer in _extensions(values):
        if name != NAME or offer is None:
            continue
        # Without an agreement on it a compressor may still use a smaller window (RFC 7692 section 7.1.2.1), and some
        # clients refuse a parameter that they did not offer.
        server_bits = min(offer.get(SERVER_BITS) or MAX_WINDOW_BITS, WINDOW_BITS)
        answer = [NAME, f"{SERVER_BITS}={server_bits}"] if SERVER_BITS in offer else [NAME]
        client_bits = MAX_WINDOW_BITS
        if CLIENT_BITS in offer:
            client_bits = min(offer[CLIENT_BITS] or MAX_WINDOW_BITS, WINDOW_BITS)
            answer.append(f"{CLIENT_BITS}={client_bits}")
        answer.extend(flag for flag in (SERVER_NO_CONTEXT_TAKEOVER, CLIENT_NO_CONTEXT_TAKEOVER) if flag in offer)
        agreed = DeflateParameters(
            server_max_window_bits=server_bits,
            client_max_window_bits=client_bits,
            server_no_context_takeover=SERVER_NO_CONTEXT_TAKEOVER in offer,
            client_no_context_takeover=CLIENT_NO_CONTEXT_TAKEOVER in offer,
        )
        return agreed, "; ".join(answer).encode("ascii")
    return None


def parse_extension_response(values: Iterable[bytes]) -> DeflateParameters | None:
    """Client: parse the server's answer to `OFFER`; return None if the server has chosen no extension.

    Raises `RemoteProtocolError` for several extensions, another one, or malformed parameters.
    """
    chosen = _extensions(values)
    if not chosen:
        return None
    name, answer = chosen[0]
    if len(chosen) != 1 or name != NAME or answer is None or answer.get(CLIENT_BITS, MAX_WINDOW_BITS) is None:
        raise RemoteProtocolError("Sec-WebSocket-Extensions: the server chose what was not offered")
    return DeflateParameters(
        server_max_window_bits=answer.get(SERVER_BITS) or MAX_WINDOW_BITS,
        client_max_window_bits=answer.get(CLIENT_BITS) or MAX_WINDOW_BITS,
        server_no_context_takeover=SERVER_NO_CONTEXT_TAKEOVER in answer,
        client_no_context_takeover=CLIENT_NO_CONTEXT_TAKEOVER in answer,
    )


class InflateGuard(Extension):
    """Extension that counts and inflates input, and refuses a message of too many bytes or frames.

    The limits are `max_message` bytes, inflated, and 65,536 frames before the last. An uncompressed frame that
    announces too many bytes is refused by its header, before its payload is received. `agreed` is None without
    permessage-deflate.
    """

    name = "inbound"

    def __init__(self, max_message: int, agreed: DeflateParameters | None) -> None:
        self.max_message = max_message  # bytes; may be raised at any time
        self.deflated = agreed is not None
        self._agreed = agreed or NO_DEFLATE
        self._inflater: zlib._Decompress | None = None
        self._window = 0  # bytes, of the inflater
        self._compressed = False  # the message in progress, which control frames may interrupt
        self._begun = False  # a message has a frame already, and is not complete
        self._control = False  # the frame in progress
        self._size = 0  # bytes of the message so far, inflated
        self._frames = 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes of memory for the inflater and its window; 0 if there is none."""
        return 0 if self._inflater is None else INFLATER + self._window

    def release(self) -> None:
        """Drop the inflater: no more input follows."""
        self._inflater = None

    def enabled(self) -> bool:
        """Return True, so that `FrameProtocol` calls the hooks."""
        return True

    def offer(self) -> bool | str:
        """Return False: negotiation is done elsewhere."""
        return False

    def frame_inbound_header(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, payload_length: int
    ) -> CloseReason | RsvBits:
        """Check the header of a frame; return the reserved bits that it may have, or the reason to close.

        wsproto may call this again for the same frame, so nothing is counted here.
        """
        self._control = opcode.iscontrol()
        if self._control:
            return RsvBits(False, False, False)
        if (opcode is Opcode.CONTINUATION) is not self._begun:
            return CloseReason.PROTOCOL_ERROR  # at once, before the payload is inflated wrongly
        if not self._begun:
            self._compressed = self.deflated and rsv.rsv1
            if self._compressed:
                return RsvBits(True, False, False)
        if not self._compressed and self._size + payload_length > self.max_message:
            return CloseReason.MESSAGE_TOO_BIG
        return RsvBits(False, False, False)

    def frame_inbound_payload_data(self, proto: FrameDecoder | FrameProtocol, data: bytes) -> bytes | CloseReason:
        """Return a piece of a frame, inflated if the message is compressed, or the reason to close."""
        if self._control:
            return data
        if self._compressed:
            return self._inflate(proto, data)
        self._size += len(data)
        return data

    def frame_inbound_complete(self, proto: FrameDecoder | FrameProtocol, fin: bool) -> bytes | CloseReason | None:
        """Finish a frame, and with the last one its message; return the rest of its content, or the reason to close.

        Return None if there is neither.
        """
        if self._control:
            return None
        self._begun = not fin
        if not fin:
            self._frames += 1
            return CloseReason.MESSAGE_TOO_BIG if self._frames > MAX_FRAGMENTS else None
        rest = self._inflate(proto, TAIL) if self._compressed else None
        self._size = self._frames = 0
        alone = self._agreed.server_no_context_takeover if proto.client else self._agreed.client_no_context_takeover
        if alone or (self._inflater is not None and self._inflater.eof):
            self._inflater = None
        return rest

    def _inflate(self, proto: FrameDecoder | FrameProtocol, data: bytes) -> bytes | CloseReason:
        if self._inflater is None:
            bits = self._agreed.server_max_window_bits if proto.client else self._agreed.client_max_window_bits
            bits = max(bits, MIN_ZLIB_BITS)
            self._inflater, self._window = zlib.decompressobj(-bits), 1 << bits
        room = self.max_message - self._size
        try:
            inflated = self._inflater.decompress(data, room + 1)
        except zlib.error:
            return CloseReason.INVALID_FRAME_PAYLOAD_DATA
        self._size += len(inflated)
        if len(inflated) > room:
            return CloseReason.MESSAGE_TOO_BIG
        if self._inflater.eof and len(self._inflater.unused_data) > MAX_UNUSED:
            return CloseReason.INVALID_FRAME_PAYLOAD_DATA
        return inflated


class Deflater:
    """Compressor of whole messages. It allocates memory at the first one."""

    __slots__ = ("_alone", "_bits", "_deflater")

    def __init__(self, bits: int, *, alone: bool) -> None:
        """Initialize; `bits` is the agreed window of this side, 9 to 15, `alone` means without context takeover."""
        self._bits = min(bits, WINDOW_BITS)
        self._alone = alone
        self._deflater: zlib._Compress | None = None

    def pack(self, message: bytes) -> bytes:
        """Return the compressed form of a message, for a frame with RSV1 set."""
        deflater = self._deflater
        if deflater is None:
            deflater = zlib.compressobj(wbits=-self._bits, memLevel=MEMORY_LEVEL)
        if not self._alone:
            self._deflater = deflater
        return (deflater.compress(message) + deflater.flush(zlib.Z_SYNC_FLUSH)).removesuffix(TAIL)


def _extensions(values: Iterable[bytes]) -> list[tuple[str, dict[str, int | None] | None]]:
    """Return every named extension with its parameters, or None for parameters that RFC 7692 does not permit."""
    found: list[tuple[str, dict[str, int | None] | None]] = []
    for value in values:
        for extension in value.decode("latin-1").split(","):
            name, _, rest = extension.partition(";")
            if name.strip():
                found.append((name.strip().lower(), _parameters(rest)))
    return found


def _parameters(text: str) -> dict[str, int | None] | None:
    parameters: dict[str, int | None] = {}
    for part in text.split(";") if text.strip() else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        key = key.lower()
        if key in parameters:
            return None
        if key in (SERVER_BITS, CLIENT_BITS) and _BITS.fullmatch(value):
            parameters[key] = int(value.strip('"'))
        elif key in (SERVER_NO_CONTEXT_TAKEOVER, CLIENT_NO_CONTEXT_TAKEOVER, CLIENT_BITS) and not equals:
            parameters[key] = None  # an offer may name the client's window without a size
        else:
            return None
    return parameters
