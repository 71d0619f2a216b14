"""Routes of `/v1/chat/completions` for OpenAI clients (wire api 5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from svc_proto.api.access import SESSION_ID, SESSION_KEY, TOOL_PROGRESS, ApiAccess, find_branded_header
from svc_proto.api.chat.records import ChatSession
from svc_proto.api.chat.store_requests import GetChat
from svc_proto.api.chat.titles import check_session_id
from svc_proto.api.chat.views import function_call
from svc_proto.api.completion_options import CompletionOptions, brings_tools, parse_completion_options, resolve_options
from svc_proto.api.content import MessageList, parse_conversation
from svc_proto.api.errors import invalid_request
from svc_proto.api.projections.completions import CompletionProjection, completion_usage, finish_reason
from svc_proto.api.projections.turn_events import TurnEnded
from svc_proto.api.runs.idempotency import IdempotencyKeys, fingerprint
from svc_proto.api.runs.run import Run
from svc_proto.api.runs.run_manager import TurnPort
from svc_proto.api.runs.streaming import (
    Fields,
    branded_header,
    event_stream_response,
    incomplete_error,
    join_system_prompt,
    parse_flag,
    read_object,
)
from svc_proto.api.runs.turn_execution import TurnRequest
from svc_proto.basics.brand import Brand
from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.validate import object_, optional
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, Response, StreamedResponse, empty_response, json_response
from svc_proto.engine.router import Route
from svc_proto.schema.json_object import JsonObject, content_text

if TYPE_CHECKING:
    from svc_proto.api.openapi.run_types import CompletionAnswerJson, CompletionJson

__all__ = ["routes"]

PATH = "/v1/chat/completions"
FINGERPRINT = ("model", "messages", "tools", "tool_choice", "stream")  # wire api 2.3
MAX_KEY = 256  # characters of a memory scope
DERIVED = 16  # hexadecimal digits of an id that is derived from the conversation


def routes(api: TurnPort) -> list[Route]:
    """Return the routes of `/v1/chat/completions`."""
    completions = _CompletionRoutes(api)
    return [
        Route(method="POST", pattern=PATH, access=ApiAccess.KEY, handler=completions.create, streamed=True),
        Route(method="HEAD", pattern=PATH, access=ApiAccess.KEY, handler=completions.probe),
    ]


@fast_frozen(kw_only=True)
class _SessionScope:
    """Session id, idempotency key and brand from a request's headers, and the fields to repeat in the answer."""

    session_id: str | None
    key: str  # Idempotency-Key; empty: none
    brand: Brand  # of the client
    fields: Fields  # to repeat in the answer


