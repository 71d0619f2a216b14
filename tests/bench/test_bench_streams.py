import json
import socket
from contextlib import closing

import pytest

from bench.measure import BenchError
from bench.script import STAMP, Script, stamp
from bench.streams import Reader


def frame(text: str) -> bytes:
    event = f'event: assistant.delta\ndata: {{"seq":1,"delta":{json.dumps(text)}}}\n\n'.encode()
    return b"%x\r\n%s\r\n" % (len(event), event)


def read(script: Script, data: bytes, step: int) -> Reader:
    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = Reader(server.getsockname(), "s", script)
        with closing(reader.sock), closing(server.accept()[0]) as peer:
            reader.ask()
            assert peer.recv(65_536).startswith(b"POST /api/sessions/s/chat/stream ")
            reader.sock.settimeout(5)
            for at in range(0, len(data), step):
                peer.sendall(data[at : at + step])
                reader.on_readable()
            peer.shutdown(socket.SHUT_WR)
            if not reader.over:
                reader.on_readable()
    return reader


@pytest.mark.parametrize("step", [7, 100, 100_000])
@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_deltas_are_counted_however_they_are_cut(pause: float, step: int) -> None:
    data = b"".join(frame(stamp(5)) for _ in range(9)) + b"0\r\n\r\n"
    reader = read(Script(9, pause), data, step)
    assert (reader.deltas, reader.over, len(reader.delays)) == (9, True, 9 if pause else 0)


def test_a_stream_that_is_not_whole_is_an_error() -> None:
    with pytest.raises(BenchError, match="2 deltas instead of 3"):
        read(Script(3, 0.0), frame("a") * 2 + b"0\r\n\r\n", 50)
    with pytest.raises(BenchError, match="cut off after 2 deltas"):
        read(Script(3, 0.0), frame("a") * 2, 50)


def test_scripts_and_stamps() -> None:
    assert Script.parse(str(Script(1000, 0.025))) == Script(1000, 0.025)
    (found,) = STAMP.findall(frame(stamp(12)))
    assert (int(found[0]), int(found[1]) > 0) == (12, True)
