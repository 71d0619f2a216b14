"""Test that accepted connections have the options of their listener where `INHERITS_OPTIONS` is true, else not."""

import socket

from runtimes.net.listener import INHERITS_OPTIONS, UNSENT_LOW_WATER, adopt_listener, bind


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
