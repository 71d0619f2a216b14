"""Phone's clients of the `terminal` and `tui` channels of the relay (wire terminal 1, 2), on the phone's socket.

| state   | trigger | next    |                                                                                  |
|---------|---------|---------|----------------------------------------------------------------------------------|
| CLOSED  | `ASK`   | OPENING | the user's first line: `terminal.attach`, or `tui.attach`                        |
| OPENING | `CAME`  | OPEN    | `terminal.attached`, or the agent's session is made: send the queued lines       |
| OPENING | `LEAVE` | CLOSED  | a refusal, no answer in time, or the user: discard the queued lines, report that |
| OPEN    | `LEAVE` | CLOSED  | ended by the relay or the user; the relay keeps the shell where it has tmux      |

Both close with the connection and are opened again by the next line. A line for the agent waits until the line before
is answered. Approval requests of the agent are denied here. The phone's gates confirm commands for the phone; other
requests need a user with a screen (the dashboard's chat).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum

from svc_proto.engine.core import Engine
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.envelope import Envelope
from svc_proto.schema.json_object import JsonObject

__all__ = ["CHANNEL_CLIENT_TABLE", "PAIR_ANEW", "PhoneMessageChannels", "ChannelClientState", "ChannelClientTrigger"]

OPEN_TIMEOUT = 60.0  # s: a desktop's timeout for an agent's gateway (wire terminal 2.4)
MAX_QUEUED_LINES = 20  # lines that wait for the channel
SIZE = {"cols": 80, "rows": 24}
PAIR_ANEW = "to have it, revoke this phone and pair it again (svc phone does so when it starts)"

Payload = Mapping[str, object]
Send = Callable[[str, str, Payload], None]
Tell = Callable[[str, Payload], None]


class ChannelClientState(Enum):
    """State of a channel client."""

    CLOSED = "closed"
    OPENING = "opening"
    OPEN = "open"


class ChannelClientTrigger(Enum):
    """Trigger of a transition of `CHANNEL_CLIENT_TABLE`."""

    ASK = "ask"
    CAME = "came"
    LEAVE = "leave"


CHANNEL_CLIENT_TABLE: Table[ChannelClientState, ChannelClientTrigger] = {
    (ChannelClientState.CLOSED, ChannelClientTrigger.ASK): ChannelClientState.OPENING,
    (ChannelClientState.OPENING, ChannelClientTrigger.CAME): ChannelClientState.OPEN,
    (ChannelClientState.OPENING, ChannelClientTrigger.LEAVE): ChannelClientState.CLOSED,
    (ChannelClientState.OPEN, ChannelClientTrigger.LEAVE): ChannelClientState.CLOSED,
}


class PhoneMessageChannels:
    """Clients of the channels `terminal` and `tui`. The methods are called only while the core handles a fact.

    Events: `terminal` (`text`, as a terminal shows it), `answer` (`text`) and `answered` (`status`) of the agent, and
    notes for the user.
    """

    def __init__(self, engine: Engine, *, device_id: str, send: Send, notify: Tell, online: Callable[[], bool]) -> None:
        self.terminal = _TerminalClient(engine, send, notify, f"{device_id}-tab1")
        self.agent = _TuiClient(engine, send, notify)
        self._notify = notify
        self._online = online

    def type(self, text: str) -> None:
        """Send a line to the shell, after attaching the terminal if necessary; without a relay, notify the user."""
        self._send_line(self.terminal, text)

    def chat(self, text: str) -> None:
        """Send a line to the agent, after attaching to it if necessary; without a relay, notify the user."""
        self._send_line(self.agent, text)

    def detach_all(self) -> bool:
        """Detach from both channels; return False if both were closed."""
        return any([self.terminal.detach(), self.agent.detach()])

    def receive(self, envelope: Envelope) -> None:
        """Pass a message of one of the two channels to the channel's client."""
        (self.terminal if envelope.channel == "terminal" else self.agent).receive(envelope.type, envelope.payload)

    def refused(self, payload: JsonObject) -> None:
        """Close the channels that are being opened, because of `system/error`: most likely the session has no grant.

        A session of an earlier pairing may lack a grant that this phone needs: if the message has the word "grant", the
        note names the remedy.
        """
        why = payload.text("message")
        for line in (self.terminal, self.agent):
            if line.state is ChannelClientState.OPENING:
                line.on_closed(f"{why}; {PAIR_ANEW}" if "grant" in why else why)

    def close_all(self) -> None:
        """Close the channels that are not closed, because the connection is lost."""
        for line in (self.terminal, self.agent):
            line.on_closed("the connection is lost")

    def _send_line(self, line: _ChannelClient, text: str) -> None:
        if self._online():
            line.send_line(text)
        else:
            self._notify("note", {"text": "there is no relay at the moment"})


