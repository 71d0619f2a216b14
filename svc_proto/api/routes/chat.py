"""Routes for turns on a session: as an event stream, or as one answer (wire api 4, 3.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.api.access import ApiAccess
from svc_proto.api.chat.store_requests import GetChat
from svc_proto.api.chat.views import usage_view
from svc_proto.api.content import parse_apps, parse_prompt, parse_text
from svc_proto.api.errors import check_not_stopping, session_not_found
from svc_proto.api.projections.session import SessionProjection
from svc_proto.api.runs.run import Run
from svc_proto.api.runs.run_manager import TurnPort
from svc_proto.api.runs.streaming import (
    event_stream_response,
    incomplete_error,
    join_system_prompt,
    read_object,
    session_headers,
)
from svc_proto.api.runs.turn_execution import TurnRequest
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, Response, StreamedResponse, empty_response, json_response
from svc_proto.engine.request_origin import is_local
from svc_proto.engine.router import Route
from svc_proto.service_clients.local_secret import OPERATOR, forwarded_secret_headers

if TYPE_CHECKING:
    from svc_proto.api.openapi.run_types import TurnAnswerJson

__all__ = ["routes"]


def routes(api: TurnPort) -> list[Route]:
    """Return the routes that run a turn of a session."""
    chat = _ChatRoutes(api)
    blocking = "/api/sessions/{id}/chat"
    stream = f"{blocking}/stream"
    return [
        Route(method="POST", pattern=stream, access=ApiAccess.KEY, handler=chat.stream, streamed=True),
        Route(method="HEAD", pattern=stream, access=ApiAccess.KEY, handler=chat.probe),
        Route(method="POST", pattern=blocking, access=ApiAccess.KEY, handler=chat.blocking, streamed=True),
    ]


class _ChatRoutes:
    def __init__(self, api: TurnPort) -> None:
        self._api = api

    def probe(self, request: Request) -> Response:
        """Answer a phone's check that the route exists, whether or not the session does (wire api 1)."""
        return empty_response(200)

    def stream(self, request: Request) -> Flow[Response | StreamedResponse]:
        api = self._api
        turn_request = yield from self._build_turn_request(request, streams=True)
        run = yield from api.runs.start(turn_request, request, credential_id=request.credential_id)
        if not isinstance(run, Run):
            return run
        subscriber = run.subscribe(
            SessionProjection(session_id=turn_request.session_id, run_id=turn_request.run_id, message_id=run.message_id)
        )
        return event_stream_response(
            subscriber,
            session_headers(
                turn_request.brand or api.brand_of(request),
                session_id=turn_request.session_id,
                run_id=turn_request.run_id,
            ),
        )

    def blocking(self, request: Request) -> Flow[JsonResponse[TurnAnswerJson] | Response | StreamedResponse]:
        api = self._api
        turn_request = yield from self._build_turn_request(request, streams=False)
        request.stop_with_client()  # the turn goes on, as that of a stream does (wire api 4.5)
        run = yield from api.runs.start(turn_request, request, credential_id=request.credential_id)
        if not isinstance(run, Run):
            return run
        ended = yield from run.wait_ended()
        refused = incomplete_error(ended)
        if refused is not None:
            raise refused
        body: TurnAnswerJson = {
            "object": f"{api.brand_of(request).name}.session.chat.completion",
            "session_id": turn_request.session_id,
            "run_id": turn_request.run_id,
            "message": {"id": run.message_id, "role": "assistant", "content": ended.content},
            "completed": ended.completed,
            "partial": ended.partial,
            "interrupted": ended.interrupted,
            "usage": usage_view(ended.usage),
        }
        if ended.error is not None:
            body["error"] = ended.error
        return json_response(
            200,
            body,
            session_headers(api.brand_of(request), session_id=turn_request.session_id, run_id=turn_request.run_id),
        )

    def _build_turn_request(self, request: Request, *, streams: bool) -> Flow[TurnRequest]:
        """Check a request in the order of wire api 2.1, and return its turn; nothing is stored. Raises `Refused`.

        With `"approvals": true` the client declares that it shows approval requests of the stream. Phones in use have
        none there (wire api 6.5) and omit the member: tool calls that need an approval are refused at once.
        """
        api = self._api
        check_not_stopping(api.engine)
        session_id = request.params["id"]
        chat = yield from api.run_store_request(GetChat(id=session_id))
        if chat is None:
            raise session_not_found(session_id)
        body = yield from read_object(request)
        prompt = parse_prompt(body)
        message = parse_text(body, ("system_message", "instructions"), code="invalid_system_message")
        apps = parse_apps(body)
        settings = yield from api.settings()
        personality = settings.prompt_for(body.get("personality"))
        return TurnRequest(
            run_id=api.runs.new_id(),
            session_id=session_id,
            brand=api.brand_of(request),
            prompt=prompt,
            system=join_system_prompt(chat.system_prompt or settings.system, personality, message),
            endpoint=settings.endpoint,
            model=settings.name,
            apps=apps,
            max_tokens=settings.max_tokens,
            title=chat.title,
            operator=_operator(request) if streams else None,
            may_ask=streams and body.get("approvals") is True,
        )


def _operator(request: Request) -> tuple[tuple[bytes, bytes], ...] | None:
    """Return the field with the local secret of a local program that declares to act for this host's operator.

    It is empty if the program sent no secret. None for any other request.

    Programs that act for a device, as the TUI gateway and voice do, omit the declaration. A device's key never
    qualifies.
    """
    is_declared = request.headers.get(OPERATOR[0]) == OPERATOR[1]
    return (
        forwarded_secret_headers(request.headers)
        if is_declared and request.principal is None and is_local(request)
        else None
    )
