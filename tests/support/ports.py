"""Free ports of this host for the programs of a test, and what addresses it has."""

import os
import socket
import sys
from contextlib import suppress
from itertools import cycle
from random import SystemRandom

import pytest

needs_loopback_range = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
RANGES, WIDTH = 16, 1_375  # ranges of ports, from `_FIRST` on: each test process has its own
_RANGE = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % RANGES
_FIRST = 10_081  # browsers open no page at 10,080, which is the port of another protocol
_OURS = range(_FIRST + _RANGE * WIDTH, _FIRST + (_RANGE + 1) * WIDTH)
_BEGIN = SystemRandom().randrange(WIDTH)
_ports = cycle((*_OURS[_BEGIN:], *_OURS[:_BEGIN]))


def has_ipv6() -> bool:
    """Report whether this machine has `::1`."""
    with suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


def free_port() -> int:
    """Return a free port of 127.0.0.1.

    A port is returned again only after all other ports of this test process's range have been tried.
    """
    while True:
        port: int = next(_ports)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
