"""Ports of this machine for what a test starts."""

from __future__ import annotations

import socket
from contextlib import suppress
from random import SystemRandom

__all__ = ["free_port"]


def free_port() -> int:
    """A port that nobody has now, nor gets for a connection: Linux takes those from 32,768 on. So one can come back to
    it.
    """
    while True:
        port = SystemRandom().randrange(10_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
