"""How voice routes refuse: as text, which is what their clients print (wire terminal-voice 3)."""

from __future__ import annotations

from svc_proto.basics.errors import Refused
from svc_proto.engine.message import Response
from svc_proto.wire.events import Headers

__all__ = ["PlainRefused", "plainly"]


class PlainRefused(Refused):
    """A refusal whose body is its message as `text/plain`."""

    def __init__(self, status: int, message: str, *, code: str = "voice_refused") -> None:
        super().__init__(status, code, message)

    def response(self) -> Response:
        """The answer."""
        headers = Headers([(b"content-type", b"text/plain; charset=utf-8"), *self.headers])
        return Response(self.status, headers, self.message.encode("utf-8", "replace"))


def plainly(refused: Refused) -> PlainRefused:
    """The same refusal as text."""
    return PlainRefused(refused.status, refused.message, code=refused.code)
