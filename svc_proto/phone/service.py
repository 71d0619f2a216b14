"""Phone as a core: pair or reconnect, report its status, execute commands, reconnect after every loss.

| state       | trigger       | next        |                                                             |
|-------------|---------------|-------------|-------------------------------------------------------------|
| CONNECTING  | OPENED        | SIGNING_IN  | the socket is open; `system/auth` is sent                   |
| CONNECTING  | FAILED        | BACKING_OFF | no socket: no answer, or refused with a status              |
| SIGNING_IN  | AUTHENTICATED | ONLINE      | `auth.ok`                                                   |
| SIGNING_IN  | REJECTED      | GIVEN_UP    | `auth.fail`, but for a timeout; no valid token in `auth.ok` |
| SIGNING_IN  | LOST          | BACKING_OFF | the socket closed, or the answer took too long              |
| ONLINE      | LOST          | BACKING_OFF |                                                             |
| BACKING_OFF | RETRY         | CONNECTING  | after a pause, or at once when the network changes          |
| GIVEN_UP    | STOP          | GIVEN_UP    | the reason of the refusal is kept                           |
| the others  | STOP          | STOPPED     | the process will end                                        |

The pause doubles from 1 to 30 s, plus up to a quarter; a response 429 determines its own.

Over TLS the relay's key is pinned at the first sign-in, or from the start with `PhoneConfig.pin`, for as long as the
process runs (`tls.expect`, `tls.seen`: computations that the program provides).

Credentials: until the first `auth.ok`, `system/auth` carries token and code, each if it is set. The relay tries the
token first (wire core 1.3), so that a refused token falls back to the code. The first `auth.ok` discards the code,
since it is valid once; afterwards the phone has the token that `auth.ok` brought.

Every command of the relay that is executed has passed the safety gates (`svc_proto.phone.safety`), which belong to the
phone, not to a connection. The toggle and the user's trusted actions survive a reconnect; commands that wait for the
user do not.
"""

from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum

from attrs import field, frozen

from svc_proto.basics.brand import BRANDS, SVC
from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.sanitize import sanitize_line
from svc_proto.commands import Compute, Level, Notify, Ready
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task, run_operation
from svc_proto.engine.http_client import HttpResult, bearer_header, fetch, websocket_upgrade
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Accepted, Failure, FailureKind
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.machines.transitions import Table, step
from svc_proto.phone.attachment_fetcher import AttachmentFetcher
from svc_proto.phone.command_executor import CommandExecutor
from svc_proto.phone.keyboard_control import KEYBOARD, KeyboardInputChannel
from svc_proto.phone.preferences import Preferences
from svc_proto.phone.safety.blocklist import Blocklist
from svc_proto.phone.safety.gate import SafetyGate
from svc_proto.phone.safety.gate_interface import SystemBackend
from svc_proto.phone.safety.settings import SafetySettings
from svc_proto.phone.safety.view import SafetyView
from svc_proto.phone.terminal_channels import PhoneMessageChannels
from svc_proto.phone.user_controls import UserControls
from svc_proto.phone.voice_client import PhoneVoiceClient
from svc_proto.schema.envelope import parse_envelope, write_envelope
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.candidate_prober import CandidateProber
from svc_proto.service_clients.default_ttl import default_ttl
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.relay_url import RelayUrl

__all__ = ["PHONE_TABLE", "Phone", "PhoneConfig", "PhoneState", "PhoneTrigger"]

STATUS_INTERVAL = 30.0  # s, wire bridge 1.3
FIRST_PAUSE = 1.0  # s before the first retry; doubles
MAX_PAUSE = 30.0  # s
BLOCKED_PAUSE = 300.0  # s after a 429 that names no time, wire core 1.6
MAX_RETRY_AFTER = 3600.0  # s: a longer Retry-After is cut to this
OPEN_TIMEOUT = 15.0  # s for the connection and the handshake
SIGN_IN_TIMEOUT = 15.0  # s from the open socket to `auth.ok`, wire core 1.6
MAX_NOTIFICATIONS = 50  # notifications that wait for a relay; the oldest is dropped (wire core 7.2)
MAX_REASON_CHARS = 200  # characters of a relay's text that are passed on


