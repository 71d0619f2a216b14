"""Where a request and its answer are: a body may still come while the answer goes out, and an answer is given once.

| state     | trigger  | next      |
|-----------|----------|-----------|
| READING   | ASK      | ADMITTING | the policy has to ask somebody: until then nothing more of the request is taken
| ADMITTING | ADMIT    | READING   | it has decided; a refusal is answered from there
| READING   | BODY_END | RUNNING   | the handler runs, as a plain function or as a flow
| READING   | STREAM   | STREAMING | the handler runs, and reads the body while it comes
| READING   | ANSWER   | DRAINING  | refused early: the rest of the body is read and thrown away
| STREAMING | BODY_END | RUNNING   | the handler's next read tells it
| STREAMING | ANSWER   | DRAINING  | the same as refused early
| STREAMING | SEND     | DUPLEX    | the head is out while the body still comes; whoever writes may go on reading
| DUPLEX    | BODY_END | SENDING   |
| DUPLEX    | ANSWER   | DRAINING  | the answer is out; what is left of the body is thrown away
| RUNNING   | SEND     | SENDING   | the head is out; the body is a file, or written by a flow
| RUNNING   | ANSWER   | DONE      |
| SENDING   | ANSWER   | DONE      | the body is out. One that cannot be completed cuts the connection
| DRAINING  | BODY_END | DONE      |
| any       | LOST     | DONE      | the connection went away, or became a WebSocket
"""

from __future__ import annotations

from enum import IntEnum, auto

from svc_proto.machines.transitions import Table

__all__ = [
    "BODY_EXPECTED",
    "RESPONSE_STARTED",
    "BODY_BUFFERED",
    "EXCHANGE_TABLE",
    "UNANSWERED",
    "ExchangeState",
    "ExchangeTrigger",
]


class ExchangeState(IntEnum):
    """Where an exchange is."""

    READING = auto()
    STREAMING = auto()
    RUNNING = auto()
    SENDING = auto()
    DRAINING = auto()
    DONE = auto()
    ADMITTING = auto()
    DUPLEX = auto()


class ExchangeTrigger(IntEnum):
    """What moves it."""

    BODY_END = auto()
    STREAM = auto()
    SEND = auto()
    ANSWER = auto()
    LOST = auto()
    ASK = auto()
    ADMIT = auto()


EXCHANGE_TABLE: Table[ExchangeState, ExchangeTrigger] = {
    (ExchangeState.READING, ExchangeTrigger.ASK): ExchangeState.ADMITTING,
    (ExchangeState.ADMITTING, ExchangeTrigger.ADMIT): ExchangeState.READING,
    (ExchangeState.READING, ExchangeTrigger.BODY_END): ExchangeState.RUNNING,
    (ExchangeState.READING, ExchangeTrigger.STREAM): ExchangeState.STREAMING,
    (ExchangeState.READING, ExchangeTrigger.ANSWER): ExchangeState.DRAINING,
    (ExchangeState.STREAMING, ExchangeTrigger.BODY_END): ExchangeState.RUNNING,
    (ExchangeState.STREAMING, ExchangeTrigger.ANSWER): ExchangeState.DRAINING,
    (ExchangeState.STREAMING, ExchangeTrigger.SEND): ExchangeState.DUPLEX,
    (ExchangeState.DUPLEX, ExchangeTrigger.BODY_END): ExchangeState.SENDING,
    (ExchangeState.DUPLEX, ExchangeTrigger.ANSWER): ExchangeState.DRAINING,
    (ExchangeState.RUNNING, ExchangeTrigger.SEND): ExchangeState.SENDING,
    (ExchangeState.RUNNING, ExchangeTrigger.ANSWER): ExchangeState.DONE,
    (ExchangeState.SENDING, ExchangeTrigger.ANSWER): ExchangeState.DONE,
    (ExchangeState.DRAINING, ExchangeTrigger.BODY_END): ExchangeState.DONE,
    **{(state, ExchangeTrigger.LOST): ExchangeState.DONE for state in ExchangeState},
}

UNANSWERED = (ExchangeState.READING, ExchangeState.STREAMING, ExchangeState.RUNNING)
BODY_EXPECTED = (ExchangeState.READING, ExchangeState.STREAMING, ExchangeState.DUPLEX, ExchangeState.DRAINING)
BODY_BUFFERED = (ExchangeState.READING, ExchangeState.STREAMING, ExchangeState.RUNNING, ExchangeState.DUPLEX)
RESPONSE_STARTED = (ExchangeState.DUPLEX, ExchangeState.SENDING)  # nothing but a cut can say that something went wrong
