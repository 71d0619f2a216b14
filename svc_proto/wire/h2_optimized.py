"""h2 with faster hot paths, and without its check of `content-length` in received heads.

Other events and refusals are those of h2, except on streams that closed long ago: fewer of them are stored. These steps
are cheaper:
- the number of open streams: counted as their states change, where h2 iterates over all of them for each new one
- a small header block that was decoded, or encoded, with the same table before: cached
- a plain frame that is alone in the input buffer: used as it is, without a text for a debug log
- the head of a response, and data: h2's states and windows are checked, and the frame is written without a frame object
"""

from struct import Struct

from attrs import define, field
from h2.config import H2Configuration
from h2.connection import AllowedStreamIDs, ConnectionInputs, H2Connection
from h2.events import Event
from h2.frame_buffer import FrameBuffer
from h2.stream import STREAM_OPEN, H2Stream, H2StreamStateMachine, StreamInputs, StreamState
from hpack import Decoder, Encoder, HeaderTuple
from hpack.table import HeaderTable
from hyperframe.flags import Flags
from hyperframe.frame import DataFrame, HeadersFrame
from hyperframe.frame import Frame as HyperFrame

from svc_proto.wire.events import RequestHead
from svc_proto.wire.http2_frames import END_HEADERS, HEADER, STREAM_MASK, FrameType

__all__ = [
    "HIDDEN_LENGTH",
    "LENGTH",
    "DecodedHeaderBlock",
    "HeaderBlockDecoder",
    "HeaderBlockEncoder",
    "OptimizedH2Connection",
]

MAX_BLOCKS, MAX_BLOCK, MAX_BLOCK_FIELDS = 8, 256, 32  # cached blocks of a connection; bytes and fields of each
MAX_FAST_FRAME = 2048  # bytes of fields that fit into a frame in any encoding
END_STREAM = 0x1  # RFC 9113 sections 6.1 and 6.2
LENGTH = b"content-length"
HIDDEN_LENGTH = b"Content-Length"  # no valid name over HTTP/2, so it cannot collide with another field
_RENAMED = {LENGTH: HIDDEN_LENGTH, HIDDEN_LENGTH: b""}


@define(eq=False)
class DecodedHeaderBlock:
    """A decoded header block: its fields, and the request heads parsed from it, by whether it ended the request."""

    fields: list[HeaderTuple]
    heads: dict[bool, RequestHead] = field(factory=dict)


class HeaderBlockDecoder(Decoder):
    """Decoder that hides `content-length` from h2, which ends the connection for a wrong one; we end the stream.

    A block that leaves the table unchanged has the same meaning until the table changes. Up to `MAX_BLOCKS` small ones
    are cached until then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.block = DecodedHeaderBlock([])  # the last one
        self._known: dict[bytes, DecodedHeaderBlock] = {}

    def decode(self, data: bytes, raw: bool = False) -> list[HeaderTuple]:
        """Decode a whole block into fields, as `Decoder` does, but with another name for `content-length`."""
        known = self._known.get(data)
        if known is None:
            table = self.header_table
            before = _state(table)
            fields = super().decode(data, raw)
            told = [HeaderTuple(_RENAMED[field[0]], field[1]) if field[0] in _RENAMED else field for field in fields]
            known = DecodedHeaderBlock(told)
            if not _is_as(table, before):
                self._known.clear()
            elif len(self._known) < MAX_BLOCKS and len(data) <= MAX_BLOCK and len(told) <= MAX_BLOCK_FIELDS:
                self._known[data] = known
        self.block = known
        return known.fields


class HeaderBlockEncoder(Encoder):
    """Encoder that caches small header blocks, by their list of fields, while the table is unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[tuple[bytes, bytes], ...], bytes] = {}

    def block(self, fields: list[tuple[bytes, bytes]]) -> bytes:
        """Return the header block of these fields: the cached one, or that of `encode`."""
        table, asked = self.header_table, tuple(fields)
        resized = table.resized  # the next block has to begin with the size update
        block = None if resized else self._known.get(asked)
        if block is None:
            before = _state(table)
            block = self.encode(fields)
            if resized or not _is_as(table, before):
                self._known.clear()
            elif len(self._known) < MAX_BLOCKS and len(block) <= MAX_BLOCK:
                self._known[asked] = block
        return block


