"""Commands on their way to a phone and the last hundred of them (wire bridge 2 and 4, spec "Bridge command record").

Each command gets exactly one outcome: the phone's answer, or one made here when 30 s pass, the socket goes, or the
frame cannot be written. Whatever comes later, or from another socket, changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum

from attrs import define, field, frozen

from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.basics.expiring import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.basics.redact import abridge, redact, summary
from svc_proto.basics.value import fixed
from svc_proto.machines.table import Table, step
from svc_proto.schema.members import Members

__all__ = [
    "BRIDGE_TABLE",
    "MAX_PENDING",
    "MAX_RECORDS",
    "RESPONSE_TIMEOUT",
    "BridgeCommands",
    "BridgeTrigger",
    "Decision",
    "Outcome",
    "Pending",
    "derive_decision",
    "parse_limit",
    "phone_outcome",
    "relay_outcome",
]

RESPONSE_TIMEOUT = 30.0  # s, spec "Limits": bridge command response time-out
MAX_PENDING = 1_000  # commands in flight; a further one is refused with 503
MAX_RECORDS = 100  # spec "Limits": bridge activity ring buffer; the oldest is dropped
MAX_SUMMARY = 500  # characters, wire bridge 4.2
HIDDEN = "[hidden]"
MAX_PARAMS = 8_192  # characters of a record's params as JSON; more is replaced by its beginning

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
    """What became of a command, in the words of the spec."""

    PENDING = "pending"
    EXECUTED = "executed"
    BLOCKED = "blocked"
    CONFIRMED = "confirmed"
    TIMEOUT = "timeout"
    ERROR = "error"

    __hash__ = object.__hash__  # Enum's is a function of Python, and every command asks for it


class BridgeTrigger(Enum):
    """What settles a command: the kind of the phone's answer, or its absence."""

    POLICY_REFUSAL = "policy refusal"  # row 1 of wire bridge 4.3
    CONFIRMATION = "confirmation"  # row 2
    FAILURE = "failure"  # row 3: a status of 400 or more
    SUCCESS = "success"  # row 4: a status below
    NO_STATUS = "no status"  # row 5: answered, but nothing can be said about it
    THIRTY_SECONDS = "thirty seconds"
    SEND_FAILED = "send failed"
    PHONE_LOST = "phone lost"

    __hash__ = object.__hash__  # the same


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

_RELAY_MADE: dict[str, tuple[int, str]] = {  # code -> status and text, wire bridge 2.2
    "phone_timeout": (504, "the phone did not answer within 30 seconds"),
    "phone_disconnected": (502, "the phone disconnected before it answered"),
    "send_failed": (502, "the command could not be sent to the phone"),
    "bad_phone_status": (502, "the phone answered with an impossible status"),
    "phone_not_connected": (503, "no phone is connected"),
}


@fixed
class Outcome:
    """The HTTP answer of a command: `body` is a JSON object or array."""

    status: int
    body: object
    headers: tuple[tuple[bytes, bytes], ...] = ()


@frozen
class Pending:
    """A command under way: on which socket, and until when (monotonic seconds)."""

    request_id: str
    socket: int
    deadline: float


