"""Pending commands to phones and the last hundred records (wire bridge 2 and 4, spec "Bridge command record").

Each command gets exactly one outcome: the phone's answer, or one made here. The latter follows after 30 s, after the
loss of the socket, or if the frame cannot be written. A later answer, or one from another socket, changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING

from attrs import define, field

from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.metrics import Histogram
from svc_proto.basics.moment import Moment
from svc_proto.machines.transitions import Table
from svc_proto.schema.json_object import JsonObject, as_object, as_text
from svc_proto.schema.redact import abridge, needs_no_redaction, redact, summary, unredacted_text

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import CommandJson

__all__ = [
    "BRIDGE_TABLE",
    "MAX_PENDING",
    "MAX_RECORDS",
    "RESPONSE_TIMEOUT",
    "BridgeCommands",
    "BridgeTrigger",
    "Decision",
    "CommandOutcome",
    "parse_limit",
    "phone_outcome",
    "relay_outcome",
]

RESPONSE_TIMEOUT = 30.0  # s, spec "Limits": bridge command response time-out
MAX_PENDING = 1_000  # commands in flight; a further one is refused with 503
MAX_RECORDS = 100  # spec "Limits": bridge activity ring buffer; the oldest is dropped
MAX_SUMMARY = 500  # characters, wire bridge 4.2
HIDDEN_TEXT = "[hidden]"
LARGE = 1 << 30  # characters of an answer of unknown size
MAX_PARAMS = 8_192  # characters of a record's params as JSON; longer ones are replaced by their beginning

_BLOCKED_STATUSES = (403, 423)  # wire bridge 4.3 [R]
_BLOCKED_CODES = (
    "user_denied",
    "bridge_disabled",
    "device_control_sideload_only",
    "sideload_only",
    "keyguard_blocked",
    "unknown_bridge_command",
)
_BLOCKED_PREFIXES = ("bridge_capability_", "bridge_policy_")


class Decision(Enum):
    """State of a command, in the words of the specification."""

    PENDING = "pending"
    EXECUTED = "executed"
    BLOCKED = "blocked"
    CONFIRMED = "confirmed"
    TIMEOUT = "timeout"
    ERROR = "error"

    __hash__ = object.__hash__  # Enum's is a Python function, too slow for each command


class BridgeTrigger(Enum):
    """Trigger that completes a command: the kind of the phone's answer, or its absence."""

    POLICY_REFUSAL = "policy refusal"  # row 1 of wire bridge 4.3
    CONFIRMATION = "confirmation"  # row 2
    FAILURE = "failure"  # row 3: a status of 400 or more
    SUCCESS = "success"  # row 4: a status below
    NO_STATUS = "no status"  # row 5: answered without a status
    THIRTY_SECONDS = "thirty seconds"
    SEND_FAILED = "send failed"
    PHONE_LOST = "phone lost"

    __hash__ = object.__hash__  # as above


BRIDGE_TABLE: Table[Decision, BridgeTrigger] = {
    (Decision.PENDING, BridgeTrigger.POLICY_REFUSAL): Decision.BLOCKED,
    (Decision.PENDING, BridgeTrigger.CONFIRMATION): Decision.CONFIRMED,
    (Decision.PENDING, BridgeTrigger.FAILURE): Decision.ERROR,
    (Decision.PENDING, BridgeTrigger.SUCCESS): Decision.EXECUTED,
    (Decision.PENDING, BridgeTrigger.NO_STATUS): Decision.PENDING,
    (Decision.PENDING, BridgeTrigger.THIRTY_SECONDS): Decision.TIMEOUT,
    (Decision.PENDING, BridgeTrigger.SEND_FAILED): Decision.ERROR,
    (Decision.PENDING, BridgeTrigger.PHONE_LOST): Decision.ERROR,
}

# Members of all results but success.
_SIGNS = frozenset({"error_code", "blocked", "status", "confirmation_required", "confirmed"})
_ASIDE = frozenset({"error", "blocked"})  # the same beside a result
_OK = 200  # identity with the parser's small integer; any other value takes the slow path
_SUCCESS = BridgeTrigger.SUCCESS  # as in `machines.paired_session`