def _state(table: HeaderTable) -> tuple[int, int, object]:
    entries = table.dynamic_entries
    return table.maxsize, len(entries), entries[0] if entries else None


def _is_as(table: HeaderTable, before: tuple[int, int, object]) -> bool:
    """Report whether size limit, number of entries and newest entry of the table are those of `before`."""
    *sizes, last = _state(table)
    return sizes == [*before[:2]] and last is before[2]


class _FastDataFrame(DataFrame):
    """Plain DATA frame. h2 builds the repr of each frame for a debug log, so this one is constant."""

    def __init__(self, stream: int, flags: Flags, data: bytes) -> None:
        self.stream_id, self.flags, self.data = stream, flags, data
        self.body_len, self.pad_length = len(data), 0

    def __repr__(self) -> str:
        return "DATA"


class _FastHeadersFrame(HeadersFrame):
    """Plain HEADERS frame with a whole header block."""

    def __init__(self, stream: int, flags: Flags, data: bytes) -> None:
        self.stream_id, self.flags, self.data = stream, flags, data
        self.body_len, self.pad_length = len(data), 0

    def __repr__(self) -> str:
        return "HEADERS"


class _FastFrameBuffer(FrameBuffer):
    """Frame buffer with a shortcut for a DATA or HEADERS frame that is the whole input.

    The frame has no padding, priority or continuation. h2 parses all other input.
    """

    def __next__(self) -> HyperFrame:
        data = self._data
        if not data:
            raise StopIteration
        size, kind, flags = int.from_bytes(data[:3], "big"), data[3], data[4]
        stream = int.from_bytes(data[5:HEADER], "big") & STREAM_MASK
        ours = PLAIN.get((kind, flags))
        if ours is None or not stream or self._headers_buffer or len(data) != HEADER + size:
            return super().__next__()
        frame = ours(stream, FLAGS[flags], bytes(data[HEADER:]))
        data.clear()
        return frame


PLAIN: dict[tuple[int, int], type[_FastDataFrame | _FastHeadersFrame]] = {
    (FrameType.DATA, 0): _FastDataFrame,
    (FrameType.DATA, END_STREAM): _FastDataFrame,
    (FrameType.HEADERS, END_HEADERS): _FastHeadersFrame,
    (FrameType.HEADERS, END_HEADERS | END_STREAM): _FastHeadersFrame,
}
FLAGS = {  # shared by all such frames: h2 changes only the flags of its own
    0: HeadersFrame(1).flags,
    END_STREAM: HeadersFrame(1, flags=("END_STREAM",)).flags,
    END_HEADERS: HeadersFrame(1, flags=("END_HEADERS",)).flags,
    END_HEADERS | END_STREAM: HeadersFrame(1, flags=("END_HEADERS", "END_STREAM")).flags,
}
_HEADER = Struct(">HBBBL").pack


class _StreamCounter:
    """Number of open streams by the parity of their ids, and the streams closed since the last count."""

    __slots__ = ("closed", "open")

    def __init__(self) -> None:
        self.open = [0, 0]
        self.closed: list[int] = []


class _CountingStateMachine(H2StreamStateMachine):
    """h2's state machine of a stream that updates the connection's count of open streams and list of closed ones."""

    def __init__(self, stream_id: int, counter: _StreamCounter) -> None:
        super().__init__(stream_id)
        self._counter = counter

    def process_input(self, input_: StreamInputs) -> list[Event]:
        before = self.state
        try:
            return super().process_input(input_)
        finally:
            after = self.state
            if after is not before:
                self._counter.open[self.stream_id % 2] += STREAM_OPEN[after] - STREAM_OPEN[before]
                if after is StreamState.CLOSED:
                    self._counter.closed.append(self.stream_id)


