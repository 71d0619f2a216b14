"""How an owner lets agents in: the dashboard's page, what it shows and asks."""

from __future__ import annotations

import re
from html import escape
from urllib.parse import urlencode

from fuzz.audit import Audit, header
from fuzz.audits.agents import ACT, READ, GuestClient, Guests
from fuzz.audits.gate import PASSWORD, Board, basic
from fuzz.audits.paired import listed
from fuzz.world import LOCAL

__all__ = ["CONSENTING"]

DAY, WAITS = 86_400, 600.0  # s
LASTS = {"1": DAY, "7": 7 * DAY, "30": 30 * DAY, "365": 365 * DAY, "9": 30 * DAY, "": 30 * DAY, "x": 30 * DAY}
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')
RADIO = re.compile(r'<input type="radio" name="scope" value="([a-z:]+)"( checked)?>')
OPTION = re.compile(r'<option value="(\d+)"( selected)?>')
ALERT = 'role="alert"'
FORM = "application/x-www-form-urlencoded"


class _Desk:
    """The owner at the dashboard, and agents that ask."""

    def __init__(self, audit: Audit) -> None:
        self.audit, self.doors = audit, Guests(audit)
        self.board = Board(audit, password=PASSWORD, relay_url=f"http://{LOCAL.authority}")

    def page(self, method: str, path: str, form: dict[str, str] | None = None, **more: str) -> str:
        """What the owner sees."""
        body = None if form is None else urlencode(form).encode()
        fields = {"authorization": basic(PASSWORD), **({} if form is None else {"content_type": FORM}), **more}
        caller = self.board.ask(method, path, body, None, "", **fields)
        self.audit.right(caller, 200, about=f"the page for {form}")
        told = {name: header(caller, name) for name in ("cache-control", "referrer-policy")}
        self.audit.same(told, {"cache-control": "no-store", "referrer-policy": "same-origin"}, "the fields of the page")
        policy = header(caller, "content-security-policy")
        if "form-action 'self'" not in policy or "script-src 'self'" not in policy.replace("default-src", "script-src"):
            self.audit.wrong(f"the page's policy is {policy}")
        return caller.answer.body.decode()

    def steps(self) -> None:
        audit = self.audit
        for _ in range(audit.rng.randint(2, 4)):
            self.one()
        nothing = self.page("GET", "/allow" + audit.pick(("", "?code=", "?code=%20")))
        audit.same((ALERT in nothing, HIDDEN.findall(nothing)), (False, []), "the page without a word")
        missing = self.page("GET", f"/allow?code={audit.pick(('ZZZZZZ', 'x' * 40, '%3Cb%3E'))}")
        audit.same((ALERT in missing, HIDDEN.findall(missing)), (True, []), "the page for a word that nobody shows")
        self.board.stop()

    def one(self) -> None:
        """An agent asks, and is answered; or somebody answers for it who has not seen the question."""
        audit, doors, scope = self.audit, self.doors, self.audit.pick((ACT, READ))
        name = audit.pick((f"agent {audit.word()}", f'<b>{audit.word()}</b> & "co"', f"it's {audit.word()}"))
        client = doors.register(name)
        page, word = doors.ask(client, scope)
        hidden = self.look(word, name, scope)
        for headers in ({"origin": "https://elsewhere.example"}, {"sec_fetch_site": "cross-site"}):
            if audit.chance(0.3):
                fields = {"authorization": basic(PASSWORD), "content_type": FORM, **headers}
                data = urlencode({**hidden, "answer": "allow"}).encode()
                audit.right(
                    self.board.ask("POST", "/allow", data, None, "", **fields), 403, about=f"a form of {headers}"
                )
        if audit.chance(0.3):
            audit.right(self.board.ask("GET", f"/allow?code={word}"), 401, about="the page without the password")
        if audit.chance(0.4):
            wrong = {**hidden, "ballot": audit.pick((f"{hidden['ballot'][:-1]}x", "", "x" * 43)), "answer": "allow"}
            audit.same(ALERT in self.page("POST", "/allow", wrong), True, "an answer to another question")
            audit.same(hidden, self.look(word, name, scope), "a question that was not answered")
        if scope == READ and audit.chance(0.5):
            more = self.page("POST", "/allow", {**hidden, "answer": "allow", "scope": ACT, "days": "1"})
            audit.same(ALERT in more, True, "more than was asked for")
        allows, chosen, days = audit.chance(0.7), audit.pick(("", READ, scope)), audit.pick([*LASTS])
        form = {**hidden, "answer": "allow" if allows else audit.pick(("refuse", "", "Allow"))}
        form |= ({"scope": chosen} if chosen else {}) | ({"days": days} if days else {})
        told = self.page("POST", "/allow", form)
        done = "comes in now" if allows else "is told no"
        audit.same(
            (ALERT in told, f"{escape(name)} {done}" in told), (False, True), f"what the owner is told: {told[300:600]}"
        )
        audit.same(ALERT in self.page("POST", "/allow", form), True, "a second answer")
        self.check(client, doors.led(page), chosen or READ, LASTS[days], allows=allows)

    def look(self, word: str, name: str, scope: str) -> dict[str, str]:
        """The page of a question; what its form takes along."""
        audit = self.audit
        shown = self.page("GET", f"/allow?code={audit.pick((word, word.lower(), f'%20{word}%20'))}")
        if f"<strong>{escape(name)}</strong>" not in shown or "127.0.0.1" not in shown:
            audit.wrong(f"of {name} is shown {shown[600:1200]}")
        audit.same("a program on the computer that asks" in shown, True, "whether its answer stays there")
        scopes = [(ACT, " checked"), (READ, "")] if scope == ACT else [(READ, " checked")]
        audit.same(RADIO.findall(shown), scopes, "what may be allowed")
        days = [("1", ""), ("7", ""), ("30", " selected"), ("365", "")]
        audit.same(OPTION.findall(shown), days, "for how long")
        hidden = dict(HIDDEN.findall(shown))
        audit.same(({*hidden}, hidden.get("code")), ({"code", "ballot"}, word), "what the form has")
        return hidden

    def check(self, client: GuestClient, led: dict[str, str], scope: str, lasts: int, *, allows: bool) -> None:
        """What has come of it."""
        audit = self.audit
        if not allows:
            audit.same((led.get("error"), "code" in led), ("access_denied", False), "what a no leads to")
            return
        told = audit.right(self.doors.trade(client, led["code"]), 200)
        for name in ("access_token", "refresh_token"):
            audit.world.secrets[told[name]] = f"an agent's {name}"
        audit.same(told["scope"], scope, "what an agent is given")
        record = listed(audit)[told["refresh_token"][:8]]
        lasts = min(lasts, int(audit.policy.max_ttl or lasts))
        audit.near(record["expires_at"], audit.wall + lasts, "how long an agent is let in", 5.0)
        audit.same(([*record["grants"]], record["client_surface"]), ([scope], "mcp"), "what its session holds")
        audit.right(audit.ask_here("DELETE", f"/sessions/{told['refresh_token'][:8]}"), 200)


def allowing(audit: Audit) -> None:
    """Agents ask, and their owner looks at the dashboard."""
    audit.rest(WAITS + 20.0)  # until nothing that others have asked is left
    _Desk(audit).steps()
    audit.rest(WAITS + 20.0)


CONSENTING = (allowing,)
