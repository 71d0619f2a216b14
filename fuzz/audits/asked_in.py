"""Agents that ask to be let in: how each registers, what its owner is asked, in which time, and where the answer goes.

By RFC 6749, 7591, 7636 and 8707 as docs/mcp.md has them, with decisions 152 and 154.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode, urlsplit

from fuzz.audit import Audit, header
from fuzz.audits.agents import ACT, BACK, FORGOTTEN, READ, Guests, fields_of
from fuzz.world import LOCAL, REMOTE
from tests.support.sim_http import RequestClient as Caller

__all__ = ["ASKED_IN"]

LASTS = 600.0  # s for the owner, and again for the browser
EDGE = 1.5  # s
WAITING = 8  # questions of one network
CHALLENGE = "c" * 43
Members = dict[str, Any]
REDIRECTS: tuple[tuple[object, bool], ...] = (
    *((["https://a.example/b"], True), ([BACK, "http://[::1]/x", "http://localhost:1/"], True)),
    *((["http://a.example/b"], False), (["cursor://x"], False), ([f"{BACK}#x"], False), ([], False)),
    *((BACK, False), ([BACK, 5], False), (["https://"], False), (["ftp://127.0.0.1/x"], False), (["app:/b"], False)),
    *((["javascript:alert(1)"], False), (["https://elsewhere.example/back?x=1"], True)),
)
BAD: tuple[tuple[Members, str], ...] = (
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge": "short"}, "invalid_request"),
    ({"scope": "terminal"}, "invalid_scope"),
    ({"resource": "http://elsewhere.example/mcp"}, "invalid_target"),
)


class _Door:
    """The relay's pages, as a browser of its host has them."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.guests = Guests(audit)
        self.name = f"agent {audit.word()}"
        self.client = self.register(BACK)

    def register(self, place: str) -> str:
        """A client that hears there: its name."""
        body = {"client_name": self.name, "redirect_uris": [place]}
        return str(self.audit.right(self.guests.here("POST", "/oauth/register", body), 201)["client_id"])

    def query(self, **other: str) -> str:
        """What a request for a place holds."""
        query = {"response_type": "code", "client_id": self.client, "redirect_uri": BACK, "scope": ACT, "state": "s"}
        query |= {"code_challenge": CHALLENGE, "code_challenge_method": "S256", **other}
        return urlencode({name: value for name, value in query.items() if value})

    def ask(self, **other: str) -> Caller:
        return self.guests.here("GET", f"/oauth/authorize?{self.query(**other)}")

    def asked(self, **other: str) -> tuple[str, str]:
        """The page of a question, and its word."""
        return self.guests.question(self.query(**other))

    def led(self, page: str) -> Members:
        """Where a page leads: the parameters, each once."""
        caller = self.guests.here("GET", page)
        if caller.status != 303:
            return {"status": caller.status}
        if not header(caller, "location").startswith(f"{BACK}?"):
            self.audit.wrong(f"a page leads to {header(caller, 'location')}")
        return {**fields_of(caller)}

    def is_open(self, page: str) -> bool:
        """Whether a page shows a word."""
        return bool(self.guests.word_on(page))


def _registers(door: _Door) -> None:
    """An address has to be one that only its client hears; whatever a client asks to be, it is told what it is."""
    audit = door.audit
    for redirects, good in audit.rng.sample(REDIRECTS, 4):
        body = {
            "client_name": "a\x1b[1m b",
            "redirect_uris": redirects,
            "token_endpoint_auth_method": "client_secret_post",
        }
        caller = door.guests.here("POST", "/oauth/register", body)
        told = audit.right(caller, 201 if good else 400, about=f"an agent that hears at {redirects}")
        if good:
            kind = (told["redirect_uris"], told["token_endpoint_auth_method"], told["response_types"])
            audit.same(kind, (redirects, "none", ["code"]), "what is registered")
        else:
            audit.same(told["error"], "invalid_redirect_uri", "why an agent is not registered")
    for other, code in audit.rng.sample(BAD, 3):
        caller = door.ask(**other)
        fields = fields_of(caller)
        fields.pop("error_description", None)
        due = {"error": code, "state": "s", "iss": f"http://{LOCAL.authority}"}
        audit.same((caller.status, fields), (303, due), f"where one is led who asks with {other}")
        abroad = f"https://elsewhere.example/{audit.word()}"  # where a mistake leads nobody
        caller = door.ask(client_id=door.register(abroad), redirect_uri=abroad, **other)
        led = (caller.status, header(caller, "location"))
        audit.same(led, (400, ""), f"where one of elsewhere is led who asks with {other}")
    nobody = ({"redirect_uri": f"{BACK}/x"}, {"redirect_uri": ""}, {"client_id": "nobody"}, {"client_id": ""})
    for other in audit.rng.sample(nobody, 2):
        caller = door.ask(**other)
        audit.same((caller.status, header(caller, "location")), (400, ""), f"where one is led who asks with {other}")
    far = audit.begin((audit.world.agent, REMOTE), "GET", f"/oauth/authorize?{door.query()}")
    audit.right(audit.answer(far), 400, about="to ask over plain HTTP from elsewhere")
    port = f"http://127.0.0.1:{audit.rng.randint(1_024, 60_000)}/back"  # any of its own computer (RFC 8252)
    audit.same(door.ask(redirect_uri=port).status, 303, "another port")


