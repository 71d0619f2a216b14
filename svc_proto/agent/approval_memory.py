"""Approvals of tool calls: once, for a chat, or for good. Approvals for good are in a state file.

An approval is stored as a pattern (`pattern_of`, `pattern_of_effect`), such as `phone_call +15550100`.
"""

import json

from svc_proto.agent.interface import AgentHost, ApprovalRequested, ToolCall
from svc_proto.agent.tools.tool import Arguments, Tool
from svc_proto.basics import strict_json
from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import ToolError
from svc_proto.basics.plain_letters import has_look_alikes, show_look_alikes
from svc_proto.commands import Level, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import Lock
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.effects.command_effects import Effect
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.redact import MAX_DEPTH, REDACTED, SECRET_KEYS, redact

__all__ = [
    "ALLOWED",
    "FILE",
    "ApprovalMemory",
    "build_approval_request",
    "build_effect_request",
    "build_owner_question",
    "describe_call",
    "pattern_of",
    "pattern_of_effect",
]

FILE = "agent-approvals.json"  # `{"always": ["<pattern>"]}` in the state folder
ALLOWED = ("once", "session", "always")
MAX_ALWAYS = 1_000  # patterns; the oldest is dropped
MAX_SESSIONS = 1_000  # chats with stored approvals; the oldest is dropped
MAX_PER_SESSION = 100  # patterns of one chat; the oldest is dropped
MAX_PATTERN = 200  # characters; a longer one ends with the hash of the whole pattern
MAX_SHOWN = 8_000  # characters of a call in an approval request; a longer call is refused
OWNER_QUESTION = "The agent has a question: allow means yes, deny means no."
HIDDEN = f"This call needs approval, but its members named {', '.join(SECRET_KEYS)} would not be shown."
TOO_NESTED = f"This call needs approval, but what is nested below {MAX_DEPTH} levels would not be shown."
TOO_LONG = f"This call needs approval, but it is too long to be shown: at most {MAX_SHOWN} characters."


def pattern_of(tool: Tool, given: Arguments) -> str:
    """Return the pattern that an approval stores: the tool's name with its edition, else with its arguments.

    A single argument is written as its value alone, several as a JSON object. A pattern of arguments over `MAX_PATTERN`
    characters is cut and ends with the hash of the whole.
    """
    if tool.edition:
        return f"{tool.name} #{tool.edition}"
    if not given:
        return tool.name
    words = strict_json.dumps(dict(sorted(given.items()))) if len(given) > 1 else str(next(iter(given.values())))
    return _bounded(f"{tool.name} {words}")


def pattern_of_effect(effect: Effect) -> str:
    """Return the pattern of an effect: its kind, place and a digest of its question; cut as by `pattern_of`."""
    return _bounded(f"{effect.kind.name.lower()} {effect.place} #{sha256_hex(effect.question)[:16]}")


def build_approval_request(
    tool: Tool, call: ToolCall, given: Arguments, why: str, effect: Effect | None = None
) -> ApprovalRequested:
    """Build the approval request of a call. Its description is `why`, then the recipient and the app of `effect`.

    A warning follows if their letters look like others. Raises `ToolError` if a part of the call would have to be
    redacted, or if the call is too long to be shown.
    """
    apart = _about(effect) if effect is not None else ""
    return ApprovalRequested(
        call=call, command=describe_call(tool, given), description=f"{why}{apart}", pattern=pattern_of(tool, given)
    )


def describe_call(tool: Tool, given: Arguments) -> str:
    """Return a call as one line: the tool's name and all arguments as JSON.

    Raises `ToolError` if a part would have to be redacted or is nested too deeply, or if the line has more than
    `MAX_SHOWN` characters.
    """
    shown = redact(given)
    command = f"{tool.name} {_line(strict_json.dumps(shown))}"
    if shown != given:
        raise ToolError(HIDDEN if REDACTED in command else TOO_NESTED)
    if len(command) > MAX_SHOWN:
        raise ToolError(TOO_LONG)
    return command


def build_effect_request(effect: Effect, call: ToolCall) -> ApprovalRequested:
    """Build an approval request for an effect of a running call."""
    return ApprovalRequested(
        call=call,
        command=_line(effect.question),
        description="The place or the words of what is pressed need your consent.",
        pattern=pattern_of_effect(effect),
    )


