"""Tests of accepted connections: the options of their listener, and the address that each was made to."""

import socket

from runtimes.net.listener import INHERITS_OPTIONS, UNSENT_LOW_WATER, adopt_listener, bind
from svc_proto.facts import Accepted
from tests.runtimes.scripted_core import running
from tests.support.ports import needs_loopback_range


def test_accepted_sockets_inherit_the_options_of_their_listener() -> None:
    adopted = socket.create_server(("127.0.0.1", 0))
    for listener in (bind("127.0.0.1", 0), adopt_listener(adopted)):
        with listener.sock, socket.create_connection((listener.address.host, listener.address.port)):
            listener.sock.setblocking(True)
            with listener.sock.accept()[0] as accepted:
                options = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                assert bool(options) is INHERITS_OPTIONS
                if INHERITS_OPTIONS:
                    waiting = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT)
                    assert waiting == UNSENT_LOW_WATER


@needs_loopback_range
def test_each_connection_has_its_own_local_address(runtime: str) -> None:
    with (
        running(runtime, listener=bind("0.0.0.0", 0)) as live,  # its first connection is to 127.0.0.1
        socket.create_connection(("127.0.0.2", live.listener.address.port)),
    ):
        assert live.expect(Accepted).local.host == "127.0.0.2"
