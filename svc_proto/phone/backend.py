"""What stands behind the phone's side of the bridge: something that performs commands, real or simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from attrs import frozen

from svc_proto.basics.moment import Moment

__all__ = ["Handset", "HandsetCommand", "Later", "NeedsUpload", "Performed", "Reply"]


@frozen
class HandsetCommand:
    """One `bridge.command`: method and path of the route, and its arguments."""

    method: str
    path: str
    body: Mapping[str, object]
    request_id: str = ""


@frozen
class Reply:
    """The answer to a command: an HTTP-like status and a JSON object."""

    status: int
    result: Mapping[str, object]


@frozen
class Later:
    """The answer to a command comes after `seconds` (`/wait`)."""

    seconds: float
    reply: Reply


@frozen
class NeedsUpload:
    """The answer is a file: upload it to the relay, then ask `Handset.uploaded` for the reply."""

    file_name: str
    content_type: str
    data: bytes


Performed: TypeAlias = Reply | Later | NeedsUpload


class Handset(Protocol):
    """A device. It has no clock and no socket: time is given, bytes are handed over."""

    def perform(self, command: HandsetCommand, now: Moment) -> Performed:
        """Carry out a command. Never raises: bad arguments are a reply."""
        ...

    def uploaded(self, token: str, scheme: str) -> Reply:
        """The reply to a command whose file is now in the relay's registry under `token`."""
        ...

    def status(self, now: Moment) -> Mapping[str, object]:
        """The payload of a `bridge.status` (wire bridge 1.3)."""
        ...
