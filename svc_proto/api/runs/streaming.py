"""Helpers of the routes that start turns."""

from collections.abc import Mapping

from svc_proto.api.access import SESSION_ID
from svc_proto.api.projections.turn_events import TurnEnded
from svc_proto.api.runs.subscriber import Subscriber
from svc_proto.basics.brand import Brand
from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import boolean_word
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, StreamedResponse
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.events import Headers

__all__ = [
    "RUN_ID",
    "branded_header",
    "event_stream_response",
    "incomplete_error",
    "parse_flag",
    "read_object",
    "session_headers",
    "join_system_prompt",
]

RUN_ID = "Run-Id"  # wire api 6.1
STREAM_HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
STATUSES = {"session_not_found": 404, "session_db_unavailable": 503, "gateway_draining": 503, "unsupported_option": 400}

Fields = tuple[tuple[bytes, bytes], ...]


def read_object(request: Request) -> Flow[JsonObject]:
    """Read the body of a `streamed` route as a JSON object. Raises `Refused` 400 with a null code (wire api 2.1)."""
    pieces: list[bytes] = []
    while piece := (yield from request.stream.read()):
        pieces.append(piece)
    request.body = b"".join(pieces)
    return request.json_object()


def parse_flag(body: Mapping[str, object], name: str) -> bool:
    """Parse a boolean, a word for one, 0 or 1; a missing or empty value is false (wire api 5.3).

    Raises `Refused` 400 for any other value.
    """
    value = body.get(name)
    return boolean_word(False if value in (None, "") else value, name)


def event_stream_response(subscriber: Subscriber, fields: Fields) -> StreamedResponse:
    """Build the response that streams a run's events to its subscriber, with these additional header fields."""
    return StreamedResponse(200, Headers((*STREAM_HEADERS, *fields)), subscriber.produce)


def branded_header(brand: Brand, name: str, value: str) -> Fields:
    """Return the header field with the brand's prefix; nothing for an empty value or other than printable ASCII."""
    if not value or not (value.isascii() and value.isprintable()):
        return ()
    return ((f"{brand.header_prefix}{name}".encode("ascii"), value.encode("ascii")),)


def session_headers(brand: Brand, *, session_id: str, run_id: str) -> Fields:
    """Return the header fields with the ids of the session and the run, each unless `branded_header` returns none."""
    return (*branded_header(brand, SESSION_ID, session_id), *branded_header(brand, RUN_ID, run_id))


def join_system_prompt(*parts: str | None) -> str:
    """Join the non-empty parts to one system prompt."""
    return "\n\n".join(part for part in parts if part)


def incomplete_error(ended: TurnEnded) -> Refused | None:
    """Return the error of a turn for an answer that is no stream, or None.

    An error of `STATUSES` has its own status, with or without text. Any other turn that did not complete and has no
    text gives 502 `agent_incomplete` (wire api 2.1).
    """
    if ended.code in STATUSES:
        return Refused(STATUSES[ended.code], ended.code, ended.error or ended.code)
    if ended.content or ended.completed:
        return None
    problem = ended.error or "the turn was interrupted"
    return Refused(502, "agent_incomplete", f"the agent gave no answer: {problem}")
