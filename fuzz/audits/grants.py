"""Grants that end by themselves while they are used, and the switch that lets the API's key in from elsewhere."""

from __future__ import annotations

from typing import Any

from fuzz.audit import Audit
from fuzz.audits.paired import Paired, pair
from fuzz.terms import Wish
from fuzz.world import API_KEY

__all__ = ["GRANTED"]

EDGE = 0.8  # s before or behind the end of a grant
LOST = "terminal grant expired or missing"


def _after_grant(audit: Audit, one: Paired, channel: str, late: bool) -> None:
    end = one.terms.grants[channel]
    audit.rest(max(0.0, end - audit.wall + (EDGE if late else -EDGE)))


def _bridge_of_caller(audit: Audit, late: bool) -> None:
    """A caller's bridge: 403 once it is over, and what was begun before is answered."""
    phone = pair(audit, name=f"p {audit.word()}", device_id=audit.word(), surface="android", form="phone")
    one = pair(audit, wish=Wish(None, {"bridge": 20}))
    device = phone.shown["device_id"]
    _after_grant(audit, one, "bridge", late)
    caller = audit.begin_as(one.token, "GET", f"/ping?device={device}")
    if late:
        audit.right(audit.answer(caller), 403, about="a caller whose bridge is over")
        audit.right(audit.ask(one.token, "GET", "/sessions"), 200, about="what needs no bridge")
        audit.same(phone.seat.heard, [], "what a phone is told of it")
    else:
        told = phone.seat.take()
        audit.rest(2 * EDGE)  # it is over by now
        phone.seat.reply(told["payload"], {"pong": 1})
        audit.same(audit.right(audit.answer(caller), 200), {"pong": 1}, "what was begun before the end of a grant")
    phone.seat.hang_up()
    one.seat.hang_up()


def _bridge_of_phone(audit: Audit, late: bool) -> None:
    """A phone whose own bridge is over is none; given anew, it is one with its next report."""
    phone = pair(audit, device_id=audit.word(), surface="android", form="phone", wish=Wish(None, {"bridge": 20}))
    one = pair(audit)
    device = phone.shown["device_id"]
    phone.seat.say("bridge", "bridge.status", {"mark": 1})
    _after_grant(audit, phone, "bridge", late)
    there = audit.right(audit.ask_here("GET", "/bridge/devices"), 200)["devices"]
    audit.same(device in [record["device_id"] for record in there], not late, "whether a phone is there")
    if not late:
        audit.rest(2 * EDGE)
    audit.right(
        audit.ask(one.token, "GET", f"/ping?device={device}"), 404, "unknown_device", "a phone without a bridge"
    )
    phone.seat.say("bridge", "bridge.status", {"mark": 2}, "s")
    told = phone.seat.take()
    audit.same((told["type"], told["id"], told["payload"]["error"]), ("error", "s", "grant_required"), "its report")
    body = {"grants": {"bridge": 0}}
    audit.right(audit.ask_here("PATCH", f"/sessions/{phone.prefix}", body), 200)
    phone.seat.say("bridge", "bridge.status", {"mark": 3}, "s")
    audit.rest(0.5)
    there = audit.right(audit.ask_here("GET", "/bridge/devices"), 200)["devices"]
    shown = [record for record in there if record["device_id"] == device]
    audit.same([record.get("mark") for record in shown], [3], "a phone that was given its bridge anew")
    audit.same(phone.seat.heard, [], "what it is told")
    phone.seat.hang_up()
    one.seat.hang_up()


