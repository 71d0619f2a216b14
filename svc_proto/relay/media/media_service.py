"""Media files for phones: permitted paths, registered tokens, opening and serving (wire core 6)."""

from __future__ import annotations

import base64
import re
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from svc_proto.basics.content_types import ANY_TYPE, SNIFFED, detect_format
from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.validate import invalid, text
from svc_proto.commands import Compute, Level, OpenedFile, OpenFile, ReadFile, ReleaseFile, SweepFolder
from svc_proto.engine.body_streams import FilePart
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.engine.responses import http_date
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.media_registry import MediaEntry, MediaRegistry, base_name
from svc_proto.machines.sandbox import Sandbox, is_within, normal_path, protected_paths
from svc_proto.relay.media.upload_registry import MediaUpload, PublishCallback, UploadRegistry
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.conditional_requests import NOT_MODIFIED, precondition_status
from svc_proto.wire.events import Headers
from svc_proto.wire.ranges import Unsatisfiable, content_disposition, entity_tag, requested_range

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import MediaEntryJson

__all__ = ["MIB", "MediaService", "base64_bytes", "content_type_field", "display_name"]

MIB = 1024 * 1024
SPOOL = "spool"  # folder of uploads within the state folder
LAST_DATE = 253_402_300_799.0  # epoch seconds: the end of the year 9999, the last date of a header
MAX_DEPTH = 64  # folders above a path that are tried when it cannot be opened: 403
CLOCK_TOLERANCE = 3600.0  # s by which an expired file in a shared folder is kept longer
MAX_EXPIRED = 100  # expired entries that the media inspector still lists
MAX_NAME = 255  # characters of a file name
MAX_TYPE = 200  # characters of a content type: 400
ABSENT = (FailureKind.NOT_FOUND, FailureKind.INVALID)  # INVALID: a loop of links, a name too long
_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+*-]+(?:;[ -~]*)?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class MediaService:
    """Media of the relay: the files that are registered by token, and the sandbox of paths that may be fetched."""

    def __init__(self, engine: Engine, config: RelayConfig, publish: PublishCallback) -> None:
        self._engine = engine
        self._config = config
        self._timer = engine.timers.timer(self._expire)
        self._expired: deque[MediaEntry] = deque(maxlen=MAX_EXPIRED)
        self.registry = MediaRegistry(ttl=float(config.media_ttl_seconds), cap=config.media_lru_cap)
        self.uploads = UploadRegistry(engine, config, self.registry, publish)
        self.max_size = config.media_max_size_mb * MIB
        roots = (config.temp_dir, config.workspace, *config.media_allowed_roots)
        protected = protected_paths(home=config.user_home, service_home=config.home, ours=_own_paths(config, roots))
        self.sandbox = Sandbox(roots=roots, protected=protected, homes=(config.home,))

    def prepare(self) -> Flow[None]:
        """Resolve the real paths of the sandbox; in the first process of the host, also delete old uploads.

        In a private spool these are all uploads of earlier runs; in a shared folder, those that expired more than
        `CLOCK_TOLERANCE` ago.
        """
        engine, named = self._engine, self.sandbox
        uploads, shared = self.uploads, self.uploads.folder
        places = (normal_path(self._config.user_home), *named.homes, *named.roots, *named.protected)
        places += (shared,) * bool(shared)
        found = yield from run_operation(engine, Compute(engine.new_op(), "real_paths", places))
        if isinstance(found, Failure):
            engine.log(Level.WARNING, "media places taken by name", problem=found.kind.value)
            found = places
        home, ours, *real = cast("tuple[str, ...]", found)
        if shared:
            uploads.folder = real.pop()
        roots = len(named.roots)
        # By name, too: such a path is not even opened. A system tree that links to the user's home is not protected.
        protected = dict.fromkeys((*named.protected, *(place for place in real[roots:] if place != home)))
        self.sandbox = Sandbox(roots=real[:roots], protected=protected, homes=(*named.homes, ours))
        for root in self.sandbox.roots:
            if is_within(root, self.sandbox.protected):
                engine.log(Level.WARNING, "media root is protected, no file of it is served", root=root)
        if not self._config.begins:
            return
        sweep = SweepFolder(engine.new_op(), SPOOL, engine.now.wall)
        if uploads.folder:  # another node may have valid tokens of these files
            sweep = SweepFolder(
                engine.new_op(), shared, engine.now.wall - self._config.media_ttl_seconds - CLOCK_TOLERANCE
            )
        swept = yield from run_operation(engine, sweep)
        if isinstance(swept, Failure):
            engine.log(Level.WARNING, "old uploads not deleted", problem=swept.kind.value)

    def stop(self) -> None:
        """Delete the files of this process's uploads, unless the nodes share the storage."""
        self.uploads.stop()

    # --- the registry ---

    def register(
        self,
        path: str,
        *,
        content_type: str,
        file_name: str | None,
        size: int,
        sensitive: bool = False,
        owner: str | None = None,
        shown: str = "",
    ) -> MediaEntry:
        """Register a file by its real path, which the caller has checked, and return its entry.

        `owner`: the file is an upload of this session with reserved quota, and is deleted with the entry. For an object
        in a bucket, `path` is its name and `shown` its content type.
        """
        entry, gone = self.registry.register(
            self._engine.now,
            self._engine.entropy,
            path=path,
            content_type=content_type,
            file_name=file_name,
            size=size,
            sensitive=sensitive,
            owned=owner is not None,
        )
        for old in gone:
            self._remove(old)
        if owner is not None:
            self.uploads.add(entry, MediaUpload(path, owner, size, shown))
        self._watch()
        return entry

    def reserve_quota(self, owner: str, size: int) -> None:
        """Reserve `size` bytes for a growing upload of a session; its oldest uploads are evicted until they fit.

        Raise `Refused` 507 if they do not fit beside the session's unfinished uploads alone.
        """
        self.uploads.reserve(owner, size, lambda token: self._remove(self.registry.evict(token)))

    def adopt(self, node: str, record: JsonObject) -> None:
        """Register an upload that another node has received; see `UploadRegistry.adopt`."""
        for old in self.uploads.adopt(node, record):
            self._remove(old)
        self._watch()

    def forget(self, token: str) -> None:
        """Remove an upload that another node has deleted; ignore an unknown token, and any without shared storage."""
        if self.uploads.shared and self.registry.peek(token) is not None:
            self.uploads.remove(self.registry.evict(token), heard=True)
            self._watch()

    def apply_state(self, node: str, rows: Sequence[JsonObject]) -> None:
        """Apply another node's list of its uploads: remove those that the list lacks, and register new ones."""
        for token in self.uploads.missing(node, rows):
            self.forget(token)
        for row in rows:
            self.adopt(node, row)

    def records(self, *, include_expired: bool) -> list[MediaEntryJson]:
        """Return the records for the media inspector, newest first.

        With `include_expired` the last `MAX_EXPIRED` expired ones are among them.
        """
        now = self._engine.now
        records = self.registry.records(now)
        if include_expired:
            records += [entry.record(now) for entry in self._expired]
            records.sort(key=lambda record: record["created_at"], reverse=True)
        return records

    # --- opening ---

    def has(self, token: str) -> bool:
        """Report whether the token has a live entry here, which then counts as the most recently used one."""
        return self.registry.lookup(token, self._engine.now) is not None

    def open_path(self, path: str) -> Flow[OpenedFile]:
        """Open a file by its path.

        Raise `Refused` 403 for a path that may not be fetched, and for an unreadable or too large file; 404 for a
        missing file, and for a folder or device.
        """
        engine = self._engine
        if not path.startswith("/"):
            raise Refused(403, "relative_path", "the path must be absolute")
        if is_within(normal_path(path), self.sandbox.protected):
            raise _outside()  # opening alone has an effect on some devices
        opened = yield from run_operation(engine, OpenFile(engine.new_op(), path))
        if isinstance(opened, Failure):
            resolved = yield from self._resolve_path(path)
            if not self.sandbox.allows(resolved):
                raise _outside()
            if opened.kind in ABSENT:
                raise Refused(404, "not_found", "there is no such file")
            raise Refused(403, "unreadable", "the file cannot be read")
        refused = self._judge(opened)
        if refused is not None:
            engine.emit(ReleaseFile(opened.handle))
            raise refused
        return opened

    def open_token(self, token: str) -> Flow[tuple[MediaEntry, OpenedFile]]:
        """Open the file of the token's entry; raise `Refused` 404 for any failure.

        The path is checked again: since the registration another file may have replaced the first.
        """
        engine = self._engine
        entry = self.registry.lookup(token, engine.now)
        if entry is None:
            raise Refused(404, "not_found", "the token is unknown or expired")
        opened = yield from run_operation(engine, OpenFile(engine.new_op(), entry.path))
        if isinstance(opened, Failure):
            raise _media_gone_error()
        own = entry.owned and opened.regular and opened.real_path == entry.path
        refused = None if own else self._judge(opened)
        if not own and (entry.owned or refused is not None):
            engine.emit(ReleaseFile(opened.handle))
            if refused is not None and refused.code == "too_large":
                raise Refused(404, "not_found", f"the file has grown to more than {self.max_size} bytes")
            raise _media_gone_error()
        return entry, opened

    def _judge(self, opened: OpenedFile) -> Refused | None:
        if not self.sandbox.allows(opened.real_path):
            return _outside()
        if not opened.regular:
            return Refused(404, "not_found", "this is not a regular file")
        if opened.size > self.max_size:
            limit = self.max_size
            return Refused(403, "too_large", f"the file has more than {limit} bytes", extra={"limit": limit})
        return None

    def _resolve_path(self, path: str) -> Flow[str]:
        """Return the real location of a path that cannot be opened, by the nearest ancestor that can; else empty."""
        engine = self._engine
        head, rest = path.rstrip("/"), ""
        for _ in range(MAX_DEPTH):
            head, _, name = head.rpartition("/")
            rest = f"/{name}{rest}"
            opened = yield from run_operation(engine, OpenFile(engine.new_op(), head or "/"))
            if not isinstance(opened, Failure):
                engine.emit(ReleaseFile(opened.handle))
                return normal_path(opened.real_path + rest)
            if not head:
                break
        return ""

    # --- serving ---

    def serve(
        self, request: Request, opened: OpenedFile, *, content_type: str, name: str | None, sensitive: bool
    ) -> Flow[Response]:
        """Answer a GET or HEAD with an open file: 200, 206, 304, or `Refused` 412, 416.

        The handle of a 200 or 206 is released with the response, else at once.
        """
        engine = self._engine
        given = False
        try:
            part = _part(request, opened.size, opened.modified, engine.now.wall, sensitive=sensitive)
            if part.status == NOT_MODIFIED:
                return Response(NOT_MODIFIED, Headers(part.fields))
            shown = yield from self._shown_type(opened, content_type)
            given = True
            return Response(
                part.status, part.headers(shown, name), file=FilePart(opened.handle, part.first, part.length)
            )
        finally:
            if not given:
                engine.emit(ReleaseFile(opened.handle))

    def answer(self, request: Request, token: str) -> Flow[Response | StreamedResponse]:
        """Answer a GET or HEAD for a token as `open_token` and `serve` do; raise `Refused` 503 if the bucket fails."""
        upload, objects = self.uploads.object_of(token), self.uploads.objects
        entry = self.registry.lookup(token, self._engine.now)
        if objects is None or upload is None or entry is None:
            entry, opened = yield from self.open_token(token)
            return (
                yield from self.serve(
                    request, opened, content_type=entry.content_type, name=entry.file_name, sensitive=entry.sensitive
                )
            )
        part = _part(request, entry.size, entry.created_at, self._engine.now.wall, sensitive=entry.sensitive)
        if part.status == NOT_MODIFIED:
            return Response(NOT_MODIFIED, Headers(part.fields))
        headers = part.headers(upload.shown, entry.file_name)
        if not part.length:
            return Response(part.status, headers)
        reader = yield from objects.get(
            request.method, upload.path, first=part.first, length=part.length, size=entry.size
        )
        if request.method == "HEAD":
            reader.abandon()  # the object exists, which is all that HEAD needs
        fields = (*headers, (b"content-length", b"%d" % part.length))
        return StreamedResponse(part.status, Headers(fields), objects.stream(reader, part.length))

    def read(self, token: str, limit: int) -> Flow[bytes]:
        """Return a whole file. Raise `Refused` 404, 413 for more than `limit` bytes, or 503."""
        engine = self._engine
        upload, objects = self.uploads.object_of(token), self.uploads.objects
        if objects is None or upload is None:
            _, opened = yield from self.open_token(token)
            try:
                _within(opened.size, limit)
                data = yield from run_operation(engine, ReadFile(engine.new_op(), opened.handle, 0, opened.size))
            finally:
                engine.emit(ReleaseFile(opened.handle))
            found = None if isinstance(data, Failure) else data
        else:
            _within(upload.size, limit)
            reader = yield from objects.get("GET", upload.path, first=0, length=upload.size, size=upload.size)
            found = yield from objects.read_whole(reader, upload.size)
        if found is None:
            raise Refused(503, "unreadable", "the file cannot be read")
        return found

    def store_upload(self, opened: OpenedFile, content_type: str, digest: str) -> Flow[tuple[str, str]]:
        """Put an upload into the bucket; return the object's name and content type. Raise `Refused` 503.

        Without a bucket the file stays where it is: return its path and an empty type.
        """
        if self.uploads.objects is None:
            return opened.real_path, ""
        shown = yield from self._shown_type(opened, content_type)
        name = yield from self.uploads.objects.put(opened, digest)
        return name, shown

    def _shown_type(self, opened: OpenedFile, declared: str) -> Flow[str]:
        """Return the content type to serve: the declared one, unless the first bytes show another.

        The detected type replaces an unknown type, and an image type if the bytes are an image of another format.
        """
        kind = declared.partition(";")[0].strip().lower()
        if kind != ANY_TYPE and not kind.startswith("image/"):
            return declared
        start = yield from run_operation(self._engine, ReadFile(self._engine.new_op(), opened.handle, 0, SNIFFED))
        found = None if isinstance(start, Failure) else detect_format(start)
        if found is None or found.content_type == kind:
            return declared
        is_image = found.content_type.startswith("image/")
        return found.content_type if kind == ANY_TYPE or is_image else declared

    # --- helpers ---

    def _expire(self) -> None:
        for entry in self.registry.expire_due(self._engine.now):
            self._remove(entry)
        self._watch()

    def _remove(self, entry: MediaEntry) -> None:
        if self._engine.now.mono >= entry.deadline:
            self._expired.append(entry)
        self.uploads.remove(entry)

    def _watch(self) -> None:
        self._timer.schedule(self.registry.next_expiry())


