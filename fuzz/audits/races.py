"""Two at the same moment: one after another would have come to the same, in one order or the other."""

from __future__ import annotations

import base64
import json

from attrs import evolve

from fuzz.audit import Audit, Seat
from fuzz.audits.heard import Events, Listener
from fuzz.audits.paired import listed, pair, register
from fuzz.world import LOCAL
from tests.support.sim_http import RequestClient as Caller

__all__ = ["RACES"]


def _all(audit: Audit, callers: list[Caller]) -> list[int]:
    return [audit.answer(caller).status for caller in callers]


def races(audit: Audit) -> None:
    """Some of them, each for as many as come."""
    for each in audit.rng.sample(KINDS, 3):
        each(audit)


def _a_code(audit: Audit) -> None:
    """Several show one code: one of them is paired, the others have failed."""
    code, seats = register(audit), list[Seat]()
    for _ in range(audit.pick((2, 3))):
        seats.append(audit.sit(audit.host()))
    for seat in seats:
        seat.say("system", "auth", {"pairing_code": code})
    kinds = sorted(seat.take()["type"] for seat in seats)
    audit.same(kinds, ["auth.fail"] * (len(seats) - 1) + ["auth.ok"], "what those are told who show one code at once")
    for seat in seats:
        seat.hang_up()


def _an_end(audit: Audit) -> None:
    """Two end one session, and a third uses it."""
    one = pair(audit)
    callers = [audit.begin_as(one.token, "DELETE", f"/sessions/{one.prefix}") for _ in range(2)]
    used = audit.begin_as(one.token, "GET", "/notifications/recent")
    told = sorted(_all(audit, callers))
    if told[0] != 200 or told[1] not in (200, 401, 404):
        audit.wrong(f"two who end one session are told {told}")
    if audit.answer(used).status not in (200, 401):
        audit.wrong(f"who uses a session that ends is told {used.status}")
    audit.wait(lambda: one.seat.over, 10.0, "a socket outlives its session")
    audit.right(audit.ask(one.token, "GET", "/sessions"), 401, "unauthorized")


def _a_change(audit: Audit) -> None:
    """Two change one session: what the last one was told stands."""
    one = pair(audit)
    spans = (audit.pick((100, 5_000)), audit.pick((200, 9_000)))
    callers = [audit.begin_as(one.token, "PATCH", f"/sessions/{one.prefix}", {"ttl_seconds": span}) for span in spans]
    audit.same(
        _all(audit, callers) if not audit.world.policy.reduce_only else [200, 200], [200, 200], "two changes at once"
    )
    shown = listed(audit)[one.prefix]["expires_at"]
    told = [caller.answer.json.get("expires_at") for caller in callers]
    if not audit.world.policy.reduce_only and shown not in told:
        audit.wrong(f"{one.prefix} is shown with {shown}, and was told {told}")
    one.seat.hang_up()


def _copies(audit: Audit) -> None:
    """Copies that are made at once have titles of their own, and all rows."""
    word = audit.word()
    chat = audit.right(audit.ask_api("POST", "/api/sessions", {"title": word}), 201)["id"]
    audit.right(audit.ask_api("POST", f"/api/sessions/{chat}/chat", {"message": f"plain: {word}"}), 200)
    many = audit.pick((2, 3, 4))
    callers = [audit.begin_api("POST", f"/api/sessions/{chat}/fork", {}) for _ in range(many)]
    audit.same(_all(audit, callers), [201] * many, "copies at once")
    titles = sorted(caller.answer.json["title"] for caller in callers)
    audit.same(titles, [f"{word} #{number}" for number in range(2, 2 + many)], "the titles of copies")
    for caller in callers:
        view = caller.answer.json
        rows = audit.rows_of(view["id"])
        audit.same((view["message_count"], len(rows), view["parent_session_id"]), (2, 2, chat), "a copy")


def _a_key(audit: Audit) -> None:
    """Those who ask at once with one key get one answer, for which the model was asked once."""
    text, key, path = f"plain: {audit.word()}", audit.word(), audit.pick(("/v1/chat/completions", "/v1/responses"))
    body: dict[str, object] = {"messages": [{"role": "user", "content": text}]} if "chat" in path else {"input": text}
    heard = Listener(audit, text)
    callers = [audit.begin_api("POST", path, body, idempotency_key=key) for _ in range(audit.pick((2, 3)))]
    statuses = _all(audit, callers)
    heard.stop()
    audit.same((statuses, len(heard.asked)), ([200] * len(callers), 1), "who asks at once with one key")
    audit.same(len({caller.answer.json["id"] for caller in callers}), 1, "how many answers there are")


def _a_deletion(audit: Audit) -> None:
    """A chat is deleted while somebody talks in it: the talk ends, and the chat is gone."""
    chat = audit.new_chat()
    text, events = f"{audit.pick(('plain', 'hang'))}: {audit.word()}", Events()
    turn = audit.begin_api("POST", f"/api/sessions/{chat}/chat/stream", {"message": text}, events)
    audit.rest(audit.pick((0.0, 0.01, 0.3)))
    gone = audit.begin_api("DELETE", f"/api/sessions/{chat}")
    also = audit.begin_api("DELETE", f"/api/sessions/{chat}")
    audit.same(sorted(_all(audit, [gone, also])), [204, 404], "two who delete one chat")
    audit.answer(turn, 30.0)
    if turn.status == 200:
        audit.same(events.names[-1:], ["done"], "the end of a talk whose chat is deleted")
    elif turn.status != 404:
        audit.wrong(f"who talks in a chat that is deleted is told {turn.status}")
    audit.right(audit.ask_api("GET", f"/api/sessions/{chat}"), 404, "session_not_found")
    if text in audit.world.upstream.questions:
        audit.rest(5.0)
        audit.same(text in audit.world.upstream.questions, False, "whether the model talks on")


