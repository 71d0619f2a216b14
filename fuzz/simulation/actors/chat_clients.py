"""Simulated chat clients of the API: readers that stay, disconnect or read slowly, and their check of stored rows."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import frozen

from fuzz.simulation.actors.actor_context import StepHandler, no_further_checks
from fuzz.simulation.deployment import API, API_KEY, Deployment
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.reference_model import ChatModel, TurnModel
from fuzz.steps import DeleteChat, ReadChatSlowly, SendChatMessage, Step, StopRun
from svc_proto.api.chat.records import Message
from svc_proto.api.chat.store_requests import ListMessages
from svc_proto.wire.sse import EventStreamDecoder
from tests.support.sim_http import Pairs, RequestClient

BEHAVIORS = ("plain", "plain", "plain", "tool", "tool", "refuse", "break", "nonsense", "hang", "lose")
FIRST = ["session.created", "run.started", "message.started"]
LAST = (["assistant.completed", "run.completed", "done"], ["error", "done"])
GAP = "\n\n"  # between the texts of two rounds
MAX_CHATS = 4
DEAF = 100.0  # s without reading; occasional output of the model does not extend the write timeout
STOP_TIMEOUT = 20.0  # s from the end of a chat to that of its model's work
REMEMBERED = 300_000  # characters of a chat that a model certainly receives
GONE = "session_not_found"
SILENT = 40.0  # s: a stream is kept alive each 30, wire api 4.2
END_TIMEOUT = 30.0  # s from the end of a model's connection to that of the turn
TOOL_EVENTS = ("tool.progress", "tool.pending", "tool.started", "tool.completed", "tool.failed")
KNOWN = (*FIRST, "assistant.delta", *TOOL_EVENTS, *LAST[0], "error")


class ChatClients:
    """Steps of chat clients of the API, and checks of what they receive and of the stored rows."""

    def __init__(self, world: Deployment) -> None:
        self.world = world
        self.chats: list[ChatModel] = []
        self.turns: list[TurnModel] = []
        self.runs: list[str] = []  # in the order of their start
        self.reading: dict[str, RequestClient] = {}  # by question, the reader of its stream
        self._heard: dict[RequestClient, float] = {}  # reader of a stream: time of its last event
        self._asked = 0
        self._numbers = 0
        world.upstream.on_question.append(self._check_history)
        self.handlers: dict[type[Step], StepHandler] = {
            SendChatMessage: lambda step: self._chat(
                step, BEHAVIORS[step.manner % len(BEHAVIORS)], leave=step.leave_after
            ),
            ReadChatSlowly: self._chat_slowly,
            StopRun: self._stop,
            DeleteChat: self._delete,
        }

    def create(self) -> None:
        """Request a new chat, which is added to `chats` when the API has created it."""
        self._asked += 1

        def done(caller: RequestClient) -> None:
            if caller.status == 201:
                self.chats.append(ChatModel(str(caller.answer.json["id"])))

        self.request("POST", "/api/sessions", {"title": f"chat {self._asked}"}, done)

    def pick(self, who: int) -> ChatModel | None:
        """Return one of the chats that are not being deleted, or None.

        Request a new chat, up to `MAX_CHATS` in all, if none was ever created or `who` is a multiple of 4.
        """
        if self._asked < MAX_CHATS and (not self.chats or who % 4 == 0):
            self.create()
        there = [chat for chat in self.chats if not chat.deleting]
        return there[who % len(there)] if there else None

    def request(
        self,
        method: str,
        path: str,
        body: object,
        done: Callable[[RequestClient], None],
        piece: Callable[[bytes], None] | None = None,
        headers: Pairs | None = None,
    ) -> RequestClient:
        """Send a request to the API with its key; `done` gets the response, `piece` the data as they arrive."""
        world, fields = self.world, {"authorization": f"Bearer {API_KEY}", **(headers or {})}
        return world.request(world.home, API, method, path, headers=fields, body=body, done=done, piece=piece)

    # --- turns ---------------------------------------------------------------------------------------------------

    def number(self) -> int:
        """Return a number that was not returned before."""
        self._numbers += 1
        return self._numbers

    def _chat(
        self, step: SendChatMessage | ReadChatSlowly, manner: str, *, leave: float = 0.0, dawdle: float = 0.0
    ) -> None:
        chat = self.pick(step.chat)
        if chat is None:
            return
        caller = self.turn(chat, manner)
        if leave:
            self.world.sim.after(leave, lambda: caller.disconnect(reset=step.chat % 2 == 1))
        if dawdle:
            self.world.sim.after(0.05, lambda: self.world.pause_reading_for(caller, dawdle))

    def _chat_slowly(self, step: ReadChatSlowly) -> None:
        if step.length % 2:
            self._chat(step, "long", dawdle=step.seconds)
        else:
            self._chat(step, "murmur", dawdle=max(step.seconds, DEAF))

    def turn(self, chat: ChatModel, manner: str) -> RequestClient:
        """Send a message to a chat, read the event stream of the turn, and check it."""
        manner = chat.allowed(manner)
        turn = TurnModel(chat, f"{manner}: question {self.number()}")
        chat.turns.append(turn)
        self.turns.append(turn)
        take = each_event(partial(self._on_event, turn))

        def piece(data: bytes) -> None:
            self._heard[caller] = self.world.sim.now
            take(data)

        def done(caller: RequestClient) -> None:
            self._heard.pop(caller, None)
            if caller.status == 200:
                self._finished(turn)

        caller = self.request("POST", f"/api/sessions/{chat.id}/chat/stream", {"message": turn.text}, done, piece)
        self.reading[turn.text] = caller
        return caller

    def _on_event(self, turn: TurnModel, event: str, data: dict[str, Any]) -> None:
        if "message" in data and "type" in data and event not in KNOWN:  # an error before the stream began
            return
        self._check_place(turn, event, data)
        turn.run_id = data["run_id"]
        place = len(turn.events)
        turn.events.append(event)
        if place < len(FIRST) and event != FIRST[place] and event != "error" and "error" not in turn.events:
            violated(Invariant.STREAM, f"{event} at place {place}")
        match event:
            case "run.started" if data["user_message"]["content"] != turn.text:
                violated(Invariant.OWN_BYTES, f"{turn.text!r} was asked, {data['user_message']!r} began")
            case "message.started":
                turn.message_id = data["message"]["id"]
                self.runs.append(turn.run_id)
            case "assistant.delta":
                turn.said.append(data["delta"])
            case "error":
                turn.why = data["error"]
                if turn.why == GONE and "run.started" in turn.events and not self.world.store_trouble:
                    violated(Invariant.STORED, f"{turn.text!r} was under way, and its chat was deleted before its end")
            case "tool.started":
                turn.started.append(data["tool_call_id"])
            case "tool.completed" | "tool.failed":
                turn.called.append(data["tool_call_id"])
            case "assistant.completed":
                self._completed(turn, data)
            case _:
                pass

    def _check_place(self, turn: TurnModel, event: str, data: dict[str, Any]) -> None:
        if event not in KNOWN:
            violated(Invariant.STREAM, f"the event {event}")
        if turn.events and turn.events[-1] == "done":
            violated(Invariant.STREAM, f"{event} after done")
        if data.get("seq", len(turn.events) + 1) != len(turn.events) + 1:
            violated(Invariant.STREAM, f"{event} is number {data['seq']}, and the next is {len(turn.events) + 1}")
        if data["session_id"] != turn.chat.id or turn.run_id not in ("", data["run_id"]):
            violated(Invariant.OWN_BYTES, f"{event} of another session or run in the stream of {turn.text!r}")

    def _completed(self, turn: TurnModel, data: dict[str, Any]) -> None:
        self.world.count("turns told")
        turn.content, turn.interrupted = data["content"], data["interrupted"]
        if not turn.has_told(data["content"]):
            violated(Invariant.STORED, f"{turn.text!r}: the deltas are not the content")
        if turn.text.startswith("plain:") and data["completed"] and turn.content.strip() != f"You said {turn.text}":
            violated(Invariant.OWN_BYTES, f"{turn.text!r} was answered {turn.content!r:.100}")
        if not turn.content or turn.chat.deleting:
            return
        rows = self.rows(turn.chat.id)
        told = [_RowModel(row.id, row.role, str(row.content), row.run_id, bool(row.tool_calls)) for row in rows]
        if problem := _compared(turn, told):
            violated(Invariant.STORED, problem)

    def _check_history(self, question: str, asked: list[dict[str, Any]]) -> None:
        turn = next((turn for turn in reversed(self.turns) if turn.text == question), None)
        if turn is None or turn.chat.deleting:
            return
        rows = self.rows(turn.chat.id)
        mine = next((row.run_id for row in rows if row.content == question), None)
        said = [str(row.content) for row in rows if row.role != "tool" and row.content and row.run_id != mine]
        last = max(place for place, row in enumerate(asked) if row["role"] == "user")
        heard = [str(row["content"]) for row in asked[:last] if row["role"] in ("user", "assistant") and row["content"]]
        whole = sum(map(len, said)) < REMEMBERED
        if heard != (said if whole else said[len(said) - len(heard) :]):
            violated(Invariant.HISTORY, f"{question!r} was asked behind {heard!r:.200}, and {said!r:.200} is stored")

    def rows(self, session_id: str) -> tuple[Message, ...]:
        """Return the stored rows of a chat, read directly from the store."""
        rows = self.world.home.store.apply(ListMessages(session_id=session_id))
        assert rows is None or isinstance(rows, tuple)
        return rows or ()

    def _finished(self, turn: TurnModel) -> None:
        if turn.events[-len(LAST[0]) :] != LAST[0] and turn.events[-len(LAST[1]) :] != LAST[1]:
            violated(Invariant.STREAM, f"the stream of {turn.text!r} ended with {turn.events[-3:]}")

    # --- other requests ------------------------------------------------------------------------------------------

    def _stop(self, step: StopRun) -> None:
        runs = self.runs
        if runs:
            self.request("POST", f"/v1/runs/{runs[-1 - step.run % min(3, len(runs))]}/stop", {}, no_further_checks)

    def _delete(self, step: DeleteChat) -> None:
        if self.chats:
            chat = self.chats[step.chat % len(self.chats)]
            chat.deleting = True

            def done(caller: RequestClient) -> None:
                chat.deleted = chat.deleted or caller.status == 204
                if caller.status == 204:
                    told = self.world.sim.now
                    self.world.sim.after(STOP_TIMEOUT, lambda: self._check_stopped(chat, told))

            self.request("DELETE", f"/api/sessions/{chat.id}", None, done)

    def _check_stopped(self, chat: ChatModel, since: float) -> None:
        for text in self.world.upstream.questions:
            asked = any(turn.text == text for turn in chat.turns) and self.world.upstream.newest[text] < since
            if asked and self.world.is_fault_free_since(since):
                violated(Invariant.CANCELLED, f"the model still answers {text!r}, whose chat was deleted")

    def check_invariants(self) -> None:
        """Check that no stream of a turn is silent for long after its first data, and that a broken model call ends it.

        Streams under a fault are exempt from both checks, and those whose client reads slowly from the former.
        """
        broken, now = self.world.upstream.broken, self.world.sim.now
        for reader, when in self._heard.items():
            if (
                now > when + SILENT
                and self.world.is_fault_free_since(when)
                and self.world.is_unaffected(reader)
                and not reader.slow
            ):
                violated(Invariant.ONE_END, f"nothing has come on {reader.path} for {now - when:.0f} s")
        while broken and broken[0][0] + END_TIMEOUT <= now:
            when, question = broken.pop(0)
            caller = self.reading.get(question)
            if caller is None or caller.is_closed or self.world.upstream.newest[question] > when:
                continue
            if self.world.is_fault_free_since(when):
                violated(Invariant.ONE_END, f"{question!r} goes on {now - when:.0f} s after its model broke off")

    # --- after the script ----------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Request the stored messages of each chat, and compare them with what the streams reported.

        A deleted chat for which no run was ever requested must be gone. Other chats being deleted are skipped.
        """
        for chat in self.chats:
            if chat.deleted and not chat.runs:  # a late run creates its session again
                self.request("GET", f"/api/sessions/{chat.id}/messages", None, _gone)
            elif not chat.deleting:
                self.request("GET", f"/api/sessions/{chat.id}/messages", None, _Comparison(chat))


