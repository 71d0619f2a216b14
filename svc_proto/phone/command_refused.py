"""How a route ends early (wire/bridge.md 3.1): `error` in words, `error_code` where the failure has a name.

On status 400 the same value comes again as `code`, as phones send it.
"""

from __future__ import annotations

from svc_proto.phone.backend import CommandReply

__all__ = ["CommandRefused"]


class CommandRefused(Exception):  # noqa: N818 - an answer, not a fault
    """Ends a route of the phone early. `error` names the argument at fault, `more` goes with it (wire bridge 3.1)."""

    def __init__(self, status: int, error: str, error_code: str | None = None, /, **more: object) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.error_code = error_code
        self.more = more

    def to_reply(self) -> CommandReply:
        """The refusal as the phone's answer."""
        result: dict[str, object] = {"error": self.error}
        if self.error_code is not None:
            result["error_code"] = self.error_code
            if self.status == 400:
                result["code"] = self.error_code
        return CommandReply(self.status, {**result, **self.more})
