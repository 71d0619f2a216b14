"""What is counted and what is left: numbers that monitors read, pictures that are pasted, what outlives the relay."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from typing import Any

from fuzz.audit import Audit
from fuzz.audits.paired import Paired, listed, pair, register, sign_in
from fuzz.world import LOCAL, MAX_MEDIA
from tests.support.sim_http import RequestClient as Caller

__all__ = ["TALLIES", "numbers_of"]

STALE = 300.0  # s that a picture is kept
KEPT = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff", "gif": b"GIF89a", "webp": b"RIFF1234WEBP"}
FORMATS = (("png", "png"), ("PNG", "png"), ("jpg", "jpeg"), ("Jpeg", "jpeg"), ("gif", "gif"), ("webp", "webp"))
HINTS = (
    *(("shot", "_shot"), (None, ""), ("", ""), ("../../x y", "_xy"), ("é-_9", "_-_9"), ("a" * 50, "_" + "a" * 40)),
    ("...", ""),
)
LINE = re.compile(r"^(\w+)(?:\{(.*)\})? ([^ ]+)$", re.MULTILINE)
ASKED = (  # of the relay by an agent: method, path, route as it is counted, status
    *(("GET", "/sessions", "/sessions", 200), ("HEAD", "/sessions", "/sessions", 200)),
    *(("GET", "/notifications/recent", "/notifications/recent", 200), ("GET", "/media/none", "/media/{token}", 404)),
    *(("GET", "/notifications/recent?limit=0", "/notifications/recent", 400), ("GET", "/nothing/at/all", "none", 404)),
    *(("DELETE", "/sessions/zzzzzzzz", "/sessions/{token_prefix}", 404), ("PUT", "/sessions", "none", 405)),
    *(("POST", "/clipboard/inbox", "/clipboard/inbox", 400), ("GET", "/media/inspect", "/media/inspect", 403)),
    *(("GET", "/voice/config", "/voice/config", 200), ("POST", "/pairing", "/pairing", 403)),
)


def numbers_of(audit: Audit, caller: Caller) -> dict[str, float]:
    """What a monitor reads, by name and labels."""
    audit.right(caller, 200)
    text = caller.answer.body.decode()
    found = [(f"{name}{{{labels}}}" if labels else name, float(value)) for name, labels, value in LINE.findall(text)]
    if len(dict(found)) < len(found):
        audit.wrong("a number is told twice")
    return dict(found)


def numbers(audit: Audit) -> None:
    """What is counted is what has happened, and what there is is what there is."""
    if audit.world.phone_service.state.name != "ONLINE":
        audit.rest(45.0)  # the reference phone comes back by then
    one = pair(audit)
    phone = pair(audit, device_id=audit.word(), surface="android", form="phone")
    device = phone.shown["device_id"]
    audit.rest(2.0)
    before, due = numbers_of(audit, audit.ask_here("GET", "/metrics")), dict[str, float]()

    def more(name: str, by: float = 1.0) -> None:
        due[name] = due.get(name, 0.0) + by

    for _ in range(audit.rng.randint(6, 16)):
        method, path, route, status = audit.pick(ASKED)
        audit.right(audit.ask(one.token, method, path), status)
        verb = "other" if route == "none" else "GET" if method == "HEAD" else method
        more(f'svc_http_requests_total{{method="{verb}",route="{route}",status="{status}"}}')
        more(f'svc_http_request_duration_seconds_count{{method="{verb}",route="{route}"}}')
    audit.world.phones_say_what_they_will = True
    took_in_all = 0.0
    more('svc_bridge_commands_total{outcome="thirty seconds"}', _missed(audit, one, phone))
    for status, outcome in ((200, "success"), (500, "failure"), (403, "policy refusal"), (None, "no status")):
        if audit.chance(0.6):
            caller = audit.begin_as(one.token, "GET", f"/ping?device={device}")
            told = phone.seat.take()
            waiting = numbers_of(audit, audit.ask_here("GET", "/metrics"))["svc_bridge_commands_waiting"]
            audit.same(waiting, 1.0, "how many commands wait")
            took = audit.pick((0.0, 0.0, 3.0))
            audit.rest(took)
            took_in_all += took
            reply = {"request_id": told["payload"]["request_id"], "result": {}}
            phone.seat.say("bridge", "bridge.response", {**reply, **({} if status is None else {"status": status})})
            audit.right(audit.answer(caller), status or 200)
            more(f'svc_bridge_commands_total{{outcome="{outcome}"}}')
            more("svc_bridge_command_duration_seconds_count")
    audit.world.phones_say_what_they_will = False
    sockets, terminals = list[Any](), audit.rng.randint(0, 3)
    for number in range(terminals):
        one.seat.say("terminal", "terminal.attach", {"session_name": f"t{number}"}, "a")
        audit.same(one.seat.take()["type"], "terminal.attached", "a terminal")
        more('svc_sockets{channel="terminal"}')
    for _ in range(audit.rng.randint(0, 3)):
        sockets.append(pair(audit).seat)
        more('svc_sockets{channel="client"}')
        more('svc_http_requests_total{method="POST",route="/pairing/register",status="200"}')
        more('svc_http_requests_total{method="GET",route="/ws",status="101"}')
    for _ in range(audit.rng.randint(0, 2)):
        guess = sign_in(audit, audit.host(), {"pairing_code": "ZZZZZZ"})
        audit.same(guess.take()["type"], "auth.fail", "a wrong code")
        more("svc_pairing_codes_refused_total")
        more('svc_http_requests_total{method="GET",route="/ws",status="101"}')
    guess = sign_in(audit, audit.host(), {"session_token": "0" * 36})
    audit.same(guess.take()["type"], "auth.fail", "a wrong token, which is no code")
    more('svc_http_requests_total{method="GET",route="/ws",status="101"}')
    audit.rest(1.0)
    after = numbers_of(audit, audit.ask_here("GET", "/metrics"))
    audit.same(after["svc_sessions"], float(len(listed(audit))), "how many sessions there are")  # others end
    for name in {**due, 'svc_sockets{channel="client"}': 0, "svc_phones": 0}:
        audit.same(after.get(name, 0.0) - before.get(name, 0.0), due.get(name, 0.0), f"what {name} grew by")
    name = "svc_bridge_command_duration_seconds_sum"
    audit.near(after.get(name, 0.0) - before.get(name, 0.0), took_in_all, "how long phones took in all", 1.0)
    health = audit.right(audit.ask_here("GET", "/health"), 200)
    shown = (health["clients"], health["sessions"], 0.0)
    is_ = (after['svc_sockets{channel="client"}'], after["svc_sessions"], after["svc_bridge_commands_waiting"])
    audit.same(shown, is_, "what the relay says of its health")
    audit.same((audit.ask("", "GET", "/metrics").status in (401, 403), True), (True, True), "who may read the numbers")
    first = audit.right(audit.ask_here("GET", "/relay/info"), 200)
    span = audit.pick((7.0, 61.0))
    audit.rest(span)
    second = audit.right(audit.ask_here("GET", "/relay/info"), 200)
    audit.near(second["uptime_seconds"] - first["uptime_seconds"], span, "how long the relay is up", 1.1)
    for each in (*sockets, one.seat, phone.seat):
        each.hang_up()
    audit.rest(6.0)
    end = numbers_of(audit, audit.ask_here("GET", "/metrics"))
    for name in ('svc_sockets{channel="client"}', 'svc_sockets{channel="terminal"}', "svc_phones"):
        less = {'svc_sockets{channel="client"}': -2.0, "svc_phones": -1.0}.get(name, 0.0)
        audit.same(end[name] - before[name], less, f"what {name} is when all have left")


def _missed(audit: Audit, one: Paired, phone: Paired) -> float:
    """Perhaps a command that nobody answers; how many there were."""
    if audit.chance(0.6):
        return 0.0
    caller = audit.begin_as(one.token, "GET", f"/ping?device={phone.shown['device_id']}")
    phone.seat.take()
    audit.right(audit.answer(caller), 504, "phone_timeout")
    return 1.0


def pastes(audit: Audit) -> None:
    """A picture is kept for five minutes under a name of its own; what is none is not kept."""
    disk, folder = audit.world.home.disk, f"{audit.world.home.state}/images/inbox"
    one = pair(audit, leaves=True)
    audit.rest(STALE + 5.0)
    kept: dict[str, float] = {}
    stale = len(disk.files(folder))
    for _ in range(audit.rng.randint(4, 8)):
        given, kind = audit.pick(FORMATS)
        hint, shown = audit.pick(HINTS)
        data = KEPT[kind] + audit.word().encode()
        body = {"format": given, "bytes_base64": base64.b64encode(data).decode()}
        body |= {} if hint is None else {"filename_hint": hint}
        if audit.chance(0.4):
            _refused(audit, one, folder, body, kind)
        low = audit.wall
        told = audit.right(audit.ask(one.token, "POST", "/clipboard/inbox", body), 200)
        path = told["path"]
        stamp = {f"{datetime.fromtimestamp(wall, UTC):%Y%m%d_%H%M%S}" for wall in (low, audit.wall)}
        named = re.fullmatch(r"clip_(\d{8}_\d{6})_[0-9a-f]+" + re.escape(f"{shown}.{kind}"), path.rpartition("/")[2])
        if path in kept or named is None or named[1] not in stamp or path.rpartition("/")[0] != folder:
            audit.wrong(f"a picture with the hint {hint!r} is {path}")
        audit.same(disk.get(path), data, "a picture, as it is kept")
        old = [each for each, when in kept.items() if low - when > STALE]
        is_ = {"ok": True, "path": path, "size_bytes": len(data), "swept_stale": stale + len(old)}
        edge = any(abs(low - when - STALE) < 0.3 for when in kept.values())
        audit.same({**told, "swept_stale": 0}, {**is_, "swept_stale": 0}, "a picture that is pasted")
        if not edge:
            audit.same(told["swept_stale"], is_["swept_stale"], "how many old ones went")
            stale = 0
        kept[path] = low
        for each in old:
            del kept[each]
        there = {f"{folder}/{name}" for name in disk.files(folder)}
        if not edge:
            audit.same(there, {*kept}, "the pictures that are there")
        kept = {each: when for each, when in kept.items() if each in there}
        audit.rest(audit.pick((0.0, 0.0, 40.0, STALE - 1.0, STALE + 1.0)))


def _refused(audit: Audit, one: Paired, folder: str, body: dict[str, Any], kind: str) -> None:
    """What is no picture of that kind, or nobody's."""
    disk = audit.world.home.disk
    other = next(data for name, data in KEPT.items() if name != kind)
    bad: tuple[object, ...] = (
        *({**body, "format": "bmp"}, {**body, "format": 5}),
        *({**body, "bytes_base64": ""}, {**body, "bytes_base64": "*"}),
        {**body, "bytes_base64": base64.b64encode(other).decode()},
        {**body, "bytes_base64": base64.b64encode(KEPT[kind] + bytes(-len(KEPT[kind]) % 3)).decode() + "="},
        *({"format": kind}, [], {**body, "filename_hint": 5}),
        *({"bytes_base64": body["bytes_base64"]}, b"x", None),
    )
    before = {*disk.files(folder)}
    for each in audit.rng.sample(bad, 2):
        audit.right(audit.ask(one.token, "POST", "/clipboard/inbox", each), 400, about=f"a picture {each!r:.100}")
    if audit.chance(0.3):
        known, audit.world.disk_trouble = audit.world.disk_trouble, True
        disk.fill()
        audit.right(audit.ask(one.token, "POST", "/clipboard/inbox", body), 500, "disk_full", "a disk that is full")
        disk.capacity, audit.world.disk_trouble = None, known
    audit.right(audit.ask("", "POST", "/clipboard/inbox", body), 401, "unauthorized", "a picture of nobody")
    near = audit.begin((audit.world.home, LOCAL), "POST", "/clipboard/inbox", body, audit.world.shown_here())
    audit.right(audit.answer(near), 401, "unauthorized", "a picture of a program of this host")
    audit.same({*disk.files(folder)}, before, "the pictures behind those that were refused")


