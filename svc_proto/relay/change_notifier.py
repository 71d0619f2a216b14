"""Who wants to know at once when something of the relay is another: its phones, what they were told."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

__all__ = ["DEVICES", "NOTIFICATIONS", "ChangeNotifier"]

DEVICES = "/bridge/devices"
NOTIFICATIONS = "/notifications/recent"


class ChangeNotifier:
    """Functions to be called, by what they want to know of: the path where it is read."""

    def __init__(self) -> None:
        self._watching: dict[str, dict[object, Callable[[], None]]] = {DEVICES: {}, NOTIFICATIONS: {}}

    def subscribe(self, what: str, tell: Callable[[], None]) -> Callable[[], None]:
        """Have `notify` called with each change, until what this returns is called."""
        key = object()
        self._watching[what][key] = tell
        return partial(self._watching[what].__delitem__, key)

    def notify(self, what: str) -> None:
        """It is another now."""
        for tell in list(self._watching[what].values()):
            tell()
