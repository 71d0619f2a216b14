"""Conversion of a session's stored rows to messages for the model."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from svc_proto.api.chat.records import Message
from svc_proto.api.chat.store_requests import ListMessages
from svc_proto.api.ports import StorePort
from svc_proto.basics import strict_json
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject, as_array, content_text

__all__ = ["MAX_IMAGES", "MAX_ROWS", "MAX_TEXT", "Row", "build_history", "read_history"]

MAX_ROWS = 1_000  # newest rows of a session that the model receives
MAX_TEXT = 400_000  # characters of these rows, about 100,000 tokens; whole older turns are left out
MAX_IMAGES = 8 * 1024 * 1024  # characters of the images in these rows; older images are replaced by a note
INTERRUPTED = "interrupted: this call was cut off, and nothing is known of its result"
IMAGE_GONE = "[an image that was sent earlier]"

Row: TypeAlias = Mapping[str, object]


def build_history(rows: Sequence[Message]) -> tuple[Row, ...]:
    """Build messages in the chat-completions form, oldest first: the newest whole turns that fit into `MAX_TEXT`.

    Each call id has exactly one result right behind the message of its calls, since models refuse anything else. A
    missing result is replaced by `INTERRUPTED`. A result that does not follow its call, and an answer without text and
    calls, are left out. If the newest turn alone exceeds `MAX_TEXT`, the result is empty.
    """
    messages: list[Row] = []
    results: dict[str, str] | None = None  # stored results of the latest calls
    for row in rows:
        if row.role == "tool":
            if results is not None and row.tool_call_id in results and isinstance(row.content, str):
                results[row.tool_call_id] = row.content
            continue
        messages += _answers(results)
        results = None
        if row.role == "assistant":
            if row.tool_calls:
                results = dict.fromkeys(map(_call_id, row.tool_calls), INTERRUPTED)
                calls = list(row.tool_calls)
                messages.append({**row.extra, "role": "assistant", "content": row.content, "tool_calls": calls})
            elif row.content:
                messages.append({**row.extra, "role": "assistant", "content": row.content})
        else:
            content = row.content if isinstance(row.content, str) else list(row.content)
            messages.append({"role": row.role, "content": content})
    messages += _answers(results)
    return _newest(messages)


def read_history(
    api: StorePort, session_id: str, *, limit: int = MAX_ROWS, results: Sequence[Row] = ()
) -> Flow[tuple[Row, ...]]:
    """Return the messages for the model from a session's newest `limit` rows; empty if the session does not exist.

    `results` of tools are put behind the calls with which the session ends; one without such a call is left out.
    """
    rows = yield from api.run_store_request(ListMessages(session_id=session_id, limit=limit, latest=True))
    return build_history((*(rows or ()), *(_result_message(session_id, result) for result in results)))


def _result_message(session_id: str, result: Row) -> Message:
    """Return a result of a client's tool as a row that is not stored."""
    return Message(
        id="",
        session_id=session_id,
        role="tool",
        content=str(result["content"]),
        timestamp=0.0,
        tool_call_id=str(result["tool_call_id"]),
    )


def _newest(messages: list[Row]) -> tuple[Row, ...]:
    """Return all messages if they fit into `MAX_TEXT`, else the newest turns that do, each from its user's message.

    If the images of one message exceed what newer ones leave of `MAX_IMAGES`, each of them is replaced by a text.
    """
    kept: list[Row] = []
    fitting = 0  # messages of `kept` that form whole turns
    text, images = MAX_TEXT, MAX_IMAGES
    for message in reversed(messages):
        content = message["content"]
        if parts := as_array(content):
            size = sum(map(_image_size, parts))
            if size > images:
                content = [part if not _image_size(part) else {"type": "text", "text": IMAGE_GONE} for part in parts]
            else:
                images -= size
        calls = message.get("tool_calls")
        text -= len(content_text(content)) + (len(strict_json.dumps(calls)) if calls else 0)
        if text < 0:
            break
        kept.append({**message, "content": content})
        if message["role"] == "user":
            fitting = len(kept)
    else:
        fitting = len(kept)
    return tuple(reversed(kept[:fitting]))


def _image_size(part: object) -> int:
    return len(JsonObject.of(part).get_object("image_url").text("url"))


def _answers(results: Mapping[str, str] | None) -> Iterable[Row]:
    return [
        {"role": "tool", "tool_call_id": call_id, "content": content} for call_id, content in (results or {}).items()
    ]


def _call_id(call: Mapping[str, object]) -> str:
    return str(call.get("id", ""))
