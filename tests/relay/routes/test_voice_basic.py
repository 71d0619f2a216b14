"""`/voice/config`, `/voice/transcribe`, `/voice/synthesize` (wire terminal-voice 3)."""

import json
from typing import Any

import pytest

from svc_proto.basics.content_types import SNIFFED
from svc_proto.commands import CreateBlob, FinishBlob, WriteBlob
from svc_proto.facts import Failed, Failure, FailureKind
from svc_proto.relay.routes.voice_basic import MAX_BUSY
from svc_proto.relay.voice.recording_upload import MAX_UPLOAD
from svc_proto.voice.provider_interface import SpeechFile, SpeechRequest
from svc_proto.wire.events import Headers, RequestData, RequestEnd, RequestHead, StreamId
from svc_proto.wire.multipart import Part, encode_multipart
from tests.relay.harness import HOST, REMOTE, RelayHarness
from tests.relay.routes.voice_dialogue import Routes, play, read_dialogues
from tests.relay.routes.voice_harness import VoiceRoutesHarness
from tests.support.http_codec import Response

FORM = (b"content-type", b"multipart/form-data; boundary=xyz")
WAV = b"RIFF" + bytes(100)


def form(*parts: Part) -> bytes:
    return encode_multipart(parts, "xyz")


RECORDING = form(Part(name="audio", data=WAV))


def send(book: RelayHarness, body: bytes, query: str = "", *, kind: bytes = FORM[1]) -> Response:
    token = book.pair().token
    return book.request("POST", f"/voice/transcribe{query}", body, token=token, headers=[(b"content-type", kind)])


def failed(answer: Response, status: int) -> str:
    """Return the error text of a refusal in the form of the basic voice routes; check its status."""
    assert answer.status == status, answer
    assert answer.headers.get(b"content-type") == b"application/json"
    assert answer.json["success"] is False
    return str(answer.json["error"])


def clean(book: RelayHarness) -> bool:
    """Report whether no upload and no handle is left."""
    return book.uploads == [] and book.node.operations.open_handles == 0


DIALOGUES = read_dialogues("relay/routes/voice_basic")


class Stage(Routes):
    def details(self, *words: str) -> None:
        """Require that `/voice/config` reports this text as details of its requirements."""
        answer = self.request("GET", "config", "").json
        assert answer["requirements"]["details"] == " ".join(words)

    def request(self, method: str, path: str, body: str) -> Response:
        """Send a request; one to transcribe carries a recording, of which no upload may remain."""
        if not path.startswith("transcribe"):
            return super().request(method, path, body)
        answer = send(self.book, RECORDING, path.removeprefix("transcribe"))
        assert clean(self.book)
        return answer

    def logged(self, *fields: str) -> None:
        """Require exactly these fields, as JSON, of the first log record of a failed engine."""
        found = next(log for log in self.book.logs if log.event == "voice engine failed")
        assert found.fields == json.loads(" ".join(fields))

    def listened(self, *asked: str) -> None:
        """Require that the only recorded request is a transcription with the arguments of this JSON list."""
        assert self.book.scripted_providers.asked == [tuple(json.loads(" ".join(asked)))]

    def three(self) -> None:
        """Write the configurations of the host, a profile with speech settings, and one whose `tts` is no mapping."""
        self.file("agent", "{tts: {provider: xai}, stt: {provider: xai}}")
        self.file("work", "{tts: {provider: openai, openai: {voice: nova}}}")
        self.file("bare", "{model: x, tts: not a mapping}")

    def xai(self) -> None:
        """Configure xAI for speech, with its key."""
        self.file("agent", "{tts: {provider: xai, xai: {voice_id: leo, model: xai-tts, language: en}}}")
        self.key("XAI_API_KEY", "k")


@pytest.mark.parametrize("title", DIALOGUES)
def test_a_dialogue(title: str) -> None:
    play(DIALOGUES[title], Stage())


def listening(takes: float = 0.0) -> VoiceRoutesHarness:
    """Return a relay whose host has speech engines that take `takes` seconds."""
    book = VoiceRoutesHarness()
    book.scripted_providers.local, book.scripted_providers.takes = True, takes
    return book


@pytest.mark.parametrize("size", [SNIFFED - 1, SNIFFED, 200])
@pytest.mark.parametrize(
    ("start", "kind", "suffix"),
    [
        (b"RIFF\0\0\0\0WAVE", "audio/wav", ".wav"),
        (b"\0\0\0\x18ftypisom", "audio/mp4", ".m4a"),
        (b"%PDF-1.7", "audio/mp4", ".m4a"),  # no recording: as declared
    ],
)
def test_the_type_of_a_recording_is_that_of_its_bytes(start: bytes, kind: str, suffix: str, size: int) -> None:
    book = listening()
    data = start + bytes(size - len(start))
    answer = send(book, form(Part(name="audio", data=data, content_type="audio/mp4", filename="voice.mp4")))
    assert answer.status == 200
    assert book.scripted_providers.asked == [(kind, suffix, size, size, "", "")]
    assert clean(book)


@pytest.mark.parametrize(
    ("part", "kind", "suffix"),
    [
        (Part(name="audio", data=WAV, content_type="audio/mp4", filename="voice.mp4"), "audio/mp4", ".m4a"),
        (Part(name="audio", data=WAV, content_type="Audio/webm; codecs=opus"), "audio/webm", ".webm"),
        (Part(name="file", data=WAV), "", ".wav"),
    ],
)
def test_the_type_of_a_recording_is_the_declared_one_if_bytes_are_unknown(part: Part, kind: str, suffix: str) -> None:
    book = listening()
    answer = send(book, form(Part(name="note", data=b"skipped"), part, Part(name="audio", data=b"skipped too")))
    told = {"success": True, "text": "turn on the lamp", "provider": "local", "profile": None}
    assert (answer.status, answer.json) == (200, told)
    assert book.scripted_providers.asked == [(kind, suffix, len(WAV), len(WAV), "", "")]
    assert clean(book)


