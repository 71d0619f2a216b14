"""The media registry: opaque tokens for files on the host (spec "Media registry entry", wire core 6.5).

| state      | trigger  | next       |                                                      |
|------------|----------|------------|------------------------------------------------------|
| NONE       | REGISTER | REGISTERED |                                                      |
| REGISTERED | TTL      | EXPIRED    | `RELAY_MEDIA_TTL_SECONDS` after registration          |
| REGISTERED | EVICT    | EVICTED    | least recently used over the cap, or by `evict`       |

The registry is in memory: a restart empties it. Files are not copied. Files of uploads belong to the registry, which
returns them for deletion with their entry.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from attrs import define, field

from svc_proto.basics.entropy import Entropy, new_media_token
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.machines.transitions import Table, step

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import MediaEntryJson

__all__ = ["MEDIA_TABLE", "MediaEntry", "MediaRegistry", "MediaState", "MediaTrigger", "base_name"]


class MediaState(Enum):
    """State of a registered file."""

    NONE = "(none)"
    REGISTERED = "Registered"
    EXPIRED = "Expired"
    EVICTED = "Evicted"


class MediaTrigger(Enum):
    """Event that can change the state of a registered file."""

    REGISTER = "register"
    TTL = "ttl"
    EVICT = "evict"


MEDIA_TABLE: Table[MediaState, MediaTrigger] = {
    (MediaState.NONE, MediaTrigger.REGISTER): MediaState.REGISTERED,
    (MediaState.REGISTERED, MediaTrigger.TTL): MediaState.EXPIRED,
    (MediaState.REGISTERED, MediaTrigger.EVICT): MediaState.EVICTED,
}


@define(kw_only=True)
class MediaEntry:
    """A registered file. Times are wall seconds, except for `deadline`, which is monotonic."""

    token: str = field(repr=False)
    path: str  # absolute; never leaves the host
    content_type: str
    file_name: str | None
    size: int
    created_at: float
    expires_at: float
    last_accessed: float
    deadline: float
    sensitive: bool = False
    owned: bool = False  # the file is from an upload: delete it with the entry
    state: MediaState = field(default=MediaState.NONE, init=False)

    def step(self, trigger: MediaTrigger) -> None:
        """Change the state by `MEDIA_TABLE`."""
        self.state = step(MEDIA_TABLE, self.state, trigger)

    def record(self, now: Moment) -> MediaEntryJson:
        """Return the entry as `GET /media/inspect` shows it (wire core 6.6), without the path."""
        return {
            "token": self.token,
            "file_name": base_name(self.file_name or self.path),
            "content_type": self.content_type,
            "size": self.size,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "last_accessed": self.last_accessed,
            "is_expired": now.mono >= self.deadline,
        }


class MediaRegistry:
    """Registered files by token, least recently used first. `ttl` in seconds."""

    def __init__(self, *, ttl: float, cap: int) -> None:
        self._ttl = ttl
        self._entries: ExpiringMap[str, MediaEntry] = ExpiringMap(cap)  # on the monotonic clock

    def __len__(self) -> int:
        return len(self._entries)

    def register(
        self,
        now: Moment,
        entropy: Entropy,
        *,
        path: str,
        content_type: str,
        file_name: str | None,
        size: int,
        sensitive: bool = False,
        owned: bool = False,
    ) -> tuple[MediaEntry, list[MediaEntry]]:
        """Create an entry; also return the removed ones: all expired, and at the cap the least recently used one."""
        gone = self.expire_due(now)
        entry = MediaEntry(
            token=new_media_token(entropy),
            path=path,
            content_type=content_type,
            file_name=file_name,
            size=size,
            created_at=now.wall,
            expires_at=now.wall + self._ttl,
            last_accessed=now.wall,
            deadline=now.mono + self._ttl,
            sensitive=sensitive,
            owned=owned,
        )
        return entry, gone + self._put(entry)

    def adopt(self, entry: MediaEntry, now: Moment) -> list[MediaEntry]:
        """Add an entry of another node; return the removed ones, as `register` does."""
        return self.expire_due(now) + self._put(entry)

    def _put(self, entry: MediaEntry) -> list[MediaEntry]:
        entry.step(MediaTrigger.REGISTER)
        dropped = self._entries.put(entry.token, entry, entry.deadline)
        if dropped is None:
            return []
        dropped[1].step(MediaTrigger.EVICT)
        return [dropped[1]]

    def peek(self, token: str) -> MediaEntry | None:
        """Return the entry of a token, expired or not, without counting as a use."""
        return self._entries.peek(token)

    def lookup(self, token: str, now: Moment) -> MediaEntry | None:
        """Return the live entry of a token, or None; mark it as most recently used, without a change of its expiry."""
        entry = self._entries.get(token, now.mono)
        if entry is None:
            return None
        entry.last_accessed = now.wall
        self._entries.put(token, entry, entry.deadline)
        return entry

    def evict(self, token: str) -> MediaEntry:
        """Remove the entry of a token, which must exist, and return it."""
        entry = self._entries.peek(token)
        assert entry is not None  # the caller's own table drops a token with its entry
        self._entries.discard(token)
        entry.step(MediaTrigger.EVICT)
        return entry

    def expire_due(self, now: Moment) -> list[MediaEntry]:
        """Remove and return the expired entries, in order of their deadlines."""
        gone = [entry for _, entry in self._entries.purge(now.mono)]
        for entry in gone:
            entry.step(MediaTrigger.TTL)
        return gone

    def next_expiry(self) -> float | None:
        """Return the time (monotonic s) at which the next entry expires; None without entries."""
        return self._entries.next_expiry()

    def records(self, now: Moment, *, include_expired: bool = False) -> list[MediaEntryJson]:
        """Return the live entries for the inspector, newest first; with `include_expired`, also the expired ones."""
        entries = sorted(self._entries.values(), key=lambda entry: entry.created_at, reverse=True)
        return [entry.record(now) for entry in entries if include_expired or now.mono < entry.deadline]


def base_name(path: str) -> str:
    """Return the last component of a path of either platform."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]
