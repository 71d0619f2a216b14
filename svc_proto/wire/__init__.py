"""Wire protocols without IO, between bytes and events: HTTP/1.1, HTTP/2, WebSocket, SSE, multipart, RESP.

In `svc_proto`, only this package imports h11, h2 and wsproto. docs/reference/public-names.md lists the names that
embedders may use.
"""

from typing import TYPE_CHECKING

from svc_proto.basics.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from svc_proto.schema.envelope import Envelope as Envelope
    from svc_proto.schema.envelope import parse_envelope as parse_envelope
    from svc_proto.schema.envelope import parse_message as parse_message
    from svc_proto.schema.envelope import write_envelope as write_envelope
    from svc_proto.wire.backpressure import Backpressure as Backpressure
    from svc_proto.wire.connection import Connection as Connection
    from svc_proto.wire.connection import Role as Role
    from svc_proto.wire.connection import ServerConnection as ServerConnection
    from svc_proto.wire.events import AcceptWebSocket as AcceptWebSocket
    from svc_proto.wire.events import BadRequest as BadRequest
    from svc_proto.wire.events import BinaryMessage as BinaryMessage
    from svc_proto.wire.events import CloseWebSocket as CloseWebSocket
    from svc_proto.wire.events import Event as Event
    from svc_proto.wire.events import Headers as Headers
    from svc_proto.wire.events import Informational as Informational
    from svc_proto.wire.events import Ping as Ping
    from svc_proto.wire.events import Pong as Pong
    from svc_proto.wire.events import RequestData as RequestData
    from svc_proto.wire.events import RequestEnd as RequestEnd
    from svc_proto.wire.events import RequestHead as RequestHead
    from svc_proto.wire.events import ResponseBodyDelegated as ResponseBodyDelegated
    from svc_proto.wire.events import ResponseData as ResponseData
    from svc_proto.wire.events import ResponseEnd as ResponseEnd
    from svc_proto.wire.events import ResponseHead as ResponseHead
    from svc_proto.wire.events import StreamId as StreamId
    from svc_proto.wire.events import StreamReset as StreamReset
    from svc_proto.wire.events import TextFragment as TextFragment
    from svc_proto.wire.events import TextMessage as TextMessage
    from svc_proto.wire.events import WebSocketAccepted as WebSocketAccepted
    from svc_proto.wire.events import WebSocketClosed as WebSocketClosed
    from svc_proto.wire.http1 import Http1Connection as Http1Connection
    from svc_proto.wire.http2 import Http2Connection as Http2Connection
    from svc_proto.wire.keepalive import Keepalive as Keepalive
    from svc_proto.wire.keepalive import KeepaliveAction as KeepaliveAction
    from svc_proto.wire.limits import DEFAULT_LIMITS as DEFAULT_LIMITS
    from svc_proto.wire.limits import Limits as Limits
    from svc_proto.wire.multipart import MultipartDecoder as MultipartDecoder
    from svc_proto.wire.multipart import MultipartEvent as MultipartEvent
    from svc_proto.wire.multipart import Part as Part
    from svc_proto.wire.multipart import PartBegin as PartBegin
    from svc_proto.wire.multipart import PartData as PartData
    from svc_proto.wire.multipart import PartEnd as PartEnd
    from svc_proto.wire.multipart import encode_multipart as encode_multipart
    from svc_proto.wire.ranges import ByteRange as ByteRange
    from svc_proto.wire.ranges import Unsatisfiable as Unsatisfiable
    from svc_proto.wire.ranges import content_disposition as content_disposition
    from svc_proto.wire.ranges import entity_tag as entity_tag
    from svc_proto.wire.ranges import requested_range as requested_range
    from svc_proto.wire.sse import EventStreamDecoder as EventStreamDecoder
    from svc_proto.wire.sse import ServerSentEvent as ServerSentEvent
    from svc_proto.wire.sse import encode_comment as encode_comment
    from svc_proto.wire.sse import encode_event as encode_event
    from svc_proto.wire.urls import Url as Url
    from svc_proto.wire.urls import decode_segment as decode_segment
    from svc_proto.wire.urls import encode_segment as encode_segment
    from svc_proto.wire.urls import parse_query as parse_query
    from svc_proto.wire.urls import parse_query_list as parse_query_list
    from svc_proto.wire.urls import parse_url as parse_url
    from svc_proto.wire.urls import split_target as split_target
    from svc_proto.wire.websocket import WebSocket as WebSocket
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "svc_proto.wire.connection": "Connection Role ServerConnection",
            "svc_proto.wire.http1": "Http1Connection",
            "svc_proto.wire.http2": "Http2Connection",
            "svc_proto.wire.websocket": "WebSocket",
            "svc_proto.wire.events": (
                "AcceptWebSocket BadRequest BinaryMessage CloseWebSocket Event Headers Informational Ping Pong "
                "RequestData RequestEnd RequestHead ResponseData ResponseBodyDelegated ResponseEnd ResponseHead "
                "WebSocketAccepted WebSocketClosed StreamId StreamReset TextFragment TextMessage"
            ),
            "svc_proto.wire.limits": "DEFAULT_LIMITS Limits",
            "svc_proto.wire.sse": "EventStreamDecoder ServerSentEvent encode_comment encode_event",
            "svc_proto.wire.multipart": (
                "MultipartDecoder MultipartEvent Part PartBegin PartData PartEnd encode_multipart"
            ),
            "svc_proto.schema.envelope": "Envelope parse_envelope parse_message write_envelope",
            "svc_proto.wire.urls": (
                "Url decode_segment encode_segment parse_query parse_query_list parse_url split_target"
            ),
            "svc_proto.wire.ranges": "ByteRange Unsatisfiable content_disposition entity_tag requested_range",
            "svc_proto.wire.backpressure": "Backpressure",
            "svc_proto.wire.keepalive": "Keepalive KeepaliveAction",
        },
    )
