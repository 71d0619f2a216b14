"""Script of actions on a core under test: any bytes are a valid script.

The first byte selects the service. Then each three bytes are an action: its kind, its peer, and a variant.
"""

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from attrs import frozen

from fuzz.cores.clients import CoreClient
from fuzz.cores.driver import LIMITS, CoreDriver, FuzzPeer
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
TIMES = (0.0, 0.001, 0.02, 0.5, 2.0, 6.0, 16.0, 31.0, 61.0, 80.0, 301.0, 601.0)  # s: past every deadline
MAX_ACTIONS = 400  # of one script


class ServiceKind(Enum):
    """Kind of the service under test: a relay or an API server."""

    RELAY = "relay"
    API = "api"


@frozen
class RequestTemplate:
    """HTTP request of a script; `{prefix}` in its path stands for the start of the token chosen for the request."""

    method: str
    path: str
    body: str = ""
    websocket: bool = False
    bearer: bool = True


ASKS: dict[ServiceKind, tuple[RequestTemplate, ...]] = {
    ServiceKind.RELAY: (
        RequestTemplate("GET", "/ws", websocket=True, bearer=False),
        RequestTemplate("GET", "/health", bearer=False),
        RequestTemplate(
            "POST", "/pairing/register", '{"code":"XYZ789","grants":{"terminal":60,"bridge":0},"ttl_seconds":100}'
        ),
        RequestTemplate("POST", "/pairing", "{}", bearer=False),
        RequestTemplate("GET", "/sessions"),
        RequestTemplate("DELETE", "/sessions/{prefix}"),
        RequestTemplate("PATCH", "/sessions/{prefix}", '{"ttl_seconds":30}'),
        RequestTemplate("GET", "/ping"),
        RequestTemplate("POST", "/type", '{"text":"hello","password":"hush"}'),
        RequestTemplate("POST", "/media/upload", '{"file_name":"a","content":"aGVsbG8=","content_type":"text/plain"}'),
        RequestTemplate("GET", "/media/by-path?path=/tmp/svc-uploads/a"),
        RequestTemplate("GET", "/media/inspect", bearer=False),
        RequestTemplate("GET", "/bridge/activity", bearer=False),
        RequestTemplate("GET", "/relay/info", bearer=False),
        RequestTemplate("POST", "/clipboard/inbox", '{"format":"png","bytes_b64":"iVBORw0KGgo="}'),
        RequestTemplate("GET", "/nowhere"),
        RequestTemplate("GET", "/ws", websocket=True, bearer=False),
    ),
    ServiceKind.API: (
        RequestTemplate("POST", "/api/sessions", '{"id":"chat","title":"t"}'),
        RequestTemplate("POST", "/api/sessions/chat/chat/stream", '{"message":"hello"}'),
        RequestTemplate("POST", "/api/sessions/chat/chat", '{"message":"/help"}'),
        RequestTemplate("GET", "/api/sessions/chat/messages"),
        RequestTemplate("DELETE", "/api/sessions/chat"),
        RequestTemplate("POST", "/v1/chat/completions", '{"messages":[{"role":"user","content":"x"}],"stream":true}'),
        RequestTemplate("POST", "/v1/runs", '{"input":"hello","session_id":"chat"}'),
        RequestTemplate("GET", "/v1/models", bearer=False),
        RequestTemplate("GET", "/health", bearer=False),
        RequestTemplate("POST", "/v1/responses", '{"input":"hello"}'),
        RequestTemplate("GET", "/api/config"),
        RequestTemplate("PATCH", "/api/memory", '{"target":"memory","content":"x"}'),
        RequestTemplate("GET", "/api/skills"),
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
SPEECH = (  # output of children and of servers that the core calls
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
    b"GET / HTTP/1.1\r\n", b"\x00\x00\x00\x04\x00\x00\x00\x00\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x81\x85\x00\x00\x00\x00hello", b"\x88\x80\x00\x00\x00\x00", b"\r\n\r\n", b"\xff" * 40
)  # fmt: skip


class CoreScriptRun:
    """A core under test, and the actions on it that the bytes of a script select."""

    def __init__(self, kind: ServiceKind) -> None:
        self.kind = kind
        self.driver = CoreDriver(_service(kind), secrets=(API_KEY, MODEL_KEY))

    def connect(self, who: int, what: int) -> None:
        """Open a connection: over HTTP/1.1, over HTTP/2, or without a valid client."""
        client = (CoreClient(http2=False), CoreClient(http2=True), None)[who % 3]
        self.driver.connect_client(client, local=what % 2 == 0)

    def send_request(self, who: int, what: int) -> None:
        """Send a request of a client; one that needs a token has a known one for most variants, or `none`."""
        peer = self._pick_accepted(who)
        if peer is None or peer.client is None:
            return
        asks = ASKS[self.kind]
        ask = asks[what % len(asks)]
        tokens = self.driver.tokens
        token = API_KEY if self.kind is ServiceKind.API else tokens[what % len(tokens)] if tokens else "none"
        headers = {"host": "127.0.0.1:8767"}
        if ask.bearer and what < 224:
            headers["authorization"] = f"Bearer {token}"
        path = ask.path.replace("{prefix}", token[:8])
        peer.client.send_request(ask.method, path, headers, ask.body.encode(), websocket=ask.websocket)
        self.driver.deliver_waiting(peer)

    def send_envelope(self, who: int, what: int) -> None:
        """Send one of the envelopes of `WORDS` as a client, with a known token or request id where it needs one."""
        peer = self._pick_accepted(who)
        if peer is None or peer.client is None:
            return
        channel, kind, members = WORDS[what % len(WORDS)]
        payload = dict(members)
        tokens = self.driver.tokens
        if "session_token" in payload:
            payload["session_token"] = tokens[who % len(tokens)] if tokens else "none"
        if "request_id" in payload:
            requests = [
                request for other in self.driver.accepted_peers if other.client for request in other.client.requests
            ]
            payload["request_id"] = requests[-1] if requests else "none"
        peer.client.send_envelope(what, channel, kind, payload)
        self.driver.deliver_waiting(peer)

    def reset_stream(self, who: int, what: int) -> None:
        """Reset a stream of a client."""
        peer = self._pick_accepted(who)
        if peer is not None and peer.client is not None:
            peer.client.reset_stream(what)
            self.driver.deliver_waiting(peer)

    def send_bytes(self, who: int, what: int) -> None:
        """Send fixed bytes to the core, from a child, a called server, or an accepted peer without a client."""
        peer = self._pick_peer(who)
        if peer is None or peer.client is not None:
            return
        words = NOISE if peer.ch % 2 == 0 else SPEECH
        self.driver.deliver(peer, words[what % len(words)])

    def deliver_some(self, who: int, what: int) -> None:
        """Deliver up to `what` + 1 waiting bytes of a peer to the core."""
        if (peer := self._pick_peer(who)) is not None:
            self.driver.deliver_waiting(peer, 1 + what)

    def inject_noise(self, who: int, what: int) -> None:
        """Send invalid bytes from an accepted peer; from then on, its client ignores what the core sends."""
        peer = self._pick_accepted(who)
        if peer is not None:
            if peer.client is not None:
                peer.client.over = True
            self.driver.deliver(peer, NOISE[what % len(NOISE)])

    def close_read(self, who: int, what: int) -> None:
        """Close the sending side of a peer."""
        if (peer := self._pick_peer(who)) is not None:
            self.driver.close_read(peer)

    def drain(self, who: int, what: int) -> None:
        """Let a peer read a share of the core's unsent bytes."""
        if (peer := self._pick_peer(who)) is not None:
            self.driver.drain(peer, (what + 1) / 256)

    def close(self, who: int, what: int) -> None:
        """Close the channel of a peer from the peer's side."""
        if (peer := self._pick_peer(who)) is not None:
            self.driver.close(peer, what % 3 - 1)

    def answer(self, who: int, what: int) -> None:
        """Execute a pending operation, or report its failure for one in four values of `what`."""
        pending = list(self.driver.pending)
        if not pending:
            return
        op = pending[who % len(pending)]
        if what % 4 == 0:
            self.driver.fail(op, KINDS_OF_FAILURE[what // 4 % len(KINDS_OF_FAILURE)])
        else:
            self.driver.answer(op)

    def answer_all(self, who: int, what: int) -> None:
        """Execute all pending operations, and those that follow; `who` and `what` are not used."""
        self.driver.answer_all()

    def wait(self, who: int, what: int) -> None:
        """Advance the time; for one in four values of `who`, the core is called only at the end."""
        seconds = TIMES[what % len(TIMES)]
        if who % 4:
            self.driver.after(seconds)
        else:  # the core is called late
            self.driver.wake(self.driver.clock.now + seconds)

    def stop(self, who: int, what: int) -> None:
        """Stop the process, if `what` is a multiple of 8."""
        if what % 8 == 0:
            self.driver.stop()

    def _pick_accepted(self, who: int) -> FuzzPeer | None:
        visitors = self.driver.accepted_peers
        return visitors[who % len(visitors)] if visitors else None

    def _pick_peer(self, who: int) -> FuzzPeer | None:
        peers = list(self.driver.peers.values())
        return peers[who % len(peers)] if peers else None


Action: TypeAlias = Callable[[CoreScriptRun, int, int], None]
ACTIONS: tuple[Action, ...] = (
    CoreScriptRun.connect, CoreScriptRun.send_request, CoreScriptRun.send_envelope, CoreScriptRun.answer_all,
    CoreScriptRun.answer, CoreScriptRun.drain, CoreScriptRun.send_bytes, CoreScriptRun.wait, CoreScriptRun.close,
    CoreScriptRun.close_read, CoreScriptRun.deliver_some, CoreScriptRun.inject_noise, CoreScriptRun.reset_stream,
    CoreScriptRun.stop
)  # fmt: skip


def run_core_script(data: bytes) -> CoreScriptRun:
    """Run a script, stop the core at its end, and return the run."""
    kinds = tuple(ServiceKind)
    play = CoreScriptRun(kinds[data[0] % len(kinds)] if data else ServiceKind.RELAY)
    for at in range(1, min(len(data) - 2, 3 * MAX_ACTIONS), 3):
        action, who, what = data[at : at + 3]
        ACTIONS[action % len(ACTIONS)](play, who, what)
    play.driver.finish()
    return play


def _service(kind: ServiceKind) -> Service:
    if kind is ServiceKind.RELAY:
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
