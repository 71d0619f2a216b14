"""What strangers can make the memory of a real relay grow by: 200 of them, each with the worst first frame there is."""

from __future__ import annotations

import os
import socket
import zlib
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.loops.raw import TEXT, frame
from tests.loops.test_load_descriptors import Scarce, healthy
from tests.loops.wires import PATIENCE

STRANGERS = 200
SOMEWHERE = "127.0.0.5"  # no loopback to the relay's policies
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: c2l4dGVlbiBieXRlcyBvaw==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)
MIB = 1024 * 1024
PAGE = os.sysconf("SC_PAGE_SIZE")


def memory(relay: Scarce) -> int:
    """Bytes of it that are in use."""
    return int(Path(f"/proc/{relay.process.pid}/statm").read_text().split()[1]) * PAGE


def unfinished(size: int) -> bytes:
    """The deflated beginning of a message."""
    deflater = zlib.compressobj(wbits=-15)
    packed = deflater.compress(b'{"a":"' + b"A" * size) + deflater.flush(zlib.Z_SYNC_FLUSH)
    return frame(TEXT, packed, fin=False, rsv=4)


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="reads the memory of a process from /proc")
@pytest.mark.parametrize("size", [8_388_000, 65_000])
def test_the_worst_first_frames(tmp_path: Path, size: int) -> None:
    relay = Scarce("anyio", tmp_path, few=False)
    said = UPGRADE + unfinished(size)
    try:
        with ExitStack() as stack:
            first = relay.connect()
            stack.callback(first.close)
            assert healthy(first)
            before = memory(relay)
            for _ in range(STRANGERS):
                stranger = stack.enter_context(
                    socket.create_connection(("127.0.0.1", relay.port), PATIENCE, (SOMEWHERE, 0))
                )
                stranger.sendall(said)
                assert stranger.recv(1000).startswith(b"HTTP/1.1 101")
            assert healthy(first)
            assert memory(relay) - before < 48 * MIB  # 1.6 GiB, if each may have its 8 MiB
    finally:
        relay.process.kill()
        relay.process.wait()