@fast_frozen
class _FileResponse:
    """Status, header fields and byte range of the response to a request for a file."""

    status: int
    fields: list[tuple[bytes, bytes]]
    first: int = 0
    length: int = 0

    def headers(self, shown: str, name: str | None) -> Headers:
        """Return the header fields of a 200 or 206: `shown` is the content type, `name` the file's."""
        about = [(b"content-type", shown.encode("ascii")), (b"content-disposition", content_disposition(name))]
        return Headers([*about, *self.fields])


def _part(request: Request, size: int, modified: float, now: float, *, sensitive: bool) -> _FileResponse:
    """Evaluate conditions and ranges of the request: 200, 206, 304, or `Refused` 412, 416."""
    tag = entity_tag(size, modified)
    fields = [
        (b"cache-control", b"private, max-age=3600"),
        (b"etag", tag.encode("ascii")),
        (b"last-modified", http_date(min(max(modified, 0.0), LAST_DATE))),
        (b"accept-ranges", b"bytes"),
    ]
    if sensitive:
        fields.append((b"x-media-sensitive", b"1"))
    failed = precondition_status(request.headers, tag, modified, now)
    if failed == NOT_MODIFIED:
        return _FileResponse(NOT_MODIFIED, fields)
    if failed is not None:
        raise Refused(failed, "precondition_failed", "the file is not, or not any more, what the request asks for")
    byte_range = requested_range(request.headers, size, tag, modified, now) if request.method == "GET" else None
    if isinstance(byte_range, Unsatisfiable):
        raise Refused(
            416,
            "range_not_satisfiable",
            f"the file has {size} bytes",
            headers=((b"content-range", b"bytes */%d" % size),),
        )
    if byte_range is None:
        return _FileResponse(200, fields, 0, size)
    last = byte_range.first + byte_range.length - 1
    return _FileResponse(
        206,
        [*fields, (b"content-range", b"bytes %d-%d/%d" % (byte_range.first, last, size))],
        byte_range.first,
        byte_range.length,
    )


