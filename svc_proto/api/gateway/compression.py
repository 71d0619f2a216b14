"""Compression of a session: a model writes a summary, which replaces the messages.

The two oldest messages become a request for a summary and the summary, before the others are removed.
"""

from collections.abc import Mapping

from svc_proto.agent.interface import (
    NO_EXTRA,
    ApprovalRequested,
    ModelEndpoint,
    StoredPicture,
    TextDelta,
    TextRetracted,
    ToolCall,
    Turn,
    TurnEvent,
)
from svc_proto.api.chat.records import ChatSession, Message
from svc_proto.api.chat.store_requests import AddMessages, ListMessages, TruncateMessages
from svc_proto.api.gateway.connection import GatewayConnection, Method, Result
from svc_proto.api.gateway.live_session import LiveGateway, LiveSession
from svc_proto.api.gateway.prompts import MAX_ROWS, QUEUE_FULL, finish_turn
from svc_proto.api.gateway.settings import chosen_model
from svc_proto.api.runs.history import build_history
from svc_proto.engine.flow import Flow
from svc_proto.schema.gateway_rpc import UPSTREAM, RpcCall
from svc_proto.schema.json_rpc import RpcError

__all__ = ["compress", "methods"]

KEPT = 2  # messages of a compressed session: the request for a summary, and the summary
MAX_TOPIC = 500  # characters
SYSTEM = "You summarize a conversation between a user and an assistant. Write the summary only."
REQUEST = (
    "Summarize our conversation so far, so that it can go on from the summary alone. Keep names, numbers, decisions, "
    "open tasks and results of tools."
)
SHOWN = "Summarize our conversation so far."
BUSY = "a turn is under way: stop it first, or wait for its end"
SHORT = "The chat is too short to compress."
NO_MODEL = "The built-in agent reads no earlier messages, so there is nothing to compress."


def methods(gateway: LiveGateway) -> dict[str, Method]:
    """Return the gateway's method that compresses a session, by name."""

    def compress_session(connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        session = yield from gateway.find(connection, call)
        return (yield from compress(gateway, session, call.params.text("focus_topic")[:MAX_TOPIC]))

    return {"session.compress": compress_session}


def compress(gateway: LiveGateway, session: LiveSession, topic: str = "") -> Flow[dict[str, object]]:
    """Replace the messages of a session by a request for a summary and a model's summary; new prompts wait meanwhile.

    A session of at most two messages, or of the built-in agent, is unchanged. Raises `RpcError` if a turn is under way
    or a prompt waits, the model writes no summary, or messages were added meanwhile. A turn of another node is waited
    for; raises `Refused` 503 if it takes too long.
    """
    if session.is_busy or session.queue:
        raise RpcError(QUEUE_FULL, BUSY)
    session.pending += 1
    try:
        yield from gateway.api.ownership.acquire(session.id)
        try:
            return (yield from _compress(gateway, session, topic))
        finally:
            gateway.api.ownership.release(session.id)
    finally:
        session.pending -= 1
        gateway.api.engine.spawn(finish_turn(gateway, session))


def _compress(gateway: LiveGateway, session: LiveSession, topic: str) -> Flow[dict[str, object]]:
    api, chat = gateway.api, (yield from gateway.stored(session.id))
    endpoint = yield from chosen_model(gateway, (yield from api.settings()), chat)
    rows = (yield from api.run_store_request(ListMessages(session_id=chat.id, limit=MAX_ROWS))) or ()
    counts: dict[str, object] = {"before_messages": len(rows), "after_messages": len(rows), "removed": 0}
    if endpoint is None or len(rows) <= KEPT:
        message = NO_MODEL if endpoint is None else SHORT
        return {"status": "unchanged", "compressed": False, "message": message, **counts}
    session.send("status.update", {"kind": "compacting", "text": "summarizing the chat"})
    summary = yield from _summarize(gateway, chat, rows, endpoint, topic)
    if (yield from gateway.stored(chat.id)).message_count != chat.message_count:
        raise RpcError(QUEUE_FULL, BUSY)
    kept = (_replace(rows[0], "user", SHOWN), _replace(rows[1], "assistant", summary))
    added = AddMessages(session_id=chat.id, messages=kept, fence=api.ownership.fence(chat.id))
    yield from api.run_store_request(added)
    request = TruncateMessages(session_id=chat.id, keep=KEPT, now=api.engine.now.wall)
    yield from api.run_store_request(request)
    removed = len(rows) - KEPT
    return {
        "status": "compressed",
        "compressed": True,
        "message": f"{removed} messages were replaced by a summary.",
        **counts,
        "after_messages": KEPT,
        "removed": removed,
        "messages": [
            {"role": row.role, "content": row.content, "row_id": place, "timestamp": row.timestamp}
            for place, row in enumerate(kept, 1)
        ],
    }


def _summarize(
    gateway: LiveGateway, chat: ChatSession, rows: tuple[Message, ...], endpoint: ModelEndpoint, topic: str
) -> Flow[str]:
    host = _SummaryHost()
    turn = Turn(
        session_id=chat.id,
        run_id=gateway.api.runs.new_id(),
        prompt=f"{REQUEST} Give most room to: {topic}" if topic else REQUEST,
        history=build_history(rows),
        system=SYSTEM,
        model=endpoint,
        tools=(),
    )
    outcome = yield from gateway.api.agent.run(turn, host)
    if outcome.finish == "error" or not host.text.strip():
        raise RpcError(UPSTREAM, outcome.error or "the model wrote no summary")
    return host.text.strip()


def _replace(row: Message, role: str, content: str) -> Message:
    return Message(id=row.id, session_id=row.session_id, role=role, content=content, timestamp=row.timestamp)


class _SummaryHost:
    """Host of a turn that writes a summary: it collects the text, stores nothing, and requests no approval."""

    reader_behind = False
    can_request_approval = False

    def __init__(self) -> None:
        self.text = ""

    def emit(self, event: TurnEvent) -> None:
        """Append the text of a delta to the summary, or remove retracted text; ignore other events."""
        if isinstance(event, TextDelta):
            self.text += event.text
        elif isinstance(event, TextRetracted):
            self.text = self.text[: -event.length]

    def wait_drained(self) -> Flow[None]:
        """Implement `AgentHost.wait_drained`: return at once, since there is no reader."""
        yield from ()

    def store_calls(
        self, text: str, reasoning: str, calls: tuple[ToolCall, ...], extra: Mapping[str, object] = NO_EXTRA
    ) -> Flow[None]:
        """Implement `AgentHost.store_calls`: do nothing, since the turn has no tools."""
        yield from ()

    def store_result(self, call: ToolCall, output: str, pictures: tuple[StoredPicture, ...] = ()) -> Flow[None]:
        """Implement `AgentHost.store_result`: do nothing, since the turn has no tools."""
        yield from ()

    def request_approval(self, event: ApprovalRequested) -> Flow[str]:
        """Implement `AgentHost.request_approval`: deny."""
        yield from ()
        return "deny"