def build_owner_question(question: str, call: ToolCall) -> ApprovalRequested:
    """Build a question of the agent, answered with yes (`once`), no (`deny`) or a text; it stores no approval."""
    return ApprovalRequested(
        call=call,
        command=_line(question),
        description=OWNER_QUESTION,
        pattern=call.name,
        choices=("once", "deny"),
        is_question=True,
    )


class ApprovalMemory:
    """Store of approvals of tool calls: of a chat in memory, for good in a state file. It also requests new ones."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sessions: dict[str, dict[str, None]] = {}
        self._writing = Lock(engine)

    def remembers(self, session_id: str, pattern: str) -> Flow[bool]:
        """Report whether a pattern is approved for this chat or, by the state file, for good.

        A state file that cannot be read approves nothing.
        """
        if pattern in self._sessions.get(session_id, {}):
            return True
        known = yield from self._always()
        return not isinstance(known, Failure) and pattern in known

    def request(self, session_id: str, asked: ApprovalRequested, host: AgentHost) -> Flow[bool]:
        """Request an approval from the user, and report whether the user gave it.

        An approval for the chat or for good is stored; one for this call alone is not. If the state file cannot be
        read or written, an approval for good is stored for the chat alone.
        """
        choice = yield from host.request_approval(asked)
        if choice == "session":
            self._remember(session_id, asked.pattern)
        if choice == "always":
            self._remember(session_id, asked.pattern)  # also for a failed write of the file
            yield from self._write(asked.pattern)
        return choice in ALLOWED

    def standing(self) -> Flow[list[tuple[str, str]] | Failure]:
        """Return the approvals as pairs of a chat's id and a pattern; the id is empty for an approval for good.

        An approval of a chat is left out if the same pattern is approved for good.
        Returns a `Failure` if the state file cannot be read.
        """
        known = yield from self._always()
        if isinstance(known, Failure):
            return known
        of_chats = [(chat, each) for chat, patterns in self._sessions.items() for each in patterns if each not in known]
        return [*(("", each) for each in known), *of_chats]

    def end(self, session_id: str, pattern: str) -> Flow[str]:
        """Remove an approval: of one chat, or of all chats if `session_id` is empty; also the same approval for good.

        Returns the reason if that failed, else an empty text.
        """
        if not session_id:
            for patterns in self._sessions.values():
                patterns.pop(pattern, None)
        return (yield from self.forget(session_id, pattern))

    def forget(self, session_id: str, pattern: str) -> Flow[str]:
        """Remove an approval of one chat, and the same approval for good.

        Return the reason of a failure, else an empty text.
        """
        self._sessions.get(session_id, {}).pop(pattern, None)
        yield from self._writing.acquire()
        try:
            known = yield from self._always()
            if isinstance(known, Failure):
                return "the approvals cannot be read"
            if pattern not in known:
                return ""
            text = strict_json.dumps({"always": [each for each in known if each != pattern]}) + "\n"
            written = yield from run_operation(self._engine, WriteConfig(self._engine.new_op(), FILE, text))
            return "the approvals cannot be written" if isinstance(written, Failure) else ""
        finally:
            self._writing.release()

    def _remember(self, session_id: str, pattern: str) -> None:
        patterns = self._sessions.pop(session_id, {})
        self._sessions[session_id] = patterns
        patterns[pattern] = None
        if len(patterns) > MAX_PER_SESSION:
            del patterns[next(iter(patterns))]
        if len(self._sessions) > MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]

    def _always(self) -> Flow[tuple[str, ...] | Failure]:
        """Return the patterns of the state file; a `Failure`, which is logged, if it cannot be read or is invalid."""
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


def _about(effect: Effect) -> str:
    """Return sentences that name the recipient and the app of an effect, with a warning if letters look like others."""
    pieces = [f" To: {effect.recipient}."] if effect.recipient else []
    pieces += [f" App: {effect.place}."] if effect.place else []
    if has_look_alikes(f"{effect.recipient} {effect.place}"):
        pieces.append(" Some of the letters only look like others.")
    return _line("".join(pieces))


def _bounded(pattern: str) -> str:
    if len(pattern) <= MAX_PATTERN:
        return pattern
    digest = sha256_hex(pattern)
    return f"{pattern[: MAX_PATTERN - 1 - len(digest)]} {digest}"


def _line(text: str) -> str:
    """Return a text as one line, with escapes for unprintable characters and for the non-ASCII in mixed words."""
    text = show_look_alikes(text)
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
