"""Agents that the owner lets in, and what MCP tells: tokens and who shows them, resources and their changes."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from attrs import define

from fuzz.audit import Audit, header
from fuzz.audits.messages import Client, Stream
from fuzz.audits.paired import Paired, listed, pair
from fuzz.world import LOCAL, REMOTE
from tests.support.sim_http import RequestClient as Caller

__all__ = ["ACT", "AGENTS", "BACK", "FORGOTTEN", "READ", "WORD", "GuestClient", "Guests", "fields_of"]

ACT, READ = "bridge", "bridge:read"
HOUR = 3_600.0  # s that an access token lasts
CODE_LASTS = 60.0  # s
FORGOTTEN = 620.0  # s after which nothing is known of a question
EDGE = 2.0
TOLD_WITHIN = 8.0  # s from a change to the update of it
WORD = re.compile(r'class="word">(\w+)<')
BACK = "http://127.0.0.1:7171/back"
FORM = "application/x-www-form-urlencoded"


def resources(audit: Audit) -> None:
    """What is read is what is there, of one's own where it is one's own; and who wants to know hears of each change."""
    phone = pair(audit, name=f"phone {audit.word()}", device_id=audit.word(), surface="android", form="phone")
    callers = [pair(audit) for _ in range(2)]
    clients = [Client.of_relay(audit, one.token) for one in callers]
    sessions = [client.open() for client in clients]
    device = str(phone.shown["device_id"])
    done: list[list[str]] = [[], []]
    for _ in range(audit.pick((3, 8, 25))):  # each drives it, in turns of any length
        who = audit.pick((0, 0, 1))
        call = audit.begin_as(callers[who].token, "POST", f"/type?device={device}", {"text": audit.word()})
        told = phone.seat.obey({})
        audit.right(audit.answer(call), 200)
        done[who].insert(0, told["body"]["text"])
    for mine, each, place in zip(done, clients, sessions, strict=True):
        shown = json.dumps(each.read(place, "phone://activity"))
        found = [word for word in re.findall(r"audit\d+x", shown) if word in done[0] + done[1]]
        found = [*dict.fromkeys(found)]
        audit.same(found, mine[: len(found)], "one's own commands")
        if len(found) < min(len(mine), 20):
            audit.wrong(f"{len(found)} commands of {len(mine)} are shown")
    _changes(audit, phone, clients[0], sessions[0])
    for each, place in zip(clients, sessions, strict=True):
        each.end(place)
    for one in (phone, *callers):
        one.seat.hang_up()


def _changes(audit: Audit, phone: Paired, client: Client, session: str) -> None:
    """Who listens is told of each change that it has asked for."""
    heard = Stream(audit)
    listener = client.begin("GET", None, session, heard)
    audit.wait(lambda: listener.head is not None, why="nobody can listen")

    def updates() -> list[tuple[float, str]]:
        return [(when, told["params"]["uri"]) for when, told in zip(heard.times, heard.told, strict=True)]

    for uri in ("phone://notifications", "phone://devices"):
        client.result("resources/subscribe", session, uri=uri)
    for _ in range(audit.rng.randint(2, 4)):
        uri, changes = audit.pick((("phone://notifications", 2), ("phone://notifications", 3), ("phone://devices", 2)))
        gone: list[Paired] = []
        for number in range(changes):
            if uri.endswith("devices"):
                gone.append(pair(audit, surface="android", form="phone"))
            else:
                note = {"package_name": "com.example", "title": audit.word(), "text": None, "key": f"{number}"}
                phone.seat.say("notifications", "notification.posted", note)
            audit.rest(audit.pick((0.0, 0.2, 0.7)))
        changed = audit.now
        audit.rest(TOLD_WITHIN)
        late = [when for when, each in updates() if each == uri and when >= changed - 0.75]
        if not late:
            audit.wrong(f"{uri} has changed at {changed:.1f}, and updates were told at {updates()[-3:]}")
        for one in gone:
            one.seat.hang_up()
        audit.rest(TOLD_WITHIN)
    known = len(updates())
    audit.rest(5.0)
    audit.same(len(updates()), known, "updates when nothing changes")
    client.result("resources/unsubscribe", session, uri="phone://notifications")
    note = {"package_name": "com.example", "title": audit.word(), "text": None, "key": "k"}
    phone.seat.say("notifications", "notification.posted", note)
    audit.rest(TOLD_WITHIN)
    audit.same([uri for _, uri in updates()[known:]], [], "updates that nobody wants")
    unknown = client.request("resources/read", {"uri": "phone://nothing"}, session)
    told = audit.right(unknown, 200)
    audit.same((told["id"], "error" in told), (client.number, True), "what is not there")
    listener.hang_up()


@define(eq=False)
class GuestClient:
    """An agent of its own registration."""

    id: str
    verifier: str


class Guests:
    """The owner's doors."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit

    def here(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Caller:
        """On the relay's host, where no secret is shown: whoever comes by OAuth has none."""
        fields = {} if body is None else {"content-type": kind}
        return self.audit.answer(self.audit.begin((self.audit.world.home, LOCAL), method, path, body, fields))

    def register(self, name: str = "") -> GuestClient:
        """An agent of its own."""
        word = self.audit.word()
        body = {"client_name": name or f"agent {word}", "redirect_uris": [BACK]}
        told = self.audit.right(self.here("POST", "/oauth/register", body), 201)
        return GuestClient(told["client_id"], f"verifier-{word}".ljust(50, "v"))

    def ask(self, client: GuestClient, scope: str) -> tuple[str, str]:
        """A client asks: its page, and the word that it shows."""
        challenge = urlsafe_b64encode(sha256(client.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {"response_type": "code", "client_id": client.id, "redirect_uri": BACK, "scope": scope, "state": "s"}
        query |= {"code_challenge": challenge, "code_challenge_method": "S256"}
        return self.question(urlencode({**query, "resource": f"http://{LOCAL.authority}/mcp"}))

    def question(self, query: str) -> tuple[str, str]:
        """Somebody asks so: the page, and the word that it shows."""
        asked = self.here("GET", f"/oauth/authorize?{query}")
        self.audit.same(asked.status, 303, "to ask for a place")
        page = f"/oauth/{header(asked, 'location')}"
        word = self.word_on(page)
        if not word:
            self.audit.wrong("the page shows no word")
        return page, word

    def word_on(self, page: str) -> str:
        """The one that a page shows; empty if there is none."""
        shown = WORD.search(self.here("GET", page).answer.body.decode())
        return "" if shown is None else shown[1]

    def allow(self, client: GuestClient, scope: str, ttl: int | None) -> str:
        """A client asks, the owner allows it: the code."""
        audit = self.audit
        page, word = self.ask(client, scope)
        question = audit.right(audit.ask_here("GET", f"/mcp/questions/{word}"), 200)
        body = {
            "ballot": question["ballot"],
            "allow": True,
            "scope": scope,
            **({} if ttl is None else {"ttl_seconds": ttl}),
        }
        audit.right(audit.ask_here("POST", f"/mcp/questions/{word}", body), 200)
        return self.led(page)["code"]

    def led(self, page: str) -> dict[str, str]:
        """Where the page leads once there is an answer: what its client is told."""
        led = self.here("GET", page)
        self.audit.same(led.status, 303, "where the page leads")
        self.audit.same(header(led, "location").partition("?")[0], BACK, "where the page leads")
        fields = fields_of(led)
        self.audit.same(
            (fields.get("state"), fields.get("iss")), ("s", f"http://{LOCAL.authority}"), "what it takes along"
        )
        return fields

    def post(self, form: Mapping[str, str], path: str = "/oauth/token") -> Caller:
        """A form of a client's."""
        return self.here("POST", path, urlencode(form).encode(), FORM)

    def trade(self, client: GuestClient, code: str, **other: str) -> Caller:
        """A code is shown for tokens."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK, "client_id": client.id}
        return self.post({**form, "code_verifier": client.verifier, **other})

    def refresh(self, client_id: str, token: str, **more: str) -> Caller:
        """A refresh token is shown for newer ones."""
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client_id}
        return self.post({**form, **more})

    def opens(self, token: str) -> int:
        """What `/mcp` answers to a token."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
        headers["content-type"] = "application/json"
        return self.audit.answer(
            self.audit.begin((self.audit.world.agent, REMOTE), "POST", "/mcp", body, headers)
        ).status


def fields_of(caller: Caller) -> dict[str, str]:
    """What it takes along there, each once."""
    return {name: value for name, (value,) in parse_qs(urlsplit(header(caller, "location")).query).items()}


class _Held:
    """What a client was given, and what there was before that."""

    def __init__(self, audit: Audit, doors: Guests) -> None:
        self.audit = audit
        self.doors = doors
        self.client, self.thief = doors.register(), doors.register()
        self.scope, self.ttl = audit.pick((ACT, READ)), audit.pick((None, None, 2_000))
        self.code = doors.allow(self.client, self.scope, self.ttl)
        self.old: list[dict[str, Any]] = []
        self.told: dict[str, Any] = {}
        self.since = 0.0

    def steps(self) -> None:
        """Its life, to its end."""
        audit, doors = self.audit, self.doors
        way = audit.rng.randrange(6)
        if way == 0:  # another shows the code first, which burns it
            bad = ({"code_verifier": "x" * 50}, {"client_id": self.thief.id}, {"redirect_uri": f"{BACK}/x"})
            wrong = audit.pick(bad)
            audit.right(doors.trade(self.client, self.code, **wrong), 400, about=f"a code with {wrong}")
            audit.right(doors.trade(self.client, self.code), 400, about="a code that another has shown")
            return
        late = audit.pick((0.0, 0.0, CODE_LASTS - EDGE, CODE_LASTS + EDGE))
        audit.rest(late)
        traded = doors.trade(self.client, self.code)
        if late > CODE_LASTS:
            audit.right(traded, 400, about=f"a code of {late:.0f} s")
            return
        self.take(traded)
        audit.near(self.told["expires_in"], min(HOUR, self.ttl or HOUR), "how long it lasts", 2.0)
        for _ in range(audit.rng.randint(1, 4)):
            audit.same(doors.opens(self.told["access_token"]) == 401, False, "whether a token is refused")
            audit.pick((self.renew, self.renew, self.misuse, self.grow_old, self.ask_for_more, self.show_others))()
        self.end(way)
        self.check_over()

    def take(self, caller: Caller) -> None:
        """Tokens, as they have to be."""
        audit = self.audit
        self.told, self.since = audit.right(caller, 200), audit.now
        audit.same((self.told["token_type"], self.told["scope"]), ("Bearer", self.scope), "what is given")
        for name in ("access_token", "refresh_token"):
            audit.world.secrets[self.told[name]] = f"an agent's {name}"

    def renew(self) -> None:
        self.old.append(self.told)
        self.take(self.doors.refresh(self.client.id, self.told["refresh_token"]))
        self.audit.same(self.doors.opens(self.old[-1]["access_token"]), 401, "a token that there is a newer one for")

    def misuse(self) -> None:
        """The newest, by somebody whose it is not: nothing comes of it."""
        caller = self.doors.refresh(self.thief.id, self.told["refresh_token"])
        self.audit.right(caller, 400, about="another's refresh token")

    def grow_old(self) -> None:
        """An hour passes, or nearly."""
        audit, late = self.audit, self.audit.chance(0.5)
        if self.ttl is None:
            audit.rest_until(self.since + HOUR + (EDGE if late else -EDGE))
            told = self.doors.opens(self.told["access_token"]) == 401
            audit.same(told, late, f"whether a token of {audit.now - self.since:.0f} s is over")
            self.renew()

    def ask_for_more(self) -> None:
        if self.scope == READ:
            caller = self.doors.refresh(self.client.id, self.told["refresh_token"], scope=ACT)
            self.audit.right(caller, 400, about="more than was allowed")

    def show_others(self) -> None:
        for wrong in (self.told["refresh_token"], self.told["refresh_token"].partition(".")[0], "x"):
            self.audit.same(self.doors.opens(wrong), 401, "what is no access token")

    def end(self, way: int) -> None:
        """Somebody shows what was used before; or it is given back, or taken."""
        audit, doors = self.audit, self.doors
        if way in (1, 2):
            if not self.old:
                self.renew()
            who = (self.client, self.thief)[way - 1]
            audit.right(doors.refresh(who.id, self.old[0]["refresh_token"]), 400, about="a refresh token that was used")
        elif way == 3 and audit.now < self.since + 500.0 and not self.old:
            audit.right(doors.trade(self.client, self.code), 400, about="a code that was used")
        elif way == 4:
            form = {"token": self.told["refresh_token"], "client_id": self.client.id}
            audit.right(doors.post(form, "/oauth/revoke"), 200)
        else:
            audit.right(audit.ask_here("DELETE", f"/sessions/{self.told['refresh_token'][:8]}"), 200)

    def check_over(self) -> None:
        audit, told = self.audit, self.told
        audit.same(self.doors.opens(told["access_token"]), 401, "a token of what has ended")
        caller = self.doors.refresh(self.client.id, told["refresh_token"])
        audit.right(caller, 400, about="the refresh token of what has ended")
        audit.same(told["refresh_token"][:8] in listed(audit), False, "whether a session is listed that has ended")


def tokens(audit: Audit) -> None:
    """Tokens are good once, for who has them, and for their time; who shows an old one ends what it is of."""
    _Held(audit, Guests(audit)).steps()
    audit.rest(FORGOTTEN)


AGENTS = (resources, resources, tokens, tokens)
