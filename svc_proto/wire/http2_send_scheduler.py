"""Scheduler of HTTP/2 output: one frame of each stream in turn, as far as the flow-control windows allow."""

from svc_proto.wire.events import StreamId
from svc_proto.wire.h2_optimized import OptimizedH2Connection
from svc_proto.wire.http2_head import trailer_fields
from svc_proto.wire.http2_stream import Http2Stream

__all__ = ["SendScheduler"]


class SendScheduler:
    """Streams that may have queued output, each of which writes one frame in turn."""

    __slots__ = ("_h2", "_streams")

    def __init__(self, h2: OptimizedH2Connection) -> None:
        self._h2 = h2
        self._streams: dict[StreamId, Http2Stream] = {}

    def __bool__(self) -> bool:
        return bool(self._streams)

    def add(self, entry: Http2Stream) -> None:
        """Add a stream that may have output."""
        self._streams[entry.id] = entry

    def remove(self, entry: Http2Stream) -> None:
        """Remove a stream, so that it gets no more turns."""
        self._streams.pop(entry.id, None)

    def clear(self) -> None:
        """Remove all streams."""
        self._streams.clear()

    def write(self, most: int) -> tuple[int, list[Http2Stream]]:
        """Write at most `most` bytes of bodies; return their number, and the streams whose last frame was written."""
        total = 0
        ended: list[Http2Stream] = []
        while self._streams:
            written = 0
            for entry in list(self._streams.values()):
                entry.fill()
                written += self._frame(entry, most - total - written)
                if entry.wrote_end:
                    ended.append(entry)
            if not written:
                break
            total += written
        return total, ended

    def _frame(self, entry: Http2Stream, most: int) -> int:
        h2 = self._h2
        n = min(entry.queued, most, h2.max_outbound_frame_size)
        if n > 0:
            n = min(n, h2.local_flow_control_window(entry.id))
        if entry.queued and n <= 0:
            return 0
        last = n == entry.queued and entry.sent_end
        if n:
            entry.wrote_end = last and not entry.trailers
            h2.send_data_fast(entry.id, entry.cut(n), end=entry.wrote_end and not entry.malformed)
        if not entry.queued:
            self.remove(entry)
            if last and not entry.wrote_end:
                self._end(entry)
        return n

    def _end(self, entry: Http2Stream) -> None:
        entry.wrote_end = True
        if entry.trailers:
            self._h2.send_headers(entry.id, trailer_fields(entry.trailers), end_stream=True)
        elif not entry.malformed:
            self._h2.end_stream(entry.id)
