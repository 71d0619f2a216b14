"""The dashboard's own doors: its password, who has guessed it wrong, its names, and what it passes on."""

from __future__ import annotations

import base64
import json
from collections import deque
from itertools import pairwise
from typing import Any

from attrs import define

from fuzz.audit import Audit, header
from fuzz.audits.guesses import WINDOW, Guesses
from fuzz.world import API_KEY, HOME
from runtimes.sim.host import Host
from runtimes.sim.process import Process
from svc_proto.config import RelayConfig
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.service import Dashboard
from svc_proto.engine.core import Engine
from svc_proto.wire.events import Headers, RequestHead, ResponseData, ResponseEnd, ResponseHead
from tests.support.sim_http import RequestClient as Caller
from tests.support.sim_http import ScriptedHttpServer as Place
from tests.support.sim_http import ServerAddress as Target
from tests.support.sim_http import ServerSideConnection as Visit

__all__ = ["GATES", "PASSWORD", "Board", "basic"]

PORT, RELAY_PORT, API_PORT = 9120, 9500, 9501
PASSWORD = "correct horse"
EDGE = 1.0  # s
RIGHT, WRONG = 1, 5  # of what is done at the door
KINDS = (0, RIGHT, RIGHT, 2, 3, 4, *[WRONG] * 6)
PATIENCE = 5.0  # s, of a call of the dashboard
PREFIX = "/api/plugins/svc-relay"
SHOWN = ("/api/plugins/hermes-relay/push", f"{PREFIX}/push", "/openapi.json")
ESCAPED = "a%2Fb%3Fc"


def _public(port: int, url: str) -> dict[str, Any]:
    """The one route of an invite."""
    secure = url.startswith("wss")
    api = {"host": "x.example", "port": port, "tls": secure}
    return {"role": "public", "priority": 0, "api": api, "relay": {"url": url, "transport_hint": url.partition(":")[0]}}


RELAYED: tuple[tuple[str, str, object, str, str, object], ...] = (  # what is asked, and what the relay is asked for
    ("GET", "/overview", None, "GET", "/relay/info", None),
    ("GET", "/sessions", None, "GET", "/sessions", None),
    ("GET", "/phones?x=1", None, "GET", "/bridge/devices", None),
    ("GET", "/bridge-activity", None, "GET", "/bridge/activity", None),
    ("GET", "/bridge-activity?limit=7", None, "GET", "/bridge/activity?limit=7", None),
    ("GET", "/media", None, "GET", "/media/inspect", None),
    ("GET", "/media?include_expired=1", None, "GET", "/media/inspect?include_expired=true", None),
    ("GET", "/media?include_expired=no", None, "GET", "/media/inspect?include_expired=false", None),
    ("DELETE", f"/sessions/{ESCAPED}", None, "DELETE", f"/sessions/{ESCAPED}", None),
    ("DELETE", f"/sessions/{'x' * 64}", None, "DELETE", f"/sessions/{'x' * 64}", None),
    ("POST", "/pairing", {"ttl_seconds": 60, "host": "h"}, "POST", "/pairing/mint", {"ttl_seconds": 60, "host": "h"}),
    ("POST", "/pairing", {"prefer": "lan", "public_url": "x"}, "POST", "/pairing/mint", {}),
    ("POST", "/pairing", {"mode": "Public", "public_url": "https://x.example", "grants": {"tui": 5}}, "POST",
     "/pairing/mint", {"grants": {"tui": 5}, "endpoints": [_public(443, "wss://x.example:8767")]}),
    ("POST", "/pairing", {"mode": "public", "public_url": "http://x.example:81", "port": 9}, "POST",
     "/pairing/mint", {"port": 9, "endpoints": [_public(81, "ws://x.example:8767")]}),
    ("POST", "/media", {"path": "/a/b.PNG", "more": 1}, "POST", "/media/register",
     {"path": "/a/b.PNG", "content_type": "image/png", "file_name": "b.PNG"}),
    ("POST", "/media", {"path": "c.jpeg"}, "POST", "/media/register",
     {"path": "c.jpeg", "content_type": "image/jpeg", "file_name": "c.jpeg"}),
)  # fmt: skip
ASKED: tuple[tuple[str, str, object, str, str], ...] = (  # and what the API is asked for
    ("GET", "/sessions?limit=2", None, "GET", "/api/sessions"),
    ("POST", "/sessions", {"title": "t"}, "POST", "/api/sessions"),
    ("PATCH", f"/sessions/{ESCAPED}", {"title": "t"}, "PATCH", f"/api/sessions/{ESCAPED}"),
    ("DELETE", "/sessions/abc", None, "DELETE", "/api/sessions/abc"),
    ("GET", "/sessions/abc/messages", None, "GET", "/api/sessions/abc/messages"),
    ("GET", "/sessions/search?q=a%20b%26c", None, "GET", "/api/sessions/search?q=a%20b%26c"),
    ("GET", "/runs/r1", None, "GET", "/v1/runs/r1"),
    ("POST", "/runs/r1/stop", {}, "POST", "/v1/runs/r1/stop"),
    ("POST", "/runs/r1/approval", {"choice": "once"}, "POST", "/v1/runs/r1/approval"),
    ("GET", "/mcp-servers", None, "GET", "/api/mcp-servers"),
    ("POST", "/mcp-servers/reload", {}, "POST", "/api/mcp-servers/reload"),
    ("POST", "/memory", {"content": "c"}, "POST", "/api/memory"),
    ("DELETE", "/memory", {"old_text": "c"}, "DELETE", "/api/memory"),
)
BROWSERS = {  # what a browser shows to the dashboard, and nobody else is shown
    "cookie": "theme=dark; id=5",
    "x-forwarded-for": "10.9.9.9",
    "x-svc-local-secret": "guessed",
    "accept-language": "de",
}


