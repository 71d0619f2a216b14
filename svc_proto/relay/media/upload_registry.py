"""Registry of uploads: owners, quotas, and synchronisation between nodes.

Without `SVC_MEDIA_URL` an upload is a file in this process's spool, and ends with the process. With the setting,
uploads are in storage that all nodes share: a folder or a bucket. Each node then has all uploads in its registry, and
broadcasts which it has received (`kept`) and deleted before their expiry (`gone`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import define

from svc_proto.basics.errors import Refused
from svc_proto.commands import DeleteBlob
from svc_proto.engine.core import Engine
from svc_proto.machines.media_registry import MediaEntry, MediaRegistry, base_name
from svc_proto.schema.json_object import JsonObject
from svc_proto.settings import S3Bucket

if TYPE_CHECKING:
    from svc_proto.relay.media.object_store import ObjectStore
    from svc_proto.relay_config import RelayConfig

__all__ = ["QUOTA", "PublishCallback", "MediaUpload", "UploadRegistry"]

QUOTA = 10  # quota of a session in files of the largest size, however much disk is free
LOCAL_NODE = ""  # in place of the id of a node
NO_NODE = "-"  # of an upload whose node is lost
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")

PublishCallback = Callable[[str, Mapping[str, object]], None]


@define
class MediaUpload:
    """An upload: location, owner and size."""

    path: str  # path of the file, or name of the object
    owner: str
    size: int
    shown: str = ""  # content type of an object, by its bytes
    node: str = LOCAL_NODE  # that received it


class UploadRegistry:
    """Uploads by token, in the order in which this node added them; `broadcast` sends a message to all other nodes."""

    def __init__(
        self, engine: Engine, config: RelayConfig, registry: MediaRegistry, broadcast: PublishCallback
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._broadcast = broadcast
        self._owned: dict[str, MediaUpload] = {}
        self._used: dict[str, int] = {}  # bytes of uploads, unfinished ones included, by the session's hash
        self._quota = QUOTA * config.media_max_size_mb * 1024 * 1024
        self.objects: ObjectStore | None = None
        self.folder = config.media_store if isinstance(config.media_store, str) else ""  # real path
        self.shared = config.media_store is not None
        if isinstance(config.media_store, S3Bucket):
            from svc_proto.relay.media.object_store import ObjectStore  # noqa: PLC0415, RUF100 - not loaded without a bucket

            self.objects = ObjectStore(engine, config.media_store)

    def object_of(self, token: str) -> MediaUpload | None:
        """Return the upload of a token if uploads are objects in a bucket; None otherwise, and for an unknown token."""
        return None if self.objects is None else self._owned.get(token)

    def add(self, entry: MediaEntry, upload: MediaUpload) -> None:
        """Add an upload whose quota was reserved, and broadcast it if storage is shared."""
        self._owned[entry.token] = upload
        if self.shared:
            self._broadcast("kept", self._record(entry, upload))

    def remove(self, entry: MediaEntry, *, heard: bool = False) -> None:
        """Remove an upload, and delete its data unless another node does.

        `heard`: another node has removed the upload and reported it.
        """
        upload = self._owned.pop(entry.token, None)
        if upload is None:
            return
        self.release_quota(upload.owner, upload.size)
        due = self._engine.now.mono >= entry.deadline
        if heard or (due and upload.node not in (LOCAL_NODE, NO_NODE)):
            return
        if self.shared and not due:
            self._broadcast("gone", {"token": entry.token})
        if self.objects is None:
            self._engine.emit(DeleteBlob(upload.path))
        else:
            self._engine.spawn(self.objects.delete(upload.path))

    def stop(self) -> None:
        """Remove all uploads; delete their files unless storage is shared."""
        if not self.shared:
            for upload in self._owned.values():
                self._engine.emit(DeleteBlob(upload.path))
        self._owned.clear()

    # --- quotas of sessions ---

    def reserve(self, owner: str, size: int, evict: Callable[[str], None]) -> None:
        """Reserve `size` bytes for a growing upload; the session's oldest uploads are evicted until they fit.

        Raise `Refused` 507 if it has no upload left to evict.
        """
        while self._used.get(owner, 0) + size > self._quota:
            oldest = next((token for token, upload in self._owned.items() if upload.owner == owner), None)
            if oldest is None:
                raise Refused(507, "quota_exceeded", "this device has too many uploads under way")
            evict(oldest)
        self._used[owner] = self._used.get(owner, 0) + size

    def release_quota(self, owner: str, size: int) -> None:
        """Release `size` bytes of a session's reserved quota."""
        left = self._used.pop(owner, 0) - size
        if left:
            self._used[owner] = left

    # --- synchronisation between nodes ---

    def answer(self, asked: JsonObject) -> dict[str, object]:
        """Return `{"upload": record}` for the shared upload that another node's query names; {} without one."""
        record = self.record(asked.text("name")) if asked.text("what") == "media" else {}
        return {"upload": record} if record else {}

    def record(self, token: str) -> dict[str, object]:
        """Return the record of a shared upload; empty if there is none of that token."""
        entry, upload = self._registry.peek(token), self._owned.get(token)
        return self._record(entry, upload) if self.shared and entry is not None and upload is not None else {}

    def records(self) -> list[dict[str, object]]:
        """Return the records of shared uploads that this node or a lost node received; none without shared storage."""
        own = (token for token, upload in self._owned.items() if upload.node in (LOCAL_NODE, NO_NODE))
        return [record for token in own if (record := self.record(token))]

    def adopt(self, node: str, record: JsonObject) -> list[MediaEntry]:
        """Register an upload that another node received; return the entries that had expired or were evicted for it.

        A known upload, an invalid record, and any record without shared storage are ignored.
        """
        token, name, left = record.text("token"), record.text("name"), record.number("left", 0.0)
        size, created = record.integer("size", 0), record.number("created_at")
        if not self.shared or not _TOKEN.fullmatch(token) or not _NAME.fullmatch(name):
            return []
        if left is None or size is None or created is None or token in self._owned:
            return []
        now, owner = self._engine.now, record.text("owner")
        path = f"{self.folder}/{name}" if self.folder else name
        entry = MediaEntry(
            token=token,
            path=path,
            content_type=record.text("content_type"),
            file_name=record.text("file_name") or None,
            size=size,
            created_at=created,
            expires_at=now.wall + left,
            last_accessed=created,
            deadline=now.mono + left,
            owned=True,
        )
        self._owned[token] = MediaUpload(path, owner, size, record.text("shown"), node)
        self._used[owner] = self._used.get(owner, 0) + size
        return self._registry.adopt(entry, now)

    def missing(self, node: str, rows: Sequence[JsonObject]) -> list[str]:
        """Return the tokens of the node's uploads that are missing in its list."""
        there = {row.text("token") for row in rows}
        return [token for token, upload in self._owned.items() if upload.node == node and token not in there]

    def mark_orphaned(self, node: str, *, tell: bool) -> None:
        """Mark the uploads that a lost node received, so that any node deletes them when they expire.

        With `tell`, broadcast them, since another node may not have them.
        """
        for token, upload in self._owned.items():
            if upload.node == node:
                upload.node = NO_NODE
                if tell:
                    self._broadcast("kept", self.record(token))

    def _record(self, entry: MediaEntry, upload: MediaUpload) -> dict[str, object]:
        return {
            "token": entry.token,
            "name": base_name(upload.path),
            "content_type": entry.content_type,
            "shown": upload.shown,
            "file_name": entry.file_name,
            "size": entry.size,
            "created_at": entry.created_at,
            "left": entry.deadline - self._engine.now.mono,
            "owner": upload.owner,
        }
