"""Who guesses and who crowds: the limiter of addresses, and the room that strangers have, to the second and the one."""

from __future__ import annotations

from fuzz.audit import Audit
from fuzz.audits.guesses import WINDOW, Guesses
from fuzz.audits.paired import pair, register, sign_in
from fuzz.world import LIMITS, REMOTE
from runtimes.sim.host import Host
from tests.support.sim_http import RawBytesClient as Thrower

__all__ = ["LIMITERS"]

NEAR = 1.5  # s that an edge is passed or missed by
BLURRED = 0.8  # s before and behind an edge in which it depends on the network
HELD = 60_000  # bytes of a message that does not end
WRONG: tuple[dict[str, object], ...] = ({"session_token": "0" * 36}, {"pairing_code": "ZZZZZZ"}, {})


class _Guesser:
    """One address, and what the limiter has to think of it."""

    def __init__(self, audit: Audit, host: Host) -> None:
        self.audit = audit
        self.host = host
        self.guesses = Guesses()
        self.device = pair(audit, host=host, leaves=True)

    def guess(self) -> None:
        """It shows something that is no good."""
        audit = self.audit
        self.guesses.stay_clear(audit, BLURRED)
        blocked = audit.now < self.guesses.until
        seat = sign_in(audit, self.host, {**audit.pick(WRONG), "device_name": "x"})
        if blocked and audit.now >= self.guesses.until:
            seat.hang_up()
            return  # just at the edge
        if seat.over:
            self.check_refused(seat.talker.status, seat.talker.refusal)
            return
        if blocked:
            audit.wrong(f"an address got {seat.talker.status} at {audit.now:.1f}, {self.guesses}")
        told = seat.take()
        audit.same((told["channel"], told["type"]), ("system", "auth.fail"), "a wrong credential")
        self.guesses.failed(audit.now)

    def check_refused(self, status: int, body: bytes) -> None:
        if self.audit.now >= self.guesses.until or status != 429:
            self.audit.wrong(f"an address got {status} {body!r:.100} at {self.audit.now:.1f}, {self.guesses}")

    def come(self) -> None:
        """It shows a good token, which is let in during a block where the upgrade says so."""
        audit, token = self.audit, self.device.token
        self.guesses.stay_clear(audit, BLURRED)
        beside = audit.chance(0.4)
        blocked = audit.now < self.guesses.until
        payload: dict[str, object] = {"session_token": token}
        if beside:
            seat = sign_in(audit, self.host, payload, authorization=f"Bearer {token}")
        else:
            seat = sign_in(audit, self.host, payload)
        if seat.over:
            if beside:
                audit.wrong(f"a good token got {seat.talker.status} at the upgrade, blocked: {blocked}")
            self.check_refused(seat.talker.status, seat.talker.refusal)
            return
        if blocked and not beside and audit.now < self.guesses.until:
            audit.wrong("an address that is blocked got a socket")
        audit.same(seat.take()["type"], "auth.ok", "a good token")
        self.guesses.failures.clear()
        seat.hang_up()

    def misbehave(self) -> None:
        """What is no guess: no `auth`, nothing at all, or the end before that."""
        audit = self.audit
        if audit.now < self.guesses.until:
            return
        seat = audit.sit(self.host)
        match audit.rng.randrange(3):
            case 0:
                seat.say("system", "ping", {})
                audit.same(seat.take()["type"], "auth.fail", "something else than auth")
            case 1:
                seat.talker.close(1000)
                audit.wait(lambda: seat.over, 10.0, "a close is not answered")
            case _:
                pass
        seat.hang_up()

    def ask(self) -> None:
        """HTTP is never limited, and wrong tokens there do not count."""
        audit = self.audit
        where = (self.host, REMOTE)
        wrong = audit.answer(audit.begin(where, "GET", "/sessions", None, {"authorization": "Bearer nonsense"}))
        audit.right(wrong, 401, "unauthorized")
        good = audit.answer(
            audit.begin(where, "GET", "/sessions", None, {"authorization": f"Bearer {self.device.token}"})
        )
        audit.right(good, 200)

    def edge(self) -> None:
        """Until just before, or just behind, what comes next."""
        audit = self.audit
        if not audit.rest_about(self.guesses.coming(audit.now), NEAR):
            audit.rest(audit.pick((5.0, 30.0)))


