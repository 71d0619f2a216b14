"""Keys of the API that belong to one pairing each: what each opens, when it ends, and what it had let in by then."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from attrs import define, field

from fuzz.audit import Audit
from fuzz.audits.heard import Events
from fuzz.audits.lodge import Lodge
from fuzz.audits.paired import sign_in
from fuzz.audits.refusals import refused
from fuzz.part import Round, asking
from fuzz.terms import OPEN, Spans, Terms, Wish, in_json, patched
from runtimes.sim.host import Host
from tests.support.sim_http import RequestClient as Caller

__all__ = ["TENANTS"]

CODE_LASTS = 600.0  # s
CUT_WITHIN = 1.5  # s from the end of a key until nothing that it has let in is left (docs/security.md)
EDGE = 1.0  # s before or behind the end of a key
TEXT = 200.0  # s for which a model is silent at most, before it is given up
ASKED = ("/api/sessions", "/v1/models", "/api/memory", "/api/config", "/v1/toolsets", "/health/detailed")


@define(eq=False)
class _Open:
    """What a key has let in, and is not over."""

    kind: str
    text: str
    caller: Caller
    events: Events
    since: float
    chat: str = ""


@define(eq=False)
class _Tenant:
    """A key, and what it hangs by."""

    key: str
    host: Host
    code: str = ""
    made: float = 0.0
    wish: Spans = field(factory=dict)
    token: str = ""
    terms: Terms | None = None
    explicit: dict[str, None] = field(factory=dict)
    ended: bool = False
    opened: list[_Open] = field(factory=list)

    def until(self, now: float, wall: float) -> float:
        """When it ends, by the world's clock."""
        if self.ended:
            return -1.0
        return self.made + CODE_LASTS if self.terms is None else self.terms.until("chat") - wall + now


