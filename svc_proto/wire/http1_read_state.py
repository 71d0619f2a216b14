"""State of reading HTTP/1.1 from the peer, for both roles.

| state  | trigger | next   |
|--------|---------|--------|
| HEAD   | FRAMED  | BODY   | a head, with a body to follow
| HEAD   | BARE    | LAST   | a request head without a body: its `RequestEnd` is due
| HEAD   | SWITCH  | SOCKET | client: the 101
| BODY   | END     | DONE   | the message is complete
| LAST   | END     | DONE   |
| LAST   | SWITCH  | SOCKET | server: accepted before the `RequestEnd` was returned, which then never comes
| DONE   | CYCLE   | HEAD   | request and response are complete, and both ends keep the connection
| DONE   | SWITCH  | SOCKET | server: accepted
| any    | STOP    | OVER   | an error, an end of input, a response on stream 0, or a connection that is not kept
"""

from enum import IntEnum, auto

__all__ = ["READ_TABLE", "ReadState", "ReadTrigger"]


class ReadState(IntEnum):
    """States of reading from the peer."""

    HEAD = auto()
    BODY = auto()
    LAST = auto()
    DONE = auto()
    SOCKET = auto()
    OVER = auto()


class ReadTrigger(IntEnum):
    """Triggers of the state changes of reading from the peer."""

    FRAMED = auto()
    BARE = auto()
    END = auto()
    CYCLE = auto()
    SWITCH = auto()
    STOP = auto()


READ_TABLE: dict[tuple[ReadState, ReadTrigger], ReadState] = {
    (ReadState.HEAD, ReadTrigger.FRAMED): ReadState.BODY,
    (ReadState.HEAD, ReadTrigger.BARE): ReadState.LAST,
    (ReadState.HEAD, ReadTrigger.SWITCH): ReadState.SOCKET,
    (ReadState.BODY, ReadTrigger.END): ReadState.DONE,
    (ReadState.LAST, ReadTrigger.END): ReadState.DONE,
    (ReadState.LAST, ReadTrigger.SWITCH): ReadState.SOCKET,
    (ReadState.DONE, ReadTrigger.CYCLE): ReadState.HEAD,
    (ReadState.DONE, ReadTrigger.SWITCH): ReadState.SOCKET,
    **{(state, ReadTrigger.STOP): ReadState.OVER for state in ReadState},
}
