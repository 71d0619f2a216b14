"""A file that does not change while the program runs: in memory, and asked for again by its tag."""

from __future__ import annotations

from hashlib import sha256

from attrs import field

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.engine.message import Request, Response
from svc_proto.wire.events import Headers

__all__ = ["StaticAsset"]

ASK_AGAIN = (b"cache-control", b"no-cache")  # a new version of the program is seen at once


@fast_frozen
class StaticAsset:
    """One file of a kind. What has `policy`, header fields for a page, goes out without those of every answer."""

    kind: bytes
    body: bytes
    policy: tuple[tuple[bytes, bytes], ...] = ()
    tag: bytes = field(init=False)

    @tag.default
    def _digest(self) -> bytes:
        return b'"%s"' % sha256(self.body).hexdigest()[:32].encode("ascii")

    def answer(self, request: Request) -> Response:
        """200, or 304 for whoever has it."""
        alone = bool(self.policy)
        fields = ((b"etag", self.tag), ASK_AGAIN, *self.policy)
        if self.tag in request.headers.tokens(b"if-none-match"):
            return Response(304, Headers(fields), only_these_headers=alone)
        return Response(200, Headers(((b"content-type", self.kind), *fields)), self.body, only_these_headers=alone)
