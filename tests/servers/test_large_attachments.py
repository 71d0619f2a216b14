"""Memory of the servers while signed-in phones send files of the greatest size, all at once."""

from __future__ import annotations

import os
import socket
import threading
from base64 import b64encode
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.app_suite import PASSWORD, AppConnection
from tests.loops.clients import HttpClient
from tests.loops.live_environment import LiveConnection
from tests.servers.program_process import running
from tests.support.ports import free_port

PHONES = 8
FILE = 50_000_000  # bytes; a message of 67 MB in base64
MOST = 900  # MB of growth: two messages are received at a time; eight at once took more than 2,000
PATIENCE = 300.0  # s


class _PatientPhone(AppConnection):
    """A phone that waits until the servers read its message."""

    def __init__(self, port: int, sockets: ExitStack) -> None:
        super().__init__(port)
        self._sockets = sockets

    def _client(self) -> HttpClient:
        sock = self._sockets.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE))
        return HttpClient(LiveConnection(sock), f"127.0.0.1:{self.port}", os.urandom)


def memory(pid: int, name: str) -> float:
    """Return a figure of the kernel in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1000


@pytest.mark.full
def test_files_of_eight_phones_at_once_take_bounded_memory(tmp_path: Path) -> None:
    port = free_port()
    options = ("--host", "127.0.0.1", "--port", "0", "--api-port", "0", "--dashboard-port", str(port), "--no-qr")
    env = {"SVC_DASHBOARD_PASSWORD": PASSWORD}
    with running(tmp_path, "servers", *options, env=env) as servers, ExitStack() as sockets:
        servers.line(rf"^dashboard: http://127\.0\.0\.1:{port} ")
        phones = [_PatientPhone(port, sockets) for _ in range(PHONES)]
        chats: list[str] = []
        for phone in phones:
            phone.sign_in()
            phone.open()
            chats.append(phone.call("session.create", {"cols": 80})["result"]["session_id"])
        before = memory(servers.process.pid, "VmRSS")
        url = "data:text/plain;base64," + b64encode(b"buy tea\n" * (FILE // 8)).decode()
        answers: list[dict[str, Any]] = []

        def send(phone: AppConnection, chat: str) -> None:
            params = {"session_id": chat, "data_url": url, "name": "list.txt"}
            answers.append(phone.call("file.attach", params)["result"])

        senders = [threading.Thread(target=send, args=each) for each in zip(phones, chats, strict=True)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join(PATIENCE)
        growth = memory(servers.process.pid, "VmHWM") - before
    assert [answer["size"] for answer in answers] == [FILE] * PHONES
    assert growth < MOST, growth
