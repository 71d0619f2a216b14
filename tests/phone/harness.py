"""Phone core with a scripted phone backend, and the relay's end of its connections."""

import json
from collections.abc import Iterable
from typing import Any

from attrs import frozen

from svc_proto import wire
from svc_proto.commands import Command, Connect, Connected, Notify, Ready, Send
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted, Address, ChannelId, Closed, ReadClosed, Received, Sent, Started
from svc_proto.phone.keyboard_control import KEYBOARD
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings
from svc_proto.phone.service import Phone, PhoneConfig, PhoneState
from svc_proto.wire.connection import Role
from svc_proto.wire.http1 import Http1Connection
from tests.phone.safety.scripted_backend import ScriptedBackend
from tests.support.playbook import Playbook, counting_entropy
from tests.wire.connection_pair import drain

RELAY = Address("127.0.0.1", 8767)
STREAM = wire.StreamId(1)
KEYS = ChannelId(2)
TRUSTING = SafetySettings(armed=True, answers=ConfirmationPolicy.ALLOW)
ASKING = SafetySettings(armed=True)
TOKEN = "1c2d3e4f-0000-4000-8000-000000000001"


@frozen
class SentEnvelope:
    """Envelope that the phone sent."""

    channel: str
    type: str
    payload: dict[str, Any]


class RelayEnd:
    """The relay's end of one connection: HTTP first, then a WebSocket once it is accepted."""

    def __init__(self, ch: ChannelId) -> None:
        self.ch = ch
        self.heard = 0  # bytes
        self.conn = Http1Connection(Role.SERVER, entropy=counting_entropy())

    def receive(self, commands: Iterable[Command]) -> list[wire.Event]:
        """Return the events that the phone sent on this channel by these commands."""
        for command in commands:
            if isinstance(command, Send) and command.ch == self.ch:
                self.conn.receive_data(command.data)
                self.heard += len(command.data)
        return drain(self.conn)

    def received_fact(self, *events: wire.Event) -> Received:
        """Return the `Received` fact that delivers `events` of the relay to the phone."""
        for event in events:
            self.conn.send(event)
        return Received(self.ch, self.conn.data_to_send())

    def answer(self, status: int, body: bytes, *fields: tuple[bytes, bytes]) -> Received:
        """Return the fact that delivers a whole response of the relay."""
        head = wire.ResponseHead(STREAM, status, wire.Headers(((b"content-length", b"%d" % len(body)), *fields)))
        return self.received_fact(head, wire.ResponseData(STREAM, body), wire.ResponseEnd(STREAM))


