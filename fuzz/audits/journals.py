"""What the log says: what an operator has to answer for, who it was, and nothing of what it was about.

Decision 57 and docs/operating.md: shells, driven phones with their command and status, pairings and ends are told at
INFO; each request at DEBUG, by its route and how long it took; a wrong token once a minute for each address.
"""

from __future__ import annotations

from typing import Any

from attrs import define

from fuzz.audit import Audit
from fuzz.audits.annex import Annex
from fuzz.audits.guesses import FAILURES
from fuzz.audits.paired import Paired, pair, sign_in
from runtimes.sim.host import Host
from svc_proto.commands import Level

__all__ = ["JOURNALS"]

MINUTE, EDGE = 60.0, 1.0  # s
Entry = tuple[str, dict[str, Any]]
ROUTES = (  # what is asked with a session, its route, and the status
    *(("GET", "/sessions", "/sessions", 200), ("GET", "/media/secret-name?x=secret", "/media/{token}", 404)),
    *(("GET", "/notifications/recent?limit=0", "/notifications/recent", 400), ("GET", "/secret/place", "none", 404)),
    ("DELETE", "/sessions/zzzzzzzz", "/sessions/{token_prefix}", 404),
    ("POST", "/clipboard/inbox", "/clipboard/inbox", 400),
)  # fmt: skip


@define(eq=False)
class _Guessing:
    """An address, and what its wrong tokens and codes have come to."""

    host: Host
    said: float = -MINUTE  # when a wrong token was mentioned last


