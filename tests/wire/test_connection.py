"""The interface of connections, which HTTP/1.1 is the first to have."""

from __future__ import annotations

import pytest

from svc_proto.wire.connection import Connection, Role
from svc_proto.wire.http1 import Http1Connection
from tests.wire.pair import seeded


@pytest.mark.parametrize("role", list(Role))
def test_http1_is_a_connection(role: Role) -> None:
    connection: Connection = Http1Connection(role, entropy=seeded())
    assert connection.idle
    assert [connection.must_close, connection.paused, connection.head_pending] == [False] * 3
    assert connection.next_event() is None
    assert connection.data_to_send() == b""
    connection.receive_eof()
    assert connection.next_event() is None
    assert connection.must_close
