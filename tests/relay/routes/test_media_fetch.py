"""Fetching media by token and by path (wire core 6.3 and 6.4)."""

import pytest

from svc_proto.commands import OpenFile, ReadFile, SendFile
from svc_proto.relay.media.media_service import MAX_DEPTH, MIB
from tests.relay.harness import PairedPhone, RelayHarness
from tests.relay.routes.media_harness import HOME, PNG, TEXT, by_path, clean, paired_book, register, upload_json
from tests.relay.routes.media_harness import book as book


@pytest.mark.parametrize("word", ["register", "upload", "by-path", "inspect"])
def test_reserved_path_names_precede_tokens(book: RelayHarness, paired: PairedPhone, word: str) -> None:
    answer = book.request("GET", f"/media/{word}", token=paired.token)
    assert answer.status == {"register": 405, "upload": 405, "by-path": 400, "inspect": 200}[word]
    assert book.request("PUT", "/media/x").status == 405


def test_tokens_serve_the_current_content(book: RelayHarness, paired: PairedPhone) -> None:
    answer = book.request("GET", "/media/nope", token=paired.token)
    assert (answer.status, answer.json["code"]) == (404, "not_found")
    token = register(book)
    first = book.request("GET", f"/media/{token}", token=paired.token)
    book.after(5)
    book.disk.put("/private/tmp/a.txt", b"new")
    second = book.request("GET", f"/media/{token}", token=paired.token)
    assert (first.body, second.body) == (TEXT, b"new")
    assert first.headers.get(b"etag") != second.headers.get(b"etag")


def test_removed_or_replaced_files_give_404(book: RelayHarness, paired: PairedPhone) -> None:
    book, paired = paired_book(media_max_size_mb=1)
    token = register(book)
    for change in (
        lambda: book.disk.remove("/private/tmp/a.txt"),
        lambda: book.disk.symlink("/private/tmp/a.txt", "/etc/passwd"),
        lambda: book.disk.special("/private/tmp/a.txt"),
        lambda: book.disk.put("/private/tmp/a.txt", bytes(MIB + 1)),
    ):
        change()
        answer = book.request("GET", f"/media/{token}", token=paired.token)
        assert (answer.status, answer.json["code"]) == (404, "not_found")
    clean(book)
    book, paired = paired_book()
    token = upload_json(book, paired.token).json["token"]
    (path,) = book.uploads
    book.disk.symlink(path, "/private/tmp/a.txt")
    assert book.request("GET", f"/media/{token}", token=paired.token).status == 404
    book.disk.special(path)
    assert book.request("GET", f"/media/{token}", token=paired.token).status == 404
    clean(book)


@pytest.mark.parametrize(
    ("paths", "status", "code"),
    [
        ([""], 400, "invalid_field"),
        (["a.txt"], 403, "relative_path"),
        (["/etc/passwd", f"{HOME}/nothing", "/tmp/evil", "/tmp/out/nothing"], 403, "outside_roots"),
        (["/tmp/nothing/../../etc/passwd", "/tmp/" + "x/" * (MAX_DEPTH + 1)], 403, "outside_roots"),
        (["/tmp/folder", "/tmp/fifo", "/tmp/nothing", "/tmp/a.txt/x", "/tmp/loop"], 404, "not_found"),
        (["/home/svc/workspace/x", "/tmp/a%00b"], 404, "not_found"),
    ],
)
def test_refusals_by_path(book: RelayHarness, paired: PairedPhone, paths: list[str], status: int, code: str) -> None:
    for path in paths:
        answer = by_path(book, paired.token, path)
        assert (answer.status, answer.json["ok"], answer.json["code"]) == (status, False, code)
        assert status != 400 or answer.json["field"] == "path"
        clean(book)


