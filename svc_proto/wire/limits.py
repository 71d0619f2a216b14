"""Size and time limits of the wire protocols in one value, with the reaction to each."""

from __future__ import annotations

from attrs import evolve

from svc_proto.basics.fast_frozen import fast_frozen

__all__ = ["DEFAULT_LIMITS", "MAX_TEXT", "Limits"]

MIB = 1024 * 1024
RESERVE = 512  # file descriptors
MAX_TEXT = 5_000  # characters of a text for speech synthesis before the clean-up, and of a turn: wire terminal-voice 9


@fast_frozen(kw_only=True)
class Limits:
    """Limits of a peer, and of a server for all its peers: sizes in bytes, times in seconds, and counts."""

    max_head: int = 32 * 1024  # request or response head: 431 and close
    max_fields: int = 100  # header fields in one head: 431 and close
    head_timeout: float = 15.0  # from the first byte of a head to its end: 408 and close
    body_timeout: float = 30.0  # for a request body, plus `min_body_rate`: 408 and close
    idle_timeout: float = 75.0  # between requests on a kept connection: close without a response
    write_timeout: float = 60.0  # unsent bytes without progress: drop, unless a WebSocket's peer sends messages
    file_timeout: float = 300.0  # bytes of a file without progress, which kernels report in lumps of 64 KiB: drop
    min_body_rate: int = 1024  # bytes per second by which `body_timeout` grows with what has arrived
    linger: float = 2.0  # from our FIN to the peer's: abort
    max_linger: int = 64 * MIB  # bytes discarded in that time: read no more of them
    max_drain: int = 256 * 1024  # request body read and discarded after an early response; more than that: close
    max_skipped: int = 64 * 1024  # request body where none is accepted, read and discarded; more than that: 413
    max_message: int = 8 * MIB  # one WebSocket message, inflated: close 1009 (wire bridge 1.5)
    unauthenticated_message: int = 64 * 1024  # the same from an unauthenticated peer (wire core 1.3): close 1009
    unauthenticated_budget: int = 48 * MIB  # bytes held for all such peers: the newest wait, then are dropped
    unauthenticated_share: int = 16 * MIB  # of that for one address (IPv4, or a /64) that is not of this host: the same
    unauthenticated_connections: int = 256  # of such peers from one such address: further ones are closed at once
    unauthenticated_burst: int = 4 * 1024  # bytes of all such peers together, read in one round while others wait
    unauthenticated_rate: float = 16.0 * MIB  # of them a second at most
    unauthenticated_timeout: float = 5.0  # for which one is not read: drop
    large_input: int = MIB  # bytes of a message or body of an authenticated peer; beyond, see `large_inputs`
    large_inputs: int = 10_000  # connections that may buffer more than that at a time: others are not read
    large_input_timeout: float = 120.0  # beyond it, for `large_input` more bytes or the end of the message: drop
    ping_interval: float = 30.0  # silence after which we ping (wire core 1.1)
    ping_timeout: float = 20.0  # after our ping without a byte: drop (the peer sees 1006)
    close_timeout: float = 5.0  # from our close frame to the peer's: drop
    high_water: int = 256 * 1024  # unsent bytes on a channel: stop reading from it, sockets report not writable
    low_water: int = 64 * 1024  # unsent bytes: go on
    max_unsent: int = 16 * MIB  # unsent bytes of a WebSocket before another message or pong: drop
    max_connections: int = 10_000  # open channels of one server: further ones are closed at once
    local_connections: int = 32  # of them for programs of this host alone; at most an eighth of them

    def shared(self, *, descriptors: int, servers: int) -> Limits:
        """Return the limits of one of several servers in a process that may have `descriptors` file descriptors.

        A reserve of up to 512, or a half, is for files, shells and outgoing requests.
        """
        places = (descriptors - min(RESERVE, descriptors // 2)) // servers
        budget = self.unauthenticated_budget // servers
        return evolve(
            self,
            max_connections=max(1, min(self.max_connections, places)),
            unauthenticated_budget=budget,
            unauthenticated_share=min(self.unauthenticated_share, budget),
        )


DEFAULT_LIMITS = Limits()
