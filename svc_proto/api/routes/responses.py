"""Routes of `/v1/responses`: the OpenAI responses protocol, with chains that share a session (wire api 7)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

from attrs import evolve, frozen

from svc_proto.api.access import ApiAccess
from svc_proto.api.chat.records import ChatSession
from svc_proto.api.completion_options import CompletionOptions, brings_tools, parse_completion_options, resolve_options
from svc_proto.api.content import MessageList, parse_conversation, parse_history, parse_text
from svc_proto.api.errors import invalid_request, not_found
from svc_proto.api.projections.responses import ResponseBuilder, ResponseProjection
from svc_proto.api.projections.turn_events import TurnEnded, TurnStreamEvent
from svc_proto.api.response_request import (
    as_completion_body,
    as_completion_messages,
    as_response_error,
    item_reference,
    response_of_item,
)
from svc_proto.api.runs.history import MAX_ROWS, read_history
from svc_proto.api.runs.idempotency import IdempotencyKeys, fingerprint
from svc_proto.api.runs.response_store import ResponseStore
from svc_proto.api.runs.run import Run
from svc_proto.api.runs.run_manager import TurnPort
from svc_proto.api.runs.streaming import (
    event_stream_response,
    incomplete_error,
    join_system_prompt,
    parse_flag,
    read_object,
    session_headers,
)
from svc_proto.api.runs.turn_execution import TurnRequest
from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, Response, StreamedResponse, json_response
from svc_proto.engine.router import Route
from svc_proto.schema.json_object import JsonObject, as_text

if TYPE_CHECKING:
    from svc_proto.api.openapi.run_types import ResponseDeletedJson, ResponseJson

__all__ = ["routes"]

FINGERPRINT = ("input", "instructions", "previous_response_id", "conversation", "model", "tools")  # wire api 2.3
TRUNCATED = 100  # rows that `truncation: "auto"` keeps
SHOWN_ID = 80  # characters of an id in an error
ID_DIGITS = 28  # hexadecimal, wire api 7
MAX_NAME = 256  # characters of a conversation's name


class ResponsesPort(TurnPort, Protocol):
    """Members of the API server that the routes of responses use."""

    responses: ResponseStore


def routes(api: ResponsesPort) -> list[Route]:
    """Return the routes of `/v1/responses`."""
    responses = _ResponseRoutes(api)
    one = "/v1/responses/{response_id}"
    return [
        Route(method="POST", pattern="/v1/responses", access=ApiAccess.KEY, handler=responses.create, streamed=True),
        Route(method="GET", pattern=one, access=ApiAccess.KEY, handler=responses.read),
        Route(method="DELETE", pattern=one, access=ApiAccess.KEY, handler=responses.delete),
    ]


@frozen(kw_only=True)
class _ResponseChain:
    """Session and conversation that a response belongs to."""

    session_id: str
    goes_on: bool  # the session's rows are the history
    conversation: str | None


class _ResponseRoutes:
    def __init__(self, api: ResponsesPort) -> None:
        self._api = api
        self._keys = IdempotencyKeys("responses")
        self._streams = IdempotencyKeys("response streams")

    def create(self, request: Request) -> Flow[JsonResponse[ResponseJson] | Response | StreamedResponse]:
        api = self._api
        yield from api.runs.check_capacity()
        body = yield from read_object(request)
        options = _parse_options(body)
        messages = _parse_input(body, options, (yield from self._resolve_references(body)))
        stream = parse_flag(body, "stream")
        keeps = parse_flag({"store": True, **body}, "store")
        chain = yield from self._chain(body)
        turn_request = yield from self._build_turn_request(body, messages, options, chain)
        key = (request.headers.get(b"idempotency-key") or b"").decode("latin-1")
        table = self._streams if stream else self._keys
        keyed = table.for_request(key, fingerprint(body, FINGERPRINT), api.engine, request.principal)
        if stream:
            yield from keyed.stop_earlier(api.runs)
            run = yield from api.runs.start(turn_request, request)
        else:
            request.stop_with_client()
            yield from keyed.wait_stopped()
            run = yield from api.runs.start(turn_request, request, key=keyed.name, find_known=keyed.find)
        if not isinstance(run, Run):
            return run
        keyed.remember(run)
        if run.attachment is not None:
            return (yield from self._answer(request, run))
        builder = self._builder(run)
        run.attachment = builder

        def watch(event: TurnStreamEvent) -> None:
            builder.add_event(event)
            if keeps and isinstance(event, TurnEnded):
                flow = api.responses.put(builder.response, turn_request.session_id, chain.conversation)
                api.engine.spawn(flow)

        run.observe(watch)
        if stream:
            subscriber = run.subscribe(ResponseProjection(self._builder(run)))
            return event_stream_response(
                subscriber,
                session_headers(api.brand_of(request), session_id=turn_request.session_id, run_id=turn_request.run_id),
            )
        return (yield from self._answer(request, run))

    def read(self, request: Request) -> Flow[JsonResponse[ResponseJson]]:
        found = yield from self._api.responses.get(request.params["response_id"])
        if found is None:
            raise _unknown()
        return json_response(200, found)

    def delete(self, request: Request) -> Flow[JsonResponse[ResponseDeletedJson]]:
        response_id = request.params["response_id"]
        if not (yield from self._api.responses.delete(response_id)):
            raise _unknown()
        return json_response(200, {"id": response_id, "object": "response", "deleted": True})

    def _builder(self, run: Run) -> ResponseBuilder:
        digits = run.record.id.removeprefix("run_")[:ID_DIGITS]
        return ResponseBuilder(id=f"resp_{digits}", created=int(run.record.created_at), model=run.model)

    def _answer(self, request: Request, run: Run) -> Flow[JsonResponse[ResponseJson]]:
        refused = incomplete_error((yield from run.wait_ended()))
        if refused is not None:
            raise refused
        builder = run.attachment
        assert isinstance(builder, ResponseBuilder)  # `create` sets the attachment of each run
        fields = session_headers(self._api.brand_of(request), session_id=run.record.session_id, run_id=run.record.id)
        return json_response(200, builder.response, fields)

    def _chain(self, body: JsonObject) -> Flow[_ResponseChain]:
        api, previous, wanted = self._api, body.get("previous_response_id"), body.object_or_none("conversation")
        given = body.get("conversation") if wanted is None else wanted.get("id")
        if previous is not None and given is not None:
            raise invalid_request("previous_response_id and conversation exclude each other", param="conversation")
        name, response = as_text(given), body.string("previous_response_id")
        if name != given or (name is not None and not 1 <= len(name) <= MAX_NAME):
            raise invalid_request("conversation must be a name", param="conversation")
        required = previous is not None or name is not None
        yield from api.responses.load(required=required)  # the client may continue this response at once
        found: str | None = None
        if response is not None:
            found = yield from api.responses.session_of("response", response)
        elif name is not None:
            found = yield from api.responses.session_of("conversation", name)
        if previous is not None and found is None:
            raise _unknown()
        return _ResponseChain(
            session_id=found or new_uuid(api.engine.entropy),
            goes_on=found is not None,
            conversation=name,
        )

    def _resolve_references(self, body: JsonObject) -> Flow[list[object]]:
        """Return the items of `input`, with items of stored responses in place of references. Raises `Refused` 404."""
        items = [*body.array("input")]
        stored: dict[str, object] = {}
        for place, item in enumerate(items):
            wanted = item_reference(item)
            if wanted is None:
                continue
            response = response_of_item(wanted)
            if response and wanted not in stored:
                found = JsonObject.of((yield from self._api.responses.get(response)))
                stored |= {JsonObject.of(each).text("id"): each for each in found.array("output")}
            if wanted not in stored:
                text = f"no stored response has the item {wanted[:SHOWN_ID]!r}: send the item itself"
                raise invalid_request(text, param=f"input[{place}].id", status=404)
            items[place] = stored[wanted]
        return items

    def _build_turn_request(
        self, body: JsonObject, messages: MessageList, options: CompletionOptions, chain: _ResponseChain
    ) -> Flow[TurnRequest]:
        api = self._api
        settings = yield from api.settings()
        history, results = messages.history, messages.results
        if body.get("conversation_history") is not None:
            history = (*parse_history(body["conversation_history"], "conversation_history"), *history)
        elif chain.goes_on:
            limit = TRUNCATED if body.get("truncation") == "auto" else MAX_ROWS
            results = tuple(takewhile(_is_result, history))  # of calls in the chain
            earlier = yield from read_history(api, chain.session_id, limit=limit, results=results)
            _check_calls(earlier, results)
            history = (*earlier, *history[len(results) :])
        resolved = resolve_options(settings, body.text("model"), options, messages, place="input")
        now = api.engine.now.wall
        return TurnRequest(
            run_id=api.runs.new_id(),
            session_id=chain.session_id,
            prompt=messages.prompt,
            system=join_system_prompt(settings.system, settings.prompt_for(None), messages.system),
            history=history,
            endpoint=resolved.endpoint,
            model=resolved.model,
            max_tokens=resolved.max_tokens,
            options=resolved.options,
            tools=resolved.tools,
            results=results,
            create=ChatSession(
                id=chain.session_id, started_at=now, updated_at=now, last_active=now, model=settings.name
            ),
            may_wait=False,
            stops_alone=True,
        )


def _parse_options(body: JsonObject) -> CompletionOptions:
    """Parse the options as those of chat completions. Raises `Refused` 400 with the member's name in this route."""
    translated = as_completion_body(body)
    try:
        return parse_completion_options(translated)
    except Refused as refused:
        raise as_response_error(refused) from None


def _parse_input(body: JsonObject, options: CompletionOptions, items: list[object]) -> MessageList:
    """Parse `input`, a string or an array, and `instructions`, which are added to its system messages.

    An array has strings, `{role, content}` objects, items of an earlier response, and results of tool calls.
    """
    text = body.string("input")
    rows, places = as_completion_messages(items if text is None else [text])
    messages = parse_conversation(rows, "input", whole=brings_tools(rows, options), places=places)
    return evolve(messages, system=join_system_prompt(messages.system, parse_text(body, ("instructions",))))


def _is_result(row: Mapping[str, object]) -> bool:
    return row["role"] == "tool"


def _check_calls(earlier: tuple[Mapping[str, object], ...], results: tuple[Mapping[str, object], ...]) -> None:
    """Check that each tool result answers a call of `earlier`. Raises `Refused` 400."""
    answered = {row.get("tool_call_id") for row in earlier if _is_result(row)}
    for result in results:
        if result["tool_call_id"] not in answered:
            text = f"no tool call of this conversation has the id {str(result['tool_call_id'])[:SHOWN_ID]}"
            raise invalid_request(text, param="input")


def _unknown() -> Exception:
    return not_found("no such response")  # wire api 2.1: the code is null
