"""Requests of a desktop to a relay with its session: terminals, notifications, media, Device Control routes."""

import re
from collections.abc import Mapping, Sequence
from typing import cast
from urllib.parse import quote, urlencode

from attrs import frozen

from svc_proto.basics import strict_json
from svc_proto.basics.brand import BRANDS
from svc_proto.basics.duration_text import short_duration
from svc_proto.cli.desktop_sessions import select_url, sign_in
from svc_proto.cli.error_text import PAIRED, sanitize_line, with_explanation
from svc_proto.cli.errors import USAGE_ERROR, CliError
from svc_proto.cli.one_shot_service import announce_progress
from svc_proto.cli.session_store import StoredSession
from svc_proto.commands import Notify
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Failure
from svc_proto.schema.envelope import Envelope
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.relay_connection import RelayConnection
from svc_proto.service_clients.service_client import JSON, ServiceFault
from svc_proto.wire.urls import encode_segment

__all__ = [
    "FetchedMedia",
    "call_phone",
    "kill_terminal",
    "list_terminals",
    "media_path",
    "notification_rows",
    "list_notifications",
    "parse_arguments",
    "save_media",
    "terminal_rows",
]

CHUNK_SIZE = 4 * 1024 * 1024  # bytes of a file that are requested at once
LIST_TIMEOUT = 10.0  # s
PHONE_TIMEOUT = 60.0  # s: the relay gives a phone 30 s (spec), and some routes wait themselves
_FILE_NAME = re.compile(r'filename="([^"]*)"')
_RANGE = re.compile(r"bytes [0-9]+-[0-9]+/([0-9]{1,15})")
QUOTES = "\"'`"  # around a path with blanks
GONE = {ServiceFault.NOT_FOUND: "the relay has no such file: a token lasts a day, and no longer than the relay runs"}
_TOKEN = re.compile(r"[A-Za-z0-9_-]{8,64}")


# --- terminals ------------------------------------------------------------------------------------------------


def list_terminals(engine: Engine, session: StoredSession) -> Flow[list[JsonObject]]:
    """Return the terminal sessions on the relay's host (wire terminal 1.7). Raises `CliError`."""
    answer = yield from _request_terminals(engine, session, "terminal.list", {}, "terminal.sessions")
    if isinstance(answer, str):
        raise CliError(f"the relay lists no terminals: {answer}")
    return answer.objects("sessions")


def kill_terminal(engine: Engine, session: StoredSession, name: str) -> Flow[None]:
    """End a terminal session on the relay's host, with its programs. Raises `CliError`."""
    wanted = {"session_name": name}
    answer = yield from _request_terminals(engine, session, "terminal.kill", wanted, "terminal.detached")
    if isinstance(answer, str):
        raise CliError(f"the session {name} was not ended: {answer}; svc-relay sessions lists those there are")


def _request_terminals(
    engine: Engine, session: StoredSession, kind: str, payload: Mapping[str, object], answered_by: str
) -> Flow[JsonObject | str]:
    """Send a message of the terminal channel; return the payload of its answer, or why there is none."""
    url = yield from select_url(engine, session)
    announce_progress(engine, f"connecting to {url}")
    link, _ = yield from sign_in(engine, session, url)
    asked = _TerminalReply(engine, link, kind, payload, answered_by)
    answer = yield from wait(asked.ticket, engine.now.mono + LIST_TIMEOUT)
    yield from link.finish()
    return "no answer in time" if isinstance(answer, Failure) else cast("JsonObject | str", answer)


class _TerminalReply:
    def __init__(
        self, engine: Engine, link: RelayConnection, kind: str, payload: Mapping[str, object], answered_by: str
    ) -> None:
        self._engine = engine
        self._answered_by = answered_by
        self.ticket = engine.new_op()
        link.on_envelope, link.on_lost = self._on_envelope, self._lost
        self._id = link.send("terminal", kind, payload)

    def _on_envelope(self, envelope: Envelope) -> None:
        if envelope.type == self._answered_by:
            self._engine.resume(self.ticket, envelope.payload)
        elif envelope.id == self._id or envelope.type == "terminal.error":
            message = envelope.payload.text("message")
            self._engine.resume(self.ticket, sanitize_line(message) or "no reason given")

    def _lost(self, why: str) -> None:
        self._engine.resume(self.ticket, f"connection lost: {sanitize_line(why)}")


def terminal_rows(sessions: Sequence[JsonObject], now: float) -> list[tuple[str, ...]]:
    """Return rows of NAME, STATE, CLIENTS, AGE, SHELL."""
    rows: list[tuple[str, ...]] = []
    for session in sessions:
        created = session.number("created_at")
        age = "-" if created is None else short_duration(now - created)
        state = "attached" if session.get("live") is True else "waiting"
        name, shell = sanitize_line(session.text("name")), sanitize_line(session.text("shell"))
        rows.append((name, state, str(session.get("attached", "-")), age, shell))
    return rows


# --- notifications --------------------------------------------------------------------------------------------


def list_notifications(engine: Engine, relay: RelayClient, limit: int) -> Flow[list[JsonObject]]:
    """Return the latest notifications of phones, newest first (wire core 7.3)."""
    asked = relay.json(engine, "GET", f"/notifications/recent?limit={limit}")
    return (yield from with_explanation(asked, PAIRED)).objects("notifications")


