"""The files that devices have brought: whose they are, what they may take, and what all nodes know of them.

Without `SVC_MEDIA_URL` an upload is a file of this process's spool, and ends with it. With it, an upload is in a place
that all nodes of a service have: a folder, which is their spool then, or a bucket (see `bucket`). Then each node knows
all of them, tells the others which it has taken in (`kept`) and which had to go (`gone`), and so serves them, counts
them, and makes room among them as if they were its own. Who has taken one in deletes it when its time is over, or, if
that node is gone, whoever is left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import define

from svc_proto.basics.errors import Refused
from svc_proto.commands import DeleteBlob
from svc_proto.machines.media_registry import MediaEntry, MediaRegistry, base_name
from svc_proto.schema.json_object import JsonObject
from svc_proto.settings import S3Bucket

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.relay.media.object_store import ObjectStore
    from svc_proto.relay_config import RelayConfig

__all__ = ["QUOTA", "PublishCallback", "MediaUpload", "UploadRegistry"]

QUOTA = 10  # of the largest files: what the uploads of one session may take of the disk, whatever else is free
LOCAL_NODE = ""  # in place of the id of a node
NO_NODE = "-"  # of one whose node is gone
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")

PublishCallback = Callable[[str, Mapping[str, object]], None]


@define
class MediaUpload:
    """One of them: where it is, whose it is, what it takes."""

    path: str  # of the file, or the name of the object
    owner: str
    size: int
    shown: str = ""  # the type of an object, as its bytes have it
    node: str = LOCAL_NODE  # that has taken it in


class UploadRegistry:
    """By their token, oldest first; `tell` tells all nodes."""

    def __init__(self, engine: Engine, config: RelayConfig, registry: MediaRegistry, tell: PublishCallback) -> None:
        self._engine = engine
        self._registry = registry
        self._tell = tell
        self._owned: dict[str, MediaUpload] = {}
        self._used: dict[str, int] = {}  # bytes that uploads take, those under way too, by the session's hash
        self._quota = QUOTA * config.media_max_size_mb * 1024 * 1024
        self.objects: ObjectStore | None = None
        self.folder = config.media_store if isinstance(config.media_store, str) else ""  # where it really is
        self.shared = config.media_store is not None
        if isinstance(config.media_store, S3Bucket):
            from svc_proto.relay.media.object_store import ObjectStore  # noqa: PLC0415, RUF100 - nobody without one pays for it

            self.objects = ObjectStore(engine, config.media_store)

    def object_of(self, token: str) -> MediaUpload | None:
        """What is known of an upload that is an object."""
        return None if self.objects is None else self._owned.get(token)

    def add(self, entry: MediaEntry, upload: MediaUpload) -> None:
        """An entry is an upload, whose place was reserved."""
        self._owned[entry.token] = upload
        if self.shared:
            self._tell("kept", self._record(entry, upload))

    def remove(self, entry: MediaEntry, *, heard: bool = False) -> None:
        """An entry is there no more; `heard`: another node says so, and has seen to what is left of it."""
        upload = self._owned.pop(entry.token, None)
        if upload is None:
            return
        self.release_quota(upload.owner, upload.size)
        due = self._engine.now.mono >= entry.deadline
        if heard or (due and upload.node not in (LOCAL_NODE, NO_NODE)):
            return
        if self.shared and not due:
            self._tell("gone", {"token": entry.token})
        if self.objects is None:
            self._engine.emit(DeleteBlob(upload.path))
        else:
            self._engine.spawn(self.objects.delete(upload.path))

    def stop(self) -> None:
        """The process will end, and with it every token that others do not have: delete the files."""
        if not self.shared:
            for upload in self._owned.values():
                self._engine.emit(DeleteBlob(upload.path))
        self._owned.clear()

    # --- what a session may have ---

    def reserve(self, owner: str, size: int, evict: Callable[[str], None]) -> None:
        """An upload of a session grows. Its oldest ones make room; `Refused` 507 when there are none."""
        while self._used.get(owner, 0) + size > self._quota:
            oldest = next((token for token, upload in self._owned.items() if upload.owner == owner), None)
            if oldest is None:
                raise Refused(507, "quota_exceeded", "this device has too many uploads under way")
            evict(oldest)
        self._used[owner] = self._used.get(owner, 0) + size

    def release_quota(self, owner: str, size: int) -> None:
        """What was reserved is free again."""
        left = self._used.pop(owner, 0) - size
        if left:
            self._used[owner] = left

    # --- what other nodes know ---

    def answer(self, asked: JsonObject) -> dict[str, object]:
        """What is said beside where a file is: what it is, if there is no need to go there."""
        record = self.record(asked.text("name")) if asked.text("what") == "media" else {}
        return {"upload": record} if record else {}

    def record(self, token: str) -> dict[str, object]:
        """One that may be fetched at any node; empty if there is none of that token."""
        entry, upload = self._registry.peek(token), self._owned.get(token)
        return self._record(entry, upload) if self.shared and entry is not None and upload is not None else {}

    def records(self) -> list[dict[str, object]]:
        """Those that were taken in here, and those that nobody else would tell of."""
        return [self.record(token) for token, upload in self._owned.items() if upload.node in (LOCAL_NODE, NO_NODE)]

    def adopt(self, node: str, record: JsonObject) -> list[MediaEntry]:
        """What another node has taken in is to be had here, too. The entries that had to go for it."""
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
        """Of what a node has taken in, the tokens that it says no more."""
        there = {row.text("token") for row in rows}
        return [token for token, upload in self._owned.items() if upload.node == node and token not in there]

    def mark_orphaned(self, node: str, *, tell: bool) -> None:
        """A node is gone; what it has taken in is everybody's. `tell` those who may not have heard of it."""
        for token, upload in self._owned.items():
            if upload.node == node:
                upload.node = NO_NODE
                if tell:
                    self._tell("kept", self.record(token))

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