class PhoneHarness:
    """Harness of a phone, with the steps of its relay and of its user's keyboard."""

    def __init__(
        self,
        *,
        remote: str = "ws://127.0.0.1:8767",
        safety: SafetySettings = TRUSTING,
        watched: bool = False,
        backend: ScriptedBackend | None = None,
        **config: Any,
    ) -> None:
        if not config.keys() & {"code", "token"}:
            config["code"] = "ABC123"
        self.backend = backend or ScriptedBackend()
        self.news: list[Notify] = []
        self.phone = Phone(
            PhoneConfig(remote=remote, **config), self.backend, safety, on_notify=self.news.append, watched=watched
        )
        self.engine = Engine(self.phone, entropy=counting_entropy())
        self.book = Playbook(self.engine)
        self.end: RelayEnd

    def is_in(self, state: PhoneState) -> bool:
        return self.phone.state is state

    # --- steps ---

    def start(self) -> Connect:
        """Start the phone and return its first attempt to connect."""
        self.book >> Started()
        ready, connect = (command for command in self.book.drain_commands() if not isinstance(command, Notify))
        assert ready == Ready()
        assert isinstance(connect, Connect)
        return connect

    def connected(self, connect: Connect | None = None) -> RelayEnd:
        """Let a connection attempt succeed, by default the one just ordered; return the relay's end."""
        order = connect or self.book.order(Connect)
        self.book.answer(order, Connected(RELAY))
        return RelayEnd(order.ch)

    def asked(self, connect: Connect) -> wire.RequestHead:
        """Complete a connection attempt and return the request for a WebSocket."""
        self.end = self.connected(connect)
        (head, *_) = self.end.receive(self.book.drain_commands())
        assert isinstance(head, wire.RequestHead)
        assert head.websocket
        return head

    def opened(self, connect: Connect | None = None) -> SentEnvelope:
        """Connect, by `connect` or after a start; accept the WebSocket and return the phone's `system/auth`."""
        self.asked(connect or self.start())
        self.book >> self.end.received_fact(wire.AcceptWebSocket(STREAM))
        (auth,) = self.sent_envelopes()
        return auth

    def online(self, token: str = TOKEN, connect: Connect | None = None) -> None:
        """Connect and authenticate the phone; its first status is consumed."""
        self.opened(connect)
        self.welcome(token)
        (status,) = self.sent_envelopes()
        assert is_status(status)

    def welcome(self, token: str = TOKEN) -> None:
        self.message("system", "auth.ok", {"session_token": token, "expires_at": None, "grants": {"bridge": 5.0}})

    def message(self, channel: str, kind: str, payload: object) -> None:
        """Deliver an envelope of the relay."""
        text = json.dumps({"channel": channel, "type": kind, "id": "id", "payload": payload})
        self.book >> self.end.received_fact(wire.TextMessage(STREAM, text))

    def command(self, path: str, request_id: str = "r1", **more: object) -> None:
        """Deliver a `bridge.command` of the relay."""
        payload = {"request_id": request_id, "method": "POST", "path": path, "params": {}, "body": {}, **more}
        self.message("bridge", "bridge.command", payload)

    def ask(self, request_id: str = "r1", path: str = "/tap_text", **body: object) -> str:
        """Deliver a command that waits for the user; return the id of its confirmation."""
        self.command(path, request_id, body=body or {"text": "Send it"})
        (asked,) = self.book.drain_commands()
        assert isinstance(asked, Notify)
        assert asked.event == "asked"
        return str(asked.fields["confirmation"])

    def open_keyboard(self) -> None:
        """Connect the keyboard of the user."""
        self.book >> Accepted(KEYS, KEYBOARD, KEYBOARD) << []

    def type(self, line: str) -> None:
        """Type a line as the user."""
        self.book >> Received(KEYS, line.encode() + b"\n")

    def delivered(self) -> None:
        """Report the bytes that `end` received since the last call as written, and deliver a pong of the relay."""
        sent, self.end.heard = self.end.heard, 0
        self.book >> Sent(self.end.ch, sent)
        self.book >> Received(self.end.ch, b"\x8a\x00")

    def vanish(self) -> None:
        """Lose the connection; the resulting commands are dropped."""
        (self.book >> Closed(self.end.ch, "reset")).drain_commands()

    def hang_up(self, code: int = 1000) -> None:
        """Close the WebSocket in order, as the relay."""
        for fact in (
            self.end.received_fact(wire.CloseWebSocket(STREAM, code)),
            ReadClosed(self.end.ch),
            Closed(self.end.ch),
        ):
            self.book.drain_commands()
            self.book >> fact

    def next_connect(self) -> Connect:
        """Wait for exactly the pause and return the next attempt to connect."""
        assert self.is_in(PhoneState.BACKING_OFF)
        self.book.after(self.pause() - 0.001) << []
        self.book.after(0.001)
        connect = self.book.order(Connect)
        assert self.is_in(PhoneState.CONNECTING)
        return connect

    # --- results ---

    def pause(self) -> float:
        """Return the pause of the last `offline` notification, in seconds."""
        seconds = [tell for tell in self.news if tell.event == "offline"][-1].fields["retry_in"]
        assert isinstance(seconds, float)
        return seconds

    def sent_envelopes(self) -> list[SentEnvelope]:
        """Return the envelopes among the commands of the last step."""
        envelopes = []
        for event in self.end.receive(self.book.drain_commands()):
            if isinstance(event, wire.Ping | wire.Pong):
                continue
            assert isinstance(event, wire.TextMessage), event
            value = json.loads(event.text)
            envelopes.append(SentEnvelope(value["channel"], value["type"], value["payload"]))
        return envelopes

    def responses(self) -> list[tuple[str, int, dict[str, Any]]]:
        """Return request id, status and result of each envelope of the last step, all of them `bridge.response`."""
        found = []
        for said in self.sent_envelopes():
            assert (said.channel, said.type) == ("bridge", "bridge.response")
            found.append((said.payload["request_id"], said.payload["status"], said.payload["result"]))
        return found

    def new_notifications(self) -> list[Notify]:
        """Return the notifications since the last call."""
        news, self.news[:] = list(self.news), []
        return news


def opened_phone() -> PhoneHarness:
    """Return a phone that has sent `system/auth` and waits for the answer."""
    rig = PhoneHarness()
    rig.opened()
    return rig


def with_keyboard(safety: SafetySettings = ASKING, *, online: bool = True, **options: Any) -> PhoneHarness:
    """Return a phone whose user has a keyboard; earlier notifications are consumed."""
    rig = PhoneHarness(token=TOKEN, safety=safety, **options)
    if online:
        rig.online()
    else:
        rig.start()
    rig.open_keyboard()
    rig.new_notifications()
    return rig


def notes(commands: Iterable[Command]) -> list[str]:
    """Return the notes to the user among commands."""
    return [str(tell.fields["text"]) for tell in commands if isinstance(tell, Notify) and tell.event == "note"]


def connects(commands: Iterable[Command]) -> list[Connect]:
    return [command for command in commands if isinstance(command, Connect)]


def is_status(said: SentEnvelope) -> bool:
    """Report whether an envelope with a battery level is a `bridge.status` of the backend and the gates."""
    wanted = (said.channel, said.type, said.payload["battery"])
    return wanted == ("bridge", "bridge.status", 64) and {"bridge", "safety", "unattended"} <= set(said.payload)


def request(events: Iterable[wire.Event]) -> tuple[wire.RequestHead, bytes]:
    """Return the one request among events, with its body."""
    gathered = list(events)
    (head,) = [event for event in gathered if isinstance(event, wire.RequestHead)]
    return head, b"".join(event.data for event in gathered if isinstance(event, wire.RequestData))