def notification_rows(entries: Sequence[JsonObject], now: float) -> list[tuple[str, ...]]:
    """Return rows of AGE, APP, TITLE, TEXT."""
    rows: list[tuple[str, ...]] = []
    for entry in entries:
        posted = entry.number("posted_at")
        age = "-" if posted is None else f"{short_duration(now - posted / 1000)} ago"
        rows.append((age, *(sanitize_line(entry.text(name)) for name in ("package_name", "title", "text"))))
    return rows


# --- media ----------------------------------------------------------------------------------------------------


@frozen
class FetchedMedia:
    """Name, content type and size in bytes of a downloaded file."""

    name: str
    content_type: str
    size: int


def media_path(text: str) -> str:
    """Return the route for a media token, a marker with one, or a path on the host. Raises `CliError`, code 2."""
    text = text.strip().removeprefix("MEDIA:")
    if len(text) > 1 and text[0] == text[-1] and text[0] in QUOTES:
        text = text[1:-1]
    for brand in BRANDS.values():
        text = text.removeprefix(f"{brand.scheme}://")
    if text.startswith("/"):
        return f"/media/by-path?path={quote(text, safe='', errors='surrogateescape')}"
    if _TOKEN.fullmatch(text) is None:
        raise CliError("a media token, a MEDIA: marker or an absolute path is needed", code=USAGE_ERROR)
    return f"/media/{text}"


def save_media(engine: Engine, relay: RelayClient, path: str) -> Flow[FetchedMedia]:
    """Download a file in pieces, each sent as `Notify("piece", {"data", "name"})`. Raises `CliError`."""
    return (yield from with_explanation(_save(engine, relay, path), PAIRED | GONE))


def _save(engine: Engine, relay: RelayClient, path: str) -> Flow[FetchedMedia]:
    offset, total, name, kind = 0, 1, "", "application/octet-stream"
    while offset < total:
        announce_progress(engine, f"fetching {name or path.partition('?')[0]}: {offset} bytes so far")
        wanted = (b"range", f"bytes={offset}-{offset + CHUNK_SIZE - 1}".encode("ascii"))
        answer = yield from relay.request(engine, "GET", path, fields=(JSON, wanted), within=60.0)
        if answer.status == 416 and not offset:
            total = 0  # an empty file has no first byte
        else:
            relay.check(answer)
        size = _RANGE.fullmatch((answer.headers.get(b"content-range") or b"").decode("latin-1"))
        if not offset:
            kind = ((answer.headers.get(b"content-type") or b"").decode("latin-1") or kind) if total else kind
            named = _FILE_NAME.search((answer.headers.get(b"content-disposition") or b"").decode("utf-8", "replace"))
            name = _base_name(named[1]) if named is not None else ""
            total = total and (int(size[1]) if answer.status == 206 and size is not None else len(answer.body))
        body = answer.body if total else b""
        if total and not body:
            raise CliError("the relay sent an empty piece: try again")
        engine.emit(Notify("piece", {"data": body, "name": name}))
        offset += len(body)
    return FetchedMedia(name, sanitize_line(kind), offset)


def _base_name(text: str) -> str:
    """Return a file name without folders; empty for `.` and `..`."""
    name = sanitize_line(text.replace("\\", "/").rpartition("/")[2])
    return "" if name in (".", "..") else name


# --- the phone ------------------------------------------------------------------------------------------------


def parse_arguments(arguments: Sequence[str]) -> dict[str, object]:
    """Parse arguments of the forms `key=text` and `key:=json` into one object. Raises `CliError`, code 2."""
    found: dict[str, object] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        name = key.removesuffix(":")
        if not equals or not name:
            raise CliError(
                f"an argument is key=text or key:=json, not {sanitize_line(argument, 40)!r}", code=USAGE_ERROR
            )
        if name in found:
            raise CliError(f"{sanitize_line(name, 40)!r} is given twice", code=USAGE_ERROR)
        found[name] = value
        if key.endswith(":"):
            try:
                found[name] = strict_json.loads(value)
            except strict_json.JsonError as error:
                raise CliError(f"{sanitize_line(name, 40)}:= is not JSON: {error}", code=USAGE_ERROR) from None
    return found


def call_phone(
    engine: Engine, relay: RelayClient, method: str, route: str, arguments: Mapping[str, object]
) -> Flow[tuple[int, object]]:
    """Make one Device Control call; return the status and the JSON value of the response.

    Raises `CliError` for status 401, and `ServiceCallError` without a JSON response.
    """
    path = "/" + "/".join(encode_segment(part) for part in route.strip("/").split("/"))
    body: Mapping[str, object] | bytes = arguments
    if method == "GET":
        texts = {
            name: value if isinstance(value, str) else strict_json.dumps(value) for name, value in arguments.items()
        }
        path, body = path + (f"?{urlencode(texts)}" if texts else ""), b""
    announce_progress(engine, f"waiting for the phone: {method} {path.partition('?')[0]}")
    answer = yield from relay.request(engine, method, path, body, within=PHONE_TIMEOUT)
    if answer.status == 401:
        raise CliError(PAIRED[ServiceFault.UNAUTHORIZED])
    return answer.status, relay.json_value(answer)
