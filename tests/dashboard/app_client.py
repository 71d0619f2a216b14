"""A dashboard and an API server beside each other in memory, and a phone's app in front.

book = AppHarness()
phone = book.sign_in()
phone.request("GET", "/api/sessions")
socket = phone.socket()                  # a `GatewayClient`
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from attrs import define, evolve

from runtimes.sim.store import STORE_TIME
from runtimes.store.store_factory import open_store
from svc_proto.agent.interface import Agent
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.service import Dashboard
from svc_proto.dashboard.sign_in import COOKIE
from svc_proto.facts import Address, Started
from svc_proto.wire.events import Headers, RequestHead
from tests.api.gateway_client import GatewayClient
from tests.api.harness import CONFIG, HOME, KEY
from tests.support.http_codec import Response
from tests.support.http_harness import FIRST, HttpHarness
from tests.support.playbook import PATIENT, REMOTE

__all__ = ["PASSWORD", "AppClient", "AppHarness"]

PASSWORD = "correct horse"
API_PORT = 8642


class AppHarness(HttpHarness):
    """Harness of a dashboard, by default with an API server."""

    host_name = b"192.168.1.9:9119"

    def __init__(
        self, *, password: str = PASSWORD, chat: bool = True, agent: Agent | None = None, **options: Any
    ) -> None:
        files = options.pop("files", None)
        config = DashboardConfig(
            host="0.0.0.0" if password else "127.0.0.1",
            password=password,
            api_url=f"http://127.0.0.1:{API_PORT}" if chat else None,
            api_key=KEY,
            **options,
        )
        self.dashboard = Dashboard(config, {"index.html": b"<!doctype html>"}, limits=PATIENT)
        if not password:
            self.host_name = b"127.0.0.1:9119"
        super().__init__(self.dashboard, files=files)
        store = open_store("memory:")
        answers = SimpleNamespace(apply=lambda request: store.execute(request), seconds=STORE_TIME)
        self.host.store = cast("Any", answers)
        self.secrets |= {PASSWORD, KEY}
        self.api = Api(evolve(ApiConfig(key=KEY), home=HOME, config_path=CONFIG), limits=PATIENT, agent=agent)
        if chat:
            self.serve(API_PORT, self.api)
        self.feed(Started())
        assert self.ready

    def login(self, password: str = PASSWORD, **options: Any) -> Response:
        """Send the password, as the app does, and return the answer."""
        body = {"provider": "basic", "username": "me", "password": password, "next": "/"}
        return self.request("POST", "/auth/password-login", body, **{"peer": REMOTE, **options})

    def sign_in(self, **options: Any) -> AppClient:
        """Sign in and return the client."""
        answer = self.login(**options)
        assert answer.status == 200, answer
        return AppClient(self, token_of(answer))

    def open_socket(self, ticket: str, *, peer: Address = REMOTE) -> GatewayClient:
        """Request the WebSocket of the gateway, which may be refused."""
        socket = self.connect_http1(GatewayClient, peer)
        fields = Headers([(b"host", self.host_name)])
        socket.send_events(RequestHead(FIRST, "GET", f"/api/ws?ticket={ticket}", fields, websocket=True))
        return socket


@define
class AppClient:
    """Client of the dashboard with the cookie of a signed-in app."""

    book: AppHarness
    token: str

    def request(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        """Send a request with the cookie of the session."""
        cookie = (b"cookie", f"theme=dark; {COOKIE}={self.token}".encode())
        return self.book.request(method, path, body, headers=[cookie], **{"peer": REMOTE, **options})

    def ticket(self) -> str:
        """Return a new ticket for one WebSocket."""
        ticket: str = self.request("POST", "/api/auth/ws-ticket").json["ticket"]
        return ticket

    def socket(self) -> GatewayClient:
        """Open the WebSocket of the gateway with a new ticket; its first event is consumed."""
        socket = self.book.open_socket(self.ticket())
        assert socket.is_open, socket.events
        assert socket.kinds() == ["gateway.ready"]
        return socket


def token_of(answer: Response) -> str:
    """Return the token in the cookie that an answer sets."""
    cookie = (answer.headers.get(b"set-cookie") or b"").decode()
    return cookie.partition("=")[2].partition(";")[0]