@pytest.mark.parametrize("size", [1, 7, 50, 150])
def test_a_recording_may_come_in_any_pieces(size: int) -> None:
    book = listening()
    token = book.pair().token
    data = b"\xff\xe3\x18" + bytes(400)
    body = form(Part(name="audio", data=data, content_type="audio/wav"))
    fields = [(b"host", HOST), (b"authorization", b"Bearer " + token.encode()), FORM]
    call = book.call("GET", "/health")
    call.events.clear()
    fields.append((b"content-length", b"%d" % len(body)))
    call.send_events(RequestHead(StreamId(2), "POST", "/voice/transcribe", Headers(fields)))
    for place in range(0, len(body), size):
        call.send_events(RequestData(StreamId(2), body[place : place + size]))
    call.send_events(RequestEnd(StreamId(2)))
    book.after(1.0)
    assert book.scripted_providers.asked == [("audio/mpeg", ".mp3", len(data), len(data), "", "")]
    assert clean(book)


@pytest.mark.parametrize(
    ("body", "kind", "word"),
    [
        (b"{}", b"application/json", "multipart/form-data"),
        (b"x", b"multipart/form-data", "boundary"),
        (RECORDING[:-20], FORM[1], ""),
        (form(Part(name="note", data=b"no audio")), FORM[1], "no audio file"),
        (form(Part(name="audio", data=b"")), FORM[1], "empty"),
        (b"--xyz--\r\n", FORM[1], "no audio file"),
    ],
)
def test_a_body_without_a_recording(body: bytes, kind: bytes, word: str) -> None:
    book = listening()
    assert word in failed(send(book, body, kind=kind), 400)
    assert (clean(book), book.scripted_providers.asked) == (True, [])


def test_too_long_recordings_and_wrong_methods_have_the_voice_format() -> None:
    book = listening()
    assert str(MAX_UPLOAD) in failed(send(book, form(Part(name="audio", data=bytes(MAX_UPLOAD + 1)))), 413)
    assert (clean(book), book.scripted_providers.asked) == (True, [])
    assert send(book, form(Part(name="audio", data=bytes(MAX_UPLOAD)))).status == 200
    book = VoiceRoutesHarness()
    token = book.pair().token
    assert failed(book.request("PUT", "/voice/config", token=token), 405)
    head = [(b"content-length", b"%d" % (2 * MAX_UPLOAD)), (b"authorization", b"Bearer " + token.encode())]
    lines = [b"POST /voice/transcribe HTTP/1.1", b"host: x", *(name + b": " + value for name, value in head)]
    assert failed(book.raw(b"\r\n".join([*lines, b"", b""]), peer=REMOTE).result, 413)


@pytest.mark.parametrize("step", [CreateBlob, WriteBlob, FinishBlob])
@pytest.mark.parametrize(("kind", "word"), [(FailureKind.NO_SPACE, "full"), (FailureKind.INTERNAL, "stored")])
def test_failed_disk_write_gives_500(step: Any, kind: FailureKind, word: str) -> None:
    book = listening()
    book.hold = (step,)
    call = book.call("POST", "/voice/transcribe", RECORDING, token=book.pair().token, headers=[FORM])
    (held,) = book.held
    book.feed(Failed(held.op, Failure(kind)))
    assert word in failed(call.result, 500)
    assert clean(book)


def test_concurrent_requests_are_limited_and_leave_no_upload() -> None:
    book = listening(takes=5.0)
    token = book.pair().token
    calls = [book.call("POST", "/voice/synthesize", {"text": "x"}, token=token) for _ in range(MAX_BUSY)]
    answer = send(book, RECORDING)
    assert "too many others are speaking" in failed(answer, 503)
    assert (answer.headers.get(b"retry-after"), clean(book)) == (b"5", True)
    calls[0].vanish()
    calls.append(book.call("POST", "/voice/synthesize", {"text": "x"}, token=token))
    book.after(5.0)
    assert {call.result.status for call in calls[1:]} == {200}
    book = listening(takes=5.0)
    call = book.call("POST", "/voice/transcribe", RECORDING, token=book.pair().token, headers=[FORM])
    assert len(book.uploads) == 1
    call.vanish()
    assert clean(book)
    book.after(10.0)
    assert book.scripted_providers.asked == []


@pytest.mark.parametrize(("kind", "name"), [("audio/mpeg", "tts.mp3"), ("audio/wav", "tts.wav"), ("audio/x", "tts")])
def test_a_text_becomes_a_file(kind: str, name: str) -> None:
    book = listening()
    book.scripted_providers.spoken = SpeechFile(b"sound", kind)
    text = {"text": " **Ready** when [you](http://x) are. "}
    answer = book.request("POST", "/voice/synthesize", text, token=book.pair().token)
    assert (answer.status, answer.body) == (200, b"sound")
    shown = (kind.encode(), b"private, no-store", f'inline; filename="{name}"'.encode())
    names = (b"content-type", b"cache-control", b"content-disposition")
    assert tuple(answer.headers.get(field) for field in names) == shown
    assert book.scripted_providers.asked == [SpeechRequest(text="Ready when you are.")]
