"""Inbox of the host: notifications of phones, and pasted images of clients (wire core 7)."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from svc_proto.basics.strict_json import dumps
from svc_proto.basics.validate import choice, invalid, text
from svc_proto.schema.json_object import JsonObject

__all__ = [
    "IMAGE_LIMIT",
    "INBOX_FOLDER",
    "STALE_AFTER",
    "NotificationBuffer",
    "image_type",
    "inbox_name",
    "parse_format",
]

MAX_NOTIFICATIONS = 100  # spec "Limits"
MAX_NOTIFICATION = 16 * 1024  # characters of one as JSON; a longer one is dropped
DEFAULT_LIMIT = 20  # wire core 7.3
IMAGE_LIMIT = 25 * 1024 * 1024  # bytes of a pasted image
INBOX_FOLDER = "images/inbox"  # in the service home
STALE_AFTER = 300.0  # s after which a pasted image is deleted
MAX_HINT = 40  # characters
FORMATS = ("png", "jpg", "jpeg", "webp", "gif")
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")


class NotificationBuffer:
    """The newest notifications of all phones, in one bounded buffer.

    A notification with a key and the name of its app replaces an earlier one of the same session with both.
    """

    def __init__(self) -> None:
        self._stored: dict[tuple[str, str, str] | int, Mapping[str, object]] = {}  # oldest first
        self._count = 0

    def post(self, source: str, payload: Mapping[str, object]) -> bool:
        """Store a notification of the session `source`; return False, with nothing stored, if it is too large."""
        if len(dumps(payload)) > MAX_NOTIFICATION:
            return False
        self._count += 1
        members = JsonObject.of(payload)
        key, package = members.text("key"), members.string("package_name")
        identity = (source, package, key) if key and package is not None else self._count
        self._stored.pop(identity, None)
        self._stored[identity] = dict(payload)
        if len(self._stored) > MAX_NOTIFICATIONS:
            del self._stored[next(iter(self._stored))]
        return True

    def recent(self, limit: int) -> list[Mapping[str, object]]:
        """Return up to `limit` notifications, the newest first."""
        return list(reversed(self._stored.values()))[:limit]

    @staticmethod
    def parse_limit(text: str | None) -> int:
        """Parse `limit` of the route: 20 if absent, 100 if greater; raise `Refused` 400 below 1 or for no number."""
        if text is None:
            return DEFAULT_LIMIT
        number = text.strip()
        if not (number.isascii() and number.isdecimal() and int(number[:9]) >= 1):
            raise invalid("limit", "a whole number, at least 1")
        return min(int(number[:9]), MAX_NOTIFICATIONS)


def parse_format(value: object) -> str:
    """Parse the image format of a paste; `jpg` becomes `jpeg`. Raise `Refused` 400 for an unknown one."""
    found = choice(text(value, "format").lower(), "format", FORMATS)
    return "jpeg" if found == "jpg" else found


def image_type(data: bytes) -> str | None:
    """Return the format by the leading bytes: png, jpeg, gif or webp; None for any other data."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "webp"
    return None


def inbox_name(wall: float, hint: object, extension: str, nonce: str) -> str:
    """Return the path of a pasted image under the service home, which contains `nonce` and a cleaned `hint`.

    Raise `Refused` 400 if the hint is not text.
    """
    word = _FOREIGN.sub("", "" if hint is None else text(hint, "filename_hint"))[:MAX_HINT]
    stamp = f"{datetime.fromtimestamp(wall, UTC):%Y%m%d_%H%M%S}"
    return f"{INBOX_FOLDER}/clip_{stamp}_{nonce}{'_' + word if word else ''}.{extension}"
