"""Live session of the gateway: its clients, its turns, and the prompts and attachments that wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Protocol

from attrs import define, field

from svc_proto.agent.interface import Agent
from svc_proto.api.change_ledger import ChangeLedger
from svc_proto.api.chat.records import ChatSession
from svc_proto.api.cluster.local_session_ownership import LocalSessionOwnership
from svc_proto.api.gateway.connection import GatewayConnection
from svc_proto.api.gateway.turn import LiveTurn
from svc_proto.api.ports import ManagementPort
from svc_proto.api.runs.run import Run
from svc_proto.api.runs.run_manager import TurnPort
from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.basics.timers import Timer
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request
from svc_proto.schema.gateway_rpc import RpcCall, event_line

__all__ = ["GatewayPort", "LiveGateway", "LiveSession", "PromptAttachment", "QueuedPrompt"]

KEEPALIVE_INTERVAL = 60.0  # s without an event of a turn; clients give a turn up after 180 s
MAX_MESSAGE_IDS = 64  # ids of prompts that are recognized when they are repeated; the oldest is dropped
MERGED = ("message.delta", "reasoning.delta")  # consecutive texts of one `handle` call are one event


@define(eq=False)
class PromptAttachment:
    """An attachment of a prompt whose turn has not begun: an image, which is in a file, or the text of a file."""

    name: str
    source: tuple[str, bytes]  # given name and hash of the content: equal ones are one attachment
    text: str = ""
    path: str = ""  # of an image
    kind: str = ""  # of an image: the subtype of its media type
    size: int = 0  # bytes of the image
    is_repeated: bool = False  # it was sent again on another connection


@define(eq=False)
class QueuedPrompt:
    """A prompt, which may have to wait for the end of the present turn. Until its turn begins, it is a `Revocable`."""

    text: str
    request: Request  # that opened the client's connection
    message_id: str = ""  # given by the client, see `LiveSession.accept`
    attachments: tuple[PromptAttachment, ...] = ()
    refused: Refused | None = field(default=None, init=False)  # set when the client's credential is revoked

    def revoke(self, refused: Refused) -> None:
        """Store the reason why no turn may begin with this prompt."""
        self.refused = refused

    def check_credential(self) -> None:
        """Raise `Refused` if the credential of the client was revoked."""
        if self.refused is not None:
            raise self.refused


class GatewayPort(TurnPort, ManagementPort, Protocol):
    """Members of the API server that the gateway uses."""

    agent: Agent
    ledger: ChangeLedger
    ownership: LocalSessionOwnership


class LiveGateway(Protocol):
    """Interface of the gateway for its JSON-RPC methods and its live sessions."""

    api: GatewayPort
    sessions: dict[str, LiveSession]

    def open(self, chat: ChatSession, connection: GatewayConnection) -> LiveSession:
        """Return the live session of a stored one, and attach a client to it."""

    def find(self, connection: GatewayConnection, call: RpcCall) -> Flow[LiveSession]:
        """Return the live session that a call names, and attach the client. Raises `RpcError` if there is none."""

    def stored(self, identity: str, *, code: int = ...) -> Flow[ChatSession]:
        """Return a stored session. Raises `RpcError` with `code` if it does not exist."""

    def has_room_for_text(self, size: int) -> bool:
        """Report whether a text of this many characters may wait, beside the others of all sessions."""

    def on_turn_ended(self, session: LiveSession, run: Run) -> None:
        """Report the state of a session after a turn, and start the next prompt, if one waits."""


class LiveSession:
    """A session that clients of the gateway have opened. It outlives their connections."""

    def __init__(self, gateway: LiveGateway, session_id: str) -> None:
        self.id = session_id
        self.connections: dict[GatewayConnection, None] = {}
        self.queue = deque[QueuedPrompt]()
        self.attachments: dict[PromptAttachment, GatewayConnection | None] = {}  # owner; None: it has disconnected
        self.turns: dict[str, LiveTurn] = {}  # by run id, in order: the first one runs
        self.accepted: dict[str, None] = {}  # ids of the latest prompts that have an id, oldest first
        self.pending = 0  # flows that are about to start a turn, or to finish one
        self.personality: str | None = None  # chosen for this session; None: the server's
        self.effort: str | None = None  # reasoning effort chosen for this session
        self._gateway = gateway
        self._engine = gateway.api.engine
        session = strict_json.quoted(session_id)
        # Of an event whose type and text follow: most events are texts.
        self._head = f'{{"jsonrpc":"2.0","method":"event","params":{{"session_id":{session},"type":'
        self._merged = ""  # kind of the texts that wait to be sent
        self._texts: list[str] = []
        self._keepalive: Timer = self._engine.timers.timer(self._send_keepalive)

    # --- state ---

    @property
    def is_busy(self) -> bool:
        """Report whether a turn runs, is about to start or is being finished, or the session is being compressed."""
        return self.pending > 0 or bool(self.turns)

    @property
    def turn(self) -> LiveTurn | None:
        """The present turn; None without one."""
        return next(iter(self.turns.values()), None)

    def state(self) -> dict[str, object]:
        """Return the members of a snapshot that describe the turn, the next waiting prompt and the accepted prompts."""
        turn, running = self.turn, self.is_busy or bool(self.queue)
        state: dict[str, object] = {
            "running": running,
            "status": "streaming" if running else "idle",
            "inflight": None,
            "queued": None,
            "accepted": list(self.accepted),
        }
        if turn is not None and running:
            inflight = {"user": turn.run.user_text, "assistant": turn.run.text, "streaming": True, "corrections": []}
            state["inflight"] = inflight
        if self.queue:
            state["queued"] = {"user": self.queue[0].text}
        return state

    def accept(self, message_id: str) -> bool:
        """Record the id of a prompt; return False if it is one of the last recorded ids. An empty id is always new."""
        if message_id in self.accepted:
            return False
        if message_id:
            self.accepted[message_id] = None
            if len(self.accepted) > MAX_MESSAGE_IDS:
                del self.accepted[next(iter(self.accepted))]
        return True

    @property
    def prompt_attachments(self) -> list[PromptAttachment]:
        """Return the attachments for prompts that clients have yet to send, and those of prompts in the queue."""
        return [*self.attachments, *(attached for prompt in self.queue for attached in prompt.attachments)]

    @property
    def waiting_text_size(self) -> int:
        """Characters of the prompts in the queue, and of the texts in `prompt_attachments`."""
        return sum(len(prompt.text) for prompt in self.queue) + sum(len(each.text) for each in self.prompt_attachments)

    def attachments_of(self, connection: GatewayConnection) -> list[PromptAttachment]:
        """Return the attachments of a client's next prompt: its own, and those of clients that have disconnected."""
        return [each for each, owner in self.attachments.items() if owner is connection or owner is None]

    def add_attachment(self, attached: PromptAttachment, connection: GatewayConnection) -> None:
        """Give an attachment to the next prompt of a client, or of any client if this one has disconnected.

        Equal attachments of other connections are marked as repeated.
        """
        for each in self.attachments:
            each.is_repeated = each.is_repeated or each.source == attached.source
        attached.is_repeated = False
        self.attachments[attached] = None if connection.is_closed else connection

    def take_attachments(self, connection: GatewayConnection) -> tuple[PromptAttachment, ...]:
        """Remove and return the attachments of a client's next prompt."""
        taken = tuple(self.attachments_of(connection))
        for attached in taken:
            del self.attachments[attached]
        return taken

    # --- clients ---

    def attach(self, connection: GatewayConnection) -> None:
        """Send this session's later events to this client too, unless the client's connection is closed."""
        self._flush_texts()
        if not connection.is_closed:
            self.connections[connection] = None

    def detach(self, connection: GatewayConnection) -> list[PromptAttachment]:
        """Send no more events to a client; its attachments go with the next prompt of any client.

        Remove and return those that were sent again on another connection: the client has reconnected.
        """
        self.connections.pop(connection, None)
        own = [attached for attached, owner in self.attachments.items() if owner is connection]
        self.attachments.update(dict.fromkeys(own))
        repeated = [attached for attached in own if attached.is_repeated]
        for attached in repeated:
            del self.attachments[attached]
        return repeated

    def show_question(self, connection: GatewayConnection) -> None:
        """Send the approval request or question that waits, if any, to a client that has just attached."""
        turn = self.turn
        if turn is not None:
            turn.show_question(lambda kind, payload: connection.send_event(kind, self.id, dict(payload or {})))

    def send(self, kind: str, payload: Mapping[str, object] | None) -> None:
        """Send an event to all clients of the session.

        Consecutive pieces of text of one kind are collected until `flush`, another event or the next `attach`.
        """
        if kind in MERGED and payload is not None:
            if kind != self._merged:
                self._flush_texts()
                self._merged = kind
            self._texts.append(str(payload["text"]))
            self._engine.dirty[self] = None
            return
        self._flush_texts()
        self._send_line(event_line(kind, self.id, payload))

    def flush(self) -> None:
        """Send the collected pieces of text as one event."""
        self._flush_texts()

    # --- turns ---

    def observe(self, run: Run) -> None:
        """Send the events of a run to the clients of the session, and keepalives in between, until the run ends."""

        def ended() -> None:
            del self.turns[run.record.id]
            self._keepalive.cancel()
            self._gateway.on_turn_ended(self, run)

        timeout = self._gateway.api.config.approval_timeout
        self.turns[run.record.id] = LiveTurn(self._engine, run, self.send, approval_timeout=timeout, on_ended=ended)
        self._keepalive.set(self._engine.now.mono + KEEPALIVE_INTERVAL)

    # --- helpers ---

    def _flush_texts(self) -> None:
        texts, self._texts = self._texts, []
        kind, self._merged = self._merged, ""
        if texts:
            text = strict_json.quoted("".join(texts))
            self._send_line(f'{self._head}"{kind}","payload":{{"text":{text}}}}}}}'.encode())

    def _send_line(self, line: bytes) -> None:
        if self.turns:
            self._keepalive.set(self._engine.now.mono + KEEPALIVE_INTERVAL)
        for connection in list(self.connections):
            connection.send(line)

    def _send_keepalive(self) -> None:
        self.send("status.update", {"kind": "working", "text": "still working"})
