"""Who opens voice by the API's key: when the API is asked, what is remembered of its word, and who is believed.

The relay is one of its own, and in the place of its API stands a listener that notes what it is asked and says what it
is told to, or nothing.
"""

from __future__ import annotations

from typing import Any

from fuzz.audit import Audit
from fuzz.audits.annex import Annex
from fuzz.audits.paired import Paired, pair
from fuzz.terms import Wish
from runtimes.sim.host import Host
from tests.support.sim_http import RequestClient as Caller
from tests.support.sim_http import ScriptedHttpServer as Place
from tests.support.sim_http import ServerAddress as Target
from tests.support.sim_http import ServerSideConnection as Visit

__all__ = ["BEARERS"]

API_PORT = 8642
REMEMBERED = 60.0  # s, wire terminal-voice 7
PATIENCE = 5.0  # s for the API's word
AT_ONCE = 64  # who are asked about at a time
EDGE = 1.0  # s
LONGEST = 4_096  # characters of a bearer
YES, NO, ELSEWHERE, BROKEN, SILENT = 200, 401, 302, 500, 0
SWITCH = "allow_insecure_api_bearer"


class _Api(Place):
    """Says yes to keys that are good; without a key of its own to everybody."""

    def __init__(self, host: Host) -> None:
        super().__init__(host, API_PORT)
        self.heard: list[str] = []
        self.good: dict[str, None] = {}
        self.keyless = False
        self.manner = YES  # how it is with it at all

    def says(self, key: str) -> int:
        """What it says of a key."""
        return NO if self.manner == YES and not self.keyless and key not in self.good else self.manner

    def asked(self, visit: Visit, body: bytes) -> None:
        """About a key, or about nobody's."""
        head = visit.head
        shown = (head.headers.get(b"authorization") or b"").decode().removeprefix("Bearer ")
        self.heard.append(f"{head.method} {head.target} {shown}".strip())
        status = self.says(shown)
        if status != SILENT:
            visit.answer(status, b"{}", (b"location", b"/v1/models?again"))


