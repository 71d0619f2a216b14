"""Who has allowed what: once, for a chat, or for good. Those for good are in a state file.

What is remembered is a pattern, the tool's name and the argument that matters: `phone_call +15550100`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from svc_proto.agent.contract import ApprovalAsked, ToolCall, TurnHost
from svc_proto.agent.tools.tool import Tool
from svc_proto.agent.waiting import OneAtATime
from svc_proto.basics import strict_json
from svc_proto.basics.redact import summary
from svc_proto.commands import Level, ReadConfig, WriteConfig
from svc_proto.engine.flow import Flow, ask
from svc_proto.facts import Failure, FailureKind

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["ALLOWED", "FILE", "Approvals", "pattern_of"]

FILE = "agent-approvals.json"  # `{"always": ["<pattern>"]}` in the state folder
ALLOWED = ("once", "session", "always")
MAX_ALWAYS = 1_000  # patterns: the oldest is forgotten
MAX_SESSIONS = 1_000  # chats with something remembered: the oldest is forgotten
MAX_PER_SESSION = 100  # patterns of one chat: the oldest is forgotten
MAX_PATTERN = 200  # characters
MAX_SHOWN = 500  # characters of a call that somebody is asked about


def pattern_of(tool: Tool, call: ToolCall) -> str:
    """What "session" and "always" would allow from now on."""
    about = call.args.get(tool.asks_by) if tool.asks_by is not None else None
    return tool.name if about is None else f"{tool.name} {about}"[:MAX_PATTERN]


class Approvals:
    """The memory of what was allowed, and the asking."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sessions: dict[str, dict[str, None]] = {}
        self._writing = OneAtATime(engine)

    def remembers(self, session_id: str, pattern: str) -> Flow[bool]:
        """Whether nobody has to be asked."""
        if pattern in self._sessions.get(session_id, {}):
            return True
        return pattern in (yield from self._always())

    def ask(self, session_id: str, tool: Tool, call: ToolCall, host: TurnHost) -> Flow[bool]:
        """Ask, and remember the answer as it was meant."""
        pattern = pattern_of(tool, call)
        asked = ApprovalAsked(
            call=call,
            command=f"{tool.name} {summary(call.args, MAX_SHOWN)}",
            description=tool.asks or "",
            pattern=pattern,
        )
        choice = yield from host.approve(asked)
        if choice == "session":
            self._remember(session_id, pattern)
        if choice == "always":
            self._remember(session_id, pattern)  # whatever becomes of the file
            yield from self._write(pattern)
        return choice in ALLOWED

    def _remember(self, session_id: str, pattern: str) -> None:
        patterns = self._sessions.pop(session_id, {})
        self._sessions[session_id] = patterns
        patterns[pattern] = None
        if len(patterns) > MAX_PER_SESSION:
            del patterns[next(iter(patterns))]
        if len(self._sessions) > MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]

    def _always(self) -> Flow[tuple[str, ...]]:
        """The patterns of the state file; a file that cannot be read allows nothing."""
        engine = self._engine
        text = yield from ask(engine, ReadConfig(engine.new_op(), FILE))
        if isinstance(text, Failure):
            if text.kind is not FailureKind.NOT_FOUND:
                engine.log(Level.WARNING, "approvals not read", problem=text.kind.value)
            return ()
        try:
            value = strict_json.loads(text)
        except strict_json.JsonError:
            value = None
        found = cast("dict[str, object]", value).get("always") if isinstance(value, dict) else None
        if not isinstance(found, list):
            engine.log(Level.WARNING, "approvals not read", problem="invalid")
            return ()
        return tuple(pattern for pattern in found if isinstance(pattern, str))

    def _write(self, pattern: str) -> Flow[None]:
        engine = self._engine
        yield from self._writing.enter()
        try:
            known = yield from self._always()
            if pattern in known:
                return
            kept = [*known, pattern][-MAX_ALWAYS:]
            done = yield from ask(
                engine, WriteConfig(engine.new_op(), FILE, strict_json.dumps({"always": kept}) + "\n")
            )
            if isinstance(done, Failure):
                engine.log(Level.WARNING, "approval not stored", problem=done.kind.value)
        finally:
            self._writing.leave()
