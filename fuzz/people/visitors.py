"""Errands at the relay: pastes, parts of files, sessions by their names, codes that are registered twice."""

from __future__ import annotations

import base64
import json
from collections.abc import Generator
from typing import Any

from fuzz.errands import Ask, Clerk, Errand, Kind, is_one
from fuzz.invariants import Invariant
from fuzz.model import Code, violated
from fuzz.people.crowd import GRANTS
from fuzz.shelf import Medium
from fuzz.terms import Wish
from fuzz.world import MAX_MEDIA
from tests.support.sim_http import RequestClient

__all__ = ["VISITORS"]

PICTURES = {"png": b"\x89PNG\r\n\x1a\n", "jpg": b"\xff\xd8\xff", "gif": b"GIF89a", "webp": b"RIFF0000WEBP"}
INBOX = "images/inbox"
STALE = 300.0  # s after which a paste is swept, wire core 7.1
SHOWN = 8  # characters of a session's token
CODE_LASTS = 600  # s
LARGE_ONES = 3  # which is less than a session may have


def pastes(clerk: Clerk) -> Errand:
    """Pictures are pasted: each is a file of its own, as it came, and is swept after five minutes."""
    rng, world = clerk.rng, clerk.crowd.world
    kept: list[tuple[str, bytes, float]] = []
    for _ in range(rng.randint(2, 4)):
        kind = rng.choice([*PICTURES])
        data = PICTURES[kind] + clerk.word().encode()
        body = {"format": rng.choice((kind, kind.upper())), "bytes_base64": base64.b64encode(data).decode()}
        bad: dict[str, dict[str, Any]] = {
            "another format": {**body, "format": "gif" if kind != "gif" else "png"},
            "no format": {**body, "format": "bmp"},
            "no base64": {**body, "bytes_base64": "*not*"},
            "nothing": {**body, "bytes_base64": ""},
        }
        if rng.random() < 0.4:
            why = rng.choice([*bad])
            caller = yield from clerk.relay("POST", "/clipboard/inbox", bad[why])
            is_one(caller, 400, f"a paste of {why}")
        hint = rng.choice(({}, {"filename_hint": "a shot/../é"}))
        caller = yield from clerk.relay("POST", "/clipboard/inbox", {**body, **hint})
        told = is_one(caller, 200, "a paste")
        path, now = str(told["path"]), clerk.crowd.now
        if f"/{INBOX}/clip_" not in path or path in [known for known, _, _ in kept] or told["size_bytes"] != len(data):
            violated(Invariant.AS_TOLD, f"a paste of {len(data)} bytes is {told}, beside {kept}")
        kept.append((path, data, now))
        there = world.home.disk.paths(path.rpartition("/")[0])
        steady = len(world.wall.steps) == 1
        for known, content, since in kept:
            fresh = now < since + STALE - 10.0
            if known in there and world.home.disk.get(known) != content:
                violated(Invariant.OWN_BYTES, f"{known} is not as it was pasted")
            if steady and fresh and known not in there:
                violated(Invariant.AS_TOLD, f"{known} is gone {now - since:.0f} s after it was pasted")
            if steady and known in there and now > since + STALE + 10.0:
                violated(Invariant.AS_TOLD, f"{known} is there {now - since:.0f} s after it was pasted")
        yield rng.choice((1.0, 40.0, STALE + 20.0))