def _terminal(audit: Audit, late: bool) -> None:
    """A terminal ends with its grant, which the next word finds out; given anew, there may be others."""
    one = pair(audit, wish=Wish(None, {"terminal": 20, "tui": 20}))
    seat = one.seat
    seat.say("terminal", "terminal.attach", {"session_name": "a"}, "a")
    pid = seat.take()["payload"]["pid"]
    _after_grant(audit, one, "terminal", late)
    word = audit.word()
    seat.say("terminal", "terminal.input", {"session_name": "a", "data": f"{word}\n"}, "t")
    told = seat.take()
    if not late:
        audit.same(
            (told["type"], told["payload"]["data"]), ("terminal.output", f"{word}\n"), "a terminal before its end"
        )
        audit.rest(2 * EDGE)
        seat.say("terminal", "terminal.list", {}, "t")
        told = seat.take()
    audit.same((told["channel"], told["type"], told["id"]), ("system", "error", "t"), "a terminal whose grant is over")
    audit.same(told["payload"]["message"], LOST, "what is said of it")
    seen: list[Any] = [seat.take()["type"]]
    audit.same(seen, ["terminal.detached"], "how it ends")
    audit.rest(4.0)
    audit.same(pid in audit.shells, False, "whether its shell is there")
    seat.say("tui", "tui.attach", {"cols": 1, "rows": 1}, "u")
    told = seat.take()
    audit.same((told["channel"], told["type"], told["id"]), ("system", "error", "u"), "a gateway whose grant is over")
    audit.right(audit.ask_here("PATCH", f"/sessions/{one.prefix}", {"grants": {"terminal": 600}}), 200)
    seat.say("terminal", "terminal.attach", {"session_name": "a"}, "a")
    told = seat.take()
    audit.same((told["type"], told["payload"]["reattach"]), ("terminal.attached", False), "a terminal, given anew")
    seat.hang_up()
    audit.rest(4.0)


def _voice(audit: Audit, late: bool) -> None:
    """Speech ends with its grant: no session is made, and the socket of one that was is closed with 1008."""
    one = pair(audit, wish=Wish(None, {"voice:tts": 20}), leaves=True)
    made = audit.right(audit.ask(one.token, "POST", "/voice/output/session", {"provider": "stub"}), 200)
    seat = audit.sit(one.host, made["websocket_path"], authorization=f"Bearer {one.token}")
    audit.same(seat.take()["type"], "voice.session.ready", "a session of voice")
    _after_grant(audit, one, "voice:tts", late)
    caller = audit.ask(one.token, "POST", "/voice/output/session", {"provider": "stub"})
    audit.right(caller, 403 if late else 200, about="speech about the end of its grant")
    seat.ends(1008, "the end of a socket whose grant is over", 3.0)
    audit.turned_away(one.host, made["websocket_path"], one.token, 403, "a socket without a grant")
    audit.rest(130.0)


def grants(audit: Audit) -> None:
    """Some grants, each just before its end or just behind it."""
    for each in audit.rng.sample((_bridge_of_caller, _bridge_of_phone, _terminal, _voice), 2):
        each(audit, audit.chance(0.5))


def switch(audit: Audit) -> None:
    """The API's key opens voice from this host, and from elsewhere only while the switch is on, until a restart."""
    path, field = "/relay/security", "allow_insecure_api_bearer"
    shown = {"ok": True, "scope": "runtime", field: False, "trust_proxy_headers": False}
    audit.same(audit.right(audit.ask_here("GET", path), 200), shown, "the switch")
    for _ in range(audit.rng.randint(2, 4)):
        if audit.chance(0.3):
            body = audit.pick(({}, {field: "true"}, {field: 1}, [], {field: None}))
            audit.right(audit.ask_here("PATCH", path, body), 400, about=f"{body}")
        elif audit.chance(0.2):
            audit.restart("relay", kill=audit.chance(0.5))
            shown[field] = False
        else:
            shown[field] = audit.chance(0.5)
            audit.same(
                audit.right(audit.ask_here("PATCH", path, {field: shown[field]}), 200),
                shown,
                "the switch, as it is set",
            )
        audit.same(audit.right(audit.ask_here("GET", path), 200), shown, "the switch")
        far = audit.ask(API_KEY, "GET", "/voice/config")
        audit.right(far, 200 if shown[field] else 403, about="the API's key from elsewhere")
        near = audit.ask_here("GET", "/voice/config", authorization=f"Bearer {API_KEY}")
        audit.right(near, 200, about="the API's key from this host")
        audit.right(
            audit.ask(audit.word(), "GET", "/voice/config"), 401 if shown[field] else 403, about="no key at all"
        )
        audit.right(audit.ask(API_KEY, "GET", "/sessions"), 401, "unauthorized", "the API's key where no voice is")
        audit.right(audit.ask(API_KEY, "GET", "/ping"), 401, "unauthorized", "the API's key at the bridge")
        audit.rest(audit.pick((0.0, 70.0)))
    audit.right(audit.ask_here("PATCH", path, {field: False}), 200)


GRANTED = (grants, grants, switch)
