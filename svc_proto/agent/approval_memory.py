"""Who has allowed what: once, for a chat, or for good. Those for good are in a state file.

What is remembered is a pattern, the tool's name and its target: `phone_call +15550100`, or of several arguments
`phone_send_intent {"action":"…","data":"…"}`. Whoever is asked is shown all that the tool would be given.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from svc_proto.agent.interface import AgentHost, ApprovalRequested, ToolCall
from svc_proto.agent.tools.tool import Arguments, Tool
from svc_proto.basics import strict_json
from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import ToolError
from svc_proto.commands import Level, WriteConfig
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import Lock
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.redact import SECRET_KEYS, redact

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["ALLOWED", "FILE", "ApprovalMemory", "pattern_of", "build_approval_request", "describe_call"]

FILE = "agent-approvals.json"  # `{"always": ["<pattern>"]}` in the state folder
ALLOWED = ("once", "session", "always")
MAX_ALWAYS = 1_000  # patterns: the oldest is forgotten
MAX_SESSIONS = 1_000  # chats with something remembered: the oldest is forgotten
MAX_PER_SESSION = 100  # patterns of one chat: the oldest is forgotten
MAX_PATTERN = 200  # characters; a longer one ends with the hash of all of it
MAX_SHOWN = 8_000  # characters of a call in an approval request; a longer call is refused
HIDDEN = f"This call needs approval, but its members named {', '.join(SECRET_KEYS)} would not be shown."
TOO_LONG = f"This call needs approval, but it is too long to be shown: at most {MAX_SHOWN} characters."


def pattern_of(tool: Tool, given: Arguments) -> str:
    """What "session" and "always" would allow from now on."""
    about = {name: given[name] for name in tool.asks_by if name in given}
    if not about:
        return f"{tool.name} #{tool.edition}" if tool.edition else tool.name
    words = strict_json.dumps(about) if len(tool.asks_by) > 1 else str(next(iter(about.values())))
    pattern = f"{tool.name} {words}"
    if len(pattern) > MAX_PATTERN:
        digest = sha256_hex(pattern)
        pattern = f"{pattern[: MAX_PATTERN - 1 - len(digest)]} {digest}"
    return pattern


def build_approval_request(tool: Tool, call: ToolCall, given: Arguments, why: str) -> ApprovalRequested:
    """The question. Raises `ToolError` for what cannot be shown."""
    return ApprovalRequested(
        call=call, command=describe_call(tool, given), description=why, pattern=pattern_of(tool, given)
    )


def describe_call(tool: Tool, given: Arguments) -> str:
    """All that a tool would be given, as one line. Raises `ToolError` if not all can be shown."""
    shown = redact(given)
    if shown != given:
        raise ToolError(HIDDEN)
    command = f"{tool.name} {_line(strict_json.dumps(shown))}"
    if len(command) > MAX_SHOWN:
        raise ToolError(TOO_LONG)
    return command


class ApprovalMemory:
    """The memory of what was allowed, and the asking."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sessions: dict[str, dict[str, None]] = {}
        self._writing = Lock(engine)

    def remembers(self, session_id: str, pattern: str) -> Flow[bool]:
        """Whether nobody has to be asked."""
        if pattern in self._sessions.get(session_id, {}):
            return True
        known = yield from self._always()
        return not isinstance(known, Failure) and pattern in known

    def request(self, session_id: str, asked: ApprovalRequested, host: AgentHost) -> Flow[bool]:
        """Ask, and remember the answer as it was meant."""
        choice = yield from host.request_approval(asked)
        if choice == "session":
            self._remember(session_id, asked.pattern)
        if choice == "always":
            self._remember(session_id, asked.pattern)  # whatever becomes of the file
            yield from self._write(asked.pattern)
        return choice in ALLOWED

    def _remember(self, session_id: str, pattern: str) -> None:
        patterns = self._sessions.pop(session_id, {})
        self._sessions[session_id] = patterns
        patterns[pattern] = None
        if len(patterns) > MAX_PER_SESSION:
            del patterns[next(iter(patterns))]
        if len(self._sessions) > MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]

    def _always(self) -> Flow[tuple[str, ...] | Failure]:
        """The patterns of the state file; one that cannot be read allows nothing, and is not written over."""
        text = yield from read_state(self._engine, FILE)
        if text is None:
            return ()
        if not isinstance(text, Failure):
            found = JsonObject.parse_or_empty(text)
            if found.array_or_none("always") is not None:
                return tuple(found.texts("always"))
            text = Failure(FailureKind.INVALID)
        self._engine.log(Level.WARNING, "approvals not read", problem=text.kind.value)
        return text

    def _write(self, pattern: str) -> Flow[None]:
        engine = self._engine
        yield from self._writing.acquire()
        try:
            known: tuple[str, ...] | Failure | None = yield from self._always()
            if isinstance(known, tuple):
                if pattern in known:
                    return
                text = strict_json.dumps({"always": [*known, pattern][-MAX_ALWAYS:]}) + "\n"
                known = yield from run_operation(engine, WriteConfig(engine.new_op(), FILE, text))
            if isinstance(known, Failure):
                engine.log(Level.WARNING, "approval not stored", problem=known.kind.value)
        finally:
            self._writing.release()


def _line(text: str) -> str:
    """What may turn a line around, or make it look like another, is escaped as JSON does."""
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
