"""Another relay, with other settings: behind a proxy, as careful as can be; and a crowd from many addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuzz.audit import Audit, Seat
from fuzz.audits.guesses import BLOCK, FAILURES
from fuzz.audits.paired import Paired, pair, register, sign_in
from fuzz.locks import secret_of
from fuzz.terms import OPEN, Wish
from fuzz.world import LIMITS
from runtimes.sim.child import ProgramFactory
from runtimes.sim.host import Host
from svc_proto.basics.entropy import Entropy
from svc_proto.config import RelayConfig, SessionPolicy
from svc_proto.engine.core import Engine
from svc_proto.relay.service import Relay
from tests.support.sim_http import RawBytesClient as Thrower
from tests.support.sim_http import ServerAddress as Target

__all__ = ["ANNEXES"]

PORT = 8767
EDGE = 1.5  # s
SECRET = "local_secret"
TYPED = ("/type", "/send_sms", "/clipboard")


class Annex(Audit):
    """Who goes through a relay of its own, on a host of its own."""

    def __init__(self, audit: Audit, *, programs: Mapping[str, ProgramFactory] | None = None, **config: Any) -> None:
        super().__init__(audit.crowd, audit.name, audit._pass_until, audit._supervise)
        self.rng, self.outer, self._hosts = audit.rng, audit, 50
        self.home, self.policy = audit.host(), OPEN
        self.home.programs.update(programs or {})
        self.home.spool = f"{self.home.state}/spool"  # as in the house: what is left there goes at the next start
        self.home.disk.folder(self.home.spool)
        address = self.home.address
        self.local = Target("127.0.0.1", PORT, f"127.0.0.1:{PORT}")
        self.remote = Target(address, PORT, f"annex.example:{PORT}")
        state = self.home.state
        common: dict[str, Any] = {"home": state, "config_path": f"{state}/config.yaml", "terminal_tmux": False}
        self.config = RelayConfig(**{**common, **config})
        self.home.rooms = self.config.voice.folders

        def make(entropy: Entropy) -> Engine:
            self.relay = Relay(self.config, limits=LIMITS)
            return Engine(self.relay, entropy=entropy)

        self._make = make
        self.again()

    def again(self) -> None:
        """It starts."""
        self.process = self.home.start(self._make, [PORT], name=f"annex of {self.name}")
        self.wait(lambda: self.process.ready, why="another relay does not start")

    def shown_here(self) -> dict[str, str]:
        """The secret, where there is a proxy."""
        shown = secret_of(self.home)
        return {} if shown is None else dict([shown])

    def host(self) -> Host:
        """The same, of the same row."""
        return self.outer.host()

    def stop(self) -> None:
        """It goes, and nothing was wrong with it."""
        for line in self.process.logs:
            self.world._judge_log(self.process, line)
        self.process.stop(5.0)
        self.wait(lambda: not self.process.alive, 30.0, "another relay does not stop")
        self.same(self.process.exit_code, 0, "how another relay ends")


def _guess(audit: Audit, host: Host, **headers: str) -> str:
    """Somebody shows a wrong code; what comes of it."""
    seat = audit.sit(host, **headers)
    if seat.over:
        return str(seat.talker.status)
    seat.say("system", "auth", {"pairing_code": "ZZZZZZ"})
    kind = str(seat.take()["type"])
    seat.hang_up()
    return kind


def addresses(audit: Audit) -> None:
    """A guess counts for an IPv4 address, or the /64 of an IPv6 one, however many others guess meanwhile."""
    sim, number = audit.world.sim, audit.crowd.number()

    def host(address: str) -> Host:
        return sim.host(f"far-{address.replace(':', '-').replace('.', '-')}", address)

    net = f"2001:db8:{number % 65_000:x}"
    same = [host(f"{net}:5::1"), host(f"{net}:5:ffff::9"), host(f"{net}:5:0:1::")]
    near = [host(f"{net}:6::1"), host(f"{net}:4:ffff:ffff:ffff:ffff")]
    others = [audit.host() for _ in range(audit.rng.randint(3, 12))]
    guesses = [audit.pick(same) for _ in range(FAILURES)]
    for one in guesses:
        for each in audit.rng.sample(others, 2):
            if audit.chance(0.4):
                audit.same(_guess(audit, each) in ("auth.fail", "429"), True, "one of a crowd")
        audit.same(_guess(audit, one), "auth.fail", f"a guess of {one.address}")
    since = audit.now
    for each in same:
        audit.same(_guess(audit, each), "429", f"{each.address}, behind {[guess.address for guess in guesses]}")
    for one in near:
        audit.same(_guess(audit, one), "auth.fail", f"{one.address}, which is of another net")
    audit.right(audit.ask_here("POST", "/pairing"), 200)
    audit.same(_guess(audit, same[0]), "429", "who is blocked when a program makes a code for itself")
    code = f"B{audit.crowd.number():05}"
    path, body = audit.pick((("/pairing/approve", {"code": code}), ("/pairing/mint", {"api_key": ""})))
    audit.right(audit.ask_here("POST", path, body), 200)
    audit.same(_guess(audit, same[0]), "auth.fail", f"who was blocked before {path}")
    for _ in range(FAILURES - 1):
        audit.same(_guess(audit, same[1]), "auth.fail", "a guess behind a block that was lifted")
    since = audit.now
    late = audit.chance(0.5)
    audit.rest_until(since + BLOCK + (EDGE if late else -EDGE))
    audit.same(_guess(audit, audit.pick(same)), "auth.fail" if late else "429", "about the end of a block")
    most = LIMITS.stranger_connections
    row = [host(f"{net}:7::{place}") for place in (1, 2)]
    crowd = [Thrower(audit.pick(row), audit.remote, b"G") for _ in range(most)]
    audit.rest(1.0)
    told = [each.over for each in crowd]
    audit.same(told, [False] * most, "strangers of one net, as many as there is room for")
    late_one = Thrower(audit.pick(row), audit.remote, b"G")
    audit.wait(lambda: late_one.over, 10.0, "a stranger too many of one net is not turned away")
    far = audit.answer(audit.begin((near[1], audit.remote), "GET", "/health"))
    audit.right(far, 200, about="a stranger of another net")
    for thrower in crowd:
        thrower.hang_up()
    audit.rest(1.0)


def fronted(audit: Audit) -> None:
    """Behind a proxy that is believed callers are whom it names; whoever else says so is who he is."""
    proxy, stranger = audit.host(), audit.host()
    annex = Annex(audit, trusted_proxies=(proxy.address, "10.99.0.0/16"))

    def by_proxy(client: str, **more: str) -> dict[str, str]:
        chain = annex.pick((client, f"6.6.6.6, {client}", f"{client}, 10.99.1.2", f"x, {client},10.99.0.7"))
        return {"x_forwarded_for": chain, **more}

    one, other = f"203.0.113.{annex.rng.randint(1, 99)}", f"198.51.100.{annex.rng.randint(1, 99)}"
    for _ in range(FAILURES):
        annex.same(_guess(annex, proxy, **by_proxy(one)), "auth.fail", f"a guess of {one} by a proxy")
    annex.same(_guess(annex, proxy, **by_proxy(one)), "429", f"{one}, who has guessed by a proxy")
    annex.same(_guess(annex, proxy, **by_proxy(other)), "auth.fail", "somebody else by the same proxy")
    annex.same(_guess(annex, stranger, **by_proxy(one)), "auth.fail", "who only says to be somebody who is blocked")
    for _ in range(FAILURES - 1):
        annex.same(_guess(annex, stranger, x_forwarded_for=f"192.0.2.{annex.rng.randint(1, 250)}"), "auth.fail", "more")
    annex.same(_guess(annex, stranger, x_forwarded_for="192.0.2.251"), "429", "who says to be another each time")
    for path, method in (("/pairing/register", "POST"), ("/bridge/activity", "GET"), ("/relay/security", "GET")):
        for host, target, headers in (
            (proxy, annex.remote, by_proxy("127.0.0.1")),
            (annex.home, annex.local, {}),
            (annex.home, annex.local, {**annex.shown_here(), "x-forwarded-for": "127.0.0.1"}),
            (annex.home, annex.local, {**annex.shown_here(), "via": "1.1 x"}),
            (annex.home, annex.local, {next(iter(annex.shown_here())): "0" * 43}),
        ):
            fields = {key.replace("_", "-"): value for key, value in headers.items()}
            caller = annex.answer(annex.begin((host, target), method, path, {"code": "ABC123"}, fields))
            annex.right(caller, 403, about=f"{path} by {host.name} with {[*headers]}")
    for proto, host, hint in (("https", proxy, "wss"), ("http", proxy, "ws"), ("https", stranger, "ws")):
        code = register(annex)
        seat = sign_in(annex, host, {"pairing_code": code}, **by_proxy(other, x_forwarded_proto=proto))
        annex.same(seat.take()["payload"]["transport_hint"], hint, f"how a phone came, {proto} by {host.name}")
        seat.hang_up()
    annex.stop()


def careful(audit: Audit) -> None:
    """A session may renew what its pairing gave, and no more, and only its own."""
    annex = Annex(audit, session_policy=SessionPolicy.AS_PAIRED, hide_typed_text=True)
    given = annex.pick((600, 3_600))
    one = pair(annex, wish=Wish(given, {"bridge": 60, "terminal": None}))
    other = pair(annex)
    path = f"/sessions/{one.prefix}"
    annex.rest(annex.pick((5.0, 50.0)))
    for ttl, grants, good in (
        (given, None, True),
        (given - 1, None, True),
        (given + 1, None, False),
        (0, None, False),
        (None, {"bridge": 60}, True),
        (None, {"bridge": 61}, False),
        (None, {"bridge": 0}, False),
        (None, {"terminal": 5}, False),
        (None, {"tui": 20}, True),
        (given, {"bridge": 30, "tui": 10}, True),
    ):
        body: dict[str, object] = {} if ttl is None else {"ttl_seconds": ttl}
        body |= {} if grants is None else {"grants": grants}
        if annex.chance(0.4):
            continue
        caller = annex.ask(one.token, "PATCH", path, body)
        if not good:
            annex.same(caller.status, 403, f"{body} of what was paired for {given} s, {caller.answer.body!r:.200}")
            continue
        told = annex.right(caller, 200, about=f"{body} of what was paired for {given} s")
        if ttl is not None:
            annex.near(told["expires_at"], annex.wall + ttl, "the end of a session that renews itself")
        for channel, span in (grants or {}).items():
            annex.near(told["grants"][channel], annex.wall + span, f"the end of {channel} that is renewed")
    caller = annex.ask(other.token, "PATCH", path, {"ttl_seconds": 60})
    annex.right(caller, 403, "self_only", "who changes somebody else's session")
    annex.right(annex.ask_here("PATCH", path, {"ttl_seconds": 90_000, "grants": {"terminal": 0}}), 200)
    _typed(annex, other)
    for each in (one, other):
        each.seat.hang_up()
    annex.stop()


def _typed(annex: Annex, caller: Paired) -> None:
    """What is typed stays out of the activity, and so does what a phone says of it."""
    phone = pair(annex, device_id=annex.word(), surface="android", form="phone")
    seat: Seat = phone.seat
    for path, body in (
        ("/type", {"text": "my word"}),
        ("/send_sms", {"to": "+1555", "body": "my word"}),
        ("/clipboard", {"text": "my word"}),
        ("/tap", {"x": 1, "y": 2}),
    ):
        call = annex.begin_as(caller.token, "POST", path, {**body, "device": phone.shown["device_id"]})
        annex.same(seat.obey({"said": "my word"})["body"], body, "what a phone is told")
        annex.same(annex.right(annex.answer(call), 200), {"said": "my word"}, "what a caller is told")
        (record,) = annex.right(annex.ask_here("GET", "/bridge/activity?limit=1"), 200)["activity"]
        shown = "my word" in repr(record)
        annex.same((record["path"], shown), (path, path == "/tap"), f"what is kept of {path}: {record}")
    seat.hang_up()


ANNEXES = (addresses, fronted, careful)
