"""Ports of this machine for what a test starts."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from itertools import cycle
from random import SystemRandom

LANES, WIDTH = 16, 1_375  # of ports: each process that runs tests has a lane of its own, from 10,000 on
_LANE = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % LANES
_OURS = range(10_000 + _LANE * WIDTH, 10_000 + (_LANE + 1) * WIDTH)
_BEGIN = SystemRandom().randrange(WIDTH)
_ports = cycle((*_OURS[_BEGIN:], *_OURS[:_BEGIN]))


def free_port() -> int:
    """A port that nobody has now, nor gets for a while: Linux gives those from 32,768 on to connections, and this gives
    all others first. So whoever had it can come back to it.
    """
    while True:
        port: int = next(_ports)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
