"""A relay whose tables hold few: what makes room for what, who is turned away, and that nobody else is touched.

The numbers themselves are looked at elsewhere; here they are small, so that each table is full most of the time: codes,
sessions, commands on their way, addresses that are counted and those that are blocked.
"""

from __future__ import annotations

from attrs import define, field

from fuzz.audit import Audit, Seat
from fuzz.audits.annex import Annex
from fuzz.audits.guesses import BLOCK, FAILURES, WINDOW
from fuzz.audits.paired import listed, sign_in
from runtimes.sim.host import Host
from tests.support.sim_http import RequestClient as Caller

__all__ = ["CRAMMED"]

CODES, SESSIONS, COMMANDS, COUNTED, BLOCKED = 4, 6, 3, 4, 2
NEAR = 1.0  # s about an edge at which nobody can tell


@define(eq=False)
class _One:
    """A session, and its socket."""

    token: str
    seat: Seat
    host: Host


@define(eq=False)
class _Crammed:
    annex: Annex
    codes: dict[str, float] = field(factory=dict)  # and when they were registered, in this order
    there: list[_One] = field(factory=list)
    counted: dict[Host, list[float]] = field(factory=dict)  # failures, by who failed last
    blocked: dict[Host, float] = field(factory=dict)  # until when, by who was blocked last
    guessers: list[Host] = field(factory=list)

    def steps(self) -> None:
        annex = self.annex
        self.register()
        self.use()
        kinds = (self.register, self.register, self.use, self.use, self.guess, self.guess, self.revoke, self.command)
        if annex.chance(0.6):
            self.crowd()
        for _ in range(annex.rng.randint(20, 30)):
            annex.pick(kinds)()
        self.look()

    # --- codes and sessions ---

    def register(self) -> None:
        """A code more, or one that is there anew: it is the newest. All blocks are lifted."""
        annex = self.annex
        if self.blocked and annex.chance(0.7):
            return
        code = annex.pick([*self.codes]) if self.codes and annex.chance(0.3) else f"C{annex.crowd.number():05}"
        annex.right(annex.ask_here("POST", "/pairing/register", {"code": code}), 200)
        self.codes.pop(code, None)
        if len(self.codes) >= CODES:
            del self.codes[next(iter(self.codes))]
        self.codes[code] = annex.now
        self.counted.clear()
        self.blocked.clear()

    def use(self) -> None:
        """One that is there is good once, and one that had to go is not; a session too many is none."""
        annex, host = self.annex, self.annex.host()
        if not self.codes:
            self.register()
        if not self.codes:
            return
        code = annex.pick([*self.codes])
        del self.codes[code]
        seat = sign_in(annex, host, {"pairing_code": code, "device_id": annex.word(), "client_surface": "android"})
        told = seat.take()
        if len(self.there) >= SESSIONS:
            annex.same(told["type"], "auth.fail", "a session too many")
            if "too many" not in told["payload"]["reason"]:
                annex.wrong(f"a session too many is told {told}")
        else:
            annex.same(told["type"], "auth.ok", f"a code that is there, of {len(self.codes) + 1}")
            token = told["payload"]["session_token"]
            annex.world.secrets[token] = "a token"
            self.there.append(_One(token, seat, host))
        again = sign_in(annex, host, {"pairing_code": code})
        annex.same(again.take()["type"], "auth.fail", "a code that was used")
        self.failed(host)
        again.hang_up()

    def revoke(self) -> None:
        if not self.there:
            return
        annex, one = self.annex, self.annex.pick(self.there)
        self.there.remove(one)
        annex.right(annex.ask_here("DELETE", f"/sessions/{one.token[:8]}"), 200)
        annex.wait(lambda: one.seat.over, 5.0, "a socket outlives its session")
        annex.rest(0.5)

    # --- addresses ---

    def crowd(self) -> None:
        """Somebody has guessed nearly too often when the table is full; who has not for the longest is forgotten."""
        early, busy = [self.annex.host() for _ in range(COUNTED - 2)], self.annex.host()
        late = [self.annex.host() for _ in range(self.annex.pick((1, 2, 3)))]
        for host in (*early, *[busy] * (FAILURES - 1), *late, busy, busy, early[0]):
            self.guess(host)

    def guess(self, host: Host | None = None) -> None:
        """Somebody shows a code that is none, or that had to make room."""
        annex = self.annex
        if not self.guessers or (len(self.guessers) < COUNTED + 2 and annex.chance(0.4)):
            self.guessers.append(annex.host())
        host = host or annex.pick(self.guessers[-2:] if annex.chance(0.7) else self.guessers)
        self.settle()
        seat = annex.sit(host)
        if host in self.blocked:
            annex.same((seat.over, seat.talker.status), (True, 429), "an address that is blocked")
            return
        if seat.over:
            so = [len(each) for each in self.counted.values()]
            annex.wrong(f"{host.name} got {seat.talker.status}, {so} and {len(self.blocked)} blocked")
        seat.say("system", "auth", {"pairing_code": "ZZZZZZ"})
        annex.same(seat.take()["type"], "auth.fail", "a code that is none")
        self.failed(host)
        seat.hang_up()

    def settle(self) -> None:
        """Not to be where nobody can tell; what is over is over."""
        annex = self.annex
        edges = [*self.blocked.values(), *(each[-1] + WINDOW for each in self.counted.values())]
        while any(abs(annex.now - edge) < NEAR for edge in edges):
            annex.rest(2 * NEAR)
        self.blocked = {host: until for host, until in self.blocked.items() if annex.now < until}
        self.counted = {host: times for host, times in self.counted.items() if annex.now < times[-1] + WINDOW}

    def failed(self, host: Host) -> None:
        now = self.annex.now
        known = host in self.counted
        times = [when for when in self.counted.pop(host, []) if now - when < WINDOW] + [now]
        if len(times) >= FAILURES:
            if len(self.blocked) >= BLOCKED:
                del self.blocked[next(iter(self.blocked))]
            self.blocked[host] = now + BLOCK
            return
        if not known and len(self.counted) >= COUNTED:
            del self.counted[next(iter(self.counted))]
        self.counted[host] = times

    # --- commands ---

    def command(self) -> None:
        """So many may be on their way; one too many is refused, and leaves no record."""
        annex = self.annex
        if not self.there:
            return
        one, phone = annex.pick(self.there), annex.pick(self.there)
        annex.world.phones_say_what_they_will = True
        shown = self.look()
        device = next(each for each in shown if each["session_token_prefix"] == phone.token[:8])["device_id"]
        path = f"/ping?device={device}"
        waiting: list[tuple[Caller, str]] = []
        for _ in range(COMMANDS):
            caller = annex.begin_as(one.token, "GET", path)
            waiting.append((caller, phone.seat.take()["payload"]["request_id"]))
        before = annex.right(annex.ask_here("GET", "/bridge/activity"), 200)["activity"]
        annex.right(annex.ask(one.token, "GET", path), 503, "too_many_commands", "a command too many")
        after = annex.right(annex.ask_here("GET", "/bridge/activity"), 200)["activity"]
        annex.same(after, before, "the activity behind a command too many")
        if phone.seat.heard:
            annex.wrong("a command too many reaches a phone")
        for caller, name in annex.rng.sample(waiting, len(waiting)):
            phone.seat.say("bridge", "bridge.response", {"request_id": name, "status": 200, "result": {"n": name}})
            annex.same(annex.right(annex.answer(caller), 200), {"n": name}, "a command that was not too many")
        annex.world.phones_say_what_they_will = False

    def look(self) -> list[dict[str, object]]:
        """All that should be there is there, and only that."""
        annex = self.annex
        annex.same(sorted(listed(annex)), sorted(one.token[:8] for one in self.there), "the sessions that are there")
        devices: list[dict[str, object]] = annex.right(annex.ask_here("GET", "/bridge/devices"), 200)["devices"]
        prefixes = sorted(str(each["session_token_prefix"]) for each in devices)
        annex.same(prefixes, sorted(one.token[:8] for one in self.there), "the phones that are there")
        return devices


def crammed(audit: Audit) -> None:
    """Codes, sessions, addresses and commands, one too many of each."""
    annex = Annex(audit)
    relay = annex.relay
    relay.codes._codes._cap = CODES
    relay.sessions.cap, relay.bridge._cap = SESSIONS, COMMANDS
    relay.limiter._counting._cap, relay.limiter._blocked._cap = COUNTED, BLOCKED
    room = _Crammed(annex)
    room.steps()
    for one in room.there:
        one.seat.hang_up()
    annex.stop()


CRAMMED = (crammed,)
