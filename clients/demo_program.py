"""Demonstration of the main functions: a relay, a pairing, a phone, commands, and a chat that uses the phone."""

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from clients.phone.emulator import EmulatedPhone
from runtimes.host.host import Program, Services
from runtimes.host.logs import setup_logging
from runtimes.loops.waker import HostHandle
from runtimes.store.store_factory import open_store
from servers.api_program import api_program
from servers.launch import print_exit_reason
from servers.relay_program import relay_program
from svc_proto.api.config import ApiConfig
from svc_proto.basics.entropy import new_code
from svc_proto.commands import Exit, Level, Notify
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task, wait
from svc_proto.facts import Accepted, Failure, OperationId
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings
from svc_proto.phone.service import Phone, PhoneConfig
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceCallError
from svc_proto.wire.sse import ServerSentEvent

__all__ = ["Demo", "demo_programs"]

PAIRING_TIMEOUT = 20.0  # s for the phone to pair
GRACE = 5.0  # s for the relay to stop when the demonstration is over
WIDTH = 110  # shown characters of an answer
STEPS: tuple[tuple[str, str, Mapping[str, object] | None], ...] = (
    ("GET", "/ping", None),
    ("GET", "/screen", None),
    ("POST", "/tap_text", {"text": "Mail"}),
    ("GET", "/current_app", None),
)
MESSAGES = ("/phone current_app", "/screenshot")  # for the built-in agent; the second creates a picture to fetch
# members of a chat's events that are shown
SHOWN = ("tool_name", "result_preview", "error", "content", "message", "api_calls")
# a user that has turned Device Control on and allows every action
TRUSTING = SafetySettings(armed=True, answers=ConfirmationPolicy.ALLOW)
# members of an activity entry that are shown if present
SHOWN_MEMBERS = (
    "method",
    "path",
    "params",
    "decision",
    "status",
)


