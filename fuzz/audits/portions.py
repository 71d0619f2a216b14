"""Files in parts and by conditions: what RFC 9110, sections 13 and 14, says is to be answered, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeAlias

from attrs import define

from fuzz.audit import Audit, header
from fuzz.audits.paired import pair

__all__ = ["PORTIONS"]

LATER = (-100_000, -1, 0, 1, 100_000)  # s from the change of a file
FORMS = ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y")
OTHER = '"other"'
Wanted: TypeAlias = tuple[str, tuple[int, int] | bool | None]


@define(frozen=True)
class _Tags:
    """A list of entity tags as it is sent, and whether it is strongly, or weakly, that of the file."""

    said: str
    strong: bool
    weak: bool


@define(frozen=True)
class _Date:
    """A date as it is sent; None: it is none."""

    said: str
    at: int | None


@define(eq=False)
class _File:
    path: str
    data: bytes
    tag: str
    modified: int

    def tags(self, audit: Audit) -> _Tags:
        tag = self.tag
        rows: tuple[tuple[str, bool, bool], ...] = (
            (tag, True, True),
            ("*", True, True),
            (OTHER, False, False),
            (f"W/{tag}", False, True),
        )
        rows += ((f"{OTHER}, {tag}", True, True), (f"W/{OTHER} ,W/{tag}", False, True), ("nonsense", False, False))
        rows += ((tag.strip('"'), False, False), (f'{OTHER},  "x,y"', False, False))
        return _Tags(*audit.pick(rows))

    def date(self, audit: Audit) -> _Date:
        if audit.chance(0.2):
            bad = ("yesterday", "Mon, 32 Jan 2027 08:00:00 GMT", str(self.modified), "Mon, 01 Foo 2027 08:00:00 GMT")
            return _Date(audit.pick(bad), None)
        at = self.modified + audit.pick(LATER)
        return _Date(datetime.fromtimestamp(at, UTC).strftime(audit.pick(FORMS)), at)

    def range(self, audit: Audit) -> Wanted:
        """As it is sent: first and last byte, None for the whole, False for what there is none of."""
        size, rng = len(self.data), audit.rng
        one, other = sorted(rng.randrange(size) for _ in range(2))
        some = rng.randint(1, size)
        rows: tuple[Wanted, ...] = (
            (f"bytes={one}-{other}", (one, other)), (f"bytes={one}-", (one, size - 1)), ("bytes=0-0", (0, 0)),
            (f"bytes=-{some}", (size - some, size - 1)), (f"bytes=-{size + 5}", (0, size - 1)), ("bytes=-0", False),
            (f"bytes={size - 1}-{size + 9}", (size - 1, size - 1)), (f"bytes={size}-", False),
            (f"bytes={size + 5}-{size + 9}", False), ("bytes=9-3", None), ("bytes=0-1,3-4", None),
            ("lines=1-2", None), ("bytes=x-2", None), ("bytes=-", None), ("bytes", None), ("bytes=-5-9", None),
            (f"BYTES={one}-{other}", (one, other)),
        )  # fmt: skip
        chosen: Wanted = audit.pick(rows)
        return chosen


def portions(audit: Audit) -> None:
    """A file is asked for in all ways, until it changes."""
    one = pair(audit, leaves=True)
    path = f"/tmp/audit/{audit.word()}.txt"
    target = f"/media/by-path?path={path}"
    if audit.chance(0.5):
        audit.world.home.disk.put(path, b"x")
        body = {"path": path, "content_type": "text/plain"}
        target = f"/media/{audit.right(audit.ask_here('POST', '/media/register', body), 200)['token']}"
    file: _File | None = None
    for turn in range(audit.rng.randint(14, 22)):
        if file is None or turn == 9:
            file = _fresh(audit, one.token, target, path, file)
        _ask(audit, one.token, target, file)


def _fresh(audit: Audit, token: str, target: str, path: str, before: _File | None) -> _File:
    """It is as it is from now on; with another tag than it had."""
    data = bytes(audit.rng.randrange(256) for _ in range(audit.pick((1, 10, 3_000))))
    audit.rest(1.5)
    audit.world.home.disk.put(path, data)
    caller = audit.ask(token, "GET", target)
    audit.right(caller, 200)
    tag = header(caller, "etag")
    modified = header(caller, "last-modified")
    at = int(datetime.strptime(modified, FORMS[0]).replace(tzinfo=UTC).timestamp())
    audit.near(at, audit.wall, "when a file was changed", 2.0)
    if not tag.startswith('"') or (before is not None and tag == before.tag):
        audit.wrong(f"a file that has changed has the tag {tag}")
    audit.same((caller.answer.body, caller.answer.headers.get(b"accept-ranges")), (data, b"bytes"), "a whole file")
    return _File(path, data, tag, at)


def _ask(audit: Audit, token: str, target: str, file: _File) -> None:
    method, headers, said = audit.pick(("GET", "GET", "GET", "HEAD")), dict[str, str](), dict[str, Any]()
    for name in ("if_match", "if_none_match"):
        if audit.chance(0.2):
            said[name] = file.tags(audit)
    for name in ("if_unmodified_since", "if_modified_since"):
        if audit.chance(0.2):
            said[name] = file.date(audit)
    wanted: tuple[int, int] | bool | None = None
    if audit.chance(0.7):
        headers["range"], wanted = file.range(audit)
        if audit.chance(0.4):
            tag = audit.chance(0.5)
            said["if_range"] = file.tags(audit) if tag else file.date(audit)
    headers |= {name: each.said for name, each in said.items()}
    caller = audit.ask(token, method, target, **headers)
    about = f"{method} with {headers} of {len(file.data)} bytes, {file.tag}, changed {file.modified}"
    status = _failed(said, file)
    if status is None and method == "GET" and wanted is not None and _holds(said.get("if_range"), file):
        status = 206 if isinstance(wanted, tuple) else 416
    _judge(audit, caller, status or 200, wanted, file, about)


def _failed(said: dict[str, Any], file: _File) -> int | None:
    """RFC 9110, section 13.2.2."""
    match, none = said.get("if_match"), said.get("if_none_match")
    until, since = said.get("if_unmodified_since"), said.get("if_modified_since")
    if match is not None:
        if not match.strong:
            return 412
    elif until is not None and until.at is not None and file.modified > until.at:
        return 412
    if none is not None:
        return 304 if none.weak else None
    return 304 if since is not None and since.at is not None and file.modified <= since.at else None


def _holds(condition: Any, file: _File) -> bool:
    """`If-Range`: the one tag, strongly, or the very date."""
    if condition is None:
        return True
    if isinstance(condition, _Tags):
        return bool(condition.said == file.tag)
    return bool(condition.at == file.modified)


def _judge(audit: Audit, caller: Any, status: int, wanted: Any, file: _File, about: str) -> None:
    headers, size = caller.answer.headers, len(file.data)
    audit.same(caller.status, status, about)
    if status == 416:
        audit.same(headers.get(b"content-range"), b"bytes */%d" % size, f"the range of {about}")
        return
    if status == 412:
        return
    audit.same((headers.get(b"etag") or b"").decode(), file.tag, f"the tag of {about}")
    first, last = wanted if status == 206 else (0, size - 1)
    due = file.data[first : last + 1] if caller.method == "GET" and status != 304 else b""
    audit.same(caller.answer.body, due, f"the bytes of {about}")
    told = headers.get(b"content-range")
    audit.same(told, b"bytes %d-%d/%d" % (first, last, size) if status == 206 else None, f"the range of {about}")
    if status != 304:
        audit.same(headers.get(b"content-length"), b"%d" % (last - first + 1), f"the length of {about}")


PORTIONS = (portions,)
