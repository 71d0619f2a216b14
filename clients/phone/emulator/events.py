"""The accessibility-event buffer behind `/events` and `/events/stream` (wire/bridge.md 3.6)."""

from collections import deque
from enum import Enum
from typing import cast

from svc_proto.basics.moment import Moment

__all__ = ["CAPACITY", "EventBuffer", "EventKind"]

CAPACITY = 500  # entries, oldest dropped
QUIET = 0.1  # s between two entries of one (type, package)
TEXT_LIMIT = 200  # characters


class EventKind(Enum):
    """Recorded event types with their platform constants."""

    CLICK = ("click", "TYPE_VIEW_CLICKED")
    TEXT_CHANGED = ("text_changed", "TYPE_VIEW_TEXT_CHANGED")
    CONTENT_CHANGED = ("window_content_changed", "TYPE_WINDOW_CONTENT_CHANGED")
    STATE_CHANGED = ("window_state_changed", "TYPE_WINDOW_STATE_CHANGED")
    SCROLL = ("scroll", "TYPE_VIEW_SCROLLED")


class EventBuffer:
    """Ring buffer of events, off at first; each change between on and off empties it."""

    def __init__(self) -> None:
        self.streaming = False
        self._entries: deque[dict[str, object]] = deque(maxlen=CAPACITY)
        self._last: dict[tuple[EventKind, str], float] = {}

    def switch(self, enabled: bool) -> None:
        """Turn capture on or off; a change empties the buffer."""
        if enabled == self.streaming:
            return
        self.streaming = enabled
        self._entries.clear()
        self._last.clear()

    def record(
        self,
        kind: EventKind,
        package: str,
        now: Moment,
        *,
        class_name: str | None = None,
        text: str | None = None,
        description: str | None = None,
    ) -> None:
        """Add an event, unless capture is off or an equal type and package was recorded less than 100 ms ago."""
        if not self.streaming:
            return
        last = self._last.get((kind, package))
        if last is not None and now.mono - last < QUIET:
            return
        self._last[kind, package] = now.mono
        name, source = kind.value
        entry: dict[str, object] = {"timestamp": int(now.wall * 1000), "event_type": name, "package_name": package}
        if class_name is not None:
            entry["class_name"] = class_name
        if text is not None and text.strip():
            entry["text"] = text.strip()[:TEXT_LIMIT]
        if description is not None:
            entry["content_description"] = description
        entry["source"] = source
        self._entries.append(entry)

    def newest(self, limit: int, since: int) -> list[dict[str, object]]:
        """Return at most `limit` (1 or more) entries, oldest first; with `since` > 0 only newer ones (epoch ms)."""
        entries = [dict(entry) for entry in self._entries if since <= 0 or cast("int", entry["timestamp"]) > since]
        return entries[-limit:]
