"""Scheduler of HTTP/2 output: one frame of each stream in turn, as far as the flow-control windows allow."""

from __future__ import annotations

from svc_proto.wire.events import StreamId
from svc_proto.wire.h2_optimized import OptimizedH2Connection
from svc_proto.wire.http2_head import trailer_fields
from svc_proto.wire.http2_stream import Http2Stream

__all__ = ["SendScheduler"]


class SendScheduler:
    """The streams with queued output."""

    __slots__ = ("_h2", "_streams")

    def __init__(self, h2: OptimizedH2Connection) -> None:
        self._h2 = h2
        self._streams: dict[StreamId, Http2Stream] = {}

    def __bool__(self) -> bool:
        return bool(self._streams)

    def add(self, known: Http2Stream) -> None:
        """Add a stream that may have output."""
        self._streams[known.id] = known

    def remove(self, known: Http2Stream) -> None:
        """Remove a stream without output."""
        self._streams.pop(known.id, None)

    def clear(self) -> None:
        """Remove all streams."""
        self._streams.clear()

    def write(self, most: int) -> tuple[int, list[Http2Stream]]:
        """Write at most `most` bytes of bodies; return their number, and the streams that ended or have to be reset."""
        total = 0
        ended: list[Http2Stream] = []
        while self._streams:
            written = 0
            for known in list(self._streams.values()):
                known.fill()
                written += self._frame(known, most - total - written)
                if known.wrote_end:
                    ended.append(known)
            if not written:
                break
            total += written
        return total, ended

    def _frame(self, known: Http2Stream, most: int) -> int:
        h2 = self._h2
        n = min(known.queued, most, h2.max_outbound_frame_size)
        if n > 0:
            n = min(n, h2.local_flow_control_window(known.id))
        if known.queued and n <= 0:
            return 0
        last = n == known.queued and known.sent_end
        if n:
            known.wrote_end = last and not known.trailers
            h2.send_data_fast(known.id, known.cut(n), end=known.wrote_end and not known.malformed)
        if not known.queued:
            self.remove(known)
            if last and not known.wrote_end:
                self._end(known)
        return n

    def _end(self, known: Http2Stream) -> None:
        known.wrote_end = True
        if known.trailers:
            self._h2.send_headers(known.id, trailer_fields(known.trailers), end_stream=True)
        elif not known.malformed:
            self._h2.end_stream(known.id)
