from base64 import b64encode

import pytest

from svc_proto.dashboard import app_audio
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import Headers
from tests.api.harness import KEY
from tests.dashboard.app_client import AppHarness
from tests.support.http_codec import Response
from tests.support.http_harness import Reply, as_json

SOUND = "data:audio/mp4;base64," + b64encode(b"RIFF....").decode()


def voiced(answer: Reply) -> AppHarness:
    """Return a dashboard whose upstream servers give this answer."""
    book = AppHarness()
    del book.servers[8642]
    book.http = lambda asked: answer
    return book


def test_recordings_become_text_and_texts_sound() -> None:
    book = voiced(as_json({"success": True, "text": "Hello", "provider": "local"}))
    phone = book.sign_in()
    answer = phone.request("POST", "/api/audio/transcribe", {"data_url": SOUND, "mime_type": "audio/mp4"})
    assert answer.json == {"ok": True, "transcript": "Hello"}
    (asked,) = book.asked
    assert asked.url.endswith(":8767/voice/transcribe")
    assert asked.headers.get(b"authorization") == f"Bearer {KEY}".encode()
    assert b'filename="recording.m4a"' in asked.body
    assert b"RIFF...." in asked.body
    phone.request("POST", "/api/audio/transcribe", {"data_url": "data:audio/x-wav;base64,AAAA"})
    assert b'filename="recording.wav"' in book.asked[-1].body
    book = voiced(Response(200, Headers([(b"content-type", b"audio/ogg")]), b"OggS"))
    answer = book.sign_in().request("POST", "/api/audio/speak", {"text": "Hello"})
    assert answer.json == {"ok": True, "data_url": "data:audio/ogg;base64,T2dnUw==", "mime_type": "audio/ogg"}
    assert book.asked[0].json == {"text": "Hello"}


@pytest.mark.parametrize(
    "body", [{}, {"data_url": "x"}, {"data_url": "data:audio/mp4;base64,"}, {"data_url": "data:text/html;base64,AAAA"}]
)
def test_no_recording(body: dict[str, object]) -> None:
    assert voiced(as_json({})).sign_in().request("POST", "/api/audio/transcribe", body).status == 400


def test_recordings_that_are_too_large_and_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    phone = voiced(as_json({})).sign_in()
    monkeypatch.setattr(app_audio, "MAX_SOUND", len(b"RIFF...."))
    assert phone.request("POST", "/api/audio/transcribe", {"data_url": SOUND}).status == 200
    monkeypatch.setattr(app_audio, "MAX_SOUND", len(b"RIFF....") - 1)
    assert phone.request("POST", "/api/audio/transcribe", {"data_url": SOUND}).status == 413
    phone = AppHarness().sign_in()
    assert phone.request("HEAD", "/api/audio/transcribe").status == 405
    assert phone.request("HEAD", "/api/audio/moon").status == 404


@pytest.mark.parametrize(
    ("reply", "status", "words"),
    [
        (as_json({"success": False, "error": "no voice engine"}, 503), 503, "no voice engine"),
        ((401, b"no"), 502, "the relay answered 401"),
        ((403, b"no"), 502, "the relay answered 403"),
        ((404, b"no"), 502, "the relay answered 404"),
        (Failure(FailureKind.UNREACHABLE, "refused"), 502, "the relay cannot be reached"),
    ],
)
def test_a_failure_is_told_in_words(reply: Reply, status: int, words: str) -> None:
    answer = voiced(reply).sign_in().request("POST", "/api/audio/speak", {"text": "Hello"})
    assert answer.status == status
    assert words in answer.json["detail"]
