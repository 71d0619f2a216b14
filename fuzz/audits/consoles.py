"""Channels of a session that has several sockets: what each hears, what is not served, and how much one may have."""

from __future__ import annotations

from typing import Any

from fuzz.audit import Audit, Seat
from fuzz.audits.paired import Paired, pair, sign_in
from fuzz.terms import Wish

__all__ = ["CONSOLES"]

MOST_GATEWAYS = 8  # of a session
UNSERVED = (("desktop", "workspace"), ("proactive", "proactive.subscribe"), ("voice", "x"), ("", "x"), ("nowhere", "y"))
NOT_RUNNING = "the agent gateway is not running"


def _another(audit: Audit, one: Paired) -> Seat:
    """The same device opens one more socket."""
    seat = sign_in(audit, one.host, {"session_token": one.token})
    told = seat.take()
    audit.same((told["type"], told["payload"]["session_token"]), ("auth.ok", one.token), "one more socket")
    one.seats.append(seat)
    return seat


def _quiet(audit: Audit, seats: list[Seat], about: str) -> None:
    audit.rest(0.5)
    audit.same([seat.heard for seat in seats], [[] for _ in seats], about)


def consoles(audit: Audit) -> None:
    """Each socket has terminals and a gateway of its own; what is said on one is heard on no other."""
    one = pair(audit)
    seats = [one.seat, _another(audit, one)]
    name, pids = audit.word(), list[int]()
    for seat in seats:
        seat.say("terminal", "terminal.attach", {"session_name": name}, "a")
        told = seat.take()["payload"]
        audit.same((told["session_name"], told["reattach"]), (name, False), "a terminal of that name on each socket")
        pids.append(told["pid"])
    audit.same(len({*pids}), 2, "how many shells two sockets have")
    for number, seat in enumerate(seats):
        word, other = audit.word(), seats[1 - number]
        seat.say("terminal", "terminal.input", {"session_name": name, "data": f"{word}\n"})
        told = seat.take()
        audit.same((told["type"], told["payload"]["data"]), ("terminal.output", f"{word}\n"), "what a shell shows")
        seat.say("terminal", "terminal.list", {}, "l")
        rows = seat.take()["payload"]["sessions"]
        audit.same([(row["name"], row["pid"]) for row in rows], [(name, pids[number])], "the terminals of a socket")
        _quiet(audit, [other], "what another socket hears of a terminal")
    gone = audit.pick((0, 1))
    seats[gone].hang_up()
    audit.rest(4.0)
    audit.same([pid in audit.shells for pid in pids], [gone == 1, gone == 0], "the shells when one socket has gone")
    left, word = seats[1 - gone], audit.word()
    left.say("terminal", "terminal.input", {"data": f"{word}\n"})
    audit.same(left.take()["payload"]["data"], f"{word}\n", "a terminal when another socket has gone")
    for channel, kind in UNSERVED:
        left.say(channel, kind, audit.pick(({}, {"x": 1})), "u")
        told = left.take()
        is_ = ("system", "error", "u", "unknown_channel")
        audit.same((told["channel"], told["type"], told["id"], told["payload"]["error"]), is_, f"channel {channel!r}")
    _gateways(audit, one, left)
    audit.right(audit.ask_here("DELETE", f"/sessions/{one.prefix}"), 200)
    audit.wait(lambda: left.over, 5.0, "a socket outlives its session")
    audit.same((left.heard[-1]["payload"].get("error"), left.talker.close_code), ("session_ended", 1008), "its end")
    audit.rest(6.0)
    audit.same([pid for pid in pids if pid in audit.shells], [], "shells whose session is over")


