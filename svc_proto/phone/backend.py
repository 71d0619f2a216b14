"""Interface of the phone backend, which performs bridge commands on a real or simulated phone."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from attrs import frozen

from svc_proto.basics.moment import Moment

__all__ = [
    "PhoneBackend",
    "PhoneCommand",
    "DelayedReply",
    "UploadReply",
    "CommandResponse",
    "CommandReply",
    "CommandRefused",
]


@frozen
class PhoneCommand:
    """Bridge command: method and path of the route, its arguments, and its request id, empty if it has none."""

    method: str
    path: str
    body: Mapping[str, object]
    request_id: str = ""


@frozen
class CommandReply:
    """Answer to a command: an HTTP-like status and a JSON object."""

    status: int
    result: Mapping[str, object]


@frozen
class DelayedReply:
    """Answer to a command that is due after `seconds`, such as that to `/wait`."""

    seconds: float
    reply: CommandReply


@frozen
class UploadReply:
    """Answer by a file: upload it to the relay, and after success call `PhoneBackend.on_uploaded` for the reply."""

    file_name: str
    content_type: str
    data: bytes


CommandResponse: TypeAlias = CommandReply | DelayedReply | UploadReply


class PhoneBackend(Protocol):
    """A phone that executes commands. It has no clock and no sockets: the caller passes the time and uploads files."""

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        """Execute a command and return its reply; bad arguments also result in a reply rather than an error."""
        ...

    def on_uploaded(self, token: str, scheme: str) -> CommandReply:
        """Return the reply to a command whose file is now in the relay's registry under `token`."""
        ...

    def status(self, now: Moment) -> Mapping[str, object]:
        """Return the payload of a `bridge.status` (wire bridge 1.3)."""
        ...


# --- refusal ----------------------------------------------------------------------------------------------------------


class CommandRefused(Exception):  # noqa: N818 - an answer, not a fault
    """Refusal that ends a route early: `error` is the reply's text, `more` adds members (wire bridge 3.1).

    On status 400 the reply repeats `error_code` as `code`, as phones send it.
    """

    def __init__(self, status: int, error: str, error_code: str | None = None, /, **more: object) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.error_code = error_code
        self.more = more

    def to_reply(self) -> CommandReply:
        """Return the refusal as the phone's reply."""
        result: dict[str, object] = {"error": self.error}
        if self.error_code is not None:
            result["error_code"] = self.error_code
            if self.status == 400:
                result["code"] = self.error_code
        return CommandReply(self.status, {**result, **self.more})