class PhoneState(Enum):
    """State of the phone's connection."""

    CONNECTING = "connecting"
    SIGNING_IN = "signing in"
    ONLINE = "online"
    BACKING_OFF = "backing off"
    GIVEN_UP = "given up"
    STOPPED = "stopped"


class PhoneTrigger(Enum):
    """Trigger of a transition of `PHONE_TABLE`."""

    OPENED = "opened"
    FAILED = "failed"
    AUTHENTICATED = "authenticated"
    REJECTED = "rejected"
    LOST = "lost"
    RETRY = "retry"
    STOP = "stop"


PHONE_TABLE: Table[PhoneState, PhoneTrigger] = {
    (PhoneState.CONNECTING, PhoneTrigger.OPENED): PhoneState.SIGNING_IN,
    (PhoneState.CONNECTING, PhoneTrigger.FAILED): PhoneState.BACKING_OFF,
    (PhoneState.SIGNING_IN, PhoneTrigger.AUTHENTICATED): PhoneState.ONLINE,
    (PhoneState.SIGNING_IN, PhoneTrigger.REJECTED): PhoneState.GIVEN_UP,
    (PhoneState.SIGNING_IN, PhoneTrigger.LOST): PhoneState.BACKING_OFF,
    (PhoneState.ONLINE, PhoneTrigger.LOST): PhoneState.BACKING_OFF,
    (PhoneState.BACKING_OFF, PhoneTrigger.RETRY): PhoneState.CONNECTING,
    (PhoneState.CONNECTING, PhoneTrigger.STOP): PhoneState.STOPPED,
    (PhoneState.SIGNING_IN, PhoneTrigger.STOP): PhoneState.STOPPED,
    (PhoneState.ONLINE, PhoneTrigger.STOP): PhoneState.STOPPED,
    (PhoneState.BACKING_OFF, PhoneTrigger.STOP): PhoneState.STOPPED,
    (PhoneState.GIVEN_UP, PhoneTrigger.STOP): PhoneState.GIVEN_UP,
}

CONNECTED_STATES = (PhoneState.SIGNING_IN, PhoneState.ONLINE)
DEFAULT_SAFETY = SafetySettings()
DEFAULTS = Preferences()


@frozen(kw_only=True)
class PhoneConfig:
    """Addresses, credentials and description of a phone; at least one of `code` and `token` must be set.

    `remote` is a ws:// or wss:// URL that `parse_url` accepts; without a path, /ws is used. With `routes` the phone
    chooses among their addresses instead. Uploads and downloads go to the host and port of the address in use.
    """

    remote: str
    routes: tuple[Candidate, ...] = ()
    probe: str = "/health"  # the path that is requested of a candidate before its use
    pin: str | None = None  # of the relay's certificate at `remote`, from an earlier connection
    code: str | None = None
    token: str | None = field(default=None, repr=False)
    device_name: str = "Reference phone"
    device_id: str = "reference-phone"
    ttl_seconds: int | None = None  # requested when pairing; None: the default of the route
    scheme: str = "svc-relay"  # of media markers
    preferences: Preferences = DEFAULTS
    on_cellular: bool = False  # at the start
    texts: tuple[str, ...] = ()  # chat texts displayed at the start: the media markers in them are fetched
    notices: tuple[str, ...] = ()  # notifications present at the start: `TITLE: TEXT`

    @property
    def http_url(self) -> str:
        """The relay's HTTP address as derived from `remote`, with the path prefix of `remote` if it has one."""
        return RelayUrl(self.remote).http_url