class _Bearers:
    """Keys, and until when the relay goes by what it was told of each."""

    def __init__(self, audit: Audit) -> None:
        self.proxy = audit.host()
        trusted: dict[str, Any] = {"trusted_proxies": (self.proxy.address,)} if audit.chance(0.4) else {}
        self.annex = Annex(audit, webapi_url=f"http://127.0.0.1:{API_PORT}", **trusted)
        self.proxied = bool(trusted)
        self.api = _Api(self.annex.home)
        self.keys = [self.key() for _ in range(3)]
        self.api.good = dict.fromkeys(self.keys[:2])
        self.known: dict[str, float] = {}  # keys that are good, until when
        self.keyed = 0.0  # until when the API is one that has a key
        self.own = ""  # the key of this home
        self.open = False  # the switch
        if audit.chance(0.6):
            self.turn()
        self.busy = self.keys[0]
        self.poor: Paired = pair(self.annex, wish=Wish(None, {"voice:config": None}))
        self.one: Paired = pair(self.annex)

    def key(self) -> str:
        key = f"voice-key-{self.annex.word()}"
        self.annex.world.secrets[key] = "a key of the API"
        return key

    def steps(self) -> None:
        annex = self.annex
        kinds = (*[self.ask] * 9, self.turn, self.change, self.change, self.wait, self.wait, self.write, self.pair)
        for _ in range(annex.rng.randint(30, 44)):
            annex.pick(kinds)()
            if annex.chance(0.2):  # from now on it is mostly about another key
                self.busy = annex.pick(self.keys)
        if annex.chance(0.12):
            self.crowd()
        for each in (self.poor, self.one):
            each.seat.hang_up()
        annex.stop()

    # --- what changes ---

    def turn(self) -> None:
        """The switch for keys over plain HTTP."""
        self.open = self.annex.chance(0.7)
        self.annex.right(self.annex.ask_here("PATCH", "/relay/security", {SWITCH: self.open}), 200)

    def change(self) -> None:
        """Another key is good, or none is asked for, or the API is away."""
        annex, api = self.annex, self.api
        match annex.rng.randrange(4):
            case 0:
                api.manner = annex.pick((YES, YES, ELSEWHERE, BROKEN, SILENT))
            case 1:
                api.keyless = not api.keyless
            case _:
                api.good = dict.fromkeys(annex.rng.sample(self.keys, annex.rng.randint(0, 2)))
                api.manner = YES

    def wait(self) -> None:
        """Until just before, or just behind, the end of what is remembered."""
        annex = self.annex
        if not annex.rest_about((*self.known.values(), self.keyed), EDGE):
            annex.rest_until(annex.now + annex.pick((0.0, 20.0)))

    def write(self) -> None:
        """The home has a key, and any other may be the one before it."""
        self.own = self.annex.pick(("", *self.keys))
        self.annex.home.disk.put(f"{self.annex.home.state}/.env", f"API_SERVER_KEY={self.own}\n".encode())

    # --- what is asked ---

    def pair(self) -> None:
        """The token of a session is nobody's key: the API is not shown it."""
        annex = self.annex
        self.api.heard.clear()
        for one, status in ((self.one, 200), (self.poor, 403)):
            annex.right(annex.ask(one.token, "GET", "/voice/config"), status, about="a session's own token")
        annex.same(self.api.heard, [], "what the API is asked about a session's token")

    def ask(self) -> None:
        """Somebody shows a key."""
        annex = self.annex
        key = annex.pick((*[self.busy] * 5, *self.keys, f"none-{annex.word()}"))
        bad = (f"bearer {key}", key, "Bearer", f"Bearer {'x' * (LONGEST + 1)}")
        fine = annex.chance(0.9)
        shown = f"Bearer {key}" if fine else annex.pick(bad)
        where, here, safe, fields = self.place()
        self.api.heard.clear()
        fields["authorization"] = shown
        began = annex.now
        caller = annex.answer(annex.begin(where, "GET", "/voice/config", None, fields))
        if not fine:
            annex.right(caller, 401, about=f"{shown[:20]!r}")
            annex.same(self.api.heard, [], "what the API is asked about what is no bearer")
        elif not safe and not self.open:
            annex.right(caller, 403, about="a key over plain HTTP from elsewhere")
            annex.same(self.api.heard, [], "what the API is asked about who may not ask")
        else:
            self.judge(caller, key, began, here=here)

    def place(self) -> tuple[tuple[Host, Target], bool, bool, dict[str, str]]:
        """From where: whether it is this host, whether nobody can read it on the way, and what is shown besides."""
        annex = self.annex
        kind = annex.pick((0, 0, 0, 1, 2, 2, 3))
        if kind == 0:
            secret = annex.shown_here() if annex.chance(0.7) else {}
            return (annex.home, annex.local), bool(secret) or not self.proxied, True, dict(secret)
        if kind == 1:  # passed on, which makes it nobody's of this host
            return (annex.home, annex.local), False, False, {"x-forwarded-for": "203.0.113.9"}
        host = self.proxy if kind == 2 else annex.world.agent
        said = annex.pick(("https", "https", "http", "http, https", "https, http"))
        believed = host is self.proxy and self.proxied and said.startswith("https")
        return (host, annex.remote), False, believed, {"x-forwarded-proto": said}

    def judge(self, caller: Caller, key: str, began: float, *, here: bool) -> None:
        """What the API has to be asked, and what comes of it."""
        annex, api = self.annex, self.api
        afresh = self.own not in ("", key)
        if any(abs(began - mark) < EDGE / 2 for mark in (self.known.get(key, -9.0), self.keyed)):
            self.known.pop(key, None)
            self.keyed = (
                annex.now + REMEMBERED if any(not each.rpartition("models")[2] for each in api.heard) else self.keyed
            )
            annex.rest(REMEMBERED + 2 * EDGE)  # just at the edge: nobody can tell, and from here on nobody knows
            return
        due: list[str] = []
        good = not afresh and began < self.known.get(key, 0.0)
        if not good:
            due.append(f"GET /v1/models {key}")
            good = api.says(key) == YES
            if good and not afresh:
                self.known[key] = annex.now + REMEMBERED
        if good and not here and began >= self.keyed:
            due.append("GET /v1/models")
            good = api.says("") != YES
            self.keyed = annex.now + REMEMBERED if good else self.keyed
        annex.same(api.heard, due, f"what the API is asked about a key, of this host: {here}")
        annex.right(caller, 200 if good else 401, about=f"a key, of this host: {here}, asked: {due}")
        if due and api.manner == SILENT:
            annex.near(caller.ended - caller.began, PATIENCE * len(due), "how long an API that is silent is waited for")

    def crowd(self) -> None:
        """So many are asked about at once; one more is told to come again."""
        annex = self.annex
        self.api.manner, self.open = SILENT, True
        annex.right(annex.ask_here("PATCH", "/relay/security", {SWITCH: True}), 200)
        hosts = [annex.host() for _ in range(AT_ONCE // 4)]  # of each not more than a stranger may ask at once
        fields = [{"authorization": f"Bearer none-{annex.word()}"} for _ in range(AT_ONCE)]
        callers = [
            annex.begin((hosts[place // 4], annex.remote), "GET", "/voice/config", None, each)
            for place, each in enumerate(fields)
        ]
        annex.rest(1.0)
        annex.right(
            annex.ask(f"none-{annex.word()}", "GET", "/voice/config"), 503, about="one too many who are asked about"
        )
        for caller in callers:
            annex.right(annex.answer(caller), 401, about="one of many who are asked about")


def bearers(audit: Audit) -> None:
    """Keys of the API are shown to the relay's voice, while the API changes its mind."""
    _Bearers(audit).steps()


BEARERS = (bearers, bearers)
