"""HPACK table size of our encoder: within the peer's limit, never over the default (RFC 7541 section 4.2).

h2 keeps only the last value of a setting that occurs twice in a frame, although all have to be applied in turn (RFC
9113 section 6.5.3). hpack omits the size update when the same size is set again. A strict peer ends the connection for
either.
"""

import struct

from hpack import Encoder

from svc_proto.wire.http2_frames import FrameType, Http2Frame
from svc_proto.wire.http2_settings import TABLE_SIZE

__all__ = ["apply_table_size", "shrink_table"]

HEADER_TABLE_SIZE = 0x1  # RFC 9113 section 6.5.2
ENTRY = struct.Struct(">HL")


def shrink_table(encoder: Encoder, frame: Http2Frame) -> None:
    """Reduce the encoder's table to the smallest table size in a SETTINGS frame, before h2 receives the frame.

    Larger sizes, other frames, and malformed ones, are ignored.
    """
    if frame.type != FrameType.SETTINGS or frame.size % ENTRY.size:
        return
    entries = ENTRY.iter_unpack(frame.raw[len(frame.raw) - frame.size :])
    sizes = [value for code, value in entries if code == HEADER_TABLE_SIZE]
    encoder.header_table_size = min([encoder.header_table_size, *sizes])


def apply_table_size(encoder: Encoder) -> None:
    """Reduce the table to our own limit after the frame, and announce every change before the next head."""
    encoder.header_table_size = min(encoder.header_table_size, TABLE_SIZE)
    encoder.header_table.resized = bool(encoder.table_size_changes)
