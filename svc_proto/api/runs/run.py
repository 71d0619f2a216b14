"""Run of one turn: its events, its reader and its end. Implements the agent's `AgentHost`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from attrs import evolve

from svc_proto.agent import interface
from svc_proto.api.change_ledger import ChangeLedger
from svc_proto.api.chat.records import Message, Usage
from svc_proto.api.chat.store_requests import AddMessages, SavePicture
from svc_proto.api.chat.views import function_call
from svc_proto.api.cluster.local_session_ownership import LocalSessionOwnership
from svc_proto.api.ports import StorePort
from svc_proto.api.projections.turn_events import Projection, TurnEnded, TurnStarted, TurnStreamEvent
from svc_proto.api.runs.subscriber import Subscriber, SubscriberState
from svc_proto.basics.brand import Brand
from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.sync import Condition, shield
from svc_proto.machines.approvals import Approval, ApprovalAnswer, ApprovalState, PendingApprovals
from svc_proto.machines.run_scheduler import RunRecord, RunState, RunTrigger
from svc_proto.service_clients.authority import OWNER

__all__ = ["Run"]

WAIT_TIMEOUT = 60.0  # s after which a wait checks its condition again; what it waits for has its own deadline
MAX_CHAT_PICTURES = 20  # of one chat; the newest stay
MAX_PICTURE_BYTES = 256 * 1024 * 1024  # of the pictures of all chats; the newest stay
PARAGRAPH_BREAK = "\n\n"  # between two answers of the model
NAMES: dict[type, str] = {  # wire api 6.2 `last_event`, in the words of 6.3
    TurnStarted: "run.started",
    interface.TextDelta: "message.delta",
    interface.EphemeralText: "message.delta",
    interface.ReasoningDelta: "reasoning.available",
    interface.TurnNotice: "reasoning.available",
    interface.ToolCallStarted: "tool.started",
    interface.ToolCallFinished: "tool.completed",
    interface.MemoryChanged: "memory.updated",
    interface.ApprovalRequested: "approval.request",
    interface.ApprovalResolved: "approval.responded",
}


class RunOwner(Protocol):
    """Registry of the server's runs, with the methods that a run calls."""

    deltas: int

    def stop(self, run_id: str) -> None:
        """Stop a live run. Raises `Refused` 404 for another id."""

    def run_ended(self, run: Run) -> None:
        """Release the slot of an ended run, count and log its end, and start runs that waited."""


class RunHost(StorePort, Protocol):
    """Members of the API server that a run uses."""

    ledger: ChangeLedger
    ownership: LocalSessionOwnership


