"""Steps of a script: one class for each kind, with its targets and amounts.

An index mostly selects one of the present targets, modulo their number. A choice selects a variant or a second target;
an amount is a number of seconds or bytes, or a level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from attrs import field, fields, frozen

StepT = TypeVar("StepT", bound="Step")
INDEX, CHOICE, AMOUNT = "index", "choice", "amount"
STEP_KINDS: dict[str, type[Step]] = {}  # by name


def index() -> Any:
    """Define a field with the index of a step, which mostly selects one of the present targets."""
    return field(default=0, metadata={"slot": INDEX})


def choice() -> Any:
    """Define a field that selects a variant or a second target."""
    return field(default=0, metadata={"slot": CHOICE})


def amount() -> Any:
    """Define a field with a number of seconds or bytes, or with a level."""
    return field(default=0.0, metadata={"slot": AMOUNT})


@frozen
class Step:
    """Action at `at` seconds from the start; `fuzz.simulation.narration` puts its numbers into the docstring."""

    name: ClassVar[str]
    at: float

    @classmethod
    def of(cls, at: float, index: int = 0, choice: int = 0, amount: float = 0.0) -> Self:
        """Return a step with the numbers for which this kind has a field."""
        given = {INDEX: index, CHOICE: choice, AMOUNT: amount}
        return cls(at, **{name: given[slot] for name, slot in slots(cls).items()})

    def value(self, slot: str) -> float:
        """Return the number in a slot, 0 where this kind has no field for it."""
        return next((getattr(self, name) for name, each in slots(type(self)).items() if each == slot), 0)

    def __str__(self) -> str:
        numbers = (f"{name} {getattr(self, name):g}" for name in slots(type(self)))
        return " ".join([f"{self.at:9.3f} s  {self.name}", *numbers])


@frozen
class Fault(Step):
    """Step that injects a fault."""


@dataclass_transform(frozen_default=True, field_specifiers=(index, choice, amount))
def kind(name: str) -> Callable[[type[StepT]], type[StepT]]:
    """Return a decorator that makes a class of steps frozen, and registers it by its name in scripts."""

    def register(cls: type[StepT]) -> type[StepT]:
        made: type[StepT] = frozen(cls)
        made.name = name
        STEP_KINDS[name] = made
        return made

    return register


def slots(kind: type[Step]) -> dict[str, str]:
    """Return the numbered fields of a kind of step, each with the kind of its number: index, choice or amount."""
    return {each.name: each.metadata["slot"] for each in fields(kind) if "slot" in each.metadata}


# --- pairing and sessions --------------------------------------------------------------------------------------------


@kind("register")
class RegisterCode(Step):
    """The operator registers a code: grants {grants}, lifetime {lifetime:g} s."""

    grants: int = choice()
    lifetime: float = amount()


@kind("pair")
class PairDevice(Step):
    """{the_device} pairs with code {code}."""

    device: int = index()
    code: int = choice()


@kind("reconnect")
class ReconnectSession(Step):
    """The device of session {session} reconnects with its token."""

    session: int = index()
    credential: int = choice()


@kind("leave")
class DisconnectSocket(Step):
    """Socket {socket} is disconnected{reset}."""

    socket: int = index()
    ending: int = choice()


@kind("revoke")
class RevokeSession(Step):
    """Session {caller}, or the operator, revokes session {session}."""

    caller: int = index()
    session: int = choice()


@kind("extend")
class ExtendSession(Step):
    """Session {session} requests other terms: lifetime {lifetime:g} s, grants {grants}."""

    session: int = index()
    grants: int = choice()
    lifetime: float = amount()


@kind("list")
class ListSessions(Step):
    """Session {caller}, or the operator, lists the sessions."""

    caller: int = index()


@kind("come back")
class ReplacePhoneSocket(Step):
    """Phone {phone} reconnects; its last socket ends before, or {seconds:g} s after it, in manner {ending}."""

    phone: int = index()
    ending: int = choice()
    seconds: float = amount()


@kind("renew")
class RenewGrants(Step):
    """Socket {socket} uses its grants, gets {grants}, and uses them at once and {seconds:g} s or more later."""

    socket: int = index()
    grants: int = choice()
    seconds: float = amount()


@kind("ignore")
class IgnoreClose(Step):
    """Socket {socket} ignores the close, and continues to send; its session ends in manner {ending}."""

    socket: int = index()
    ending: int = choice()


@kind("bury")
class RevokeOnFullDisk(Step):
    """Session {session} is revoked while the store refuses changes; 1 s + {seconds:g} s later the relay is killed."""

    session: int = index()
    variant: int = choice()
    seconds: float = amount()


@kind("suspect")
class GuessFromDevice(Step):
    """The device of session {session} guesses, shows its token, and guesses again."""

    session: int = index()


# --- bridge, notifications and terminals -----------------------------------------------------------------------------


@kind("command")
class SendCommand(Step):
    """An agent with session {session} sends command {route} to a phone."""

    session: int = index()
    route: int = choice()
    patience: float = amount()


@kind("notify")
class PostNotification(Step):
    """Socket {socket} posts a notification."""

    socket: int = index()
    notification: int = choice()


@kind("report")
class ReportStatus(Step):
    """Phone {phone} reports its status."""

    phone: int = index()


@kind("stray")
class AnswerForeignCommand(Step):
    """Socket {socket} answers a command that another phone received."""

    socket: int = index()
    victim: int = choice()


@kind("terminal")
class TypeInTerminal(Step):
    """Socket {socket} uses a terminal, action {action}."""

    socket: int = index()
    action: int = choice()


@kind("tui")
class UseGateway(Step):
    """Socket {socket} uses its gateway, action {action}."""

    socket: int = index()
    action: int = choice()


@kind("cut short")
class EndWaitingSession(Step):
    """Session {session} waits for phone {phone}, and ends after {seconds:g} s or more."""

    session: int = index()
    phone: int = choice()
    seconds: float = amount()


@kind("ask")
class AskPhoneUser(Step):
    """Session {session} has the reference phone send a message; its user answers {answer} after {seconds:g} s."""

    session: int = index()
    answer: int = choice()
    seconds: float = amount()


@kind("skim")
class ListNotifications(Step):
    """The operator lists a few notifications: {count}."""

    count: int = index()


# --- media -----------------------------------------------------------------------------------------------------------


@kind("upload")
class UploadMedia(Step):
    """Session {session} uploads {size:g} bytes."""

    session: int = index()
    form: int = choice()
    size: float = amount()


@kind("fetch")
class FetchMedia(Step):
    """Session {session}, or a client without one, fetches media file {medium}."""

    session: int = index()
    medium: int = choice()


@kind("share")
class ShareFile(Step):
    """The operator registers file {file} of the host as media."""

    file: int = index()


@kind("change")
class ChangeFile(Step):
    """A registered file of the host is changed or removed: {file}."""

    file: int = choice()


@kind("download")
class DownloadSlowly(Step):
    """Session {session} reads a large file slowly, and ends after {seconds:g} s in manner {ending}."""

    session: int = index()
    ending: int = choice()
    seconds: float = amount()


# --- attackers and inspectors ----------------------------------------------------------------------------------------


@kind("inspect")
class InspectServer(Step):
    """The operator reads inspector {inspector}."""

    inspector: int = index()


@kind("guess")
class GuessCredentials(Step):
    """{the_attacker} guesses credentials."""

    attacker: int = index()
    pace: int = choice()


@kind("garbage")
class SendGarbage(Step):
    """{the_attacker} sends garbage {data}."""

    attacker: int = index()
    data: int = choice()


@kind("browse")
class TryRoutes(Step):
    """A client without a valid credential requests some routes, from route {route} on."""

    page: int = index()
    route: int = choice()


# --- chats and runs --------------------------------------------------------------------------------------------------


@kind("chat")
class SendChatMessage(Step):
    """A client sends a message in chat {chat}, manner {manner}, and disconnects after {leave_after:g} s (0: stays)."""

    chat: int = index()
    manner: int = choice()
    leave_after: float = amount()


@kind("slow chat")
class ReadChatSlowly(Step):
    """A client requests a long answer in chat {chat}, and reads nothing for {seconds:g} s or more."""

    chat: int = index()
    length: int = choice()
    seconds: float = amount()


@kind("run")
class StartRun(Step):
    """A run is started in chat {chat}, manner {manner}."""

    chat: int = index()
    manner: int = choice()
    watch_after: float = amount()


@kind("stop run")
class StopRun(Step):
    """Run {run} is stopped."""

    run: int = index()


@kind("complete")
class RequestCompletion(Step):
    """Programs ({callers}) request a completion, manner {manner}; one may disconnect after {seconds:g} s."""

    callers: int = index()
    manner: int = choice()
    seconds: float = amount()


@kind("delete chat")
class DeleteChat(Step):
    """Chat {chat} is deleted."""

    chat: int = index()


@kind("note")
class RequestNoteApproval(Step):
    """The agent of chat {chat} requests approval of notes; the answers are {answer}, each after {seconds:g} s."""

    chat: int = index()
    answer: int = choice()
    seconds: float = amount()


@kind("fork")
class ForkChat(Step):
    """Chat {chat} is forked, manner {copy}."""

    chat: int = index()
    copy: int = choice()


@kind("app")
class ChatOnGateway(Step):
    """App phone {phone} uses the gateway of the dashboard, manner {action}."""

    phone: int = index()
    action: int = choice()


@kind("repeat")
class RepeatCompletion(Step):
    """A program repeats a request with its key, manner {manner}, {seconds:g} s or more after the answer."""

    manner: int = choice()
    seconds: float = amount()


# --- MCP -------------------------------------------------------------------------------------------------------------


@kind("mcp")
class UseMcp(Step):
    """An agent with session {session} uses MCP: {action}, {seconds:g} s."""

    session: int = index()
    action: int = choice()
    seconds: float = amount()


# --- several areas ---------------------------------------------------------------------------------------------------


@kind("impatient")
class LeaveEarly(Step):
    """The next client that sends a request disconnects{reset} after {seconds:g} s."""

    ending: int = choice()
    seconds: float = amount()


# --- faults ----------------------------------------------------------------------------------------------------------


@kind("cut")
class CutConnection(Fault):
    """Connection {connection} is cut."""

    connection: int = index()
    seconds: float = amount()


@kind("hang")
class HangConnection(Fault):
    """Connection {connection} hangs for {seconds:g} s."""

    connection: int = index()
    seconds: float = amount()


@kind("part")
class PartitionHost(Fault):
    """Host {host}, a device or the phone, is partitioned from the relay's host for {seconds:g} s."""

    host: int = index()
    seconds: float = amount()


