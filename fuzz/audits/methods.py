"""How the relay answers, whatever it is asked: methods, heads, paths that are none, refusals; who may read numbers."""

from __future__ import annotations

import json
import re
from typing import Any

from fuzz.audit import Audit, header
from fuzz.audits.annex import Annex
from fuzz.audits.guesses import WINDOW, Guesses
from fuzz.audits.paired import pair, sign_in
from fuzz.doors import RELAY_DOORS, place
from svc_proto.basics.brand import HERMES
from svc_proto.version import VERSION

__all__ = ["METHODS"]

EVERY = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD")
READ = (  # by GET and by HEAD, of whoever may: the same, but for the body
    *("/health", "/healthz", "/readyz", "/sessions", "/notifications/recent", "/notifications/recent?limit=1"),
    *("/media/none", "/media/by-path", "/voice/config", "/voice/output/config", "/voice/output/none", "/openapi.json"),
    *("/relay/info", "/bridge/status", "/bridge/devices", "/bridge/activity?limit=2", "/media/inspect", "/docs"),
    *("/relay/security", "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server", "/none"),
)
NONE = (
    *("/none", "/health/", "/Health", "/sessions/a/b", "/media/"),
    *("/voice", "/bridge", "/ws/", "/pairing/none", "/%2e"),
)
MOVING = (b"date", b"content-length", b"etag", b"last-modified", b"svc-request")
BASIC = ("/voice/config", "/voice/transcribe", "/voice/synthesize")
TOKEN = "metrics-token-81c7"
EDGE = 1.0  # s


def _paths() -> dict[str, set[str]]:
    """Each path that there is, and its methods."""
    found: dict[str, set[str]] = {}
    for _, listed in RELAY_DOORS.values():
        for route in listed.split(","):
            method, path = route.strip().split(" ")
            found.setdefault(path, set()).add(method)
            if method == "GET":
                found[path].add("HEAD")
    return found


def methods(audit: Audit) -> None:
    """Methods, heads, and paths that are none."""
    one = pair(audit, leaves=True)
    paths = _paths()
    for path in audit.rng.sample(sorted(paths), 12):
        allowed = paths[path]
        for method in [each for each in EVERY if each not in allowed and each != "HEAD"]:
            _, there = place(f"{method} {path}")
            caller = audit.ask(audit.pick((one.token, "")), method, there, {} if method in ("POST", "PUT") else None)
            _refused(audit, caller, 405, "method_not_allowed")
            told = header(caller, "allow")
            audit.same(told, ",".join(sorted(allowed)), f"what {path} allows")
    for path in audit.rng.sample(READ, 7):
        _head(audit, one.token, path, near=audit.chance(0.5))
    for path in audit.rng.sample(NONE, 4):
        _refused(audit, audit.ask(one.token, audit.pick(("GET", "POST", "DELETE")), path), 404, "not_found")
    told = audit.right(audit.ask("", "GET", "//health"), 200)
    names = {"status", "version", "clients", "sessions"}
    audit.same((told["status"], told["version"], {*told}), ("ok", VERSION, names), "what the relay says of its health")
    for method, path, body in (
        *(("POST", "/pairing/register", b"{"), ("POST", "/pairing/register", b"[]"), ("POST", "/pairing/mint", b"5")),
        *(("PATCH", "/relay/security", b""), ("POST", "/bridge/select-active", b"nonsense")),
    ):
        _refused(audit, audit.ask_here(method, path, body), 400)


def _refused(audit: Audit, caller: Any, status: int, code: str | None = None) -> None:
    """In the form that refusals have: of voice the text alone, to OAuth clients in their words as well."""
    path, about = caller.path.partition("?")[0], f"the refusal of {caller.method} {caller.path}"
    kind = (caller.answer.headers.get(b"content-type") or b"").partition(b";")[0]
    if path.startswith("/voice/") and path not in BASIC:
        audit.same((caller.status, kind, bool(caller.answer.body)), (status, b"text/plain", True), about)
        return
    told = audit.right(caller, status, code)
    audit.same((told["ok"], bool(told["error"]), bool(told["code"])), (False, True, True), about)
    audit.same(kind, b"application/json", f"the type of {about}")
    more = {"success": False} if path in BASIC else {}
    more |= {"error": told["code"], "error_description": told.get("error_description")} if "/oauth/" in path[:7] else {}
    more |= {"field": told["field"]} if status == 400 and "field" in told else {}
    audit.same(told, {"ok": False, "error": told["error"], "code": told["code"], **more}, about)


def _head(audit: Audit, token: str, path: str, *, near: bool) -> None:
    asks = audit.ask_here if near else lambda method, path: audit.ask(token, method, path)
    whole, head = asks("GET", path), asks("HEAD", path)
    audit.same((head.status, head.answer.body), (whole.status, b""), f"HEAD {path}")
    told, is_ = ([(k, v) for k, v in each.answer.headers if k not in MOVING] for each in (head, whole))
    audit.same(told, is_, f"the fields of HEAD {path}")
    size = int(head.answer.headers.get(b"content-length") or -1)
    if abs(size - len(whole.answer.body)) > 24:  # a time may have a figure more
        audit.wrong(f"HEAD {path} says {size} bytes, and there are {len(whole.answer.body)}")


