"""The interface of connections, checked with HTTP/1.1."""

from fuzz.reference_parsers import ReferenceServerConnection
from svc_proto.wire.connection import ServerConnection
from svc_proto.wire.events import RequestEnd, RequestHead, StreamId
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.wire.connection_pair import seeded


def test_a_connection_of_a_server_may_have_everything_event_by_event() -> None:
    connection: ServerConnection = ReferenceServerConnection(limits=DEFAULT_LIMITS, entropy=seeded())
    request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    assert connection.receive_simple_request(request) is None
    assert connection.idle
    connection.receive_data(request)
    assert isinstance(connection.next_event(), RequestHead)
    connection.replay_as_events()
    assert isinstance(connection.next_event(), RequestEnd)
    assert not connection.send_simple_response(StreamId(1), 200, b"", (), b"")
    assert connection.data_to_send() == b""
