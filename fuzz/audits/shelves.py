"""Media: what is put there, who makes room for whom, when each is over, how it is given, and what may not be had."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

from attrs import define

from fuzz.audit import Audit, header
from fuzz.audits.paired import Paired, pair
from fuzz.world import MAX_MEDIA
from runtimes.sim.disk import Special
from tests.support.sim_http import RequestClient as Caller

__all__ = ["SHELVES"]

QUOTA = 10  # of the largest files that uploads of one session may take
EDGE = 0.3  # s before or behind the end of a medium
FOLDER = "/tmp/audit"
ANY_TYPE = "application/octet-stream"
PNG, GIF = b"\x89PNG\r\n\x1a\n", b"GIF89a"
TYPES = (  # what is declared, and what the bytes begin with
    ("text/plain", b"hello"),
    ("image/png", GIF),
    ("image/gif", GIF),
    ("image/png", b"no image"),
    ("application/pdf", PNG),
    ("text/html; charset=utf-8", b"<p>"),
)
NAMES = (  # what is given, and what is shown of it
    ("a.txt", "a.txt"),
    ("/etc/x/b.png", "b.png"),
    ("c:\\dir\\c.gif", "c.gif"),
    ('q"u;o.txt', 'q"u;o.txt'),
    ("é n.txt", "é n.txt"),
    ("n\u0000\nl.txt", "nl.txt"),
    (f"{'x' * 300}.txt", "x" * 255),
    (None, None),
)
NO_FILES: tuple[tuple[object, str], ...] = (  # what is brought that is none, and its type
    ({"content_type": "text/plain", "content": ""}, ""), ({"content_type": "text/plain", "content": "QUJD="}, ""),
    ({"content_type": "text/plain"}, ""), ({"content": "QUJD"}, ""), ({"content_type": "x", "content": "QUJD"}, ""),
    ([], ""), (b"nonsense", ""), ({"content_type": "text/plain", "content": "QUJD", "file_name": 5}, ""),
    (b"--b\r\ncontent-disposition: form-data; name=\"other\"\r\n\r\nx\r\n--b--\r\n", "multipart/form-data; boundary=b"),
    (b"--b\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\nx", "multipart/form-data; boundary=b"),
    (b"x", "multipart/form-data"),
)  # fmt: skip
GUESSED = (("d.txt", "text/plain"), ("d.PNG", "image/png"), ("d", ANY_TYPE), ("d.tar.gz", "application/gzip"))


@define(eq=False)
class _Thing:
    """What is behind a token."""

    token: str
    data: bytes
    content_type: str
    name: str | None  # given by whoever put it there
    path: str
    wall: float
    since: float
    owner: Paired | None = None
    sensitive: bool = False
    accessed: float = 0.0
    took: float = 0.0  # s to put it there

    @property
    def served(self) -> str:
        """As an image of the kind that its first bytes tell, where it is said to be one."""
        kinds = {PNG: "image/png", GIF: "image/gif"}
        found = [kind for start, kind in kinds.items() if self.data.startswith(start)]
        return found[0] if found and self.content_type.startswith("image/") else self.content_type

    @property
    def shown_name(self) -> str:
        return self.name or self.path.rpartition("/")[2]


class _Shelf:
    """All that is there, least recently used first, and what was and is over."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.there: list[_Thing] = []
        self.gone: list[_Thing] = []
        self.brought = 0
        self.latest: tuple[str, bytes] | None = None
        audit.restart("relay")  # what others have put there is gone
        self.people = [pair(audit) for _ in range(2)]
        for one in self.people:
            one.seat.hang_up()
        self.ttl, self.cap = audit.world.shelf.ttl, audit.world.shelf.cap
        self.left = self.files()  # by a relay that was killed when the clock was ahead: nobody's

    def files(self) -> int:
        """Of uploads that are on the disk."""
        return len(self.audit.world.home.disk.files(self.audit.world.home.spool))

    def steps(self) -> None:
        audit = self.audit
        kinds = (self.upload, self.upload, self.register, *[self.fetch] * 3, self.wait, self.spoil, self.refuse)
        for _ in range(audit.rng.randint(12, 20)):
            audit.pick(kinds)()
            audit.pick((self.inspect, self.fetch_the_gone, self.count))()
        if audit.chance(0.2):
            self.overfill()

    def at_an_end(self) -> bool:
        """Whether one is over just now: when within its upload it was put there is not known."""
        now = self.audit.now
        return any(thing.since - thing.took + self.ttl <= now for thing in self.there)

    def live(self) -> list[_Thing]:
        """Those whose time is not over."""
        now = self.audit.now
        for thing in [thing for thing in self.there if now >= thing.since + self.ttl]:
            self.there.remove(thing)
            self.gone.append(thing)
        return self.there

    def put(self, thing: _Thing, told: dict[str, Any]) -> None:
        audit = self.audit
        thing.took = audit.wall - thing.wall
        audit.near(told["expires_at"], audit.wall + self.ttl, "the end of a medium")
        if any(thing.token == each.token for each in (*self.there, *self.gone)):
            audit.wrong(f"the token {thing.token} was given before")
        if len(self.live()) >= self.cap:
            self.gone.append(self.there.pop(0))
        self.there.append(thing)

    def upload(self, size: int = 0) -> None:
        audit, by = self.audit, self.audit.pick(self.people)
        declared, start = audit.pick(TYPES)
        given, shown = NAMES[0] if size else audit.pick(NAMES)
        data = start + audit.word().encode() + b"." * size
        if not (size or self.brought % 3):
            declared, data = self.latest or (declared, data)  # the very bytes that somebody has brought before
        self.brought += 1
        self.latest = declared, data
        low = audit.wall
        if size or (audit.chance(0.5) and (given is None or ('"' not in given and given.isprintable()))):
            told = self.upload_form(by, data, given, declared)
            given = given or "upload.bin"
            shown = shown or "upload.bin"
        else:
            body: dict[str, Any] = {"content_type": declared, "content": base64.b64encode(data).decode()}
            body |= {} if given is None else {"file_name": given}
            told = audit.right(audit.ask(by.token, "POST", "/media/upload", body), 200)
            shown = shown or "upload.bin"
        thing = _Thing(told["token"], data, declared, shown, "", low, audit.now, by, accessed=low)
        self.make_room(by, len(data))
        self.put(thing, told)

    def refuse(self) -> None:
        """What is no file, too large, or for which there is no room on the disk, is not kept."""
        audit, by, disk = self.audit, self.audit.pick(self.people), self.audit.world.home.disk
        before = self.files()
        for body, kind in audit.rng.sample(NO_FILES, 2):
            fields = {"content_type": kind} if kind else {}
            audit.right(audit.ask(by.token, "POST", "/media/upload", body, **fields), 400, about=f"a file {body!r:.80}")
        way = audit.rng.randrange(6)
        if way == 0:
            part = b'--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
            form = {"content_type": "multipart/form-data; boundary=b"}
            large = part + bytes(MAX_MEDIA + 1) + b"\r\n--b--\r\n"
            audit.right(audit.ask(by.token, "POST", "/media/upload", large, **form), 413, "too_large", "a large file")
        elif way == 1:
            before_that, audit.world.disk_trouble = audit.world.disk_trouble, True
            disk.fill()
            body = {"content_type": "text/plain", "content": "QUJD"}
            audit.right(audit.ask(by.token, "POST", "/media/upload", body), 500, "disk_full", "a disk that is full")
            disk.capacity = None
            audit.world.disk_trouble = before_that
        audit.rest(0.5)
        audit.same(max(self.files(), before), before, "files behind uploads that were refused")  # others may be over

    def make_room(self, by: Paired, size: int) -> None:
        """One's oldest uploads go where one has too much."""
        while True:
            mine = [thing for thing in self.live() if thing.owner is by]
            if sum(len(thing.data) for thing in mine) + size <= QUOTA * MAX_MEDIA:
                return
            oldest = min(mine, key=lambda thing: thing.since)
            self.there.remove(oldest)
            self.gone.append(oldest)

    def upload_form(self, by: Paired, data: bytes, name: str | None, declared: str) -> dict[str, Any]:
        named = "" if name is None else f'; filename="{name}"'.replace("\\", "\\\\")
        part = "--b\r\ncontent-disposition: form-data; name="
        head = f'{part}"other"\r\n\r\nx\r\n{part}"file"{named}'
        body = f"{head}\r\ncontent-type: {declared}\r\n\r\n".encode() + data + b"\r\n--b--\r\n"
        caller = self.audit.ask(by.token, "POST", "/media/upload", body, content_type="multipart/form-data; boundary=b")
        told: dict[str, Any] = self.audit.right(caller, 200)
        return told

    def register(self) -> None:
        audit = self.audit
        declared, start = audit.pick(TYPES)
        given, shown = audit.pick(NAMES)
        data, path = start + audit.word().encode(), f"{FOLDER}/{audit.word()}.bin"
        audit.world.home.disk.put(path, data)
        sensitive = audit.pick((None, None, True, False, 1, "on", "off"))
        body: dict[str, Any] = {"path": path, "content_type": declared}
        body |= {} if given is None else {"file_name": given}
        body |= {} if sensitive is None else {"sensitive": sensitive}
        low = audit.wall
        told = audit.right(audit.ask_here("POST", "/media/register", body), 200)
        marked = sensitive in (True, 1, "on")
        audit.same((told["ok"], told["sensitive"]), (True, marked), "a file that is registered")
        thing = _Thing(told["token"], data, declared, shown, path, low, audit.now, sensitive=marked, accessed=low)
        self.put(thing, told)

    def spoil(self) -> None:
        """A file of the host changes, goes, or becomes what may not be had."""
        audit, disk = self.audit, self.audit.world.home.disk
        files = [thing for thing in self.live() if thing.path]
        if not files:
            return
        thing = audit.pick(files)
        match audit.rng.randrange(4):
            case 0:
                thing.data = thing.data[:4] + audit.word().encode()
                disk.put(thing.path, thing.data)
                return
            case 1:
                disk.remove(thing.path)
            case 2:
                disk.put(thing.path, bytes(MAX_MEDIA + 1))
            case _:
                disk.put("/etc/audit", b"not yours")
                disk.symlink(thing.path, "/etc/audit")
        self.there.remove(thing)  # it is used by that, and used last
        self.there.append(thing)
        caller = audit.ask(audit.pick(self.people).token, "GET", f"/media/{thing.token}")
        audit.right(caller, 404, "not_found", "a file that may not be had any more")
        thing.accessed = audit.wall
        disk.put(thing.path, thing.data)

    def fetch(self) -> None:
        if self.live():
            thing = self.audit.pick(self.there)
            self.get(thing)

    def get(self, thing: _Thing) -> None:
        audit = self.audit
        method = audit.pick(("GET", "GET", "GET", "HEAD"))
        before = audit.now
        here = audit.chance(0.15)
        if here:
            caller = audit.ask_here(method, f"/media/inspect/{thing.token}")
        else:
            caller = audit.ask(audit.pick(self.people).token, method, f"/media/{thing.token}")
        if not before < thing.since + self.ttl <= audit.now + EDGE:
            self.check(caller, thing)
        elif caller.status != 200:
            return  # it was over by then
        self.there.remove(thing)
        self.there.append(thing)
        thing.accessed = audit.wall

    def check(self, caller: Caller, thing: _Thing) -> None:
        audit, headers = self.audit, caller.answer.headers
        audit.right(
            caller, 200, about=f"a medium {audit.now - thing.since:.1f} s old of {self.ttl} s, {len(self.there)} there"
        )
        if caller.method == "GET":
            audit.same(caller.answer.body, thing.data, "the bytes of a medium")
        named = "inline" if thing.name is None else _disposition(thing.name)
        told = {
            "content-type": thing.served,
            "content-disposition": named,
            "cache-control": "private, max-age=3600",
            "accept-ranges": "bytes",
            "x-media-sensitive": "1" if thing.sensitive else None,
            "content-length": str(len(thing.data)),
        }
        for name, value in told.items():
            found = headers.get(name.encode())
            audit.same(None if found is None else found.decode(), value, f"{name} of {thing.content_type}")

    def fetch_the_gone(self) -> None:
        audit = self.audit
        self.live()
        for thing in self.gone[-2:]:
            audit.right(
                audit.ask(audit.pick(self.people).token, "GET", f"/media/{thing.token}"),
                404,
                "not_found",
                "what is over",
            )
        if self.there:
            audit.right(audit.ask("", "GET", f"/media/{audit.pick(self.there).token}"), 401, "unauthorized")

    def wait(self) -> None:
        """Until one is nearly over, or just."""
        audit = self.audit
        if not self.live() or self.ttl > 1000:
            audit.rest(audit.pick((0.0, 2.0)))
            return
        thing = audit.pick(self.there)
        behind = audit.chance(0.5)
        audit.rest_until(thing.since + self.ttl + (EDGE if behind else -EDGE - 0.5))
        if behind:
            self.live()
            audit.right(
                audit.ask(self.people[0].token, "GET", f"/media/{thing.token}"), 404, "not_found", "what is over"
            )
        elif thing in self.live():
            self.get(thing)

    def inspect(self) -> None:
        audit, every = self.audit, self.audit.chance(0.5)
        query = (
            f"?include_expired={audit.pick(('1', 'true', 'yes'))}" if every else audit.pick(("", "?include_expired=0"))
        )
        before = [*self.live()]
        body = audit.right(audit.ask_here("GET", f"/media/inspect{query}"), 200)
        if self.at_an_end() or any(thing not in self.live() for thing in before):
            return  # one was over meanwhile
        shown = body["media"]
        times = [record["created_at"] for record in shown]
        audit.same(times, sorted(times, reverse=True), "media by their age")
        live = {record["token"]: record for record in shown if not record["is_expired"]}
        audit.same({*live}, {thing.token for thing in before}, f"the media that are there, {len(before)} of {self.cap}")
        over = {record["token"] for record in shown if record["is_expired"]}
        if not every and over:
            audit.wrong(f"{over} are over, and shown")
        if over - {thing.token for thing in self.gone}:
            audit.wrong(f"{over} are said to be over")
        for thing in before:
            record = dict(live[thing.token])
            audit.near(record.pop("created_at"), thing.wall, "when a medium was put there", 0.5 + thing.took)
            audit.near(record.pop("expires_at"), thing.wall + self.ttl, "when a medium will be over", 0.5 + thing.took)
            audit.near(record.pop("last_accessed"), thing.accessed, "when a medium was used last", 0.5 + thing.took)
            is_: dict[str, Any] = {
                "token": thing.token,
                "content_type": thing.content_type,
                "file_name": thing.shown_name,
            }
            is_ |= {"is_expired": False, "size": len(thing.data)}
            record["size"] = len(thing.data) if thing.path else record["size"]
            audit.same(record, is_, "a medium as it is shown")

    def count(self) -> None:
        audit = self.audit
        before = len(self.live())
        info = audit.right(audit.ask_here("GET", "/relay/info"), 200)
        if before == len(self.live()) and not self.at_an_end():
            audit.same(info["media_entry_count"], before, "how many media there are")
        audit.rest(1.0)
        uploads = sum(not thing.path for thing in self.live())
        there = self.files() - self.left
        audit.rest(0.1)
        if uploads == sum(not thing.path for thing in self.live()) and not self.at_an_end():
            audit.same(there, uploads, "how many files of uploads are on the disk")

    def overfill(self) -> None:
        """More than one session may have."""
        if self.cap < 100 or self.ttl < 1000:
            return
        self.people = self.people[:1]
        for _ in range(QUOTA + 1):
            self.upload(MAX_MEDIA - 100)
        self.inspect()
        self.fetch_the_gone()
        self.fetch()


