"""Principal of a voice route: a paired device, or a caller with the API server's bearer (wire terminal-voice 4.7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from attrs import field, frozen

from svc_proto.basics.brand import Brand
from svc_proto.basics.entropy import secrets_equal

__all__ = ["Principal"]


@frozen(kw_only=True)
class Principal:
    """Client that may use a voice route.

    `bearer` is the token of an API client, with which its runs are made; empty for a paired device. `until` returns the
    wall time at which the device's grant or the key expires: None for never, infinity for unknown. The time may change.
    """

    kind: Literal["session", "api"]
    device_id: str | None = None  # of a paired device that named one
    bearer_hash: str  # SHA-256 of the token, lower-case hex
    bearer: str = field(default="", repr=False)
    name: str = ""  # of a paired device, for records
    # Return what a paired device does not hold of the powers of its runs, and of `chat`; called for each request.
    withheld: Callable[[], tuple[str, ...]] = field(default=tuple, eq=False)
    until: Callable[[], float | None] | None = field(default=None, eq=False)
    brand: Brand | None = None  # of the client; None if it was not recognized

    def matches(self, other: Principal) -> bool:
        """Report whether both are the same device or, of one kind and without device ids, have the same token."""
        if self.kind != other.kind:
            return False
        if self.kind == "session" and self.device_id is not None:
            return self.device_id == other.device_id
        return other.device_id is None and secrets_equal(self.bearer_hash, other.bearer_hash)