def _answers(door: _Door) -> None:
    """The owner is told who asks, from where and for what, and answers that question, once, with no more than that."""
    audit, scope = door.audit, door.audit.pick((ACT, READ))
    page, word = door.asked(scope=scope)
    other_page, other_word = door.asked()
    question = audit.right(audit.ask_here("GET", f"/mcp/questions/{word.lower()}"), 200)
    other = audit.right(audit.ask_here("GET", f"/mcp/questions/{other_word}"), 200)
    is_ = {"ok": True, "code": word, "client_name": door.name, "scope": scope, "address": "127.0.0.1"}
    is_ |= {"answer_goes_to": urlsplit(BACK).netloc, "answer_stays_there": True}
    audit.same({name: question[name] for name in is_}, is_, "what an owner is asked")
    audit.near(question["expires_in"], LASTS, "how long a question lasts", 2.0)
    path = f"/mcp/questions/{word}"
    yes = {"ballot": question["ballot"], "allow": True}
    audit.right(audit.ask_here("POST", path, {**yes, "ballot": other["ballot"]}), 409, "wrong_ballot")
    if scope == READ:
        audit.right(audit.ask_here("POST", path, {**yes, "scope": ACT}), 400)
    audit.same(door.is_open(page), True, "whether a question waits that nobody has answered")
    allow = audit.chance(0.5)
    told = audit.right(audit.ask_here("POST", path, {**yes, "allow": allow}), 200)
    audit.same(told, {"ok": True, "allowed": allow, "client_name": door.name}, "an answer")
    audit.right(audit.ask_here("POST", path, yes), 404, "not_found")
    late = audit.pick((0.0, 0.0, LASTS - EDGE, LASTS + EDGE))
    audit.rest(late)
    led = door.led(page)
    if late > LASTS:
        audit.same("code" in led or "error" in led, False, "where a page leads that nobody came back to")
    else:
        code = led.pop("code", "")
        due = {"state": "s", "iss": f"http://{LOCAL.authority}", **({} if allow else {"error": "access_denied"})}
        audit.same((led, bool(code)), (due, allow), "where a page leads behind an answer")
    again = door.led(page)
    audit.same("code" in again, False, "whether a code is given twice")
    audit.same(door.is_open(other_page), late == 0.0 or late < LASTS, "whether another question waits")


def _crowds(door: _Door) -> None:
    """Eight of one network wait at a time, ten minutes each; who was answered, or has waited so long, makes room."""
    audit = door.audit
    pages = [door.asked() for _ in range(WAITING)]
    began = audit.now
    full = fields_of(door.ask())
    audit.same(full.get("error"), "temporarily_unavailable", "one question too many")
    if audit.chance(0.5):
        _, word = audit.pick(pages)
        question = audit.right(audit.ask_here("GET", f"/mcp/questions/{word}"), 200)
        audit.right(
            audit.ask_here("POST", f"/mcp/questions/{word}", {"ballot": question["ballot"], "allow": False}), 200
        )
    else:
        late = audit.pick((-EDGE, EDGE))
        audit.rest_until(began + LASTS - EDGE - 1.0 if late < 0 else began + LASTS + EDGE)
        page, word = pages[-1]
        audit.same(door.is_open(page), late < 0, f"whether a question waits, {late} s about its end")
        audit.right(audit.ask_here("GET", f"/mcp/questions/{word}"), 200 if late < 0 else 404)
        if late < 0:
            return
    door.asked()


def asked_in(audit: Audit) -> None:
    """Agents register, and ask their owner."""
    for part in audit.rng.sample((_registers, _answers, _answers, _crowds), 2):
        part(_Door(audit))
        audit.rest(FORGOTTEN)


ASKED_IN = (asked_in,)