_RELAY_MADE: dict[str, tuple[int, str]] = {  # code -> status and text, wire bridge 2.2
    "phone_timeout": (504, "the phone did not answer within 30 seconds"),
    "phone_disconnected": (502, "the phone disconnected before it answered"),
    "send_failed": (502, "the command could not be sent to the phone"),
    "bad_phone_status": (502, "the phone answered with an impossible status"),
    "phone_not_connected": (503, "no phone is connected"),
}


@fast_frozen
class CommandOutcome:
    """HTTP response of a command: `body` is a JSON object or array, `text` its compact JSON if available."""

    status: int
    body: object
    headers: tuple[tuple[bytes, bytes], ...] = ()
    text: str = field(default="", eq=False)


def _ignore_outcome(outcome: CommandOutcome) -> None:
    """Ignore the outcome."""


@define
class BridgeCommandRecord:
    """A command and its record, an element of `GET /bridge/activity` (spec "Bridge command record")."""

    request_id: str
    socket: int  # of its phone
    deadline: float  # monotonic seconds
    on_outcome: Callable[[CommandOutcome], object]  # called with the outcome
    method: str
    path: str
    params: object  # redacted
    carries_typed_text: bool  # they contain a text that is hidden
    sent_at: float  # epoch milliseconds, unlike all other times here (wire bridge 4.2)
    device_id: str | None
    device_name: str | None
    alias_used: str | None
    asked_by: str | None
    session_prefix: str  # prefix of the session's token
    response_status: int | None = field(default=None, init=False)
    result_summary: str | None = field(default=None, init=False)
    error: str | None = field(default=None, init=False)
    decision: Decision = field(default=Decision.PENDING, init=False)

    def to_record(self) -> CommandJson:
        return {
            "request_id": self.request_id,
            "method": self.method,
            "path": self.path,
            "params": self.params,
            "sent_at": self.sent_at,
            "response_status": self.response_status,
            "result_summary": self.result_summary,
            "error": self.error,
            "decision": self.decision.value,
            "device_id": self.device_id,
            "device_name": self.device_name,
            "alias_used": self.alias_used,
            "asked_by": self.asked_by,
        }