class _House:
    """A relay and an API in one process, and who has a key of theirs. The first has the main key."""

    def __init__(self, audit: Audit) -> None:
        self.lodge = Lodge(audit, beside=True, max_concurrent_runs=0)
        self.tenants: list[_Tenant] = []
        self.owner = _Tenant(self.lodge.key, self.lodge.host(), made=float("inf"))

    def steps(self) -> None:
        lodge = self.lodge
        for _ in range(3):
            self.mint()
        kinds: tuple[Callable[[], None], ...] = (
            *(self.let_in, self.let_in, self.let_in, self.pair, self.pair, self.take_back, self.take_back),
            *(self.change, self.revoke, self.expire, self.mint, self.ask),
        )
        for _ in range(lodge.rng.randint(12, 20)):
            lodge.pick(kinds)()
            self.look()
        if lodge.chance(0.5):
            self.replace_main()
        if lodge.chance(0.5):
            self.restart()
        for tenant in self.tenants:
            self.use(tenant)
        lodge.leave()

    # --- keys ---

    def is_good(self, tenant: _Tenant) -> bool:
        return tenant.until(self.lodge.now, self.lodge.wall) > self.lodge.now

    def mint(self) -> None:
        """An invite: it holds a key of its own, which is good from now on; none where chat is withheld."""
        lodge = self.lodge
        wish: Spans = lodge.pick(({}, {}, {"chat": 40.0}, {"chat": None}, {"bridge": 60.0}))
        body: dict[str, Any] = {"grants": in_json(wish)} if wish else {}
        told = lodge.right(lodge.ask_here("POST", "/pairing/mint", body), 200)
        key = json.loads(told["qr_payload"])["key"]
        if "chat" in wish and wish["chat"] is None:
            lodge.same(key, "", "the key of who may not chat")
            return
        if key in (lodge.key, *(each.key for each in self.tenants)):
            lodge.wrong("two pairings have one key")
        lodge.world.secrets[key] = "the key of a pairing"
        self.tenants.append(_Tenant(key, lodge.host(), told["code"], lodge.now, wish, explicit=dict.fromkeys(wish)))

    def pair(self) -> None:
        """Its code is used up: the key is as good as the session's chat from now on."""
        lodge = self.lodge
        fresh = [each for each in self.tenants if each.terms is None and self.is_good(each)]
        if not fresh:
            return
        one = lodge.pick(fresh)
        seat = sign_in(lodge, one.host, {"pairing_code": one.code, "device_name": lodge.word()})
        told = seat.take()
        lodge.same(told["type"], "auth.ok", "the code of an invite")
        one.token = told["payload"]["session_token"]
        lodge.world.secrets[one.token] = "the token of a pairing"
        ends = {name: float("inf") if end is None else end for name, end in told["payload"]["grants"].items()}
        expires = told["payload"]["expires_at"]
        one.terms = Terms(float("inf") if expires is None else expires, ends)
        if "chat" in one.wish:
            lodge.near(ends["chat"], lodge.wall + (one.wish["chat"] or 0.0), "the end of chat")
        seat.hang_up()

    def paired(self) -> _Tenant | None:
        good = [each for each in self.tenants if each.terms is not None and self.is_good(each)]
        busy = [each for each in good if each.opened]
        return self.lodge.pick(busy or good) if good else None

    def patch(self, one: _Tenant, body: dict[str, Any], wish: Wish) -> None:
        lodge = self.lodge
        by_itself = lodge.chance(0.4)
        path = f"/sessions/{one.token[:8]}"
        caller = lodge.ask(one.token, "PATCH", path, body) if by_itself else lodge.ask_here("PATCH", path, body)
        lodge.right(caller, 200)
        assert one.terms is not None
        one.terms = patched(one.terms, one.explicit, wish, OPEN, lodge.wall)
        one.explicit |= dict.fromkeys(wish.grants or {})

    def take_back(self) -> None:
        """Chat is taken from a session that lives on."""
        if one := self.paired():
            self.patch(one, {"grants": {"chat": False}}, Wish(None, {"chat": None}))

    def change(self) -> None:
        """Another time for its chat, or for all of it, or something that is not about chat."""
        lodge = self.lodge
        if one := self.paired():
            spans: tuple[tuple[float | None, Spans | None], ...] = (
                (None, {"chat": 30.0}),
                (60.0, None),
                (None, {"bridge": None, "terminal": 5.0}),
                (3_600.0, {"chat": 1_000.0}),
            )
            ttl, grants = lodge.pick(spans)
            body: dict[str, Any] = {} if ttl is None else {"ttl_seconds": ttl}
            body |= {} if grants is None else {"grants": in_json(grants)}
            self.patch(one, body, Wish(ttl, grants))

    def revoke(self) -> None:
        lodge = self.lodge
        if one := self.paired():
            told = lodge.right(lodge.ask_here("DELETE", f"/sessions/{one.token[:8]}"), 200)
            lodge.same(told.get("knows_api_key", False), False, "whether who has a key of its own knows the main one")
            one.ended = True

    def expire(self) -> None:
        """Until just before, or just behind, the next end."""
        lodge = self.lodge
        latest = min((each.since for each in self.there()), default=lodge.now) + TEXT
        ends = sorted(end for one in self.tenants if lodge.now < (end := one.until(lodge.now, lodge.wall)) < latest)
        if ends:
            lodge.rest_until(ends[0] + lodge.pick((-EDGE, EDGE)))

    def replace_main(self) -> None:
        """The main key is another: what it has let in ends, and no pairing's own."""
        lodge = self.lodge
        self.let_in(self.owner)
        if good := [each for each in self.tenants if self.is_good(each)]:
            self.let_in(lodge.pick(good))
        fresh = f"fresh-{lodge.word()}-of-24-characters"
        lodge.world.secrets[fresh] = "another API's new key"
        lodge.home.disk.put(f"{lodge.home.state}/.env", f"API_SERVER_KEY={fresh}\n".encode())
        for one in self.tenants:
            if self.is_good(one):
                refused(lodge, self.with_key(one, "POST", "/api/key/reload"), 401, "invalid_api_key", None)
        told = lodge.right(lodge.ask_api("POST", "/api/key/reload"), 200)
        lodge.same(told, {"ok": True, "changed": True}, "another key")
        lodge.key, before, self.owner.ended = fresh, self.owner, True
        lodge.rest(CUT_WITHIN)
        self.check_cut(before)
        self.owner = _Tenant(fresh, lodge.host(), made=float("inf"))
        self.look()

    def restart(self) -> None:
        """Codes are forgotten, and with them their keys; sessions are not."""
        lodge = self.lodge
        lodge.home.disk.put(f"{lodge.home.state}/.env", b"")
        lodge.again(kill=lodge.chance(0.5))
        lodge.key = lodge.config.key
        self.owner = _Tenant(lodge.key, lodge.host(), made=float("inf"))
        for one in self.tenants:
            one.opened.clear()
            one.ended = one.ended or one.terms is None

    # --- what they open ---

    def with_key(self, one: _Tenant, method: str, path: str, body: object = None) -> Caller:
        return self.lodge.answer(
            self.lodge.begin_with(one.key, method, path, body, place=(one.host, self.lodge.outside)), 60.0
        )

    def ask(self) -> None:
        self.use(self.lodge.pick((self.owner, *self.tenants)))

    def use(self, one: _Tenant) -> None:
        """What a key opens it opens as the main one does; a dead one nothing."""
        lodge = self.lodge
        if abs(one.until(lodge.now, lodge.wall) - lodge.now) < EDGE / 2:
            return
        path, good = lodge.pick(ASKED), self.is_good(one)
        caller = self.with_key(one, "GET", path)
        lodge.right(caller, 200 if good else 401, about=f"a key that is good: {good}")
        voice = lodge.ask_here("GET", "/voice/config", authorization=f"Bearer {one.key}")
        lodge.right(voice, 200 if good else 401, about=f"voice by a key that is good: {good}")
        lodge.right(lodge.ask(one.key, "GET", "/sessions"), 401, "unauthorized", "the relay by a key of the API")
        right = self.with_key(_Tenant(lodge.key, one.host), "GET", "/v1/models")  # forgives a wrong one
        lodge.right(right, 200)

    def let_in(self, by: _Tenant | None = None) -> None:
        """Something that goes on: a model that has said some words, and is silent."""
        lodge = self.lodge
        good = [each for each in self.tenants if each.until(lodge.now, lodge.wall) > lodge.now + 2.0]
        one = by or lodge.pick((*good, *good, self.owner))
        kind, events, word = (
            lodge.pick(("stream", "stream", "chat", "completion", "response", "run")),
            Events(),
            lodge.word(),
        )
        text, chat = asking(word, Round(text=f"{word} so", hang=True)), ""
        if kind in ("stream", "chat"):
            chat = lodge.right(self.with_key(one, "POST", "/api/sessions", {}), 201)["id"]
            path = f"/api/sessions/{chat}/chat{'/stream' if kind == 'stream' else ''}"
            body: dict[str, Any] = {"message": text}
        elif kind == "completion":
            path, body = "/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "stream": True}
        elif kind == "response":
            path, body = "/v1/responses", {"input": text, "stream": lodge.chance(0.5)}
        else:
            chat = f"run-{word}"
            path, body = "/v1/runs", {"input": text, "stream": lodge.chance(0.5), "session_id": chat}
        place = (one.host, lodge.outside)
        caller = lodge.begin_with(one.key, "POST", path, body, events if kind != "chat" else None, place=place)
        lodge.wait(lambda: text in lodge.world.upstream.questions, 20.0, "the model is not asked")
        lodge.rest(1.0)
        one.opened.append(_Open(kind, text, caller, events, lodge.now, chat))

    def there(self) -> list[_Open]:
        return [each for one in (self.owner, *self.tenants) for each in one.opened]

    def look(self) -> None:
        """What is over is cut, with all that it has let in; everything else goes on."""
        lodge = self.lodge
        old = min((each.since for each in self.there()), default=lodge.now)
        if lodge.now > old + TEXT:
            self.stop_all()
        dead = [one for one in self.tenants if one.opened and not self.is_good(one)]
        if dead:
            lodge.rest(CUT_WITHIN)
        for one in dead:
            self.check_cut(one)
        asked = lodge.world.upstream.questions
        for one in (self.owner, *self.tenants):
            if one.opened and one.until(lodge.now, lodge.wall) > lodge.now:
                for each in one.opened:
                    answered = each.kind == "run" and each.caller.status == 202
                    told = (each.text in asked, each.caller.over)
                    lodge.same(told, (True, answered), f"whether a {each.kind} of a key that is good goes on")

    def check_cut(self, one: _Tenant) -> None:
        """Nobody is told anything any more, no model is asked, and what was said is stored."""
        lodge = self.lodge
        for each in one.opened:
            lodge.same(each.caller.over, True, f"whether a {each.kind} is over whose key is")
            lodge.same(each.text in lodge.world.upstream.questions, False, f"whether a model goes on for a {each.kind}")
            if each.kind == "chat":
                refused(lodge, each.caller, 401, "invalid_api_key", None)
            names = each.events.names
            if each.kind == "stream" and "done" in names:
                lodge.wrong(f"a stream whose key is over ends with {names[-3:]}")
            if each.chat:
                rows = lodge.rows_of(each.chat)
                word = each.text.split()[1]
                told = [(row["role"], row["content"], row.get("finish_reason")) for row in rows]
                is_ = [("user", each.text, None), ("assistant", f"{word} so ", "interrupted")]
                lodge.same(told, is_, f"what is stored of a {each.kind} whose key is over")
                view = lodge.right(lodge.ask_api("GET", f"/v1/runs/{rows[0]['run_id']}"), 200)
                lodge.same(view["status"], "cancelled", f"the run of a {each.kind} whose key is over")
        one.opened.clear()

    def stop_all(self) -> None:
        """Before the model is given up: who has asked leaves."""
        lodge = self.lodge
        for one in (self.owner, *self.tenants):
            for each in one.opened:
                for run in [run for run in lodge.api.runs.registry.live() if each.chat and run.session_id == each.chat]:
                    lodge.stop_run(run.id)
                if not each.caller.over:
                    each.caller.hang_up(reset=True)
            one.opened.clear()
        lodge.rest(10.0)


def tenants(audit: Audit) -> None:
    """Invites hold keys, which are used, and end."""
    _House(audit).steps()


TENANTS = (tenants, tenants)