def each_event(told: Callable[[str, dict[str, Any]], None]) -> Callable[[bytes], None]:
    """Return a consumer of stream data that calls `told` with each event's name and JSON."""
    decoder = EventStreamDecoder()

    def piece(data: bytes) -> None:
        for event in decoder.receive_data(data):
            told(event.event, json.loads(event.data))

    return piece


def _gone(caller: RequestClient) -> None:
    if caller.status != 404:
        violated(Invariant.STORED, f"a chat was deleted, and answers {caller.status}")


class _Comparison:
    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    def __call__(self, caller: RequestClient) -> None:
        if caller.status != 200:
            violated(Invariant.RECOVERY, f"the messages of a chat: {caller.status}")
        messages = caller.answer.json["messages"]
        rows = [
            _RowModel(row["id"], row["role"], row["content"], row["run_id"], bool(row.get("tool_calls")))
            for row in messages
        ]
        said = [row.content for row in rows if row.role == "user"]
        for turn in self._chat.turns:
            if "run.started" in turn.events and said.count(turn.text) != 1:
                violated(Invariant.STORED, f"{turn.text!r} is stored {said.count(turn.text)} times")
            results = [
                row["tool_call_id"] for row in messages if row["run_id"] == turn.run_id and row["role"] == "tool"
            ]
            if turn.ended_well and not turn.may_store(results):
                violated(Invariant.STORED, f"{turn.text!r} told of the calls {turn.called}, and {results} are stored")
            problem = _compared(turn, rows) if turn.content else ""
            if problem:
                violated(Invariant.STORED, problem)


@frozen
class _RowModel:
    id: str
    role: str
    content: str
    run_id: str | None
    calls: bool  # it calls tools


def _compared(turn: TurnModel, rows: list[_RowModel]) -> str:
    """Return what is wrong with the stored answer of a turn; empty when nothing is."""
    content = turn.content or ""
    stored = [row for row in rows if row.run_id == turn.run_id and row.role == "assistant" and row.content]
    if GAP.join(row.content for row in stored) != content:
        return f"{turn.text!r} was told as {content!r:.100}, and {stored!r:.100} is stored"
    if turn.message_id and not (stored[-1].calls or stored[-1].id == turn.message_id):
        return f"{turn.text!r} is stored under another id than it was told"
    return ""
