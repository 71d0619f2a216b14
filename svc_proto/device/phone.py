"""A phone as a core: pair or reconnect, report its status, perform commands, come back after every loss.

| state      | trigger   | next       |                                                               |
|------------|-----------|------------|---------------------------------------------------------------|
| CONNECTING | OPENED    | SIGNING_IN | the socket is open; `system/auth` is sent                     |
| CONNECTING | FAILED    | RESTING    | no socket: unreachable, or refused with a status               |
| SIGNING_IN | WELCOMED  | ONLINE     | `auth.ok`                                                      |
| SIGNING_IN | REJECTED  | GIVEN_UP   | `auth.fail`: the credential will not get better by retrying    |
| SIGNING_IN | LOST      | RESTING    |                                                               |
| ONLINE     | LOST      | RESTING    |                                                               |
| RESTING    | RETRY     | CONNECTING | after a pause that doubles from 1 to 30 s, or what a 429 asks  |
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import cast

from attrs import frozen

from svc_proto.basics.entropy import new_uuid
from svc_proto.commands import Level, Ready, Tell
from svc_proto.device.handset import Handset, HandsetCommand, Later, NeedsUpload, Reply
from svc_proto.device.upload import upload_file
from svc_proto.engine.channel import Channel
from svc_proto.engine.client import Fetched, open_socket
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task, sleep, wait
from svc_proto.engine.socket import Socket
from svc_proto.facts import Accepted, Failure, OperationId
from svc_proto.machines.table import Table, step
from svc_proto.wire.envelope import parse_envelope, write_envelope
from svc_proto.wire.urls import parse_url

__all__ = ["LIFE", "Phone", "PhoneConfig", "PhoneState", "PhoneTrigger"]

STATUS_EVERY = 30.0  # s, wire bridge 1.3
FIRST_PAUSE = 1.0  # s before the first retry; doubles
LONGEST_PAUSE = 30.0  # s
BLOCKED_PAUSE = 300.0  # s after a 429 that names no time, wire core 1.6
SIGN_IN_WITHIN = 15.0  # s from the open socket to `auth.ok`
FOREVER = 1e12  # s: the end of a socket is the end of this wait
MOST_COMMANDS = 64  # under way at once; a further one is answered with 503


class PhoneState(Enum):
    """Where the phone's connection is."""

    CONNECTING = "connecting"
    SIGNING_IN = "signing in"
    ONLINE = "online"
    RESTING = "resting"
    GIVEN_UP = "given up"


class PhoneTrigger(Enum):
    """What moves it."""

    OPENED = "opened"
    FAILED = "failed"
    WELCOMED = "welcomed"
    REJECTED = "rejected"
    LOST = "lost"
    RETRY = "retry"


LIFE: Table[PhoneState, PhoneTrigger] = {
    (PhoneState.CONNECTING, PhoneTrigger.OPENED): PhoneState.SIGNING_IN,
    (PhoneState.CONNECTING, PhoneTrigger.FAILED): PhoneState.RESTING,
    (PhoneState.SIGNING_IN, PhoneTrigger.WELCOMED): PhoneState.ONLINE,
    (PhoneState.SIGNING_IN, PhoneTrigger.REJECTED): PhoneState.GIVEN_UP,
    (PhoneState.SIGNING_IN, PhoneTrigger.LOST): PhoneState.RESTING,
    (PhoneState.ONLINE, PhoneTrigger.LOST): PhoneState.RESTING,
    (PhoneState.RESTING, PhoneTrigger.RETRY): PhoneState.CONNECTING,
}


@frozen(kw_only=True)
class PhoneConfig:
    """Where the relay is and who we are. Of `code` and `token` at least one; a token is tried first."""

    remote: str  # ws:// or wss://; without a path, /ws is used
    code: str | None = None
    token: str | None = None
    device_name: str = "Reference phone"
    device_id: str = "reference-phone"
    ttl_seconds: int | None = None
    scheme: str = "svc-relay"  # of media markers

    @property
    def socket_url(self) -> str:
        """The URL of the WebSocket."""
        return f"{self.remote.rstrip('/')}/ws" if parse_url(self.remote).target == "/" else self.remote

    @property
    def http_url(self) -> str:
        """The relay's HTTP address, without a path."""
        url = parse_url(self.remote)
        host = f"[{url.host}]" if ":" in url.host else url.host
        return f"{'https' if url.tls else 'http'}://{host}:{url.port}"