class Board:
    """A dashboard of one's own, as a process of the home."""

    def __init__(self, audit: Audit, **config: Any) -> None:
        self.audit = audit
        home = audit.world.home
        relay = RelayConfig(
            home=home.state, config_path=f"{home.state}/config.yaml", trusted_proxies=config.pop("trusted", ())
        )
        self.config = DashboardConfig(port=PORT, relay=relay, **config)
        make = Dashboard(self.config, {"index.html": b"<p>"})
        self.process: Process = home.start(lambda entropy: Engine(make, entropy=entropy), [PORT], name="board")
        audit.wait(lambda: self.process.ready, why="the dashboard does not start")

    def ask(
        self, method: str, path: str, body: object = None, host: Host | None = None, name: str = "", **headers: str
    ) -> Caller:
        """Somebody asks it."""
        audit = self.audit
        where = "127.0.0.1" if host is None else HOME
        target = Target(where, PORT, name or f"{where}:{PORT}")
        fields = {key.replace("_", "-"): value for key, value in headers.items()}
        return audit.answer(audit.begin((host or audit.world.home, target), method, path, body, fields))

    def stop(self) -> None:
        """Enough of it."""
        audit = self.audit
        audit.world.expected[self.process] = None
        self.process.stop(5.0)
        audit.wait(lambda: not self.process.alive, 30.0, "the dashboard does not stop")
        audit.same(self.process.exit_code, 0, "how the dashboard ends")


@define(eq=False)
class _Counted(Guesses):
    """Those of an address: of a host, or of one that a proxy names which is believed."""

    host: Host | None = None
    named: tuple[str, ...] = ()  # what its proxy may say of it

    def headers(self, audit: Audit) -> dict[str, str]:
        """What is said of it on the way."""
        return {"x_forwarded_for": audit.pick(self.named)} if self.named else {}


