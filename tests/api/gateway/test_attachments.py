from base64 import b64encode
from functools import partial

import pytest

from runtimes.failures import HostError
from svc_proto.api.gateway import attachments, service
from svc_proto.commands import Compute, CreateBlob
from svc_proto.facts import FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import INVALID_PARAMS, METHOD_NOT_FOUND
from tests.api.gateway_client import GatewayClient, open_chat, open_gateway
from tests.api.scripted_agent import TurnHarness

PNG = b64encode(b"\x89PNG\r\n\x1a\n....").decode()
OTHER = b64encode(b"\x89PNG\r\n\x1a\n::::").decode()
PDF = b64encode(b"%PDF-1.4\n").decode()

NOTE = "data:text/plain;base64," + b64encode(b"\xef\xbb\xbfbuy tea").decode()


def test_attachments_go_with_the_next_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MAX_TEXT", len("buy tea"))
    book, phone, session = open_chat()
    own = {"session_id": session}
    assert phone.call("image.attach_bytes", content_base64=PNG, filename="a/b.jpg", **own)["path"] == "b.jpg"
    for _ in range(2):  # the second time it is sent again, as after a lost answer
        old = phone.call("image.attach.bytes", bytes_base64=OTHER, format="png", filename_hint="b.jpg", **own)
        assert (old["path"], old["count"]) == ("b-2.jpg", 2)
    assert phone.call("image.detach", path="b.jpg", **own) == {"detached": True, "count": 1}
    assert phone.call("image.detach", path="b.jpg", **own) == {"detached": False, "count": 1}
    kept = phone.call("file.attach", data_url=NOTE, name="note.txt", **own)
    assert kept["ref_text"] == "@file:note.txt"
    assert phone.refusal("prompt.submit", text="What?", truncate_before_row_id=2, **own)[0] == 4004  # they stay
    phone.call("prompt.submit", text="@file:note.txt\n\nWhat?", **own)
    text, image, note = map(JsonObject.of, book.hand.turn.prompt)
    assert text == {"type": "text", "text": "@file:note.txt\n\nWhat?"}
    assert image["image_url"] == {"url": f"data:image/png;base64,{OTHER}"}
    assert note.text("text").endswith("\nbuy tea")
    book.hand.finish()
    phone.call("prompt.submit", text="And now?", **own)
    assert book.hand.turn.prompt == "And now?"


def test_attachments_go_with_the_prompt_of_their_client() -> None:
    book = TurnHarness()
    first, other = open_gateway(book), open_gateway(book)
    own = {"session_id": first.new_session()}
    other.call("session.activate", **own)
    assert first.call("file.attach", data_url=NOTE, name="note.txt", **own)["path"] == "note.txt"
    assert other.call("file.attach", data_url=NOTE, name="note.txt", **own)["path"] == "note-2.txt"
    assert other.call("image.detach", path="note.txt", **own) == {"detached": False, "count": 1}
    other.call("prompt.submit", text="other", **own)
    assert str(book.hand.turn.prompt).count("buy tea") == 1
    assert other.call("file.attach", data_url=NOTE, name="mine.txt", **own)["path"] == "mine.txt"
    assert first.call("file.attach", data_url=NOTE, name="own.txt", **own)["path"] == "own.txt"
    first.close()
    assert None in book.api.gateway.sessions[own["session_id"]].attachments.values()  # without the closed connection
    assert other.call("image.detach", path="mine.txt", **own)["detached"] is True
    first = open_gateway(book)
    assert first.call("file.attach", data_url=NOTE, name="own.txt", **own)["path"] == "own.txt"
    other.call("prompt.submit", text="other again", **own)
    first.call("prompt.submit", text="first", **own)
    book.hand.finish()
    assert book.hand.turn.prompt == "other again"
    book.hand.finish()
    assert str(book.hand.turn.prompt).count("buy tea") == 1


