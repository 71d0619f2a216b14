"""S3 object store in memory, as a core, with the requests that a relay makes.

    store = world.host("s3", "10.0.0.8").start(lambda entropy: s3_core(bucket, entropy), listen=[9000])

Requests are authenticated by a signature (AWS Signature Version 4), which this module checks with an implementation of
its own, independent of the library that signs on real hosts. Simulated hosts sign with `sign_s3_request_at`.
"""

import hmac
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum, auto
from hashlib import md5, sha256
from urllib.parse import parse_qsl, quote, urlsplit

from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import Refused
from svc_proto.commands import Ready
from svc_proto.engine.admission import AdmissionControl
from svc_proto.engine.core import Engine
from svc_proto.engine.message import Request, Response
from svc_proto.engine.router import Route, Router
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.facts import Accepted
from svc_proto.settings import S3Bucket
from svc_proto.wire.events import Headers, RequestHead
from svc_proto.wire.limits import DEFAULT_LIMITS
from svc_proto.wire.ranges import Unsatisfiable, requested_range

__all__ = ["S3Service", "s3_core", "sign_s3_request_at"]

SKEW = 900.0  # s that the clocks may differ
LARGEST = 5 * 1024**3  # bytes of an object in one request
STAMP = "%Y%m%dT%H%M%SZ"
SCHEME = "AWS4-HMAC-SHA256"
XML = (b"content-type", b"application/xml")


class S3Access(Enum):
    """The access policies: every route requires a signature."""

    SIGNED = auto()


def s3_core(bucket: S3Bucket, entropy: Entropy) -> Engine:
    """Build a core with this bucket, open to clients with its key."""
    return Engine(S3Service(bucket), entropy=entropy)