class Phone:
    """The phone as a service of an engine. Tells its program `paired`, `online`, `offline` and `performed`."""

    engine: Engine

    def __init__(self, config: PhoneConfig, handset: Handset) -> None:
        self.config = config
        self.handset = handset
        self.state = PhoneState.CONNECTING
        self.token = config.token
        self._main: Task | None = None
        self._socket: Socket | None = None
        self._over: OperationId | None = None  # ticket of whoever waits for the end of the socket
        self._work: dict[int, Task] = {}
        self._performances = 0
        self._refusal = ""
        self._pause = FIRST_PAUSE

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Keep the engine."""
        self.engine = engine
        self._status_timer = engine.timers.timer("status", self._report_status)
        self._sign_in_timer = engine.timers.timer("sign in", self._sign_in_late)

    def on_started(self) -> None:
        """Begin to connect."""
        self.engine.emit(Ready())
        self._main = self.engine.spawn(self._live(), name="connection")

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """A phone listens nowhere."""
        return None

    def on_stopping(self) -> None:
        """Leave in good order."""
        if self._main is not None:
            self._main.cancel()
        self._drop_work()

    # --- SocketHandler ---

    def on_open(self, socket: Socket) -> None:
        """Sign in."""
        self._step(PhoneTrigger.OPENED)
        self._socket = socket
        self._sign_in_timer.set(self.engine.now.mono + SIGN_IN_WITHIN)
        payload: dict[str, object] = {
            "device_name": self.config.device_name,
            "device_hostname": self.config.device_name,
            "device_id": self.config.device_id,
            "device_model": "Simulated handset",
            "device_platform": "Android 16",
            "client_surface": "android",
            "device_form_factor": "phone",
            "supports": {"typed_stream_events": True, "event_schema_version": 1},
        }
        if self.token is not None:
            payload["session_token"] = self.token
        elif self.config.code is not None:
            payload["pairing_code"] = self.config.code
            if self.config.ttl_seconds is not None:
                payload["ttl_seconds"] = self.config.ttl_seconds
        self._send("system", "auth", payload)

    def on_text(self, text: str) -> None:
        """A message of the relay."""
        envelope = parse_envelope(text)
        if envelope is None:
            return
        match (envelope.channel, envelope.type):
            case ("system", "auth.ok") if self.state is PhoneState.SIGNING_IN:
                self._welcomed(envelope.payload)
            case ("system", "auth.fail") if self.state is PhoneState.SIGNING_IN:
                self._rejected(envelope.payload)
            case ("bridge", "bridge.command") if self.state is PhoneState.ONLINE:
                self._command(envelope.payload)
            case _:
                self.engine.log(Level.DEBUG, "ignored message", channel=envelope.channel, type=envelope.type)

    def on_binary(self, data: bytes) -> None:
        """The relay sends none."""

    def on_writable(self) -> None:
        """Nothing is held back here."""

    def on_closed(self, code: int, reason: str) -> None:
        """The socket is gone: what was under way has nobody to report to."""
        self._status_timer.cancel()
        self._sign_in_timer.cancel()
        self._socket = None
        self._drop_work()
        if self.state is PhoneState.GIVEN_UP:
            self.engine.exit(1, self._refusal)
        elif self._over is not None:
            self.engine.resume(self._over, code)

    # --- the connection ---

    def _live(self) -> Flow[None]:
        engine = self.engine
        while True:
            pause = yield from self._connect()
            engine.emit(Tell("offline", {"retry_in": pause}))
            yield from sleep(engine, pause)
            self._step(PhoneTrigger.RETRY)

    def _connect(self) -> Flow[float]:
        """One connection from its opening to its end; the seconds to rest after it."""
        engine = self.engine
        opened = yield from open_socket(engine, self.config.socket_url, self)
        if not isinstance(opened, Socket):
            self._step(PhoneTrigger.FAILED)
            return self._pause_after(opened)
        self._over = engine.new_op()
        yield from wait(self._over, engine.now.mono + FOREVER)
        self._step(PhoneTrigger.LOST)
        return self._next_pause()

    def _pause_after(self, refusal: Fetched | Failure) -> float:
        if isinstance(refusal, Failure):
            self.engine.log(Level.WARNING, "not connected", problem=refusal.kind.value)
            return self._next_pause()
        self.engine.log(Level.WARNING, "not connected", status=refusal.status)
        if refusal.status != 429:
            return self._next_pause()
        wanted = refusal.headers.get(b"retry-after") or b""
        return float(wanted[:6]) if wanted.isdigit() else BLOCKED_PAUSE

    def _next_pause(self) -> float:
        jitter = 1.0 + self.engine.entropy(1)[0] / 1024  # up to a quarter more, so that phones do not come in step
        pause, self._pause = self._pause * jitter, min(self._pause * 2, LONGEST_PAUSE)
        return pause

    def _welcomed(self, payload: Mapping[str, object]) -> None:
        token = payload.get("session_token")
        if not isinstance(token, str) or not token:
            self._rejected({"reason": "the relay sent no session token"})
            return
        self._step(PhoneTrigger.WELCOMED)
        self._sign_in_timer.cancel()
        fresh, self.token = token != self.token, token
        self._pause = FIRST_PAUSE
        news = {"token": token, "expires_at": payload.get("expires_at"), "grants": payload.get("grants")}
        self.engine.emit(Tell("paired" if fresh else "online", news))
        self._report_status()

    def _rejected(self, payload: Mapping[str, object]) -> None:
        self._step(PhoneTrigger.REJECTED)
        reason = payload.get("reason")
        self._refusal = f"the relay refused: {reason if isinstance(reason, str) else 'no reason given'}"
        if self._socket is not None:
            self._socket.close()

    def _sign_in_late(self) -> None:
        if self._socket is not None:
            self._socket.close(1002, "no answer to system/auth")

    # --- the bridge ---

    def _report_status(self) -> None:
        self._send("bridge", "bridge.status", dict(self.handset.status(self.engine.now)))
        self._status_timer.set(self.engine.now.mono + STATUS_EVERY)

    def _command(self, payload: Mapping[str, object]) -> None:
        request_id, method, path = payload.get("request_id"), payload.get("method"), payload.get("path")
        if not (isinstance(request_id, str) and isinstance(method, str) and isinstance(path, str)):
            return  # nobody could be answered (wire bridge 1.1)
        if len(self._work) >= MOST_COMMANDS:
            self._respond(request_id, Reply(503, {"error": "too many commands at once"}))
            return
        body = payload.get("body")
        if not isinstance(body, dict):
            params = payload.get("params")
            body = params if isinstance(params, dict) else {}
        command = HandsetCommand(method, path, cast("dict[str, object]", body), request_id)
        performed = self.handset.perform(command, self.engine.now)
        if isinstance(performed, Reply):
            self._performed(command, performed)
            return
        self._performances += 1
        key = self._performances

        def done(reply: Reply) -> None:
            self._work.pop(key, None)
            self._performed(command, reply)

        self._work[key] = self.engine.spawn(self._finish(performed), name=path, on_done=done)

    def _finish(self, performed: Later | NeedsUpload) -> Flow[Reply]:
        if isinstance(performed, Later):
            yield from sleep(self.engine, performed.seconds)
            return performed.reply
        return (yield from self._upload(performed))

    def _upload(self, file: NeedsUpload) -> Flow[Reply]:
        uploaded = yield from upload_file(self.engine, self.config.http_url, self.token or "", file)
        if uploaded.token is None:
            return Reply(500, {"error": f"the screenshot could not be uploaded: {uploaded.problem}"})
        return self.handset.uploaded(uploaded.token, self.config.scheme)

    def _performed(self, command: HandsetCommand, reply: Reply) -> None:
        self.engine.emit(Tell("performed", {"method": command.method, "path": command.path, "status": reply.status}))
        self._respond(command.request_id, reply)

    def _respond(self, request_id: str, reply: Reply) -> None:
        payload = {"request_id": request_id, "status": reply.status, "result": dict(reply.result)}
        self._send("bridge", "bridge.response", payload)

    def _send(self, channel: str, kind: str, payload: Mapping[str, object]) -> None:
        if self._socket is not None:
            self._socket.send_text(write_envelope(channel, kind, new_uuid(self.engine.entropy), payload))

    def _drop_work(self) -> None:
        work, self._work = self._work, {}
        for task in work.values():
            task.cancel()

    def _step(self, trigger: PhoneTrigger) -> None:
        self.state = step(LIFE, self.state, trigger)