def test_files_that_are_protected_or_cannot_be_read(book: RelayHarness, paired: PairedPhone) -> None:
    book.commands.clear()
    by_path(book, paired.token, "/dev/watchdog")
    by_path(book, paired.token, "/tmp/../proc/self/environ")
    opened = [command.path for command in book.commands if isinstance(command, OpenFile)]
    assert not [path for path in opened if "dev" in path or "proc" in path]
    book, paired = paired_book(media_max_size_mb=1)
    book.disk.put("/private/tmp/big", bytes(MIB + 1))
    refused = by_path(book, paired.token, "/tmp/big")
    assert (refused.status, refused.json["code"]) == (403, "too_large")
    book.disk.denied |= {"/private/tmp/a.txt", "/etc/passwd", f"{HOME}/notes.txt"}
    for path, code in (
        ("/tmp/a.txt", "unreadable"),
        ("/etc/passwd", "outside_roots"),
        (f"{HOME}/notes.txt", "outside_roots"),
    ):
        answer = by_path(book, paired.token, path)
        assert (answer.status, answer.json["code"]) == (403, code)
    clean(book)
    book.refuse = (OpenFile,)
    assert by_path(book, paired.token, "/tmp/a.txt").json["code"] == "outside_roots"


@pytest.mark.parametrize(
    ("query", "content_type"),
    [
        ("/tmp/a.txt", b"text/plain"),
        ("/tmp/shot.png", b"image/png"),
        ("/srv/shared/b.bin", b"application/octet-stream"),
        ("/tmp/photo", b"image/png"),  # a name without an extension: by the first bytes
        ("/tmp/photo&content_type=application/octet-stream", b"image/png"),
        ("/tmp/a.txt&content_type=", b"text/plain"),
        ("/tmp/a.txt&content_type=text/markdown", b"text/markdown"),
        ("/tmp/shot.png&content_type=image/jpeg", b"image/png"),
        ("/tmp/shot.png&content_type=image/PNG;a=b", b"image/PNG;a=b"),
        ("/tmp/a.txt&content_type=image/gif", b"image/gif"),
        ("/tmp/shot.png&content_type=text/plain", b"text/plain"),
    ],
)
def test_the_type_by_path(book: RelayHarness, paired: PairedPhone, query: str, content_type: bytes) -> None:
    book.disk.put("/private/tmp/photo", PNG)
    for method in ("GET", "HEAD"):
        answer = by_path(book, paired.token, query, method=method)
        assert (answer.status, answer.headers.get(b"content-type")) == (200, content_type)
    clean(book)


def test_the_query_and_an_unreadable_image(book: RelayHarness, paired: PairedPhone) -> None:
    answer = by_path(book, paired.token, "%20/tmp/in%20&sensitive=yes")
    assert answer.headers.get(b"x-media-sensitive") == b"1"
    assert answer.headers.get(b"content-disposition") == b'inline; filename="b.bin"'  # the name of the link's target
    answer = by_path(book, paired.token, "/tmp/a.txt&content_type=no%0D%0A")
    assert (answer.status, answer.json["field"]) == (400, "content_type")
    book.refuse = (ReadFile,)
    answer = by_path(book, paired.token, "/tmp/shot.png&content_type=image/gif")
    assert answer.headers.get(b"content-type") == b"image/gif"


@pytest.mark.parametrize(
    ("first", "status", "body", "content_range"), [(5, 206, b"56789", b"bytes 5-9/10"), (10, 416, None, b"bytes */10")]
)
def test_ranges(
    book: RelayHarness, paired: PairedPhone, first: int, status: int, body: bytes | None, content_range: bytes
) -> None:
    field = (b"range", b"bytes=%d-" % first)
    answer = by_path(book, paired.token, "/tmp/a.txt", field)
    assert (answer.status, answer.headers.get(b"content-range")) == (status, content_range)
    assert answer.body == body if body else answer.json["code"] == "range_not_satisfiable"
    head = by_path(book, paired.token, "/tmp/a.txt", field, method="HEAD")
    assert (head.status, head.headers.get(b"content-length")) == (200, b"10")  # RFC 9110 section 14.2
    clean(book)