def _people(audit: Audit, proxy: Host) -> list[_Counted]:
    """Hosts, and those behind a proxy; who only says to be somebody else is who he is, and so is who names nobody."""
    one, other = (f"203.0.113.{audit.rng.randint(1, 250)}", f"198.51.100.{audit.rng.randint(1, 250)}")
    liar = tuple(f"192.0.2.{number}" for number in range(1, 9))
    behind = [(name, f"6.6.6.6, {name}", f"x,{name}:5000", f"{one}, {name}") for name in (other, one)]
    people = [_Counted(), _Counted(host=audit.host()), _Counted(host=audit.host(), named=(one, other, *liar))]
    return [*people, *(_Counted(host=proxy, named=named) for named in (*behind, ()))]


def basic(password: str, user: str = "me") -> str:
    """What a browser shows."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def passwords(audit: Audit) -> None:
    """Who knows the password is let in, unless its address has guessed too often; nothing is not a guess."""
    proxy = audit.host()
    trusted = {"trusted": (proxy.address,)} if audit.chance(0.6) else {}
    board = Board(audit, host="0.0.0.0", password=PASSWORD, names=("board.example",), **trusted)
    people = _people(audit, proxy)
    if not trusted:  # all that it passes on is its own
        people[3:] = [_Counted(host=proxy, named=people[3].named + people[4].named)]
    planned = deque[float]()
    if audit.chance(0.5):  # most of five are late in the first one's minute, and the others behind it
        planned += [WRONG, WINDOW - 3.0, WRONG, WRONG, WRONG, 6.0, WRONG, WRONG, RIGHT]
    busy = audit.pick(people)
    for _ in range(audit.rng.randint(24, 36)):
        one = busy if planned else audit.pick((*[busy] * 5, *people))
        path, what = audit.pick(SHOWN), planned.popleft() if planned else audit.pick(KINDS)
        if what > WRONG:
            audit.rest(what)
            continue
        one.stay_clear(audit, EDGE / 2)
        kind, blocked = int(what), audit.now < one.until
        near = [mark for mark in one.marks if audit.now < mark]
        if kind == 0 and near:
            audit.rest_until(audit.pick(near) + audit.pick((-EDGE, EDGE)))
        elif kind in (1, 2):
            user = audit.pick(("", "me", "someone"))
            caller = board.ask("GET", path, host=one.host, **one.headers(audit), authorization=basic(PASSWORD, user))
            audit.right(caller, 429 if blocked else 200, about=f"the password, {one}")
            if not blocked:
                one.failures.clear()
        elif kind == 3:
            _nothing_shown(audit, board, path, one, blocked=blocked)
        elif kind == 4 and not blocked:
            _called(audit, board, path, one)
            one.failures.clear()
        else:
            _guessed(audit, board, path, one, blocked=blocked)
    audit.right(board.ask("GET", "/healthz"), 200, about="whether it lives")
    board.stop()


def _guessed(audit: Audit, board: Board, path: str, one: _Counted, *, blocked: bool) -> None:
    """A wrong password, and what comes of it."""
    wrong = audit.pick((PASSWORD[:-1], f"{PASSWORD}x", PASSWORD.upper(), "", f"x:{PASSWORD}"))
    caller = board.ask("GET", path, host=one.host, **one.headers(audit), authorization=basic(wrong))
    audit.right(caller, 429 if blocked else 401, about=f"a wrong password, {one}")
    if blocked:
        wait = int(header(caller, "retry-after") or 0)
        audit.near(wait, one.until - audit.now, "when to come again", 1.5)
        return
    one.failed(audit.now)


def _nothing_shown(audit: Audit, board: Board, path: str, one: _Counted, *, blocked: bool) -> None:
    """Who shows no password is told that there is one, and has not guessed."""
    more = audit.pick(({}, {"authorization": f"Bearer {PASSWORD}"}, {"authorization": PASSWORD}))
    caller = board.ask("GET", path, host=one.host, **one.headers(audit), **more)
    audit.right(caller, 429 if blocked else 401, about=f"no password, {one}")
    if not blocked:
        told = header(caller, "www-authenticate")
        audit.same(told.partition(" ")[0], "Basic", "how to come in")


def _called(audit: Audit, board: Board, path: str, one: _Counted) -> None:
    """By what name it may be called, and from where; a wrong password is none of a guess there."""
    name = audit.pick(("elsewhere.example", f"board.example.org:{PORT}"))
    caller = board.ask("GET", path, host=one.host, **one.headers(audit), name=name, authorization=basic("wrong"))
    audit.right(caller, 403, about=f"a dashboard that is called {name}")
    caller = board.ask(
        "GET", path, host=one.host, **one.headers(audit), origin="https://x.example", authorization=basic("wrong")
    )
    audit.right(caller, 403, about="a page of elsewhere")
    good = board.ask(
        "GET", path, host=one.host, **one.headers(audit), name=f"BOARD.example:{PORT}", authorization=basic(PASSWORD)
    )
    audit.right(good, 200, about="a dashboard by its name")


class _Fake(Place):
    """A server beside the dashboard that notes what it is asked for, and answers as it is told to."""

    def __init__(self, audit: Audit, port: int) -> None:
        super().__init__(audit.world.home, port)
        self.heard: list[tuple[RequestHead, bytes]] = []
        self.answer: tuple[int, bytes, str] = (200, b"{}", "application/json")
        self.more: list[tuple[bytes, bytes]] = []
        self.late = 0.0
        self.counts: dict[str, float] | None = None  # what a monitor reads; of some, by so many more each second
        self.audit = audit

    def asked(self, visit: Visit, body: bytes) -> None:
        """Say what is to be said."""
        head = visit.head
        if head.target != "/metrics":  # which the dashboard asks for by itself
            self.heard.append((head, body))
        status, data, kind = self.answer
        if head.target == "/metrics" and self.counts is not None:
            grown = {name: count * (self.audit.now if "_total" in name else 1.0) for name, count in self.counts.items()}
            text = "".join(f"{name} {count}\n" for name, count in grown.items())
            status, data, kind = 200, f"{text}# EOF\n".encode(), "text/plain"
        fields = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(data)), *self.more]
        answer = ResponseHead(visit.stream, status, Headers(fields))
        said = (answer, ResponseData(visit.stream, data), ResponseEnd(visit.stream))
        self.audit.world.sim.after(self.late, lambda: visit.put(*said))


class _Proxy:
    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.relay, self.api = _Fake(audit, RELAY_PORT), _Fake(audit, API_PORT)
        self.password = audit.chance(0.5)
        more = {"password": PASSWORD} if self.password else {}
        self.board = Board(
            audit,
            relay_url=f"http://127.0.0.1:{RELAY_PORT}",
            api_url=f"http://127.0.0.1:{API_PORT}",
            api_key=API_KEY,
            **more,
        )

    def call(self, method: str, path: str, body: object) -> Caller:
        """A browser asks, with all that browsers show."""
        if self.password:
            return self.board.ask(method, path, body, None, "", authorization=basic(PASSWORD), **BROWSERS)
        own = {key: value for key, value in BROWSERS.items() if key != "x-forwarded-for"}
        return self.board.ask(method, path, body, None, "", **own)

    def one(self) -> None:
        """One call, how it is passed on, and how its answer is."""
        audit = self.audit
        if audit.chance(0.5):
            method, path, body, theirs, target, sent = audit.pick(RELAYED)
            fake, path, key = self.relay, f"{audit.pick((PREFIX, '/api/plugins/hermes-relay'))}{path}", None
        else:
            method, path, body, theirs, target = audit.pick(ASKED)
            fake, path, sent, key = self.api, f"/api/agent{path}", body, f"Bearer {API_KEY}"
        text = json.dumps({"mark": audit.word(), "ok": True}).encode()
        status, data, kind = audit.pick(
            (
                *((200, text, "application/json"), (201, text, "application/json"), (200, text, "text/plain")),
                *((200, b"", "application/json"), (404, text, "application/json"), (409, b"two of them", "text/plain")),
                *((400, b"", "text/plain"), (429, text, "application/json"), (500, text, "application/json")),
                *((503, b"x" * 300, "text/plain"), (200, b"<p>", "text/html"), (302, text, "application/json")),
                *((403, b"y" * 300, "text/plain"), (401, text, "application/json")),
            )
        )
        fake.answer, fake.late = (status, data, kind), audit.pick((0.0, 0.0, 0.0, PATIENCE - EDGE, PATIENCE + EDGE))
        fake.more = [(b"set-cookie", b"id=1"), (b"x-inside", b"1"), (b"cache-control", b"public, max-age=9")]
        fake.heard.clear()
        caller = self.call(method, path, body)
        ((head, got),) = fake.heard
        told = (head.method, head.target, json.loads(got) if got else None)
        audit.same(told, (theirs, target, sent), f"what {method} {path} is passed on as")
        shown = {name.decode(): value.decode() for name, value in head.headers}
        audit.same(shown.get("authorization"), key, f"who asks for {target}")
        passed = [name for name, value in BROWSERS.items() if shown.get(name) == value]
        audit.same(passed, [], f"what of a browser's is passed on with {target}")
        self.judge(caller, status, data, fake)

    def judge(self, caller: Caller, status: int, data: bytes, fake: _Fake) -> None:
        audit = self.audit
        about = f"{status} {data[:20]!r} after {fake.late:.1f} s, to {caller.method} {caller.path}"
        headers = caller.answer.headers
        audit.same([headers.get(name) for name in (b"set-cookie", b"x-inside")], [None, None], f"fields of {about}")
        audit.same(headers.get(b"cache-control"), b"no-store", f"whether {about} may be kept")
        is_json = data[:1] == b"{"
        broken = status >= 500 or 300 <= status < 400 or (status < 300 and bool(data) and not is_json)
        broken = broken or fake.late > PATIENCE or (status == 401 and fake is self.api)
        if broken:
            told = audit.right(caller, 502, about=about)["detail"]
            port = RELAY_PORT if fake is self.relay else API_PORT
            why = "5 seconds" if fake.late > PATIENCE else str(status) if status >= 300 and status != 401 else ""
            if f"127.0.0.1:{port}" not in told or why not in told or len(told) > 300:
                audit.wrong(f"{about} is told as {told!r}")
        elif status >= 400:
            told = audit.right(caller, status, about=about)["detail"]
            if data:
                audit.same(told, json.loads(data) if is_json else data.decode()[:200], f"what is told of {about}")
        else:
            audit.right(caller, status if data else 204, about=about)
            audit.same(caller.answer.body, data, f"the body of {about}")


PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
OTHERS = ("image/svg+xml", "text/html", "application/octet-stream", "image/png; x=1")
EVERY, SPAN = 15.0, 3600.0  # s between two looks, and for which they are kept
RATES = {"requests": 7.0, "errors": 2.0, "commands": 3.0, "failed": 1.0, "ended": 0.5, "tokens": 40.0}
COUNTED = {  # what is read of the relay, and what grows by so much a second
    'svc_http_requests_total{method="GET",route="/x",status="200"}': 5.0,
    'svc_http_requests_total{method="GET",route="/x",status="503"}': 2.0,
    'svc_http_requests_total{method="GET",route="/metrics",status="200"}': 9.0,
    'svc_bridge_commands_total{outcome="success"}': 2.0,
    'svc_bridge_commands_total{outcome="failure"}': 1.0,
}
OF_API = {'svc_turns_total{outcome="completed"}': 0.5, 'svc_tokens_total{kind="output"}': 40.0, "svc_runs": 6}


def _pictures(audit: Audit, proxy: _Proxy) -> None:
    """A picture is passed on as it is, and nothing that may hold a script; what is none is not handed out."""
    proxy.relay.late, proxy.relay.more = 0.0, [(b"set-cookie", b"id=1")]
    kind, data = audit.pick((*PICTURES, *OTHERS)), b"picture " + audit.word().encode()
    proxy.relay.answer = (200, data, kind)
    caller = proxy.call("GET", f"{PREFIX}/media/{ESCAPED}", None)
    audit.same(proxy.relay.heard[-1][0].target, f"/media/inspect/{ESCAPED}", "where a picture is asked for")
    if kind in PICTURES:
        fields = [caller.answer.headers.get(name) for name in (b"content-type", b"cache-control", b"set-cookie")]
        told = (caller.status, caller.answer.body, fields)
        audit.same(told, (200, data, [kind.encode(), b"no-store", None]), "a picture that is passed on")
    else:
        audit.right(caller, 415, about=f"a file of {kind}")
    proxy.relay.heard.clear()
    for name in ("/a/b.svg", "/a/png", "/a/b.png.txt", "/a/b."):
        audit.right(proxy.call("POST", f"{PREFIX}/media", {"path": name}), 415, about=f"to hand out {name}")
    audit.same(proxy.relay.heard, [], "what is handed out that is no picture")
    for path, method in (("/screen", "GET"), ("/touch", "POST"), ("/say", "POST")):
        audit.right(
            proxy.call(method, f"/api/phone{path}", None if method == "GET" else {}), 404, about="no phone here"
        )


def _hour(audit: Audit, proxy: _Proxy) -> None:
    """The last hour: what there is, and what grew; a look each quarter of a minute is kept."""
    for fake in (proxy.relay, proxy.api):
        fake.late, fake.more = 0.0, []
    there = {"svc_phones": audit.rng.randint(0, 9), "svc_sessions": audit.rng.randint(0, 9)}
    sockets = {'svc_sockets{channel="client"}': 4, 'svc_sockets{channel="terminal"}': 2}
    proxy.relay.counts = {**COUNTED, **there, **sockets, "svc_bridge_commands_waiting": 3}
    proxy.api.counts = {**OF_API} if audit.chance(0.7) else None
    proxy.api.answer = (500, b"no", "text/plain")
    span = audit.pick((2 * EVERY, 6 * EVERY + 3.0, SPAN + 203.0))  # not just when a connection is idle for too long
    audit.rest(span)
    told = audit.right(proxy.call("GET", "/api/vitals", None), 200)
    audit.same((told["every"], told["span"]), (EVERY, SPAN), "how often, and for how long")
    audit.same(told["answers"], {"relay": True, "api": proxy.api.counts is not None}, "who answers")
    now = dict(zip(told["names"], told["now"], strict=True))
    is_: dict[str, int | None] = {
        "phones": there["svc_phones"],
        "sessions": there["svc_sessions"],
        "sockets": 4,
        "waiting": 3,
    }
    is_ |= {"turns": None if proxy.api.counts is None else 6}
    audit.same({name: now[name] for name in is_}, is_, "what there is")
    for name, rate in RATES.items():
        if name in ("ended", "tokens") and proxy.api.counts is None:
            audit.same(now[name], None, f"{name} of who does not answer")
        else:
            audit.near(now[name], rate, f"{name} a second", 0.3 + rate / 20)
    times = [row[0] for row in told["rows"]]
    steps = [later - earlier for earlier, later in pairwise(times)]
    if len(times) > SPAN / EVERY or any(not 0.9 * EVERY <= step <= 2.1 * EVERY for step in steps[1:]):
        audit.wrong(f"looks were kept at {times[:3]}, and {len(times)} in all")
    if len(times) < min(span, SPAN) / EVERY - 2:
        audit.wrong(f"{len(times)} looks were kept of {span:.0f} s")
    audit.near(now["at"], audit.wall, "when that was", 2.0)


def proxied(audit: Audit) -> None:
    """Each call of the page goes where it has to, with what it needs and nothing of the browser's."""
    proxy = _Proxy(audit)
    for _ in range(audit.rng.randint(10, 16)):
        proxy.one()
    for part in (_pictures, _hour):
        if audit.chance(0.6):
            part(audit, proxy)
    missing = proxy.call("GET", f"{PREFIX}/nothing", None)
    audit.right(missing, 404, about="a call that there is none of")
    for fake in (proxy.relay, proxy.api):
        fake.heard.clear()
        fake.close()
    audit.right(proxy.call("GET", f"{PREFIX}/sessions", None), 502, about="a relay that is not there")
    proxy.board.stop()


GATES = (passwords, proxied)