class _ChannelClient(ABC):
    """Base class of the two channel clients."""

    name: str

    def __init__(self, engine: Engine, send: Send, notify: Tell) -> None:
        self.state = ChannelClientState.CLOSED
        self._send = send
        self._notify = notify
        self._engine = engine
        self._waiting = deque[str]()
        self._pending_call: str | None = None  # the call whose answer precedes the next line
        self._late = engine.timers.timer(lambda: self.on_closed("no answer in time"))

    @property
    def awaits(self) -> bool:
        """Report whether an answer of the agent is pending; always false for a terminal."""
        return self._pending_call is not None

    def send_line(self, text: str) -> None:
        """Send a line, now or once the channel accepts one; if too many lines wait, drop it with a note."""
        if self.state is ChannelClientState.OPEN and not self.awaits:
            self._line(text)
        elif len(self._waiting) == MAX_QUEUED_LINES:
            self._note("too many lines wait already")
        else:
            self._waiting.append(text)
            if self.awaits:
                self._note("the agent has not answered yet: this goes to it next")
            if self.state is ChannelClientState.CLOSED:
                self._step(ChannelClientTrigger.ASK)
                self._late.set(self._engine.now.mono + OPEN_TIMEOUT)
                self._open()

    def on_closed(self, why: str) -> None:
        """Drop the queued lines and report the end of the channel in a note; do nothing if it is closed."""
        if self.state is not ChannelClientState.CLOSED:
            self._late.cancel()
            self._step(ChannelClientTrigger.LEAVE)
            lost = f"; not sent: {len(self._waiting)}" if self._waiting else ""
            self._waiting.clear()
            self._pending_call = None
            self._note(f"{why or 'no reason given'}{lost}")

    def detach(self) -> bool:
        """Detach at the user's request; return False if the channel is closed."""
        if self.state is ChannelClientState.CLOSED:
            return False
        self._bye()
        self.on_closed("left")
        return True

    @abstractmethod
    def receive(self, kind: str, payload: JsonObject) -> None:
        """Handle a message of the channel."""

    @abstractmethod
    def _open(self) -> None:
        """Send the message that requests the channel from the relay."""

    @abstractmethod
    def _line(self, text: str) -> None:
        """Send one line over the open channel."""

    @abstractmethod
    def _bye(self) -> None:
        """Send the message that releases the channel at the relay."""

    def _on_connected(self) -> None:
        self._late.cancel()
        self._step(ChannelClientTrigger.CAME)
        self._resume()

    def _resume(self) -> None:
        while self._waiting and not self.awaits:
            self._line(self._waiting.popleft())

    def _step(self, trigger: ChannelClientTrigger) -> None:
        self.state = step(CHANNEL_CLIENT_TABLE, self.state, trigger)

    def _note(self, text: str) -> None:
        self._notify("note", {"text": f"{self.name}: {text}"})


class _TerminalClient(_ChannelClient):
    name = "shell"

    def __init__(self, engine: Engine, send: Send, notify: Tell, session: str) -> None:
        super().__init__(engine, send, notify)
        self._wanted_session = self._session = session

    def receive(self, kind: str, payload: JsonObject) -> None:
        match kind:
            case "terminal.attached" if self.state is ChannelClientState.OPENING:
                # The name as the relay normalized it.
                self._session = payload.text("session_name") or self._wanted_session
                self._show(payload.text("replay"))
                self._on_connected()
            case "terminal.output":
                self._show(payload.text("data"))
            case "terminal.detached":
                self.on_closed(payload.text("reason"))
            case "terminal.error":
                self.on_closed(payload.text("message"))

    def _open(self) -> None:
        self._send("terminal", "terminal.attach", {"session_name": self._wanted_session, **SIZE})

    def _line(self, text: str) -> None:
        self._send("terminal", "terminal.input", {"session_name": self._session, "data": f"{text}\r"})

    def _bye(self) -> None:
        self._send("terminal", "terminal.detach", {"session_name": self._session})

    def _show(self, text: str) -> None:
        if text:
            self._notify("terminal", {"text": text})


class _TuiClient(_ChannelClient):
    name = "chat"

    def __init__(self, engine: Engine, send: Send, notify: Tell) -> None:
        super().__init__(engine, send, notify)
        self._calls = 0
        self._session = ""

    def receive(self, kind: str, payload: JsonObject) -> None:
        match kind:
            case "tui.attached" if self.state is ChannelClientState.OPENING:
                self._call("session.create", {"cols": SIZE["cols"]})
            case "tui.rpc.response":
                self._answered(payload)
            case "tui.rpc.event" if self.state is ChannelClientState.OPEN:
                params = payload.get_object("params")
                self._event(params.text("type"), params.get_object("payload"))
            case "tui.error":
                self.on_closed(payload.text("message"))

    def _answered(self, response: JsonObject) -> None:
        session = response.get_object("result").text("session_id")
        if response.get("error") is not None:
            why = response.get_object("error").text("message")
            if self.state is ChannelClientState.OPENING:
                self._bye()
                self.on_closed(why)
            else:
                self._note(why or "refused")
                if response.get("id") == self._pending_call:
                    self._on_detached()
        elif self.state is ChannelClientState.OPENING and session:
            self._session = session
            self._on_connected()

    def _event(self, kind: str, payload: JsonObject) -> None:
        match kind:
            case "message.delta":
                self._notify("answer", {"text": payload.text("text")})
            case "message.complete":
                self._notify("answered", {"status": payload.text("status")})
                self._on_detached()
            case "tool.start":
                self._note(f"→ {payload.text('name')} {payload.text('context')}".rstrip())
            case "approval.request":
                self._note("the agent asks for more than it may do from here: denied")
                self._call("approval.respond", {"session_id": self._session, "choice": "deny"})

    def _open(self) -> None:
        self._send("tui", "tui.attach", SIZE)

    def _line(self, text: str) -> None:
        self._pending_call = self._call("prompt.submit", {"session_id": self._session, "text": text})

    def _on_detached(self) -> None:
        self._pending_call = None
        self._resume()

    def _bye(self) -> None:
        self._send("tui", "tui.detach", {})

    def _call(self, method: str, params: Payload) -> str:
        self._calls += 1
        name = f"r{self._calls}"
        self._send("tui", "tui.rpc.request", {"jsonrpc": "2.0", "id": name, "method": method, "params": params})
        return name
