"""Capture of the events of a stream."""

import json
from typing import Any

from svc_proto.wire.sse import EventStreamDecoder

Members = dict[str, Any]


class EventCapture:
    """Recorder of a stream's events: `raw` has the data, `told` name and members of those that are JSON objects."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Members]] = []
        self.raw: list[str] = []
        self._decoder = EventStreamDecoder()

    def __call__(self, data: bytes) -> None:
        """Parse more data of the stream, and record the events in it."""
        for event in self._decoder.receive_data(data):
            self.raw.append(event.data)
            if event.data.startswith("{"):
                self.told.append((event.event, json.loads(event.data)))

    @property
    def names(self) -> list[str]:
        """Return the names of the events that are JSON objects; for one without a name, its member `event`."""
        return [name or str(data.get("event", "")) for name, data in self.told]
