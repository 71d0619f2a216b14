import socket
import sys

import pytest

from runtimes.net import peer_user
from runtimes.net.listener import plain_address
from runtimes.net.peer_user import PeerUserLookup, can_look_up_users
from svc_proto.facts import Address

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sock_diag is of Linux")


@pytest.mark.parametrize(
    ("listening", "connecting"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1"), ("::", "::1")]
)
def test_own_and_other_users(listening: str, connecting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family = socket.AF_INET6 if ":" in listening else socket.AF_INET
    both = listening == "::"
    with socket.create_server((listening, 0), family=family, dualstack_ipv6=both) as server:
        client = socket.create_connection((connecting, server.getsockname()[1]))
        accepted, peer = server.accept()
        ends = plain_address(peer), plain_address(accepted.getsockname())
        with accepted:
            own = PeerUserLookup()
            monkeypatch.setattr(peer_user, "_trusted_users", lambda: frozenset({54321}))
            other = PeerUserLookup()
            assert [own.is_own_user(*ends), other.is_own_user(*ends)] == [True, False]
            client.close()  # the kernel reports user 0 for a socket without a process
            assert own.is_own_user(*ends) is False
            own.close()
            other.close()


def test_peers_that_the_kernel_cannot_name() -> None:
    assert can_look_up_users()
    lookup, here = PeerUserLookup(), Address("127.0.0.1", 9)
    assert lookup.is_own_user(Address("192.0.2.1", 5), here) is None
    assert lookup.is_own_user(Address("127.0.0.1", 1), here) is False  # no such connection
    assert lookup.is_own_user(Address("127.0.0.1 ", 1), here) is False
    lookup.close()


def test_a_kernel_without_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(socket, "socket", forbidden)
    assert not can_look_up_users()
    assert PeerUserLookup().is_own_user(Address("127.0.0.1", 1), Address("127.0.0.1", 2)) is None
