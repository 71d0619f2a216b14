"""The media routes: registration, upload, inspection, expiry and quotas (wire core 6)."""

import base64
import json

import pytest

from svc_proto import commands
from svc_proto.relay.media.media_service import MIB
from svc_proto.relay.media.upload_body import MIN_FREE_BYTES
from svc_proto.relay.routes import media
from svc_proto.relay_config import RelayConfig
from svc_proto.wire.multipart import Part
from tests.relay.harness import REMOTE, START, PairedPhone, RelayHarness
from tests.relay.routes.media_harness import (
    FORM,
    PNG,
    TEXT,
    clean,
    form,
    open_book,
    paired_book,
    register,
    start,
    upload_json,
)
from tests.relay.routes.media_harness import book as book
from tests.support.core_harness import SPOOL


def test_register_and_fetch(book: RelayHarness, paired: PairedPhone) -> None:
    body = {"path": "/tmp/a.txt", "content_type": "text/plain", "file_name": "/x/notes.txt"}
    answer = book.request("POST", "/media/register", body)
    token = answer.json["token"]
    assert answer.json == {"ok": True, "token": token, "expires_at": book.now.wall + 86_400, "sensitive": False}
    assert len(token) == 22
    got = book.request("GET", f"/media/{token}", token=paired.token, peer=REMOTE)
    assert (got.status, got.body) == (200, TEXT)
    names = (b"content-type", b"content-disposition", b"cache-control", b"last-modified", b"accept-ranges")
    assert [got.headers.get(name) for name in names] == [
        *(b"text/plain", b'inline; filename="notes.txt"', b"private, max-age=3600"),
        *(b"Fri, 15 Jan 2027 08:00:00 GMT", b"bytes"),
    ]
    clean(book)


@pytest.mark.parametrize("path", ["/tmp/a.txt", "/private/tmp/a.txt", "/tmp/in", "/srv/shared/b.bin", "/tmp//./a.txt"])
def test_registrable_paths(book: RelayHarness, path: str) -> None:
    register(book, path)
    clean(book)


BASE = {"path": "/tmp/a.txt", "content_type": "text/plain"}


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({**BASE, "content_type": "text/plain\r\nx: y"}, "invalid_field", "content_type"),
        ({**BASE, "path": ["/tmp/a.txt"]}, "invalid_field", "path"),
        ({**BASE, "path": "tmp/a.txt"}, "relative_path", "path"),
        ({**BASE, "path": "/tmp/evil"}, "outside_roots", "path"),
        ({**BASE, "path": "/tmp/a\0b"}, "not_found", "path"),
        ({**BASE, "path": "/tmp/fifo"}, "not_found", "path"),
        ({**BASE, "file_name": 5}, "invalid_field", "file_name"),
        ({**BASE, "sensitive": 1.5}, "invalid_field", "sensitive"),
    ],
)
def test_every_refusal_of_register_is_a_400(book: RelayHarness, body: object, code: str, field: str) -> None:
    answer = book.request("POST", "/media/register", body)
    assert (answer.status, answer.json["ok"], answer.json["code"]) == (400, False, code)
    assert answer.json["field"] == field
    clean(book)


def test_register_too_large_and_unreadable() -> None:
    book = open_book(media_max_size_mb=1)
    book.disk.put("/private/tmp/fits", bytes(MIB))
    book.disk.put("/private/tmp/big", bytes(MIB + 1))
    register(book, "/private/tmp/a.txt")
    register(book, "/tmp/fits")
    answer = book.request("POST", "/media/register", {**BASE, "path": "/tmp/big"})
    assert (answer.status, answer.json["code"], answer.json["limit"]) == (400, "too_large", MIB)
    book.disk.denied.add("/private/tmp/a.txt")
    answer = book.request("POST", "/media/register", BASE)
    assert (answer.status, answer.json["code"]) == (400, "unreadable")
    clean(book)