class S3Service:
    """Service with one bucket. Tests may inspect `objects`, and replace responses with `instead`."""

    engine: Engine

    def __init__(self, bucket: S3Bucket) -> None:
        self.bucket = bucket
        self.objects: dict[str, bytes] = {}  # by path
        self.asked: list[tuple[str, str]] = []  # methods and paths of authorized requests
        self.instead: Callable[[Request, Response], Response] = lambda request, response: response
        depth = urlsplit(bucket.url).path.count("/")
        path = "".join(f"/{{part{n}}}" for n in range(depth)) + "/{name}"
        rows = (("PUT", self._put, LARGEST), ("GET", self._get, 0), ("DELETE", self._delete, 0))
        self.router = Router(
            [
                Route(
                    method=method, pattern=path, access=S3Access.SIGNED, handler=self._served(handler), body_limit=most
                )
                for method, handler, most in rows
            ]
        )

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Implement `Service.bind`: store the engine, and create the admission control."""
        self.engine = engine
        self._admission = AdmissionControl(engine, self, DEFAULT_LIMITS)

    def on_started(self) -> None:
        """Report the core as ready: there is nothing to load."""
        self.engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> ServerChannel | None:
        """Return the channel of the client, or None if `AdmissionControl` refuses the connection."""
        return self._admission.admit(fact)

    def on_stopping(self) -> None:
        """Do nothing: `objects` stay for the tests."""

    # --- HttpApp ---

    def authorize(self, access: Enum, request: Request) -> object:
        """Check the signature of a request; return the bucket's key id, or raise `Refused`.

        The rules are those of "Authenticating Requests: Using the Authorization Header" of the S3 documentation.
        """
        headers, bucket = request.headers, self.bucket
        stamp = _field(headers, "x-amz-date")
        try:
            when = datetime.strptime(stamp, STAMP).replace(tzinfo=UTC)
        except ValueError:
            raise Refused(403, "AccessDenied", "a date is missing") from None
        if abs(when.timestamp() - self.engine.now.wall) > SKEW:
            raise Refused(403, "RequestTimeTooSkewed", "the clocks differ")
        if bucket.token and not hmac.compare_digest(_field(headers, "x-amz-security-token"), bucket.token):
            raise Refused(400, "InvalidToken", "another token")
        shown = _field(headers, "authorization")
        names = shown.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        needed = {"host", *(key.decode() for key, _ in headers if key.startswith(b"x-amz-"))}
        signed = {name: _field(headers, name) for name in names}
        digest = _field(headers, "x-amz-content-sha256")
        target = f"{request.path}?{request.raw_query}"
        if not needed <= signed.keys() or shown != _authorization(
            bucket, request.method, target, signed, stamp, digest
        ):
            raise Refused(403, "SignatureDoesNotMatch", "the signature is another")
        return bucket.key

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        """Return an error in S3's XML format."""
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{refused.code}</Code></Error>'
        return Response(refused.status, Headers([XML, *refused.headers]), text.encode())

    def response_headers(self, head: RequestHead, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        """Return the `server` header."""
        return ((b"server", b"SimulatedS3"),)

    # --- requests ---

    def _served(self, handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def serve(request: Request) -> Response:
            self.asked.append((request.method, request.path))
            return self.instead(request, handler(request))

        return serve

    def _put(self, request: Request) -> Response:
        if request.headers.get(b"content-length") is None:
            raise Refused(411, "MissingContentLength", "how long is it?")
        if sha256(request.body).hexdigest() != _field(request.headers, "x-amz-content-sha256"):
            raise Refused(400, "XAmzContentSHA256Mismatch", "something else has come")
        self.objects[request.path] = request.body
        return Response(200, Headers([(b"etag", _tag(request.body))]))

    def _get(self, request: Request) -> Response:
        data = self.objects.get(request.path)
        if data is None:
            raise Refused(404, "NoSuchKey", "there is none")
        fields = [(b"etag", _tag(data)), (b"accept-ranges", b"bytes"), (b"content-type", b"binary/octet-stream")]
        wanted = requested_range(request.headers, len(data), _tag(data).decode(), 0.0, self.engine.now.wall)
        if isinstance(wanted, Unsatisfiable):
            raise Refused(416, "InvalidRange", "it is not as long")
        if wanted is None:
            return Response(200, Headers(fields), data)
        end = wanted.first + wanted.length
        fields.append((b"content-range", b"bytes %d-%d/%d" % (wanted.first, end - 1, len(data))))
        return Response(206, Headers(fields), data[wanted.first : end])

    def _delete(self, request: Request) -> Response:
        self.objects.pop(request.path, None)
        return Response(204, Headers())


def sign_s3_request_at(bucket: S3Bucket, method: str, url: str, digest: str, *, wall: float) -> dict[str, str]:
    """Sign as `runtimes.host.compute.sign_s3_request`, at the time `wall` in epoch seconds."""
    parts = urlsplit(url)
    stamp = datetime.fromtimestamp(wall, UTC).strftime(STAMP)
    fields = {"host": parts.netloc, "x-amz-content-sha256": digest, "x-amz-date": stamp}
    if bucket.token:
        fields["x-amz-security-token"] = bucket.token
    target = f"{parts.path}?{parts.query}"
    return {**fields, "Authorization": _authorization(bucket, method, target, fields, stamp, digest)}


def _authorization(bucket: S3Bucket, method: str, target: str, fields: dict[str, str], stamp: str, digest: str) -> str:
    path, _, query = target.partition("?")
    pairs = sorted((quote(name, safe=""), quote(value, safe="")) for name, value in parse_qsl(query, True))
    names = ";".join(sorted(fields))
    asked = [method, path, "&".join("=".join(pair) for pair in pairs)]
    asked += [*(f"{name}:{fields[name].strip()}" for name in sorted(fields)), "", names, digest]
    scope = f"{stamp[:8]}/{bucket.region}/s3/aws4_request"
    text = "\n".join((SCHEME, stamp, scope, sha256("\n".join(asked).encode()).hexdigest()))
    key = f"AWS4{bucket.secret}".encode()
    for word in (*scope.split("/"), text):
        key = hmac.new(key, word.encode(), sha256).digest()
    return f"{SCHEME} Credential={bucket.key}/{scope}, SignedHeaders={names}, Signature={key.hex()}"


def _field(headers: Headers, name: str) -> str:
    return (headers.get(name.encode()) or b"").decode("latin-1")


def _tag(data: bytes) -> bytes:
    return b'"%s"' % md5(data, usedforsecurity=False).hexdigest().encode()