@pytest.mark.parametrize("is_sent_before", [True, False])
def test_an_attachment_that_is_sent_again_while_its_old_socket_is_open_is_one(is_sent_before: bool) -> None:
    book = TurnHarness()
    lost = open_gateway(book)
    own = {"session_id": lost.new_session()}

    def attach(phone: GatewayClient) -> None:
        phone.call("image.attach_bytes", content_base64=PNG, filename="a.png", **own)
        phone.call("file.attach", data_url=NOTE, name="note.txt", **own)

    attach(lost)
    phone = open_gateway(book)
    attach(phone)
    if not is_sent_before:
        lost.close()
    phone.call("prompt.submit", text="Look", **own)
    assert [JsonObject.of(part).get("type") for part in book.hand.turn.prompt] == ["text", "image_url", "text"]
    if is_sent_before:
        lost.close()
    book.hand.finish()
    phone.call("prompt.submit", text="And now?", **own)
    assert book.hand.turn.prompt == "And now?"
    assert not [path for path in book.files if "attachments" in path]


def test_of_equal_attachments_the_one_that_was_sent_last_stays() -> None:
    book = TurnHarness()
    first, other = open_gateway(book), open_gateway(book)
    own = {"session_id": first.new_session()}
    for phone in (first, other, first):
        phone.call("file.attach", data_url=NOTE, name="note.txt", **own)
    first.close()
    other.close()
    open_gateway(book).call("prompt.submit", text="Look", **own)
    assert str(book.hand.turn.prompt).count("buy tea") == 1


def test_an_image_that_is_stored_after_its_client_has_disconnected_goes_with_the_next_prompt() -> None:
    book, phone, session = open_chat()
    book.hold = (CreateBlob,)
    phone.begin("image.attach_bytes", session_id=session, content_base64=PNG)
    phone.vanish()
    book.release()
    open_gateway(book).call("prompt.submit", session_id=session, text="Look")
    assert [JsonObject.of(part).get("type") for part in book.hand.turn.prompt] == ["text", "image_url"]