class _CompletionRoutes:
    def __init__(self, api: TurnPort) -> None:
        self._api = api
        self._keys = IdempotencyKeys("completions")
        self._streams = IdempotencyKeys("completion streams")

    def probe(self, request: Request) -> Response:
        """Answer the HEAD request by which a phone checks that the route exists."""
        return empty_response(200)

    def create(self, request: Request) -> Flow[JsonResponse[CompletionJson] | Response | StreamedResponse]:
        api = self._api
        yield from api.runs.check_capacity()
        scope = self._scope(request)
        body = yield from read_object(request)
        options = parse_completion_options(body)
        whole = brings_tools(body.array("messages"), options)
        conversation = parse_conversation(body.get("messages"), "messages", whole=whole)
        stream = parse_flag(body, "stream")
        usage = parse_flag(optional(body, "stream_options", object_) or {}, "include_usage")
        turn_request = yield from self._build_turn_request(body, conversation, options, scope)
        mark = fingerprint(body, FINGERPRINT, scope.session_id) if scope.key else ""
        if stream:
            keyed = self._streams.for_request(scope.key, mark, api.engine, request.principal)
            yield from keyed.stop_earlier(api.runs)
            run = yield from api.runs.start(turn_request, request)
            if not isinstance(run, Run):
                return run
            keyed.remember(run)
            subscriber = run.subscribe(
                CompletionProjection(
                    id=_completion_id(run),
                    created=_created(run),
                    model=turn_request.model,
                    brand=scope.brand,
                    usage=usage,
                    progress=find_branded_header(request.headers, TOOL_PROGRESS) in ("1", "true"),
                )
            )
            return event_stream_response(subscriber, _fields(turn_request, scope))
        request.stop_with_client()
        keyed = self._keys.for_request(scope.key, mark, api.engine, request.principal)
        yield from keyed.wait_stopped()
        run = yield from api.runs.start(turn_request, request, key=keyed.name, find_known=keyed.find)
        if not isinstance(run, Run):
            return run
        keyed.remember(run)
        ended = yield from run.wait_ended()
        return _answer(run, ended, scope.brand, _fields(turn_request, scope))

    def _scope(self, request: Request) -> _SessionScope:
        session_id = find_branded_header(request.headers, SESSION_ID)
        memory = find_branded_header(request.headers, SESSION_KEY)
        if session_id is not None:
            check_session_id(session_id, param=SESSION_ID)
        if memory is not None and (len(memory) > MAX_KEY or not memory.isprintable()):
            text = f"the session key must be printable, and may have at most {MAX_KEY} characters"
            raise invalid_request(text, param=SESSION_KEY)
        key = request.headers.get(b"idempotency-key") or b""
        brand = self._api.brand_of(request)
        return _SessionScope(
            session_id=session_id,
            key=key.decode("latin-1"),
            brand=brand,
            fields=branded_header(brand, SESSION_KEY, memory) if memory else (),
        )

    def _build_turn_request(
        self, body: JsonObject, conversation: MessageList, options: CompletionOptions, scope: _SessionScope
    ) -> Flow[TurnRequest]:
        api = self._api
        settings = yield from api.settings()
        resolved = resolve_options(settings, body.text("model"), options, conversation, place="messages")
        session_id = scope.session_id or _derived(conversation)
        stored = None if scope.session_id is None else (yield from api.run_store_request(GetChat(id=session_id)))
        now = api.engine.now.wall
        base = settings.system if stored is None else stored.system_prompt or settings.system
        return TurnRequest(
            run_id=api.runs.new_id(),
            session_id=session_id,
            brand=scope.brand,
            prompt=conversation.prompt,
            system=join_system_prompt(base, settings.prompt_for(None), conversation.system),
            history=conversation.history if scope.session_id is None else None,  # a stored session replaces the history
            endpoint=resolved.endpoint,
            model=resolved.model,
            max_tokens=resolved.max_tokens,
            options=resolved.options,
            tools=resolved.tools,
            results=conversation.results,
            create=ChatSession(id=session_id, started_at=now, updated_at=now, last_active=now, model=settings.name),
            may_wait=False,
            stops_alone=True,
        )


def _fields(turn_request: TurnRequest, scope: _SessionScope) -> Fields:
    return (*branded_header(scope.brand, SESSION_ID, turn_request.session_id), *scope.fields)


def _answer(run: Run, ended: TurnEnded, brand: Brand, fields: Fields) -> JsonResponse[CompletionJson]:
    refused = incomplete_error(ended)
    if refused is not None:
        raise refused
    reason = finish_reason(ended)
    body: CompletionJson = {
        "id": _completion_id(run),
        "object": "chat.completion",
        "created": _created(run),
        "model": run.model,
        "choices": [
            {
                "index": 0,
                "message": _message(ended),
                "finish_reason": reason,
            }
        ],
        "usage": completion_usage(ended.usage),
    }
    if not ended.completed:
        cast("dict[str, object]", body)[brand.name] = {
            "completed": False,
            "partial": True,
            "failed": reason == "error",
            "error": ended.error,
            "error_code": "output_truncated" if reason == "length" else "agent_error",
        }
        fields = (*fields, *branded_header(brand, "Completed", "false"), *branded_header(brand, "Partial", "true"))
    if reason == "error":
        fields = (*fields, *branded_header(brand, "Error", "agent_error"))
    return json_response(200, body, fields)


def _message(ended: TurnEnded) -> CompletionAnswerJson:
    """Return the assistant message of an ended turn; with tool calls also its `extra` members."""
    message: CompletionAnswerJson = {"role": "assistant", "content": ended.content}
    if ended.reasoning:
        message["reasoning_content"] = ended.reasoning
    if ended.calls:
        message |= {"content": ended.content or None, "tool_calls": [function_call(call) for call in ended.calls]}
        return cast("CompletionAnswerJson", {**ended.extra, **message})
    return message


def _derived(conversation: MessageList) -> str:
    """Return a stable id of a conversation: a hash over system prompt and first user text (wire api 5.3)."""
    asked = (content_text(message["content"]) for message in conversation.history if message["role"] == "user")
    first = next(asked, content_text(conversation.prompt))
    return f"api-{sha256_hex(conversation.system + chr(0) + first)[:DERIVED]}"


def _completion_id(run: Run) -> str:
    return f"chatcmpl-{run.record.id.removeprefix('run_')}"


def _created(run: Run) -> int:
    return int(run.record.created_at)
