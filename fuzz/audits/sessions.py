"""Sessions and codes: how long each lasts, who is listed and how, who ends and is ended, what a restart leaves."""

from __future__ import annotations

from fuzz.audit import Audit, Seat
from fuzz.audits.paired import NEVER, Paired, in_words, is_told, listed, pair, register, sign_in
from fuzz.terms import Policy, Spans, Terms, Wish, in_json, patched

__all__ = ["SESSIONS"]

TTLS = (None, None, 0, 30, 45.5, 600, 90 * 86_400)
GRANTS: tuple[Spans | None, ...] = (
    *(None, None, {"bridge": 20}, {"terminal": 0, "tui": 40}, {"bridge": 90 * 86_400, "chat": 10}),
    *({"voice:tts": None, "terminal": None}, {"voice:realtime": 35, "chat": 50}),
    *({"tui": None}, {"tui": 0, "terminal": 9}),
)
CODE_LASTS = 600.0  # s


class _Register:
    """All sessions, those of others as they were found."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.mine: list[Paired] = []
        self.gone: list[Paired] = []
        self.others = listed(audit)

    def live(self) -> list[Paired]:
        """Those of ours that are not over, which is noticed now."""
        wall = self.audit.wall
        for one in [one for one in self.mine if one.is_dead(wall)]:
            self.mine.remove(one)
            self.gone.append(one)
        return self.mine

    def steps(self) -> None:
        audit = self.audit
        others = (self.take_back, self.revoke, self.come_back, self.expire, self.refuse)
        kinds = (*[self.pair] * 2, *[self.change] * 2, *others)
        for _ in range(audit.rng.randint(10, 18)):
            if not self.live():
                self.pair()
            audit.pick(kinds)()
            audit.pick((self.list_all, self.list_all, self.health, self.show_the_dead))()
            audit.rest(audit.pick((0.0, 0.4, 5.0)))
        if audit.chance(0.3):
            self.restart()
        for one in self.live():
            for seat in one.seats:
                seat.hang_up()

    # --- what is done ---

    def pair(self) -> None:
        audit = self.audit
        wish, asks = (Wish(audit.pick(TTLS), audit.pick(GRANTS)) for _ in range(2))
        withheld = Wish(
            asks.ttl, None if asks.grants is None else {k: v for k, v in asks.grants.items() if v is not None}
        )
        self.mine.append(pair(audit, wish=wish, asks=withheld))

    def change(self) -> None:
        """By the operator, by itself or by another."""
        audit, one = self.audit, audit_pick(self.audit, self.live())
        wish = Wish(audit.pick(TTLS), audit.pick(GRANTS))
        if wish.ttl is not None or wish.grants is not None:
            self.change_to(one, wish, audit.pick((None, one, *self.live())))

    def take_back(self) -> None:
        """The operator takes something back, and the device would have it again."""
        audit, one = self.audit, audit_pick(self.audit, self.live())
        channel = audit.pick(("bridge", "terminal", "voice:tts"))
        self.change_to(one, Wish(audit.pick((None, None, 600)), {channel: None}), None)
        if not one.is_dead(audit.wall):
            self.change_to(one, Wish(None, {channel: audit.pick((0, 60))}), audit.pick((one, one, None)))

    def change_to(self, one: Paired, wish: Wish, by: Paired | None) -> None:
        audit = self.audit
        body: dict[str, object] = {} if wish.ttl is None else {"ttl_seconds": wish.ttl}
        body |= {} if wish.grants is None else {"grants": in_json(wish.grants)}
        path = f"/sessions/{audit.pick((one.prefix, one.token))}"
        low, policy = audit.wall, audit.world.policy
        caller = audit.ask(by.token, "PATCH", path, body) if by else audit.ask_here("PATCH", path, body)
        self.saw(by)
        why = self.refusal(one, wish, by)
        if why:
            audit.right(caller, 403, why, f"a change {body} of {one.terms}, {one.withheld} withheld")
            one.seen = one.seen if by is not one else audit.wall
            return
        told = audit.right(caller, 200, about=f"a change {body}")
        high, explicit = audit.wall, tuple(one.explicit)
        policy = policy if by is not None else Policy(policy.max_ttl)  # what binds sessions does not bind the operator
        audit.same((told["ok"], told["token_prefix"]), (True, one.prefix), "a change")
        for wall in (low, high):
            due = patched(one.terms, explicit, wish, policy, wall)
            fits = told["grants"].keys() == due.grants.keys() and all(
                _near(end, due.grants[channel], high - low) for channel, end in told["grants"].items()
            )
            if not fits or not _near(told["expires_at"], due.expires_at, high - low):
                audit.wrong(f"{one.terms} was changed by {wish} ({explicit}) to {told}, and it is {due}")
        self.learn(one, wish, told, by)

    def learn(self, one: Paired, wish: Wish, told: dict[str, object], by: Paired | None) -> None:
        grants = told["grants"]
        assert isinstance(grants, dict)
        ends = {channel: NEVER if end is None else float(end) for channel, end in grants.items()}
        one.terms = Terms(NEVER if told["expires_at"] is None else float(str(told["expires_at"])), ends)
        one.explicit.update(dict.fromkeys(wish.grants or ()))
        if by is None:  # what the operator takes back only the operator gives
            one.withheld.update(dict.fromkeys(each for each, span in (wish.grants or {}).items() if span is None))
        one.seen = self.audit.wall

    def refusal(self, one: Paired, wish: Wish, by: Paired | None) -> str:
        """Why a session may not change another, or itself, so; empty if it may. The operator may do anything."""
        if by is None:
            return ""
        policy, wall = self.audit.world.policy, self.audit.wall
        if policy.reduce_only and by is not one:
            return "self_only"
        end = one.terms.expires_at if wish.ttl is None else wall + min(wish.ttl or NEVER, policy.max_ttl or NEVER)
        if policy.reduce_only and end > one.terms.expires_at:
            return "reduce_only"
        for channel, span in (wish.grants or {}).items():
            held = one.terms.grants.get(channel, 0.0)
            if span is not None and min(wall + (span or NEVER), end) > held:
                if policy.reduce_only:
                    return "reduce_only"
                if channel in one.withheld:
                    return "withheld"
        return ""

    def revoke(self) -> None:
        audit, one = self.audit, audit_pick(self.audit, self.live())
        by = audit.pick((None, one, *self.live()))
        prefix = audit.pick((one.prefix, one.token))
        seats = [seat for seat in one.seats if not seat.over]
        path = f"/sessions/{prefix}"
        caller = audit.ask(by.token, "DELETE", path) if by else audit.ask_here("DELETE", path)
        told = audit.right(caller, 200, about="an end")
        told.pop("knows_api_key", None)
        audit.same(told, {"ok": True, "revoked": one.prefix, "revoked_self": by is one}, "an end")
        self.saw(by)
        one.ended = True
        self.check_ended(one, seats)
        again = audit.ask_here("DELETE", path)
        audit.right(again, 404, "not_found", "a session that has ended")

    def check_ended(self, one: Paired, seats: list[Seat]) -> None:
        """Its sockets are told why, and closed with 1008, at once."""
        for seat in seats:
            self.audit.wait_over(seat, 5.0, f"a socket of {one.prefix} outlives its session")
            kinds = [(told["channel"], told["type"], told["payload"].get("error")) for told in seat.heard]
            if kinds[-1:] != [("system", "error", "session_ended")] or seat.talker.close_code != 1008:
                self.audit.wrong(f"a socket ended with {seat.talker.close_code} behind {kinds}")

    def come_back(self) -> None:
        audit, one = self.audit, audit_pick(self.audit, self.live())
        payload: dict[str, object] = {"session_token": one.token}
        if audit.chance(0.3):
            payload["pairing_code"] = register(audit)  # which stays good
        seat = sign_in(audit, one.host, payload)
        told = seat.take()
        if one.is_dead(audit.wall):
            self.meet()
            return
        audit.same((told["type"], told["id"]), ("auth.ok", "auth-1"), "a token that is good")
        ends = {channel: in_words(end) for channel, end in one.terms.grants.items()}
        members = told["payload"]
        is_ = (one.token, in_words(one.terms.expires_at), ends)
        audit.same((members["session_token"], members["expires_at"], members["grants"]), is_, "who comes back")
        one.seats.append(seat)
        one.seen = audit.wall
        if "pairing_code" in payload and audit.chance(0.5):
            fresh = sign_in(audit, audit.host(), {"pairing_code": payload["pairing_code"]})
            audit.same(fresh.take()["type"], "auth.ok", "a code that was shown beside a good token")
            fresh.hang_up()
            self.meet()

    def meet(self) -> None:
        """Somebody else has come, whom we do not follow."""
        audit = self.audit
        audit.rest(0.5)
        known = {each.prefix for each in self.live()} | {*self.others}
        self.others |= {prefix: record for prefix, record in listed(audit).items() if prefix not in known}

    def expire(self) -> None:
        """Time goes on until just before the end of one, or just behind it."""
        audit = self.audit
        soon = sorted(
            (one for one in self.live() if one.terms.expires_at < audit.wall + 700), key=lambda o: o.terms.expires_at
        )
        if not soon:
            return
        one = soon[0]
        before = audit.chance(0.4)
        audit.rest(max(0.0, one.terms.expires_at - audit.wall + (-0.3 if before else 0.3)))
        seats = [seat for seat in one.seats if not seat.over]
        if before:
            if not one.is_dead(audit.wall):
                caller = audit.ask(one.token, "GET", "/notifications/recent")
                if not one.is_dead(audit.wall):
                    audit.right(caller, 200, about="a session just before its end")
                    one.seen = audit.wall
            return
        self.check_ended(one, seats)
        audit.right(audit.ask(one.token, "GET", "/sessions"), 401, "unauthorized", "a session just behind its end")

    def refuse(self) -> None:
        audit, one = self.audit, audit_pick(self.audit, self.live())
        rows: tuple[tuple[str, str, object, int], ...] = (
            ("DELETE", one.prefix[:3], None, 400),
            ("DELETE", one.token[:9], None, 400),
            ("DELETE", one.token[:35], None, 400),
            ("DELETE", one.prefix.upper() if one.prefix.upper() != one.prefix else "ZZZZ", None, 404),
            ("PATCH", one.prefix, {"ttl_seconds": "60"}, 400),
            ("PATCH", one.prefix, {"ttl_seconds": 315_360_001}, 400),
            ("PATCH", one.prefix, {"grants": {"bridge": True}}, 400),
            ("PATCH", one.prefix, {"grants": audit.pick(([], {"other": 5}))}, 400),
            ("PATCH", one.prefix, [], 400),
            ("PATCH", "zzzzzzzz", {"ttl_seconds": 5}, 404),
        )
        for method, prefix, body, status in audit.rng.sample(rows, 3):
            caller = audit.ask_here(method, f"/sessions/{prefix}", body)
            audit.right(caller, status, about=f"{method} of {prefix!r} with {body}")

    def restart(self) -> None:
        audit = self.audit
        live = [*self.live()]
        audit.restart("relay", kill=audit.chance(0.5))
        for one in live:
            one.seats.clear()
        self.come_back()
        self.list_all(restarted=True)

    # --- what is looked at ---

    def saw(self, by: Paired | None) -> None:
        if by is not None:
            by.seen = self.audit.wall

    def list_all(self, *, restarted: bool = False) -> None:
        audit, low = self.audit, self.audit.wall
        by = audit.pick((None, *self.live()))
        caller = audit.ask(by.token, "GET", "/sessions") if by else audit.ask_here("GET", "/sessions")
        self.saw(by)
        edge = [one for one in self.live() if low <= one.terms.expires_at <= audit.wall + 0.1]
        records = audit.right(caller, 200)["sessions"]
        times = [record["last_seen"] for record in records]
        audit.same(times, sorted(times, reverse=True), "sessions by when they were last seen")
        told = {record["token_prefix"]: record for record in records}
        if len(told) < len(records):
            audit.wrong(f"a session is listed twice: {[record['token_prefix'] for record in records]}")
        for one in self.live():
            if one in edge:
                continue
            record = told.pop(one.prefix, None)
            if record is None:
                audit.wrong(f"{one.prefix} is not listed")
            for name in ("created_at", "first_seen"):
                audit.near(record.pop(name), one.created, name)
            seen = record.pop("last_seen")
            if not restarted and seen < one.seen - 1.0:
                audit.wrong(f"{one.prefix} was last seen {seen}, and was heard of {one.seen}")
            online = any(not seat.over for seat in one.seats)
            is_ = {**one.shown, "is_current": by is one, "online": online}
            is_["expires_at"] = in_words(one.terms.expires_at)
            is_["grants"] = {channel: in_words(end) for channel, end in one.terms.grants.items()}
            audit.same(record, is_, f"{one.prefix} as it is listed")
        extra = {*told} - {*self.others} - {one.prefix for one in edge}
        if extra:
            audit.wrong(f"{extra} are listed, and nobody is that")
        wall = audit.wall
        for prefix, record in self.others.items():
            lasts = record["expires_at"] is None or record["expires_at"] > wall + 1.0
            if lasts and prefix not in told and audit.world.is_stored(prefix):  # else a restart has lost it
                audit.wrong(f"{prefix} lasts until {record['expires_at']}, and is not listed at {wall}")
            if prefix in told and not restarted:
                shown = {**told[prefix], "online": False, "last_seen": 0, "is_current": False}
                audit.same(
                    shown, {**record, "online": False, "last_seen": 0, "is_current": False}, f"{prefix}, untouched"
                )

    def health(self) -> None:
        audit = self.audit
        audit.rest(0.3)
        body = audit.right(audit.ask_here("GET", "/health"), 200)
        many = len(listed(audit))
        info = audit.right(audit.ask_here("GET", "/relay/info"), 200)
        clients = sum(not seat.over for one in self.live() for seat in one.seats)
        there = audit.world.phone_service.state.name == "ONLINE"
        audit.same((body["status"], body["sessions"]), ("ok", many), "the relay's health")
        audit.same(body["clients"], clients + there, "how many clients there are")
        counts = (info["session_count"], info["paired_device_count"], info["pending_commands"])
        audit.same(counts, (many, many, 0), "the relay's numbers")

    def show_the_dead(self) -> None:
        """What is over opens nothing, and is refused in words that phones know."""
        audit = self.audit
        for one in self.gone[-2:]:
            audit.right(audit.ask(one.token, "GET", "/sessions"), 401, "unauthorized", "a session that is over")
            seat = sign_in(audit, audit.host(), {"session_token": one.token})
            told = seat.take()
            reason = told["payload"].get("reason", "")
            if told["type"] != "auth.fail" or "token" not in reason or "pairing" in reason:
                audit.wrong(f"a token that is over is told {told}")
            seat.ends(1000, "the end of a socket that was refused")


def audit_pick(audit: Audit, there: list[Paired]) -> Paired:
    if not there:
        there.append(pair(audit))
    return audit.rng.choice(there)


def _near(told: object, due: float, within: float) -> bool:
    if told is None or due == NEVER:
        return told is None and due == NEVER
    return isinstance(told, int | float) and abs(told - due) <= within + 0.002


def sessions(audit: Audit) -> None:
    """Devices pair, are changed and ended, and are listed each time."""
    _Register(audit).steps()


def codes(audit: Audit) -> None:
    """A code is good once, for ten minutes, and for what was said of it last."""
    code = register(audit)
    if audit.chance(0.5):
        audit.rest(audit.pick((0.0, 300.0)))
        code = register(audit)
    since, wish = audit.now, False
    if audit.chance(0.4):  # a second time, for something else
        body, wish = {"code": code, "ttl_seconds": 60, "transport_hint": "wss"}, True
        audit.right(audit.ask_here("POST", audit.pick(("/pairing/register", "/pairing/approve")), body), 200)
        since = audit.now
    late = audit.pick((0.0, CODE_LASTS - 0.4, CODE_LASTS + 0.4, CODE_LASTS - 0.4))
    audit.rest_until(since + late)
    seat = sign_in(audit, audit.host(), {"pairing_code": code})
    told = seat.take()
    good = late < CODE_LASTS
    audit.same(told["type"], "auth.ok" if good else "auth.fail", f"a code {late:.1f} s after it was registered")
    if good:
        audit.same(told["payload"]["transport_hint"], "wss" if wish else "ws", "what was said of a code last")
    if not good and not {"pairing", "invalid"} <= {*told["payload"]["reason"].replace(",", "").split()}:
        audit.wrong(f"a code that is over is told {told}")
    again = sign_in(audit, audit.host(), {"pairing_code": code})
    audit.same(again.take()["type"], "auth.fail", "a code that was shown before")
    for each in (seat, again):
        each.hang_up()
    bad: list[object] = [{}, {"code": 123456}, [], *({"code": each} for each in ("ABC12", "ABC1234", "ÄBC123"))]
    more = ({"ttl_seconds": -1}, {"ttl_seconds": True}, {"transport_hint": "tls"}, {"grants": {"chat": "x"}})
    for refused_body in audit.rng.sample([*bad, *({"code": "ABC123", **each} for each in more)], 3):
        caller = audit.ask_here("POST", "/pairing/register", refused_body)
        audit.right(caller, 400, about=f"a code {refused_body}")
    refused = sign_in(audit, audit.host(), {"pairing_code": "ABC123"})
    audit.same(refused.take()["type"], "auth.fail", "a code that was refused")
    refused.hang_up()


def strangers_first_words(audit: Audit) -> None:
    """What is said before `auth.ok`, and what is not."""
    host, kind = audit.host(), audit.pick(("silent", "nothing", "other", "no credential", "unknown", "two"))
    seat = audit.sit(host)
    since = audit.now
    if kind == "silent":
        audit.wait(lambda: bool(seat.heard), 31.0, "who says nothing is not refused")
        audit.near(audit.now - since, 30.0, "how long a socket waits for somebody to say who they are")
    elif kind == "other":
        channel, first = audit.pick((("system", "ping"), ("terminal", "terminal.attach"), ("other", "auth")))
        seat.say(channel, first, {})
    elif kind == "no credential":
        seat.say("system", "auth", audit.pick(({}, {"device_name": "x"}, {"pairing_code": 7}, {"session_token": ""})))
    elif kind == "two":  # the right thing, and at once what counts from then on
        code = register(audit)
        seat.say("system", "auth", {"pairing_code": code}, "a")
        seat.say("system", "ping", {"ts": 5}, "b")
        seat.say("nowhere", "x", {}, "c")
        audit.same(seat.take()["type"], "auth.ok", "a good code")
        is_told(audit, seat, "system", "pong", {"ts": 5}, "b")
        told = seat.take()
        audit.same(
            (told["type"], told["id"], told["payload"]["error"]), ("error", "c", "unknown_channel"), "no channel"
        )
        ignored: tuple[tuple[str, str, dict[str, object]], ...] = (
            ("system", "other", {}),
            ("system", "pong", {}),
            ("bridge", "bridge.command", {}),
        )
        for channel, kind, payload in ignored:
            seat.say(channel, kind, payload, "d")
        seat.say("system", "ping", {}, "e")
        told = seat.take()
        audit.same((told["type"], told["id"]), ("pong", "e"), "what is not answered")
        audit.near(told["payload"]["ts"], audit.wall, "the time of a pong")
        seat.hang_up()
        return
    else:
        seat.say("system", "auth", {"session_token": "x" * 36} if kind == "unknown" else [], "a")
    told = seat.take()
    audit.same((told["channel"], told["type"]), ("system", "auth.fail"), f"{kind} at first")
    seat.ends(1000, "the end of a socket that was refused")
    audit.same(seat.heard, [], "what a socket is told that was refused")


SESSIONS = (sessions, sessions, codes, strangers_first_words)
