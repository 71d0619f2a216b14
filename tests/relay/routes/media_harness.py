"""Relay with files on its simulated host, and the requests of the media tests."""

import base64
from collections import Counter
from typing import Any

import pytest

from svc_proto.facts import Started
from svc_proto.relay.media.media_service import MediaService
from svc_proto.relay_config import RelayConfig
from svc_proto.wire.multipart import Part, encode_multipart
from tests.relay.harness import REMOTE, PairedPhone, RelayHarness
from tests.support.http_codec import Response

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(24))
TEXT = b"0123456789"
FORM = (b"content-type", b"multipart/form-data; boundary=xyz")
HOME = "/home/me"


def open_book(*, files: bool = True, **config: Any) -> RelayHarness:
    """Start a relay whose `/tmp` is a link; `files` adds files, links and a FIFO in and outside of its roots."""
    settings = RelayConfig(
        home="/home/svc",
        config_path="/home/svc/config.yaml",
        workspace="/home/svc/workspace",
        user_home=HOME,
        **{"media_allowed_roots": ("/srv/shared",), **config},
    )
    book = RelayHarness(settings, started=False)
    disk = book.disk
    disk.folder("/private/tmp")
    disk.symlink("/tmp", "/private/tmp")
    if files:
        disk.put("/private/tmp/a.txt", TEXT)
        disk.put("/private/tmp/shot.png", PNG)
        disk.put("/srv/shared/b.bin", TEXT)
        disk.put("/etc/passwd", b"root")
        disk.put(f"{HOME}/notes.txt", b"mine")
        disk.folder("/private/tmp/folder")
        disk.special("/private/tmp/fifo")
        disk.symlink("/private/tmp/evil", "/etc/passwd")
        disk.symlink("/private/tmp/out", HOME)
        disk.symlink("/private/tmp/in", "/srv/shared/b.bin")
        disk.symlink("/private/tmp/loop", "loop")
    start(book)
    return book


def paired_book(**config: Any) -> tuple[RelayHarness, PairedPhone]:
    """Return a relay with the files of `open_book`, and a phone that it has paired."""
    book = open_book(**config)
    return book, book.pair()


def start(book: RelayHarness) -> None:
    book.feed(Started())
    assert book.ready


@pytest.fixture
def book() -> RelayHarness:
    return open_book()


def register(book: RelayHarness, path: str = "/tmp/a.txt", **members: object) -> str:
    answer = book.request("POST", "/media/register", {"path": path, "content_type": "text/plain", **members})
    assert answer.status == 200, answer
    return str(answer.json["token"])


def by_path(book: RelayHarness, token: str, path: str, *fields: tuple[bytes, bytes], method: str = "GET") -> Response:
    return book.request(method, f"/media/by-path?path={path}", token=token, headers=fields, peer=REMOTE)


def form(*parts: Part) -> bytes:
    return encode_multipart(parts, "xyz")


def check_quota(media: MediaService) -> None:
    """Require that each owner's used quota is the size of its uploads."""
    used = Counter[str]()
    for upload in media.uploads._owned.values():
        used[upload.owner] += upload.size
    assert media.uploads._used == +used


def clean(book: RelayHarness) -> None:
    """Require that no handle is open, each owner's used quota is the size of its uploads, and no bug was logged."""
    check_quota(book.relay.media)
    assert book.node.operations.open_handles == 0
    assert "bug" not in book.events()


def upload_json(book: RelayHarness, token: str, **members: object) -> Response:
    body = {"file_name": "p.txt", "content_type": "text/plain", "content": base64.b64encode(TEXT).decode(), **members}
    return book.request("POST", "/media/upload", body, token=token, peer=REMOTE)
