"""Waiting for descriptors: epoll as it is, and the standard library's selector where there is none.

What that selector does around epoll takes twice the processor time of the question itself, and each event pays for it.
"""

from __future__ import annotations

import select
import sys
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Protocol

__all__ = ["READ", "WRITE", "Poller", "SelectorPoller", "new_poller"]

READ, WRITE = 1, 4  # EPOLLIN, EPOLLOUT; an error or a hang-up has neither, and is news for both


class Poller(Protocol):
    """What `select.epoll` is."""

    def register(self, fd: int, eventmask: int, /) -> None:
        """Watch a descriptor."""

    def modify(self, fd: int, eventmask: int, /) -> None:
        """Watch it for something else."""

    def unregister(self, fd: int, /) -> None:
        """Watch it no more."""

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        """Wait that many seconds at most, and for ever without; which descriptors have what."""

    def fileno(self) -> int:
        """A descriptor that is readable as soon as one of these has something."""

    def close(self) -> None:
        """Let go of it."""


class SelectorPoller:
    """The same by the standard library's selector."""

    def __init__(self) -> None:
        self._selector = DefaultSelector()

    def register(self, fd: int, eventmask: int, /) -> None:
        """See `Poller`."""
        self._selector.register(fd, _events(eventmask))

    def modify(self, fd: int, eventmask: int, /) -> None:
        """See `Poller`."""
        self._selector.modify(fd, _events(eventmask))

    def unregister(self, fd: int, /) -> None:
        """See `Poller`."""
        self._selector.unregister(fd)

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        """See `Poller`."""
        ready = self._selector.select(timeout)
        return [(key.fd, _mask(events)) for key, events in ready]

    def fileno(self) -> int:
        """See `Poller`."""
        number: int = getattr(self._selector, "fileno")()  # noqa: B009, RUF100 - kqueue's has one
        return number

    def close(self) -> None:
        """See `Poller`."""
        self._selector.close()


def new_poller() -> Poller:
    """What this system has."""
    return select.epoll() if sys.platform == "linux" else SelectorPoller()


def _events(mask: int) -> int:
    return EVENT_READ * bool(mask & READ) | EVENT_WRITE * bool(mask & WRITE)


def _mask(events: int) -> int:
    return READ * bool(events & EVENT_READ) | WRITE * bool(events & EVENT_WRITE)
