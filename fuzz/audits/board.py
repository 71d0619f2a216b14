"""What stands beside the chats: the dashboard, who may ask the API, notes, and what the API says of itself."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve

from fuzz.audit import KEYS_FORGOTTEN, Audit, header
from fuzz.audits.guesses import Guesses
from fuzz.audits.paired import pair, sign_in
from fuzz.world import API, API_KEY
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.service import Dashboard
from svc_proto.engine.core import Engine
from svc_proto.version import VERSION
from tests.support.sim_http import RawBytesClient as Thrower
from tests.support.sim_http import RequestClient as Caller
from tests.support.sim_http import ServerAddress as Target

__all__ = ["BOARDS"]

BOARD = Target("127.0.0.1", 9119, "127.0.0.1:9119")
PREFIX = "/api/plugins/svc-relay"
MOVING = ("uptime_seconds", "last_seen", "last_seen_seconds_ago", "is_current")  # between two looks
CAPS = {"memory": 2_200, "user": 1_375}  # characters
EDGE = 0.5  # s, which is far on one host
SECURITY = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "x-xss-protection": "0",
}


def dashboard(audit: Audit) -> None:
    """The dashboard's proxy passes on what the relay says, and in words what it does not."""
    world, home = audit.world, audit.world.home
    config = DashboardConfig(relay_url="http://127.0.0.1:8767", api_url=f"http://127.0.0.1:{API.port}", api_key=API_KEY)
    process = home.start(lambda entropy: Engine(Dashboard(config, {}), entropy=entropy), [BOARD.port], name="board")
    audit.wait(lambda: process.ready, why="the dashboard does not start")

    def ask(method: str, path: str, body: object = None, **headers: str) -> Caller:
        return audit.answer(audit.begin((home, BOARD), method, f"{PREFIX}{path}", body, headers))

    one = pair(audit)
    local = not world.secretive  # else the relay asks for a secret that a board without a password does not show
    same = (
        ("/overview", "/relay/info"),
        ("/sessions", "/sessions"),
        ("/phones", "/bridge/devices"),
        ("/bridge-activity", "/bridge/activity"),
        ("/bridge-activity?limit=1", "/bridge/activity?limit=1"),
        ("/media", "/media/inspect"),
        ("/media?include_expired=yes", "/media/inspect?include_expired=true"),
    )
    for mine, theirs in audit.rng.sample(same, 4):
        told = ask("GET", mine)
        if not local:
            audit.same(told.status in (401, 403), True, f"{mine} without the secret is {told.status}")
            continue
        direct = audit.right(audit.ask_here("GET", theirs), 200)
        audit.same(_steady(audit.right(told, 200)), _steady(direct), f"{mine}, as the relay tells it")
        audit.same(told.answer.headers.get(b"cache-control"), b"no-store", "whether it may be kept")
    push = audit.right(ask("GET", "/push"), 200)
    audit.same((push["configured"], {*push}), (False, {"configured", "reason"}), "push")
    bad: tuple[tuple[str, str, object, int], ...] = (
        ("GET", "/bridge-activity?limit=x", None, 422),
        ("GET", "/media?include_expired=perhaps", None, 422),
        ("DELETE", f"/sessions/{'x' * 65}", None, 422),
        ("POST", "/pairing", [], 422),
        ("POST", "/pairing", {"mode": "nowhere"}, 400),
        ("POST", "/pairing", {"mode": "public"}, 400),
        ("GET", "/nothing", None, 404),
        ("POST", "/overview", {}, 405),
    )
    for method, path, body, status in audit.rng.sample(bad, 3):
        audit.right(ask(method, path, body), status, about=f"{method} {path} with {body}")
    if local:
        missing = audit.right(ask("DELETE", "/sessions/zzzz"), 404)
        audit.same(missing["detail"]["code"], "not_found", "what the relay says of nobody")
        audit.right(ask("DELETE", "/sessions/abc"), 400, about="a prefix of three")
        told = audit.right(ask("POST", "/pairing", {"ttl_seconds": 60, "api_key": ""}), 200)
        audit.near(told["expires_at"], audit.wall + 600, "the end of a code", 2.0)
        held = json.loads(told["qr_payload"])
        audit.same((held["relay"]["code"], held["relay"]["ttl_seconds"]), (told["code"], 60), "what an invite holds")
        seat = sign_in(audit, audit.host(), {"pairing_code": told["code"]})
        paired = seat.take()
        audit.same(paired["type"], "auth.ok", "the code of an invite")
        audit.near(paired["payload"]["expires_at"], audit.wall + 60, "the end of its session", 1.0)
        seat.hang_up()
        gone = audit.right(ask("DELETE", f"/sessions/{one.prefix}"), 200)
        audit.same((gone["ok"], gone["revoked"], gone["revoked_self"]), (True, one.prefix, False), "an end")
        audit.wait(lambda: one.seat.over, 10.0, "a socket outlives its session")
    for headers in ({"origin": "https://elsewhere.example"}, {"sec-fetch-site": "cross-site"}):
        audit.same(ask("POST", "/pairing", {}, **headers).status, 403, f"a page with {headers}")
    chat = audit.new_chat()
    text = f"{audit.pick(('hang', 'murmur', 'plain'))}: {audit.word()}"
    before, body = process.channel_count, {"message": text}
    turn = audit.begin((home, BOARD), "POST", f"/api/agent/sessions/{chat}/chat/stream", body)
    audit.wait(lambda: turn.head is not None, why="a browser is told nothing of its turn")
    audit.rest(audit.pick((0.0, 0.5, 5.0)))
    turn.hang_up(reset=True)  # who only says no more may still listen
    audit.rest(5.0)
    if process.channel_count > before:
        audit.wrong(f"{process.channel_count} connections are left behind a browser that left, and were {before}")
    rows = audit.rows_of(chat)
    audit.same(rows[0]["content"], text, "what a browser that left has said")
    audit.ask_api("DELETE", f"/api/sessions/{chat}")
    if audit.chance(0.5):  # the relay is away
        world.end("relay", 30.0, kill=True)
        audit.rest(0.5)
        told = audit.right(ask("GET", "/overview"), 502)
        if "127.0.0.1:8767" not in told["detail"]:
            audit.wrong(f"a relay that is away is told as {told}")
        audit.wait_up()
        audit.right(ask("GET", "/overview"), 200 if local else 403)
    one.seat.hang_up()
    world.expected[process] = None
    process.stop(5.0)
    audit.wait(lambda: not process.alive, 30.0, "the dashboard does not stop")
    audit.same(process.exit_code, 0, "how the dashboard ends")


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(member) for key, member in value.items() if key not in MOVING}
    return [_steady(member) for member in value] if isinstance(value, list) else value


