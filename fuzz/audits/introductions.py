"""How a device introduces itself, what an invite holds, which codes are good, and which profiles all are told of."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from fuzz.audit import Audit, Seat
from fuzz.audits.paired import NEVER, in_words, listed, register, sign_in
from fuzz.terms import Spans, Wish, paired
from fuzz.world import API_KEY

__all__ = ["INTRODUCTIONS"]

LONGEST = 200  # characters of what a device says of itself
CODE_LASTS = 600  # s
MOST_CODES = 1_000
RESCAN = 30.0  # s between two looks for profiles
TEXTS: tuple[tuple[object, str | None], ...] = (  # what is said, and what is known then; None: nothing was said
    *(("Kitchen", "Kitchen"), ("  Küche € ", "Küche €"), ("x" * LONGEST, "x" * LONGEST), ("", None), ("  ", None)),
    *((5, None), (None, None), (["x"], None), (True, None)),
    *(("y" * (LONGEST + 1), "y" * LONGEST), ("é\u0000", "é\u0000")),
)
MEMBERS = ("device_name", "device_hostname", "device_id", "device_model", "device_platform")
MORE_MEMBERS = ("client_surface", "device_form_factor")
SPANS: tuple[tuple[object, float | None], ...] = (  # as a device asks for them
    *((None, None), (60, 60), (45.5, 45.5), (0, 0), (-1, None), ("60", None), (True, None), ([], None)),
    *((315_360_000, 315_360_000), (315_360_001, None)),
)
WISHES: tuple[tuple[object, Spans | None], ...] = (
    *((None, None), ([], None), ({}, None), ("x", None), ({"bridge": 20}, {"bridge": 20})),
    ({"bridge": 20, "terminal": "x", "chat": -1, "tui": True}, {"bridge": 20}),
    ({"terminal": None, "voice:stt": [5]}, None),
    ({"voice:tts": 0, "tui": 9.5, "nothing": 5}, {"voice:tts": 0, "tui": 9.5}),
)
MINTS: dict[str, tuple[tuple[object, object], ...]] = {  # what is asked for, and what the payload has
    "host": (("box.example", "box.example"), (" h ", "h")),
    "port": ((8643, 8643), ("81", 81), (65_535, 65_535)),
    "tls": ((True, True), (False, False)),
    "dashboard_url": ((" http://b.example/ ", "http://b.example"), ("http://b/x//", "http://b/x")),
    "ttl_seconds": ((0, 0), (604_800, 604_800), (60.0, 60)),
    "grants": (({"bridge": 3600.0}, {"bridge": 3600}), ({"tui": 0, "terminal": False}, {"tui": 0})),
    "transport_hint": (("ws", "ws"), ("wss", "wss")),
    "endpoints": (([{"role": "LAN", "é": 1.5}], [{"role": "LAN", "é": 1.5}]), ([], None)),
}
BAD_MINTS: tuple[object, ...] = (
    *([], 5, {"host": ""}, {"host": "0.0.0.0"}, {"host": 5}),
    *({"port": 0}, {"port": 65_536}, {"port": "x"}, {"tls": "no"}),
    *({"tls": 1}, {"api_key": 5}, {"ttl_seconds": "60"}, {"grants": {"nothing": 5}}, {"transport_hint": "tls"}),
    *({"endpoints": {}}, {"endpoints": [{}] * 65}, {"ttl_seconds": 315_360_001}, {"grants": {"chat": -1}}),
)


def introductions(audit: Audit) -> None:
    """What a device says of itself is what is known of it; what is no text counts as not said."""
    for _ in range(audit.rng.randint(3, 6)):
        _introduced(audit)


def _introduced(audit: Audit) -> None:
    said: dict[str, tuple[object, str | None]] = {
        name: audit.pick(TEXTS) for name in (*MEMBERS, *MORE_MEMBERS) if audit.chance(0.7)
    }
    (ttl, due_ttl), (grants, due_grants) = audit.pick(SPANS), audit.pick(WISHES)
    preset = audit.pick((Wish(), Wish(), Wish(600), Wish(None, {"bridge": 30}), Wish(0, {"chat": 40, "tui": None})))
    code = register(audit, preset)
    payload: dict[str, object] = {name: value for name, (value, _) in said.items()}
    payload |= {"ttl_seconds": ttl} if audit.chance(0.8) else {}
    payload |= {"grants": grants} if audit.chance(0.8) else {}
    payload |= audit.pick(
        ({}, {"session_token": "x" * 36}, {"session_token": 5}, {"refresh_token": "r", "supports": []})
    )
    seat = sign_in(audit, audit.host(), {**payload, "pairing_code": audit.pick((code, f"\t{code.lower()} "))})
    told = seat.take()
    audit.same((told["channel"], told["type"], told["id"]), ("system", "auth.ok", "auth-1"), f"who says {payload}")
    members, wall = told["payload"], audit.wall
    token = members["session_token"]
    audit.world.secrets[token] = f"the token {token[:8]}"
    asks = Wish(due_ttl if "ttl_seconds" in payload else None, due_grants if "grants" in payload else None)
    due = paired(preset.or_else(asks), audit.world.policy, wall)
    _ends(
        audit,
        members["expires_at"],
        due.expires_at,
        f"the end of a session that asked for {payload.get('ttl_seconds')}",
    )
    audit.same({*members["grants"]}, {*due.grants}, "the channels that are granted")
    for channel, end in members["grants"].items():
        _ends(audit, end, due.grants[channel], f"the end of {channel}, asked for {payload.get('grants')}, {preset}")
    known = {name: word for name, (_, word) in said.items()}
    surface, form = known.get("client_surface") or "unknown", known.get("device_form_factor") or "unknown"
    audit.same((members["client_surface"], members["device_form_factor"]), (surface, form), "what a device is")
    record = listed(audit)[token[:8]]
    is_ = {
        "device_name": known.get("device_name") or known.get("device_hostname") or "Unknown device",
        "device_id": known.get("device_id") or "unknown",
        "device_model": known.get("device_model") or "unknown",
        "device_platform": known.get("device_platform") or "unknown",
        "client_surface": surface,
        "device_form_factor": form,
        "transport_hint": "ws",
        "online": True,
        "is_current": False,
    }
    audit.same({name: record[name] for name in is_}, is_, f"what is known of who says {payload}")
    audit.same((record["expires_at"], record["grants"]), (members["expires_at"], members["grants"]), "its terms")
    spent = sign_in(audit, audit.host(), {"pairing_code": code})
    audit.same(spent.take()["type"], "auth.fail", "a code that was shown before")
    for each in (seat, spent):
        each.hang_up()
    if audit.chance(0.5):
        audit.right(audit.ask_here("DELETE", f"/sessions/{token[:8]}"), 200)


def _ends(audit: Audit, told: object, due: float, about: str) -> None:
    if told is None or due == NEVER:
        audit.same(told, in_words(due), about)
    else:
        audit.near(told, due, about)


def invites(audit: Audit) -> None:
    """An invite holds what was asked for, signed; its code is good, for those terms."""
    codes, before = list[str](), listed(audit)
    for _ in range(audit.rng.randint(3, 6)):
        if audit.chance(0.3):
            body = audit.pick(BAD_MINTS)
            audit.right(audit.ask_here("POST", "/pairing/mint", body), 400, about=f"an invite with {body}")
            continue
        codes.append(_invited(audit))
    way = audit.rng.randrange(3)
    if way == 0:
        body = audit.pick((None, {}, {"code": "ABCDEF"}))
        told = audit.right(audit.ask_here("POST", "/pairing", body), 200)
        audit.near(told["expires_at"], audit.wall + CODE_LASTS, "the end of a code", 1.5)
        audit.same(({*told}, len(told["code"])), ({"ok", "code", "expires_at"}, 6), "a code that was made")
        codes.append(told["code"])
    elif way == 1 and audit.chance(0.3):
        first, *_, last = [register(audit) for _ in range(MOST_CODES + 1)]
        for code, good in ((first, False), (last, True)):
            _shown(audit, code, good=good, about=f"a code with {MOST_CODES} behind it").hang_up()
        codes = [register(audit)]  # all others had to make room
    late = audit.chance(0.5)
    audit.rest(CODE_LASTS + (0.5 if late else -2.0))
    for code in codes[-2:] if late else codes[-1:]:
        _shown(audit, code, good=not late, about=f"the code of an invite, late: {late}").hang_up()
    audit.rest(5.0 if late else CODE_LASTS)
    for prefix in sorted(listed(audit).keys() - before.keys()):
        audit.right(audit.ask_here("DELETE", f"/sessions/{prefix}"), 200)


def _shown(audit: Audit, code: str, *, good: bool, about: str) -> Seat:
    seat = sign_in(audit, audit.host(), {"pairing_code": code})
    told = seat.take()
    audit.same(told["type"], "auth.ok" if good else "auth.fail", about)
    return seat


def _invited(audit: Audit) -> str:
    """One invite; a code whose session would not last is used at once."""
    world, rng = audit.world, audit.rng
    asked = {name: rng.choice(rows) for name, rows in MINTS.items() if audit.chance(0.4)}
    body: dict[str, object] = {name: value for name, (value, _) in asked.items()}
    has = {name: value for name, (_, value) in asked.items()}
    key, named = audit.pick((("", True), ("a key", True), (API_KEY, False)))
    if named:
        body["api_key"] = audit.pick((key, key or None))
    world.phones_say_what_they_will = not named  # an invite is where the key may be
    told = audit.right(audit.ask_here("POST", "/pairing/mint", body), 200, about=f"an invite with {body}")
    world.phones_say_what_they_will = False
    code, host = told["code"], has.get("host", world.home.address)
    relay_url = f"ws://{world.home.address}:8767"
    relay: dict[str, object] = {"url": relay_url, "code": code}
    relay |= {name: has[name] for name in ("ttl_seconds", "grants", "transport_hint") if name in has}
    version = 3 if has.get("endpoints") else 2 if len(relay) > 2 else 1
    payload: dict[str, object] = {"svc": version, "host": host, "port": has.get("port", 8642), "key": key}
    payload |= {"tls": has.get("tls", False), "relay": relay}
    payload |= {"endpoints": has["endpoints"]} if has.get("endpoints") else {}
    payload |= {"dashboard_url": has["dashboard_url"]} if "dashboard_url" in has else {}
    secret = world.home.disk.get(f"{world.home.state}/svc-relay-qr-secret")
    text = json.dumps(payload, sort_keys=True, separators=(",", ":")).encode()
    payload["sig"] = base64.b64encode(hmac.new(secret, text, hashlib.sha256).digest()).decode()
    audit.same(
        told["qr_payload"], json.dumps(payload, separators=(",", ":")), "the payload of an invite, to the letter"
    )
    coded = base64.urlsafe_b64encode(told["qr_payload"].encode()).decode().rstrip("=")
    is_: dict[str, Any] = {"ok": True, "code": code, "pairing_url": f"svc-relay://pair?payload={coded}"}
    is_ |= {"qr_payload": told["qr_payload"], "relay_url": relay_url, "expires_at": told["expires_at"]}
    is_ |= {name: payload[name] for name in ("host", "port", "tls")}
    is_ |= {name: has[name] for name in ("dashboard_url",) if name in has}
    is_ |= {"endpoints": body["endpoints"]} if "endpoints" in body else {}
    audit.same(told, is_, "an invite")
    audit.near(told["expires_at"], audit.wall + CODE_LASTS, "the end of its code", 1.5)
    if "ttl_seconds" in has or "grants" in has or audit.chance(0.3):
        seat = sign_in(audit, audit.host(), {"pairing_code": code, "ttl_seconds": 5_000, "grants": {"bridge": 7}})
        met, spans = seat.take()["payload"], has.get("grants")
        withheld = {"terminal": None} if isinstance(spans, dict) and "tui" in spans else {}
        grants: Spans = {**spans, **withheld} if isinstance(spans, dict) else {"bridge": 7}
        wish = Wish(float(str(has.get("ttl_seconds", 5_000))), grants)
        due = paired(wish, world.policy, audit.wall)
        _ends(audit, met["expires_at"], due.expires_at, "the end of a session of an invite")
        audit.same({*met["grants"]}, {*due.grants}, "the channels of an invite")
        for channel, end in met["grants"].items():
            _ends(audit, end, due.grants[channel], f"the end of {channel}, by an invite")
        seat.hang_up()
        return register(audit)
    return str(code)


def profiles(audit: Audit) -> None:
    """The profiles of the agent are told to who comes, and to all who are there within half a minute of a change."""
    disk, root = audit.world.home.disk, f"{audit.world.home.state}/config.yaml"
    folder, before = f"{audit.world.home.state}/profiles", disk.get(root) if disk.exists(root) else None
    known: dict[str, dict[str, object]] = {"default": {"model": "unknown", "description": ""}}
    names = [f"{letter}{audit.word()}" for letter in "bac"]
    disk.put(root, b"{}")
    disk.put(f"{folder}/file-that-is-none.yaml", b"{}")
    audit.rest(RESCAN + 2.0)
    seats = [_welcome(audit, known) for _ in range(2)]
    for _ in range(audit.rng.randint(3, 6)):
        for seat in seats:
            seat.profiles.clear()
        name, word = audit.pick(("default", *names)), audit.word()
        path = root if name == "default" else f"{folder}/{name}/config.yaml"
        kind = audit.rng.randrange(6)
        changed = True
        if kind == 0 and name != "default":
            changed = name in known
            disk.remove(path)
            disk.remove(f"{folder}/{name}")
            known.pop(name, None)
        elif kind == 1:
            changed = name in known
            disk.put(path, b"model: [")
            known.pop(name, None)
        elif kind == 2 and name in known:
            changed = False
            same = {"model": {"default": known[name]["model"]}, "description": known[name]["description"]}
            disk.put(path, json.dumps({**same, "x": word}).encode())
        elif kind == 3 and name != "default" and name not in known:
            disk.remove(path)  # which may be there, and be none
            disk.folder(f"{folder}/{name}")
            known[name] = {"model": "unknown", "description": ""}
        else:
            disk.put(path, json.dumps({"model": {"default": f"m-{word}"}, "description": f"d {word}"}).encode())
            known[name] = {"model": f"m-{word}", "description": f"d {word}"}
        audit.rest(RESCAN + 2.0)
        is_ = _profiles(known)
        for seat in seats:
            told = [(each["channel"], each["payload"], each.get("profiles")) for each in seat.profiles]
            due = [("pairing", {"profiles": is_}, is_)] if changed else []
            audit.same(told, due, f"what is told of profiles when {name} changes, {kind}")
        if audit.chance(0.4):
            seats.append(_welcome(audit, known))
        shown = audit.right(audit.ask_here("GET", "/relay/info"), 200)["profiles"]
        audit.same([each["name"] for each in shown], [each["name"] for each in is_], "the profiles of the relay")
    for name in names:
        disk.remove(f"{folder}/{name}/config.yaml")
        disk.remove(f"{folder}/{name}")
    disk.remove(f"{folder}/file-that-is-none.yaml")
    disk.remove(root)
    if before is not None:
        disk.put(root, before)
    for seat in seats:
        seat.hang_up()
    audit.rest(RESCAN + 2.0)


def _profiles(known: dict[str, dict[str, object]]) -> list[dict[str, object]]:
    empty = {"system_message": None, "gateway_running": False, "has_soul": False, "skill_count": 0}
    api = {"enabled": False, "url": None, "host": None, "port": None, "key_present": False}
    more = {**empty, **{f"api_server_{name}": value for name, value in api.items()}}
    names = [*(["default"] if "default" in known else []), *sorted(name for name in known if name != "default")]
    return [{"name": name, **known[name], **more} for name in names]


def _welcome(audit: Audit, known: dict[str, dict[str, object]]) -> Seat:
    """Who comes is told what is known."""
    seat = sign_in(audit, audit.host(), {"pairing_code": register(audit)})
    audit.same(seat.take()["payload"]["profiles"], _profiles(known), "the profiles that who comes is told of")
    return seat


INTRODUCTIONS = (introductions, invites, profiles)
