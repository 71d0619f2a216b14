"""Steps of a script: one class for each kind, with its targets and amounts.

The type of a number is its meaning. An index mostly selects one of the present targets, modulo their number. A choice
selects a variant or a second target; an amount is a number of seconds or bytes, or a level.
"""

from __future__ import annotations

from typing import ClassVar, Self, TypeAlias, dataclass_transform

from attrs import frozen

Index: TypeAlias = int
Choice: TypeAlias = int
Amount: TypeAlias = float
INDEX, CHOICE, AMOUNT = "Index", "Choice", "Amount"
STEP_KINDS: dict[str, type[Step]] = {}  # by name


@dataclass_transform(frozen_default=True)
class _FrozenValue:
    def __init_subclass__(cls) -> None:
        frozen(cls, slots=False)  # changes the class itself


class Step(_FrozenValue):
    """Action at `at` seconds from the start; `fuzz.simulation.narration` puts its numbers into the docstring."""

    name: ClassVar[str]  # in scripts
    at: float

    def __init_subclass__(cls, name: str = "") -> None:
        super().__init_subclass__()
        if name:
            cls.name = name
            STEP_KINDS[name] = cls

    @classmethod
    def of(cls, at: float, index: int = 0, choice: int = 0, amount: float = 0.0) -> Self:
        """Return a step with the numbers for which this kind has a field."""
        given = {INDEX: index, CHOICE: choice, AMOUNT: amount}
        return cls(at, **{name: given[slot] for name, slot in slots(cls).items()})

    def changed(self, **values: float) -> Self:
        """Return a copy of the step with other values of some fields."""
        return type(self)(**{**vars(self), **values})

    def value(self, slot: str) -> float:
        """Return the number in a slot, 0 where this kind has no field for it."""
        return next((getattr(self, name) for name, each in slots(type(self)).items() if each == slot), 0)

    def __str__(self) -> str:
        numbers = (f"{name} {getattr(self, name):g}" for name in slots(type(self)))
        return " ".join([f"{self.at:9.3f} s  {self.name}", *numbers])


class Fault(Step):
    """Step that injects a fault."""


def slots(kind: type[Step]) -> dict[str, str]:
    """Return the numbered fields of a kind of step, each with the name of its type: `INDEX`, `CHOICE` or `AMOUNT`."""
    return dict(kind.__annotations__)


# --- pairing and sessions --------------------------------------------------------------------------------------------


class RegisterCode(Step, name="register"):
    """The operator registers a code: grants {grants}, lifetime {lifetime:g} s."""

    grants: Choice = 0
    lifetime: Amount = 0.0


class PairDevice(Step, name="pair"):
    """{the_device} pairs with code {code}."""

    device: Index = 0
    code: Choice = 0


class ReconnectSession(Step, name="reconnect"):
    """The device of session {session} reconnects with its token."""

    session: Index = 0
    credential: Choice = 0


class DisconnectSocket(Step, name="leave"):
    """Socket {socket} is disconnected{reset}."""

    socket: Index = 0
    ending: Choice = 0


class RevokeSession(Step, name="revoke"):
    """Session {caller}, or the operator, revokes session {session}."""

    caller: Index = 0
    session: Choice = 0


class ExtendSession(Step, name="extend"):
    """Session {session} requests other terms: lifetime {lifetime:g} s, grants {grants}."""

    session: Index = 0
    grants: Choice = 0
    lifetime: Amount = 0.0


class ListSessions(Step, name="list"):
    """Session {caller}, or the operator, lists the sessions."""

    caller: Index = 0


class ReplacePhoneSocket(Step, name="come back"):
    """Phone {phone} reconnects; its last socket ends before, or {seconds:g} s after it, in manner {ending}."""

    phone: Index = 0
    ending: Choice = 0
    seconds: Amount = 0.0


class RenewGrants(Step, name="renew"):
    """Socket {socket} uses its grants, gets {grants}, and uses them at once and {seconds:g} s or more later."""

    socket: Index = 0
    grants: Choice = 0
    seconds: Amount = 0.0


class IgnoreClose(Step, name="ignore"):
    """Socket {socket} ignores the close, and continues to send; its session ends in manner {ending}."""

    socket: Index = 0
    ending: Choice = 0


