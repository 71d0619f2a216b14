import pytest

from svc_proto.api.gateway import attachment_files, attachments
from svc_proto.commands import CreateBlob, OpenFile
from tests.api.gateway.test_attachments import OTHER, PNG
from tests.api.gateway_client import open_chat, open_gateway
from tests.api.scripted_agent import TurnHarness
from tests.support.core_harness import HOME, SPOOL


def waiting_files(book: TurnHarness) -> int:
    """Return the number of files in the spool folder."""
    return len(book.disk.files(SPOOL))


def test_images_wait_in_files() -> None:
    book, phone, session = open_chat()
    own = {"session_id": session}
    for content in (PNG, OTHER, PNG):
        phone.call("image.attach_bytes", content_base64=content, filename="a.png", **own)
    assert waiting_files(book) == 2
    phone.call("image.detach", path="a.png", **own)
    assert waiting_files(book) == 1
    phone.call("prompt.submit", text="Look", **own)
    assert waiting_files(book) == 0
    phone.call("image.attach_bytes", content_base64=PNG, **own)
    phone.call("prompt.submit", text="And this?", **own)
    assert waiting_files(book) == 1
    book.hand.finish()
    assert waiting_files(book) == 0
    assert f"base64,{PNG}" in str(book.hand.turn.prompt)


def test_an_image_that_is_sent_twice_at_once_is_one_file() -> None:
    book, phone, session = open_chat()
    book.hold = (CreateBlob,)
    calls = [phone.begin("image.attach_bytes", session_id=session, content_base64=PNG) for _ in range(2)]
    book.hold = ()
    book.release()
    assert [phone.answers[call]["result"]["count"] for call in calls] == [1, 1]
    assert waiting_files(book) == 1


def test_images_that_are_stored_at_once_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    book, phone, session = open_chat()
    monkeypatch.setattr(attachments, "MAX_ATTACHMENTS", 1)
    book.hold = (CreateBlob,)
    calls = [phone.begin("image.attach_bytes", session_id=session, content_base64=each) for each in (PNG, OTHER)]
    book.hold = ()
    book.release()
    assert phone.answers[calls[0]]["result"]["count"] == 1
    assert phone.answers[calls[1]]["error"]["code"] == 4002
    assert waiting_files(book) == 1


def test_a_disk_that_fails() -> None:
    book, phone, session = open_chat()
    own = {"session_id": session}
    book.refuse = (CreateBlob,)
    assert "disk" in phone.refusal("image.attach_bytes", content_base64=PNG, **own)[1]
    book.refuse = ()
    phone.call("image.attach_bytes", content_base64=PNG, **own)
    book.refuse = (OpenFile,)
    assert phone.refusal("prompt.submit", text="Look", **own)[0] == 5008
    assert waiting_files(book) == 0


def test_files_of_an_ended_process_are_deleted() -> None:
    book, folder = TurnHarness(), f"{HOME}/{attachment_files.SPOOL}"
    book.disk.put(f"{folder}/old.image", b"x")
    book.after(90_000.0)
    book.disk.put(f"{folder}/new.image", b"x")
    open_gateway(book)
    assert [*book.disk.files(folder)] == ["new.image"]