def guesses(audit: Audit) -> None:
    """Wrong keys are counted by address; the right one is good all the same."""
    mine = Guesses()
    where = (audit.world.home, API)
    audit.rest(KEYS_FORGOTTEN)
    for _ in range(audit.rng.randint(8, 18)):
        match audit.rng.randrange(7):
            case 0:
                audit.right(audit.ask_api("GET", "/v1/models"), 200, about="the right key")
                mine.failures.clear()
            case 6:  # what is for anybody forgives nothing
                path = audit.pick(("/health", "/healthz", "/readyz", "/openapi.json", "/docs", "/metrics"))
                audit.right(audit.answer(audit.begin(where, "GET", path)), 200)
            case 1:
                caller = audit.answer(audit.begin(where, "GET", "/v1/models"))
                audit.right(caller, 401, "invalid_api_key", "no key")
                audit.same((caller.answer.headers.get(b"www-authenticate") or b"")[:6], b"Bearer", "how to come in")
            case 2:
                audit.rest_about(mine.coming(audit.now), EDGE)
            case _:
                wrong = {"authorization": audit.pick((f"Bearer {audit.word()}", "Bearer", f"Basic {API_KEY}", API_KEY))}
                blocked = audit.now < mine.until
                caller = audit.answer(audit.begin(where, "GET", "/v1/models", None, wrong))
                audit.right(caller, 429 if blocked else 401, about=f"a wrong key, {mine}")
                if blocked:
                    audit.near(
                        int(header(caller, "retry-after") or 0),
                        mine.until - audit.now,
                        "when to come",
                        1.5,
                    )
                    continue
                mine.failed(audit.now)


