"""Messages of programs on this host, such as the agent, to the owner's phones, and the owner's replies.

While no client is subscribed, messages wait in a bounded queue; the oldest is dropped first. The next subscriber
receives them. Everything is in memory: a restart of the relay loses it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING

from attrs import frozen

from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.basics.strict_json import dumps
from svc_proto.basics.validate import choice, invalid, object_, optional, single_line, text
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import OwnerThreadJson

__all__ = ["DEFAULT_THREAD", "OwnerMessage", "OwnerMessages", "parse_message", "parse_message_id", "parse_wait"]

MAX_QUEUED = 100  # messages while no client is subscribed
MAX_REPLIES = 100  # replies that no program has fetched
MAX_THREADS = 50  # the oldest is dropped first
MAX_TEXT = 8_000  # characters of a message or a reply
MAX_TITLE = 200  # characters
MAX_ID = 200  # characters of an id
MAX_METADATA = 4_096  # characters as JSON
MAX_RATE, RATE_PERIOD = 60, 3_600.0  # messages in s
MAX_WAIT = 30.0  # s of a request for replies
DEFAULT_THREAD = "owner"
SURFACES = ("notification", "inbox", "session")


@frozen(kw_only=True)
class OwnerMessage:
    """A message to the owner's phones; `surfacing` is one of `SURFACES`, or None for the client's own choice."""

    text: str
    title: str = ""
    chat_id: str = DEFAULT_THREAD
    session_id: str | None = None  # chat session that it belongs to
    surfacing: str | None = None
    reply_to: str | None = None
    metadata: Mapping[str, object] | None = None

    def to_payload(self, message_id: str, sent_at: int, *, queued: bool = False) -> dict[str, object]:
        """Return the payload of `phone.message`; `sent_at` is in ms since 1970."""
        payload: dict[str, object] = {
            "message_id": message_id,
            "chat_id": self.chat_id,
            "text": self.text,
            "title": self.title or None,
            "surfacing": self.surfacing,
            "reply_to": self.reply_to,
            "metadata": self.metadata,
            "sent_at": sent_at,
        }
        return {**payload, "queued_delivery": True} if queued else payload


@frozen
class _Posted:
    at: float  # monotonic s
    message_id: str
    replies_before: int


class OwnerMessages:
    """Messages to the owner's phones: the queue, the subscribers, the threads, and the owner's replies."""

    def __init__(self) -> None:
        self.subscribers: set[int] = set()  # socket numbers of clients
        self._queue: deque[tuple[str, int, OwnerMessage]] = deque(maxlen=MAX_QUEUED)
        self._replies: deque[tuple[int, dict[str, object]]] = deque(maxlen=MAX_REPLIES)  # each with its number
        self._received = 0  # number of the next reply
        self._threads: dict[str, OwnerThreadJson] = {}  # by chat id, the latest last
        self._posted: deque[_Posted] = deque(maxlen=MAX_RATE)

    def post(self, message: OwnerMessage, message_id: str, now: Moment) -> dict[str, object] | None:
        """Return the payload of a message for all subscribers; without any, queue the message and return None.

        Raise `Refused` 429 above `MAX_RATE` messages an hour.
        """
        if len(self._posted) == MAX_RATE and (age := now.mono - self._posted[0].at) < RATE_PERIOD:
            wait = ceil(RATE_PERIOD - age)
            text_ = f"the owner gets at most {MAX_RATE} messages an hour; try again in {wait} seconds"
            fields = ((b"retry-after", b"%d" % wait),)
            raise Refused(429, "rate_limited", text_, extra={"retry_after": wait}, headers=fields)
        self._posted.append(_Posted(now.mono, message_id, self._received))
        self._remember_thread(message)
        sent_at = int(now.wall * 1000)
        if self.subscribers:
            return message.to_payload(message_id, sent_at)
        self._queue.append((message_id, sent_at, message))
        return None

    def subscribe(self, number: int) -> list[dict[str, object]]:
        """Subscribe a client; empty the queue and return the payloads of its messages, oldest first."""
        self.subscribers.add(number)
        backlog = self.outbound()
        self._queue.clear()
        return backlog

    def unsubscribe(self, number: int) -> None:
        """Unsubscribe a client; do nothing if it is not subscribed."""
        self.subscribers.discard(number)

    def outbound(self) -> list[dict[str, object]]:
        """Return the payloads of the queued messages, oldest first."""
        return [message.to_payload(identity, sent_at, queued=True) for identity, sent_at, message in self._queue]

    def clear(self) -> int:
        """Drop the queued messages; return their number."""
        dropped = len(self._queue)
        self._queue.clear()
        return dropped

    def cancel(self, message_id: str) -> None:
        """Remove a message from the queue, if it still waits there."""
        kept = [entry for entry in self._queue if entry[0] != message_id]
        self._queue = deque(kept, maxlen=MAX_QUEUED)

    def add_reply(self, payload: Mapping[str, object], device: str, now: Moment) -> bool:
        """Store a reply of the owner for the programs that fetch replies; return False if it has no text."""
        members = JsonObject.of(payload)
        said = members.text("text")
        if not said.strip():
            return False
        names = {name: members.text(name)[:MAX_ID] or None for name in ("reply_to", "message_id", "client_msg_id")}
        chat_id = members.text("chat_id")[:MAX_ID] or DEFAULT_THREAD
        source: dict[str, object] = {"device_name": device, "received_at": now.wall}
        self._replies.append((self._received, {"text": said[:MAX_TEXT], "chat_id": chat_id, **names, **source}))
        self._received += 1
        return True

    def take_replies(self, message_id: str | None = None) -> list[dict[str, object]]:
        """Remove and return the stored replies, oldest first: all, or those to one message.

        A reply that names none of the last `MAX_RATE` messages answers any of them that was posted before it.
        """
        found = [entry for entry in self._replies if message_id is None or self._answers(*entry, message_id)]
        for entry in found:
            self._replies.remove(entry)
        return [reply for _, reply in found]

    def threads(self) -> list[OwnerThreadJson]:
        """Return the threads, the latest first."""
        return list(reversed(self._threads.values()))

    def _answers(self, number: int, reply: Mapping[str, object], message_id: str) -> bool:
        posted = {each.message_id: each.replies_before for each in self._posted}
        for named in (reply["reply_to"], reply["message_id"]):
            if named in posted:
                return named == message_id
        return number >= posted.get(message_id, self._received)

    def _remember_thread(self, message: OwnerMessage) -> None:
        earlier = self._threads.pop(message.chat_id, None)
        title = message.title or (earlier and earlier["title"]) or message.text[:MAX_TITLE]
        self._threads[message.chat_id] = {"session_id": message.session_id, "chat_id": message.chat_id, "title": title}
        if len(self._threads) > MAX_THREADS:
            del self._threads[next(iter(self._threads))]


def parse_message(body: Mapping[str, object]) -> OwnerMessage:
    """Parse the body of `POST /phone/message`. Raises `Refused` 400 that names the field."""
    said = text(body.get("text"), "text").strip()
    if not 0 < len(said) <= MAX_TEXT:
        raise invalid("text", f"text of 1 to {MAX_TEXT} characters")
    metadata = optional(body, "metadata", object_)
    if metadata is not None and len(dumps(metadata)) > MAX_METADATA:
        raise invalid("metadata", f"an object of at most {MAX_METADATA} characters")
    return OwnerMessage(
        text=said,
        title=optional(body, "title", lambda value, field: single_line(value, field, MAX_TITLE)) or "",
        chat_id=optional(body, "chat_id", _identity) or DEFAULT_THREAD,
        session_id=optional(body, "session_id", _identity),
        surfacing=optional(body, "surfacing", lambda value, field: choice(value, field, SURFACES)),
        reply_to=optional(body, "reply_to", _identity),
        metadata=metadata,
    )


def parse_wait(value: str | None) -> float:
    """Parse `timeout` of `GET /phone/replies`: seconds, 0 if absent, at most 30. Raises `Refused` 400."""
    if value is None:
        return 0.0
    number = value.strip()
    if not (number.isascii() and number.isdecimal()):
        raise invalid("timeout", "a whole number of seconds")
    return min(float(number[:9]), MAX_WAIT)


def parse_message_id(value: str | None) -> str | None:
    """Parse `message_id` of `GET /phone/replies`; None if absent. Raises `Refused` 400."""
    return None if value is None else _identity(value, "message_id")


def _identity(value: object, field: str) -> str:
    return single_line(value, field, MAX_ID, 1)