class Demo:
    """Service that plays the demonstration as the reference phone, an operator and a chat client."""

    engine: Engine

    def __init__(self, relay_url: str, code: str, *, api_url: str) -> None:
        config = PhoneConfig(remote=relay_url, code=code, device_id="demo-phone", device_name="Demo phone")
        self.phone = Phone(config, EmulatedPhone(name="Demo phone"), TRUSTING, on_notify=self._on_notify)
        self._api = ApiClient("the API", api_url)
        self._play_task: Task | None = None
        self._pairing: OperationId | None = None

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Store the engine, and bind the phone to it."""
        self.engine = engine
        self.phone.bind(engine)

    def on_started(self) -> None:
        """Start the demonstration; the program exits with its exit code."""
        self._play_task = self.engine.spawn(self._play(), on_done=self.engine.exit, on_error=self._failed)

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Refuse connections: the demonstration has no listener."""
        return None

    def on_stopping(self) -> None:
        """Stop the demonstration and the phone."""
        if self._play_task is not None:
            self._play_task.cancel()
        self.phone.on_stopping()

    # --- the play ---

    def _play(self) -> Flow[int]:
        engine = self.engine
        if (yield from self._call("POST", "/pairing/register", {"code": self.phone.config.code})) is None:
            return 1
        self._pairing = engine.new_op()
        began = engine.now.mono
        self.phone.on_started()
        answer = yield from wait(self._pairing, began + PAIRING_TIMEOUT)
        if isinstance(answer, Failure):
            return self._problem("the phone did not pair in time")
        took = _milliseconds(engine.now.mono - began)
        self._print(f"WS   {'/ws':18} 101  {took}  paired: session {(self.phone.token or '')[:8]}…")
        for method, path, body in STEPS:
            if (yield from self._call(method, path, body)) is None:
                return 1
        record = yield from self._call("GET", "/bridge/activity", None, show=False)
        if record is None:
            return 1
        for entry in reversed(record.objects("activity")):
            self._print(f"activity: {' '.join(f'{name}={entry[name]}' for name in SHOWN_MEMBERS if name in entry)}")
        return (yield from self._chat())

    def _chat(self) -> Flow[int]:
        """Send the demonstration's messages to the agent, then fetch the screenshot that an answer names.

        Returns the exit code.
        """
        session = yield from self._call("POST", "/api/sessions", {"title": "Demo"}, api=True)
        if session is None:
            return 1
        texts: list[str] = []
        tell = partial(self._on_chat_event, texts)
        for message in MESSAGES:
            self._print(f"chat: {message}")
            try:
                yield from self._api.stream_turn(self.engine, str(session["id"]), {"message": message}, tell)
            except ServiceCallError:
                return self._problem("the chat was not answered")
        marker = next((line for text in texts for line in text.splitlines() if line.startswith("MEDIA:")), "")
        token = marker.rpartition("/")[2]
        picture = yield from self._call("GET", f"/media/{token}", None, name="/media/…")
        return 1 if picture is None else 0

    def _on_chat_event(self, texts: list[str], event: ServerSentEvent) -> None:
        found = JsonObject.parse_or_empty(event.data)
        if event.event == "assistant.delta":
            return  # `assistant.completed` has the whole text
        if event.event == "assistant.completed":
            texts.append(found.text("content"))
        shown = " ".join(f"{name}={found[name]!r}" for name in SHOWN if found.identifier(name))
        self._print(f"event: {event.event:20} {shown[:WIDTH]}".rstrip())

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None,
        *,
        show: bool = True,
        api: bool = False,
        name: str = "",
    ) -> Flow[JsonObject | None]:
        """Send a request; return the answer's object, {} for a picture, or None for a failure, which is printed.

        The request goes to the relay, or to the API with `api`. `name` is printed in place of the path.
        """
        engine = self.engine
        began = engine.now.mono
        peer = self._api if api else RelayClient("the relay", self.phone.config.http_url, self.phone.token or "")
        try:
            answer = yield from peer.request(engine, method, path, b"" if body is None else body)
        except ServiceCallError as error:
            self._problem(f"{method} {name or path}: {error.why}")
            return None
        took = _milliseconds(engine.now.mono - began)
        picture = (answer.headers.get(b"content-type") or b"").startswith(b"image/")
        text = answer.body.decode("utf-8", "replace")
        shown = text if show and not picture and len(text) <= WIDTH else f"{len(answer.body)} bytes"
        self._print(f"{method:4} {name or path:18} {answer.status}  {took}  {shown}")
        if picture:
            return JsonObject()
        return JsonObject.parse(answer.body) if answer.status in (200, 201) else None

    def _on_notify(self, news: Notify) -> None:
        if news.event == "paired" and self._pairing is not None:
            self.engine.resume(self._pairing, None)

    def _print(self, text: str) -> None:
        self.engine.emit(Notify("step", {"text": text}))

    def _problem(self, text: str) -> int:
        self.engine.emit(Notify("problem", {"text": text}))
        return 1

    def _failed(self, error: Exception) -> None:
        self.engine.exit(70, f"internal error, reference {self.engine.log_bug(error)}")


def demo_programs(home: Path, handle: HostHandle) -> list[Program]:
    """Build a relay, an API and the demonstration on a home of their own; `handle` stops them at the end."""
    config = RelayConfig(
        host="127.0.0.1", port=0, home=str(home), config_path=str(home / "config.yaml"), log_level=Level.WARNING
    )
    store = open_store("memory:")
    relay = relay_program(config, store=store, on_ready=_welcome)
    url = f"ws://127.0.0.1:{relay.listeners[0].address.port}"
    api = api_program(
        ApiConfig(
            port=0,
            home=str(home),
            config_path=str(home / "config.yaml"),
            relay_url=url.replace("ws", "http", 1),
            log_level=Level.WARNING,
        ),
        store=store,
    )
    api_url = f"http://127.0.0.1:{api.listeners[0].address.port}"
    demo = Engine(Demo(url, new_code(os.urandom), api_url=api_url), entropy=os.urandom, log_level=Level.WARNING)

    def over(outcome: Exit) -> None:
        print_exit_reason(outcome)
        handle.stop(GRACE)

    services = Services(logger=setup_logging(int(Level.WARNING), name="svc.demo"))
    return [relay, api, Program(core=demo, services=services, on_notify=_show, on_exit=over)]


def _welcome(config: RelayConfig) -> None:
    print(f"relay on {config.host}:{config.port}", flush=True)


def _show(news: Notify) -> None:
    if "text" in news.fields:
        print(news.fields["text"], file=sys.stderr if news.event == "problem" else sys.stdout, flush=True)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:6.2f} ms"
