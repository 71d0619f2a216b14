import json
from base64 import b64encode
from typing import Any

import pytest

from svc_proto.api.gateway import attachment_upload, attachments, long_message
from svc_proto.api.gateway.attachment_content import NO_DISK
from svc_proto.commands import CreateBlob, FinishBlob, OpenFile, PauseReading, ResumeReading, WriteBlob
from svc_proto.schema.json_rpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from svc_proto.wire.events import TextFragment
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.api.gateway_client import open_chat, open_gateway
from tests.support.core_harness import SPOOL
from tests.support.http_harness import FIRST

KIB = 1024
IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(120 * KIB)
TEXT = b"buy tea " * 12 * KIB
PART = 70 * KIB  # characters of a part of a message, which the server delivers at once


class Chat:
    """Gateway client with a session; `send` and `call` send a message in fragments of `PART` characters."""

    def __init__(self) -> None:
        self.book, self.phone, self.session = open_chat()

    def message(self, method: str, **params: object) -> str:
        self.phone.calls += 1
        own = {"session_id": self.session, **params}
        return json.dumps({"jsonrpc": "2.0", "id": self.phone.calls, "method": method, "params": own})

    def send(self, text: str, *, is_whole: bool = True) -> None:
        for place in range(0, len(text), PART):
            is_last = is_whole and place + PART >= len(text)
            self.phone.send_events(TextFragment(FIRST, text[place : place + PART], is_last))

    def call(self, method: str, **params: object) -> dict[str, Any]:
        self.send(self.message(method, **params))
        answer: dict[str, Any] = self.phone.answers[self.phone.calls]
        return answer

    def refusal(self, method: str, **params: object) -> int:
        code: int = self.call(method, **params)["error"]["code"]
        return code

    @property
    def files(self) -> int:
        return len(self.book.disk.files(SPOOL))


@pytest.fixture
def chat() -> Chat:
    return Chat()


def packed(data: bytes) -> str:
    return b64encode(data).decode()


def url(data: bytes) -> str:
    return f"data:text/plain;base64,{packed(data)}"


def test_an_image_is_one_file(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MAX_IMAGE", len(IMAGE))
    for count in (1, 1):  # the second time it is sent again, as after a lost answer
        answer = chat.call("image.attach_bytes", content_base64=packed(IMAGE), filename="a.png")["result"]
        assert (answer["path"], answer["size"], answer["count"]) == ("a.png", len(IMAGE), count)
        assert chat.files == 1
    chat.phone.call("prompt.submit", session_id=chat.session, text="Look")
    assert f"data:image/png;base64,{packed(IMAGE)}" in str(chat.book.hand.turn.prompt)
    assert chat.files == 0


def test_a_text_leaves_no_file(chat: Chat) -> None:
    assert chat.call("file.attach", data_url=url(TEXT), name="a.txt")["result"]["size"] == len(TEXT)
    assert chat.files == 0
    chat.phone.call("prompt.submit", session_id=chat.session, text="Read")
    assert TEXT.decode()[:1000] in str(chat.book.hand.turn.prompt)


@pytest.mark.parametrize(("method", "name"), [("pdf.attach", "content_base64"), ("file.attach", "data_url")])
def test_a_pdf_file_is_read_from_its_file(chat: Chat, method: str, name: str) -> None:
    content = b"%PDF-1.4\n" + bytes(100 * KIB)
    seen: list[int] = []

    def read(data: bytes) -> object:
        seen.append(len(data))
        return {"text": "Tea", "pages": 1, "read": 1}

    chat.book.host.compute["pdf.text"] = read
    given = url(content) if name == "data_url" else packed(content)
    assert chat.call(method, **{name: given})["result"]["size"] == len(content)
    assert (seen, chat.files) == ([len(content)], 0)
    chat.book.refuse = (OpenFile,)
    for _ in range(attachments.PDF_READERS):
        assert chat.refusal(method, **{name: given}) == 4002
    chat.book.refuse = ()
    assert chat.call(method, **{name: given})["result"]["attached"] is True


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("image.attach_bytes", {"content_base64": "%" * PART}, INVALID_PARAMS),
        ("image.attach_bytes", {"content_base64": "%" * PART * 3}, INVALID_PARAMS),
        ("image.attach_bytes", {"content_base64": packed(IMAGE) + "A"}, INVALID_PARAMS),
        ("image.attach_bytes", {"content_base64": packed(bytes(100 * KIB)) + packed(IMAGE)}, INVALID_PARAMS),
        ("image.attach_bytes", {"content_base64": "", "filename": "x" * PART}, INVALID_PARAMS),
        ("file.attach", {"data_url": "x" * PART}, INVALID_PARAMS),
        ("file.attach", {"data_url": "data:text", "name": "x" * PART}, INVALID_PARAMS),
        ("file.attach", {"data_url": f"data:text/plain,{packed(TEXT)}"}, INVALID_PARAMS),
        ("file.attach", {"data_url": url(bytes(100 * KIB))}, 4002),
        ("file.attach", {"data_url": url(IMAGE)}, 4002),
        ("pdf.attach", {"content_base64": packed(IMAGE)}, INVALID_PARAMS),
        ("image.attach_bytes", {"data_url": url(IMAGE)}, INVALID_PARAMS),
        ("image.attach_bytes", {"content_base64": packed(IMAGE), "session_id": "none"}, 4001),
        ("moon.walk", {"content_base64": packed(IMAGE)}, METHOD_NOT_FOUND),
    ],
)
def test_a_message_that_is_refused_leaves_no_file(
    chat: Chat, method: str, params: dict[str, object], code: int
) -> None:
    assert chat.refusal(method, **params) == code
    assert chat.files == 0
    assert chat.phone.call("session.list")["sessions"]