@pytest.mark.parametrize(("value", "expected"), [(True, True), ("no", False), (None, False)])
def test_sensitive(book: RelayHarness, paired: PairedPhone, value: object, expected: bool) -> None:
    token = register(book, sensitive=value)
    got = book.request("GET", f"/media/{token}", token=paired.token)
    assert (got.headers.get(b"x-media-sensitive") == b"1") is expected


def test_upload_as_json_leaves_room_on_the_disk(book: RelayHarness, paired: PairedPhone) -> None:
    answer = upload_json(book, paired.token, file_name="../p.TXT")
    assert (answer.status, list(answer.json)) == (200, ["ok", "token", "expires_at"])
    (path,) = book.uploads
    assert path.endswith(".txt")
    got = book.request("GET", f"/media/{answer.json['token']}", token=paired.token)
    assert (got.body, got.headers.get(b"content-disposition")) == (TEXT, b'inline; filename="p.TXT"')
    assert "media uploaded" in book.events()
    clean(book)
    book.request("POST", "/media/upload", form(Part(name="file", data=TEXT)), token=paired.token, headers=[FORM])
    assert [each.min_free_bytes for each in book.commands if isinstance(each, commands.CreateBlob)] == [
        MIN_FREE_BYTES
    ] * 2


@pytest.mark.parametrize(
    ("part", "content_type", "disposition", "suffix"),
    [
        (Part(name="file", data=PNG, filename="s.png", content_type="image/png"), b"image/png", b"s.png", ".png"),
        (Part(name="file", data=TEXT), b"application/octet-stream", b"upload.bin", ".bin"),
        (Part(name="file", data=TEXT, filename="s.VCF"), b"text/vcard", b"s.VCF", ".vcf"),
        (Part(name="file", data=TEXT, filename="x"), b"application/octet-stream", b"x", ""),
        (Part(name="file", data=b"", filename="/a/b.t_t"), b"application/octet-stream", b"b.t_t", ""),
    ],
)
def test_upload_as_a_form(
    book: RelayHarness, paired: PairedPhone, part: Part, content_type: bytes, disposition: bytes, suffix: str
) -> None:
    others = Part(name="note", data=b"x" * 100), Part(name="file", data=b"a second one")
    body = form(others[0], part, others[1])
    answer = book.request("POST", "/media/upload", body, token=paired.token, headers=[FORM], peer=REMOTE)
    assert answer.status == 200, answer
    (path,) = book.uploads
    assert path.rpartition("/")[2].partition(".")[2] == suffix[1:]
    got = book.request("GET", f"/media/{answer.json['token']}", token=paired.token)
    assert (got.body, got.headers.get(b"content-type")) == (part.data, content_type)
    assert got.headers.get(b"content-disposition") == b'inline; filename="%s"' % disposition
    clean(book)


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ([FORM], b"--xyz\r\nno", "invalid_multipart"),
        ([(b"content-type", b"multipart/form-data")], b"x", "invalid_multipart"),
        ([FORM], form(Part(name="other", data=b"x")), "invalid_field"),
        ([FORM], form(Part(name="file", data=b"x", content_type="nonsense")), "invalid_field"),
        ([FORM], form(Part(name="file", data=b"x"))[:-6], "invalid_multipart"),
    ],
)
def test_bad_uploads(
    book: RelayHarness, paired: PairedPhone, headers: list[tuple[bytes, bytes]], body: bytes, code: str
) -> None:
    answer = book.request("POST", "/media/upload", body, token=paired.token, headers=headers, peer=REMOTE)
    assert (answer.status, answer.json["ok"], answer.json["code"]) == (400, False, code)
    assert answer.json.get("field", "file") == "file"
    assert book.uploads == []
    clean(book)