@define(kw_only=True)
class BridgeCommandRecord:
    """One element of `GET /bridge/activity` (spec "Bridge command record"), and the command that it is of."""

    pending: Pending
    method: str
    path: str
    params: object  # redacted
    typed: bool  # they hold a text that is hidden
    sent_at: float  # epoch milliseconds, unlike everything else here (wire bridge 4.2)
    device_id: str | None
    device_name: str | None
    alias_used: str | None
    asked_by: str | None
    response_status: int | None = field(default=None, init=False)
    result_summary: str | None = field(default=None, init=False)
    error: str | None = field(default=None, init=False)
    decision: Decision = field(default=Decision.PENDING, init=False)

    def step(self, trigger: BridgeTrigger) -> None:
        self.decision = step(BRIDGE_TABLE, self.decision, trigger)

    def to_record(self) -> dict[str, object]:
        return {
            "request_id": self.pending.request_id,
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
    """The pending table and the ring of records.

    A record has its parameters as they were sent, but for `SECRET_KEYS`. With `hide_text` typed texts stay out of the
    ring: of a command that carries one, what the phone says is not kept either, since phones repeat it.
    """

    def __init__(self, *, hide_text: bool = False, cap: int = MAX_PENDING) -> None:
        self._hide_text = hide_text
        self._cap = cap
        self._pending: ExpiringMap[str, BridgeCommandRecord] = ExpiringMap(cap)  # on the monotonic clock
        self._ring: deque[BridgeCommandRecord] = deque(maxlen=MAX_RECORDS)

    @property
    def pending_count(self) -> int:
        """How many commands wait for an answer."""
        return len(self._pending)

    def begin(
        self,
        request_id: str,
        *,
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
    ) -> Pending:
        """A command is about to be sent to a socket. `Refused` 503 `too_many_commands` at the cap."""
        if request_id in self._pending:
            raise LocalProtocolError("request_id is in use")
        if len(self._pending) >= self._cap:
            raise Refused(503, "too_many_commands", "too many commands wait for their phones")
        pending = Pending(request_id, socket, now.mono + RESPONSE_TIMEOUT)
        sent = {**params, **body}
        command = BridgeCommandRecord(
            pending=pending,
            method=method,
            path=path,
            params=self._shown(sent),
            typed=self._hide_text and redact(sent, hide_text=True) != redact(sent),
            sent_at=now.wall * 1000.0,
            device_id=device_id,
            device_name=device_name,
            alias_used=alias_used,
            asked_by=asked_by,
        )
        self._pending.put(request_id, command, pending.deadline)
        self._ring.append(command)
        return pending

    def answer(self, request_id: object, socket: int, payload: Mapping[str, object], now: Moment) -> Outcome | None:
        """A `bridge.response` came in; None, and nothing has changed, when it answers no command of this socket."""
        if not isinstance(request_id, str):
            return None
        command = self._pending.get(request_id, now.mono)
        if command is None or command.pending.socket != socket:
            return None
        outcome = phone_outcome(payload)
        result = payload.get("result")
        command.response_status = _possible_status(payload)
        command.result_summary = None if result is None else summary(result, MAX_SUMMARY, hide_text=self._hide_text)
        command.error = _error_text(payload, outcome)
        if command.typed:
            command.result_summary = command.result_summary and HIDDEN
            command.error = command.error and HIDDEN
        self._settle(command, _classify(payload))
        return outcome

    def timeout(self, request_id: str) -> Outcome | None:
        """Give up waiting for one command; None when it does not wait."""
        return self._fail(request_id, BridgeTrigger.THIRTY_SECONDS, "phone_timeout")

    def send_failed(self, request_id: str) -> Outcome | None:
        """The frame could not be written; None when the command does not wait."""
        return self._fail(request_id, BridgeTrigger.SEND_FAILED, "send_failed")

    def socket_lost(self, socket: int) -> list[tuple[str, Outcome]]:
        """A phone's socket is gone: its commands, and only those, fail."""
        lost = [command for command in self._pending.values() if command.pending.socket == socket]
        return [
            (command.pending.request_id, self._give_up(command, BridgeTrigger.PHONE_LOST, "phone_disconnected"))
            for command in lost
        ]

    def expire_due(self, now: Moment) -> list[tuple[str, Outcome]]:
        """The commands whose 30 seconds are over, in order of deadline."""
        return [
            (request_id, self._give_up(command, BridgeTrigger.THIRTY_SECONDS, "phone_timeout"))
            for request_id, command in self._pending.purge(now.mono)
        ]

    def next_deadline(self) -> float | None:
        """When (monotonic seconds) the next command times out."""
        return self._pending.next_expiry()

    def records(self, limit: int = MAX_RECORDS) -> list[dict[str, object]]:
        """The newest `limit` records, newest first, in the form of wire bridge 4.2."""
        newest_first = list(reversed(self._ring))
        return [command.to_record() for command in newest_first[: max(0, limit)]]

    def _fail(self, request_id: str, trigger: BridgeTrigger, code: str) -> Outcome | None:
        command = self._pending.peek(request_id)
        return None if command is None else self._give_up(command, trigger, code)

    def _give_up(self, command: BridgeCommandRecord, trigger: BridgeTrigger, code: str) -> Outcome:
        command.error = _RELAY_MADE[code][1]
        self._settle(command, trigger)
        return relay_outcome(code)

    def _settle(self, command: BridgeCommandRecord, trigger: BridgeTrigger) -> None:
        command.step(trigger)
        self._pending.discard(command.pending.request_id)

    def _shown(self, params: Mapping[str, object]) -> object:
        shown, start = abridge(params, MAX_PARAMS, hide_text=self._hide_text)
        return shown if len(start) < MAX_PARAMS else {"[truncated]": start[:MAX_SUMMARY]}


def derive_decision(payload: Mapping[str, object]) -> Decision:
    """The decision that an answer stands for, by the ordered rows of wire bridge 4.3 and its additions."""
    return step(BRIDGE_TABLE, Decision.PENDING, _classify(payload))


def phone_outcome(payload: Mapping[str, object]) -> Outcome:
    """The HTTP answer made of a phone's answer (wire bridge 2.3): its status, or 200 without one; its result.

    What cannot be the status of a final response (below 200, above 599) becomes a 502.
    """
    status = Members.of(payload).whole("status")
    if status is not None and _possible_status(payload) is None:
        return relay_outcome("bad_phone_status")
    result = payload.get("result")
    body: object = result
    if result is None:
        body = {}
    elif not isinstance(result, dict | list):
        body = {"value": result}
    return Outcome(200 if status is None else status, body)


def relay_outcome(code: str) -> Outcome:
    """An answer made by the relay itself: `phone_timeout`, `phone_disconnected`, `send_failed`, …"""
    status, message = _RELAY_MADE[code]
    return Outcome(status, {"ok": False, "error": message, "code": code})


def parse_limit(value: str | None) -> int:
    """The `limit` of `/bridge/activity`: 100 for nonsense and anything below 1; never more than the ring holds."""
    try:
        limit = int(value or "")
    except ValueError:
        return MAX_RECORDS
    return min(limit, MAX_RECORDS) if limit >= 1 else MAX_RECORDS


def _classify(payload: Mapping[str, object]) -> BridgeTrigger:
    status, members = Members.of(payload).whole("status"), Members.of(payload.get("result"))
    code = members.text("error_code")
    if (
        members.get("blocked") is True
        or payload.get("blocked") is True
        or "safety" in Members.of(payload).text("error").lower()
        or status in _BLOCKED_STATUSES
        or members.get("status") == "blocked"
        or code in _BLOCKED_CODES
        or code.startswith(_BLOCKED_PREFIXES)
    ):
        return BridgeTrigger.POLICY_REFUSAL
    if members.get("confirmation_required") is True or members.get("confirmed") is True:
        return BridgeTrigger.CONFIRMATION
    if status is None:
        return BridgeTrigger.NO_STATUS
    if status >= 400 or _possible_status(payload) is None:
        return BridgeTrigger.FAILURE
    return BridgeTrigger.SUCCESS


def _possible_status(payload: Mapping[str, object]) -> int | None:
    # An interim status cannot end an HTTP exchange, so 1xx is as impossible as 600.
    return Members.of(payload).whole("status", 200, 599)


def _error_text(payload: Mapping[str, object], outcome: Outcome) -> str | None:
    error = payload.get("error")
    result = payload.get("result")
    if not isinstance(error, str) and outcome.status >= 400 and isinstance(result, dict):
        error = result.get("error")
    if isinstance(error, str):
        return error[:MAX_SUMMARY]
    if outcome.status == 502 and _possible_status(payload) is None:
        return _RELAY_MADE["bad_phone_status"][1]
    return None