class RevokeOnFullDisk(Step, name="bury"):
    """Session {session} is revoked while the store refuses changes; 1 s + {seconds:g} s later the relay is killed."""

    session: Index = 0
    variant: Choice = 0
    seconds: Amount = 0.0


class GuessFromDevice(Step, name="suspect"):
    """The device of session {session} guesses, shows its token, and guesses again."""

    session: Index = 0


# --- bridge, notifications and terminals -----------------------------------------------------------------------------


class SendCommand(Step, name="command"):
    """An agent with session {session} sends command {route} to a phone."""

    session: Index = 0
    route: Choice = 0
    patience: Amount = 0.0


class PostNotification(Step, name="notify"):
    """Socket {socket} posts a notification."""

    socket: Index = 0
    notification: Choice = 0


class ReportStatus(Step, name="report"):
    """Phone {phone} reports its status."""

    phone: Index = 0


class AnswerForeignCommand(Step, name="stray"):
    """Socket {socket} answers a command that another phone received."""

    socket: Index = 0
    victim: Choice = 0


class TypeInTerminal(Step, name="terminal"):
    """Socket {socket} uses a terminal, action {action}."""

    socket: Index = 0
    action: Choice = 0


class UseGateway(Step, name="tui"):
    """Socket {socket} uses its gateway, action {action}."""

    socket: Index = 0
    action: Choice = 0


class EndWaitingSession(Step, name="cut short"):
    """Session {session} waits for phone {phone}, and ends after {seconds:g} s or more."""

    session: Index = 0
    phone: Choice = 0
    seconds: Amount = 0.0


class AskPhoneUser(Step, name="ask"):
    """Session {session} has the reference phone send a message; its user answers {answer} after {seconds:g} s."""

    session: Index = 0
    answer: Choice = 0
    seconds: Amount = 0.0


class ListNotifications(Step, name="skim"):
    """The operator lists a few notifications: {count}."""

    count: Index = 0


# --- media -----------------------------------------------------------------------------------------------------------


class UploadMedia(Step, name="upload"):
    """Session {session} uploads {size:g} bytes."""

    session: Index = 0
    form: Choice = 0
    size: Amount = 0.0


class FetchMedia(Step, name="fetch"):
    """Session {session}, or a client without one, fetches media file {medium}."""

    session: Index = 0
    medium: Choice = 0


class ShareFile(Step, name="share"):
    """The operator registers file {file} of the host as media."""

    file: Index = 0


class ChangeFile(Step, name="change"):
    """A registered file of the host is changed or removed: {file}."""

    file: Choice = 0


class DownloadSlowly(Step, name="download"):
    """Session {session} reads a large file slowly, and ends after {seconds:g} s in manner {ending}."""

    session: Index = 0
    ending: Choice = 0
    seconds: Amount = 0.0


# --- attackers and inspectors ----------------------------------------------------------------------------------------


class InspectServer(Step, name="inspect"):
    """The operator reads inspector {inspector}."""

    inspector: Index = 0


class GuessCredentials(Step, name="guess"):
    """{the_attacker} guesses credentials."""

    attacker: Index = 0
    pace: Choice = 0


class SendGarbage(Step, name="garbage"):
    """{the_attacker} sends garbage {data}."""

    attacker: Index = 0
    data: Choice = 0


class TryRoutes(Step, name="browse"):
    """A client without a valid credential requests some routes, from route {route} on."""

    page: Index = 0
    route: Choice = 0


# --- chats and runs --------------------------------------------------------------------------------------------------


class SendChatMessage(Step, name="chat"):
    """A client sends a message in chat {chat}, manner {manner}, and disconnects after {leave_after:g} s (0: stays)."""

    chat: Index = 0
    manner: Choice = 0
    leave_after: Amount = 0.0


class ReadChatSlowly(Step, name="slow chat"):
    """A client requests a long answer in chat {chat}, and reads nothing for {seconds:g} s or more."""

    chat: Index = 0
    length: Choice = 0
    seconds: Amount = 0.0


class StartRun(Step, name="run"):
    """A run is started in chat {chat}, manner {manner}."""

    chat: Index = 0
    manner: Choice = 0
    watch_after: Amount = 0.0


class StopRun(Step, name="stop run"):
    """Run {run} is stopped."""

    run: Index = 0


