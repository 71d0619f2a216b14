"""Strangers: they guess codes, throw garbage, and send web pages against loopback."""

from __future__ import annotations

import json

from fuzz.invariants import Invariant
from fuzz.lines import Thrower
from fuzz.model import Code, violated
from fuzz.peers import Caller
from fuzz.people.crowd import Crowd, Deeds
from fuzz.people.pairing import Pairing
from fuzz.script import Deed, Step
from fuzz.world import LOCAL, REMOTE
from runtimes.sim.host import Host

__all__ = ["Strangers"]

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
PATIENT = {0: (13.0, 20.0), 1: (30.0, 55.0)}  # s between two guesses of those who take their time
PAGES: tuple[dict[str, str], ...] = (
    {"host": "evil.example:8767"},
    {"origin": "https://evil.example"},
    {"x-forwarded-for": "203.0.113.9"},
    {"forwarded": "for=203.0.113.9"},
)


class Strangers:
    """The steps of those who belong to nobody."""

    def __init__(self, crowd: Crowd, pairing: Pairing) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._pairing = pairing
        self.deeds: dict[Deed, Deeds] = {
            Deed.GUESS: self._guess,
            Deed.GARBAGE: self._garbage,
            Deed.BROWSE: self._browse,
        }

    def _guess(self, step: Step) -> None:
        host = self.world.attackers[step.who % len(self.world.attackers)]
        self._guess_again(host, 3 + step.other % 6, step.who, PATIENT.get(step.other // 6 % 5, (0.2, 1.2)))

    def _guess_again(self, host: Host, left: int, kind: int, pauses: tuple[float, float]) -> None:
        stolen = [session for session in self.crowd.sessions if session.revoked is not None]
        if kind % 3 == 0 and stolen:
            talker = self._pairing.sign_in(host, {"session_token": stolen[left % len(stolen)].token})
        elif kind % 3 == 1:
            used = [code for code in self.crowd.codes if code.uses]
            code = used[left % len(used)] if used else Code("ZZZZZZ", self.crowd.now, uses=1)
            talker = self._pairing.sign_in(host, {"pairing_code": code.word}, code=code)
        else:
            talker = self._pairing.sign_in(host, {"pairing_code": f"Z{self.crowd.number():05}"})
        if left > 1:
            pause = self.world.rng.uniform(*pauses)
            self.world.sim.after(pause, lambda: self._guess_again(host, left - 1, kind, pauses))
        self.world.sim.after(25.0, talker.hang_up)

    def _garbage(self, step: Step) -> None:
        host = self.world.attackers[step.who % len(self.world.attackers)]
        data = GARBAGE[step.other % len(GARBAGE)]
        if step.who % 5 == 0:
            data = bytes(self.world.rng.randrange(256) for _ in range(300))
        thrower = Thrower(host, REMOTE, data)
        self.world.sim.after(20.0, lambda: self._threw(thrower))

    def _threw(self, thrower: Thrower) -> None:
        self.world.refuse_secrets(thrower.heard.decode("latin-1"), "the answer to garbage")
        if b" 200 " in thrower.heard[:16] or b" 500 " in thrower.heard[:16]:
            violated(Invariant.STATUS, f"garbage was answered {bytes(thrower.heard)!r:.100}")
        thrower.hang_up(reset=True)

    def _browse(self, step: Step) -> None:
        method, path = (("POST", "/pairing/register"), ("GET", "/bridge/activity"), ("GET", "/relay/info"))[
            step.other % 3
        ]
        data = json.dumps({"code": "EVIL00"}).encode() if method == "POST" else b""

        def done(caller: Caller) -> None:
            if caller.status not in (0, 403, 503):
                violated(Invariant.LOCAL_ONLY, f"a page got {caller.status} from {path}")

        if step.who % 5 == 4:
            self.world.call(self.world.agent, REMOTE, method, path, body=data, done=done)
        else:
            page = PAGES[step.who % 5]
            self.world.call(self.world.home, LOCAL, method, path, headers=page, body=data, done=done)
