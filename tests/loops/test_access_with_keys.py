"""Tests of access to the API and the dashboard, with and without a key or password."""

from base64 import b64encode
from collections.abc import Callable

import pytest
from attrs import frozen

from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.service import Dashboard
from tests.loops.clients import HttpClient
from tests.loops.dashboard_client import FILES, DashboardServer
from tests.loops.environment import LOOPBACK, REMOTE, Environment, bearer
from tests.loops.test_access_matrix import Caller

KEY = "sk-doors-0123456789"
PASSWORD = "long enough"
PAGE = {"origin": "http://localhost:3000", "sec-fetch-site": "same-site"}
PROXY = {"via": "1.1 caddy", "x-forwarded-for": "192.168.1.66"}
REBOUND = {"host": "evil.example"}
WRONG = bearer("sk-absent-012345678")
PROBES = {"GET /healthz", "GET /readyz"}
PUBLIC = {"GET /health", "GET /v1/health", *PROBES}  # for every client except pages of other sites
METRICS = "GET /metrics"  # has an access policy of its own: for programs of this host
DOCUMENTS = {"GET /openapi.json", "GET /docs"}  # of the API: for programs of this host, else as other routes
BLOCKED = 429  # after some wrong passwords


@frozen
class Column:
    """A caller of a server, and the status of its refusal; None if it has access."""

    guarded: bool  # by a key, or a password
    caller: Caller
    met: int | None


API = {
    "a stranger": Column(True, Caller(), 401),
    "a wrong key": Column(True, Caller(headers=WRONG), 401),
    "the key from afar": Column(True, Caller(REMOTE, bearer(KEY)), None),
    "a page without the key": Column(True, Caller(headers=PAGE), 403),
    "a page with the key": Column(True, Caller(headers={**PAGE, **bearer(KEY)}), 403),
    "a proxy": Column(True, Caller(headers=PROXY), 401),
    "a program, and there is no key": Column(False, Caller(), None),
    "a page, and there is no key": Column(False, Caller(headers=PAGE), 403),
    "a rebound name, and there is no key": Column(False, Caller(headers=REBOUND), 403),
}
BOARD = {
    "a stranger": Column(True, Caller(), 401),
    "a wrong password": Column(True, Caller(headers={"authorization": "Basic " + b64encode(b"x:no").decode()}), 401),
    "the password": Column(
        True, Caller(headers={"authorization": "Basic " + b64encode(b"x:" + PASSWORD.encode()).decode()}), None
    ),
    "a page": Column(True, Caller(headers=PAGE), 403),
    "a program, and there is no password": Column(False, Caller(), None),
    "a stranger, and there is no password": Column(False, Caller(REMOTE), 403),
    "a proxy, and there is no password": Column(False, Caller(headers=PROXY), 403),
    "a page, and there is no password": Column(False, Caller(headers=PAGE), 403),
    "a rebound name, and there is no password": Column(False, Caller(headers=REBOUND), 403),
}
ROTATE = "POST /api/key/rotate"  # called last: afterwards the key is another
API_ROUTES = sorted(
    (f"{route.method} {route.pattern}" for route in Api(ApiConfig()).router.routes), key=lambda route: route == ROTATE
)
SIGN_IN = [
    f"{route.method} {route.pattern}"
    for route in Dashboard(DashboardConfig(), FILES).router.routes
    if route.access is DashboardAccess.SIGN_IN
]
FORM = "POST /login"  # without a password in the form
SOCKETS = ("GET /api/ws", "GET /api/audio/speak-stream")  # without a ticket
BOARD_ROUTES = [f"{route.method} {route.pattern}" for route in Dashboard(DashboardConfig(), FILES).router.routes]


def asked(open_client: Callable[[], HttpClient], caller: Caller, route: str) -> int | None:
    """Return the status with which a route refuses a caller: 403, or 401, also for a blocked caller.

    Return None if the caller has access.
    """
    method, _, path = route.partition(" ")
    client = open_client()
    status = client.request(method, path.replace("{", "").replace("}", ""), headers=caller.headers).status
    client.wire.close()
    return {401: 401, 403: 403, BLOCKED: 401}.get(status)


@pytest.mark.parametrize("name", API)
def test_access_to_the_api(world: Environment, name: str) -> None:
    column = API[name]
    api = world.api(key=KEY if column.guarded else "")
    port = api.server.port

    def client() -> HttpClient:
        wire = world.connect(column.caller.peer, port=port)
        host = column.caller.headers.get("host", f"127.0.0.1:{port}")
        return HttpClient(wire, host, world.entropy)

    met = {route: asked(client, column.caller, route) for route in API_ROUTES}
    page = "origin" in column.caller.headers
    local = column.caller.peer == LOOPBACK and not {*PROXY, "host"} & column.caller.headers.keys()
    own = dict.fromkeys(PUBLIC) | {METRICS: None if local else 403}
    own |= dict.fromkeys(DOCUMENTS, None if local else column.met)
    assert met == {route: 403 if page else own.get(route, column.met) for route in API_ROUTES}


@pytest.mark.parametrize("name", BOARD)
def test_access_to_the_dashboard(world: Environment, name: str) -> None:
    column = BOARD[name]
    world.start_relay()
    board = DashboardServer(world, password=PASSWORD if column.guarded else "")
    met = {route: asked(lambda: board.client(column.caller.peer), column.caller, route) for route in BOARD_ROUTES}
    local = column.caller.peer == LOOPBACK and not {*PROXY, *REBOUND, *PAGE} & column.caller.headers.keys()
    own = dict.fromkeys(PROBES) | {METRICS: None if local else 403}
    foreign = bool({*REBOUND, *PAGE} & column.caller.headers.keys())
    if column.guarded:
        own |= dict.fromkeys(SIGN_IN, 403 if foreign else None) | {FORM: 403 if foreign else 401}
    # Every caller needs a ticket.
    own |= dict.fromkeys(SOCKETS, 401 if column.guarded and not foreign else column.met or 401)
    assert met == {route: own.get(route, column.met) for route in BOARD_ROUTES}
