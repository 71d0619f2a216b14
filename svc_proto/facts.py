"""Facts from a runtime to a core: immutable, comparable values, in the order of their events.

A channel is anything that carries bytes over time. Channels that a peer opened have even numbers, assigned by the
runtime; channels that the core opened have odd numbers, assigned by the core. A number is never used twice. An
operation is an order with exactly one answer, `Done` or `Failed`; the core assigns its number.

Per channel the order is: `Accepted` (or the `Done` of the operation that opened it), then any of `Received`, `Sent`, at
most one `ReadClosed`, and `Closed` last, exactly once.
"""

from enum import Enum
from typing import NewType, TypeAlias

from svc_proto.basics.fast_frozen import fast_frozen

__all__ = [
    "HTTP1",
    "HTTP2",
    "Accepted",
    "Address",
    "ChannelId",
    "Closed",
    "Done",
    "Fact",
    "Failed",
    "Failure",
    "FailureKind",
    "OperationId",
    "ReadClosed",
    "Received",
    "Reloading",
    "Sent",
    "Started",
    "Stopping",
]

HTTP1, HTTP2 = "http/1.1", "h2"  # ALPN names; the chosen one "SHALL be definitive", RFC 7301 section 3.2

ChannelId = NewType("ChannelId", int)
OperationId = NewType("OperationId", int)


@fast_frozen
class Address:
    """A socket address: an IP address as text, or another name such as `stdio`, and a port."""

    host: str
    port: int


class FailureKind(Enum):
    """Reason of a failed operation, with the same meaning on every loop and platform."""

    NOT_FOUND = "not_found"
    DENIED = "denied"
    EXISTS = "exists"
    NO_SPACE = "no_space"
    TOO_LARGE = "too_large"
    UNREACHABLE = "unreachable"  # refused, no route, name not found
    TIMED_OUT = "timed_out"
    TLS = "tls"
    INVALID = "invalid"  # the input itself is at fault (bad YAML, bad path)
    CANCELLED = "cancelled"
    UNSUPPORTED = "unsupported"
    INTERNAL = "internal"


@fast_frozen
class Failure:
    """A failed operation as data. `detail` is for a log line and holds no secret."""

    kind: FailureKind
    detail: str = ""


@fast_frozen
class Started:
    """First fact of a core: the runtime is ready to carry out commands."""


@fast_frozen
class Accepted:
    """A peer opened a channel to us. `tls` and `alpn` are the results of the negotiation before the first byte.

    `own_user` reports, for a peer with a loopback address, whether the kernel names our own user or root as the owner
    of the peer's socket. It is None for other peers, and if the runtime does not or cannot query the kernel.
    """

    ch: ChannelId
    peer: Address
    local: Address
    tls: bool = False
    alpn: str | None = None
    own_user: bool | None = None


@fast_frozen
class Received:
    """Bytes arrived; never empty."""

    ch: ChannelId
    data: bytes


@fast_frozen
class ReadClosed:
    """The peer will send no more (FIN); writing may continue."""

    ch: ChannelId


@fast_frozen
class Sent:
    """`n` more bytes of earlier `Send`s, or of a `SendFile`, have left for the kernel. May stand for several writes."""

    ch: ChannelId
    n: int


@fast_frozen
class Closed:
    """The channel is gone in both directions; `why` is free text for logs. No further fact names it.

    `exit` is the exit status of the child process behind the channel, negative for a signal. It is None for any other
    channel, and if the channel has closed before the child exits.
    """

    ch: ChannelId
    why: str = ""
    exit: int | None = None


@fast_frozen
class Done:
    """An operation succeeded; `result` has the operation's `answer` type."""

    op: OperationId
    result: object


@fast_frozen
class Failed:
    """An operation failed."""

    op: OperationId
    error: Failure


@fast_frozen
class Stopping:
    """The process has to stop: finish within `grace` seconds, then `Exit`."""

    grace: float


@fast_frozen
class Reloading:
    """Certificates and keys, which may change while the process runs, are to be read again (SIGHUP)."""


Fact: TypeAlias = Started | Accepted | Received | ReadClosed | Sent | Closed | Done | Failed | Stopping | Reloading
