"""h2 as the law of HTTP/2, relieved of work that grows with a connection's streams or that nobody looks at.

What is told and what is refused stays h2's. Cheaper are
  how many streams are open: counted as their states change, where h2 walks over all of them for each new one
  a header block that was seen while the table was the same: looked up
  plain frames: cut already, so they are taken as they are, and no picture of them is drawn for a log
"""

from __future__ import annotations

from attrs import define, field
from h2.config import H2Configuration
from h2.connection import AllowedStreamIDs, H2Connection
from h2.events import Event
from h2.frame_buffer import FrameBuffer
from h2.stream import STREAM_OPEN, H2Stream, H2StreamStateMachine, StreamInputs, StreamState
from hpack import Decoder, HeaderTuple
from hpack.table import HeaderTable
from hyperframe.frame import DataFrame, HeadersFrame
from hyperframe.frame import Frame as HyperFrame

from svc_proto.wire.events import RequestHead
from svc_proto.wire.http2_frames import END_HEADERS, HEADER, STREAM_MASK, Kind

__all__ = ["HIDDEN_LENGTH", "LENGTH", "Block", "BlockDecoder", "LeanH2"]

MAX_BLOCKS, MAX_BLOCK, MAX_BLOCK_FIELDS = 8, 256, 32  # that a connection remembers; bytes and fields of each
END_STREAM = 0x1  # RFC 9113 sections 6.1 and 6.2
LENGTH = b"content-length"
HIDDEN_LENGTH = b"Content-Length"  # no name over HTTP/2, so that nobody else can mean it
_RENAMED = {LENGTH: HIDDEN_LENGTH, HIDDEN_LENGTH: b""}


@define(eq=False)
class Block:
    """A header block that was read: its fields, and the head of a request that they were, by whether that ended it."""

    fields: list[HeaderTuple]
    heads: dict[bool, RequestHead] = field(factory=dict)


class BlockDecoder(Decoder):
    """Tells h2 of no `content-length`: it ends the connection for a wrong one, where we end the stream.

    A block that leaves the table as it is means the same until the table changes, and is looked up till then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.block = Block([])  # the last one
        self._known: dict[bytes, Block] = {}

    def decode(self, data: bytes, raw: bool = False) -> list[HeaderTuple]:
        """The fields of a whole block; what `Decoder` makes of it."""
        known = self._known.get(data)
        if known is None:
            table = self.header_table
            before, first = (table.maxsize, len(table.dynamic_entries)), _first(table)
            fields = super().decode(data, raw)
            told = [HeaderTuple(_RENAMED[field[0]], field[1]) if field[0] in _RENAMED else field for field in fields]
            known = Block(told)
            if (table.maxsize, len(table.dynamic_entries)) != before or _first(table) is not first:
                self._known.clear()
            elif len(self._known) < MAX_BLOCKS and len(data) <= MAX_BLOCK and len(told) <= MAX_BLOCK_FIELDS:
                self._known[data] = known
        self.block = known
        return known.fields


def _first(table: HeaderTable) -> object:
    """Its last entry: the same object for as long as nothing was added."""
    return table.dynamic_entries[0] if table.dynamic_entries else None


class _Data(DataFrame):
    """h2 draws a picture of each frame for a log that nobody reads. Of this one it is cheap."""

    def __repr__(self) -> str:
        return "DATA"


class _Head(HeadersFrame):
    """The frame of a whole header block, without the picture that is drawn of each for a log."""

    def __repr__(self) -> str:
        return "HEADERS"


class _Frames(FrameBuffer):
    """Reads a frame as most are, without padding, priority or a continuation, with less ado than h2."""

    def __next__(self) -> HyperFrame:
        data = self._data
        if not data:
            raise StopIteration
        size, kind, flags = int.from_bytes(data[:3], "big"), data[3], data[4]
        stream = int.from_bytes(data[5:HEADER], "big") & STREAM_MASK
        ours = PLAIN.get((kind, flags))
        if ours is None or not stream or self._headers_buffer or len(data) != HEADER + size:
            return super().__next__()
        frame = ours(stream, flags=FLAGS[flags])
        frame.data, frame.body_len = bytes(data[HEADER:]), size
        data.clear()
        return frame


PLAIN: dict[tuple[int, int], type[_Data | _Head]] = {
    (Kind.DATA, 0): _Data,
    (Kind.DATA, END_STREAM): _Data,
    (Kind.HEADERS, END_HEADERS): _Head,
    (Kind.HEADERS, END_HEADERS | END_STREAM): _Head,
}
FLAGS = {
    0: (),
    END_STREAM: ("END_STREAM",),
    END_HEADERS: ("END_HEADERS",),
    END_HEADERS | END_STREAM: ("END_HEADERS", "END_STREAM"),
}


class _Census:
    """How many streams are open, by the parity of their numbers, and which have closed since somebody looked."""

    __slots__ = ("closed", "open")

    def __init__(self) -> None:
        self.open = [0, 0]
        self.closed: list[int] = []


class _Life(H2StreamStateMachine):
    """h2's states of one stream, each change of which is counted."""

    def __init__(self, stream_id: int, census: _Census) -> None:
        super().__init__(stream_id)
        self._census = census

    def process_input(self, input_: StreamInputs) -> list[Event]:
        before = self.state
        try:
            return super().process_input(input_)
        finally:
            after = self.state
            if after is not before:
                self._census.open[self.stream_id % 2] += STREAM_OPEN[after] - STREAM_OPEN[before]
                if after is StreamState.CLOSED:
                    self._census.closed.append(self.stream_id)


class LeanH2(H2Connection):
    """h2, as this module has it."""

    # Streams that are remembered, so that frames which crossed our reset are forgiven. h2 would take 6 MB for it.
    MAX_CLOSED_STREAMS = 1000

    decoder: BlockDecoder

    def __init__(self, config: H2Configuration) -> None:
        super().__init__(config)
        self._census = _Census()
        self.incoming_buffer = _Frames(server=not config.client_side)
        self._frame_dispatch_table[_Data] = self._receive_data_frame
        self._frame_dispatch_table[_Head] = self._receive_headers_frame

    def release(self) -> None:
        """Nothing more comes: part with the methods of its own in a table, which would keep it."""
        self._frame_dispatch_table.clear()

    def _begin_new_stream(self, stream_id: int, allowed_ids: AllowedStreamIDs) -> H2Stream:
        stream = super()._begin_new_stream(stream_id, allowed_ids)
        stream.state_machine = _Life(stream_id, self._census)
        return stream

    def _open_streams(self, remainder: int) -> int:
        census = self._census
        if census.closed:
            for stream_id in sorted(census.closed):  # as a walk would meet them
                self._closed_streams[stream_id] = self.streams.pop(stream_id).closed_by
            census.closed.clear()
        return census.open[remainder]
