"""Configuration of h2: announced settings, tolerance of surplus streams, and checks that are made here instead."""

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hpack.exceptions import HPACKError

from svc_proto.wire.h2_optimized import HeaderBlockDecoder, OptimizedH2Connection
from svc_proto.wire.http2_frames import PREFACE, encode_goaway
from svc_proto.wire.limits import Limits

__all__ = [
    "CONNECTION_WINDOW",
    "MAX_STREAMS",
    "WINDOW_UPDATE_RATIO",
    "STREAM_WINDOW",
    "TABLE_SIZE",
    "final_frames",
    "new_h2",
]

# Times `max_head` bytes: a refused header list up to this size is still read, since it changes our table.
WINDOW_UPDATE_RATIO = 2
MAX_STREAMS = 100  # requests at a time, RFC 9113 section 6.5.2 recommends no less
STREAM_WINDOW = 256 * 1024  # bytes
CONNECTION_WINDOW = 1024 * 1024  # bytes
TABLE_SIZE = 4096  # bytes, RFC 9113 section 6.5.2: the default
UNBOUNDED = 2**31 - 1


def new_h2(*, client: bool, limits: Limits) -> OptimizedH2Connection:
    """Return a fresh h2 connection that has queued our first frames. `http2_head` checks the heads."""
    h2 = OptimizedH2Connection(
        H2Configuration(
            client_side=client,
            header_encoding=None,
            validate_inbound_headers=False,
            normalize_inbound_headers=False,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
    )
    own = (SettingCodes.ENABLE_PUSH, 0) if client else (SettingCodes.ENABLE_CONNECT_PROTOCOL, 1)
    values = {
        SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
        SettingCodes.MAX_HEADER_LIST_SIZE: limits.max_head,
        SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
        own[0]: own[1],
    }
    h2.local_settings = Settings(client=client, initial_values=values)
    h2.decoder = HeaderBlockDecoder()
    h2.decoder.max_header_list_size = WINDOW_UPDATE_RATIO * limits.max_head
    h2.initiate_connection()
    if not client:
        h2.receive_data(PREFACE)  # `http2_frames` has compared it
    # We refuse a surplus stream ourselves; h2 would end the connection, perhaps of a client that has not received our
    # settings yet.
    tolerated = {**values, SettingCodes.MAX_CONCURRENT_STREAMS: UNBOUNDED}
    h2.local_settings = Settings(client=client, initial_values=tolerated)
    h2.increment_flow_control_window(CONNECTION_WINDOW - h2.inbound_flow_control_window)
    return h2


def final_frames(h2: H2Connection, error: ProtocolError) -> tuple[bytes, ErrorCodes]:
    """Return the last bytes to write after h2 found a violation, and the error code of the GOAWAY.

    h2 has no separate code for HPACK errors, which need another one (RFC 9113 section 4.3).
    """
    last, code = h2.highest_inbound_stream_id, ErrorCodes(error.error_code)
    data = h2.data_to_send().removesuffix(encode_goaway(last, code))
    if code is ErrorCodes.PROTOCOL_ERROR and isinstance(error.__cause__, HPACKError):
        code = ErrorCodes.COMPRESSION_ERROR
    return data + encode_goaway(last, code), code
