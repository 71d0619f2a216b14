"""Order of the steps of a turn (wire api 4.4, 4.5).

1. wait for the slot: earlier turns of the same session, and the cap
2. store the user's row, so that a client that lost its connection finds it
3. publish the start; run the agent until its end or until the run is stopped
4. store the answer, or the part that there is
5. publish the end: `done` is the last event, exactly once
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from attrs import field, frozen

from svc_proto.agent.interface import ModelEndpoint, Turn
from svc_proto.api.chat.records import ChatSession, Content, Message
from svc_proto.api.chat.store_requests import AddMessages, BeginTurn
from svc_proto.api.projections.turn_events import TurnEnded, TurnStarted
from svc_proto.api.runs.history import MAX_ROWS, Row, build_history
from svc_proto.api.runs.run import Run
from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import content_text

if TYPE_CHECKING:
    from svc_proto.api.service import Api

__all__ = ["TurnRequest", "execute_turn"]


@frozen(kw_only=True)
class TurnRequest:
    """A client's request for one turn."""

    run_id: str
    session_id: str
    prompt: Content
    system: str = ""
    history: tuple[Mapping[str, object], ...] | None = None  # None: the rows of the session
    route: ModelEndpoint | None = None
    model: str = ""  # the model name for the client
    max_tokens: int | None = None
    options: Mapping[str, object] = field(factory=dict)  # more members of the requests to the model
    tools: tuple[Mapping[str, object], ...] | None = None  # the client's own
    results: tuple[Mapping[str, object], ...] = ()  # of client tools: they replace the prompt, and end the history
    title: str | None = None  # of the session
    create: ChatSession | None = None  # the session to create if it does not exist
    may_wait: bool = True  # at the cap; otherwise the turn is refused
    stops_alone: bool = False  # when no client waits for the turn
    operator: tuple[tuple[bytes, bytes], ...] | None = field(default=None, repr=False)  # see `Turn`
    may_ask: bool = False  # the client shows approval requests and answers them


def execute_turn(api: Api, run: Run, order: TurnRequest) -> Flow[None]:
    """Execute a turn. The run always ends, whether or not the turn fails."""
    try:
        ended = yield from _perform(api, run, order)
    except Refused as refused:
        ended = run.build_ended(finish="error", error=refused.message, code=refused.code)
    run.finish(ended)


def _perform(api: Api, run: Run, order: TurnRequest) -> Flow[TurnEnded]:
    if not (yield from run.wait_started()):
        text = "the turn was stopped before it began"
        return run.build_ended(finish="interrupted", error=text, code="interrupted", interrupted=True)
    rows = _incoming(api, order)
    history = yield from _open(api, order, rows)
    text = content_text(order.prompt)
    run.publish_started(TurnStarted(title=order.title, user_id=rows[-1].id, user_text=text, model=order.model))
    turn = Turn(
        session_id=order.session_id,
        run_id=order.run_id,
        prompt=order.prompt,
        history=history,
        system=order.system,
        model=order.route,
        max_calls=api.config.max_model_calls,
        max_tokens=order.max_tokens,
        options=order.options,
        tools=order.tools,
        operator=order.operator,
    )
    outcome = yield from run.run_agent(api.agent.run(turn, run))
    if outcome is None:
        ended = run.build_ended(finish="interrupted", interrupted=True)
    elif outcome.finish == "error" or outcome.error is not None:
        error = outcome.error or "the agent failed"
        ended = run.build_ended(finish="error", error=error, code=outcome.code or "agent_error")
    else:
        ended = run.build_ended(finish=outcome.finish, calls=outcome.calls)
    rows = run.unsaved_rows(finish=ended.finish)
    if rows:
        yield from _store(api, *rows)
    return ended


def _open(api: Api, order: TurnRequest, rows: tuple[Message, ...]) -> Flow[tuple[Row, ...]]:
    """Store the client's messages; return the history, in which tool results stand right behind their calls."""
    known = order.history
    wanted = MAX_ROWS if known is None else 0
    before = yield from api.run_store_request(
        BeginTurn(
            session_id=order.session_id,
            messages=rows,
            history=wanted,
            create=order.create,
            fence=api.ownership.fence(order.session_id),
        )
    )
    if before is None:
        raise _no_session()
    if known is not None:
        return known
    return build_history((*before, *rows) if order.results else before)


def _incoming(api: Api, order: TurnRequest) -> tuple[Message, ...]:
    """Build the rows of the client's messages."""
    said: tuple[Mapping[str, object], ...] = order.results or ({"role": "user", "content": order.prompt},)
    return tuple(
        Message(
            id=new_uuid(api.engine.entropy),
            session_id=order.session_id,
            role=str(each["role"]),
            content=cast("Content", each["content"]),
            timestamp=api.engine.now.wall,
            run_id=order.run_id,
            tool_call_id=cast("str | None", each.get("tool_call_id")),
        )
        for each in said
    )


def _store(api: Api, *rows: Message) -> Flow[None]:
    session_id = rows[0].session_id
    added = AddMessages(session_id=session_id, messages=rows, fence=api.ownership.fence(session_id))
    stored = yield from api.run_store_request(added)
    if not stored:
        raise _no_session()


def _no_session() -> Refused:
    return Refused(404, "session_not_found", "the session was deleted")