def test_conditional_requests(book: RelayHarness, paired: PairedPhone) -> None:
    """Answer 304 and 412 without the file; tests/wire/test_conditional_requests.py has the conditions themselves."""
    tag = by_path(book, paired.token, "/tmp/a.txt").headers.get(b"etag") or b""
    for method in ("GET", "HEAD"):
        answer = by_path(book, paired.token, "/tmp/a.txt", (b"if-none-match", tag), method=method)
        assert (answer.status, answer.body, answer.headers.get(b"etag")) == (304, b"", tag)
        assert answer.headers.get(b"content-length") is None
        answer = by_path(book, paired.token, "/tmp/a.txt", (b"if-match", b'"other"'), method=method)
        assert (answer.status, answer.headers.get(b"etag"), bool(answer.body)) == (412, None, method == "GET")
    part = (b"range", b"bytes=0-0")
    for field, status, body in (
        ((b"if-range", tag), 206, b"0"),
        ((b"if-range", b'"other"'), 200, TEXT),
        ((b"if-none-match", tag), 304, b""),
    ):
        answer = by_path(book, paired.token, "/tmp/a.txt", part, field)
        assert (answer.status, answer.body) == (status, body)
    clean(book)


def test_empty_files_and_odd_modification_times(book: RelayHarness, paired: PairedPhone) -> None:
    book.disk.put("/private/tmp/empty", b"")
    answer = by_path(book, paired.token, "/tmp/empty")
    assert (answer.status, answer.body, answer.headers.get(b"content-length")) == (200, b"", b"0")
    assert by_path(book, paired.token, "/tmp/empty", (b"range", b"bytes=0-")).status == 416
    clean(book)
    for modified, year in ((1e15, b"9999"), (-5.0, b"1970")):
        book.disk.put("/private/tmp/odd", TEXT).modified = modified
        answer = by_path(book, paired.token, "/tmp/odd")
        assert year in (answer.headers.get(b"last-modified") or b"")


def test_non_ascii_names(book: RelayHarness, paired: PairedPhone) -> None:
    book.disk.put("/private/tmp/Grüße;\udcff\x07.png", PNG)
    token = register(book, "/tmp/a.txt", file_name='Grü"ße.txt')
    got = book.request("GET", f"/media/{token}", token=paired.token)
    disposition = got.headers.get(b"content-disposition") or b""
    assert disposition == b"inline; filename=\"Gr___e.txt\"; filename*=UTF-8''Gr%C3%BC_%C3%9Fe.txt"
    book.disk.put("/private/tmp/caf\udce9.txt", TEXT)  # the byte E9: a name that is no UTF-8
    got = by_path(book, paired.token, "/tmp/caf%E9.txt")
    assert (got.body, got.headers.get(b"content-type")) == (TEXT, b"text/plain")
    assert by_path(book, paired.token, "/tmp/caf%C3%A9.txt").status == 404
    book.disk.symlink("/private/tmp/link", "Grüße;\udcff\x07.png")
    got = by_path(book, paired.token, "/tmp/link")
    disposition = got.headers.get(b"content-disposition") or b""
    assert disposition == b"inline; filename=\"Gr__e__.png\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe_%3F.png"
    assert (got.body, got.headers.get(b"content-type")) == (PNG, b"image/png")
    token = register(book, "/tmp/a.txt", file_name="\x07\n")
    assert book.request("GET", f"/media/{token}", token=paired.token).headers.get(b"content-disposition") == b"inline"


def test_disconnected_caller_leaves_no_open_file(book: RelayHarness, paired: PairedPhone) -> None:
    for step in (OpenFile, ReadFile, SendFile):
        book.hold = (step,)
        call = book.call("GET", "/media/by-path?path=/tmp/shot.png", token=paired.token)
        assert len(book.held) == 1
        call.vanish()
        book.hold = ()
        assert book.held == []
        clean(book)
