"""What the API says of itself, and to whom: health, models, features, routes that are there, keys, pages, methods."""

from __future__ import annotations

import json
import re
from typing import Any

from fuzz.audit import KEYS_FORGOTTEN, Audit, header
from fuzz.audits.heard import Events
from fuzz.audits.refusals import check_fields, refused
from fuzz.world import API, API_KEY
from svc_proto.version import VERSION

__all__ = ["PROBES", "edit_settings", "settings_of"]

NAME = "svc-agent"
ROUTES: tuple[tuple[str, tuple[str, ...]], ...] = (  # wire api; {x} is something that nobody has
    *((path, ("GET",)) for path in ("/health", "/v1/health", "/health/detailed", "/v1/models", "/v1/models/{x}")),
    *((path, ("GET",)) for path in ("/v1/capabilities", "/v1/skills", "/v1/toolsets", "/api/mcp-servers")),
    *((path, ("GET",)) for path in ("/api/skills", "/api/skills/{x}", "/api/available-models", "/v1/runs/{x}")),
    *((path, ("GET",)) for path in ("/v1/runs/{x}/events", "/api/sessions/search", "/api/sessions/{x}/messages")),
    *((path, ("GET",)) for path in ("/metrics", "/healthz", "/readyz", "/openapi.json")),
    *((path, ("POST",)) for path in ("/v1/chat/completions", "/v1/runs", "/v1/responses", "/v1/runs/{x}/stop")),
    *((path, ("POST",)) for path in ("/v1/runs/{x}/approval", "/api/sessions/{x}/chat", "/api/sessions/{x}/fork")),
    *((path, ("POST",)) for path in ("/api/sessions/{x}/chat/stream", "/api/mcp-servers/reload", "/api/key/reload")),
    ("/api/sessions", ("GET", "POST")),
    ("/api/sessions/{x}", ("GET", "PATCH", "DELETE")),
    ("/v1/responses/{x}", ("GET", "DELETE")),
    ("/api/config", ("GET", "PATCH")),
    ("/api/memory", ("GET", "POST", "PATCH", "DELETE")),
    ("/api/skills/toggle", ("GET", "PUT")),
)
OPEN = ("/health", "/v1/health", "/metrics", "/healthz", "/readyz", "/openapi.json")  # to programs of this host
ALSO = ("/v1/chat/completions", "/v1/runs", "/api/sessions/{x}/chat/stream")  # HEAD is answered: wire api 1
BLANK = re.compile(r"{\w+}")
CHATS, RUNS = "/api/sessions", "/v1/runs"
ENDPOINTS: dict[str, tuple[str, str]] = {
    "health": ("GET", "/health"),
    "models": ("GET", "/v1/models"),
    "model": ("GET", "/v1/models/{id}"),
    "capabilities": ("GET", "/v1/capabilities"),
    "sessions": ("GET", CHATS),
    "session_create": ("POST", CHATS),
    "session": ("GET", f"{CHATS}/{{id}}"),
    "session_update": ("PATCH", f"{CHATS}/{{id}}"),
    "session_delete": ("DELETE", f"{CHATS}/{{id}}"),
    "session_messages": ("GET", f"{CHATS}/{{id}}/messages"),
    "session_fork": ("POST", f"{CHATS}/{{id}}/fork"),
    "session_search": ("GET", f"{CHATS}/search"),
    "session_chat": ("POST", f"{CHATS}/{{id}}/chat"),
    "session_chat_stream": ("POST", f"{CHATS}/{{id}}/chat/stream"),
    "chat_completions": ("POST", "/v1/chat/completions"),
    "responses": ("POST", "/v1/responses"),
    "runs": ("POST", RUNS),
    "run_status": ("GET", f"{RUNS}/{{run_id}}"),
    "run_events": ("GET", f"{RUNS}/{{run_id}}/events"),
    "run_stop": ("POST", f"{RUNS}/{{run_id}}/stop"),
    "run_approval": ("POST", f"{RUNS}/{{run_id}}/approval"),
    "skills": ("GET", "/v1/skills"),
    "toolsets": ("GET", "/v1/toolsets"),
    "config": ("GET", "/api/config"),
    "memory": ("GET", "/api/memory"),
}
NEEDED = (  # by the newest phone, wire api 5.2
    *("session_resources", "session_chat_streaming", "run_events_sse", "chat_completions"),
    *("chat_completions_streaming", "session_fork", "responses_api", "run_approval", "skills_api", "toolsets_api"),
)
ABSENT = ("model_options", "session_model_lock")  # until both are there
TOOLSETS = {"memory": ["memory"], "skills": ["skills_list", "skill_view"]}
WRONG = ("", "Bearer", f"bearer {API_KEY}", f"Bearer  {API_KEY}", f"Basic {API_KEY}", f"Bearer {API_KEY}x", "Bearer x")
PATHS = ("/api/sessions", "/v1/models", "/v1/toolsets", "/api/memory", "/api/config", "/v1/runs/none")