def guessers(audit: Audit) -> None:
    """Two addresses guess: each is blocked by its own failures, and a registration forgives all of them."""
    both = [_Guesser(audit, audit.host()) for _ in range(2)]
    if audit.chance(0.5):  # most of five are late in the first one's minute, and the others behind it
        for pause in (WINDOW - 4.0, 0.0, 0.0, 8.0, 0.0, 0.0):
            both[0].guess()
            audit.rest(pause)
    for _ in range(audit.rng.randint(12, 24)):
        one = audit.pick((*both, both[0]))
        if audit.chance(0.03):
            register(audit)
            for each in both:
                each.guesses = Guesses()
        kinds = (one.guess,) * 10 + (one.come, one.come, one.misbehave, one.ask, one.edge, one.edge)
        audit.pick(kinds)()
    if audit.chance(0.3):  # what is opened before the block gets nobody in
        audit.rest_until(both[1].guesses.until + 1.0)
        early = audit.sit(both[1].host)
        while not early.over and audit.now >= both[1].guesses.until:
            both[1].guess()
        early.say("system", "auth", {"pairing_code": "ZZZZZZ"})
        reason = early.take()["payload"].get("reason", "")
        if "rate" not in reason or "limit" not in reason:
            audit.wrong(f"who guesses in a block is told {reason!r}")


def crowds(audit: Audit) -> None:
    """An address has room for so many strangers, whoever else is there; who is known needs none of it."""
    host, other = audit.host(), audit.host()
    most = LIMITS.stranger_connections
    known = pair(audit, host=host)
    crowd = [Thrower(host, REMOTE, b"G") for _ in range(most)]
    audit.rest(1.0)
    audit.same([each.over for each in crowd], [False] * most, f"{most} strangers of one address")
    late = Thrower(host, REMOTE, b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
    audit.wait(lambda: late.over, 10.0, "a stranger too many is not turned away")
    audit.same(bytes(late.heard), b"", "what a stranger too many is told")
    far = audit.answer(audit.begin((other, REMOTE), "GET", "/health"))
    audit.right(far, 200, about="a stranger from elsewhere")
    known.seat.say("system", "ping", {"ts": 7}, "p")
    told = known.seat.take()
    audit.same((told["type"], told["payload"]), ("pong", {"ts": 7}), "who was there before the crowd")
    leaver = audit.pick(crowd)
    leaver.hang_up()
    audit.rest(1.0)
    again = Thrower(host, REMOTE, b"GET /health HTTP/1.1\r\nhost: relay.example\r\nconnection: close\r\n\r\n")
    audit.wait(lambda: b"\r\n\r\n" in again.heard, 10.0, "there is no room where a stranger has left")
    if not again.heard.startswith(b"HTTP/1.1 200"):
        audit.wrong(f"who comes where a stranger has left is told {bytes(again.heard)[:60]!r}")
    began, silent = audit.now, [each for each in crowd if each is not leaver]
    audit.wait(lambda: all(each.over for each in silent), 120.0, "strangers who say half of a head stay")
    for each in silent:
        if each.heard and not each.heard.startswith(b"HTTP/1.1 408"):
            audit.wrong(f"who says half of a head is told {bytes(each.heard)[:60]!r} after {audit.now - began:.0f} s")
    known.seat.hang_up()


def hoarders(audit: Audit) -> None:
    """Strangers of an address have so many bytes held for them; the newest waits, and is cut."""
    host, other = audit.host(), audit.host()
    upgrade = (
        f"GET /ws HTTP/1.1\r\nhost: {REMOTE.authority}\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13\r\n\r\n"
    ).encode()
    message = b"\x81\xfe" + (HELD + 1000).to_bytes(2, "big") + bytes(4) + b"x" * HELD  # most of one

    def hold() -> Thrower:
        thrower = Thrower(host, REMOTE, upgrade)
        audit.wait(lambda: b"\r\n\r\n" in thrower.heard or thrower.over, 10.0, "a socket is not opened")
        if not thrower.heard.startswith(b"HTTP/1.1 101"):
            audit.wrong(f"a stranger got {bytes(thrower.heard)[:60]!r}")
        thrower.write(message)
        audit.rest(0.5)
        return thrower

    fit = LIMITS.stranger_share // HELD
    held = [hold() for _ in range(fit)]
    audit.same([each.over for each in held], [False] * fit, f"{fit} who hold {HELD} bytes each")
    newest, began = hold(), audit.now
    far = audit.answer(audit.begin((other, REMOTE), "GET", "/health"))
    audit.right(far, 200, about="a stranger from elsewhere")
    audit.wait(lambda: newest.over, 20.0, "who makes it too much stays")
    audit.near(audit.now - began, LIMITS.stranger_patience, "how long it is waited for room", 2.0)
    audit.same([each.over for each in held], [False] * fit, "who came before somebody made it too much")
    for each in held:
        each.hang_up()
    audit.rest(0.5)
    hold().hang_up()


LIMITERS = (guessers, guessers, crowds, hoarders)