def test_uploads_have_limits_by_their_form(monkeypatch: pytest.MonkeyPatch) -> None:
    book, paired = paired_book(media_max_size_mb=1)
    fits = form(Part(name="file", data=bytes(MIB)))
    assert book.request("POST", "/media/upload", fits, token=paired.token, headers=[FORM]).status == 200
    uploads = book.uploads
    body = form(Part(name="file", data=bytes(MIB + 1)))
    answer = book.request("POST", "/media/upload", body, token=paired.token, headers=[FORM])
    assert (answer.status, answer.json["code"], answer.json["limit"]) == (413, "too_large", MIB)
    answer = upload_json(book, paired.token, content=base64.b64encode(bytes(MIB + 1)).decode())
    assert (answer.status, answer.json["code"]) == (413, "too_large")
    assert book.uploads == uploads
    clean(book)
    monkeypatch.setattr(media, "JSON_LIMIT", 100)
    book, paired = paired_book()
    body = json.dumps({"content": "aQ==", "content_type": "text/plain"}).encode().ljust(100)
    assert book.request("POST", "/media/upload", body, token=paired.token).status == 200
    answer = book.request("POST", "/media/upload", body + b" ", token=paired.token)
    assert (answer.status, answer.json["code"], answer.json["limit"]) == (413, "too_large", 100)
    assert "multipart/form-data" in answer.json["error"]
    head = b"POST /media/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 900000000\r\nAuthorization: Bearer %s\r\n\r\n"
    refused = book.raw(head % paired.token.encode()).result
    assert (refused.status, refused.json["code"]) == (413, "body_too_large")
    clean(book)


@pytest.mark.parametrize("step", [commands.CreateBlob, commands.WriteBlob, commands.FinishBlob, commands.OpenFile])
@pytest.mark.parametrize("how", ["fails", "is left", "is late"])
def test_failed_upload_leaves_no_file(step: type, how: str) -> None:
    book, paired = paired_book(files=False)
    body = form(Part(name="file", data=TEXT))
    book.hold = (step,)
    call = book.call("POST", "/media/upload", body, token=paired.token, headers=[FORM], peer=REMOTE)
    if how == "fails":
        book.release(fail=True)
        answer = call.result
        assert (answer.status, answer.json["code"]) == (500, "disk_full")
    elif how == "is left":
        call.vanish()
    else:
        book.after(121)
        assert (call.result.status, call.result.json["code"]) == (500, "write_failed")
    assert book.uploads == []
    clean(book)


def test_registrations_end_by_age_or_by_number() -> None:
    book, paired = paired_book(media_ttl_seconds=60)
    upload_json(book, paired.token)
    book.after(10.0)
    token = upload_json(book, paired.token).json["token"]
    path = register(book)
    book.after(59.9)
    assert len(book.uploads) == 1
    assert book.request("GET", f"/media/{token}", token=paired.token).status == 200
    assert len(book.request("GET", "/media/inspect").json["media"]) == 2
    book.after(0.2)
    assert book.uploads == []
    for each in (token, path):
        assert book.request("GET", f"/media/{each}", token=paired.token).status == 404
    assert book.disk.exists("/tmp/a.txt")
    assert book.request("GET", "/media/inspect").json == {"media": []}
    assert book.request("GET", "/relay/info").json["media_entry_count"] == 0
    book, paired = paired_book(media_lru_cap=1)
    first = upload_json(book, paired.token).json["token"]
    register(book)
    assert book.request("GET", f"/media/{first}", token=paired.token).status == 404
    assert book.uploads == []
    assert book.request("GET", "/relay/info").json["media_entry_count"] == 1
    assert len(book.request("GET", "/media/inspect?include_expired=yes").json["media"]) == 1  # the other was evicted


