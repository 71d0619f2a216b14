"""Where HTTP/1.1 is in what the peer says, for both roles.

| state  | trigger | next   |
|--------|---------|--------|
| HEAD   | FRAMED  | BODY   | a head, with a body to follow
| HEAD   | BARE    | LAST   | a request head without a body: its `RequestEnd` is due
| HEAD   | SWITCH  | SOCKET | client: the 101
| BODY   | END     | DONE   | the message is complete
| LAST   | END     | DONE   |
| LAST   | SWITCH  | SOCKET | server: accepted before the `RequestEnd` was taken, which then never comes
| DONE   | CYCLE   | HEAD   | request and response are complete, and both ends keep the connection
| DONE   | SWITCH  | SOCKET | server: accepted
| any    | STOP    | OVER   | an error, an end of input, or a connection that is not kept
"""

from __future__ import annotations

from enum import IntEnum, auto

__all__ = ["READING", "Reading", "ReadingTrigger"]


class Reading(IntEnum):
    """Where we are in what the peer says."""

    HEAD = auto()
    BODY = auto()
    LAST = auto()
    DONE = auto()
    SOCKET = auto()
    OVER = auto()


class ReadingTrigger(IntEnum):
    """What moves it."""

    FRAMED = auto()
    BARE = auto()
    END = auto()
    CYCLE = auto()
    SWITCH = auto()
    STOP = auto()


READING: dict[tuple[Reading, ReadingTrigger], Reading] = {
    (Reading.HEAD, ReadingTrigger.FRAMED): Reading.BODY,
    (Reading.HEAD, ReadingTrigger.BARE): Reading.LAST,
    (Reading.HEAD, ReadingTrigger.SWITCH): Reading.SOCKET,
    (Reading.BODY, ReadingTrigger.END): Reading.DONE,
    (Reading.LAST, ReadingTrigger.END): Reading.DONE,
    (Reading.LAST, ReadingTrigger.SWITCH): Reading.SOCKET,
    (Reading.DONE, ReadingTrigger.CYCLE): Reading.HEAD,
    (Reading.DONE, ReadingTrigger.SWITCH): Reading.SOCKET,
    **{(state, ReadingTrigger.STOP): Reading.OVER for state in Reading},
}
