"""Media: register a file of the host, upload one, fetch one by token or by path, inspect the registry (wire core 6).

`POST /media` is playback control and stands with the Device Control routes. Under `/media/` the words `register`,
`upload`, `by-path` and `inspect` win over a token, whatever the method.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.basics.validate import boolean, invalid, text
from svc_proto.commands import CreateBlob, DeleteBlob, DiscardBlob, FinishBlob, Level, OpenFile, ReleaseFile, WriteBlob
from svc_proto.engine.flow import Flow, ask
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.router import Route
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.media import MediaEntry
from svc_proto.relay.access import Access
from svc_proto.relay.media import ANY_TYPE, CONTENT_TYPES, MIB, Media, base64_bytes, content_type_field, display_name
from svc_proto.wire.multipart import MultipartDecoder, PartBegin, PartData, PartEnd

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.relay.service import Relay

__all__ = ["JSON_LIMIT", "routes"]

JSON_LIMIT = 34 * MIB  # bytes of an upload as JSON, which is held in memory: 413
MULTIPART_EXTRA = 2 * MIB  # bytes of a multipart body besides the file
DISK_PATIENCE = 120.0  # s, for one step of an upload on a slow disk
DEFAULT_NAME = "upload.bin"
TRUE_WORDS = ("1", "true", "yes", "on")
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,16}\Z")


def routes(relay: Relay) -> list[Route]:
    """The rows of this theme."""
    view = _MediaRoutes(relay)
    cap = relay.config.media_max_size_mb * MIB
    return [
        Route(method="POST", pattern="/media/register", access=Access.LOOPBACK, handler=view.register),
        Route(
            method="POST",
            pattern="/media/upload",
            access=Access.BEARER,
            handler=view.upload,
            body_limit=max(cap, JSON_LIMIT) + MULTIPART_EXTRA,
            streamed=True,
        ),
        Route(method="GET", pattern="/media/by-path", access=Access.BEARER, handler=view.by_path),
        Route(method="GET", pattern="/media/inspect", access=Access.LOOPBACK, handler=view.inspect),
        Route(method="GET", pattern="/media/{token}", access=Access.BEARER, handler=view.by_token),
    ]


class _MediaRoutes:
    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def register(self, request: Request) -> Flow[Response]:
        """Every refusal is a 400, too large and outside of the roots included (wire core 6.1)."""
        media = self._relay.media
        body = request.json_object()
        content_type = content_type_field(body.get("content_type"), "content_type")
        path = text(body.get("path"), "path")
        name = _file_name(body.get("file_name"))
        sensitive = _flag(body.get("sensitive"))
        try:
            opened = yield from media.open_path(path)
        except Refused as refused:
            raise Refused(400, refused.code, refused.message, extra={**refused.extra, "field": "path"}) from None
        self._relay.engine.emit(ReleaseFile(opened.handle))
        entry = media.register(
            opened.real_path, content_type=content_type, file_name=name, size=opened.size, sensitive=sensitive
        )
        return json_response(200, {**_registered(entry), "sensitive": entry.sensitive})

    def upload(self, request: Request) -> Flow[Response]:
        """A file in the body: a `multipart/form-data` part named `file`, or base64 in JSON."""
        relay = self._relay
        upload = _Upload(relay.engine, relay.media.max_size)
        try:
            kind = request.headers.get(b"content-type", b"") or b""
            if kind.partition(b";")[0].strip().lower() == b"multipart/form-data":
                yield from _read_multipart(request, kind, upload)
            else:
                yield from _read_json(request, upload)
            entry = yield from upload.register(relay.media)
        finally:
            upload.abandon()
        relay.engine.log(Level.INFO, "media uploaded", size=entry.size, content_type=entry.content_type)
        return json_response(200, _registered(entry))

    def by_token(self, request: Request) -> Flow[Response]:
        media = self._relay.media
        entry, opened = yield from media.open_token(request.params["token"])
        return (
            yield from media.serve(
                request, opened, content_type=entry.content_type, name=entry.file_name, sensitive=entry.sensitive
            )
        )

    def by_path(self, request: Request) -> Flow[Response]:
        media, query = self._relay.media, request.query
        path = query.get("path", "").strip()
        if not path:
            raise invalid("path", "the absolute path of a file")
        hint = query.get("content_type", "").strip()
        declared = content_type_field(hint, "content_type") if hint else None
        opened = yield from media.open_path(path)
        name = display_name(opened.real_path)
        guessed = CONTENT_TYPES.get((name or "").rpartition(".")[2].lower(), ANY_TYPE)
        sensitive = query.get("sensitive", "").strip().lower() in TRUE_WORDS
        return (
            yield from media.serve(request, opened, content_type=declared or guessed, name=name, sensitive=sensitive)
        )

    def inspect(self, request: Request) -> Response:
        include = request.query.get("include_expired", "").strip().lower() in TRUE_WORDS
        return json_response(200, {"media": self._relay.media.records(include_expired=include)})


class _Upload:
    """One file on its way to the disk. `abandon` deletes whatever of it there is, unless it was registered."""

    def __init__(self, engine: Engine, max_size: int) -> None:
        self._engine = engine
        self._max_size = max_size
        self._blob: int | None = None
        self._path: str | None = None
        self._name = DEFAULT_NAME
        self._content_type = ANY_TYPE
        self.size = 0
        self.begun = False

    def begin(self, name: str | None, content_type: str) -> Flow[None]:
        """Create the file; its extension is kept."""
        self.begun = True
        self._name = name or DEFAULT_NAME
        self._content_type = content_type
        extension = _EXTENSION.search(self._name)
        suffix = extension[0].lower() if extension is not None else ""
        blob = yield from ask(self._engine, CreateBlob(self._engine.new_op(), suffix))
        if isinstance(blob, Failure):
            raise _failed(blob)
        self._blob = blob

    def write(self, data: bytes) -> Flow[None]:
        """Append; `Refused` 413 over the limit."""
        self.size += len(data)
        if self.size > self._max_size:
            raise _too_large(self._max_size)
        blob = cast("int", self._blob)
        written = yield from ask(self._engine, WriteBlob(self._engine.new_op(), blob, data), within=DISK_PATIENCE)
        if isinstance(written, Failure):
            raise _failed(written)

    def register(self, media: Media) -> Flow[MediaEntry]:
        """Finish the file and give it to the registry, under the path where it really is."""
        engine, blob = self._engine, cast("int", self._blob)
        path = yield from ask(engine, FinishBlob(engine.new_op(), blob), within=DISK_PATIENCE)
        if isinstance(path, Failure):
            raise _failed(path)
        self._blob, self._path = None, path
        opened = yield from ask(engine, OpenFile(engine.new_op(), path))
        if isinstance(opened, Failure):
            raise _failed(opened)
        engine.emit(ReleaseFile(opened.handle))
        self._path = None
        return media.register(
            opened.real_path, content_type=self._content_type, file_name=self._name, size=opened.size, owned=True
        )

    def abandon(self) -> None:
        """Leave nothing behind."""
        if self._blob is not None:
            self._engine.emit(DiscardBlob(self._blob))
        if self._path is not None:
            self._engine.emit(DeleteBlob(self._path))


def _read_multipart(request: Request, kind: bytes, upload: _Upload) -> Flow[None]:
    """The first part named `file` goes to the disk as it comes; other parts are skipped."""
    try:
        decoder = MultipartDecoder(kind)
        inside = False
        more = True
        while more:
            data = yield from request.stream.read()
            more = bool(data)
            if more:
                decoder.receive_data(data)
            else:
                decoder.receive_eof()
            pieces: list[bytes] = []
            while (event := decoder.next_event()) is not None:
                match event:
                    case PartBegin(name="file", filename=name, content_type=declared) if not upload.begun:
                        inside = True
                        content_type = content_type_field(declared or ANY_TYPE, "file")
                        yield from upload.begin(display_name(name), content_type)
                    case PartData(data=piece) if inside:
                        pieces.append(piece)
                    case PartEnd():
                        inside = False
                    case _:
                        pass  # of a part that nobody asked for
            if pieces:
                yield from upload.write(b"".join(pieces))
    except RemoteProtocolError as error:
        raise Refused(400, "invalid_multipart", str(error)) from None
    if not upload.begun:
        raise invalid("file", "a part of the multipart body")


def _read_json(request: Request, upload: _Upload) -> Flow[None]:
    pieces: list[bytes] = []
    size = 0
    while data := (yield from request.stream.read()):
        size += len(data)
        if size > JSON_LIMIT:
            raise _too_large(JSON_LIMIT, "an upload as JSON; send a larger file as multipart/form-data")
        pieces.append(data)
    try:
        body = strict_json.loads(b"".join(pieces))
    except strict_json.JsonError as error:
        raise Refused(400, "invalid_json", f"the body is neither multipart/form-data nor valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refused(400, "invalid_body", "the body must be a JSON object")
    content_type = content_type_field(body.get("content_type"), "content_type")
    name = _file_name(body.get("file_name"))
    content = base64_bytes(body.get("content"), "content")
    yield from upload.begin(name, content_type)
    yield from upload.write(content)


def _registered(entry: MediaEntry) -> dict[str, object]:
    return {"ok": True, "token": entry.token, "expires_at": entry.expires_at}


def _file_name(value: object) -> str | None:
    return None if value is None else display_name(text(value, "file_name"))


def _flag(value: object) -> bool:
    """`sensitive`: a boolean, a number, or a word (wire core 6.1)."""
    if value is None:
        return False
    if isinstance(value, int):  # a boolean is one
        return value != 0
    if isinstance(value, str):
        return value.strip().lower() in TRUE_WORDS
    return boolean(value, "sensitive")


def _too_large(limit: int, what: str = "an upload") -> Refused:
    return Refused(413, "too_large", f"at most {limit} bytes in {what}", extra={"limit": limit})


def _failed(failure: Failure) -> Refused:
    if failure.kind is FailureKind.NO_SPACE:
        return Refused(500, "disk_full", "the disk of the relay's host is full")
    return Refused(500, "write_failed", "the file could not be stored")