def parts_of_a_file(clerk: Clerk) -> Errand:
    """A medium is had in parts, or not at all where it is known (RFC 9110 13, 14)."""
    rng = clerk.rng
    if clerk.crowd.world.shelf.cap < 100:
        return  # there it may be evicted at any time
    data = f"0123456789 {clerk.word()}".encode() * rng.randint(1, 40)
    body = {"file_name": "a.txt", "content_type": "text/plain", "content": base64.b64encode(data).decode()}
    medium = yield from _uploaded(clerk, data, body)
    path, end = f"/media/{medium.token}", len(data) - 1
    if not clerk.same_programs:
        return
    caller = yield from clerk.relay("GET", path)
    if caller.status != 200 or caller.answer.body != data:
        return  # judged elsewhere
    tag = (caller.answer.headers.get(b"etag") or b"").decode()
    if caller.answer.headers.get(b"content-type") != b"text/plain":
        violated(Invariant.AS_TOLD, f"text is given as {caller.answer.headers.get(b'content-type')!r}")
    first, last = sorted((rng.randint(0, end), rng.randint(0, end)))
    far = len(data) + rng.randint(0, 50)
    asked: tuple[tuple[dict[str, str], int, bytes | None], ...] = (
        ({"range": f"bytes={first}-{last}"}, 206, data[first : last + 1]),
        ({"range": f"bytes={first}-"}, 206, data[first:]),
        ({"range": f"bytes=-{first + 1}"}, 206, data[-first - 1 :]),
        ({"range": f"bytes={first}-{far}"}, 206, data[first:]),
        ({"range": f"bytes={far}-"}, 416, None),
        ({"range": f"lines={first}-{last}"}, 200, data),
        ({"range": f"bytes={first}-{last}", "if-range": tag}, 206, data[first : last + 1]),
        ({"range": f"bytes={first}-{last}", "if-range": '"other"'}, 200, data),
        ({"if-none-match": tag}, 304, b""),
        ({"if-none-match": '"other"'}, 200, data),
        ({"if-match": '"other"'}, 412, None),
    )
    for headers, status, content in rng.sample(asked, 4):
        sent = clerk.crowd.now
        caller = yield from clerk.relay("GET", path, headers=headers)
        if not clerk.crowd.world.shelf.must_live(medium, sent, clerk.crowd.now):
            return
        is_one(caller, status, f"{headers} of {len(data)} bytes")
        if content is not None and caller.answer.body != content:
            violated(Invariant.OWN_BYTES, f"{headers} of {len(data)} bytes is {caller.answer.body!r:.100}")
        if status == 206:
            start = data.rindex(content or b"") if headers["range"][6] == "-" else first
            told = f"bytes {start}-{start + len(content or b'') - 1}/{len(data)}".encode()
            if caller.answer.headers.get(b"content-range") != told:
                got = caller.answer.headers.get(b"content-range")
                violated(Invariant.AS_TOLD, f"{headers} of {len(data)} bytes is said to be {got!r}, and is {told!r}")


def sessions_by_name(clerk: Clerk) -> Errand:
    """Sessions are named by four characters at least, and one's own is marked (wire core 4.2 to 4.4)."""
    rng, mine = clerk.rng, clerk.session
    crowd = clerk.crowd
    odd: tuple[tuple[str, str, object, int], ...] = (
        ("DELETE", mine.prefix[:3], None, 400),
        ("DELETE", mine.token[:20], None, 400),
        ("DELETE", "zzzz", None, 404),
        ("DELETE", f"{mine.token[:-1]}{'0' if mine.token[-1] != '0' else '1'}", None, 404),
        ("PATCH", "zzzzzzzz", {"ttl_seconds": 60}, 404),
        ("PATCH", mine.prefix, {"ttl_seconds": True}, 400),
        ("PATCH", mine.prefix, {"ttl_seconds": -1}, 400),
        ("PATCH", mine.prefix, {"grants": {"nothing": 5}}, 400),
        ("PATCH", mine.prefix, {}, 400),
    )
    by = rng.choice((mine, mine, None))
    for method, prefix, body, status in rng.sample(odd, 4):
        caller = yield from clerk.relay(method, f"/sessions/{prefix}", body, by=by)
        is_one(caller, status, f"{method} of {prefix!r} with {body}")
    caller = yield from clerk.relay("GET", "/sessions", by=by)
    records = is_one(caller, 200, "all sessions")["sessions"]
    current = [record["token_prefix"] for record in records if record["is_current"]]
    if current != ([] if by is None else [mine.prefix]):
        violated(Invariant.AS_TOLD, f"{current} is said to ask, and it is {by and by.prefix}")
    for record in records:
        known = [session for session in crowd.sessions if session.prefix == record["token_prefix"]]
        if known and (record["device_name"], len(record["token_prefix"])) != (known[0].device, SHOWN):
            violated(Invariant.AS_TOLD, f"{known[0].prefix} is {known[0].device}, and listed as {record!r:.200}")