class RequestCompletion(Step, name="complete"):
    """Programs ({callers}) request a completion, manner {manner}; one may disconnect after {seconds:g} s."""

    callers: Index = 0
    manner: Choice = 0
    seconds: Amount = 0.0


class DeleteChat(Step, name="delete chat"):
    """Chat {chat} is deleted."""

    chat: Index = 0


class RequestNoteApproval(Step, name="note"):
    """The agent of chat {chat} requests approval of notes; the answers are {answer}, each after {seconds:g} s."""

    chat: Index = 0
    answer: Choice = 0
    seconds: Amount = 0.0


class ForkChat(Step, name="fork"):
    """Chat {chat} is forked, manner {copy}."""

    chat: Index = 0
    copy: Choice = 0


class ChatOnGateway(Step, name="app"):
    """App phone {phone} uses the gateway of the dashboard, manner {action}."""

    phone: Index = 0
    action: Choice = 0


class RepeatCompletion(Step, name="repeat"):
    """A program repeats a request with its key, manner {manner}, {seconds:g} s or more after the answer."""

    manner: Choice = 0
    seconds: Amount = 0.0


# --- MCP -------------------------------------------------------------------------------------------------------------


class UseMcp(Step, name="mcp"):
    """An agent with session {session} uses MCP: {action}, {seconds:g} s."""

    session: Index = 0
    action: Choice = 0
    seconds: Amount = 0.0


# --- several areas ---------------------------------------------------------------------------------------------------


class LeaveEarly(Step, name="impatient"):
    """The next client that sends a request disconnects{reset} after {seconds:g} s."""

    ending: Choice = 0
    seconds: Amount = 0.0


# --- faults ----------------------------------------------------------------------------------------------------------


class CutConnection(Fault, name="cut"):
    """Connection {connection} is cut."""

    connection: Index = 0
    seconds: Amount = 0.0


class HangConnection(Fault, name="hang"):
    """Connection {connection} hangs for {seconds:g} s."""

    connection: Index = 0
    seconds: Amount = 0.0


class PartitionHost(Fault, name="part"):
    """Host {host}, a device or the phone, is partitioned from the relay's host for {seconds:g} s."""

    host: Index = 0
    seconds: Amount = 0.0


class StopReading(Fault, name="slow"):
    """Client {client} does not read for {seconds:g} s."""

    client: Index = 0
    seconds: Amount = 0.0


class SetNoise(Fault, name="noise"):
    """Network, disk and store fail at level {level:g} from now on (0: no faults)."""

    level: Amount = 0.0


class StopProgram(Fault, name="stop"):
    """{the_program} is stopped, and restarted after {seconds:g} s."""

    program: Index = 0
    seconds: Amount = 0.0


class KillProgram(Fault, name="kill"):
    """{the_program} is killed, and restarted after {seconds:g} s."""

    program: Index = 0
    seconds: Amount = 0.0


class FillDisk(Fault, name="disk full"):
    """The disk is full for {seconds:g} s."""

    seconds: Amount = 0.0


class SetWallClock(Fault, name="clock"):
    """The wall clock of the relay's host is set by {seconds:+g} s."""

    seconds: Amount = 0.0


class RefuseSessionRecord(Fault, name="refuse"):
    """The store refuses request {request} for session {session} or a new one; perhaps a restart {seconds:g} s later."""

    session: Index = 0
    request: Choice = 0
    seconds: Amount = 0.0


class AdvanceWallClock(Fault, name="age"):
    """The wall clock of the relay's host advances by {seconds:g} s at the end."""

    seconds: Amount = 0.0


class FailUpstream(Fault, name="upstream"):
    """The model fails in manner {manner} for {seconds:g} s."""

    manner: Choice = 0
    seconds: Amount = 0.0


class DropAnswer(Fault, name="drop"):
    """The model disconnects {seconds:g} s after the next request."""

    seconds: Amount = 0.0


class RefuseChatRecords(Fault, name="hiccup"):
    """The store refuses rows of chats for {seconds:g} s."""

    seconds: Amount = 0.0


class DegradeDisk(Fault, name="disk"):
    """The disk is degraded, kind {kind}, for {seconds:g} s."""

    kind: Choice = 0
    seconds: Amount = 0.0