def settings_of(audit: Audit) -> dict[str, Any]:
    """What the configuration file has."""
    disk, path = audit.world.home.disk, f"{audit.world.home.state}/config.yaml"
    found = audit.world.home.compute["yaml.load"](disk.get(path).decode()) if disk.exists(path) else {}
    return found if isinstance(found, dict) else {}


def edit_settings(audit: Audit, **members: Any) -> None:
    """Write it anew, as a person would; None takes a member away."""
    found = {**settings_of(audit), **members}
    text = json.dumps({name: value for name, value in found.items() if value is not None}, indent=1)
    audit.world.home.disk.put(f"{audit.world.home.state}/config.yaml", text.encode())


def _of_itself(audit: Audit) -> None:
    """Health, with and without details, models and features."""
    identity = {"status": "ok", "platform": NAME, "version": VERSION}
    for path in ("/health", "/v1/health"):
        caller = audit.answer(audit.begin((audit.world.home, API), "GET", path))
        audit.same(audit.right(caller, 200), identity, path)
        check_fields(audit, caller)
    chats = audit.right(audit.ask_api("GET", "/api/sessions?include_archived=1&include_children=1&limit=1"), 200)[
        "total"
    ]
    text, events = f"hang: {audit.word()}", Events()
    busy, run = audit.chance(0.5), ""
    if busy:
        run = audit.right(audit.ask_api("POST", "/v1/runs", {"input": text}), 202)["run_id"]
        chats += 1
        audit.rest(1.0)
    told = audit.right(audit.ask_api("GET", "/health/detailed"), 200)
    audit.near(told.pop("uptime_seconds"), 0.0, "how long it is up", 1e9)
    told.pop("updated_at")
    queue = {"status": "ok", "active_runs": int(busy)}
    checks = {"state_db": {"status": "ok", "sessions": chats}, "background_queues": queue}
    checks["model"] = {"status": "ok", "detail": "configured"}
    is_: dict[str, Any] = {
        **identity,
        "readiness": {"status": "ok", "checks": checks},
        "gateway_state": "running",
        "platforms": {},
    }
    is_ |= {"active_agents": int(busy), "gateway_busy": busy, "gateway_drainable": not busy, "exit_reason": None}
    audit.same(told, is_, "health in detail")
    if busy:
        audit.right(audit.ask_api("POST", f"/v1/runs/{run}/stop", {}), 200)
        audit.rest(2.0)
        audit.answer(audit.begin_api("GET", f"/v1/runs/{run}/events", None, events))
        audit.same((events.names[0], events.names[-1]), ("run.started", "run.cancelled"), "what was kept of a run")
    told = audit.right(audit.ask_api("GET", "/v1/models"), 200)
    audit.near(told["data"][0].pop("created"), audit.wall, "when a model was made", 5.0)
    row: dict[str, Any] = {
        "id": NAME,
        "object": "model",
        "owned_by": "svc",
        "permission": [],
        "root": NAME,
        "parent": None,
    }
    audit.same(told, {"object": "list", "data": [row]}, "the models")
    one = audit.right(audit.ask_api("GET", f"/v1/models/{NAME}"), 200)
    one.pop("created")
    audit.same(one, row, "a model")
    refused(audit, audit.ask_api("GET", "/v1/models/none"), 404, "model_not_found", "model")


def _features(audit: Audit) -> None:
    told = audit.right(audit.ask_api("GET", "/v1/capabilities"), 200)
    endpoints = {name: {"method": method, "path": path} for name, (method, path) in ENDPOINTS.items()}
    audit.same(told["endpoints"], endpoints, "the routes that are told")
    features = told["features"]
    audit.same([features.get(name) for name in NEEDED], [True] * len(NEEDED), "the features that phones look for")
    if any(features.get(name) for name in ABSENT):
        audit.wrong(f"features are told that are not there: {features}")
    headers = tuple(features[f"{name}_header"] for name in ("session_id", "session_key", "tool_progress"))
    audit.same(headers, ("X-Svc-Session-Id", "X-Svc-Session-Key", "X-Svc-Tool-Progress"), "the headers that are told")
    whose = (told["object"], told["platform"], told["model"], told["auth"])
    audit.same(whose, ("svc.capabilities", NAME, NAME, {"type": "bearer", "required": True}), "what is told of it")
    sets = audit.right(audit.ask_api("GET", "/v1/toolsets"), 200)
    audit.same((sets["object"], sets["platform"]), ("list", "api_server"), "the toolsets")
    rows = {row["name"]: row for row in sets["data"] if not row["name"].startswith("mcp-")}
    audit.same({*rows}, {"phone", *TOOLSETS}, "the toolsets")
    for name, tools in TOOLSETS.items():
        audit.same(rows[name]["tools"], tools, f"the tools of {name}")
    audit.same(len(rows["phone"]["tools"]), 34, "how many tools a phone has")
    for row in rows.values():
        audit.same((row["enabled"], row["configured"]), (True, True), f"the toolset {row['name']}")
        audit.same(
            ({*row["descriptions"]}, all(row["descriptions"].values())), ({*row["tools"]}, True), "what tools are for"
        )