class _Journal:
    def __init__(self, audit: Audit) -> None:
        self.annex = Annex(audit)
        self.read = 0
        self.one: Paired = pair(self.annex)
        self.phone: Paired = pair(self.annex, device_id=self.annex.word(), surface="android", form="phone")
        self.places = [_Guessing(self.annex.host()) for _ in range(2)]
        self.entries()

    def entries(self, level: Level = Level.INFO) -> list[Entry]:
        """What was said since the last look."""
        lines = self.annex.process.logs[self.read :]
        self.read += len(lines)
        return [(line.event, line.fields) for line in lines if line.level >= level]

    def heard(self, *due: Entry) -> None:
        """Just this was said."""
        self.annex.rest(0.3)
        self.annex.same(self.entries(), [*due], "the log")

    def who(self, one: Paired) -> dict[str, Any]:
        return {"device": one.shown["device_name"], "session": one.prefix}

    def at(self, one: Paired) -> dict[str, Any]:
        return {**self.who(one), "address": one.host.address}

    def steps(self) -> None:
        annex = self.annex
        kinds = (self.pair, *[self.drive] * 2, self.open, self.guess, *[self.show] * 2, self.switch, self.end, self.ask)
        for _ in range(annex.rng.randint(9, 16)):
            annex.pick(kinds)()
        for each in (self.one, self.phone):
            each.seat.hang_up()
            annex.rest(0.5)
            self.heard(("client left", {"device": each.shown["device_name"], "code": 1006}))
        annex.stop()

    def pair(self) -> None:
        """A code, and who comes by it; or something else that is done with codes."""
        annex = self.annex
        path, said = annex.pick(
            (("/pairing", "made"), ("/pairing/approve", "registered"), ("/pairing/mint", "registered"))
        )
        body = {"code": "ABC123"} if path.endswith("approve") else {"api_key": ""}
        annex.right(annex.ask_here("POST", path, body), 200)
        self.heard((f"pairing code {said}", {}))
        surface = annex.pick(("desktop", "android"))
        fresh = pair(annex, surface=surface, device_id=annex.word())
        came = [("phone connected", self.who(fresh))] if surface == "android" else []
        self.heard(("pairing code registered", {}), ("paired", self.at(fresh)), *came)
        code = 1000 if annex.chance(0.5) else 1006
        if code == 1000:
            fresh.seat.talker.close(1000)
        else:
            fresh.seat.hang_up()
        annex.rest(0.5)
        self.heard(("client left", {"device": fresh.shown["device_name"], "code": code}))
        self.revoke(fresh)

    def revoke(self, one: Paired) -> None:
        annex = self.annex
        if annex.chance(0.5):
            annex.right(annex.ask(self.one.token, "DELETE", f"/sessions/{one.prefix}"), 200)
            self.heard(("session revoked", self.who(one)))
        else:
            annex.right(annex.ask_here("PATCH", f"/sessions/{one.prefix}", {"ttl_seconds": 3}), 200)
            annex.rest(4.0)
            self.heard(("session expired", self.who(one)))

    def drive(self) -> None:
        """Who has driven which phone, to what, and with what outcome; not by what words."""
        annex, device = self.annex, self.phone.shown["device_id"]
        method, path, body = annex.pick(
            (("GET", "/screen", None), ("POST", "/type", {"text": "secret words"}), ("POST", "/return_to_svc", {}))
        )
        target = f"{path}?device={device}" if method == "GET" else path
        caller = annex.begin_as(self.one.token, method, target, None if body is None else {**body, "device": device})
        told = self.phone.seat.take()["payload"]
        status = annex.pick((200, 403, 500, 0))
        if status:
            annex.world.phones_say_what_they_will = True
            self.phone.seat.reply(told, {"error": "secret words"}, status)
        annex.right(annex.answer(caller), status or 504)
        annex.world.phones_say_what_they_will = False
        about = {"phone": self.phone.shown["device_name"], "command": f"{method} {path}".replace("_svc", "_hermes")}
        by = {"by": self.one.shown["device_name"], "session": self.one.prefix}
        self.heard(("phone driven", {**by, **about, "status": status or 504}))

    def open(self) -> None:
        """A shell, or what is refused."""
        annex, seat = self.annex, self.one.seat
        seat.say("terminal", "terminal.attach", {"session_name": "t"}, "a")
        told = seat.take()
        if told["type"] == "terminal.attached":
            self.heard(("shell opened", {**self.at(self.one), "terminal": "t", "reattach": False}))
            seat.say("terminal", "terminal.kill", {"session_name": "t"}, "a")
            annex.same(seat.take()["type"], "terminal.detached", "the end of a terminal")
        self.heard()

    def guess(self) -> None:
        """A wrong code or token at the socket is told each time, and whether it was one too many."""
        annex, host = self.annex, self.annex.host()
        for number in range(FAILURES):
            seat = sign_in(annex, host, annex.pick(({"pairing_code": "ZZZZZZ"}, {"session_token": "0" * 36})))
            annex.same(seat.take()["type"], "auth.fail", "a guess")
            seat.hang_up()
            self.heard(("authentication failed", {"address": host.address, "blocked": number == FAILURES - 1}))
        annex.same(annex.sit(host).talker.status, 429, "who has guessed too often")
        self.heard()

    def show(self) -> None:
        """Wrong tokens over HTTP: one line a minute for each address; who shows none has not guessed."""
        annex, place = self.annex, self.annex.pick(self.places)
        if annex.chance(0.4):
            annex.rest_until(place.said + MINUTE + annex.pick((-EDGE, EDGE)))
        for _ in range(annex.rng.randint(1, 3)):
            shown = annex.pick((f"Bearer {annex.word()}", f"Bearer {annex.word()}", ""))
            fields = {"authorization": shown} if shown else {}
            path = annex.pick(("/sessions", "/ping", "/media/none"))
            caller = annex.answer(annex.begin((place.host, annex.remote), "GET", path, None, fields))
            annex.right(caller, 401)
            due = bool(shown) and annex.now >= place.said + MINUTE
            place.said = annex.now if due else place.said
            self.heard(*([("wrong session token", {"address": place.host.address})] if due else []))

    def switch(self) -> None:
        annex, field = self.annex, "allow_insecure_api_bearer"
        on = annex.chance(0.5)
        annex.right(annex.ask_here("PATCH", "/relay/security", {field: on}), 200)
        self.heard(("security changed", {field: on}))

    def end(self) -> None:
        """What is brought, and a voice session from its making to its end."""
        annex = self.annex
        body = {"content_type": "text/plain", "content": "QUJD", "file_name": "secret-name.txt"}
        annex.right(annex.ask(self.one.token, "POST", "/media/upload", body), 200)
        self.heard(("media uploaded", {"size": 3, "content_type": "text/plain"}))
        told = annex.right(annex.ask(self.one.token, "POST", "/voice/output/session", {"provider": "stub"}), 200)
        about = {"kind": "voice.output", "session": told["session_id"][:8]}
        self.heard(("voice session made", about))
        seat = annex.sit(self.one.host, told["websocket_path"], authorization=f"Bearer {self.one.token}")
        annex.same(seat.take()["type"], "voice.session.ready", "a voice session")
        seat.tell({"type": "session.close"})
        annex.wait(lambda: seat.over, 5.0, "a session that is closed keeps its socket")
        annex.rest(0.3)
        (name, fields), *more = self.entries()
        annex.same(
            (name, {**fields, "reason": ""}, more), ("voice session over", {**about, "reason": ""}, []), "its end"
        )

    def ask(self) -> None:
        """Each request, where somebody wants to know that: its route, and how long it took."""
        annex = self.annex
        engine: Any = annex.process.core
        engine.log_level = Level.DEBUG
        method, path, route, status = annex.pick(ROUTES)
        annex.right(annex.ask(self.one.token, method, path), status)
        annex.rest(0.3)
        (request,) = [fields for name, fields in self.entries(Level.DEBUG) if name == "request"]
        told = {key: value for key, value in request.items() if key not in ("ms", "peer")}
        annex.same(told, {"method": method, "route": route, "status": status}, "the log of a request")
        annex.near(request["ms"], 0.0, "how long it took", 100.0)
        late, device = annex.pick((0.5, 3.0)), self.phone.shown["device_id"]
        caller = annex.begin_as(self.one.token, "GET", f"/ping?device={device}")
        told = self.phone.seat.take()["payload"]
        annex.rest(late)
        self.phone.seat.reply(told, {})
        annex.right(annex.answer(caller), 200)
        annex.rest(0.3)
        (request,) = [fields for name, fields in self.entries(Level.DEBUG) if name == "request"]
        annex.near(request["ms"], late * 1000.0, "how long a command took", 200.0)
        engine.log_level = Level.INFO


def journals(audit: Audit) -> None:
    """Things are done at a relay, and its log is read."""
    _Journal(audit).steps()


JOURNALS = (journals,)