class OptimizedH2Connection(H2Connection):
    """h2 connection with the optimizations of this module, except decoding: `http2_settings.new_h2` sets `decoder`."""

    # Closed streams that are kept, so that frames which crossed our reset are tolerated. h2's own number takes 6 MB.
    MAX_CLOSED_STREAMS = 1000

    decoder: HeaderBlockDecoder
    encoder: HeaderBlockEncoder

    def __init__(self, config: H2Configuration) -> None:
        super().__init__(config)
        self.encoder = HeaderBlockEncoder()
        self._counter = _StreamCounter()
        self.incoming_buffer = _FastFrameBuffer(server=not config.client_side)
        self._frame_dispatch_table[_FastDataFrame] = self._receive_data_frame
        self._frame_dispatch_table[_FastHeadersFrame] = self._receive_headers_frame

    def release(self) -> None:
        """Clear the table of bound methods, which would keep the object alive: no more input follows."""
        self._frame_dispatch_table.clear()

    def send_headers_fast(self, stream_id: int, fields: list[tuple[bytes, bytes]], *, end: bool = False) -> None:
        """Send headers; a small head of a server's final response takes less time than with `send_headers`.

        h2's checks of the fields are omitted for such a head.
        """
        stream = self.streams.get(stream_id)
        if stream is None or self.config.client_side or not _is_plain(fields) or stream.state_machine.headers_sent:
            self.send_headers(stream_id, fields, end_stream=end)
            return
        self.state_machine.process_input(ConnectionInputs.SEND_HEADERS)
        stream.state_machine.process_input(StreamInputs.SEND_HEADERS)
        block = self.encoder.block(fields)
        if end:
            stream.state_machine.process_input(StreamInputs.SEND_END_STREAM)
        self._frame(FrameType.HEADERS, END_HEADERS | end, stream_id, block)

    def send_data_fast(self, stream_id: int, data: bytes, *, end: bool) -> None:
        """Do what `send_data` does, in less time if the data fits into one frame and the window."""
        stream, size = self.streams.get(stream_id), len(data)
        most = self.max_outbound_frame_size
        if stream is None or size > min(most, self.outbound_flow_control_window, stream.outbound_flow_control_window):
            self.send_data(stream_id, data, end_stream=end)
            return
        self.state_machine.process_input(ConnectionInputs.SEND_DATA)
        stream.state_machine.process_input(StreamInputs.SEND_DATA)
        if end:
            stream.state_machine.process_input(StreamInputs.SEND_END_STREAM)
        stream.outbound_flow_control_window -= size
        self.outbound_flow_control_window -= size
        self._frame(FrameType.DATA, END_STREAM if end else 0, stream_id, data)

    def _frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._data_to_send += _HEADER(size >> 8, size & 0xFF, kind, flags, stream_id) + payload

    def _begin_new_stream(self, stream_id: int, allowed_ids: AllowedStreamIDs) -> H2Stream:
        stream = super()._begin_new_stream(stream_id, allowed_ids)
        stream.state_machine = _CountingStateMachine(stream_id, self._counter)
        return stream

    def _open_streams(self, remainder: int) -> int:
        counter = self._counter
        if counter.closed:
            for stream_id in sorted(counter.closed):  # the order of h2's iteration
                self._closed_streams[stream_id] = self.streams.pop(stream_id).closed_by
            counter.closed.clear()
        return counter.open[remainder]


def _is_plain(fields: list[tuple[bytes, bytes]]) -> bool:
    """Report whether the fields are the head of a final response of less than `MAX_FAST_FRAME` bytes."""
    name, status = fields[0]
    return (
        name == b":status"
        and status[:1] != b"1"
        and sum(len(name) + len(value) for name, value in fields) < MAX_FAST_FRAME
    )
