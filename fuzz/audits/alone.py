"""A relay of one's own, where nobody else has a phone or a session: what is said of nobody, of the last, of twins."""

from __future__ import annotations

import json
from typing import Any

from fuzz.audit import Audit
from fuzz.audits.annex import Annex
from fuzz.audits.bridge import bridge
from fuzz.audits.lodge import Halting
from fuzz.audits.paired import Paired, listed, pair
from svc_proto.basics.entropy import Entropy

__all__ = ["ALONES"]

NAMELESS = ("", "unknown", "none", "null", " Unknown ", "NULL")
STATUS = {"device": {"battery_percent": 7}, "bridge": {}, "safety": {}}


def lonely(audit: Audit) -> None:
    """Phones are chosen and driven where there are no others; before the first comes, and when the last has gone."""
    annex = Annex(audit)
    caller = pair(annex, leaves=True)
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
        phone.seat.obey({"of": place})
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
        due = {one.prefix: one.terms.expires_at for one in (*many, other)}
        told = {prefix: record["expires_at"] for prefix, record in listed(annex).items()}
        annex.same(told, due, "sessions that nobody has named")
        gone = many.pop()
        annex.right(annex.ask_here("DELETE", f"/sessions/{gone.prefix}"), 200)
        annex.wait_over(gone.seat, 5.0, "a socket outlives its session")
        annex.rest(0.5)
    caller = annex.ask_here("DELETE", f"/sessions/{start}")
    annex.same(annex.right(caller, 200)["revoked"], many[0].prefix, "the one that is left of several")
    for length in (3, 9, 35):
        annex.right(annex.ask_here("DELETE", f"/sessions/{other.token[:length]}"), 400, about=f"{length} characters")
    other.seat.hang_up()
    annex.stop()


HALVES: tuple[tuple[str, str, dict[str, Any], int], ...] = (  # what is half said when a relay goes, and its answer
    ("PATCH", "/sessions/{prefix}", {"ttl_seconds": 900}, 200),
    ("POST", "/media/upload", {"content_type": "text/plain", "content": "QUJD"}, 200),
    ("POST", "/clipboard/inbox", {"format": "gif", "bytes_base64": "R0lGODlhAAAA"}, 200),
    ("POST", "/voice/output/session", {"provider": "stub"}, 200),
    ("POST", "/type", {"text": "a word"}, 503),  # all phones have been let go of
    ("POST", "/type", {"text": "a word", "device": "x"}, 404),
    ("GET", "/readyz", {"a": "word"}, 503),
    ("GET", "/healthz", {"a": "word"}, 200),
)


def parting(audit: Audit) -> None:
    """A relay is told to go: who waits is told so, what was half said is heard out, and nobody is let in any more."""
    annex = Annex(audit)
    one, phone = pair(annex), pair(annex, device_id=annex.word(), surface="android", form="phone")
    fields = {"authorization": f"Bearer {one.token}"}
    rows = annex.rng.sample(HALVES, 5)
    halves = []
    for method, path, body, _ in rows:
        carrier = annex.world.carrier(annex.world.agent, annex.remote, fresh=True)
        said = (method, path.replace("{prefix}", one.prefix), fields, json.dumps(body).encode())
        halves.append(Halting(carrier, annex.remote, said, on_done=annex.world._judge))
    waits = annex.begin_as(one.token, "GET", f"/ping?device={phone.shown['device_id']}")
    made = annex.right(annex.ask(one.token, "POST", "/voice/output/session", {"provider": "stub"}), 200)
    voice = annex.sit(one.host, made["websocket_path"], authorization=f"Bearer {one.token}")
    annex.rest(1.0)
    annex.process.stop(10.0)
    annex.wait(lambda: waits.over, 1.0, "who waits for a phone waits for a relay that goes")
    annex.right(waits, 502, "phone_disconnected", "who waits for a phone while its relay goes")
    annex.rest(annex.pick((0.5, 3.0)))
    seats = (one.seat, phone.seat, voice)
    annex.same(
        [(seat.over, seat.talker.close_code) for seat in seats], [(True, 1001)] * 3, "sockets of a relay that goes"
    )
    for half, (method, path, _, status) in zip(halves, rows, strict=True):
        half.go_on()
        annex.right(annex.answer(half, 8.0), status, about=f"{method} {path}, half said when a relay goes")
        if path == "/readyz":
            annex.same(half.answer.json["reasons"], ["stopping"], "why a relay is not ready")
    annex.wait(lambda: not annex.process.alive, 12.0, "a relay that was told to go stays")
    changed = any(path.startswith("/sessions") for _, path, _, _ in rows)
    wall = annex.wall
    annex.again()
    annex.near(
        listed(annex)[one.prefix]["expires_at"],
        wall + 900 if changed else one.terms.expires_at,
        "what was changed at last",
        15.0,
    )
    annex.same(len(annex.home.disk.files(annex.home.spool)), 0, "uploads that outlive their relay")
    annex.stop()


ALONES = (lonely, twins, parting)