@kind("slow")
class StopReading(Fault):
    """Client {client} does not read for {seconds:g} s."""

    client: int = index()
    seconds: float = amount()


@kind("noise")
class SetNoise(Fault):
    """Network, disk and store fail at level {level:g} from now on (0: no faults)."""

    level: float = amount()


@kind("stop")
class StopProgram(Fault):
    """{the_program} is stopped, and restarted after {seconds:g} s."""

    program: int = index()
    seconds: float = amount()


@kind("kill")
class KillProgram(Fault):
    """{the_program} is killed, and restarted after {seconds:g} s."""

    program: int = index()
    seconds: float = amount()


@kind("disk full")
class FillDisk(Fault):
    """The disk is full for {seconds:g} s."""

    seconds: float = amount()


@kind("clock")
class SetWallClock(Fault):
    """The wall clock of the relay's host is set by {seconds:+g} s."""

    seconds: float = amount()


@kind("refuse")
class RefuseSessionRecord(Fault):
    """The store refuses request {request} for session {session} or a new one; perhaps a restart {seconds:g} s later."""

    session: int = index()
    request: int = choice()
    seconds: float = amount()


@kind("age")
class AdvanceWallClock(Fault):
    """The wall clock of the relay's host advances by {seconds:g} s at the end."""

    seconds: float = amount()


@kind("upstream")
class FailUpstream(Fault):
    """The model fails in manner {manner} for {seconds:g} s."""

    manner: int = choice()
    seconds: float = amount()


@kind("drop")
class DropAnswer(Fault):
    """The model disconnects {seconds:g} s after the next request."""

    seconds: float = amount()


@kind("hiccup")
class RefuseChatRecords(Fault):
    """The store refuses rows of chats for {seconds:g} s."""

    seconds: float = amount()


@kind("disk")
class DegradeDisk(Fault):
    """The disk is degraded, kind {kind}, for {seconds:g} s."""

    kind: int = choice()
    seconds: float = amount()
