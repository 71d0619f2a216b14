"""Routes of runs: start, events, status, stop, approval (wire api 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from svc_proto.api.access import ApiAccess
from svc_proto.api.change_ledger import ChangeLedger
from svc_proto.api.chat.records import ChatSession
from svc_proto.api.chat.titles import check_session_id
from svc_proto.api.chat.views import approval_request_event, usage_view
from svc_proto.api.cluster.local_session_ownership import LocalSessionOwnership
from svc_proto.api.content import MessageList, parse_apps, parse_conversation, parse_history, parse_prompt, parse_text
from svc_proto.api.errors import invalid_request, not_found
from svc_proto.api.projections.runs import RunProjection
from svc_proto.api.runs.history import read_history
from svc_proto.api.runs.response_store import ResponseStore
from svc_proto.api.runs.run import Run
from svc_proto.api.runs.run_manager import TurnPort
from svc_proto.api.runs.streaming import (
    branded_header,
    event_stream_response,
    join_system_prompt,
    parse_flag,
    read_object,
    session_headers,
)
from svc_proto.api.runs.subscriber import SubscriberState
from svc_proto.api.runs.turn_execution import TurnRequest
from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.message import JsonResponse, Request, Response, StreamedResponse, json_response
from svc_proto.engine.router import Route
from svc_proto.machines.approvals import LASTING, LASTING_TEXT, parse_approval
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.authority import MANAGE
from svc_proto.wire.events import Headers

if TYPE_CHECKING:
    from svc_proto.api.openapi import run_types as types

__all__ = ["routes"]

OTHERS_TEXT = "an approval for the run of another client needs the right manage, which this pairing withholds"
EVENT_WAIT = 1.0  # s that a subscription waits for its run, wire api 6.3
STREAM_MODES = ("Run-Streaming", "Stream-Mode")  # wire api 6.1: by these a phone detects that a POST may be a stream

ResponseT = TypeVar("ResponseT", bound=Response)


class RunsPort(TurnPort, Protocol):
    """Members of the API server that the routes of runs use."""

    ledger: ChangeLedger
    ownership: LocalSessionOwnership
    responses: ResponseStore


def routes(api: RunsPort) -> list[Route]:
    """Return the routes of `/v1/runs`: start, probe, status, events, stop and approval."""
    runs = _RunRoutes(api)
    one = "/v1/runs/{run_id}"
    return [
        Route(method="POST", pattern="/v1/runs", access=ApiAccess.KEY, handler=runs.create, streamed=True),
        Route(method="HEAD", pattern="/v1/runs", access=ApiAccess.KEY, handler=runs.probe),
        Route(method="GET", pattern=one, access=ApiAccess.KEY, handler=runs.status),
        Route(method="GET", pattern=f"{one}/events", access=ApiAccess.KEY, handler=runs.events),
        Route(method="POST", pattern=f"{one}/stop", access=ApiAccess.KEY, handler=runs.stop),
        Route(method="POST", pattern=f"{one}/approval", access=ApiAccess.KEY, handler=runs.approve),
    ]


class _RunRoutes:
    def __init__(self, api: RunsPort) -> None:
        self._api = api

    def probe(self, request: Request) -> Response:
        """Answer a phone's check that the answer to a POST can be a stream."""
        brand = self._api.brand_of(request)
        return Response(200, Headers(field for name in STREAM_MODES for field in branded_header(brand, name, "sse")))

    def create(self, request: Request) -> Flow[JsonResponse[types.RunAcceptedJson] | Response | StreamedResponse]:
        api = self._api
        yield from api.runs.check_capacity()
        body = yield from read_object(request)
        conversation = _talk(body)
        stream = parse_flag(body, "stream") or _wants_events(request)
        turn_request = yield from self._build_turn_request(body, conversation)
        run = yield from api.runs.start(turn_request, request, credential_id=request.credential_id)
        if not isinstance(run, Run):
            return run
        subscriber = run.subscribe(RunProjection(session_id=turn_request.session_id, run_id=turn_request.run_id))
        fields = session_headers(api.brand_of(request), session_id=turn_request.session_id, run_id=turn_request.run_id)
        if stream:
            return event_stream_response(subscriber, fields)
        accepted: types.RunAcceptedJson = {"run_id": turn_request.run_id, "status": "started"}
        return json_response(202, accepted, fields)

    def status(self, request: Request) -> JsonResponse[types.RunJson] | Flow[Response | StreamedResponse]:
        return self._anywhere(request, self._status)

    def _anywhere(
        self, request: Request, here: Callable[[Request], ResponseT]
    ) -> ResponseT | Flow[Response | StreamedResponse]:
        """Return the response of `here`, or that of another node if the run is only there."""
        api, run_id = self._api, request.params["run_id"]
        seeking = None if api.runs.get(run_id) is not None else api.ownership.lookup_run(request, run_id)
        return here(request) if seeking is None else self._find_elsewhere(request, here, seeking)

    def _find_elsewhere(
        self,
        request: Request,
        here: Callable[[Request], Response],
        seeking: Flow[Response | StreamedResponse | None],
    ) -> Flow[Response | StreamedResponse]:
        answer = yield from seeking
        return here(request) if answer is None else answer

    def _status(self, request: Request) -> JsonResponse[types.RunJson]:
        api = self._api
        run = api.runs.find(request.params["run_id"])
        return json_response(200, _view(run, f"{api.brand_of(request).name}.run"))

    def events(self, request: Request) -> Flow[Response | StreamedResponse]:
        api, run_id = self._api, request.params["run_id"]
        if api.runs.get(run_id) is None:
            seeking = api.ownership.lookup_run(request, run_id)
            answer = None if seeking is None else (yield from seeking)
            if answer is not None:
                return answer
            yield from sleep(api.engine, EVENT_WAIT)
        run = api.runs.find(run_id)
        subscriber = run.subscriber
        if subscriber is None or subscriber.state is not SubscriberState.AWAITED:
            raise not_found("this run's events have or had their one consumer", code="run_not_found")
        return event_stream_response(
            subscriber, session_headers(api.brand_of(request), session_id=run.record.session_id, run_id=run_id)
        )

    def stop(self, request: Request) -> JsonResponse[types.RunStoppingJson] | Flow[Response | StreamedResponse]:
        return self._anywhere(request, self._stop)

    def _stop(self, request: Request) -> JsonResponse[types.RunStoppingJson]:
        run_id = request.params["run_id"]
        self._api.runs.stop(run_id)
        return json_response(200, {"run_id": run_id, "status": "stopping"})

    def approve(self, request: Request) -> JsonResponse[types.ApprovalAnswerJson] | Flow[Response | StreamedResponse]:
        return self._anywhere(request, self._approve)

    def _approve(self, request: Request) -> JsonResponse[types.ApprovalAnswerJson]:
        api, run_id = self._api, request.params["run_id"]
        run = api.runs.find(run_id)
        answer = parse_approval(request.json_object())
        lasts = answer.choice in LASTING
        is_others = isinstance(request.principal, str) and request.principal != run.credential_id
        if (lasts or is_others) and not api.authority(request).holds(MANAGE):
            raise Refused(403, "grant_required", LASTING_TEXT if lasts else OTHERS_TEXT)
        asked = [each for each in run.pending_approvals if answer.call_id in (None, each.call.id)]
        resolved = run.answer(answer)
        if lasts:
            for each in asked:
                api.ledger.approval(api.authority(request).name, run.record.session_id, each.pattern)
                api.record_audit("approval given", request, tool=each.call.name, choice=answer.choice, run=run_id)
        kind = f"{api.brand_of(request).name}.run.approval_response"
        return json_response(200, {"object": kind, "run_id": run_id, "choice": answer.choice, "resolved": resolved})

    def _build_turn_request(self, body: JsonObject, conversation: MessageList) -> Flow[TurnRequest]:
        api = self._api
        run_id = api.runs.new_id()
        wanted = body.get("session_id")
        session_id = run_id if wanted is None else check_session_id(wanted, param="session_id")
        apps = parse_apps(body)
        earlier = yield from self._earlier(body)
        settings = yield from api.settings()
        name = body.text("model")
        now = api.engine.now.wall
        return TurnRequest(
            run_id=run_id,
            session_id=session_id,
            prompt=conversation.prompt,
            system=join_system_prompt(
                settings.system, settings.prompt_for(body.get("personality")), conversation.system
            ),
            history=(*earlier, *conversation.history),
            endpoint=settings.aliases.get(name, settings.endpoint),
            model=name or settings.name,
            apps=apps,
            max_tokens=settings.max_tokens,
            create=ChatSession(id=session_id, started_at=now, updated_at=now, last_active=now, model=settings.name),
            may_wait=False,
            may_ask=True,  # the events of a run include approval requests (wire api 6.3)
        )

    def _earlier(self, body: JsonObject) -> Flow[tuple[Mapping[str, object], ...]]:
        """Return the history that `previous_response_id` continues; an unknown id is ignored (wire api 6.1).

        It is empty if the body has a `conversation_history`, which replaces it.
        """
        api, previous = self._api, body.string("previous_response_id")
        if previous is None or body.get("conversation_history") is not None:
            return ()
        session = yield from api.responses.session_of("response", previous)
        return () if session is None else (yield from read_history(api, session))