def _disposition(name: str) -> str:
    """For old clients in ASCII, for the others as it is; nothing in it ends it (wire core 6.3)."""
    clean = "".join("_" if letter in '"\\;' else letter for letter in name)
    plain = "".join(letter if letter.isascii() else "_" for letter in clean)
    more = "" if plain == clean else f"; filename*=UTF-8''{quote(clean, safe='')}"
    return f'inline; filename="{plain}"{more}'


def shelves(audit: Audit) -> None:
    """Media come, are used, and are over."""
    _Shelf(audit).steps()


def paths(audit: Audit) -> None:
    """By its path a file of the roots may be had, and of nowhere else, whatever leads there."""
    disk, home = audit.world.home.disk, audit.world.home.state
    one = pair(audit, leaves=True)
    name, declared = audit.pick(GUESSED)
    good, data = f"{FOLDER}/{audit.word()}/{name}", audit.word().encode()
    disk.put(good, data)
    disk.put("/etc/passwd", b"not yours")
    disk.put("/srv/other.txt", b"not yours")
    disk.put(f"{home}/notes.txt", b"not yours")
    disk.put("/home/user/.ssh/id", b"not yours")
    disk.put(f"{FOLDER}/large", bytes(MAX_MEDIA + 1))
    disk.put(f"{FOLDER}/fits", bytes(MAX_MEDIA))
    disk.symlink(f"{FOLDER}/out", "/srv/other.txt")
    disk.symlink(f"{FOLDER}/in", good)
    disk._nodes[f"{FOLDER}/device"] = Special()
    rows: list[tuple[str, int, str, bytes]] = [
        (good, 200, "", data),
        (f" {good} ", 200, "", data),
        (f"{FOLDER}/../audit//{good[len(FOLDER) + 1 :]}", 200, "", data),
        (f"{FOLDER}/in", 200, "", data),
        (f"{FOLDER}/fits", 200, "", bytes(MAX_MEDIA)),
        ("", 400, "", b""),
        ("audit/a", 403, "", b""),
        ("/etc/passwd", 403, "", b""),
        (f"{FOLDER}/../../etc/passwd", 403, "", b""),
        ("/srv/other.txt", 403, "", b""),
        ("/srv/none.txt", 403, "", b""),
        ("/etc/none", 403, "", b""),
        (f"{home}/notes.txt", 403, "", b""),
        (f"{home}/svc.db", 403, "", b""),
        ("/home/user/.ssh/id", 403, "", b""),
        (f"{FOLDER}/out", 403, "", b""),
        (f"{FOLDER}/large", 403, "too_large", b""),
        (f"{FOLDER}/none", 404, "not_found", b""),
        (f"{FOLDER}/device", 404, "not_found", b""),
        (FOLDER, 404, "", b""),
        ("/tmpaudit", 403, "", b""),
    ]
    for path, status, code, content in audit.rng.sample(rows, 10):
        hint = audit.pick(("", "", "text/css"))
        marked = audit.pick(("", "", "1", "off"))
        query = f"?path={quote(path)}" + (f"&content_type={hint}" if hint else "") + f"&sensitive={marked}"
        caller = audit.ask(one.token, "GET", f"/media/by-path{query}")
        if status == 200:
            audit.right(caller, 200, about=f"the path {path!r}")
            audit.same(caller.answer.body[:80], content[:80], f"the file {path!r}")
            shown = caller.answer.headers.get(b"x-media-sensitive")
            audit.same(shown, b"1" if marked == "1" else None, f"whether it is marked, asked for by {marked!r}")
            if path == good:
                audit.same(
                    header(caller, "content-type"),
                    hint or declared,
                    f"the type of {name}",
                )
                fields = header(caller, "content-disposition")
                audit.same(fields, f'inline; filename="{name}"', "the name of a file")
        else:
            audit.right(caller, status, code or None, f"the path {path!r}")
        if status != 200 and audit.chance(0.4):
            body = {"path": path, "content_type": "text/plain"}
            audit.right(audit.ask_here("POST", "/media/register", body), 400, about=f"to register {path!r}")
    audit.right(audit.ask("", "GET", "/media/by-path"), 401, "unauthorized")
    del disk._nodes[f"{FOLDER}/device"]


SHELVES = (shelves, shelves, shelves, paths)
