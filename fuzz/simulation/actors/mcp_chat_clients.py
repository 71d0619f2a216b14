"""MCP clients of the API's agent, which call the agent and read its chats.

Each call has its own answer, with its words as progress. The turn of a cancelled call is stopped.
"""

from __future__ import annotations

import json

from attrs import define, field

from fuzz.simulation.actors.actor_context import StepHandler
from fuzz.simulation.actors.chat_clients import ChatClients
from fuzz.simulation.deployment import API, API_KEY
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.mcp_client import McpClientSession, McpEndpoint, Message, PendingMcpRequest, SimMcpClient
from fuzz.simulation.models.reference_model import ChatModel, violated
from fuzz.steps import AskAgentByMcp, Step

ANSWERED = 120.0  # s in which a turn with a quick model has an answer
STOP_TIMEOUT = 2.0  # s from a cancellation to the end of the model call, which would last longer
WORDS = 36  # of a question that the model repeats in some four seconds
MAX_SESSIONS = 3
WAYS = 12
WAITING = "waiting"  # progress text without content


@define(eq=False)
class _AgentCall:
    text: str
    chat: ChatModel | None
    talk: McpClientSession
    sent: float
    asked: PendingMcpRequest | None = None
    notes: list[str] = field(factory=list)


class McpChatClients:
    """Steps of MCP clients that call the agent."""

    def __init__(self, chats: ChatClients) -> None:
        self.chats = chats
        self.world = chats.world
        self.client = SimMcpClient(self.world, McpEndpoint(self.world.home, API, lambda: API_KEY))
        self.handlers: dict[type[Step], StepHandler] = {AskAgentByMcp: self._step}

    def _step(self, step: AskAgentByMcp) -> None:
        talks = [talk for talk in self.client.talks if not talk.ending and talk.server is self.world.api]
        if not talks or (step.action // WAYS % 3 == 0 and len(talks) < MAX_SESSIONS):
            self.client.open(self.world.api, lambda talk: self._act(talk, step))
        else:
            self._act(talks[step.action // WAYS % len(talks)], step)

    def _act(self, talk: McpClientSession, step: AskAgentByMcp) -> None:
        sim, way = self.world.sim, step.action % WAYS
        chat = self.chats.pick(step.chat) if way % 2 else None
        match way:
            case 0 | 1:
                self._call_agent(talk, "plain", chat)
            case 2 | 3:
                self._call_agent(talk, "tool", chat)
            case 4 | 5:  # a call that is cancelled
                given_up = self._call_agent(talk, "plain", chat, WORDS)
                sim.after(0.3 + step.seconds / 4, lambda: self._cancel(given_up))
            case 6 | 7:  # a client that disconnects, and resumes
                asked = self._call_agent(talk, "plain", chat, WORDS).asked
                assert asked is not None
                sim.after(1.0 + step.seconds / 4, lambda: talk.disconnect_request(asked, 0.5 + step.seconds / 2))
            case 8:  # a session that ends
                ended = self._call_agent(talk, "plain", chat, WORDS)
                sim.after(0.3 + step.seconds / 4, lambda: self._end(ended))
            case 9:  # two sessions send requests at once, with equal numbers
                for _ in range(2):
                    self.client.open(self.world.api, self._ask_once)
            case _:
                if chat is not None:
                    self._read(talk, chat)

    def _ask_once(self, talk: McpClientSession) -> None:
        self._call_agent(talk, "plain", None)

    def _call_agent(self, talk: McpClientSession, manner: str, chat: ChatModel | None, words: int = 0) -> _AgentCall:
        number = self.chats.number()
        more = " ".join(f"w{number}-{place}" for place in range(words))
        inquiry = _AgentCall(f"{manner}: inquiry {number} {more}".strip(), chat, talk, self.world.sim.now)
        given: dict[str, object] = {"message": inquiry.text}
        if chat is not None:
            chat.runs += 1
            given["session"] = chat.id
        inquiry.asked = talk.request(
            "tools/call",
            {"name": "ask", "arguments": given},
            lambda message: self._answered(inquiry, message),
            on_note=lambda text: self._noted(inquiry, text),
        )
        self.world.sim.after(ANSWERED, lambda: self._check_answered(inquiry))
        return inquiry

    def _noted(self, inquiry: _AgentCall, text: str) -> None:
        if text != WAITING:
            inquiry.notes.append(text)

    def _answered(self, inquiry: _AgentCall, message: Message) -> None:
        result = message.get("result", {})
        if result.get("isError") is not False:
            return
        said, session = (str(block["text"]) for block in result["content"])
        self.world.count("inquiries answered")
        meant = f"You said {inquiry.text}"
        if not said.rstrip().endswith(meant):
            violated(Invariant.OWN_ANSWER, f"{inquiry.text!r:.60} was answered {said!r:.100}")
        if inquiry.chat is not None and inquiry.chat.id not in session:
            violated(Invariant.OWN_ANSWER, f"{inquiry.text!r:.60} was answered in {session}")
        told = "".join(inquiry.notes)
        if inquiry.text.startswith("plain:") and not said.startswith(told):
            violated(Invariant.STREAM, f"{inquiry.text!r:.60} was told as {told!r:.100}, and is {said!r:.100}")

    def _check_answered(self, inquiry: _AgentCall) -> None:
        """Check that a quick answer has arrived, unless a fault occurred or the chat had a queue."""
        asked, talk = inquiry.asked, inquiry.talk
        assert asked is not None
        gone = asked.answered is not None or asked.cancelled is not None or talk.ending
        if gone or inquiry.chat is not None or talk.server is not self.world.api:
            return
        if self.world.is_fault_free_since(inquiry.sent) and not self.world.upstream.trouble:
            late = self.world.sim.now - inquiry.sent
            violated(Invariant.IN_TIME, f"{inquiry.text!r:.60} has no answer by MCP after {late:.0f} s")

    def _cancel(self, inquiry: _AgentCall) -> None:
        assert inquiry.asked is not None
        inquiry.talk.cancel(inquiry.asked)
        self.world.sim.after(STOP_TIMEOUT, lambda: self._check_stopped(inquiry))

    def _end(self, inquiry: _AgentCall) -> None:
        inquiry.talk.end()
        self.world.sim.after(STOP_TIMEOUT, lambda: self._check_stopped(inquiry))

    def _check_stopped(self, inquiry: _AgentCall) -> None:
        """Check that the model does not work for a cancelled call."""
        asked = inquiry.asked
        assert asked is not None
        known = inquiry.talk.ended if asked.cancelled is None else asked.cancelled
        if (
            known is None
            or known + STOP_TIMEOUT / 2 > self.world.sim.now
            or asked.answered is not None
            or not self.world.is_fault_free_since(inquiry.sent)
        ):
            return
        if inquiry.text in self.world.upstream.questions:
            violated(Invariant.CANCELLED, f"the model still answers {inquiry.text!r:.60}, which no client waits for")
        self.world.count("inquiries given up")

    def _read(self, talk: McpClientSession, chat: ChatModel) -> None:
        """Check that the resource of a chat equals the stored rows, from before or after the read."""
        uri, before = f"chat://sessions/{chat.id}", self._stored(chat)

        def read(message: Message) -> None:
            if "result" not in message or chat.deleting:
                return
            told = json.loads(message["result"]["contents"][0]["text"])
            said: list[str] = [row["content"] for row in told["messages"]]
            if told["session"] != chat.id or said not in _parts(self._stored(chat), before):
                violated(Invariant.STORED, f"{uri} says {said!r:.200}")
            self.world.count("chats read by MCP")

        talk.request("resources/read", {"uri": uri}, read)

    def _stored(self, chat: ChatModel) -> list[str]:
        return [str(row.content or "") for row in self.chats.rows(chat.id)]


def _parts(now: list[str], before: list[str]) -> list[list[str]]:
    """Return all possible contents between two reads: rows are only added."""
    return [now[:count][-200:] for count in range(len(before), len(now) + 1)]
