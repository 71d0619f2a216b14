"""Order of the steps of a turn (wire api 4.4, 4.5).

1. wait for the slot: earlier turns of the same session, and the cap
2. store the user's row, so that a client that lost its connection finds it
3. publish the start; run the agent until its end or until the run is stopped
4. store the answer, or the part that there is
5. publish the end, exactly once and as the last event

A turn that is stopped in step 1, and one whose step 2 fails, continue with step 5.
"""

from collections.abc import Mapping
from typing import Protocol, cast

from attrs import field

from svc_proto.agent.interface import Agent, ModelEndpoint, Turn
from svc_proto.api.chat.records import ChatSession, Content, Message
from svc_proto.api.chat.store_requests import AddMessages, BeginTurn
from svc_proto.api.projections.turn_events import TurnEnded, TurnStarted
from svc_proto.api.runs.history import MAX_ROWS, Row, build_history
from svc_proto.api.runs.run import Run, RunHost
from svc_proto.basics.brand import Brand
from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import content_text
from svc_proto.service_clients.authority import OWNER, Authority

__all__ = ["TurnRequest", "execute_turn"]

CUT_ANSWER = "The answer was cut at a limit: of its tokens, of the model's calls in a turn, or of their size."


class TurnHost(RunHost, Protocol):
    """Members of the API server that the execution of a turn uses."""

    agent: Agent


@fast_frozen(kw_only=True)
class TurnRequest:
    """A client's request for one turn: session, message, and options."""

    run_id: str
    session_id: str
    prompt: Content
    system: str = ""
    history: tuple[Mapping[str, object], ...] | None = None  # None: the rows of the session
    endpoint: ModelEndpoint | None = None
    model: str = ""  # the model name for the client
    apps: tuple[str, ...] = ()  # see `Turn`
    max_tokens: int | None = None
    options: Mapping[str, object] = field(factory=dict)  # more members of the requests to the model
    tools: tuple[Mapping[str, object], ...] | None = None  # the client's own
    results: tuple[Mapping[str, object], ...] = ()  # of client tools, in the history: stored before the prompt, if any
    title: str | None = None  # of the session
    create: ChatSession | None = None  # the session to create if it does not exist
    may_wait: bool = True  # at the cap; otherwise the turn is refused
    stops_alone: bool = False  # when no client waits for the turn
    operator: tuple[tuple[bytes, bytes], ...] | None = field(default=None, repr=False)  # see `Turn`
    authority: Authority = OWNER  # of the client that starts the turn, if it sends no request of its own
    brand: Brand | None = None  # likewise; see `Turn`
    may_ask: bool = False  # the client shows approval requests and answers them


def execute_turn(api: TurnHost, run: Run, turn_request: TurnRequest) -> Flow[None]:
    """Execute a turn and finish its run. A `Refused` becomes the error of the run's end event.

    Any other exception is raised; the run manager then finishes the run.
    """
    try:
        ended = yield from _perform(api, run, turn_request)
    except Refused as refused:
        ended = run.build_ended(finish="error", error=refused.message, code=refused.code)
    run.finish(ended)


def _perform(api: TurnHost, run: Run, turn_request: TurnRequest) -> Flow[TurnEnded]:
    if not (yield from run.wait_started()):
        text = "the turn was stopped before it began"
        return run.build_ended(finish="interrupted", error=text, code="interrupted", interrupted=True)
    rows = _build_rows(api, turn_request)
    history = yield from _begin_turn(api, turn_request, rows)
    run.publish_started(
        TurnStarted(
            title=turn_request.title,
            user_id=rows[-1].id,
            user_text=content_text(turn_request.prompt),
            model=turn_request.model,
        )
    )
    turn = Turn(
        session_id=turn_request.session_id,
        run_id=turn_request.run_id,
        prompt=turn_request.prompt,
        history=history,
        client_history=turn_request.history is not None,
        system=turn_request.system,
        model=turn_request.endpoint,
        max_calls=api.config.max_model_calls,
        apps=turn_request.apps,
        max_tokens=turn_request.max_tokens,
        options=turn_request.options,
        tools=turn_request.tools,
        operator=turn_request.operator,
        authority=run.authority,
        brand=run.brand,
    )
    outcome = yield from run.run_agent(api.agent.run(turn, run))
    if outcome is None:
        ended = run.build_ended(finish="interrupted", interrupted=True)
    elif outcome.finish == "error" or outcome.error is not None:
        error = outcome.error or "the agent failed"
        ended = run.build_ended(finish="error", error=error, code=outcome.code or "agent_error")
    else:
        reason = outcome.reason or (CUT_ANSWER if outcome.finish == "length" else None)
        ended = run.build_ended(
            finish=outcome.finish, reason=reason, unfinished=outcome.unfinished, calls=outcome.calls
        )
    rows = run.unsaved_rows(finish=ended.finish)
    if rows:
        yield from _store_rows(api, *rows)
    return ended


def _begin_turn(api: TurnHost, turn_request: TurnRequest, rows: tuple[Message, ...]) -> Flow[tuple[Row, ...]]:
    """Store the client's messages, after creating the session if the request has one; return the history for the model.

    A history in the request is returned unchanged; without one, that of the session's stored rows is built, with these
    `rows` only if the request has tool results. Raises `Refused` if the session does not exist and is not created.
    """
    history = turn_request.history
    history_limit = MAX_ROWS if history is None else 0
    earlier = yield from api.run_store_request(
        BeginTurn(
            session_id=turn_request.session_id,
            messages=rows,
            history=history_limit,
            create=turn_request.create,
            fence=api.ownership.fence(turn_request.session_id),
        )
    )
    if earlier is None:
        raise _no_session()
    if history is not None:
        return history
    return build_history((*earlier, *rows) if turn_request.results else earlier)


def _build_rows(api: TurnHost, turn_request: TurnRequest) -> tuple[Message, ...]:
    """Build the rows to be stored for the client's messages: tool results, then the prompt if there is one."""
    prompt = ({"role": "user", "content": turn_request.prompt},) if turn_request.prompt else ()
    messages: tuple[Mapping[str, object], ...] = (*turn_request.results, *prompt)
    return tuple(
        Message(
            id=new_uuid(api.engine.entropy),
            session_id=turn_request.session_id,
            role=str(each["role"]),
            content=cast("Content", each["content"]),
            timestamp=api.engine.now.wall,
            run_id=turn_request.run_id,
            tool_call_id=cast("str | None", each.get("tool_call_id")),
        )
        for each in messages
    )


def _store_rows(api: TurnHost, *rows: Message) -> Flow[None]:
    session_id = rows[0].session_id
    added = AddMessages(session_id=session_id, messages=rows, fence=api.ownership.fence(session_id))
    stored = yield from api.run_store_request(added)
    if not stored:
        raise _no_session()


def _no_session() -> Refused:
    return Refused(404, "session_not_found", "the session was deleted")
