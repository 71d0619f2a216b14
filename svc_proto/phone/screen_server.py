"""Phone with a screen that a user can see and touch: on loopback, for the dashboard of this host.

| route          | effect                                                                                              |
|----------------|-----------------------------------------------------------------------------------------------------|
| `GET /screen`  | send the screen, the open confirmations and the toggle; with `seen=TAG` wait up to 3 s for a change |
| `POST /touch`  | touch of the user: `{"kind": "tap", "x": 1, "y": 2}`, see `TOUCHES`; or `{"kind": "wake"}`          |
| `POST /answer` | decision of the user: `{"question": "c1", "allow": true, "remember": false}`                        |
| `POST /toggle` | Device Control: `{"on": true}`                                                                      |
| `POST /say`    | text of the user for the agent: `{"text": "hi", "aloud": false}`; if aloud, a turn of the voice     |

The safety gates stand between the agent and the phone. Touches of the user go to the backend, as on any phone.
Clients show the bearer of `svc_proto.service_clients.phone_screen_endpoint`.
"""

from collections.abc import Mapping
from enum import Enum
from hashlib import sha256
from typing import cast

from attrs import evolve

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.commands import Level, Notify, WriteConfig
from svc_proto.engine.admission import AdmissionControl
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.http_client import bearer_header
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.request_origin import is_local
from svc_proto.engine.router import Route, Router
from svc_proto.engine.sync import Condition
from svc_proto.facts import Accepted, Failure
from svc_proto.phone.backend import CommandReply, PhoneCommand
from svc_proto.phone.keyboard_control import KEYBOARD, TextAction, TextInput
from svc_proto.phone.safety.gate_interface import SystemBackend
from svc_proto.phone.safety.master_toggle import MasterState
from svc_proto.phone.safety.settings import SafetySettings, Switch
from svc_proto.phone.safety.view import ConfirmationView
from svc_proto.phone.service import Phone, PhoneConfig, PhoneState
from svc_proto.phone.transcript import PhoneTranscript
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.service_clients.local_secret import has_secret
from svc_proto.service_clients.phone_screen_endpoint import (
    PhoneScreenEndpoint,
    publish_phone_screen,
    withdraw_phone_screen,
)
from svc_proto.wire.events import RequestHead
from svc_proto.wire.limits import DEFAULT_LIMITS

__all__ = ["PHONE_SESSION", "TOUCHES", "PhoneScreenServer"]

PHONE_SESSION = "phone-session"  # in the state folder: the token of the last pairing, for the next start
LIMITS = evolve(DEFAULT_LIMITS, max_connections=64)
LONG_POLL_TIMEOUT = 3.0  # s that a request waits for a change; the dashboard's timeout is 5 s
LARGEST = 16_384  # bytes of a body
SWITCHES = ("Switch", "CheckBox")  # suffixes of class names
# Routes by kind; the other members of the body are those of that route (wire bridge 3.5).
TOUCHES = {row.by_hand: row.path for row in DEVICE_CONTROL.values() if row.by_hand and row.gesture}


class ScreenAccess(Enum):
    """Access policy of the screen's routes: programs of this host with the secret."""

    DASHBOARD = "dashboard"


