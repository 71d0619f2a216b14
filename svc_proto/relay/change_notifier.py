"""Callbacks for two changes in the relay: of the list of connected phones, and of the received notifications."""

from collections.abc import Callable
from functools import partial

__all__ = ["DEVICES", "NOTIFICATIONS", "ChangeNotifier"]

DEVICES = "/bridge/devices"
NOTIFICATIONS = "/notifications/recent"


class ChangeNotifier:
    """Callbacks for changed resources, registered by the path at which the resource is read."""

    def __init__(self) -> None:
        self._watching: dict[str, dict[object, Callable[[], None]]] = {DEVICES: {}, NOTIFICATIONS: {}}

    def subscribe(self, what: str, on_change: Callable[[], None]) -> Callable[[], None]:
        """Register a callback for changes of the resource `what` (`DEVICES` or `NOTIFICATIONS`).

        Return the function that unregisters it.
        """
        key = object()
        self._watching[what][key] = on_change
        return partial(self._watching[what].__delitem__, key)

    def notify(self, what: str) -> None:
        """Call all callbacks that are registered for the path `what`."""
        for on_change in list(self._watching[what].values()):
            on_change()