class BridgeCommands:
    """Pending commands to phones, and the ring of records.

    The parameters in a record are redacted, and shortened if they are long. With `hide_text` typed texts stay out of
    the ring. The phone's answer to a command with such a text is hidden in its record as well, since phones repeat the
    text.
    """

    def __init__(self, *, hide_text: bool = False, cap: int = MAX_PENDING) -> None:
        self._hide_text = hide_text
        self._cap = cap
        self._pending: dict[str, BridgeCommandRecord] = {}  # in order of deadline, since the timeout is constant
        self._ring: deque[BridgeCommandRecord] = deque(maxlen=MAX_RECORDS)
        self.settled = dict.fromkeys(BridgeTrigger, 0)  # count by trigger
        self.took = Histogram()  # time until the phone's answer

    @property
    def pending_count(self) -> int:
        """Number of commands that wait for an answer."""
        return len(self._pending)

    def pending_sockets(self) -> set[int]:
        """Return the sockets of the phones that have not answered all commands."""
        return {command.socket for command in self._pending.values()}

    def begin(
        self,
        request_id: str,
        socket: int,
        method: str,
        path: str,
        params: Mapping[str, object],
        body: Mapping[str, object],
        now: Moment,
        device_id: str | None = None,
        device_name: str | None = None,
        alias_used: str | None = None,
        asked_by: str | None = None,
        session_prefix: str = "",
        on_outcome: Callable[[CommandOutcome], object] = _ignore_outcome,
        text: str = "",
    ) -> BridgeCommandRecord:
        """Register a command that is about to be sent to a socket, and return its record.

        `on_outcome` is called with the outcome, once, but not by `send_failed`. `text` is the JSON text of `params` and
        `body`, if the caller has it. Raise `Refused` 503 `too_many_commands` at the cap, and `LocalProtocolError` for a
        pending request id.
        """
        if request_id in self._pending:
            raise LocalProtocolError("request_id is in use")
        if len(self._pending) >= self._cap:
            raise Refused(503, "too_many_commands", "too many commands wait for their phones")
        arguments = {**params, **body}
        is_harmless = 0 < len(text) < MAX_PARAMS and needs_no_redaction(text)
        redacted = arguments if is_harmless else self._summarize_params(arguments)
        carries_typed_text = (
            self._hide_text and not is_harmless and redact(arguments, hide_text=True) != redact(arguments)
        )
        # Positional, as in `engine.server_channel`.
        command = self._pending[request_id] = BridgeCommandRecord(
            request_id,
            socket,
            now.mono + RESPONSE_TIMEOUT,
            on_outcome,
            method,
            path,
            redacted,
            carries_typed_text,
            now.wall * 1000.0,
            device_id,
            device_name,
            alias_used,
            asked_by,
            session_prefix,
        )
        self._ring.append(command)
        return command

    def answer(
        self, request_id: object, socket: int, payload: Mapping[str, object], now: Moment, size: int = LARGE
    ) -> CommandOutcome | None:
        """Complete a command with a `bridge.response` of `size` characters and return its outcome.

        Return None, without a change, if no command of this socket with this id is pending, or if its time is over.
        """
        command = self._pending.get(as_text(request_id) or "")
        if command is None or command.socket != socket or command.deadline <= now.mono:
            return None
        self.took.observe(now.mono - command.deadline + RESPONSE_TIMEOUT)
        result = as_object(payload.get("result"))
        # Serialized once, for the record and for the caller.
        text = "" if result is None else unredacted_text(result, MAX_SUMMARY, size)
        plain = text and payload.get("status") is _OK and _ASIDE.isdisjoint(payload)
        if plain and result is not None and _SIGNS.isdisjoint(result):  # fast path of most answers
            command.response_status, command.result_summary = 200, HIDDEN_TEXT if command.carries_typed_text else text
            outcome, trigger = CommandOutcome(200, result, (), text), _SUCCESS
        else:
            reply = _PhoneReply(JsonObject.of(payload), text)
            outcome, trigger = reply.outcome(), reply.trigger()
            if reply.status is not None and not reply.impossible:
                command.response_status = reply.status
            if reply.result is not None:
                command.result_summary = reply.text or summary(reply.result, MAX_SUMMARY, hide_text=self._hide_text)
            command.error = reply.error_text()
            if command.carries_typed_text:
                command.result_summary = command.result_summary and HIDDEN_TEXT
                command.error = command.error and HIDDEN_TEXT
        self._resolve(command, trigger)
        command.on_outcome(outcome)
        return outcome

    def timeout(self, request_id: str) -> CommandOutcome | None:
        """Complete one command as timed out and return its outcome; None if it is not pending."""
        command = self._pending.get(request_id)
        if command is None:
            return None
        ((_, outcome),) = self._give_up([command], BridgeTrigger.THIRTY_SECONDS, "phone_timeout")
        return outcome

    def send_failed(self, request_id: str) -> CommandOutcome:
        """Complete a command whose frame could not be written; only the caller gets the outcome."""
        command = self._pending[request_id]
        command.on_outcome = _ignore_outcome
        self._give_up([command], BridgeTrigger.SEND_FAILED, "send_failed")
        return relay_outcome("send_failed")

    def socket_lost(self, socket: int) -> list[tuple[str, CommandOutcome]]:
        """Fail the pending commands of a phone's closed socket; return their ids and outcomes."""
        lost = [command for command in self._pending.values() if command.socket == socket]
        return self._give_up(lost, BridgeTrigger.PHONE_LOST, "phone_disconnected")

    def expire_due(self, now: Moment) -> list[tuple[str, CommandOutcome]]:
        """Complete the commands whose 30 seconds have passed, in order of deadline; return their ids and outcomes."""
        due = list(takewhile(lambda command: command.deadline <= now.mono, self._pending.values()))
        return self._give_up(due, BridgeTrigger.THIRTY_SECONDS, "phone_timeout")

    def next_deadline(self) -> float | None:
        """Return the time (monotonic s) at which the next command times out; None without a pending one."""
        first = next(iter(self._pending.values()), None)
        return None if first is None else first.deadline

    def records(self, limit: int = MAX_RECORDS, *, session_prefix: str | None = None) -> list[CommandJson]:
        """Return the newest `limit` records, of one session if given, newest first, in the form of wire bridge 4.2."""
        newest_first = [command for command in reversed(self._ring) if session_prefix in (None, command.session_prefix)]
        return [command.to_record() for command in newest_first[: max(0, limit)]]

    def _give_up(
        self, commands: list[BridgeCommandRecord], trigger: BridgeTrigger, code: str
    ) -> list[tuple[str, CommandOutcome]]:
        outcome = relay_outcome(code)
        for command in commands:
            command.error = _RELAY_MADE[code][1]
            self._resolve(command, trigger)
        for command in commands:  # a callback may begin or complete another command
            command.on_outcome(outcome)
        return [(command.request_id, outcome) for command in commands]

    def _resolve(self, command: BridgeCommandRecord, trigger: BridgeTrigger) -> None:
        del self._pending[command.request_id]
        command.decision = BRIDGE_TABLE[command.decision, trigger]
        self.settled[trigger] += 1

    def _summarize_params(self, params: Mapping[str, object]) -> object:
        redacted, start = abridge(params, MAX_PARAMS, hide_text=self._hide_text)
        return redacted if len(start) < MAX_PARAMS else {"[truncated]": start[:MAX_SUMMARY]}


