"""Event stream client without product code: requests and chunks by hand (RFC 9112 section 7.1).

stream = chat(world, api, session, "Hi")
stream.until("assistant.delta")       # the next event of that name
stream.rest()                         # to the end, which must be complete
check_turn(stream.body)               # see tests.loops.session_events
"""

from __future__ import annotations

import json
from typing import Any

from attrs import frozen

from tests.loops.clients import PATIENCE, ByteConnection
from tests.loops.environment import ApiHandle, Environment
from tests.loops.raw_http import read_head


@frozen
class StreamEvent:
    """An event with its name and its JSON data."""

    name: str
    data: dict[str, Any]


class UnreadStream:
    """The response to one request, read step by step. `status` and `head` are set by `open`."""

    def __init__(self, wire: ByteConnection) -> None:
        self.wire = wire
        self.status = 0
        self.head: list[tuple[str, str]] = []
        self.body = b""
        self.over = False
        self.seen = 0  # frames that were consumed

    # --- reading ---

    def open(self, timeout: float = PATIENCE) -> UnreadStream:
        """Read the response's head, and return this stream."""
        self.status, self.head = read_head(self.wire, timeout)
        return self

    def more(self, timeout: float = PATIENCE) -> bool:
        """Read one chunk; return False at the end."""
        if self.over:
            return False
        size = int(self.wire.read_until(b"\r\n", timeout), 16)
        chunk = self.wire.read_exactly(size + 2, timeout)
        assert chunk[size:] == b"\r\n"
        self.body += chunk[:size]
        self.over = not size
        return not self.over

    def event(self, timeout: float = PATIENCE) -> StreamEvent | None:
        """Return the next event, None at the end; keepalive comments are skipped."""
        while True:
            frames = self.body.split(b"\n\n")[self.seen : -1]
            if frames:
                self.seen += 1
                if not frames[0].startswith(b":"):
                    return parse_frames(frames[0] + b"\n\n")[0]
            elif not self.more(timeout):
                return None

    def until(self, name: str, timeout: float = PATIENCE) -> StreamEvent:
        """Return the next event of this name; events before it are skipped. Raise EOFError if there is none."""
        while (told := self.event(timeout)) is not None:
            if told.name == name:
                return told
        raise EOFError(f"no {name} in {self.body!r}")

    def rest(self, timeout: float = PATIENCE) -> bytes:
        """Read to the end and return the whole body."""
        while self.more(timeout):
            pass
        return self.body

    def close(self) -> None:
        self.wire.close()


def open_stream(world: Environment, api: ApiHandle, method: str, path: str, body: object = None) -> UnreadStream:
    """Send the request for an event stream on a connection of its own; nothing is read yet."""
    wire = world.connect(port=api.port)
    data = b"" if body is None else json.dumps(body).encode()
    accept = {"accept": "text/event-stream", "content-length": str(len(data))}
    fields = {"host": f"127.0.0.1:{api.port}", **accept, **api.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    wire.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + data)
    return UnreadStream(wire)


def chat(world: Environment, api: ApiHandle, session: str, message: str, **fields: object) -> UnreadStream:
    """Start a turn, and read the head of its event stream."""
    body = {"message": message, **fields}
    stream = open_stream(world, api, "POST", f"/api/sessions/{session}/chat/stream", body).open()
    assert stream.status == 200, stream.head
    return stream


def parse_frames(body: bytes) -> list[StreamEvent]:
    """Return the events of a session's stream.

    Raise AssertionError or ValueError if it breaks the rules of wire api 4.2.
    """
    assert body.endswith(b"\n\n"), body[-100:]
    found: list[StreamEvent] = []
    for frame in body[:-2].split(b"\n\n"):
        if frame == b": keepalive":
            continue
        first, second = frame.split(b"\n")  # exactly two lines
        assert first.startswith(b"event: "), frame
        assert second.startswith(b"data: {"), frame
        assert b"\r" not in frame
        assert b"\\u" not in second.lower(), "not ASCII-escaped"
        found.append(StreamEvent(first[7:].decode(), _json(second[6:].decode())))
    return found


def _json(text: str) -> dict[str, Any]:
    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({name for name, _ in members}) == len(members), f"a member comes twice: {text}"
        return dict(members)

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is no JSON")

    value: dict[str, Any] = json.loads(text, object_pairs_hook=pairs, parse_constant=refuse)
    return value