class Phone(WebSocketHandler):
    """Phone as a service of an engine.

    Its events are `Notify` commands. They also go to `on_notify`, for a service that contains the phone:
    `paired` and `online` (`token`, `expires_at`, `grants`), `offline` (`retry_in` seconds),
    `performed` (`method`, `path`, `status`), `asked` (`confirmation`, its id for `UserControls.decide`, `action`,
    `verb`, `text`, `seconds`), `pinned` (`url`, `pin`), `note` (`text`, for the user), `route` (`role`, `url` of the
    chosen candidate), `attachment` (see `AttachmentFetcher`), and with `watched`, at the start and after a change,
    `safety` (`view`, a `SafetyView`). Events of `PhoneMessageChannels` and `PhoneVoiceClient` are sent in the same way.
    """

    engine: Engine
    controls: UserControls
    attachments: AttachmentFetcher
    _socket: WebSocketConnection  # the latest; from the first `on_open` on

    def __init__(
        self,
        config: PhoneConfig,
        backend: SystemBackend,
        safety: SafetySettings = DEFAULT_SAFETY,
        *,
        on_notify: Callable[[Notify], None] | None = None,
        watched: bool = False,
    ) -> None:
        self.config = config
        self.gate = SafetyGate(
            backend,
            flavor=backend.build,
            blocklist=Blocklist(safety.blocklist),
            idle_minutes=safety.idle_minutes,
            confirmation_timeout=safety.confirmation_timeout,
            wake=backend.wake,
            consents=backend.consents,
        )
        self.state = PhoneState.CONNECTING
        self.token = config.token
        self._code = config.code
        self._safety = safety
        self._on_notify = on_notify
        self._watched = watched
        self._seen: SafetyView | None = None  # the view in the last `safety` event
        self._reported = (False, False)  # the toggles in the last status report
        self._person: KeyboardInputChannel | None = None
        self._route = Candidate("", 0, config.remote)  # in use
        self._remote = RelayUrl(config.remote)
        self._routes: CandidateProber | None = None
        self._finding: Task | None = None
        self._met = False  # the relay has accepted a sign-in before
        self._anew = False  # probe all candidates again, even those that were reachable lately
        self._opening: Task | None = None
        self._refusal = ""
        self._posted = 0  # notifications
        self._pinned: set[tuple[str, int]] = set()
        self._notices: deque[str] = deque(config.notices, MAX_NOTIFICATIONS)  # until the relay is connected
        self._pause = FIRST_PAUSE

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Store the engine; create the timers and the phone's parts."""
        self.engine = engine
        self._status_timer = engine.timers.timer(self._report_status)
        self._sign_in_timer = engine.timers.timer(self._sign_in_late)
        self._retry_timer = engine.timers.timer(self._retry)
        self._executor = CommandExecutor(
            engine,
            self.gate,
            answers=self._safety.answers,
            scheme=self.config.scheme,
            send=self._send,
            notify=self._notify,
            on_change=self._show,
        )
        self.attachments = AttachmentFetcher(
            engine,
            self.config.preferences,
            on_cellular=self.config.on_cellular,
            source=self._source,
            notify=self._notify,
        )
        self._consoles = PhoneMessageChannels(
            engine,
            device_id=self.config.device_id,
            send=self._send,
            notify=self._notify,
            online=lambda: self.state is PhoneState.ONLINE,
        )
        self._voice = PhoneVoiceClient(engine, source=self._source, notify=self._notify)
        self.controls = UserControls(
            engine,
            self.gate,
            self._executor,
            self.attachments,
            self._consoles,
            self._voice,
            on_network=lambda cellular: self.network_changed(cellular=cellular),
            on_notice=self.notify,
            note=self._note,
        )
        if self.config.routes:
            self._routes = CandidateProber(engine, self.config.routes, probe=self.config.probe)

    def on_started(self) -> None:
        """Set the switches as configured, show the configured texts, and start to connect."""
        self.engine.emit(Ready())
        self.gate.set_unattended(self._safety.unattended)
        self.gate.set_status_overlay(self._safety.chip)
        if self._safety.armed:
            self.gate.set_master(True, self.engine.now)
        self._executor.advance()
        for text in self.config.texts:
            self.attachments.show(text)
        pin = self.config.pin
        pinned = None if pin is None else self._remote.pinned
        if pin is None or pinned is None:
            self._connect()
            return
        self._pinned.add(pinned)
        expect = self._expect(pinned, pin)
        self.engine.spawn(expect, on_done=lambda nothing: self._connect(), on_error=self._failed)

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Return the channel of the user's keyboard, once; None for any other connection."""
        if fact.peer != KEYBOARD or self._person is not None:
            return None
        self._person = KeyboardInputChannel(self.engine, fact, self.controls)
        return self._person

    def on_stopping(self) -> None:
        """Cancel all work, and turn Device Control off."""
        self._step(PhoneTrigger.STOP)
        for timer in (self._retry_timer, self._status_timer, self._sign_in_timer):
            timer.cancel()
        for task in (self._opening, self._finding):
            if task is not None:
                task.cancel()
        self._executor.stop()
        self.attachments.cancel_all()
        self._voice.stop()
        self._consoles.close_all()
        self.gate.process_died()

    # --- for a service that contains the phone ---

    def network_changed(self, *, cellular: bool) -> None:
        """Handle a change of the network: connect at once while backing off, and with `routes` select a candidate anew.

        Attachments that waited for another network may be fetched.
        """
        self._anew = True
        match self.state:
            case PhoneState.BACKING_OFF:
                self._retry_timer.cancel()
                self._retry()
            case PhoneState.CONNECTING if self._routes is not None:
                if self._opening is not None:
                    self._opening.cancel()
                self._connect()
            case PhoneState.SIGNING_IN | PhoneState.ONLINE if self._routes is not None:
                self._choose(self._routes)
            case _:
                pass  # the only address is in use or being tried
        self.attachments.on_network(cellular=cellular)

    def notify(self, text: str) -> None:
        """Send a notification, `TITLE: TEXT` or a title alone, now or once the phone is online.

        Of more than `MAX_NOTIFICATIONS` that wait, the oldest is dropped.
        """
        self._notices.append(text)
        self._send_notifications()

    # --- WebSocketHandler ---

    def on_open(self, socket: WebSocketConnection) -> None:
        """Send `system/auth` on the open socket and start the timer of the sign-in."""
        self._step(PhoneTrigger.OPENED)
        self._socket = socket
        self._sign_in_timer.set(self.engine.now.mono + SIGN_IN_TIMEOUT)
        payload: dict[str, object] = {
            "device_name": self.config.device_name,
            "device_hostname": self.config.device_name,
            "device_id": self.config.device_id,
            "device_model": "Simulated handset",
            "device_platform": "Android 16",
            "client_surface": "android",
            "device_form_factor": "phone",
            "supports": {"typed_stream_events": True, "event_schema_version": 1},
            "names": next((name for name, brand in BRANDS.items() if brand.scheme == self.config.scheme), SVC.name),
        }
        if self.token is not None:
            payload["session_token"] = self.token
        if self._code is not None:
            payload["pairing_code"] = self._code
            chosen = self.config.ttl_seconds
            lifetime = default_ttl(self._route) if chosen is None else chosen
            if lifetime is not None:
                payload["ttl_seconds"] = lifetime
        self._send("system", "auth", payload)

    def on_text(self, text: str) -> None:
        """Handle a message of the relay; ignore one that is invalid in this state."""
        envelope = parse_envelope(text)
        if envelope is None:
            return
        match (envelope.channel, envelope.type):
            case ("system", "auth.ok") if self.state is PhoneState.SIGNING_IN:
                self._welcomed(envelope.payload)
            case ("system", "auth.fail") if self.state is PhoneState.SIGNING_IN:
                self._refused(envelope.payload)
            case ("bridge", "bridge.command") if self.state is PhoneState.ONLINE:
                self._executor.execute(envelope.payload, self._uplink(self.token or ""))
            case ("terminal" | "tui", _) if self.state is PhoneState.ONLINE:
                self._consoles.receive(envelope)
            case ("system", "error") if self.state is PhoneState.ONLINE:
                self._consoles.refused(envelope.payload)
            case _:
                self.engine.log(Level.DEBUG, "ignored message", channel=envelope.channel, type=envelope.type)

    def on_closed(self, code: int, reason: str) -> None:
        """Abandon the commands, close the terminal and the agent's channel, and schedule a reconnect.

        Instead of a reconnect: exit if the relay refused the sign-in or sent no valid token; none if the phone stops.
        """
        self._status_timer.cancel()
        self._sign_in_timer.cancel()
        lost = self.state in CONNECTED_STATES
        if lost:
            self._anew = self._anew or self.state is PhoneState.SIGNING_IN  # it answers, but the sign-in has failed
            self.engine.log(Level.WARNING, "connection lost", code=code)
            self._step(PhoneTrigger.LOST)
        self._executor.stop()
        self._consoles.close_all()
        if lost:
            self._back_off(self._next_pause())
        elif self.state is PhoneState.GIVEN_UP:
            self.engine.exit(1, self._refusal)

    # --- connecting ---

    def _connect(self) -> None:
        if self._routes is None:
            self._open()
        else:
            self._choose(self._routes)

    def _choose(self, routes: CandidateProber) -> None:
        """Start the selection of a candidate, and cancel one that is running."""
        if self._finding is not None:
            self._finding.cancel()
        self._finding = self.engine.spawn(routes.select(anew=self._anew), on_done=self._chosen, on_error=self._failed)

    def _chosen(self, route: Candidate | None) -> None:
        """While connecting, connect to the selected candidate, or back off if it is None.

        Later, close the connection to another candidate, so that the phone connects to the selected one.
        """
        if route is not None and self.state is PhoneState.CONNECTING:
            self._route, self._remote = route, RelayUrl(route.url)
            self._notify("route", {"role": route.role, "url": route.url})
            self._open()
        elif self.state is PhoneState.CONNECTING:
            self.engine.log(Level.WARNING, "not connected", problem="no route answers", detail=self._route_problems())
            self._step(PhoneTrigger.FAILED)
            self._back_off(self._next_pause())
        elif route is not None and route.url != self._remote.url and self.state in CONNECTED_STATES:
            self._anew = False  # it has just answered
            self._socket.close(1000, "another route")

    def _route_problems(self) -> str:
        """Return one line with the address of each rejected candidate and the reason."""
        problems = {} if self._routes is None else self._routes.problems
        return "; ".join(f"{candidate.url}: {problem}" for candidate, problem in problems.items())

    def _open(self) -> None:
        url, shown = self._remote.socket_url, bearer_header(self.token or "")
        opening = fetch(self.engine, "GET", url, into=websocket_upgrade(self), headers=shown, within=OPEN_TIMEOUT)
        self._opening = self.engine.spawn(opening, on_done=self._opened, on_error=self._failed)

    def _opened(self, outcome: WebSocketConnection | HttpResult | Failure) -> None:
        if isinstance(outcome, WebSocketConnection):
            return  # `on_open` was called
        self._anew = True  # it answered, but is not usable: probe it again before it is chosen
        self._step(PhoneTrigger.FAILED)
        if isinstance(outcome, Failure):
            why = {"detail": outcome.detail} if outcome.kind is FailureKind.TLS else {}
            self.engine.log(Level.WARNING, "not connected", problem=outcome.kind.value, **why)
            self._back_off(self._next_pause())
            return
        self.engine.log(Level.WARNING, "not connected", status=outcome.status)
        self._back_off(_block(outcome) if outcome.status == 429 else self._next_pause())

    def _back_off(self, seconds: float) -> None:
        self._notify("offline", {"retry_in": seconds})
        self._retry_timer.set(self.engine.now.mono + seconds)

    def _retry(self) -> None:
        self._step(PhoneTrigger.RETRY)
        self._connect()

    def _next_pause(self) -> float:
        # Up to a quarter more, so that phones do not retry at the same time.
        jitter = 1.0 + self.engine.entropy(1)[0] / 1024
        pause, self._pause = self._pause * jitter, min(self._pause * 2, MAX_PAUSE)
        return pause

    def _failed(self, error: Exception) -> None:
        self.engine.exit(70, f"internal error, reference {self.engine.log_bug(error)}")

    # --- sign-in ---

    def _welcomed(self, payload: JsonObject) -> None:
        token = payload.text("session_token")
        if not token or not (token.isascii() and token.isprintable()):
            self._stop_retrying("the relay sent no session token")
            return
        self._step(PhoneTrigger.AUTHENTICATED)
        self._sign_in_timer.cancel()
        fresh, self.token = token != self.token, token
        self._code = None
        self._pause = FIRST_PAUSE
        self._met, self._anew = True, False
        news = {"token": token, "expires_at": payload.get("expires_at"), "grants": payload.get("grants")}
        self._notify("paired" if fresh else "online", news)
        self._report_status()
        self._send_notifications()
        self.attachments.go_on()
        pinned = self._remote.pinned
        if pinned is not None and pinned not in self._pinned:
            self._pinned.add(pinned)
            self.engine.spawn(self._pin(pinned, self._remote.url), on_error=self._failed)

    def _pin(self, where: tuple[str, int], url: str) -> Flow[None]:
        """Require the key of the last TLS connection to `where` on further ones, and report it as `pinned`.

        Source: spec "Client-side preferences", wire core 10.8.
        """
        pin = yield from run_operation(self.engine, Compute(self.engine.new_op(), "tls.seen", where))
        if isinstance(pin, str):
            yield from self._expect(where, pin)
            self._notify("pinned", {"url": url, "pin": pin})

    def _expect(self, where: tuple[str, int], pin: str) -> Flow[None]:
        yield from run_operation(self.engine, Compute(self.engine.new_op(), "tls.expect", (*where, pin)))

    def _refused(self, payload: JsonObject) -> None:
        reason = sanitize_line(payload.text("reason") or "no reason given", MAX_REASON_CHARS)
        if "auth" in reason and "timeout" in reason:
            return  # too slow, not wrong (wire core 1.6): the relay closes, and the phone reconnects
        self._stop_retrying(f"the relay refused: {reason}")

    def _stop_retrying(self, refusal: str) -> None:
        self._step(PhoneTrigger.REJECTED)
        self._refusal = refusal
        self._sign_in_timer.cancel()
        self._socket.close()

    def _sign_in_late(self) -> None:
        self._socket.close(1002, "no answer to system/auth")

    def _uplink(self, token: str) -> RelayClient:
        return RelayClient("the relay", self._remote.http_url, token)

    def _source(self) -> RelayClient | None:
        """Return the relay client for attachments and voice; None before the first sign-in."""
        return self._uplink(self.token) if self._met and self.token is not None else None

    # --- messages ---

    def _report_status(self) -> None:
        self._status_timer.set(self.engine.now.mono + STATUS_INTERVAL)
        try:
            self._send("bridge", "bridge.status", self.gate.status(self.engine.now))
        except Exception as error:  # noqa: BLE001, RUF100 - a bug in the backend does not stop the phone
            self.engine.log_bug(error)
        self._reported = self._toggles

    def _send_notifications(self) -> None:
        while self._notices and self.state is PhoneState.ONLINE:
            title, _, text = self._notices.popleft().partition(":")
            posted = int(self.engine.now.wall * 1000)
            self._posted += 1
            payload: dict[str, object] = {
                "package_name": "com.example.mail",
                "title": title.strip(),
                "text": text.strip() or None,
                "sub_text": None,
                "posted_at": posted,
                "key": f"0|com.example.mail|{self._posted}|null|10123",
            }
            self._send("notifications", "notification.posted", payload)

    def _show(self) -> None:
        """Report the status to the relay, if online and the master toggle or unattended access has changed.

        If the phone is `watched`, also report a changed view of the gates to the program.
        """
        if self.state is PhoneState.ONLINE and self._reported != self._toggles:
            self._report_status()  # wire bridge 1.3: beside the timer, on changes of these two alone
        if self._watched:
            view = self.gate.view(self.engine.now)
            if view != self._seen:
                self._seen = view
                self._notify("safety", {"view": view})

    @property
    def _toggles(self) -> tuple[bool, bool]:
        return self.gate.is_armed, self.gate.unattended

    def _note(self, text: str) -> None:
        self._notify("note", {"text": text})

    def _notify(self, event: str, fields: Mapping[str, object]) -> None:
        news = Notify(event, fields)
        self.engine.emit(news)
        if self._on_notify is not None:
            self._on_notify(news)

    def _send(self, channel: str, kind: str, payload: Mapping[str, object]) -> None:
        """Send a message; raise the errors of `strict_json.dumps` when the payload is not JSON."""
        self._socket.send_text(write_envelope(channel, kind, new_uuid(self.engine.entropy), dict(payload)))

    def _step(self, trigger: PhoneTrigger) -> None:
        self.state = step(PHONE_TABLE, self.state, trigger)


def _block(refusal: HttpResult) -> float:
    """Return the pause that a 429 requests as a number of seconds, within bounds; `BLOCKED_PAUSE` without a number."""
    wanted = refusal.headers.get(b"retry-after") or b""
    if not wanted.isdigit():
        return BLOCKED_PAUSE
    return min(max(float(wanted[:9]), FIRST_PAUSE), MAX_RETRY_AFTER)