def notes(audit: Audit) -> None:
    """What is noted: each change, what is too much, and what a text means that is in several."""
    target = audit.pick(("memory", "user"))
    path, query = "/api/memory", f"?target={target}"
    known: list[str] = list(audit.right(audit.ask_api("GET", f"{path}{query}"), 200)["entries"])
    for _ in range(audit.rng.randint(6, 12)):
        word = audit.word()
        before = [*known]
        kind = audit.pick(("add", "add", "again", "full", "replace", "remove", "none", "both", "bad"))
        if kind == "add":
            told = audit.ask_api("POST", path, {"target": target, "content": f" {word}\t{word} "})
            known.append(f"{word}\t{word}" if told.status == 200 and told.answer.json["success"] else word)
        elif kind == "full":
            room = CAPS[target] - _size(known)
            told = audit.ask_api("POST", path, {"target": target, "content": word + "y" * CAPS[target]})
            audit.right(told, 400, about=f"more than {room} characters")
        elif known and kind == "again":
            told = audit.ask_api("POST", path, {"target": target, "content": known[0]})
        elif known and kind == "replace":
            old = audit.pick(known)
            told = audit.ask_api("PATCH", path, {"target": target, "old_text": old, "content": word})
            known[known.index(old)] = word
        elif known and kind == "remove":
            old = audit.pick(known)
            told = audit.ask_api("DELETE", path, {"target": target, "old_text": old})
            known.remove(old)
        elif kind == "both" and sum("audit" in entry for entry in known) > 1:
            told = audit.ask_api("DELETE", path, {"target": target, "old_text": "audit"})
        elif kind == "bad":
            body = audit.pick(
                ({"target": "other", "content": "x"}, {"target": target}, {"target": target, "content": 5}, [])
            )
            told = audit.ask_api("POST", path, body)
        else:
            told = audit.ask_api("DELETE", path, {"target": target, "old_text": f"no {word}"})
        good = kind in ("add", "again", "replace", "remove") and (kind == "add" or before)
        audit.right(told, 200 if good else 400, about=f"{kind} of {before}")
        view = audit.right(audit.ask_api("GET", f"{path}{query}"), 200)
        audit.same((view["entries"], view["entry_count"]), (known, len(known)), f"what is noted behind {kind}")
        both = audit.right(audit.ask_api("GET", path), 200)["targets"]
        audit.same([each["target"] for each in both], ["memory", "user"], "what there is to note")
        audit.same(next(each["entries"] for each in both if each["target"] == target), known, "what is noted, in all")
    audit.right(audit.ask_api("GET", f"{path}?target=other"), 400)
    if audit.chance(0.3):
        audit.restart("api", kill=audit.chance(0.5))
        view = audit.right(audit.ask_api("GET", f"{path}{query}"), 200)
        audit.same(view["entries"], known, "what is noted, after a restart")


def _size(entries: list[str]) -> int:
    return sum(map(len, entries))