def a_code_that_is_registered_twice(clerk: Clerk) -> Errand:
    """What was said last about a code counts, and it may be written in any way."""
    rng, crowd = clerk.rng, clerk.crowd
    word, sent = f"D{crowd.number():05}", crowd.now
    wishes = [Wish(rng.choice((None, 60, 7200)), rng.choice(GRANTS)) for _ in range(2)]
    for place, wish in enumerate(wishes):
        body = {"code": rng.choice((word, f" {word.lower()} ")), **wish.members}
        sent = crowd.now
        route = "/pairing/register" if place else rng.choice(("/pairing/register", "/pairing/approve"))
        caller = yield from clerk.relay("POST", route, body, by=None)
        is_one(caller, 200, "a code")
    _pairs(clerk, word, sent, wishes[-1])


def an_invite(clerk: Clerk) -> Errand:
    """An invite says what it stands for, and its code pairs (wire core 2.6)."""
    rng, crowd = clerk.rng, clerk.crowd
    wish = Wish(rng.choice((None, 60, 7200)), rng.choice(GRANTS))
    sent, low = crowd.now, crowd.world.home.wall()
    caller = yield from clerk.relay("POST", "/pairing/mint", {"api_key": "", **wish.members}, by=None)
    told = is_one(caller, 200, "an invite")
    held = json.loads(told["qr_payload"])
    if held["relay"]["code"] != told["code"] or held["key"] or held["relay"].get("ttl_seconds") != wish.ttl:
        violated(Invariant.AS_TOLD, f"an invite for {wish} holds {held}, beside {told}")
    high = crowd.world.home.wall()
    if len(crowd.world.wall.steps) == 1 and not low + CODE_LASTS - 1 <= told["expires_at"] <= high + CODE_LASTS:
        violated(Invariant.LIFETIME, f"a code made at {low:.1f} is said to last until {told['expires_at']}")
    _pairs(clerk, told["code"], sent, wish)


def _pairs(clerk: Clerk, word: str, sent: float, wish: Wish) -> None:
    """A device shows a code that the relay was told of since."""
    crowd = clerk.crowd
    if clerk.same_programs:
        code = Code(word, sent, told=crowd.now, wish=wish)
        crowd.codes.append(code)
        clerk.pairing.pair(clerk.rng.choice(crowd.world.devices), code, phone=False)


def large_files(clerk: Clerk) -> Errand:
    """Large files are kept; one that is too large is not."""
    world = clerk.crowd.world
    if world.shelf.cap < 100 or world.shelf.ttl < 1000:
        return
    headers = {"content-type": "multipart/form-data; boundary=b"}
    head = b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
    for _ in range(clerk.rng.randint(1, LARGE_ONES)):
        data = clerk.word().encode().ljust(MAX_MEDIA // 2, b".")
        yield from _uploaded(clerk, data, head + data + b"\r\n--b--\r\n", headers=headers)
    too_large = head + b"." * (MAX_MEDIA + 1) + b"\r\n--b--\r\n"
    caller = yield from clerk.relay("POST", "/media/upload", too_large, headers=headers)
    is_one(caller, 413, "an upload that is too large", "too_large")


def _uploaded(clerk: Clerk, data: bytes, body: object, **more: Any) -> Generator[Ask | float, RequestClient, Medium]:
    """It is on the shelf."""
    medium = clerk.crowd.world.shelf.put(data, clerk.crowd.now)
    caller = yield from clerk.relay("POST", "/media/upload", body, **more)
    medium.token = str(is_one(caller, 200, "an upload")["token"])
    medium.since.told = clerk.crowd.now
    return medium


VISITORS: tuple[Kind, ...] = (
    pastes,
    parts_of_a_file,
    sessions_by_name,
    a_code_that_is_registered_twice,
    an_invite,
    large_files,
)
