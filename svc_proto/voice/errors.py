"""How voice routes refuse: as text, which is what their clients print (wire terminal-voice 3)."""

from __future__ import annotations

from svc_proto.basics.errors import Refused
from svc_proto.engine.message import Response
from svc_proto.wire.events import Headers

__all__ = ["BASIC_PATHS", "plain_refusal"]

BASIC_PATHS = ("/voice/config", "/voice/transcribe", "/voice/synthesize")  # they refuse as JSON


def plain_refusal(refused: Refused) -> Response:
    """The answer whose body is the message as `text/plain`."""
    headers = Headers([(b"content-type", b"text/plain; charset=utf-8"), *refused.headers])
    return Response(refused.status, headers, refused.message.encode("utf-8", "replace"))
