"""Attackers: they guess credentials, send garbage, and request routes in many ways.

The access matrix defines which of the requests must be refused with 401 or 403.
"""

import json

from attrs import field, frozen

from fuzz.simulation.access_matrix import CLIENT_KINDS, IN, RELAY_ACCESS, example_path
from fuzz.simulation.actors.actor_context import ActorContext, StepHandler
from fuzz.simulation.actors.pairing_devices import PairingDevices, SignInAttempt
from fuzz.simulation.deployment import LOCAL, REMOTE
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.reference_model import CodeModel
from fuzz.steps import GuessCredentials, GuessFromDevice, SendGarbage, Step, TryRoutes
from runtimes.sim.host import SimHost
from tests.support.sim_http import Pairs, RawBytesClient, RequestClient

GARBAGE = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /health HTTP/1.1\r\nHost: x\r\n",
    b"POST /pairing/register HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 50_000 + b"\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"\x00" * 2_000,
    b"POST /media/upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    (
        b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\x05hello\xff\xff\xff\xff"
    ),
)
PATIENT = {0: (13.0, 20.0), 1: (30.0, 55.0)}  # s between two guesses of slow attackers
SOON, BLOCKED_BY = (0.1, 0.3), 6  # s between two guesses of fast attackers; guesses after which an address is blocked
NO_TOKEN = "00000000-0000-4000-8000-000000000000"
ROUTES = {route.strip(): met.split() for met, routes in RELAY_ACCESS.values() for route in routes.split(",")}
ROUTES_TRIED = 4  # by each step, next to each other in the list
EVIL = ("POST /pairing/register", "GET /bridge/activity", "GET /relay/info")
TURNED_AWAY = (401, 403)
NO_WORD = (0, 408, 503)  # no response, or the relay was about to stop


@frozen
class _AttackRoute:
    """Way in which an attacker sends a request: client kind of the access matrix, headers, and from which host.

    With `here`, it is sent from the relay's host. With `version`, the request is written as HTTP/1 text; with `opens`,
    it is a WebSocket handshake.
    """

    caller: str
    headers: Pairs = field(factory=dict)
    here: bool = True
    version: str = ""
    opens: bool = False


UPGRADE = {
    "upgrade": "websocket",
    "connection": "Upgrade",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}
WAYS = (
    _AttackRoute("proxy", {"host": "evil.example:8767"}),  # a name that resolves to this address (DNS rebinding)
    _AttackRoute("local_page", {"origin": "https://evil.example"}),
    _AttackRoute("proxy", {"x-forwarded-for": "203.0.113.9"}),
    _AttackRoute("proxy", {"forwarded": "for=203.0.113.9"}),
    _AttackRoute("stranger", here=False),
    _AttackRoute("local_page", {"origin": "http://localhost:3000", "sec-fetch-site": "same-site"}),
    _AttackRoute("local_page", {"sec-fetch-site": "cross-site"}),
    _AttackRoute("lan_page", {"origin": "http://10.0.3.1"}, here=False),
    _AttackRoute("revoked", here=False),
    _AttackRoute("revoked", {"via": "1.1 caddy"}),
    _AttackRoute("proxy", version="1.0"),  # the shortest proxy block of nginx's manual
    _AttackRoute("proxy", {"connection": "upgrade"}, version="1.1"),  # and the next block there
    _AttackRoute("local_page", {**UPGRADE, "origin": "http://localhost:3000"}, version="1.1", opens=True),
    _AttackRoute("lan_page", {**UPGRADE, "origin": "http://10.0.3.1"}, here=False, version="1.1", opens=True),
)
OTHER_USER = _AttackRoute("other_user")  # the local secret is required, and this client has none