def test_an_image_needs_no_text() -> None:
    book, phone, session = open_chat()
    phone.call("image.attach_bytes", session_id=session, content_base64=PNG)
    phone.call("prompt.submit", session_id=session, text="")
    assert [JsonObject.of(part).get("type") for part in book.hand.turn.prompt] == ["image_url"]
    book.hand.finish()
    assert phone.last("session.info")["title"] == ""


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"ext": ".SVG"}, "svg+xml"),
        ({"filename": "x.jpg"}, "jpeg"),
        ({"ext": "?"}, "png"),
        ({"filename": "photo"}, "png"),
        ({}, "png"),
    ],
)
def test_an_unknown_signature_has_the_kind_of_its_name(given: dict[str, object], kind: str) -> None:
    book, phone, session = open_chat()
    phone.call("image.attach_bytes", session_id=session, content_base64="AAAA", **given)
    phone.call("prompt.submit", session_id=session, text="Hi")
    assert f"data:image/{kind};" in str(book.hand.turn.prompt)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("image.attach_bytes", {"content_base64": "%"}, INVALID_PARAMS),
        ("image.attach_bytes", {}, INVALID_PARAMS),
        ("image.attach_bytes", {"content_base64": PNG, "session_id": "none"}, 4001),
        ("file.attach", {"data_url": "http://x"}, INVALID_PARAMS),
        ("file.attach", {"data_url": "data:text/plain,abc"}, INVALID_PARAMS),
        ("file.attach", {"data_url": f"data:x;base64,{b64encode(bytes(9)).decode()}", "name": "a.bin"}, 4002),
        ("file.attach", {"data_url": "data:x;base64,/w=="}, 4002),
    ],
)
def test_a_failure_is_reported_and_gives_its_room_back(
    method: str, params: dict[str, object], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, phone, session = open_chat()
    monkeypatch.setattr(attachments, "MAX_UPLOADS", 12)
    own = {"session_id": session}
    for _ in range(2):
        assert phone.refusal(method, **own | params)[0] == code
    assert phone.call("image.attach_bytes", content_base64=PNG, **own)["attached"] is True


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    book, phone, session = open_chat()
    own = {"session_id": session}
    monkeypatch.setattr(attachments, "MAX_IMAGE", 30)
    assert phone.refusal("image.attach_bytes", content_base64="A" * 48, **own)[0] == INVALID_PARAMS
    monkeypatch.setattr(attachments, "MAX_TEXT", 3)
    phone.call("file.attach", data_url=NOTE, **own)
    monkeypatch.setattr(attachments, "MAX_FILES", 11)
    assert phone.refusal("image.attach_bytes", content_base64=PNG, **own)[0] == 4002
    monkeypatch.setattr(attachments, "MAX_UPLOADS", 10)
    code, words = phone.refusal("image.attach_bytes", content_base64=PNG, **own)
    assert (code, "being received" in words) == (4002, True)
    monkeypatch.undo()
    for number in range(7):
        phone.call("file.attach", data_url="data:;base64,QQ==", name=f"{number}", **own)
    assert phone.refusal("file.attach", data_url="data:;base64,QQ==", **own)[0] == 4002
    assert open_gateway(book).call("file.attach", data_url="data:;base64,QQ==", **own)["attached"] is True
    phone.call("prompt.submit", text="Hi", **own)
    assert "buy\n[4 more characters were left out]" in str(book.hand.turn.prompt)


@pytest.mark.parametrize(
    ("method", "params"), [("image.attach_bytes", {"content_base64": PNG}), ("file.attach", {"data_url": NOTE})]
)
def test_attachments_count_until_the_turn_of_their_prompt_begins(
    method: str, params: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    book, phone, session = open_chat("Hi")
    phone.call(method, session_id=session, **params)
    assert phone.call("prompt.submit", session_id=session, text="Look")["queued"] is True
    monkeypatch.setattr(attachments, "MAX_FILES", 12)
    monkeypatch.setattr(service, "MAX_WAITING_TEXT", book.api.gateway.sessions[session].waiting_text_size)
    assert phone.refusal(method, session_id=session, **params)[0] == 4002
    book.hand.finish()
    assert phone.call(method, session_id=session, **params)["attached"] is True


def pdf_chat(answer: object) -> tuple[TurnHarness, GatewayClient, str]:
    """Return a chat on a host whose PDF reader gives `answer`."""
    book, phone, session = open_chat()
    book.host.compute["pdf.text"] = lambda data: answer
    return book, phone, session


@pytest.mark.parametrize(("read", "end"), [(2, "buy tea\n[1 more pages were left out]"), (3, "buy tea")])
def test_the_text_of_a_pdf_file(read: int, end: str) -> None:
    book, phone, session = pdf_chat({"pages": 3, "read": read, "text": "buy tea"})
    own = {"session_id": session}
    for _ in range(2):  # the second time it is sent again, as after a lost answer
        kept = phone.call("pdf.attach", content_base64=PDF, **own)
        assert (kept["pages"], kept["page_count"]) == ([{"path": "document.pdf"}], 3)
    url = f"data:application/pdf;base64,{PDF}"
    assert phone.call("file.attach", data_url=url, name="list.pdf", **own)["ref_text"] == "@file:list.pdf"
    assert phone.call("image.detach", path="document.pdf", **own) == {"detached": True, "count": 1}
    phone.call("prompt.submit", text="What?", **own)
    assert str(book.hand.turn.prompt).endswith(end)


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ({"error": "the PDF file needs a password"}, 4002, "password"),
        ({"pages": 3, "read": 3, "text": " \n"}, 4002, "no text"),
        (HostError(FailureKind.UNSUPPORTED, "no library"), METHOD_NOT_FOUND, "no reader"),
        (HostError(FailureKind.TIMED_OUT, "late"), 4002, "too much time"),
    ],
)
def test_a_pdf_file_that_cannot_be_read(answer: object, code: int, words: str) -> None:
    book, phone, session = pdf_chat(answer)
    if isinstance(answer, HostError):
        book.host.compute["pdf.text"] = partial(_fail, answer)
    found, message = phone.refusal("pdf.attach", session_id=session, content_base64=PDF)
    assert (found, words in message) == (code, True)
    url = f"data:;base64,{PDF}"  # the app would switch off all files after -32601
    assert phone.refusal("file.attach", session_id=session, data_url=url)[0] == 4002


def test_too_many_pdf_files() -> None:
    book, phone, session = pdf_chat({"pages": 1, "read": 1, "text": "buy tea"})
    book.hold = (Compute,)
    calls = [phone.begin("pdf.attach", session_id=session, content_base64=PDF) for _ in range(3)]
    book.after(attachments.PDF_PATIENCE)
    error = phone.answers[calls[-1]]["error"]
    assert (error["code"], error["message"]) == (4002, "too many PDF files are being read: try again")
    assert phone.refusal("pdf.attach", session_id=session, content_base64=PNG)[0] == INVALID_PARAMS


def _fail(error: HostError, data: bytes) -> object:
    raise error
