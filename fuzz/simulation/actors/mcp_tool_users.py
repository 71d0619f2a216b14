"""Users whose agent calls tools of MCP servers.

A tool that needs an approval is called once, after the approval. Its result is the one that its server returned. A
failed server affects only its own call, and the turn goes on.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from attrs import define, field

from fuzz.simulation.actors.actor_context import StepHandler, no_further_checks
from fuzz.simulation.actors.chat_clients import ChatClients, each_event
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.reference_model import ChatModel, violated
from fuzz.simulation.servers.mcp_servers import ASKING, SERVERS, SimMcpServers
from fuzz.simulation.servers.mcp_tool_behavior import BEHAVIORS, STRAY
from fuzz.steps import Step, UseToolServers

OVER = 120.0  # s until a run with such calls has ended, however its servers fail
ARRIVES = 3.0  # s from the answer of a server to the result of its call, on a network without faults
TOOLS = ("look", "act")
SAYS = ("once", "once", "deny")
MARK = re.compile(r"use-\d+!")
ENDS = ("run.completed", "run.failed", "run.cancelled")


@define(eq=False)
class _ToolUse:
    """Tool call that the model makes."""

    mark: str
    tool: str
    how: str
    allowed: bool
    asked: bool = False
    heard: float | None = None  # when its server received it


@define(eq=False)
class _ToolRun:
    text: str
    chat: ChatModel
    sent: float
    word: str
    pause: float
    outages: int
    id: str = ""
    end: str = ""
    uses: list[_ToolUse] = field(factory=list)


class McpToolUsers:
    """Steps of users whose agent has such tools."""

    def __init__(self, chats: ChatClients) -> None:
        self.chats = chats
        self.world = chats.world
        self._uses: dict[str, _ToolUse] = {}
        self._runs: dict[str, _ToolRun] = {}
        self.shed = SimMcpServers(self.world, self._on_tool_call)
        self.world.upstream.on_question.append(self._judge)
        self.handlers: dict[type[Step], StepHandler] = {UseToolServers: self._begin}

    def _begin(self, step: UseToolServers) -> None:
        self.shed.open()
        chat = self.chats.pick(step.chat)
        if chat is None:
            return
        chat.runs += 1
        number, word = self.chats.number(), SAYS[step.tools % len(SAYS)]
        run = _ToolRun("", chat, self.world.sim.now, word, step.seconds, self.world.outages)
        few = 1 + step.tools // 3 % 3
        pieces = [f"use: run {number} "]
        for place in range(few):
            kind = step.tools // 9 + place
            server, tool = [*SERVERS][kind % len(SERVERS)], TOOLS[kind // 3 % len(TOOLS)]
            how = BEHAVIORS[(step.tools // 54 + 7 * place) % len(BEHAVIORS)]
            use = _ToolUse(f"use-{number}{place}!", f"mcp_{server}_{tool}", how, allowed=False)
            self._uses[use.mark] = use
            run.uses.append(use)
            pieces.append(f"#{use.tool} {how} {use.mark} ")
        run.text = "".join(pieces).strip()
        self._runs[run.text] = run
        body = {"input": run.text, "session_id": chat.id, "stream": True}
        self.chats.request("POST", "/v1/runs", body, no_further_checks, each_event(partial(self._on_event, run)))
        self.world.sim.after(OVER + 2 * step.seconds, lambda: self._check_over(run))

    def _on_event(self, run: _ToolRun, event: str, data: dict[str, Any]) -> None:
        run.id = data.get("run_id", run.id)
        if event == "approval.request":
            found = MARK.search(str(data["command"]))
            if found is None or found[0] not in [use.mark for use in run.uses]:
                violated(Invariant.OWN_BYTES, f"{run.text!r} is asked about {data['command']!r}")
            use = self._uses[found[0]]
            use.asked = True
            self.world.sim.after(run.pause, lambda: self._answer_approval(run, use, str(data["call_id"])))
        elif event in ENDS:
            run.end = event
            self.world.count(f"runs with tools of others: {event}")
            broken = not self.world.is_fault_free_since(run.sent) or self.world.upstream.trouble is not None
            if event == "run.failed" and not broken:
                violated(Invariant.ONE_END, f"{run.text!r} failed, and nothing did but what its servers do")

    def _answer_approval(self, run: _ToolRun, use: _ToolUse, call: str) -> None:
        use.allowed = run.word != "deny"
        self.chats.request(
            "POST", f"/v1/runs/{run.id}/approval", {"choice": run.word, "call_id": call}, no_further_checks
        )

    def _on_tool_call(self, tool: str, mark: str, how: str) -> None:
        """Check a tool call that a server received."""
        use = self._uses[mark]
        self.world.count("calls at servers of others")
        if tool != use.tool or how != use.how:
            violated(Invariant.OWN_ANSWER, f"{mark} was for {use.tool}, and {tool} is told {how}")
        if use.heard is not None:
            violated(Invariant.ONE_ANSWER, f"{mark} is done twice")
        use.heard = self.world.sim.now
        if tool in ASKING and not use.allowed:
            violated(Invariant.CONFIRMED, f"{mark} is done by {tool} without an approval: asked {use.asked}")

    def _judge(self, question: str, rows: list[dict[str, Any]]) -> None:
        """Check that the model receives, for each call, the result of its server."""
        run = self._runs.get(question)
        if run is None or rows[-1]["role"] != "tool":
            return
        calls: dict[str, str] = {}
        for row in rows:
            for call in row.get("tool_calls") or ():
                found = MARK.search(call["function"]["arguments"])
                calls[call["id"]] = found[0] if found else ""
            mark = calls.get(str(row.get("tool_call_id")), "") if row["role"] == "tool" else ""
            if mark in [use.mark for use in run.uses]:
                self._judge_result(self._uses[mark], str(row["content"]))

    def _judge_result(self, use: _ToolUse, text: str) -> None:
        self.world.count("results of others")
        if STRAY in text or [mark for mark in MARK.findall(text) if mark != use.mark]:
            violated(Invariant.OWN_ANSWER, f"{use.mark} at {use.tool}, {use.how}, led to {text!r:.200}")
        told = self.shed.answered.get(use.mark)
        done = f"done {use.mark}" in text
        if done and told is None:
            violated(Invariant.OWN_ANSWER, f"{use.mark} has a result before its server has said one")
        if not done and told is not None and use.heard is not None and self.world.is_fault_free_since(use.heard):
            violated(Invariant.REACHED, f"{use.mark} was done by {use.tool}, {use.how}, and led to {text!r:.200}")

    def _check_over(self, run: _ToolRun) -> None:
        """Check that the run ends, however a server fails."""
        lasts = self.world.is_fault_free_since(run.sent) and run.outages == self.world.outages
        if run.id and not run.end and lasts and not run.chat.deleting:
            self.world.count("runs with tools of others that were looked at")
            live = self.world.api_service.runs._runs.get(run.id)
            if live is not None and live.ended is None and run.text not in self.world.upstream.questions:
                violated(Invariant.ONE_END, f"{run.text!r} goes on for {self.world.sim.now - run.sent:.0f} s")