def _within(size: int, limit: int) -> None:
    if size > limit:
        raise Refused(413, "too_large", f"the file has more than {limit} bytes")


def _own_paths(config: RelayConfig, roots: tuple[str, ...]) -> list[str]:
    """Return the configured paths of the relay's own files, which are not served; uploads in the media folder are.

    The relay's home is among them unless a media root is within it.
    """
    voice = config.voice
    ours = [config.config_path, config.ssl_key, *config.store_files, voice.output_path, voice.realtime_path]
    if isinstance(config.media_store, str):
        ours.append(config.media_store)
    ours += [voice.output_runs, voice.lab_runs, voice.agent_runs]
    if not any(is_within(normal_path(root), (normal_path(voice.home),)) for root in roots):
        ours.append(voice.home)
    return [path for path in ours if path]


def display_name(name: str | None) -> str | None:
    """Return a file name for clients: a base name of at most `MAX_NAME` encodable characters; None if empty or None."""
    if name is None:
        return None
    clean = _CONTROL.sub("", base_name(name)).encode("utf-8", "replace").decode("utf-8")
    return clean[:MAX_NAME] or None


def content_type_field(value: object, field: str) -> str:
    """Return a content type that is valid in a header; raise `Refused` 400 otherwise."""
    found = text(value, field).strip()
    if len(found) > MAX_TYPE or not _TYPE.fullmatch(found):
        raise invalid(field, "a content type such as image/png")
    return found


def base64_bytes(value: object, field: str) -> bytes:
    """Decode strict base64 of at least one byte; raise `Refused` 400 otherwise."""
    try:
        data = base64.b64decode(text(value, field), validate=True)
    except ValueError:
        raise invalid(field, "base64") from None
    if len(text(value, field)) % 4:  # superfluous padding
        raise invalid(field, "base64")
    if not data:
        raise invalid(field, "base64 of at least one byte")
    return data


def _outside() -> Refused:
    return Refused(403, "outside_roots", "the relay does not serve files from there")


def _media_gone_error() -> Refused:
    return Refused(404, "not_found", "the file is not there any more")
