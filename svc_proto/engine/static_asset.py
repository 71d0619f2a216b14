"""Static assets: files that do not change while the program runs, in memory, with an ETag, compressed on request."""

import gzip
import re
from functools import lru_cache
from hashlib import sha256

from attrs import field

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.engine.message import Request, Response
from svc_proto.wire.conditional_requests import is_known_version
from svc_proto.wire.events import Headers

__all__ = ["StaticAsset", "accepts_gzip"]

ASK_AGAIN = (b"cache-control", b"no-cache")  # a new version of the program is used at once
BY_CODING = (b"vary", b"accept-encoding")
COMPRESSED = (b"text/", b"application/json", b"application/manifest+json", b"image/svg+xml")  # beginnings of types
CACHED = 256  # compressed assets; the dashboard has about 100

_UNWANTED = re.compile(rb"q=0(\.0*)?")  # RFC 9110 section 12.4.2


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
        """Return 200, or 304 if the client has the current version.

        The types in `COMPRESSED` are compressed for clients that accept gzip.
        """
        alone = bool(self.policy)
        tag, body = self.tag, self.body
        coding: tuple[tuple[bytes, bytes], ...] = ()
        varies = (BY_CODING,) if self.kind.startswith(COMPRESSED) else ()
        if varies and accepts_gzip(request.headers):
            tag, body, coding = tag[:-1] + b'-gzip"', _compress(body), ((b"content-encoding", b"gzip"),)
        fields = ((b"etag", tag), ASK_AGAIN, *varies, *self.policy)
        if is_known_version(request.headers, tag.decode("ascii")):
            return Response(304, Headers(fields), only_these_headers=alone)
        return Response(200, Headers(((b"content-type", self.kind), *coding, *fields)), body, only_these_headers=alone)


def accepts_gzip(headers: Headers) -> bool:
    """Report whether a client accepts gzip, RFC 9110 section 12.5.3. A client that names only `*` gets no coding."""
    for member in headers.tokens(b"accept-encoding"):
        coding, _, weight = member.partition(b";")
        if coding.strip() in (b"gzip", b"x-gzip"):
            return not _UNWANTED.fullmatch(weight.strip())
    return False


@lru_cache(CACHED)
def _compress(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)
