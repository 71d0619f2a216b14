"""Static assets: files that do not change while the program runs, in memory, with an ETag."""

from __future__ import annotations

from hashlib import sha256

from attrs import field

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.engine.message import Request, Response
from svc_proto.wire.conditional_requests import is_known_version
from svc_proto.wire.events import Headers

__all__ = ["StaticAsset"]

ASK_AGAIN = (b"cache-control", b"no-cache")  # a new version of the program is used at once


@fast_frozen
class StaticAsset:
    """A file of a content type; one with `policy` (header fields of a page) is sent without the common fields."""

    kind: bytes
    body: bytes
    policy: tuple[tuple[bytes, bytes], ...] = ()
    tag: bytes = field(init=False)

    @tag.default
    def _digest(self) -> bytes:
        return b'"%s"' % sha256(self.body).hexdigest()[:32].encode("ascii")

    def answer(self, request: Request) -> Response:
        """Return 200, or 304 if the client has the current version."""
        alone = bool(self.policy)
        fields = ((b"etag", self.tag), ASK_AGAIN, *self.policy)
        if is_known_version(request.headers, self.tag.decode("ascii")):
            return Response(304, Headers(fields), only_these_headers=alone)
        return Response(200, Headers(((b"content-type", self.kind), *fields)), self.body, only_these_headers=alone)
