"""Line framing of a byte stream with a limit, for a child that writes one JSON object per line."""

from svc_proto.basics.errors import RemoteProtocolError

__all__ = ["MAX_LINE", "LineBuffer"]

MAX_LINE = 32 * 1024 * 1024  # bytes, wire terminal 2.3: a resumed transcript or a tool's output is one line


class LineBuffer:
    """Splitter of bytes into whole lines without their end. A line over the limit is an error."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now. Raises `RemoteProtocolError`, without them, if one gets too long."""
        *ends, rest = data.split(b"\n")
        lines: list[bytes] = []
        for end in ends:
            self._pieces.append(end)
            line = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._check(len(line))
            lines.append(line.removesuffix(b"\r"))
            self._pieces.clear()
            self._size = 0
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
            self._check(self._size)
        return lines

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise RemoteProtocolError(f"a line has more than {self._limit} bytes")