def test_inspection_lists_entries_and_expired_ones_on_request() -> None:
    book = open_book(media_ttl_seconds=60)
    one = register(book)
    book.after(10)
    two = register(book, "/tmp/shot.png", content_type="image/png", file_name="/x/named.png")
    book.after(5)
    book.request("GET", f"/media/{one}", token=book.pair().token)
    answer = book.request("GET", "/media/inspect")
    newer, older = answer.json["media"]
    assert (newer["token"], newer["file_name"], newer["content_type"]) == (two, "named.png", "image/png")
    assert (newer["size"], newer["is_expired"], newer["expires_at"]) == (32, False, START.wall + 70)
    assert newer["created_at"] == newer["last_accessed"] == START.wall + 10
    assert (older["token"], older["file_name"], older["last_accessed"]) == (one, "a.txt", START.wall + 15)
    assert b"/tmp" not in answer.body
    shot = book.request("GET", f"/media/inspect/{two}")  # for the dashboard of this host, which has no session
    assert (shot.status, len(shot.body), shot.headers.get(b"content-type")) == (200, 32, b"image/png")
    for path in ("/media/inspect", f"/media/inspect/{two}"):
        assert book.request("GET", path, peer=REMOTE).status == 403
    book.after(46)
    assert [entry["token"] for entry in book.request("GET", "/media/inspect").json["media"]] == [two]
    shown = book.request("GET", "/media/inspect?include_expired=yes").json["media"]
    assert [(entry["token"], entry["is_expired"]) for entry in shown] == [(two, False), (one, True)]


def test_uploads_are_deleted_at_the_start_and_the_end() -> None:
    book, paired = paired_book()
    upload_json(book, paired.token)
    register(book)
    book.stop()
    assert book.uploads == []
    assert len([command for command in book.commands if isinstance(command, commands.DeleteBlob)]) == 1
    book = RelayHarness(RelayConfig(home="/home/svc"), started=False)
    book.disk.put(f"{SPOOL}/old", TEXT)
    book.now = book.now.at(book.now.mono + 1)
    start(book)
    assert book.uploads == []
    book = RelayHarness(started=False)
    book.refuse = (commands.SweepFolder,)
    start(book)
    assert "old uploads not deleted" in book.events()


def test_no_secret_and_no_path_is_logged(book: RelayHarness, paired: PairedPhone) -> None:
    token = upload_json(book, paired.token, file_name="private.txt").json["token"]
    register(book, file_name="private.txt")
    book.request("GET", f"/media/{token}", token=paired.token)
    logged = repr(book.logs)
    assert token not in logged
    assert "private.txt" not in logged
    assert "/tmp" not in logged
    assert book.leaks() == []
    assert [command for command in book.commands if isinstance(command, commands.DiscardBlob)] == []
    assert len([command for command in book.commands if isinstance(command, commands.ReleaseFile)]) >= 3


def test_uploads_of_a_session_have_a_quota() -> None:
    """Limit a session to ten of the largest files: one more upload removes its oldest, and none of another session."""
    book = open_book(media_max_size_mb=1)
    one, other = book.pair(), book.pair()
    theirs = upload_json(book, other.token).json["token"]
    content = base64.b64encode(bytes(MIB)).decode()
    tokens = [upload_json(book, one.token, content=content).json["token"] for _ in range(11)]
    assert book.disk.used <= 10 * MIB + len(TEXT) + 1_000

    def status(token: str) -> int:
        return book.request("GET", f"/media/{token}", token=one.token, peer=REMOTE).status

    assert [status(token) for token in (tokens[0], tokens[1], tokens[-1], theirs)] == [404, 200, 200, 200]
    clean(book)
    book, paired = paired_book(media_max_size_mb=1)
    (session,) = book.relay.sessions.active(book.now)
    book.relay.media.reserve_quota(session.token_hash, 10 * MIB)
    refused = upload_json(book, paired.token)
    assert (refused.status, refused.json["code"]) == (507, "quota_exceeded")
    assert book.uploads == []
    book.relay.media.uploads.release_quota(session.token_hash, 10 * MIB)
    assert upload_json(book, paired.token).status == 200
    clean(book)