def survivors(audit: Audit) -> None:
    """What outlives the relay and what does not: sessions do, all that was only for a while does not."""
    one, phone = pair(audit), pair(audit, device_id=audit.word(), surface="android", form="phone")
    device, disk, spool = phone.shown["device_id"], audit.world.home.disk, audit.world.home.spool
    stood = {*disk.files(spool)}  # some by a relay that was killed when the clock was ahead
    code, guesser = register(audit), audit.host()
    phone.seat.say("notifications", "notification.posted", {"title": audit.word()})
    phone.seat.say("bridge", "bridge.status", {"mark": audit.word()})
    content = base64.b64encode(audit.word().encode()).decode()
    body = {"content_type": "text/plain", "content": content, "file_name": "a.txt"}
    media = audit.right(audit.ask(one.token, "POST", "/media/upload", body), 200)["token"]
    audit.right(audit.ask_here("POST", "/bridge/select-active", {"device": device}), 200)
    call = audit.begin_as(one.token, "GET", f"/ping?device={device}")
    phone.seat.obey({})
    audit.right(audit.answer(call), 200)
    made = audit.right(audit.ask(one.token, "POST", "/voice/output/session", {"provider": "stub"}), 200)
    for _ in range(5):
        audit.same(sign_in(audit, guesser, {"pairing_code": "ZZZZZZ"}).take()["type"], "auth.fail", "a guess")
    audit.same(audit.sit(guesser).talker.status, 429, "who has guessed five times")
    waits = audit.begin_as(one.token, "GET", f"/ping?device={device}") if audit.chance(0.5) else None
    audit.rest(0.5)
    killed = audit.chance(0.5)
    audit.restart("relay", kill=killed)
    if waits is not None and not killed:
        audit.wait(lambda: waits.over, 5.0, "who waits for a phone waits for a relay that has gone")
        audit.same(waits.status, 502, "who waits for a phone while the relay goes")
    audit.same(audit.sit(guesser).opened, True, "whether a block outlives the relay")
    back = sign_in(audit, one.host, {"session_token": one.token})
    audit.same(back.take()["type"], "auth.ok", "a session behind a restart")
    used = sign_in(audit, audit.host(), {"pairing_code": code})
    audit.same(used.take()["type"], "auth.fail", "a code behind a restart")
    audit.right(audit.ask(one.token, "GET", f"/media/{media}"), 404, "not_found", "a medium behind a restart")
    audit.same(audit.right(audit.ask_here("GET", "/media/inspect?include_expired=1"), 200)["media"], [], "all media")
    if not killed:
        audit.same({*disk.files(spool)} - stood, set(), "files of uploads behind a restart")
    told = audit.right(audit.ask_here("GET", "/notifications/recent"), 200)
    audit.same((told["notifications"], told["count"]), ([], 0), "notifications behind a restart")
    shown = audit.right(audit.ask_here("GET", "/bridge/activity"), 200)["activity"]
    audit.same([each for each in shown if each["device_id"] == device], [], "the activity behind a restart")
    devices = audit.right(audit.ask_here("GET", "/bridge/devices"), 200)
    audit.same([each for each in devices["devices"] if each["device_id"] == device], [], "phones behind a restart")
    if devices["active_device_id"] == device:
        audit.wrong("a phone that is not there is the one that is meant")
    audit.turned_away(one.host, made["websocket_path"], one.token, 404, "a voice session behind a restart")
    again = sign_in(audit, phone.host, {"session_token": phone.token, "device_id": device, "client_surface": "android"})
    audit.same(again.take()["type"], "auth.ok", "a phone behind a restart")
    ping = audit.begin_as(one.token, "GET", f"/ping?device={device}")
    again.obey({"again": MAX_MEDIA})
    audit.same(audit.right(audit.answer(ping), 200), {"again": MAX_MEDIA}, "a phone that came back")
    for each in (back, used, again):
        each.hang_up()


TALLIES = (numbers, pastes, survivors)
