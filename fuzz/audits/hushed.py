"""What nobody is shown again: secrets, by whatever name, in whatever place and by whatever route they come.

A value whose name is one of five is no business of any record; all other values are kept as they were sent. And what
opens a door, here the token of a session, is in no answer, no log, no number and no file, wherever somebody puts it.
"""

from __future__ import annotations

import json
from typing import Any

from fuzz.audit import Audit
from fuzz.audits.paired import Paired, pair
from fuzz.doors import PLACES, RELAY_DOORS

__all__ = ["HUSHED", "arguments", "fields", "redacted"]

SECRETS = ("password", "token", "secret", "otp", "bearer")
OTHERS = ("access_token", "tokens", "passwords", "one_otp", "bearers", "secretly", "pass", "key", "note")
HIDDEN = "[redacted]"
WHERE = ("path", "query", "body", "header", "nonsense", "bearer")
FIELDS = ("cookie", "x-api-key", "x-auth-token", "proxy-authorization", "referer", "x-svc-session-token")
PAGES = ("GET /docs", "GET /openapi.json", "GET /", "GET /ws", "GET /metrics", "GET /healthz", "GET /readyz")
ECHOED = ("POST /pairing/register", "POST /pairing/approve", "POST /pairing/mint")  # what they are told is told again
INSPECTED = ("/bridge/activity", "/relay/info", "/media/inspect", "/sessions", "/bridge/devices", "/metrics", "/health")


def name(audit: Audit) -> str:
    """One that is hidden in any case of its letters, or one that only looks like it."""
    word = str(audit.pick((*SECRETS, *OTHERS)))
    return str(audit.pick((word, word, word.upper(), word.title())))


def fields(audit: Audit, most: int = 2) -> dict[str, str]:
    """What may stand in a query."""
    return {name(audit): audit.word() for _ in range(audit.rng.randint(0, most))}


def arguments(audit: Audit, depth: int = 3) -> dict[str, Any]:
    """What may stand in a body: at its top, in what lies in it, and in lists of that."""
    found: dict[str, Any] = {}
    for _ in range(audit.rng.randint(0, 2)):
        value: Any = audit.pick((audit.word(), audit.rng.randint(0, 10**6), None, True, ""))
        if depth and audit.chance(0.5):
            inner = [arguments(audit, depth - 1) for _ in range(audit.rng.randint(1, 2))]
            value = audit.pick((inner[0], inner, [inner]))
        found[name(audit)] = value
    return found


def redacted(value: Any) -> Any:
    """The same without what is secret."""
    if isinstance(value, dict):
        return {key: HIDDEN if key.lower() in SECRETS else redacted(member) for key, member in value.items()}
    return [redacted(member) for member in value] if isinstance(value, list) else value


def hushed(audit: Audit) -> None:
    """Somebody puts another's token wherever there is room for it; nobody is told of it afterwards."""
    one, victim = pair(audit), pair(audit)
    phone = pair(audit, device_id=audit.word(), surface="android", form="phone")
    device = phone.shown["device_id"]
    routes = [route.strip() for _, listed in RELAY_DOORS.values() for route in listed.split(",")]
    routes = [route for route in routes if route not in (*PAGES, *ECHOED) and "/oauth/" not in route]
    for route in audit.rng.sample(routes, 22):
        _put(audit, route, one, victim.token, device)
    while phone.seat.heard:
        told = phone.seat.take()["payload"]
        said = {"password": victim.token, "deep": [{"Token": victim.token}]}
        audit.world.phones_say_what_they_will = True  # that is for who has asked
        phone.seat.reply(told, said, audit.pick((200, 400, 403)))
        audit.rest(0.3)
        audit.world.phones_say_what_they_will = False
    status = {"device": {"name": "x", "token": victim.token}, "secret": victim.token, "more": [{"OTP": victim.token}]}
    phone.seat.say("bridge", "bridge.status", status)
    for kind in ("terminal.input", "tui.attach", "bridge.response", "system.ping", "other"):
        one.seat.say(kind.partition(".")[0], kind, {"token": victim.token, "session_name": 5}, "h")
    guess = audit.sit(audit.host())
    guess.say("system", "auth", {"session_token": f"{victim.token}x", "device_name": "n"})
    audit.rest(1.0)
    for path in INSPECTED:
        audit.right(audit.ask_here("GET", path), 200)
    for seat in (one.seat, guess, phone.seat):
        if any(victim.token in json.dumps(each) for each in seat.heard):
            audit.wrong(f"somebody's token is told on a socket: {seat.heard}")
        seat.hang_up()
    audit.right(audit.ask(victim.token, "GET", "/sessions"), 200, about="whose token was put everywhere")
    victim.seat.hang_up()


def _put(audit: Audit, route: str, one: Paired, secret: str, device: str) -> None:
    """Into one place of a request, of somebody who is let in, or is not."""
    method, _, path = route.partition(" ")
    where = audit.pick(WHERE)
    for braces, named in PLACES.items():
        path = path.replace(braces, f"{secret}x" if where == "path" and braces != "{token_prefix}" else named)
    headers = {} if audit.chance(0.2) else {"authorization": f"Bearer {one.token}"}
    body: Any = {"device": device, "text": "a", "x": 1, "y": 1, "profile": "nobody"} if method != "GET" else None
    query = f"?device={device}" if method == "GET" else ""
    match where:
        case "query":
            query = f"?{audit.pick(SECRETS)}={secret}&device={device}"
        case "body" if body is not None:
            body |= {audit.pick(SECRETS): secret, "more": [{audit.pick(SECRETS).upper(): secret}]}
        case "header":
            headers[audit.pick(FIELDS)] = secret
        case "nonsense" if body is not None:
            said = audit.pick(('{"token": "%s"', "token=%s", '["%s"]', '"%s"', '{"token": NaN, "secret": "%s"}'))
            body = (said % secret).encode()
        case "bearer":
            headers["authorization"] = audit.pick(
                (f"Bearer {secret}x", f"Basic {secret}", secret, f"Bearer  {secret}y")
            )
        case _:
            pass
    near = audit.chance(0.4) and "authorization" not in headers
    if near:
        headers |= audit.shown_here()
    place = (audit.home, audit.local) if near else (audit.world.agent, audit.remote)
    caller = audit.begin(place, method, path + query, body, headers)
    audit.rest(0.5)  # the world looks at each answer and each record
    if caller.over and not caller.status:
        audit.wrong(f"{route} has no answer")


HUSHED = (hushed,)
