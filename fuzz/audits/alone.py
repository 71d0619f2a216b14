"""A relay of one's own, where nobody else has a phone or a session: what is said of nobody, of the last, of twins."""

from __future__ import annotations

from typing import Any

from fuzz.audit import Audit
from fuzz.audits.annex import Annex
from fuzz.audits.bridge import bridge
from fuzz.audits.paired import Paired, pair
from svc_proto.basics.entropy import Entropy

__all__ = ["ALONES"]

NAMELESS = ("", "unknown", "none", "null", " Unknown ", "NULL")
STATUS = {"device": {"battery_percent": 7}, "bridge": {}, "safety": {}}


def lonely(audit: Audit) -> None:
    """Phones are chosen and driven where there are no others; before the first comes, and when the last has gone."""
    annex = Annex(audit)
    caller = pair(annex)
    caller.seat.hang_up()
    told = annex.right(annex.ask_here("GET", "/bridge/status"), 503, "phone_not_connected")
    audit.same((told["phone_connected"], told["last_seen_seconds_ago"]), (False, None), "what is said of no phone")
    _nobody(annex, caller)
    if annex.chance(0.6):
        bridge(annex)
        annex.rest(1.0)
    else:
        _nameless(annex, caller)
    _last(annex)
    _nobody(annex, caller)
    annex.stop()


def _nobody(annex: Annex, caller: Paired) -> None:
    """Nobody is there to be driven."""
    annex.right(annex.ask(caller.token, "GET", "/ping"), 503, "phone_not_connected", "a command to nobody")
    annex.right(annex.ask(caller.token, "GET", "/ping?device=x"), 404, "unknown_device", "a command to somebody else")
    told = annex.right(annex.ask_here("GET", "/bridge/devices"), 200)
    is_: dict[str, object] = {"active_device_id": None, "most_recent_device_id": None, "devices": [], "count": 0}
    annex.same(told, is_, "the phones that are not there")


def _last(annex: Annex) -> None:
    """What the last phone has said is told when it has gone, as that of one that is not there."""
    phone = pair(annex, device_id=annex.word(), surface="android", form="phone")
    phone.seat.say("bridge", "bridge.status", {**STATUS, "mark": "m", "token": "hush"})
    annex.rest(0.5)
    since = annex.now
    phone.seat.hang_up()
    annex.rest(annex.pick((0.5, 30.0)))
    told = annex.right(annex.ask_here("GET", "/bridge/status"), 200)
    annex.near(told.pop("last_seen_seconds_ago"), annex.now - since, "when it was heard of", 1.6)
    is_ = {**STATUS, "mark": "m", "token": "[redacted]", "phone_connected": False}
    annex.same(told, is_, "what is said of a phone that has gone")


def _nameless(annex: Annex, caller: Paired) -> None:
    """Phones that have no name of their own are several all the same."""
    phones = [pair(annex, device_id=annex.pick(NAMELESS), surface="android", form="phone") for _ in range(3)]
    listed = annex.right(annex.ask_here("GET", "/bridge/devices"), 200)
    by_session = {each["session_token_prefix"]: each["device_id"] for each in listed["devices"]}
    annex.same({*by_session}, {phone.prefix for phone in phones}, "phones without names")
    annex.same(len({*by_session.values()}), 3, "the names that they are given")
    names = [by_session[phone.prefix] for phone in phones]
    annex.same((listed["active_device_id"], listed["most_recent_device_id"]), (names[0], names[2]), "who is meant")
    annex.world.phones_say_what_they_will = True
    gone = annex.rng.randrange(3)
    phones[gone].seat.hang_up()
    annex.rest(0.5)
    for place, phone in enumerate(phones):
        call = annex.begin_as(caller.token, "GET", f"/ping?device={names[place]}")
        if place == gone:
            annex.right(annex.answer(call), 404, "unknown_device", "a phone without a name that has gone")
            continue
        told = phone.seat.take()["payload"]
        reply = {"request_id": told["request_id"], "status": 200, "result": {"of": place}}
        phone.seat.say("bridge", "bridge.response", reply)
        annex.same(annex.right(annex.answer(call), 200), {"of": place}, "what a phone without a name answers")
    annex.world.phones_say_what_they_will = False
    for phone in phones:
        phone.seat.hang_up()
    annex.rest(0.5)


class _Twins:
    """Entropy that gives tokens which begin alike, for a while."""

    def __init__(self, entropy: Entropy) -> None:
        self.entropy = entropy
        self.alike = b""

    def __call__(self, size: int) -> bytes:
        data = self.entropy(size)
        return self.alike + data[len(self.alike) :] if self.alike and size == 16 else data


def twins(audit: Audit) -> None:
    """Several tokens begin alike: who names too little changes nobody, and is told how many there are."""
    annex = Annex(audit)
    engine: Any = annex.process.core
    engine.entropy = source = _Twins(engine.entropy)
    other = pair(annex)
    source.alike = bytes([annex.rng.randrange(256), annex.rng.randrange(256)])
    many = [pair(annex) for _ in range(annex.pick((2, 3)))]
    source.alike = b""
    start = many[0].token[:4]
    annex.same({one.token[:4] for one in many}, {start}, "how tokens begin that are alike")
    by = annex.pick((other, many[0]))
    while len(many) > 1:
        for method, body in (("DELETE", None), ("PATCH", {"ttl_seconds": 60})):
            near = annex.chance(0.5)
            ask = annex.ask_here if near else lambda *args: annex.ask(by.token, *args)
            caller = ask(method, f"/sessions/{start}", body)
            told = annex.right(caller, 409, about=f"{method} of {len(many)} sessions")
            annex.same(told["matches"], len(many), "how many sessions begin so")
        listed = annex.right(annex.ask_here("GET", "/sessions"), 200)["sessions"]
        due = {one.prefix: one.terms.expires_at for one in (*many, other)}
        annex.same({each["token_prefix"]: each["expires_at"] for each in listed}, due, "sessions that nobody has named")
        gone = many.pop()
        annex.right(annex.ask_here("DELETE", f"/sessions/{gone.prefix}"), 200)
        annex.wait(lambda: gone.seat.over, 5.0, "a socket outlives its session")  # noqa: B023
        annex.rest(0.5)
    caller = annex.ask_here("DELETE", f"/sessions/{start}")
    annex.same(annex.right(caller, 200)["revoked"], many[0].prefix, "the one that is left of several")
    for length in (3, 9, 35):
        annex.right(annex.ask_here("DELETE", f"/sessions/{other.token[:length]}"), 400, about=f"{length} characters")
    other.seat.hang_up()
    annex.stop()


ALONES = (lonely, twins)
