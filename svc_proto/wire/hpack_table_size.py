"""The header table of our encoder: within what the peer allows, never over the default (RFC 7541 section 4.2).

h2 keeps the last value of a setting that comes twice in one frame, where all have to be taken in turn (RFC 9113 section
6.5.3). hpack forgets to say a change when the same size is set again. A peer that minds ends the connection for either.
"""

from __future__ import annotations

import struct

from hpack import Encoder

from svc_proto.wire.http2_frames import FrameType, Http2Frame
from svc_proto.wire.http2_settings import TABLE_SIZE

__all__ = ["apply_table_size", "shrink_table"]

HEADER_TABLE_SIZE = 0x1  # RFC 9113 section 6.5.2
ENTRY = struct.Struct(">HL")


def shrink_table(encoder: Encoder, frame: Http2Frame) -> None:
    """Before h2 takes a frame, which may be SETTINGS: go down to the smallest size that it names."""
    if frame.type != FrameType.SETTINGS or frame.size % ENTRY.size:
        return
    entries = ENTRY.iter_unpack(frame.raw[len(frame.raw) - frame.size :])
    sizes = [value for code, value in entries if code == HEADER_TABLE_SIZE]
    encoder.header_table_size = min([encoder.header_table_size, *sizes])


def apply_table_size(encoder: Encoder) -> None:
    """After h2 took it: go down to our own limit, and have every change said before the next head."""
    encoder.header_table_size = min(encoder.header_table_size, TABLE_SIZE)
    encoder.header_table.resized = bool(encoder.table_size_changes)