class Attackers:
    """Steps of attackers: guesses of credentials, garbage, and requests without a valid credential."""

    def __init__(self, crowd: ActorContext, pairing: PairingDevices) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._pairing = pairing
        self.handlers: dict[type[Step], StepHandler] = {
            GuessCredentials: self._guess,
            GuessFromDevice: self._suspect,
            SendGarbage: self._garbage,
            TryRoutes: self._browse,
        }

    def _guess(self, step: GuessCredentials) -> None:
        host = self.world.attackers[step.attacker % len(self.world.attackers)]
        self._guess_again(host, 3 + step.pace % 6, step.attacker, PATIENT.get(step.pace // 6 % 5, (0.2, 1.2)))

    def _suspect(self, step: GuessFromDevice) -> None:
        """Guess from the host of a session's device `BLOCKED_BY` times; reconnect after 4 s, guess again after 6 s.

        Do nothing without sessions.
        """
        if not self.crowd.sessions:
            return
        session, sim = self.crowd.pick_session(step.session), self.world.sim
        host = sim.hosts[session.owner]
        self._guess_again(host, BLOCKED_BY, 2, SOON)
        sim.after(4.0, lambda: self._pairing.reconnect(session))
        sim.after(6.0, lambda: self._guess_again(host, 1, 2, SOON))

    def _guess_again(self, host: SimHost, left: int, kind: int, pauses: tuple[float, float]) -> None:
        stolen = [session for session in self.crowd.sessions if session.revoked is not None]
        if kind % 3 == 0 and stolen:
            attempt = SignInAttempt(self.crowd, host, {"session_token": stolen[left % len(stolen)].token})
        elif kind % 3 == 1:
            used = [code for code in self.crowd.codes if code.uses]
            code = used[left % len(used)] if used else CodeModel("ZZZZZZ", self.crowd.now, uses=1)
            attempt = SignInAttempt(self.crowd, host, {"pairing_code": code.word}, code)
        else:
            attempt = SignInAttempt(self.crowd, host, {"pairing_code": f"Z{self.crowd.next_number():05}"})
        talker = attempt.open()
        if left > 1:
            pause = self.world.rng.uniform(*pauses)
            self.world.sim.after(pause, lambda: self._guess_again(host, left - 1, kind, pauses))
        self.world.sim.after(25.0, talker.disconnect)

    def _garbage(self, step: SendGarbage) -> None:
        host = self.world.attackers[step.attacker % len(self.world.attackers)]
        data = GARBAGE[step.data % len(GARBAGE)]
        if step.attacker % 5 == 0:
            data = bytes(self.world.rng.randrange(256) for _ in range(300))
        thrower = RawBytesClient(host, REMOTE, data)
        self.world.sim.after(20.0, lambda: self._threw(thrower))

    def _threw(self, thrower: RawBytesClient) -> None:
        self.world.check_no_secrets(thrower.heard.decode("latin-1"), "the answer to garbage")
        if b" 200 " in thrower.heard[:16] or b" 500 " in thrower.heard[:16]:
            violated(Invariant.STATUS, f"garbage was answered {bytes(thrower.heard)!r:.100}")
        thrower.disconnect(reset=True)

    def _browse(self, step: TryRoutes) -> None:
        ways = (*WAYS, *[OTHER_USER] * 5) if self.world.secretive else WAYS
        for number in range(ROUTES_TRIED):
            self._try_route(ways[(step.page + 5 * number) % len(ways)], step.route + 16 * number)

    def _try_route(self, way: _AttackRoute, which: int) -> None:
        routes = EVIL if which % 4 == 0 else list(ROUTES)
        route = routes[which % len(routes)]
        headers = dict(way.headers)
        if way.caller == "revoked":
            headers["authorization"] = f"Bearer {self._dead_token()}"
        if way.version:
            self._forward(way, route, headers)
            return

        def done(caller: RequestClient) -> None:
            self._check(way, route, caller.status)

        world, here = self.world, way.here
        host = world.home if here else world.attackers[which % len(world.attackers)]
        method, path = example_path(route)
        world.request(host, LOCAL if here else REMOTE, method, path, headers=headers, body=_body(method), done=done)

    def _forward(self, way: _AttackRoute, route: str, headers: dict[str, str]) -> None:
        method, path = example_path("GET /ws" if way.opens else route)
        target = LOCAL if way.here else REMOTE
        host = self.world.home if way.here else self.world.attackers[0]
        body = _body(method)
        fields = {"host": target.authority, **headers, "content-length": f"{len(body)}"}
        lines = [f"{method} {path} HTTP/{way.version}", *(f"{name}: {value}" for name, value in fields.items())]
        thrower = RawBytesClient(host, target, "\r\n".join([*lines, "", ""]).encode() + body)

        def over() -> None:
            self._check(way, f"{method} {path}" if way.opens else route, thrower.status)
            thrower.disconnect(reset=True)

        self.world.sim.after(20.0, over)

    def _check(self, way: _AttackRoute, route: str, status: int) -> None:
        expected = ROUTES[route][CLIENT_KINDS.index(way.caller)]
        met = str(status) if status in TURNED_AWAY else IN
        self.world.count(f"{way.caller} turned away" if met != IN else f"{way.caller} let in")
        if met != expected and status not in NO_WORD:
            violated(Invariant.ACCESS, f"{way.caller} got {status} from {route}, and the table says {expected}")

    def _dead_token(self) -> str:
        dead = [session.token for session in self.crowd.sessions if session.revoked is not None]
        return dead[-1] if dead else NO_TOKEN


def _body(method: str) -> bytes:
    return json.dumps({"code": "EVIL00"}).encode() if method in ("POST", "PATCH") else b""