def _routes(audit: Audit) -> None:
    """Each route is there, by HEAD, too; other methods are 405, and what is not there is 404."""
    for path, methods in audit.rng.sample(ROUTES, 12):
        there = path.replace("{x}", f"none-{audit.word()}")
        probed = audit.ask_api("HEAD", there)
        head = "GET" in methods or path in ALSO
        due = {200} if head else {405}
        if probed.status not in due and not (path == "/v1/runs/{x}/events" or probed.status == 400):
            audit.wrong(f"HEAD {path} is answered {probed.status}")
        audit.same(probed.answer.body, b"", f"the body of HEAD {path}")
        asked = audit.ask_api("OPTIONS", there)
        told = (asked.status, header(asked, "access-control-allow-methods"))
        audit.same(told, (200, "GET, POST, PATCH, DELETE, OPTIONS"), f"OPTIONS {path}")
        for method in [each for each in ("GET", "POST", "PUT", "PATCH", "DELETE") if each not in methods][:2]:
            if (path, method) in (("/api/sessions/search", "PATCH"), ("/api/sessions/search", "DELETE")):
                continue  # is a chat's name, too
            caller = audit.ask_api(method, there, {} if method in ("POST", "PATCH", "PUT") else None)
            if caller.status != 405 or not caller.answer.headers.get(b"allow"):
                audit.wrong(f"{method} {path} is answered {caller.status}, {caller.answer.headers!r:.200}")
            allowed = header(caller, "allow").replace(" ", "").split(",")
            if not {*methods} <= {*allowed} or method in allowed:
                audit.wrong(f"{path} allows {allowed}, and has {methods}")
    for path in ("/v1/none", "/api/sessions/a/b/c", "/", "/v1/runs/"):
        audit.right(audit.ask_api("GET", path), 404, about=path)
    streams = audit.ask_api("HEAD", "/v1/runs", accept="text/event-stream").answer.headers
    audit.same(streams.get(b"x-svc-run-streaming"), b"sse", "how a phone learns of streams")
    body = audit.right(audit.ask_api("GET", "/openapi.json"), 200)
    listed = {BLANK.sub("{x}", path) for path in body["paths"]}
    missing = {path for path, _ in ROUTES if path != "/openapi.json"} - listed
    if missing - {"/api/skills/toggle"}:
        audit.wrong(f"the manual has no {missing}")


def _strangers(audit: Audit) -> None:
    """Without the key, with half of it, and from a page: nobody is told anything."""
    place = (audit.world.home, API)
    audit.rest(KEYS_FORGOTTEN)
    before = audit.world.upstream.asked
    for wrong in audit.rng.sample(WRONG, 3):
        path = audit.pick(PATHS)
        caller = audit.answer(audit.begin(place, "GET", path, None, {"authorization": wrong} if wrong else {}))
        if path.startswith(("/api/memory", "/api/config")):
            told = audit.right(caller, 401)
            audit.same(([*told], type(told["error"])), (["error"], str), "a wrong key in the short form")
        else:
            refused(audit, caller, 401, "invalid_api_key", None)
        named = header(caller, "www-authenticate")
        audit.same(named.partition(" ")[0], "Bearer", "what a key has to be")
    key = {"authorization": f"Bearer {API_KEY}"}
    for path in ("/api/sessions", "/health", "/v1/none"):
        page = audit.answer(audit.begin(place, "GET", path, None, {**key, "origin": "https://page.example"}))
        audit.same((page.status, page.answer.body), (403, b""), f"a page at {path}")
    asked = {"input": "x"}
    page = audit.answer(audit.begin(place, "POST", "/v1/runs", asked, {**key, "origin": "null"}))
    audit.same((page.status, page.answer.body), (403, b""), "a page that begins a run")
    audit.same(audit.world.upstream.asked, before, "how often a page has asked the model")
    for path, is_ in (("/healthz", {"status": "ok"}), ("/readyz", {"status": "ready", "reasons": []})):
        audit.same(audit.right(audit.answer(audit.begin(place, "GET", path)), 200), is_, path)
    audit.right(audit.ask_api("GET", "/api/sessions"), 200, about="the right key behind wrong ones")
    audit.rest(70.0)  # until nobody counts them


def probes(audit: Audit) -> None:
    """What is asked before anything is: health, models, features, routes, keys."""
    for part in (_of_itself, _features, _routes, _strangers):
        if audit.chance(0.6):
            part(audit)


PROBES = (probes,)
