from collections.abc import Mapping

import pytest

from svc_proto.phone.arguments import CommandArguments
from svc_proto.phone.backend import CommandRefused
from svc_proto.phone.outgoing_actions import READERS, CallAction, OutgoingFile, ShareAction, SmsAction

UNKNOWN = "application/octet-stream"


def read(path: str, body: Mapping[str, object]) -> CallAction | SmsAction | ShareAction:
    return READERS[path](CommandArguments(body))


def refusal(path: str, body: Mapping[str, object]) -> tuple[object, object]:
    with pytest.raises(CommandRefused) as caught:
        read(path, body)
    reply = caught.value.to_reply()
    assert reply.status == 400
    return reply.result["error"], reply.result.get("reason")


@pytest.mark.parametrize(
    ("path", "body", "shown"),
    [
        ("/call", {"number": " +1 (555) 0100 "}, "+1 (555) 0100"),
        ("/call", {"number": 112, "text": None}, "112"),  # null counts as missing
        ("/send_sms", {"to": "+1900666", "body": "SUBSCRIBE\nnow"}, "+1900666\nSUBSCRIBE\nnow"),
        (
            "/send_mms",
            {"to": "+1", "text": "first", "body": "second", "title": "t\nu"},
            "to +1\ntitle 't\\nu'\ntext first",
        ),
        ("/send_mms", {"to": "+1", "body": "second", "package": "com.a"}, "to +1\napp com.a\ntext second"),
        ("/share_media", {"text": "hi\napp com.b"}, "text hi\napp com.b"),
        (
            "/share_media",
            {
                "attachments": [
                    {"media": "MEDIA:one", "content_type": "image/gif", "file_name": "a"},
                    {"media_token": "svc-relay://two"},
                    {"token": "MEDIA:hermes-relay://3"},
                    {"path": "4.pdf"},
                ],
                "media": "MEDIA:/b.png",
                "media_tokens": ["five"],
                "paths": ["/six"],
                "package": "com.example.mail",
            },
            "app com.example.mail\nmedia one\nmedia two\nmedia 3\nfile /4.pdf\nfile /b.png\nmedia five\nfile /six",
        ),
        ("/share_media", {"path": "/a\ntext hello"}, "file '/a\\ntext hello'"),  # one line, whatever the text contains
        ("/send_mms", {"to": "+1\nMUM", "text": "x", "package": "a\x1b"}, "to '+1\\nMUM'\napp 'a\\x1b'\ntext x"),
    ],
)
def test_whole_action_is_shown(path: str, body: dict[str, object], shown: str) -> None:
    assert read(path, body).question_text == shown


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("/call", {"number": "112", "to": "113"}, "to"),
        ("/send_sms", {"to": "+1", "body": "x", "number": "+2"}, "number"),
        ("/send_sms", {"to": "+1", "body": "x", "text": "y"}, "text"),
        ("/send_mms", {"to": "+1", "text": "x", "number": "+2"}, "number"),
        ("/send_mms", {"to": "+1", "attachments": [{"media": "a", "uri": "b"}]}, "uri"),
        ("/share_media", {"text": "x", "to": "+1"}, "to"),
        ("/share_media", {"text": "x", "component": "com.a/.B"}, "component"),
        ("/share_media", {"text": "x", "é" * 1000: 1}, "é" * 100),
    ],
)
def test_unknown_arguments_are_refused(path: str, body: dict[str, object], name: str) -> None:
    reason = None if path == "/call" else "invalid_schema"
    assert refusal(path, body) == (f"unknown argument: {name}", reason)


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        *(("/call", body, None) for body in ({}, {"number": "1"}, {"number": "call me"})),
        ("/send_sms", {"to": "1"}, "invalid_schema"),
        ("/send_sms", {"body": "x"}, "invalid_schema"),
        ("/send_sms", {"to": "Ada", "body": "x"}, "invalid_recipient"),
        ("/send_mms", {"text": "x"}, "invalid_schema"),
        ("/send_mms", {"to": "1"}, "invalid_schema"),
        ("/send_mms", {"to": " ", "text": "x"}, "invalid_schema"),
        ("/share_media", {"title": "t"}, "invalid_schema"),
        ("/share_media", {"text": " "}, "invalid_schema"),
        ("/share_media", {"media_tokens": [[]]}, "invalid_schema"),
        ("/share_media", {"attachments": "tok"}, "invalid_schema"),
        ("/share_media", {"attachments": ["tok"]}, "invalid_schema"),
        ("/share_media", {"attachments": [{"file_name": "a.png"}]}, "invalid_schema"),
        ("/share_media", {"media": "two words"}, "media_fetch_failed"),
        ("/share_media", {"media": "other://tok"}, "media_fetch_failed"),
        ("/share_media", {"path": "/"}, "media_fetch_failed"),
    ],
)
def test_invalid_arguments(path: str, body: dict[str, object], reason: str | None) -> None:
    assert refusal(path, body)[1] == reason


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/send_sms", {"to": "1"}, "missing or empty argument: body"),
        ("/share_media", {"title": "t"}, "give at least one of attachments and text"),
        ("/share_media", {"attachments": ["tok"]}, "attachments[0] must be an object"),
        ("/share_media", {"attachments": [{}]}, "attachments[0] lacks media, media_token, token or path"),
        ("/share_media", {"path": "/"}, "media: not a token or a path"),
    ],
)
def test_error_texts(path: str, body: dict[str, object], error: str) -> None:
    assert refusal(path, body)[0] == error


def test_the_type_of_an_attachment() -> None:
    attachments = [{"media": "one", "content_type": "image/gif", "file_name": "a.png"}]
    handover = read(
        "/share_media", {"attachments": attachments, "media": "tok", "file_name": "a.PNG", "paths": ["/b.txt", "/c"]}
    )
    assert isinstance(handover, ShareAction)
    assert handover.attachments == (
        OutgoingFile("one", "image/gif"),
        OutgoingFile("tok", "image/png"),
        OutgoingFile("MEDIA:/b.txt", "text/plain"),
        OutgoingFile("MEDIA:/c", UNKNOWN),
    )
