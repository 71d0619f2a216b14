"""Deeds on a core under test: each is named by a number and told what to do by two more, so any bytes are a script.

A script's first byte chooses the service. Then every three bytes are a deed: which, with whom, and what.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from attrs import frozen

from fuzz.cores.clients import Client
from fuzz.cores.driver import LIMITS, Driver, Peer
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.engine.core import Service
from svc_proto.facts import FailureKind
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig

CODE, SECOND_CODE = "ABC123", "XYZ789"
API_KEY = "api-key-5fd1c0de"
MODEL_KEY = "model-key-77aa31"
HOME = "/home/user/.svc"
KINDS_OF_FAILURE = tuple(FailureKind)
TIMES = (0.0, 0.001, 0.02, 0.5, 2.0, 6.0, 16.0, 31.0, 61.0, 80.0, 301.0, 601.0)  # s: past every deadline there is
MOST_DEEDS = 400  # of one script


class Kind(Enum):
    """Which service."""

    RELAY = "relay"
    API = "api"


@frozen
class Ask:
    """A request: `{token}` and the like in it are filled in from what is known."""

    method: str
    path: str
    body: str = ""
    websocket: bool = False
    bearer: bool = True


ASKS: dict[Kind, tuple[Ask, ...]] = {
    Kind.RELAY: (
        Ask("GET", "/ws", websocket=True, bearer=False),
        Ask("GET", "/health", bearer=False),
        Ask("POST", "/pairing/register", '{"code":"XYZ789","grants":{"terminal":60,"bridge":0},"ttl_seconds":100}'),
        Ask("POST", "/pairing", "{}", bearer=False),
        Ask("GET", "/sessions"),
        Ask("DELETE", "/sessions/{prefix}"),
        Ask("PATCH", "/sessions/{prefix}", '{"ttl_seconds":30}'),
        Ask("GET", "/ping"),
        Ask("POST", "/type", '{"text":"hello","password":"hush"}'),
        Ask("POST", "/media/upload", '{"file_name":"a","content":"aGVsbG8=","content_type":"text/plain"}'),
        Ask("GET", "/media/by-path?path=/tmp/svc-uploads/a"),
        Ask("GET", "/media/inspect", bearer=False),
        Ask("GET", "/bridge/activity", bearer=False),
        Ask("GET", "/relay/info", bearer=False),
        Ask("POST", "/clipboard/inbox", '{"format":"png","bytes_b64":"iVBORw0KGgo="}'),
        Ask("GET", "/nowhere"),
        Ask("GET", "/ws", websocket=True, bearer=False),
    ),
    Kind.API: (
        Ask("POST", "/api/sessions", '{"id":"chat","title":"t"}'),
        Ask("POST", "/api/sessions/chat/chat/stream", '{"message":"hello"}'),
        Ask("POST", "/api/sessions/chat/chat", '{"message":"/help"}'),
        Ask("GET", "/api/sessions/chat/messages"),
        Ask("DELETE", "/api/sessions/chat"),
        Ask("POST", "/v1/chat/completions", '{"messages":[{"role":"user","content":"x"}],"stream":true}'),
        Ask("POST", "/v1/runs", '{"input":"hello","session_id":"chat"}'),
        Ask("GET", "/v1/models", bearer=False),
        Ask("GET", "/health", bearer=False),
        Ask("POST", "/v1/responses", '{"input":"hello"}'),
        Ask("GET", "/api/config"),
        Ask("PATCH", "/api/memory", '{"target":"memory","content":"x"}'),
        Ask("GET", "/api/skills"),
    ),
}
WORDS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("system", "auth", {"pairing_code": CODE, "client_surface": "android", "device_id": "one"}),
    ("system", "auth", {"pairing_code": SECOND_CODE, "client_surface": "desktop", "device_id": "two"}),
    ("system", "auth", {"session_token": "{token}"}),
    ("system", "auth", {"pairing_code": "WRONG1"}),
    ("system", "ping", {"ts": 1}),
    ("bridge", "bridge.status", {"device": {"battery": 5}}),
    ("bridge", "bridge.response", {"request_id": "{request}", "status": 200, "result": {"ok": True}}),
    ("terminal", "terminal.attach", {"session_name": "main", "cols": 80, "rows": 24}),
    ("terminal", "terminal.input", {"session_name": "main", "data": "ls\n"}),
    ("terminal", "terminal.resize", {"session_name": "main", "cols": 0, "rows": 9}),
    ("terminal", "terminal.detach", {"session_name": "main"}),
    ("terminal", "terminal.list", {}),
    ("tui", "tui.attach", {"cols": 80, "rows": 24}),
    ("tui", "tui.rpc.request", {"jsonrpc": "2.0", "id": 1, "method": "x"}),
    ("tui", "tui.detach", {}),
    ("notifications", "notification.posted", {"package": "a", "title": "b", "text": "c"}),
    ("chat", "nonsense", {}),
)
SPEECH = (  # of children and of those whom the core called
    b"hello\n",
    b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
    b"\xff\xfe\x00" * 50,
    b"x" * 9000,
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
    b'data: {"choices":[{"index":0,"delta":{"content":"hi "},"finish_reason":null}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno",
)
NOISE = (
    b"GET / HTTP/1.1\r\n",
    b"\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x81\x85\x00\x00\x00\x00hello",
    b"\x88\x80\x00\x00\x00\x00",
    b"\r\n\r\n",
    b"\xff" * 40,
)


class Play:
    """A core and what is done with it."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.driver = Driver(_service(kind), secrets=(API_KEY, MODEL_KEY))

    def come(self, who: int, what: int) -> None:
        """Somebody opens a connection: over HTTP/1.1, over HTTP/2, or with nothing good in mind."""
        client = (Client(http2=False), Client(http2=True), None)[who % 3]
        self.driver.come(client, local=what % 2 == 0)

    def ask(self, who: int, what: int) -> None:
        """A client asks for something."""
        peer = self._visitor(who)
        if peer is None or peer.client is None:
            return
        asks = ASKS[self.kind]
        ask = asks[what % len(asks)]
        tokens = self.driver.tokens
        token = API_KEY if self.kind is Kind.API else tokens[what % len(tokens)] if tokens else "none"
        headers = {"host": "127.0.0.1:8767"}
        if ask.bearer and what < 224:
            headers["authorization"] = f"Bearer {token}"
        path = ask.path.replace("{prefix}", token[:8])
        peer.client.ask(ask.method, path, headers, ask.body.encode(), websocket=ask.websocket)
        self.driver.let_speak(peer)

    def say(self, who: int, what: int) -> None:
        """A client says something on a socket."""
        peer = self._visitor(who)
        if peer is None or peer.client is None:
            return
        channel, kind, members = WORDS[what % len(WORDS)]
        payload = dict(members)
        tokens = self.driver.tokens
        if "session_token" in payload:
            payload["session_token"] = tokens[who % len(tokens)] if tokens else "none"
        if "request_id" in payload:
            requests = [request for other in self.driver.visitors if other.client for request in other.client.requests]
            payload["request_id"] = requests[-1] if requests else "none"
        peer.client.say(what, channel, kind, payload)
        self.driver.let_speak(peer)

    def give_up(self, who: int, what: int) -> None:
        """A client resets a stream."""
        peer = self._visitor(who)
        if peer is not None and peer.client is not None:
            peer.client.give_up(what)
            self.driver.let_speak(peer)

    def speak(self, who: int, what: int) -> None:
        """A child, or somebody whom the core has called, says something; so does a visitor who knows no manners."""
        peer = self._anybody(who)
        if peer is None or peer.client is not None:
            return
        words = NOISE if peer.ch % 2 == 0 else SPEECH
        self.driver.deliver(peer, words[what % len(words)])

    def trickle(self, who: int, what: int) -> None:
        """Some of what waits for the core reaches it."""
        peer = self._anybody(who)
        if peer is not None:
            self.driver.let_speak(peer, 1 + what)

    def disturb(self, who: int, what: int) -> None:
        """Noise gets in between what a client says."""
        peer = self._visitor(who)
        if peer is not None:
            if peer.client is not None:
                peer.client.over = True
            self.driver.deliver(peer, NOISE[what % len(NOISE)])

    def close_read(self, who: int, what: int) -> None:
        """Somebody says no more."""
        peer = self._anybody(who)
        if peer is not None:
            self.driver.close_read(peer)

    def take(self, who: int, what: int) -> None:
        """Somebody reads."""
        peer = self._anybody(who)
        if peer is not None:
            self.driver.take(peer, (what + 1) / 256)

    def close(self, who: int, what: int) -> None:
        """A channel ends."""
        peer = self._anybody(who)
        if peer is not None:
            self.driver.close(peer, what % 3 - 1)

    def answer(self, who: int, what: int) -> None:
        """An operation is answered; one in four fails."""
        pending = list(self.driver.pending)
        if not pending:
            return
        op = pending[who % len(pending)]
        if what % 4 == 0:
            self.driver.fail(op, KINDS_OF_FAILURE[what // 4 % len(KINDS_OF_FAILURE)])
        else:
            self.driver.answer(op)

    def answer_all(self, who: int, what: int) -> None:
        """All of them are, and they succeed."""
        self.driver.answer_all()

    def wait(self, who: int, what: int) -> None:
        """Time passes."""
        seconds = TIMES[what % len(TIMES)]
        if who % 4:
            self.driver.after(seconds)
        else:  # the core is woken up late
            self.driver.wake(self.driver.clock.now + seconds)

    def stop(self, who: int, what: int) -> None:
        """The process is to end."""
        if what % 8 == 0:
            self.driver.stop()

    def _visitor(self, who: int) -> Peer | None:
        visitors = self.driver.visitors
        return visitors[who % len(visitors)] if visitors else None

    def _anybody(self, who: int) -> Peer | None:
        peers = list(self.driver.peers.values())
        return peers[who % len(peers)] if peers else None


Deed: TypeAlias = Callable[[Play, int, int], None]
DEEDS: tuple[Deed, ...] = (
    Play.come,
    Play.ask,
    Play.say,
    Play.answer_all,
    Play.answer,
    Play.take,
    Play.speak,
    Play.wait,
    Play.close,
    Play.close_read,
    Play.trickle,
    Play.disturb,
    Play.give_up,
    Play.stop,
)


def perform(data: bytes) -> Play:
    """Carry out a script, to its end and the core's."""
    kinds = tuple(Kind)
    play = Play(kinds[data[0] % len(kinds)] if data else Kind.RELAY)
    for at in range(1, min(len(data) - 2, 3 * MOST_DEEDS), 3):
        deed, who, what = data[at : at + 3]
        DEEDS[deed % len(DEEDS)](play, who, what)
    play.driver.finish()
    return play


def _service(kind: Kind) -> Service:
    if kind is Kind.RELAY:
        config = RelayConfig(
            home=HOME,
            config_path=f"{HOME}/config.yaml",
            pairing_code=CODE,
            terminal_tmux=False,
            tui_command=("agent", "--tui"),
        )
        return Relay(config, limits=LIMITS)
    return Api(
        ApiConfig(
            home=HOME,
            config_path=f"{HOME}/config.yaml",
            key=API_KEY,
            model_base_url="http://10.0.0.3:9000/v1",
            model="m",
            model_api_key=MODEL_KEY,
            relay_url="http://127.0.0.1:8767",
            max_concurrent_runs=4,
        ),
        limits=LIMITS,
    )