def monitored(audit: Audit) -> None:
    """With a token for numbers, whoever shows it reads them; wrong ones count by address, and for nothing else."""
    annex = Annex(audit, metrics_token=TOKEN)
    hosts = [annex.host(), annex.host()]
    guesses = {host: Guesses() for host in hosts}
    path = "/metrics"
    for _ in range(annex.rng.randint(16, 24)):
        host = annex.pick((hosts[0], *hosts))
        mine = guesses[host]
        mine.stay_clear(annex, EDGE)
        blocked = annex.now < mine.until
        shown = annex.pick((TOKEN, f"{TOKEN}x", "wrong", "wrong", "wrong", "wrong", ""))
        fields = {"authorization": f"Bearer {shown}"} if shown else {}
        caller = annex.answer(annex.begin((host, annex.remote), "GET", path, None, fields))
        if shown == TOKEN:
            annex.same(caller.status, 200, f"the token, blocked: {blocked}")
        elif not shown:
            annex.right(caller, 401, "unauthorized", "no token")
        elif blocked:
            annex.right(caller, 429, "rate_limited", "a wrong token in a block")
            wait = int(header(caller, "retry-after") or 0)
            annex.near(wait, mine.until - annex.now, "when to come again", 1.5)
        else:
            annex.right(caller, 401, "unauthorized", f"a wrong token, {mine}")
            mine.failed(annex.now)
        if annex.chance(0.15):
            annex.rest(annex.pick((5.0, 40.0, WINDOW)))
    near = annex.begin((annex.home, annex.local), "GET", path)
    annex.right(annex.answer(near), 401, about="a program of this host that shows no token")
    seat = sign_in(annex, hosts[0], {"pairing_code": "ZZZZZZ"})
    annex.same(seat.take()["type"], "auth.fail", "who has guessed tokens for numbers, and now a code")
    seat.hang_up()
    one = pair(annex)
    caller = annex.ask(one.token, "GET", path)
    annex.right(caller, 401, about="a session's token for numbers")
    one.seat.hang_up()
    annex.stop()


def rooted(audit: Audit) -> None:
    """A relay that a proxy serves under a path is the same with that and without it, and so are its doors (decision
    70); and it speaks by the words of clients in use, where it is told to (wire core 3.6, 11).
    """
    annex = Annex(audit, root_path="/far/relay", brand=HERMES)
    one = pair(annex)
    for path in annex.rng.sample(READ, 6):
        near = annex.chance(0.5)
        asks = annex.ask_here if near else lambda method, path: annex.ask(one.token, method, path)
        with_it, without = asks("GET", f"/far/relay{path}"), asks("GET", path)
        annex.same(with_it.status, without.status, f"{path} under the root path")
        if path in ("/health", "/sessions", "/none", "/relay/security"):
            one_seen, other_seen = (
                re.sub(rb'"last_seen":[0-9.]+', b"", each.answer.body) for each in (with_it, without)
            )
            annex.same(one_seen, other_seen, f"the answer to {path} under the root path")
    for path in ("/far/health", "/far/relayhealth", "/relay/health", "/far/relay/far/relay/health"):
        annex.right(annex.ask(one.token, "GET", path), 404, "not_found", path)
    annex.right(
        annex.ask("", "POST", "/far/relay/pairing/register", {"code": "ABC123"}), 403, about="a door by its path"
    )
    annex.right(annex.ask("", "GET", "/far/relay/sessions"), 401, "unauthorized", "a list by its path")
    seat = annex.sit(one.host, "/far/relay/ws")
    seat.say("system", "auth", {"session_token": one.token})
    annex.same(seat.take()["type"], "auth.ok", "a socket under the root path")
    seat.say("chat", "chat.send", {"text": "x"}, "c")
    told = seat.take()
    annex.same((told["channel"], told["type"], told["id"]), ("chat", "chat.error", "c"), "chat, which is elsewhere")
    seat.hang_up()
    invite = annex.right(annex.ask_here("POST", "/pairing/mint", {"api_key": ""}), 200)
    payload = json.loads(invite["qr_payload"])
    annex.same((payload["hermes"], payload["svc"]), (payload["hermes"],) * 2, "the version of an invite")
    annex.same(invite["pairing_url"].partition("?")[0], "hermes-relay://pair", "an invite")
    annex.same(payload["relay"]["url"], f"ws://{annex.home.address}:8767", "where it leads")
    annex.same(annex.home.disk.exists(f"{annex.home.state}/hermes-relay-qr-secret"), True, "the key of a signature")
    view = annex.right(annex.ask(one.token, "GET", "/voice/output/config"), 200)
    annex.same((view["protocol"], view["fallback_provider"]), ("hermes.voice.output.v0", "legacy_hermes_tts"), "names")
    one.seat.hang_up()
    annex.stop()


METHODS = (methods, monitored, rooted)
