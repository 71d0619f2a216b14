"""Media: register a file of the host, upload one, fetch one by token or by path, inspect the registry (wire core 6).

`POST /media` is not among these routes: it is playback control, a Device Control command.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol, cast

from svc_proto.basics import strict_json
from svc_proto.basics.content_types import content_type_of
from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import invalid, text
from svc_proto.commands import DeleteBlob, Level, OpenFile, ReleaseFile
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.message import JsonResponse, Request, Response, StreamedResponse, json_response, parse_json
from svc_proto.engine.router import HandlerResult, Route
from svc_proto.facts import Failure
from svc_proto.machines.media_registry import MediaEntry
from svc_proto.machines.paired_session import PairedSession
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.media.media_service import (
    MIB,
    MediaService,
    base64_bytes,
    content_type_field,
    display_name,
)
from svc_proto.relay.media.upload_body import IncomingFile, multipart_content_type, receive_part
from svc_proto.relay.ports import RelayPort
from svc_proto.schema.coercion import is_truthy
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.multipart import PartBegin
from svc_proto.wire.urls import parse_query_path

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import MediaEntriesJson, MediaRegisteredJson, MediaTokenJson

__all__ = ["JSON_LIMIT", "routes"]

JSON_LIMIT = 34 * MIB  # bytes of an upload as JSON, which is kept in memory: 413
MULTIPART_EXTRA = 2 * MIB  # bytes of a multipart body besides the file
CREATE_TIMEOUT = 30.0  # s, to create an empty file
DEFAULT_NAME = "upload.bin"
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,16}\Z")


class MediaPort(RelayPort, Protocol):
    """Members of the relay that the routes of media use."""

    media: MediaService


def routes(relay: MediaPort) -> list[Route]:
    """Return the routes that register, upload, fetch and list media files."""
    view = _MediaRoutes(relay)
    cap = relay.config.media_max_size_mb * MIB
    return [
        Route(method="POST", pattern="/media/register", access=RelayAccess.LOOPBACK, handler=view.register),
        Route(
            method="POST",
            pattern="/media/upload",
            access=RelayAccess.FILES,
            handler=view.upload,
            body_limit=max(cap, JSON_LIMIT) + MULTIPART_EXTRA,
            streamed=True,
        ),
        Route(method="GET", pattern="/media/by-path", access=RelayAccess.FILES, handler=view.by_path),
        Route(method="GET", pattern="/media/inspect", access=RelayAccess.LOOPBACK, handler=view.inspect),
        Route(method="GET", pattern="/media/inspect/{token}", access=RelayAccess.LOOPBACK, handler=view.by_token),
        Route(method="GET", pattern="/media/{token}", access=RelayAccess.BEARER, handler=view.by_token_anywhere),
    ]


class _MediaRoutes:
    def __init__(self, relay: MediaPort) -> None:
        self._relay = relay

    def register(self, request: Request) -> Flow[JsonResponse[MediaRegisteredJson]]:
        """Register a file of the host.

        Raise `Refused` 400 for an invalid body and for a file that is not served, and 413 as `Request.json` does.
        """
        media = self._relay.media
        body = request.json_object()
        content_type = content_type_field(body.get("content_type"), "content_type")
        path = text(body.get("path"), "path")
        name = _file_name(body.get("file_name"))
        sensitive = is_truthy(body.get("sensitive"))  # a boolean, a number, or a word (wire core 6.1)
        if sensitive is None:
            raise invalid("sensitive", "true or false")
        try:
            opened = yield from media.open_path(path)
        except Refused as refused:
            raise Refused(400, refused.code, refused.message, extra={**refused.extra, "field": "path"}) from None
        self._relay.engine.emit(ReleaseFile(opened.handle))
        entry = media.register(
            opened.real_path, content_type=content_type, file_name=name, size=opened.size, sensitive=sensitive
        )
        return json_response(200, {**_registered(entry), "sensitive": entry.sensitive})

    def upload(self, request: Request) -> Flow[JsonResponse[MediaTokenJson]]:
        """Store the file of the body: a `multipart/form-data` part named `file`, or base64 in JSON.

        Raise `Refused` 400 for an invalid body, 413 for too long JSON, and what `_MediaUploadFile` raises.
        """
        relay = self._relay
        upload = _MediaUploadFile(relay.engine, relay.media, cast("PairedSession", request.principal).token_hash)
        try:
            kind = multipart_content_type(request)
            if kind is None:
                yield from _read_json(request, upload)
            else:
                yield from receive_part(request, kind, upload)
                if not upload.begun:
                    raise invalid("file", "a part of the multipart body")
            entry = yield from upload.register()
        finally:
            upload.abandon()
        if relay.media.uploads.shared:
            yield from relay.coordinator.flush_best_effort()  # the upload then survives this node
        relay.engine.log(Level.INFO, "media uploaded", size=entry.size, content_type=entry.content_type)
        return json_response(200, _registered(entry))

    def by_token(self, request: Request) -> Flow[Response | StreamedResponse]:
        return self._relay.media.answer(request, request.params["token"])

    def by_token_anywhere(self, request: Request) -> Flow[HandlerResult]:
        relay, token, answer = self._relay, request.params["token"], None
        if not relay.media.has(token):
            asking = relay.coordinator.forward_request("media", token, request)
            answer = None if asking is None else (yield from asking)
        return answer or (yield from self.by_token(request))

    def by_path(self, request: Request) -> Flow[Response]:
        media, query = self._relay.media, request.query
        path = parse_query_path(request.raw_query, "path").strip()
        if not path:
            raise invalid("path", "the absolute path of a file")
        hint = query.get("content_type", "").strip()
        declared = content_type_field(hint, "content_type") if hint else None
        opened = yield from media.open_path(path)
        name = display_name(opened.real_path)
        guessed = content_type_of(name)
        sensitive = bool(is_truthy(query.get("sensitive")))
        return (
            yield from media.serve(request, opened, content_type=declared or guessed, name=name, sensitive=sensitive)
        )

    def inspect(self, request: Request) -> JsonResponse[MediaEntriesJson]:
        include = bool(is_truthy(request.query.get("include_expired")))
        return json_response(200, {"media": self._relay.media.records(include_expired=include)})


class _MediaUploadFile(IncomingFile):
    """File of an upload. `abandon` also deletes a finished file, unless an entry of the registry refers to it."""

    def __init__(self, engine: Engine, media: MediaService, owner: str) -> None:
        super().__init__(engine, max_size=media.max_size, noun="file")
        self._media = media
        self._owner = owner
        self._reserved = 0  # bytes of the session's quota
        self._digest = sha256()  # of the future object
        self._path: str | None = None
        self._name: str
        self._content_type: str

    def begin_part(self, part: PartBegin) -> Flow[None] | None:
        """Return the flow that begins the file if the part is named `file`; None otherwise."""
        if part.name != "file":
            return None
        name = display_name(part.filename)
        content_type = content_type_field(part.content_type or content_type_of(name), "file")
        return self.begin(name, content_type)

    def begin(self, name: str | None, content_type: str) -> Flow[None]:
        """Create the file in the spool folder, with the extension of its name."""
        self._name = name or DEFAULT_NAME
        self._content_type = content_type
        extension = _EXTENSION.search(self._name)
        return self.create(extension[0].lower() if extension is not None else "", within=CREATE_TIMEOUT)

    def too_large(self, limit: int) -> Refused:
        return _too_large(limit)

    def write(self, data: bytes) -> Flow[None]:
        """Append data. Raise `Refused` 413 above the size limit, 507 above the quota, 500 for a disk failure."""
        if data and self.size + len(data) <= self._media.max_size:
            self._media.reserve_quota(self._owner, len(data))
            self._reserved += len(data)
            if self._media.uploads.objects is not None:
                self._digest.update(data)
        yield from super().write(data)

    def register(self) -> Flow[MediaEntry]:
        """Finish the file, copy it to the object store if there is one, and return its registered entry.

        Raise `Refused` 500 for a disk failure, 503 for one of the object store.
        """
        engine = self.engine
        path = self._path = yield from self.finish()
        opened = yield from run_operation(engine, OpenFile(engine.new_op(), path))
        if isinstance(opened, Failure):
            raise self.not_stored(opened)
        try:
            kept, shown = yield from self._media.store_upload(opened, self._content_type, self._digest.hexdigest())
        finally:
            engine.emit(ReleaseFile(opened.handle))
        if kept == opened.real_path:
            self._path = None  # else the data is elsewhere now
        size, self._reserved = self._reserved, 0
        return self._media.register(
            kept, content_type=self._content_type, file_name=self._name, size=size, owner=self._owner, shown=shown
        )

    def abandon(self) -> None:
        """Delete the file and release its quota, unless the upload was registered.

        A file that was copied to the object store is deleted in either case.
        """
        super().abandon()
        if self._reserved:
            self._media.uploads.release_quota(self._owner, self._reserved)
            self._reserved = 0
        if self._path is not None:
            self.engine.emit(DeleteBlob(self._path))


def _read_json(request: Request, upload: _MediaUploadFile) -> Flow[None]:
    pieces: list[bytes] = []
    size = 0
    while data := (yield from request.stream.read()):
        size += len(data)
        if size > JSON_LIMIT:
            raise _too_large(JSON_LIMIT, "an upload as JSON; send a larger file as multipart/form-data")
        pieces.append(data)
    try:
        body = JsonObject.of_or_none(parse_json(b"".join(pieces)))
    except strict_json.JsonError as error:
        raise Refused(400, "invalid_json", f"the body is neither multipart/form-data nor valid JSON: {error}") from None
    if body is None:
        raise Refused(400, "invalid_body", "the body must be a JSON object")
    content_type = content_type_field(body.get("content_type"), "content_type")
    name = _file_name(body.get("file_name"))
    content = base64_bytes(body.get("content"), "content")
    yield from upload.begin(name, content_type)
    yield from upload.write(content)


def _registered(entry: MediaEntry) -> MediaTokenJson:
    return {"ok": True, "token": entry.token, "expires_at": entry.expires_at}


def _file_name(value: object) -> str | None:
    return None if value is None else display_name(text(value, "file_name"))


def _too_large(limit: int, what: str = "an upload") -> Refused:
    return Refused(413, "too_large", f"at most {limit} bytes in {what}", extra={"limit": limit})
