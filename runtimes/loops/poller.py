"""Polling of descriptors: `select.epoll`, or the standard library's selector on systems without epoll."""

import select
import sys
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Protocol

__all__ = ["READ", "WRITE", "Poller", "SelectorPoller", "new_poller"]

READ, WRITE = 1, 4  # EPOLLIN, EPOLLOUT; an error or hang-up has neither bit and counts for both


class Poller(Protocol):
    """The methods of `select.epoll` that are used here."""

    def register(self, fd: int, eventmask: int, /) -> None:
        """Start watching a descriptor."""

    def modify(self, fd: int, eventmask: int, /) -> None:
        """Change the events that are watched."""

    def unregister(self, fd: int, /) -> None:
        """Stop watching a descriptor."""

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        """Wait at most `timeout` seconds (without limit if None); return descriptors with their events."""

    def fileno(self) -> int:
        """Return a descriptor that is readable as soon as a watched one has an event."""

    def close(self) -> None:
        """Close the poller."""


class SelectorPoller:
    """Implementation of `Poller` with the standard library's selector."""

    def __init__(self) -> None:
        self._selector = DefaultSelector()

    def register(self, fd: int, eventmask: int, /) -> None:
        """Implement `Poller.register`."""
        self._selector.register(fd, _events(eventmask))

    def modify(self, fd: int, eventmask: int, /) -> None:
        """Implement `Poller.modify`."""
        self._selector.modify(fd, _events(eventmask))

    def unregister(self, fd: int, /) -> None:
        """Implement `Poller.unregister`."""
        self._selector.unregister(fd)

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        """Implement `Poller.poll`."""
        ready = self._selector.select(timeout)
        return [(key.fd, _mask(events)) for key, events in ready]

    def fileno(self) -> int:
        """Implement `Poller.fileno`."""
        number: int = getattr(self._selector, "fileno")()  # noqa: B009, RUF100 - kqueue's has one
        return number

    def close(self) -> None:
        """Implement `Poller.close`."""
        self._selector.close()


def new_poller() -> Poller:
    """Return an epoll object on Linux, and a `SelectorPoller` elsewhere."""
    return select.epoll() if sys.platform == "linux" else SelectorPoller()


def _events(mask: int) -> int:
    return EVENT_READ * bool(mask & READ) | EVENT_WRITE * bool(mask & WRITE)


def _mask(events: int) -> int:
    return READ * bool(events & EVENT_READ) | WRITE * bool(events & EVENT_WRITE)