class Run:
    """Execution of one turn of a session: its state, its events, its reader and its approval requests."""

    # With more than 30 attributes, CPython 3.11 reads those of an instance without slots a third slower.
    __slots__ = (
        "_agent",
        "_api",
        "_approval_waits",
        "_approvals",
        "_calls",
        "_engine",
        "_last_published",
        "_may_ask",
        "_needs_break",
        "_notices",
        "_observers",
        "_outcome",
        "_round",
        "_runs",
        "_state_changed",
        "_stops_alone",
        "_text",
        "_thoughts",
        "_turn_wakeup",
        "_unsaved",
        "_usage",
        "_waiter_count",
        "attachment",
        "authority",
        "begun_at",
        "brand",
        "context_used",
        "credential_id",
        "ended",
        "message_id",
        "model",
        "record",
        "subscriber",
        "user_text",
    )

    def __init__(self, api: RunHost, runs: RunOwner, record: RunRecord, *, stops_alone: bool, may_ask: bool) -> None:
        self.record = record
        self.begun_at = api.engine.now.mono  # s
        self._may_ask = may_ask
        self.message_id = new_uuid(api.engine.entropy)
        self.model = ""  # the model name for clients
        self.authority = OWNER  # of the client that started it
        self.brand: Brand | None = None  # names of that client; None: those of the server
        self.credential_id = ""  # of the client, see `Engine.revocables`; empty: none
        self.subscriber: Subscriber | None = None
        self.ended: TurnEnded | None = None
        self.attachment: object = None  # set by the route that started the run
        self.user_text = ""  # the message that it answers; empty until the start is published
        self.context_used = 0  # tokens of the latest model call
        self._observers: tuple[Callable[[TurnStreamEvent], None], ...] = ()
        self._api = api
        self._runs = runs
        self._engine = api.engine
        self._stops_alone = stops_alone  # stop when no client reads it any more (wire api 5.3)
        self._waiter_count = 0  # flows that wait for the end
        self._state_changed = Condition(api.engine)  # notifies flows that wait for the end, or for the readers
        self._turn_wakeup = Condition(api.engine)  # notifies the flow that executes the turn
        self._agent: Task | None = None
        self._outcome: interface.TurnOutcome | None = None
        self._last_published: TurnStreamEvent | None = None
        self._text: list[str] = []  # the whole text of the turn
        self._round: list[str] = []  # text since the last stored row
        self._thoughts: list[str] = []  # reasoning since the last stored row
        self._notices: list[str] = []  # lines about the turn since the last stored row
        self._unsaved: dict[str, Message] = {}  # by id: rows that could not be stored, or are being stored
        self._needs_break = False  # the next text begins another answer
        self._usage = Usage()
        self._calls = 0
        self._approvals = PendingApprovals()
        # Pending ones, oldest first.
        self._approval_waits: dict[Approval, tuple[interface.ApprovalRequested, Condition]] = {}

    # --- AgentHost ---

    @property
    def reader_behind(self) -> bool:
        """Report whether a reader is connected and its backlog is over the limit."""
        return self.subscriber is not None and self.subscriber.is_behind

    @property
    def can_request_approval(self) -> bool:
        """Report whether the client of the turn shows approval requests and answers them."""
        return self._may_ask

    def emit(self, event: interface.TurnEvent) -> None:
        """Publish an event of the agent, and collect its text for the turn; events of model calls are only counted."""
        if type(event) is interface.TextDelta:
            text = event.text
            if not self._needs_break:
                self._round.append(text)
            elif text != PARAGRAPH_BREAK:
                self._text.append(PARAGRAPH_BREAK)
                self._publish(interface.TextDelta(PARAGRAPH_BREAK))
                self._round.append(text)
            # else: the agent emits the paragraph break itself, which belongs to no row
            self._needs_break = False
            self._runs.deltas += 1
            self._text.append(text)
            self._publish(event)
            return
        match event:
            case interface.TurnNotice(text):
                self._notices.append(text)
            case interface.ReasoningDelta(text):
                self._thoughts.append(text)
            case interface.TextRetracted(length):
                self._text = ["".join(self._text)[:-length]]
                self._round = ["".join(self._round)[:-length]]
            case interface.ModelCallStarted():
                self._calls += 1
                return
            case interface.ModelCallFinished(input_tokens, output_tokens):
                self._usage += Usage(input_tokens=input_tokens, output_tokens=output_tokens)
                self.context_used = input_tokens + output_tokens
                return
            case interface.MemoryChanged(change=change):
                self._api.ledger.memory(self.authority.name, change)
        self._publish(event)

    def wait_drained(self) -> Flow[None]:
        """Wait until no connected reader has a backlog over the limit."""
        while self.reader_behind:
            yield from self._wait(self._state_changed)

    def store_calls(
        self,
        text: str,
        reasoning: str,
        calls: tuple[interface.ToolCall, ...],
        extra: Mapping[str, object] = interface.NO_EXTRA,
    ) -> Flow[None]:
        """Store the row of an answer with tool calls; if the write fails, later writes of rows repeat it."""
        notices = "".join(self._notices)
        self._round, self._thoughts, self._notices = [], [], []
        self._needs_break = bool(self._text)
        row = self._row(
            "assistant",
            text,
            tool_calls=tuple(map(function_call, calls)),
            finish_reason="tool_calls",
            reasoning=notices + reasoning or None,
            extra=extra,
        )
        yield from self._store_row(row)

    def store_result(
        self, call: interface.ToolCall, output: str, pictures: tuple[interface.StoredPicture, ...] = ()
    ) -> Flow[None]:
        """Store the row of a tool's result, then its pictures; a picture that cannot be stored is skipped."""
        row = self._row("tool", output, tool_call_id=call.id, tool_name=call.name)
        yield from self._store_row(row)
        for picture in pictures:
            request = SavePicture(
                session_id=row.session_id,
                picture=picture,
                now=self._engine.now.wall,
                most=MAX_CHAT_PICTURES,
                size=MAX_PICTURE_BYTES,
            )
            with suppress(Refused):  # the store logs a failure; the picture is shown while its media token is valid
                yield from self._api.run_store_request(request)

    def request_approval(self, event: interface.ApprovalRequested) -> Flow[interface.ApprovalChoice]:
        """Publish an approval request, wait for its answer, and publish the choice.

        Return the text of the answer if it has one, else the choice. Without an answer within `approval_timeout`, the
        choice is `deny`.
        """
        engine, record = self._engine, self.record
        approval = self._approvals.request(
            event.call.id, event.choices, now=engine.now.mono, within=self._api.config.approval_timeout
        )
        event = evolve(event, expires_at=engine.now.at(approval.deadline).wall)
        condition = Condition(engine)
        self._approval_waits[approval] = event, condition
        record.step(RunTrigger.ASK, engine.now)
        self._publish(event)
        try:
            yield from condition.wait(approval.deadline)
            if approval.state is ApprovalState.PENDING:
                self._approvals.expire(approval)
        finally:
            self._approvals.withdraw(approval)
            del self._approval_waits[approval]
            if not len(self._approvals) and record.state is RunState.WAITING:
                record.step(RunTrigger.RESUME, engine.now)
        self._publish(interface.ApprovalResolved(call=event.call, choice=approval.choice))
        return approval.text or approval.choice

    def revoke(self, refused: Refused) -> None:
        """Stop the run because its credential was revoked. If its turn has begun, the turn stores the text so far."""
        self._runs.stop(self.record.id)

    # --- for readers and routes ---

    @property
    def last_event(self) -> str | None:
        """Name of the last event in the words of wire api 6.3.

        None before the first event, and after an event without a name there. A pending tool call is not counted: the
        name of the event before it stays.
        """
        event = self._last_published
        if event is None or not isinstance(event, TurnEnded):
            return NAMES.get(type(event))
        if event.interrupted:
            return "run.cancelled"
        return "run.completed" if event.error is None else "run.failed"

    def subscribe(self, projection: Projection) -> Subscriber:
        """Create the run's reader, in place of an earlier one, and return it.

        It receives the events from now on; of a run that has ended, only the end event.
        """
        subscriber = self.subscriber = Subscriber(self._engine, projection, self._on_caught_up)
        if self.ended is not None:
            subscriber.add_event(self.ended)
            subscriber.end()
        return subscriber

    def observe(self, on_event: Callable[[TurnStreamEvent], None]) -> None:
        """Call `on_event` with each event that is published from now on, whether there is a reader or not.

        The start and end of model calls are not published.
        """
        self._observers = (*self._observers, on_event)

    @property
    def text(self) -> str:
        """The answer's text so far; empty after the end."""
        return "".join(self._text)

    def wait_ended(self) -> Flow[TurnEnded]:
        """Wait for the end of the run and return its last event.

        If the wait is cancelled, no other flow waits and no reader is left, a run with `stops_alone` is stopped.
        """
        self._waiter_count += 1
        try:
            while self.ended is None:
                yield from self._wait(self._state_changed)
            return self.ended
        finally:
            self._waiter_count -= 1
            self._stop_if_unread()

    @property
    def pending_approvals(self) -> list[interface.ApprovalRequested]:
        """Pending approval requests, oldest first."""
        return [event for event, _ in self._approval_waits.values()]

    def answer(self, answer: ApprovalAnswer) -> int:
        """Apply an answer to one approval request, or to all of the run; return how many were answered.

        Raises `Refused` 400 for a choice that was not offered, and 409 if the run has ended, if no such request is
        pending, or if it is not certain which one is meant.
        """
        if self.ended is not None:
            raise Refused(409, "approval_not_active", "the run is over")
        answered = self._approvals.answer(answer, self._engine.now.mono)
        for _, condition in [self._approval_waits[approval] for approval in answered]:
            condition.notify_all()
        return len(answered)

    # --- for the turn ---

    def wait_started(self) -> Flow[bool]:
        """Wait until the run may start; False if it was stopped before."""
        while self.record.state is RunState.QUEUED:
            yield from self._wait(self._turn_wakeup)
        return not self.stopping

    @property
    def stopping(self) -> bool:
        """Report whether the run is being stopped."""
        return self.record.state is RunState.STOPPING

    def publish_started(self, event: TurnStarted) -> None:
        """Publish the start of the turn and keep its user's text. The caller has stored the user's row."""
        self.user_text = event.user_text
        self._publish(event)

    def run_agent(self, agent: Flow[interface.TurnOutcome]) -> Flow[interface.TurnOutcome | None]:
        """Run the agent as a task of its own; None if the run was stopped before the agent's end.

        An exception of the agent is logged and becomes an outcome with an error.
        """
        if self.stopping:
            return None
        self._agent = self._engine.spawn(agent, on_done=self._on_agent_done, on_error=self._on_agent_failed)
        try:
            while self._outcome is None and not self.stopping:
                yield from self._wait(self._turn_wakeup)
        finally:
            self._agent.cancel()
        return self._outcome

    def notify(self) -> None:
        """Wake the flow of the turn: the run has got its slot, its agent has ended, or it was stopped."""
        self._turn_wakeup.notify_all()

    def unsaved_rows(self, *, finish: str) -> tuple[Message, ...]:
        """Return the rows still to be stored, and the row of the turn's last text (wire api 4.4: one `message_id`).

        Without such a text, that row is left out unless `finish` is `stop` or `length`.
        """
        text = "".join(self._round)
        if not text and finish not in ("stop", "length"):
            return tuple(self._unsaved.values())
        final = self._row(
            "assistant",
            text,
            message_id=self.message_id,
            finish_reason=finish,
            reasoning="".join((*self._notices, *self._thoughts)) or None,
            usage=self._usage,
            extra=interface.NO_EXTRA if self._outcome is None else self._outcome.extra,
        )
        return (*self._unsaved.values(), final)

    def build_ended(
        self,
        *,
        finish: str,
        error: str | None = None,
        code: str = "",
        interrupted: bool = False,
        reason: str | None = None,
        unfinished: tuple[str, ...] = (),
        calls: tuple[interface.ToolCall, ...] = (),
    ) -> TurnEnded:
        """Build the end event, with the whole text."""
        return TurnEnded(
            content="".join(self._text),
            usage=self._usage,
            api_calls=self._calls,
            finish=finish,
            interrupted=interrupted,
            error=error,
            code=code,
            reason=reason,
            unfinished=unfinished,
            calls=calls,
            reasoning="".join((*self._notices, *self._thoughts)),
            extra=interface.NO_EXTRA if self._outcome is None else self._outcome.extra,
        )

    def finish(self, ended: TurnEnded) -> None:
        """Publish the end, end the reader's stream, report the end to the registry and wake the flows that wait for it.

        The run's texts and the rows that are not stored yet are dropped.
        """
        self.ended = ended
        self._text, self._round, self._thoughts, self._notices, self._unsaved = [], [], [], [], {}
        self._publish(ended)
        if self.subscriber is not None:
            self.subscriber.end()
        self._runs.run_ended(self)
        self._state_changed.notify_all()

    # --- helpers ---

    def _publish(self, event: TurnStreamEvent) -> None:
        if type(event) is not interface.ToolCallPending:  # wire api 6.3 has no name for this event
            self._last_published = event
        for on_event in self._observers:
            on_event(event)
        subscriber = self.subscriber
        if subscriber is not None:
            subscriber.add_event(event)

    def _row(self, role: str, content: str, *, message_id: str | None = None, **members: object) -> Message:
        return Message(
            id=message_id or new_uuid(self._engine.entropy),
            session_id=self.record.session_id,
            role=role,
            content=content,
            timestamp=self._engine.now.wall,
            run_id=self.record.id,
            **members,  # type: ignore[arg-type]  # the callers above name the fields of a row
        )

    def _store_row(self, row: Message) -> Flow[None]:
        # The write is a task of its own: it goes through even if the agent that waits for it is stopped.
        self._unsaved[row.id] = row
        rows = tuple(self._unsaved.values())  # a row with a stored id is replaced, so repeating one is harmless

        def write() -> Flow[None]:
            with suppress(Refused):  # the store logs a failure, and the next row repeats these
                fence = self._api.ownership.fence(row.session_id)
                yield from self._api.run_store_request(
                    AddMessages(session_id=row.session_id, messages=rows, fence=fence)
                )
                for each in rows:
                    self._unsaved.pop(each.id, None)

        yield from shield(self._engine, write(), within=WAIT_TIMEOUT)

    def _on_agent_done(self, outcome: interface.TurnOutcome) -> None:
        self._outcome = outcome
        self.notify()

    def _on_agent_failed(self, error: Exception) -> None:
        reference = self._engine.log_bug(error)
        text = f"the agent failed, reference {reference}"
        self._on_agent_done(interface.TurnOutcome(finish="error", error=text, code="agent_error"))

    def _on_caught_up(self, subscriber: Subscriber) -> None:
        self._state_changed.notify_all()
        if subscriber.state is SubscriberState.GONE:
            self._stop_if_unread()

    def _stop_if_unread(self) -> None:
        unread = self.subscriber is None or self.subscriber.state is SubscriberState.GONE
        if self._stops_alone and unread and not self._waiter_count and self.ended is None:
            self._runs.stop(self.record.id)

    def _wait(self, condition: Condition) -> Flow[None]:
        yield from condition.wait(self._engine.now.mono + WAIT_TIMEOUT)
