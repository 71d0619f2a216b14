"""Exception that ends a route early with a reply (wire/bridge.md 3.1).

On status 400 the value of `error_code` is repeated as `code`, as phones send it.
"""

from __future__ import annotations

from svc_proto.phone.backend import CommandReply

__all__ = ["CommandRefused"]


class CommandRefused(Exception):  # noqa: N818 - an answer, not a fault
    """Refusal of a command: `error` is the reply's text, `more` adds members (wire bridge 3.1)."""

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
