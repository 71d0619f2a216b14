"""Capture of the events of a stream."""

from __future__ import annotations

import json
from typing import Any

from svc_proto.wire.sse import EventStreamDecoder

Members = dict[str, Any]


class EventCapture:
    """Recorder of a stream's events."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Members]] = []
        self.raw: list[str] = []
        self._decoder = EventStreamDecoder()

    def __call__(self, data: bytes) -> None:
        """Parse more data of the stream."""
        for event in self._decoder.receive_data(data):
            self.raw.append(event.data)
            if event.data.startswith("{"):
                self.told.append((event.event, json.loads(event.data)))

    @property
    def names(self) -> list[str]:
        """Return the names of the events."""
        return [name or str(data.get("event", "")) for name, data in self.told]
