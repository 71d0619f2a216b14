"""Lifecycle of an HTTP exchange: a body may still arrive while the response is sent, and there is one response.

| state     | trigger  | next      |
|-----------|----------|-----------|
| READING   | `ASK`    | ADMITTING | the access policy needs a lookup: until then no more of the request is processed
| ADMITTING | ADMIT    | READING   | the policy has decided; a refusal is answered from READING
| READING   | BODY_END | RUNNING   | the handler runs, as a plain function or as a flow
| READING   | STREAM   | STREAMING | the handler runs, and reads the body as it arrives
| READING   | ANSWER   | DRAINING  | refused early: the rest of the body is read and discarded
| STREAMING | BODY_END | RUNNING   | the handler's next read returns the end
| STREAMING | ANSWER   | DRAINING  | as refused early
| STREAMING | SEND     | DUPLEX    | the head is sent while the body still arrives; the handler may read on
| DUPLEX    | BODY_END | SENDING   |
| DUPLEX    | ANSWER   | DRAINING  | the response is complete; the rest of the body is discarded
| RUNNING   | SEND     | SENDING   | the head is sent; the body is a file, or written by a flow
| RUNNING   | ANSWER   | DONE      |
| SENDING   | ANSWER   | DONE      | the body is sent. One that cannot be completed aborts the connection
| DRAINING  | BODY_END | DONE      |
| any       | LOST     | DONE      | the connection was lost, failed, or became a WebSocket
"""

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
    """State of an HTTP exchange."""

    READING = auto()
    STREAMING = auto()
    RUNNING = auto()
    SENDING = auto()
    DRAINING = auto()
    DONE = auto()
    ADMITTING = auto()
    DUPLEX = auto()


class ExchangeTrigger(IntEnum):
    """Event that can change the state of an HTTP exchange."""

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
RESPONSE_STARTED = (ExchangeState.DUPLEX, ExchangeState.SENDING)  # an error can only be shown by aborting
