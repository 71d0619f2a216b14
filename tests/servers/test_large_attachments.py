"""Test of the servers' memory while signed-in phones send the beginnings of messages of the greatest size."""

import os
import select
import socket
import struct
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conformance.app_suite import PASSWORD, AppConnection
from tests.loops.clients import HttpClient
from tests.loops.live_environment import LiveConnection
from tests.servers.program_process import running
from tests.support.ports import free_port

PHONES = 12
MESSAGE = 67_000_000  # bytes; a file of 50 MB in base64
SENT = 60_000_000  # bytes of it
MOST = 350  # MB of growth: two messages are received at a time
PATIENCE = 20.0  # s until no phone can send any more
QUIET = 2.0  # s without progress


class _Phone(AppConnection):
    """A phone with access to the TCP socket of its WebSocket."""

    def __init__(self, port: int, sockets: ExitStack) -> None:
        super().__init__(port)
        self.raw: socket.socket
        self._sockets = sockets
        self.left = SENT

    def client(self) -> HttpClient:
        self.raw = self._sockets.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE))
        return HttpClient(LiveConnection(self.raw), f"127.0.0.1:{self.port}", os.urandom)


def memory(pid: int, name: str) -> float:
    """Return a figure of a process's memory from the kernel, such as `VmRSS`, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1000


def send_beginnings(phones: list[_Phone]) -> None:
    """Send the beginning of one message from each phone, in turn, until all is sent or the servers stop reading."""
    for phone in phones:
        phone.raw.sendall(struct.pack("!BBQ", 0x81, 0xFF, MESSAGE) + bytes(4))  # a masked text
        phone.raw.setblocking(False)
    piece, last = b" " * 65_536, time.monotonic()
    while time.monotonic() < last + QUIET and any(phone.left > 0 for phone in phones):
        _, ready, _ = select.select([], [phone.raw for phone in phones if phone.left > 0], [], QUIET)
        for phone in phones:
            if phone.raw in ready:
                phone.left -= phone.raw.send(piece)
                last = time.monotonic()


@pytest.mark.full
def test_messages_of_twelve_phones_at_once_take_bounded_memory(tmp_path: Path) -> None:
    port = free_port()
    options = ("--host", "127.0.0.1", "--port", "0", "--api-port", "0", "--dashboard-port", str(port), "--no-qr")
    env = {"SVC_DASHBOARD_PASSWORD": PASSWORD}
    with running(tmp_path, "servers", *options, env=env) as servers, ExitStack() as sockets:
        servers.line(rf"^dashboard: http://127\.0\.0\.1:{port} ")
        phones = [_Phone(port, sockets) for _ in range(PHONES)]
        for phone in phones:
            phone.sign_in()
            phone.open()
        before = memory(servers.process.pid, "VmRSS")
        send_beginnings(phones)
        growth = memory(servers.process.pid, "VmHWM") - before
        assert sum(phone.left <= 0 for phone in phones) == 2
    assert growth < MOST, growth
