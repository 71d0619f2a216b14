"""A started API server in memory, between clients and scripted upstream servers.

    book = ApiHarness(ApiConfig(key="k"))
    answer = book.request("GET", "/v1/models")               # with the configured key, unless `key` is given
    call = book.call("POST", "/api/sessions/…/chat/stream", {"message": "Hi"})
    book.after(1.0)
    call.named_events()                                       # events of the stream so far

`tests.support.core_harness` has the base class.
"""

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from attrs import evolve

from runtimes.sim.store import STORE_TIME
from runtimes.store.store_factory import open_store
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.commands import Query
from svc_proto.facts import Started
from svc_proto.wire.limits import Limits
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent
from tests.support.core_harness import HOME
from tests.support.http_harness import HttpCall, HttpHarness
from tests.support.playbook import PATIENT, PEER, START

__all__ = ["CONFIG", "HOME", "KEY", "PEER", "ROUTED", "START", "ApiHarness", "ApiCall"]

CONFIG = f"{HOME}/config.yaml"
KEY = "sk-api-7f3a9c2e"
ROUTED = """
agent: {system_prompt: Be kind.}
model: {default: big, base_url: "http://127.0.0.1:9000/v1"}
platforms: {api_server: {extra: {model_routes: {fast: {model: small}}}}}
"""  # a configuration with a prompt, a model and an alias of another model


class ApiCall(HttpCall):
    """Request whose answer may be a stream in progress."""

    @property
    def text(self) -> str:
        """Return the body so far."""
        return self.body.decode()

    def stream(self) -> list[ServerSentEvent]:
        """Return the events of the stream so far."""
        return EventStreamDecoder().receive_data(self.text.encode())

    def named_events(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the names and parsed data of the stream's events so far."""
        return [(event.event, json.loads(event.data)) for event in self.stream()]


class ApiHarness(HttpHarness):
    """Harness of an API server, its host, its clients and its upstream servers."""

    caller = ApiCall
    host_name = b"127.0.0.1:8642"

    def __init__(
        self,
        config: ApiConfig | None = None,
        *,
        files: Mapping[str, bytes | str] | None = None,
        entropy: Callable[[int], bytes] | None = None,
        store: Any = None,
        limits: Limits = PATIENT,
        started: bool = True,
        **options: Any,
    ) -> None:
        self.config = evolve(config or ApiConfig(key=KEY), home=HOME, config_path=CONFIG)
        self.api = Api(self.config, limits=limits, **options)
        super().__init__(self.api, files=files, entropy=entropy)
        self.store = store or open_store("memory:")
        answers = SimpleNamespace(apply=lambda request: self.store.execute(request), seconds=STORE_TIME)
        self.host.store = cast("Any", answers)
        self.secrets |= {self.config.key, self.config.model_api_key, self.config.relay_token} - {""}
        if started:
            self.feed(Started())
            assert self.ready

    def call(self, method: str, path: str, body: object = None, *, key: str | None = None, **options: Any) -> ApiCall:
        """Send a request as in `HttpHarness`; `key` None is the configured key, "" is none."""
        token = self.config.key if key is None else key
        return cast("ApiCall", super().call(method, path, body, token=token, **options))

    def session(self, **fields: object) -> str:
        """Create a session and return its id."""
        answer = self.request("POST", "/api/sessions", fields)
        assert answer.status == 201, answer
        return cast("str", answer.json["id"])

    def messages(self, session_id: str) -> list[dict[str, Any]]:
        """Return the stored messages of a session."""
        answer = self.request("GET", f"/api/sessions/{session_id}/messages")
        assert answer.status == 200, answer
        return cast("list[dict[str, Any]]", answer.json["messages"])

    def queries(self) -> list[object]:
        """Return the requests to the store, oldest first."""
        return [command.request for command in self.commands if isinstance(command, Query)]

    def leaks(self) -> list[str]:
        """Return the log records, answers and received bytes that contain a secret."""
        places = [repr(log) for log in self.logs]
        places += [repr(answer) for answer in self.answers]
        places += [repr(bytes(peer.heard)) for peer in self.callers]
        return [place for place in places for secret in sorted(self.secrets) if secret in place]