def phone_outcome(payload: Mapping[str, object]) -> CommandOutcome:
    """Return the HTTP response for a phone's answer (wire bridge 2.3): its status, or 200 without one; its result.

    A status that cannot be final (below 200, above 599) becomes 502, with an error in place of the result. A result
    that is neither an object nor an array is wrapped in an object as `value`; without a result, the body is an empty
    object.
    """
    return _PhoneReply(JsonObject.of(payload)).outcome()


def relay_outcome(code: str) -> CommandOutcome:
    """Return a response of the relay itself: `phone_timeout`, `phone_disconnected`, `send_failed` and others."""
    status, message = _RELAY_MADE[code]
    return CommandOutcome(status, {"ok": False, "error": message, "code": code})


def parse_limit(value: str | None) -> int:
    """Parse the `limit` of `/bridge/activity`: 100 for invalid values and below 1; at most the size of the ring."""
    try:
        limit = int(value or "")
    except ValueError:
        return MAX_RECORDS
    return min(limit, MAX_RECORDS) if limit >= 1 else MAX_RECORDS


class _PhoneReply:
    """A phone's answer to a command, parsed: status and result."""

    __slots__ = ("blocked", "error", "impossible", "members", "result", "status", "text")

    def __init__(self, payload: JsonObject, text: str = "") -> None:
        self.status = payload.integer("status")
        # An interim status cannot end an HTTP exchange, so 1xx is as invalid as 600.
        self.impossible = self.status is not None and not 200 <= self.status <= 599
        self.error = payload.string("error")
        self.result = payload.get("result")
        self.members = payload.get_object("result")
        self.blocked = payload.get("blocked") is True or self.members.get("blocked") is True
        self.text = text  # JSON text of the result, if serialized

    def outcome(self) -> CommandOutcome:
        if self.impossible:
            return relay_outcome("bad_phone_status")
        status, result = self.status or 200, self.result
        if isinstance(result, dict | list):
            return CommandOutcome(status, result, (), self.text)
        return CommandOutcome(status, {} if result is None else {"value": result})

    def trigger(self) -> BridgeTrigger:
        result, code = self.members, self.members.text("error_code")
        if (
            self.blocked
            or "safety" in (self.error or "").lower()
            or self.status in _BLOCKED_STATUSES
            or result.get("status") == "blocked"
            or code in _BLOCKED_CODES
            or code.startswith(_BLOCKED_PREFIXES)
        ):
            return BridgeTrigger.POLICY_REFUSAL
        if result.get("confirmation_required") is True or result.get("confirmed") is True:
            return BridgeTrigger.CONFIRMATION
        if self.status is None:
            return BridgeTrigger.NO_STATUS
        return BridgeTrigger.FAILURE if self.status >= 400 or self.impossible else BridgeTrigger.SUCCESS

    def error_text(self) -> str | None:
        error = self.error
        if error is None and (self.impossible or (self.status or 200) >= 400):
            error = self.members.string("error")
        if error is not None:
            return error[:MAX_SUMMARY]
        return _RELAY_MADE["bad_phone_status"][1] if self.impossible else None
