"""The clipboard inbox and the notifications (wire core 7)."""

import base64
import re

import pytest

from svc_proto.commands import SweepFolder, WriteFile
from svc_proto.machines.inbox import IMAGE_LIMIT
from svc_proto.relay.routes.inbox import INBOX_BODY_LIMIT
from tests.relay.harness import REMOTE, PairedPhone, RelayHarness
from tests.support.core_harness import HOME as STATE
from tests.support.http_codec import Response

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
FOLDER = f"{STATE}/images/inbox"
NOTE = {"package_name": "org.example.mail", "title": "Hi", "text": None, "posted_at": 1795225960123, "key": "0|10123"}


def paste(book: RelayHarness, token: str | None, **members: object) -> Response:
    body = {"format": "png", "bytes_base64": base64.b64encode(PNG).decode(), "filename_hint": "shot", **members}
    return book.request("POST", "/clipboard/inbox", body, token=token, peer=REMOTE)


def test_a_paste_is_written_to_the_inbox_up_to_a_size(book: RelayHarness, paired: PairedPhone) -> None:
    answer = paste(book, paired.token, filename_hint="my shot/../é")
    assert answer.status == 200
    path = answer.json["path"]
    assert answer.json == {"ok": True, "path": path, "size_bytes": 108, "swept_stale": 0}
    assert re.fullmatch(rf"{FOLDER}/clip_20270115_080000_[0-9a-f]{{16}}_myshot\.png", path)
    assert book.disk.get(path) == PNG
    fits = base64.b64encode(PNG + bytes(IMAGE_LIMIT - len(PNG))).decode()
    assert paste(book, paired.token, bytes_base64=fits).json["size_bytes"] == IMAGE_LIMIT
    over = base64.b64encode(PNG + bytes(IMAGE_LIMIT - len(PNG) + 1)).decode()
    answer = paste(book, paired.token, bytes_base64=over)
    assert (answer.status, answer.json["ok"], answer.json["code"]) == (413, False, "too_large")
    answer = book.request("POST", "/clipboard/inbox", b" " * (INBOX_BODY_LIMIT + 1), token=paired.token)
    assert (answer.status, answer.json["code"]) == (413, "body_too_large")


def test_pastes_of_a_second_are_apart_and_swept_later(book: RelayHarness, paired: PairedPhone) -> None:
    assert paste(book, paired.token).json["path"] != paste(book, paired.token).json["path"]
    book.after(301)
    assert paste(book, paired.token).json["swept_stale"] == 2
    assert len(book.disk.paths(FOLDER)) == 1


def test_a_failing_disk(book: RelayHarness, paired: PairedPhone) -> None:
    book.refuse = (WriteFile,)
    answer = paste(book, paired.token)
    assert (answer.status, answer.json["ok"], answer.json["code"]) == (500, False, "disk_full")
    book.refuse, book.hold = (), (WriteFile,)
    call = book.call("POST", "/clipboard/inbox", {"format": "png", "bytes_base64": "iVBORw0KGgo="}, token=paired.token)
    book.after(31)
    assert (call.result.status, call.result.json["code"]) == (500, "write_failed")
    book.refuse, book.hold = (SweepFolder,), ()
    answer = paste(book, paired.token)
    assert (answer.status, answer.json["swept_stale"]) == (200, 0)
    assert "old images not deleted" in book.events()


def test_notifications_are_returned_unchanged(book: RelayHarness, paired: PairedPhone) -> None:
    paired.phone.send("notifications", "notification.posted", NOTE)
    paired.phone.send("notifications", "notification.posted", {"any": ["thing"]})
    assert paired.phone.envelopes() == []
    answer = book.request("GET", "/notifications/recent")
    assert answer.json == {"ok": True, "notifications": [{"any": ["thing"]}, NOTE], "count": 2}
    assert book.request("GET", "/notifications/recent?limit=1").json["notifications"] == [{"any": ["thing"]}]


@pytest.mark.parametrize("payload", [None, {}, [1], "text", {"text": "x" * 20_000}])
def test_invalid_notifications_are_dropped(book: RelayHarness, paired: PairedPhone, payload: object) -> None:
    paired.phone.send("notifications", "notification.posted", payload)
    paired.phone.send("notifications", "notification.removed", NOTE)
    assert book.request("GET", "/notifications/recent").json["count"] == 0
    assert paired.phone.envelopes() == []
    assert paired.phone.is_open