def signs(audit: Audit) -> None:
    """What the API says of itself, and to whom; each answer forbids browsers what it can."""
    where = (audit.world.home, API)
    for path in ("/health", "/v1/health"):
        caller = audit.answer(audit.begin(where, "GET", path))
        told = audit.right(caller, 200)
        audit.same((told["status"], told["version"]), ("ok", VERSION), "the API's health")
    total = audit.right(audit.ask_api("GET", "/api/sessions?include_archived=1&include_children=1"), 200)["total"]
    details = audit.right(audit.ask_api("GET", "/health/detailed"), 200)
    checks = details["readiness"]["checks"]
    audit.same(checks["state_db"], {"status": "ok", "sessions": total}, "the store's health")
    audit.same(
        (details["active_agents"], details["gateway_busy"], details["gateway_drainable"]), (0, False, True), "runs"
    )
    for path in (
        "/api/sessions?limit=1",
        "/api/sessions/probe/chat/stream",
        "/v1/chat/completions",
        "/v1/runs",
        "/v1/models",
    ):
        caller = audit.ask_api("HEAD", path)
        if caller.status == 404 or caller.answer.body:
            audit.wrong(f"HEAD {path} got {caller.status} {caller.answer.body!r:.60}")
        for name, value in SECURITY.items():
            audit.same(header(caller, name), value, f"{name} of {path}")
        if caller.answer.headers.get(b"strict-transport-security"):
            audit.wrong("what is not secure says that it will be")
    for method, path, status in (
        ("GET", "/v1/nothing", 404),
        ("DELETE", "/v1/models", 405),
        ("GET", "/v1/models/none", 404),
    ):
        caller = audit.ask_api(method, path)
        audit.right(caller, status)
        if status == 405 and b"GET" not in (caller.answer.headers.get(b"allow") or b""):
            audit.wrong("405 does not say what is allowed")
    for path in ("/health", "/v1/models", "/nothing"):
        caller = audit.ask_api("GET", path, origin="https://elsewhere.example")
        audit.same(caller.status, 403, f"a page of elsewhere at {path}")
    for length, told_at_once in ((10_000_001, b"413"), (10_000_000, b"")):
        head = f"POST /v1/runs HTTP/1.1\r\nhost: {API.authority}\r\nauthorization: Bearer {API_KEY}\r\n"
        thrower = Thrower(audit.world.home, API, f"{head}content-length: {length}\r\n\r\n".encode())
        audit.rest(1.0)
        audit.same(bytes(thrower.heard[9:12]), told_at_once, f"a body that is said to have {length} bytes")
        thrower.hang_up()
    model = audit.word()
    shown = audit.right(audit.ask_api("GET", "/api/config"), 200)
    audit.right(audit.ask_api("PATCH", "/api/config", {"model": 5}), 400)
    told = audit.right(audit.ask_api("GET", "/api/config"), 200)
    audit.same(told, shown, f"settings after a change that was refused, {model}")
    if shown["config"] and API_KEY in json.dumps(shown):
        audit.wrong("settings have the key")


def a_bad_moment(audit: Audit) -> None:
    """The disk fails for a moment when a program has just come: what was kept is kept."""
    world = audit.world
    text, word, name = f"plain: {audit.word()}", audit.word(), audit.word()
    first = audit.right(audit.ask_api("POST", "/v1/responses", {"input": text, "conversation": name}), 200)
    known = audit.right(audit.ask_api("GET", "/api/memory?target=memory"), 200)["entries"]
    audit.right(audit.ask_api("POST", "/api/memory", {"target": "memory", "content": word}), 200)
    audit.restart("api", kill=audit.chance(0.5))
    before, world.disk_trouble = world.disk_trouble, True
    world.sim.faults = evolve(world.sim.faults, file=1.0)
    asked = (
        ("GET", f"/v1/responses/{first['id']}", None),
        ("POST", "/v1/responses", {"input": f"plain: {audit.word()}"}),
        ("POST", "/v1/responses", {"input": f"plain: {audit.word()}", "conversation": name}),
        ("POST", "/api/memory", {"target": "memory", "content": audit.word()}),
        ("DELETE", f"/v1/responses/{audit.word()}", None),
        ("GET", "/api/memory", None),
    )
    for method, path, body in audit.rng.sample(asked, 3):
        audit.ask_api(method, path, body)
    world.sim.faults = evolve(world.sim.faults, file=0.0)
    if audit.chance(0.5):
        audit.right(audit.ask_api("POST", "/v1/responses", {"input": f"plain: {audit.word()}"}), 200)
        audit.right(audit.ask_api("POST", "/api/memory", {"target": "memory", "content": audit.word()}), 200)
    if audit.chance(0.7):
        audit.restart("api", kill=audit.chance(0.5))
    audit.same(audit.right(audit.ask_api("GET", f"/v1/responses/{first['id']}"), 200), first, "a response of before")
    entries = audit.right(audit.ask_api("GET", "/api/memory?target=memory"), 200)["entries"]
    audit.same(entries[: len(known) + 1], [*known, word], "what was noted before")
    world.disk_trouble = before


BOARDS = (dashboard, guesses, notes, signs, a_bad_moment)
