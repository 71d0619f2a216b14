"""Both ends of HTTP/1.1 together; each end alone is in `test_http1_server` and `test_http1_client`."""

import pytest

from svc_proto.wire.events import TextMessage
from svc_proto.wire.http1 import Http1Connection
from tests.wire.connection_pair import ONE, feed, open_pair


@pytest.mark.parametrize("deflate", [True, False])
def test_a_socket_face_to_face(deflate: bool) -> None:
    pair = open_pair(Http1Connection, deflate=deflate)
    pair.server.send(TextMessage(ONE, "x" * 5000))
    sent = pair.server.data_to_send()
    assert feed(pair.client, sent) == [TextMessage(ONE, "x" * 5000)]
    assert (len(sent) < 1000) is deflate
