"""The media registry: opaque tokens for files on the host (spec "Media registry entry", wire core 6.5).

| state      | trigger  | next       |                                                      |
|------------|----------|------------|------------------------------------------------------|
| NONE       | REGISTER | REGISTERED |                                                      |
| REGISTERED | TTL      | EXPIRED    | `RELAY_MEDIA_TTL_SECONDS` after registration          |
| REGISTERED | EVICT    | EVICTED    | over `RELAY_MEDIA_LRU_CAP`: the least recently used   |

In memory: a restart empties it. Files are not copied; those that an upload made are the registry's own and are handed
back for deletion when their entry goes.
"""

from __future__ import annotations

from enum import Enum

from attrs import define, field

from svc_proto.basics.entropy import Entropy, new_media_token
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.machines.transitions import Table, step

__all__ = ["MEDIA_TABLE", "MediaEntry", "MediaRegistry", "MediaState", "MediaTrigger", "base_name"]


class MediaState(Enum):
    """Where a registered file is in its life."""

    NONE = "(none)"
    REGISTERED = "Registered"
    EXPIRED = "Expired"
    EVICTED = "Evicted"


class MediaTrigger(Enum):
    """What happens to it."""

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
    """One registered file. Times are wall seconds but for `deadline`, which is monotonic."""

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
    owned: bool = False  # the file was made by an upload: delete it with the entry
    state: MediaState = field(default=MediaState.NONE, init=False)

    def step(self, trigger: MediaTrigger) -> None:
        """Follow the table."""
        self.state = step(MEDIA_TABLE, self.state, trigger)

    def record(self, now: Moment) -> dict[str, object]:
        """The form of `GET /media/inspect` (wire core 6.6): no path."""
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
    """All files that can be fetched by a token, least recently used first. `ttl` in seconds."""

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
        """Make an entry. Also returns those that had to go: whose time is over, or the least recently used one."""
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
        """Take over an entry that was made elsewhere; those that had to go, as above."""
        return self.expire_due(now) + self._put(entry)

    def _put(self, entry: MediaEntry) -> list[MediaEntry]:
        entry.step(MediaTrigger.REGISTER)
        dropped = self._entries.put(entry.token, entry, entry.deadline)
        if dropped is None:
            return []
        dropped[1].step(MediaTrigger.EVICT)
        return [dropped[1]]

    def peek(self, token: str) -> MediaEntry | None:
        """The file of a token, whether its time is over or not, without counting as a look."""
        return self._entries.peek(token)

    def lookup(self, token: str, now: Moment) -> MediaEntry | None:
        """The live entry of a token; reading makes it the most recently used, but does not extend its life."""
        entry = self._entries.get(token, now.mono)
        if entry is None:
            return None
        entry.last_accessed = now.wall
        self._entries.put(token, entry, entry.deadline)
        return entry

    def evict(self, token: str) -> MediaEntry:
        """Take out an entry that is there before its time."""
        entry = self._entries.peek(token)
        assert entry is not None  # whoever keeps its file is told of its end
        self._entries.discard(token)
        entry.step(MediaTrigger.EVICT)
        return entry

    def expire_due(self, now: Moment) -> list[MediaEntry]:
        """Take out the entries whose time is over, in order."""
        gone = [entry for _, entry in self._entries.purge(now.mono)]
        for entry in gone:
            entry.step(MediaTrigger.TTL)
        return gone

    def next_expiry(self) -> float | None:
        """When (monotonic seconds) the next entry expires."""
        return self._entries.next_expiry()

    def records(self, now: Moment, *, include_expired: bool = False) -> list[dict[str, object]]:
        """All entries for the inspector, newest first."""
        entries = sorted(self._entries.values(), key=lambda entry: entry.created_at, reverse=True)
        return [entry.record(now) for entry in entries if include_expired or now.mono < entry.deadline]


def base_name(path: str) -> str:
    """The last component of a path of either platform."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]
