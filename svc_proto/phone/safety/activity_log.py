"""Activity log of the agent's commands on the phone (spec "Bridge safety gates", wire bridge 5.8).

"Every command is appended to a local activity log (timestamp, status, result text, optional screenshot token), capped
at 100 entries."
"""

from collections import OrderedDict
from enum import Enum

from attrs import evolve, frozen

from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, PhoneCommand
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.redact import summary

__all__ = ["MAX_ACTIVITIES", "ActivityEntry", "ActivityLog", "ActivityStatus"]

MAX_ACTIVITIES = 100  # spec "Bridge safety gates"; the oldest is dropped
MAX_METHOD = 24  # characters, wire bridge 5.8
MAX_SUMMARY = 80  # characters of the arguments; the rest is cut
MAX_RESULT = 140  # characters of the result; the rest is cut


class ActivityStatus(Enum):
    """Status of a command, as the log writes it."""

    PENDING = "Pending"
    SUCCESS = "Success"
    FAILED = "Failed"
    BLOCKED = "Blocked"


@frozen(kw_only=True)
class ActivityEntry:
    """Log entry of one command; `timestamp_ms` is its arrival in epoch milliseconds."""

    activity_id: str
    timestamp_ms: int
    method: str  # the path without its slash
    summary: str  # the arguments, without secrets
    status: ActivityStatus = ActivityStatus.PENDING
    result_text: str | None = None
    thumbnail_token: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the entry with the field names of wire bridge 5.8."""
        return {
            "id": self.activity_id,
            "timestampMs": self.timestamp_ms,
            "method": self.method,
            "summary": self.summary,
            "status": self.status.value,
            "resultText": self.result_text,
            "thumbnailToken": self.thumbnail_token,
        }


class ActivityLog:
    """Log of the last hundred commands by id."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, ActivityEntry] = OrderedDict()  # oldest first
        self._unnamed = 0

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> list[ActivityEntry]:
        """Return the entries, the newest first."""
        return list(reversed(self._entries.values()))

    def begin(self, command: PhoneCommand, now: Moment) -> str:
        """Add a command as pending, in place of an entry with its id; return the id.

        The id is the request id, or a new one without a request id.
        """
        activity_id = command.request_id
        if not activity_id:
            self._unnamed += 1
            activity_id = f"local-{self._unnamed}"
        self._entries.pop(activity_id, None)
        self._entries[activity_id] = ActivityEntry(
            activity_id=activity_id,
            timestamp_ms=int(now.wall * 1000),
            method=command.path.removeprefix("/")[:MAX_METHOD],
            summary=summary(command.body, MAX_SUMMARY) if command.body else "",
        )
        if len(self._entries) > MAX_ACTIVITIES:
            self._entries.popitem(last=False)
        return activity_id

    def finish(self, activity_id: str, reply: CommandReply, *, thumbnail_token: str | None = None) -> None:
        """Set the status, result text and thumbnail of an entry; do nothing if the entry was dropped."""
        entry = self._entries.get(activity_id)
        if entry is None:
            return
        self._entries[activity_id] = evolve(
            entry, status=_status(reply), result_text=_result_text(reply), thumbnail_token=thumbnail_token
        )

    def clear(self) -> None:
        """Delete all entries."""
        self._entries.clear()


def _status(reply: CommandReply) -> ActivityStatus:
    if reply.status == 200:
        return ActivityStatus.SUCCESS
    return ActivityStatus.BLOCKED if reply.status == 403 else ActivityStatus.FAILED


def _result_text(reply: CommandReply) -> str | None:
    names = ("summary", "message", "status") if reply.status == 200 else ("error",)
    found = JsonObject.of(reply.result)
    return next((text[:MAX_RESULT] for name in names if (text := found.string(name)) is not None), None)
