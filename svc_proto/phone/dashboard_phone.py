"""Phone on the standard connection of the app: a dashboard's address, a password, and the chat on its gateway.

The phone signs in with the password, if there is one, and keeps the cookies until the dashboard refuses a ticket with
401 or 403. Each WebSocket needs a ticket of its own. After each loss or failed attempt the phone connects again, after
a pause that doubles from 1 to 30 s, plus up to a quarter. A wrong password ends the process.
"""

from collections.abc import Callable, Mapping
from urllib.parse import quote

from attrs import field, frozen

from svc_proto.basics import strict_json
from svc_proto.basics.entropy import new_uuid
from svc_proto.commands import Level, Notify, Ready
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task, sleep
from svc_proto.engine.http_client import HttpResult, fetch, websocket_upgrade
from svc_proto.engine.sync import Condition
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Accepted, Failure
from svc_proto.phone.gateway_chat import GatewayChat
from svc_proto.phone.keyboard_control import (
    KEYBOARD,
    ConfirmationAnswer,
    DetachChannels,
    KeyboardInputChannel,
    TextAction,
    TextInput,
    UserInput,
)

__all__ = ["DashboardPhone", "DashboardPhoneConfig"]

FIRST_PAUSE = 1.0  # s before the first retry; doubles
MAX_PAUSE = 30.0  # s
REQUEST_TIMEOUT = 15.0  # s for each request, and for the handshake
FOREVER = 1e9  # s
HELP = "chat TEXT is for the agent; y, a, n or say TEXT answer its question; leave stops its turn"


@frozen(kw_only=True)
class DashboardPhoneConfig:
    """Address of a dashboard, without a final slash, and its password; empty: none is needed."""

    url: str
    password: str = field(default="", repr=False)


class DashboardPhone(WebSocketHandler):
    """Service of a phone that chats through a dashboard's gateway.

    Its events are `Notify` commands: `connected` (`url`), `offline` (`retry_in` seconds), `note` (`text`, for the
    user), and those of `GatewayChat`.
    """

    engine: Engine
    chat: GatewayChat
    _connecting: Task

    def __init__(self, config: DashboardPhoneConfig, *, on_notify: Callable[[Notify], None] | None = None) -> None:
        self.config = config
        self._on_notify = on_notify
        self._cookies: dict[str, str] = {}
        self._socket: WebSocketConnection | None = None
        self._person: KeyboardInputChannel | None = None
        self._pause = FIRST_PAUSE

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Store the engine and create the chat."""
        self.engine = engine
        self._lost = Condition(engine)
        self.chat = GatewayChat(self._notify, lambda: new_uuid(engine.entropy))

    def on_started(self) -> None:
        """Connect to the dashboard, and again after each loss."""
        self.engine.emit(Ready())
        self._connecting = self.engine.spawn(self._stay_connected())

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Return the channel of the user's keyboard, once; None for any other connection."""
        if fact.peer != KEYBOARD or self._person is not None:
            return None
        self._person = KeyboardInputChannel(self.engine, fact, self)
        return self._person

    def on_stopping(self) -> None:
        """Stop connecting to the dashboard."""
        self._connecting.cancel()

    # --- connection ---

    def _stay_connected(self) -> Flow[None]:
        while True:
            if (yield from self._connect()):
                yield from self._lost.wait(self.engine.now.mono + FOREVER)
            # Up to a quarter more, so that phones do not retry at the same time.
            pause = self._pause * (1.0 + self.engine.entropy(1)[0] / 1024)
            self._pause = min(self._pause * 2, MAX_PAUSE)
            self._notify("offline", {"retry_in": pause})
            yield from sleep(self.engine, pause)

    def _connect(self) -> Flow[bool]:
        """Sign in if needed, get a ticket, and open the WebSocket.

        Return False if one of these fails, or if the WebSocket has closed already.
        """
        if self.config.password and not self._cookies and not (yield from self._sign_in()):
            return False
        answer = yield from self._post("/api/auth/ws-ticket")
        ticket = answer.members.text("ticket") if isinstance(answer, HttpResult) else ""
        if isinstance(answer, HttpResult) and answer.status in (401, 403):
            self._cookies.clear()
        if not ticket:
            self._report(answer)
            return False
        url = f"ws{self.config.url.removeprefix('http')}/api/ws?ticket={quote(ticket)}"
        opened = yield from fetch(self.engine, "GET", url, into=websocket_upgrade(self), within=REQUEST_TIMEOUT)
        if isinstance(opened, WebSocketConnection):
            return self._socket is not None
        self._report(opened)
        return False

    def _sign_in(self) -> Flow[bool]:
        body = {"provider": "basic", "username": "owner", "password": self.config.password, "next": "/"}
        answer = yield from self._post("/auth/password-login", strict_json.dumps_bytes(body))
        if isinstance(answer, HttpResult) and answer.status == 401:
            self.engine.exit(1, "the dashboard refused the password")
            return False
        if not isinstance(answer, HttpResult) or answer.status != 200:
            self._report(answer)
            return False
        for value in answer.headers.all(b"set-cookie"):
            name, _, content = value.decode("latin-1").partition(";")[0].partition("=")
            self._cookies[name] = content
        return bool(self._cookies)

    def _post(self, path: str, body: bytes = b"") -> Flow[HttpResult | Failure]:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items()).encode("latin-1")
        headers = [(b"content-type", b"application/json")] if body else []
        if cookies:
            headers.append((b"cookie", cookies))
        return fetch(
            self.engine, "POST", self.config.url + path, headers=tuple(headers), body=body, within=REQUEST_TIMEOUT
        )

    def _report(self, answer: HttpResult | Failure) -> None:
        problem = answer.status if isinstance(answer, HttpResult) else answer.kind.value
        self.engine.log(Level.WARNING, "not connected", problem=problem)

    # --- WebSocketHandler ---

    def on_open(self, socket: WebSocketConnection) -> None:
        """Reset the pause, report `connected`, and connect the chat to the socket."""
        self._socket = socket
        self._pause = FIRST_PAUSE
        self._notify("connected", {"url": self.config.url})
        self.chat.connect(socket.send_text, lambda: socket.close(1000, "the chat failed"))

    def on_text(self, text: str) -> None:
        """Pass a message of the gateway to the chat."""
        self.chat.receive(text)

    def on_closed(self, code: int, reason: str) -> None:
        """Handle the loss of the socket: disconnect the chat and let the phone connect again."""
        self._socket = None
        self.chat.disconnect()
        self._lost.notify_all()

    # --- UserInputHandler ---

    def on_user_input(self, word: UserInput | None) -> None:
        """Handle a line of the user: send a prompt, answer the open question, or stop the turn.

        A line without effect is answered with a note.
        """
        match word:
            case TextInput(verb=TextAction.CHAT, text=text):
                done, problem = self.chat.submit(text), "too many prompts wait"
            case TextInput(verb=TextAction.SAY, text=text):
                done, problem = self.chat.answer(text), "there is no question open"
            case ConfirmationAnswer(allow=allow, remember=remember):
                done, problem = self.chat.decide(allow=allow, remember=remember), "there is no question open"
            case DetachChannels():
                done, problem = self.chat.interrupt(), "no turn is under way"
            case _:
                done, problem = False, HELP
        if not done:
            self._notify("note", {"text": problem})

    def on_keyboard_closed(self) -> None:
        """Do nothing: the phone stays connected without its user."""

    # --- helpers ---

    def _notify(self, event: str, fields: Mapping[str, object]) -> None:
        news = Notify(event, fields)
        self.engine.emit(news)
        if self._on_notify is not None:
            self._on_notify(news)