@pytest.mark.parametrize("end", ["", '"}', "\n", '"}}}', r"\q"])
def test_a_message_that_is_no_json_leaves_no_file(chat: Chat, end: str) -> None:
    text = chat.message("image.attach_bytes", content_base64=packed(IMAGE)).rstrip('"}')
    chat.send(text + end + " " * PART if end else text)
    assert chat.phone.answers[None]["error"]["code"] == PARSE_ERROR
    assert chat.files == 0


def test_a_message_with_several_calls(chat: Chat) -> None:
    listing, image = chat.message("session.list"), chat.message("image.attach_bytes", content_base64=packed(IMAGE))
    chat.send(f'{listing}\n\n{image}\n{{"id": 9, "params": 1}}\n')
    assert chat.phone.answers[2]["result"]["sessions"]
    assert chat.phone.answers[3]["result"]["count"] == 1
    assert chat.phone.answers[9]["error"]["code"] == INVALID_REQUEST
    chat.send(f'{{"id": 10, "params": {{"content_base64": "{packed(IMAGE)}"}}}}')
    assert (chat.phone.answers[10]["error"]["code"], chat.files) == (INVALID_REQUEST, 1)


def test_a_long_prompt_is_no_upload(chat: Chat) -> None:
    chat.call("prompt.submit", text="Tea? " * 300 * KIB)
    assert str(chat.book.hand.turn.prompt).startswith("Tea? Tea? ")
    chat.book.after(2 * DEFAULT_LIMITS.large_input_timeout)
    assert not chat.phone.gone  # the memory of the message is free again


def test_a_client_that_disconnects_leaves_no_file(chat: Chat) -> None:
    chat.send(chat.message("image.attach_bytes", content_base64=packed(IMAGE)), is_whole=False)
    assert chat.files == 1
    chat.phone.close()
    assert chat.files == 0
    chat.book.hold = (CreateBlob,)
    other = Chat()
    other.send('{"id": 1, "params": {"x": "' + "x" * PART, is_whole=False)
    other.phone.close()
    assert other.files == 0


@pytest.mark.parametrize("fails", [False, True])
def test_a_client_is_not_read_while_the_disk_is_slow(chat: Chat, fails: bool) -> None:
    chat.book.hold = (WriteBlob,)
    text = chat.message("image.attach_bytes", content_base64=packed(IMAGE * 3))
    chat.send(text)
    assert any(isinstance(command, PauseReading) for command in chat.book.commands)
    assert chat.phone.calls not in chat.phone.answers
    chat.book.hold = ()
    chat.book.release(fail=fails)
    assert any(isinstance(command, ResumeReading) for command in chat.book.commands)
    answer = chat.phone.answers[chat.phone.calls]
    assert (answer["error"]["message"] == NO_DISK) if fails else (answer["result"]["size"] == len(IMAGE * 3))


@pytest.mark.parametrize("kind", [CreateBlob, WriteBlob, FinishBlob])
def test_a_disk_that_fails(chat: Chat, kind: type) -> None:
    chat.book.refuse = (kind,)
    error = chat.call("image.attach_bytes", content_base64=packed(IMAGE))["error"]
    assert (error["code"], error["message"]) == (4002, NO_DISK)
    chat.book.refuse = ()
    assert chat.files == 0
    assert chat.call("image.attach_bytes", content_base64=packed(IMAGE))["result"]["count"] == 1


def test_the_limits(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MAX_IMAGE", len(IMAGE) - 1)
    assert chat.refusal("image.attach_bytes", content_base64=packed(IMAGE)) == INVALID_PARAMS
    monkeypatch.undo()
    monkeypatch.setattr(long_message, "MAX_FILE", len(IMAGE) - 1)
    assert chat.refusal("image.attach_bytes", content_base64=packed(IMAGE)) == INVALID_PARAMS
    monkeypatch.undo()
    monkeypatch.setattr(attachment_upload, "MAX_SPACE", len(IMAGE) + 100)
    other = open_gateway(chat.book)
    other.send_events(TextFragment(FIRST, f'{{"content_base64": "{packed(bytes(60 * KIB))}', False))
    assert chat.refusal("image.attach_bytes", content_base64=packed(IMAGE)) == 4002
    other.close()
    for name in ("a", "b"):  # the space is free again
        assert "result" in chat.call("image.attach_bytes", content_base64=packed(IMAGE), filename=name)
