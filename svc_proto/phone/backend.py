"""What stands behind the phone's side of the bridge: something that performs commands, real or simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from attrs import frozen

from svc_proto.basics.moment import Moment

__all__ = ["PhoneBackend", "PhoneCommand", "DelayedReply", "UploadReply", "CommandResponse", "CommandReply"]


@frozen
class PhoneCommand:
    """One `bridge.command`: method and path of the route, and its arguments."""

    method: str
    path: str
    body: Mapping[str, object]
    request_id: str = ""


@frozen
class CommandReply:
    """The answer to a command: an HTTP-like status and a JSON object."""

    status: int
    result: Mapping[str, object]


@frozen
class DelayedReply:
    """The answer to a command comes after `seconds` (`/wait`)."""

    seconds: float
    reply: CommandReply


@frozen
class UploadReply:
    """The answer is a file: upload it to the relay, then ask `PhoneBackend.on_uploaded` for the reply."""

    file_name: str
    content_type: str
    data: bytes


CommandResponse: TypeAlias = CommandReply | DelayedReply | UploadReply


class PhoneBackend(Protocol):
    """A device. It has no clock and no socket: time is given, bytes are handed over."""

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        """Carry out a command. Never raises: bad arguments are a reply."""
        ...

    def on_uploaded(self, token: str, scheme: str) -> CommandReply:
        """The reply to a command whose file is now in the relay's registry under `token`."""
        ...

    def status(self, now: Moment) -> Mapping[str, object]:
        """The payload of a `bridge.status` (wire bridge 1.3)."""
        ...