class PhoneScreenServer:
    """Service of a phone and of HTTP routes for its screen; `url` is its listening address."""

    engine: Engine

    def __init__(self, config: PhoneConfig, backend: SystemBackend, safety: SafetySettings, *, url: str) -> None:
        self.phone = Phone(config, backend, safety, on_notify=self._on_notify, watched=True)
        self._backend = backend
        self._url = url
        self._endpoint: PhoneScreenEndpoint | None = None
        self._stopping = False
        self._talk = PhoneTranscript()
        rows = (
            ("GET", "/screen", self._show_screen),
            ("POST", "/touch", self._touch),
            ("POST", "/answer", self._answer),
            ("POST", "/toggle", self._toggle),
            ("POST", "/say", self._send_to_agent),
        )
        self.router = Router(
            Route(method=method, pattern=path, access=ScreenAccess.DASHBOARD, handler=handler, body_limit=LARGEST)
            for method, path, handler in rows
        )

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Bind this service and its phone to the engine."""
        self.engine = engine
        self._looking = Condition(engine)
        self.phone.bind(engine)
        self._visits = AdmissionControl(engine, self, LIMITS)

    def on_started(self) -> None:
        """Publish the address of the screen and start the phone."""
        self.engine.spawn(self._begin())

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Return the channel of the user's keyboard or of a dashboard; None if the connection is refused."""
        return self.phone.on_accepted(fact) if fact.peer == KEYBOARD else self._visits.admit(fact)

    def on_stopping(self) -> None:
        """Withdraw the published address, answer the requests that wait for a change, and stop the phone."""
        self._stopping = True
        self._wake()
        self.engine.spawn(withdraw_phone_screen(self.engine))
        self.phone.on_stopping()

    # --- HttpApp ---

    def authorize(self, access: Enum, request: Request) -> None:
        """Admit a program of this host that shows the secret; raise `Refused` 403 otherwise."""
        shown = () if self._endpoint is None else bearer_header(self._endpoint.secret)
        if not is_local(request) or not shown or not has_secret(request.headers, shown[0][1], b"authorization"):
            raise Refused(403, "not_yours", "this screen is for the dashboard of its own host")

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        """Return a refusal as `{"error": …, "code": …}`."""
        return json_response(refused.status, {"error": refused.message, "code": refused.code}, refused.headers)

    def response_headers(self, head: RequestHead, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        """Return the header field `cache-control: no-store`, since screens must not be cached."""
        return ((b"cache-control", b"no-store"),)

    # --- the screen ---

    def _show_screen(self, request: Request) -> Flow[Response]:
        engine, seen = self.engine, request.query.get("seen")
        until = engine.now.mono + LONG_POLL_TIMEOUT
        while (state := self._state())["tag"] == seen and not self._stopping and engine.now.mono < until:
            yield from self._looking.wait(until)
        return json_response(200, state)

    def _state(self) -> dict[str, object]:
        now = self.engine.now
        view, status = self.phone.gate.view(now), self.phone.gate.status(now)
        screen = self._backend.execute(PhoneCommand("GET", "/screen", {}), now)
        latest = view.activity[0].to_json() if view.activity else None
        state: dict[str, object] = {
            "name": self.phone.config.device_name,
            "online": self.phone.state is PhoneState.ONLINE,
            "device_control": view.master is MasterState.ARMED,
            "hint": view.hint,
            "screen_on": status.get("screen_on", True),
            "battery": status.get("battery"),
            "screen": self._with_switches(screen.result) if isinstance(screen, CommandReply) else {},
            "latest": latest,
            "questions": [_question(overlay) for overlay in view.overlays],
            "talk": self._talk.lines(),
            "awaits": self.phone.controls.awaits,
        }
        tag = sha256(strict_json.dumps_bytes(state)).hexdigest()[:16]
        left = {overlay.confirmation_id: overlay.seconds_left for overlay in view.overlays}
        return {**state, "tag": tag, "seconds_left": left}

    def _with_switches(self, screen: Mapping[str, object]) -> dict[str, object]:
        """Return the screen, in which each switch and check box has its state, as `/describe_node` returns it."""
        if "nodes" not in screen:
            return dict(screen)
        return {**screen, "nodes": [self._described(each) for each in cast("list[dict[str, object]]", screen["nodes"])]}

    def _described(self, node: dict[str, object]) -> dict[str, object]:
        if not str(node["className"]).endswith(SWITCHES):
            return node
        asked = PhoneCommand("POST", "/describe_node", {"nodeId": node["nodeId"]})
        told = self._backend.execute(asked, self.engine.now)
        return {**node, "checked": told.result.get("checked")} if isinstance(told, CommandReply) else node

    # --- the user ---

    def _touch(self, request: Request) -> Response:
        body = request.json_object()
        kind, now = body.text("kind"), self.engine.now
        body.pop("kind", None)
        if kind == "wake":
            self._backend.wake(now)
        elif kind in TOUCHES:
            done = self._backend.execute(PhoneCommand("POST", TOUCHES[kind], body), now)
            if isinstance(done, CommandReply) and done.status >= 400:
                raise Refused(done.status, "not_done", str(done.result.get("error", "the phone did not do it")))
        else:
            raise Refused(400, "invalid", f"kind must be one of wake, {', '.join(TOUCHES)}")
        return self._done()

    def _answer(self, request: Request) -> Response:
        body = request.json_object()
        question, allow = body.string("question"), body.boolean("allow")
        remember = body.boolean("remember") if "remember" in body else False
        if question is None or allow is None or remember is None:
            raise Refused(400, "invalid", "question must be text; allow and remember, true or false")
        if not self.phone.controls.decide(question, allow=allow, remember=remember):
            raise Refused(409, "not_open", "this question is not open any more")
        return self._done()

    def _toggle(self, request: Request) -> Response:
        on = request.json_object().boolean("on")
        if on is None:
            raise Refused(400, "invalid", "on must be true or false")
        if not self.phone.controls.set_switch(Switch.MASTER, on):
            hint = self.phone.gate.view(self.engine.now).hint
            raise Refused(409, "not_turned", hint or "this build has no Device Control")
        return self._done()

    def _send_to_agent(self, request: Request) -> Response:
        body = request.json_object()
        text, aloud = body.text("text"), body.boolean("aloud") if "aloud" in body else False
        if not text.strip() or aloud is None:
            raise Refused(400, "invalid", "text must be some text; aloud, true or false")
        self._talk.add_user_text(text)
        self.phone.controls.on_user_input(TextInput(TextAction.SAY if aloud else TextAction.CHAT, text))
        return self._done()

    def _done(self) -> Response:
        self._wake()
        return json_response(200, {"ok": True})

    # --- the phone ---

    def _begin(self) -> Flow[None]:
        self._endpoint, problem = yield from publish_phone_screen(self.engine, self._url)
        if problem is not None:
            self.engine.log(Level.ERROR, "no dashboard will find the screen", problem=problem.kind.value)
        self.phone.on_started()

    def _on_notify(self, news: Notify) -> None:
        if news.event == "paired":
            self.engine.spawn(self._store_token(str(news.fields["token"])))
        self._talk.add_event(news)
        self._wake()

    def _store_token(self, token: str) -> Flow[None]:
        kept = yield from run_operation(self.engine, WriteConfig(self.engine.new_op(), PHONE_SESSION, token))
        if isinstance(kept, Failure):
            self.engine.log(Level.WARNING, "the session is not kept", problem=kept.kind.value)

    def _wake(self) -> None:
        self._looking.notify_all()


def _question(overlay: ConfirmationView) -> dict[str, object]:
    return {
        "id": overlay.confirmation_id,
        "path": overlay.path,
        "verb": overlay.verb,
        "text": overlay.text,
    }