def _uploads(audit: Audit) -> None:
    """What is put there at once is there, each as it came."""
    one = pair(audit)
    if audit.world.shelf.cap < 100:
        one.seat.hang_up()
        return
    data = [audit.word().encode() * 50 for _ in range(3)]
    bodies = [{"content_type": "text/plain", "content": base64.b64encode(each).decode()} for each in data]
    callers = [audit.begin_as(one.token, "POST", "/media/upload", body) for body in bodies]
    audit.same(_all(audit, callers), [200] * 3, "uploads at once")
    fetched = [audit.begin_as(one.token, "GET", f"/media/{caller.answer.json['token']}") for caller in callers]
    audit.same(_all(audit, fetched), [200] * 3, "what was put there at once")
    audit.same([caller.answer.body for caller in fetched], data, "what was put there at once")
    one.seat.hang_up()


def _a_phone_again(audit: Audit) -> None:
    """A phone comes with two sockets at once: it is one phone, and a call has one outcome."""
    name, device = f"phone {audit.word()}", audit.word()
    first = pair(audit, name=name, device_id=device, surface="android", form="phone")
    call = audit.begin_as(first.token, "GET", f"/ping?device={device}")
    second = audit.sit(first.host)
    second.say("system", "auth", {"session_token": first.token})
    audit.same(second.take()["type"], "auth.ok", "a phone that comes again")
    audit.answer(call, 40.0)
    if call.status not in (502, 504):
        audit.wrong(f"a call to a phone that came again is answered {call.status}")
    body = audit.right(audit.ask_here("GET", "/bridge/devices"), 200)
    audit.same([record["device_id"] for record in body["devices"]].count(device), 1, "how many phones it is")
    second.heard.clear()  # it may have been there before the first call
    second.times.clear()
    call = audit.begin_as(first.token, "GET", f"/ping?device={device}")
    while (told := second.take())["type"] != "bridge.command":
        pass
    first.seat.reply(told["payload"], {"pong": 8})
    audit.rest(0.3)
    second.reply(told["payload"], {"pong": 7})
    audit.same(audit.right(audit.answer(call), 200), {"pong": 7}, "what a phone answered")
    first.seat.hang_up()
    second.hang_up()


def _an_end_before_it_began(audit: Audit) -> None:
    """The store takes its time over a new session, which is ended meanwhile: nobody is welcomed by it."""
    world = audit.world
    seat, before = _half_paired(audit)
    fresh = sorted(listed(audit).keys() - before)
    welcomed = bool(seat.heard)
    ended = [
        audit.begin((world.home, LOCAL), "DELETE", f"/sessions/{each}", None, world.shown_here()) for each in fresh
    ]
    audit.rest(20.0)
    world.sim.faults = evolve(world.sim.faults, slow=0.0)
    audit.same(_all(audit, ended), [200] * len(fresh), "the end of a session that is being stored")
    if fresh and not welcomed:
        audit.same([told["type"] for told in seat.heard][:1] == ["auth.ok"], False, "whether who was ended is welcomed")
        audit.wait(lambda: seat.over, 15.0, "who was ended has a socket")
    seat.hang_up()
    audit.rest(10.0)


def _who_leaves_before_it_is_welcomed(audit: Audit) -> None:
    """A session whose socket left while it was stored is nobody's: it is not there, nor after a restart."""
    world = audit.world
    seat, before = _half_paired(audit)
    welcomed = bool(seat.heard)
    seat.hang_up()
    audit.rest(20.0)
    world.sim.faults = evolve(world.sim.faults, slow=0.0)
    audit.rest(10.0)
    for _ in range(2):
        if not welcomed:
            audit.same(listed(audit).keys() - before, set(), "who is listed that left before being welcomed")
        audit.restart("relay", kill=audit.chance(0.5))


def _notes_and_settings(audit: Audit) -> None:
    """Of changes at once to one file each is kept, and what others have put there stays."""
    words = [audit.word() for _ in range(3)]
    wishes = [{"target": "memory", "content": word} for word in words]
    told = _all(audit, [audit.begin_api("POST", "/api/memory", wish) for wish in wishes])
    kept = audit.right(audit.ask_api("GET", "/api/memory?target=memory"), 200)["entries"]
    audit.same([word in kept for word in words], [status == 200 for status in told], f"notes at once, {told}")
    changes = {"model": audit.word(), "provider": audit.word()}
    told = _all(audit, [audit.begin_api("PATCH", "/api/config", {name: changes[name]}) for name in changes])
    if told == [200, 200]:  # the file has both, whatever the environment says
        file = json.dumps(audit.right(audit.ask_api("GET", "/api/config"), 200)["config"])
        audit.same([word in file for word in changes.values()], [True, True], "settings that were changed at once")


def _half_paired(audit: Audit) -> tuple[Seat, set[str]]:
    """Somebody whose session is perhaps being stored (the store is slow from now on), and who was listed before."""
    code, seat = register(audit), audit.sit(audit.host())
    before = {*listed(audit)}
    audit.world.sim.faults = evolve(audit.world.sim.faults, slow=1.0)
    seat.say("system", "auth", {"pairing_code": code})
    audit.rest(0.4)
    return seat, before


KINDS = (
    _notes_and_settings,
    _who_leaves_before_it_is_welcomed,
    _an_end_before_it_began,
    _a_code,
    _an_end,
    _a_change,
    _copies,
    _a_key,
    _a_deletion,
    _uploads,
    _a_phone_again,
)
RACES = (races, races)
