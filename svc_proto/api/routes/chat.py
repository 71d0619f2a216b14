"""Turns on a session: as a stream of events, or as one answer (wire api 4, 3.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.api.access import Access
from svc_proto.api.chat.store_requests import GetChat
from svc_proto.api.chat.views import usage_view
from svc_proto.api.content import read_prompt, read_text
from svc_proto.api.errors import no_such_session
from svc_proto.api.projections.session import SessionProjection
from svc_proto.api.runs.run import Run
from svc_proto.api.runs.streaming import event_stream, failure, read_object, session_fields, system_of
from svc_proto.api.runs.turn_execution import TurnOrder
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, StreamedResponse, empty_response, json_response
from svc_proto.engine.request_origin import is_local
from svc_proto.engine.router import Route
from svc_proto.service_clients.local_secret import OPERATOR, forwarded_secret_headers

if TYPE_CHECKING:
    from svc_proto.api.service import Api

__all__ = ["routes"]


def routes(api: Api) -> list[Route]:
    """The rows of this theme."""
    chat = _Chat(api)
    blocking = "/api/sessions/{id}/chat"
    stream = f"{blocking}/stream"
    return [
        Route(method="POST", pattern=stream, access=Access.KEY, handler=chat.stream, streamed=True),
        Route(method="HEAD", pattern=stream, access=Access.KEY, handler=chat.probe),
        Route(method="POST", pattern=blocking, access=Access.KEY, handler=chat.blocking, streamed=True),
    ]


class _Chat:
    def __init__(self, api: Api) -> None:
        self._api = api

    def probe(self, request: Request) -> Response:
        """A phone asks whether the route exists; whether the session does is another matter (wire api 1)."""
        return empty_response(200)

    def stream(self, request: Request) -> Flow[Response | StreamedResponse]:
        api = self._api
        order = yield from self._order(request, streams=True)
        run = yield from api.runs.begin(order, request, holder=request.credential_id)
        if not isinstance(run, Run):
            return run
        reader = run.subscribe(
            SessionProjection(session_id=order.session_id, run_id=order.run_id, message_id=run.message_id)
        )
        return event_stream(reader, session_fields(api.config.brand, session_id=order.session_id, run_id=order.run_id))

    def blocking(self, request: Request) -> Flow[Response | StreamedResponse]:
        api = self._api
        order = yield from self._order(request, streams=False)
        run = yield from api.runs.begin(order, request, holder=request.credential_id)
        if not isinstance(run, Run):
            return run
        ended = yield from run.end_of()
        refused = failure(ended)
        if refused is not None:
            raise refused
        body: dict[str, object] = {
            "object": f"{api.config.brand.name}.session.chat.completion",
            "session_id": order.session_id,
            "run_id": order.run_id,
            "message": {"id": run.message_id, "role": "assistant", "content": ended.content},
            "completed": ended.completed,
            "partial": ended.partial,
            "interrupted": ended.interrupted,
            "usage": usage_view(ended.usage),
        }
        if ended.error is not None:
            body["error"] = ended.error
        return json_response(
            200, body, session_fields(api.config.brand, session_id=order.session_id, run_id=order.run_id)
        )

    def _order(self, request: Request, *, streams: bool) -> Flow[TurnOrder]:
        """The checks in the order of wire api 2.1; nothing is stored before all of them have passed.

        `"approvals": true` says that the client shows the questions of the stream and answers them. Phones in use know
        none there (wire api 6.5), and do not say so: what would have to be asked is refused at once.
        """
        api = self._api
        api.refuse_while_stopping()
        session_id = request.params["id"]
        chat = yield from api.query(GetChat(id=session_id))
        if chat is None:
            raise no_such_session(session_id)
        body = yield from read_object(request)
        prompt = read_prompt(body)
        message = read_text(body, ("system_message", "instructions"), code="invalid_system_message")
        settings = yield from api.settings()
        personality = settings.prompt_for(body.get("personality"))
        return TurnOrder(
            run_id=api.runs.new_id(),
            session_id=session_id,
            prompt=prompt,
            system=system_of(chat.system_prompt or settings.system, personality, message),
            route=settings.route,
            model=settings.name,
            max_tokens=settings.max_tokens,
            title=chat.title,
            operator=_operator(request) if streams else None,
            may_ask=streams and body.get("approvals") is True,
        )


def _operator(request: Request) -> tuple[tuple[bytes, bytes], ...] | None:
    """What the caller shows the relay, if a program of this host says that it speaks for this host's operator.

    Who speaks for a device, as the TUI gateway and voice do, does not say so, and a device's own key never may.
    """
    says = request.headers.get(OPERATOR[0]) == OPERATOR[1]
    return (
        forwarded_secret_headers(request.headers) if says and request.principal is None and is_local(request) else None
    )