def _talk(body: JsonObject) -> MessageList:
    """Parse `input` (text, parts or messages) and its history. Raises `Refused` 400.

    `conversation_history` replaces earlier messages (wire api 6.1).
    """
    value = body.get("input")
    if value is None and body.get("message") is None:
        raise invalid_request("input is missing", param="input")
    if any("role" in entry for entry in body.objects("input")):
        conversation = parse_conversation(value, "input")
    else:
        conversation = MessageList(system="", history=(), prompt=parse_prompt(body, names=("input", "message")))
    history = conversation.history
    if body.get("conversation_history") is not None:
        history = parse_history(body["conversation_history"], "conversation_history")
    instructions = parse_text(body, ("instructions", "system_message"))
    return MessageList(
        system=join_system_prompt(conversation.system, instructions), history=history, prompt=conversation.prompt
    )


def _wants_events(request: Request) -> bool:
    """Report whether `Accept` lists `text/event-stream`, and no JSON before it (wire api 6.1)."""
    for accepted in (request.headers.get(b"accept") or b"").lower().split(b","):
        kind = accepted.partition(b";")[0].strip()
        if kind in (b"text/event-stream", b"application/json"):
            return kind == b"text/event-stream"
    return False


def _view(run: Run, kind: str) -> types.RunJson:
    record, ended = run.record, run.ended
    view: types.RunJson = {
        "object": kind,
        "run_id": record.id,
        "status": record.state.value,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "session_id": record.session_id,
        "model": run.model,
    }
    if run.last_event is not None:
        view["last_event"] = run.last_event
    if run.pending_approvals:
        asked = [approval_request_event(each).members() for each in run.pending_approvals]
        view["approvals"] = cast("list[types.ApprovalJson]", asked)
    if ended is not None and record.state.value == "completed":
        view |= {"output": ended.content, "usage": usage_view(ended.usage)}
    if ended is not None and record.state.value == "failed":
        view["error"] = ended.error
    return view