def _gateways(audit: Audit, one: Paired, seat: Seat) -> None:
    """A session has so many gateways, on whichever sockets; who lets go of one makes room."""
    request: dict[str, Any] = {"jsonrpc": "2.0", "id": "r9", "method": "say", "params": {"mark": 1}}
    seat.say("tui", "tui.rpc.request", request)
    told = seat.take()
    is_ = ("tui.rpc.response", "r9", NOT_RUNNING)
    audit.same(
        (told["type"], told["payload"]["id"], told["payload"]["error"]["message"]), is_, "a gateway that is none"
    )
    many = [_another(audit, one) for _ in range(MOST_GATEWAYS + 1)]
    for number, each in enumerate(many):
        each.say("tui", "tui.attach", {"cols": 80, "rows": 24}, "g")
        told = each.take()
        if number < MOST_GATEWAYS:
            audit.same(told["type"], "tui.attached", f"gateway {number + 1}")
            audit.same(each.take()["payload"]["params"]["type"], "gateway.ready", "its first word")
        else:
            is_ = ("system", "error", "tui_busy")
            audit.same((told["channel"], told["type"], told["payload"]["error"]), is_, "one gateway too many")
    way, first = audit.rng.randrange(2), many[0]
    if way:
        first.say("tui", "tui.detach", {})
    else:
        first.hang_up()
    audit.rest(6.0)
    many[-1].say("tui", "tui.attach", {"cols": 80, "rows": 24}, "g")
    audit.same(many[-1].take()["type"], "tui.attached", "a gateway where another was let go of")
    audit.same(many[-1].take()["payload"]["params"]["type"], "gateway.ready", "its first word")
    marks = {each: audit.rng.randrange(10**6, 10**9) for each in many[1:]}
    for each, mark in marks.items():
        each.say("tui", "tui.rpc.request", {**request, "params": {"mark": mark}})
    for each, mark in marks.items():
        told = each.take()
        audit.same((told["type"], told["payload"].get("result")), ("tui.rpc.response", {"mark": mark}), "whose answer")
    _quiet(audit, [*marks], "what gateways say besides")


def endings(audit: Audit) -> None:
    """Each channel ends at the second of its grant, and no other with it; the session goes on."""
    spans = {"terminal": 20, "tui": 30, "bridge": 40, "voice:tts": 25, "voice:realtime": 35}
    order = sorted(spans, key=lambda channel: spans[channel])
    one = pair(audit, device_id=audit.word(), surface="android", form="phone", wish=Wish(None, {**spans}))
    device = one.shown["device_id"]
    for channel in order:
        late = audit.chance(0.5)
        audit.rest(max(0.0, one.terms.grants[channel] - audit.wall + (1.0 if late else -1.0)))
        wall = audit.wall
        held = {each for each, end in one.terms.grants.items() if wall < end}
        audit.same(channel in held, not late, "whether it is held")
        seat = _another(audit, one)
        _probe(audit, one, seat, held, device)
        seat.hang_up()
    audit.right(audit.ask(one.token, "GET", "/sessions"), 200, about="a session without its grants")
    one.seats[0].hang_up()


def _probe(audit: Audit, one: Paired, seat: Seat, held: set[str], device: str) -> None:
    """Everything that asks for a grant, and what comes of it."""
    seat.say("terminal", "terminal.list", {}, "t")
    kind = seat.take()["type"]
    audit.same(kind, "terminal.sessions" if "terminal" in held else "error", f"a terminal with {sorted(held)}")
    seat.say("tui", "tui.resize", {"cols": 1, "rows": 1}, "u")
    seat.say("system", "ping", {"ts": 1}, "p")
    kinds = [seat.take()["type"] for _ in range(1 if "tui" in held else 2)]
    audit.same(kinds, ["pong"] if "tui" in held else ["error", "pong"], f"a gateway with {sorted(held)}")
    caller = audit.begin_as(one.token, "GET", f"/ping?device={device}")
    if "bridge" in held:
        seat.obey({})
    audit.right(audit.answer(caller), 200 if "bridge" in held else 403, about=f"the bridge with {sorted(held)}")
    for path, grant in (("/voice/output", "voice:tts"), ("/voice/realtime", "voice:realtime")):
        status = 200 if grant in held else 403
        audit.right(audit.ask(one.token, "GET", f"{path}/config"), status, about=f"{path} with {sorted(held)}")
    audit.right(audit.ask(one.token, "GET", "/voice/config"), 200, about="what was not cut short")


CONSOLES = (consoles, endings)
