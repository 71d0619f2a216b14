"""`/voice/config`, `/voice/transcribe`, `/voice/synthesize` (wire terminal-voice 3)."""

from __future__ import annotations

import json

import pytest

from svc_proto.commands import CreateBlob, FinishBlob, WriteBlob
from svc_proto.facts import Failed, Failure, FailureKind
from svc_proto.relay.routes.voice_basic import MAX_BUSY
from svc_proto.relay.voice_upload import MAX_UPLOAD
from svc_proto.voice.contract import ProviderError, SpeechRequest, Spoken
from svc_proto.wire.multipart import Part, encode_multipart
from tests.relay.routes.voice_dialogue import Routes, dialogues, play
from tests.relay.routes.voice_world import AGENT_FILE, WORK, put_yaml, voice_book
from tests.relay.world import REMOTE, Answer, RelayBook

FORM = (b"content-type", b"multipart/form-data; boundary=xyz")
WAV = b"RIFF" + bytes(100)


def form(*parts: Part) -> bytes:
    return encode_multipart(parts, "xyz")


def send(book: RelayBook, body: bytes, query: str = "", *, kind: bytes = FORM[1]) -> Answer:
    token = book.pair().token
    return book.request("POST", f"/voice/transcribe{query}", body, token=token, headers=[(b"content-type", kind)])


def say(book: RelayBook, body: object, query: str = "") -> Answer:
    return book.request("POST", f"/voice/synthesize{query}", body, token=book.pair().token)


def failed(answer: Answer, status: int) -> str:
    """The text of a refusal of these three routes."""
    assert answer.status == status, answer
    assert answer.headers.get(b"content-type") == b"application/json"
    assert answer.json["success"] is False
    return str(answer.json["error"])


DIALOGUES = """
nothing is configured and nothing is installed
    GET config -> 200 success = true; profile = null; config_scope = "global"; config_path = null
        -> ; fallback_to_global = false; stt = {"provider": null, "model": null, "enabled": false}
        -> ; tts = {"provider": null, "voice_id": null, "voice": null, "model": null, "enabled": false,
        -> "enhanced": null}
        -> ; requirements.available = false; requirements.audio_available = false; requirements.stt_available = false
        -> ; requirements.missing_packages = ["espeak-ng"]
        -> ; requirements.environment = {"available": false, "warnings": []}
    details speaks: nothing; listens: nothing; not installed: espeak-ng
this host's own engines are the default
    key OPENAI_API_KEY k
    local
    GET config -> 200 stt = {"provider": "local", "model": null, "enabled": true}
        -> ; tts = {"provider": "local", "voice_id": null, "voice": null, "model": null, "enabled": true,
        -> "enhanced": null}
    details speaks: local; listens: local
else the first vendor with a key
    text env "XAI_API_KEY=k\\nELEVENLABS_API_KEY=k\\n"
    GET config -> 200 tts.provider = "xai"; stt.provider = "xai"
what is configured counts
    file agent {tts: {provider: XAI, xai: {voice_id: leo, model: xai-tts}, openai: {voice: x}}}
    local
    GET config -> 200 stt = {"provider": "local", "model": null, "enabled": true}; tts.provider = "xai"
        -> ; tts.voice_id = "leo"; tts.voice = "leo"; tts.model = "xai-tts"; tts.enabled = true
        -> ; tts.enhanced = {"provider": "xai", "supported": true, "voices": [], "models": [], "audio_tag_models": [],
        -> "audio_tags_enabled": false, "audio_tags_label": "", "supports_persona": false, "supports_language": true,
        -> "persona_prompt_file": null, "overrides": ["voice", "language"]}
who listens is configured
    file agent {stt: {provider: openai, openai: {model: whisper-1}, enabled: "off"}}
    local
    GET config -> 200 stt = {"provider": "openai", "model": "whisper-1", "enabled": false}; tts.provider = "local"
profiles
    three
    GET config -> 200 profile = null; config_scope = "global"; config_path = null; fallback_to_global = false
        -> ; tts.provider = "xai"; stt.provider = "xai"
    GET config?profile=default -> 200 profile = "default"; config_scope = "profile"; fallback_to_global = false
        -> ; config_path = "/home/svc/config.yaml"; tts.provider = "xai"; stt.provider = "xai"
    GET config?profile=work -> 200 profile = "work"; config_scope = "profile"; fallback_to_global = false
        -> ; config_path = "/home/svc/profiles/work/config.yaml"; tts.provider = "openai"; stt.provider = "xai"
    GET config?profile=bare -> 200 profile = "bare"; config_scope = "global"; config_path = null
        -> ; fallback_to_global = true; tts.provider = "xai"; stt.provider = "xai"
    GET config?profile=nobody -> 200 profile = "nobody"; config_scope = "global"; config_path = null
        -> ; fallback_to_global = true; tts.provider = "xai"; stt.provider = "xai"
    GET config?profile=.. -> 200 profile = ".."; config_scope = "global"; config_path = null
        -> ; fallback_to_global = true; tts.provider = "xai"; stt.provider = "xai"
a profile that names no provider
    file agent {tts: {provider: xai, xai: {voice_id: eve}, enabled: false}}
    file work {tts: {xai: {voice_id: leo}}}
    local
    GET config?profile=work -> 200 config_scope = "profile"; tts.provider = "xai"; tts.voice = "leo"
        -> ; tts.enabled = true; stt = {"provider": "local", "model": null, "enabled": true}
what a request may choose of xai
    xai
    POST synthesize {"text": "x"} -> 200
    spoke {"text": "x", "model": "xai-tts", "voice": "leo", "language": "en"}
    POST synthesize {"text": "x", "voice": "ara", "language": "de", "model": "other", "base_url": "http://evil"} -> 200
    spoke {"text": "x", "model": "xai-tts", "voice": "ara", "language": "de"}
    POST synthesize {"text": "x", "enhanced": {"voice": "ara"}, "language": " "} -> 200
    spoke {"text": "x", "model": "xai-tts", "voice": "ara", "language": "en"}
    POST synthesize {"text": "x", "enhanced": 5, "voice": null} -> 200
    spoke {"text": "x", "model": "xai-tts", "voice": "leo", "language": "en"}
nothing can be chosen of the others
    file agent {tts: {provider: openai, openai: {voice: nova}}}
    key OPENAI_API_KEY k
    POST synthesize {"text": "x", "voice": 5} -> 200
    spoke {"text": "x", "voice": "nova"}
the profile of the query beats the body's
    three
    key OPENAI_API_KEY k
    key XAI_API_KEY k
    POST synthesize {"text": "x", "profile": "work"} -> 200
    spoke {"text": "x", "voice": "nova"}
    POST synthesize?profile=default {"text": "x", "profile": "work"} -> 200
    spoke {"text": "x"}
bad input
    xai
    POST synthesize -> 400 ~ JSON
    POST synthesize { -> 400 ~ JSON
    POST synthesize [] -> 400 ~ object
    POST synthesize {} -> 400 ~ string
    POST synthesize {"text": 5} -> 400 ~ string
    POST synthesize {"text": "  "} -> 400 ~ 5000
    POST synthesize {"text": "```code```"} -> 400 ~ spoken
    POST synthesize {"text": "x", "profile": 5} -> 400 ~ profile
    POST synthesize {"text": "x", "voice": 5} -> 400 ~ voice
    POST synthesize {"text": "x", "voice": "a\\nb"} -> 400 ~ voice
    long text 5001 5000
    long language 161 language
    asked 0
no engine that speaks
    POST synthesize {"text": "x"} -> 500 ~ TTS configuration error
    POST synthesize {"text": "x"} -> 500 ~ OPENAI_API_KEY
one without its key
    file agent {tts: {provider: elevenlabs}}
    POST synthesize {"text": "x"} -> 500 ~ TTS configuration error (elevenlabs): ELEVENLABS_API_KEY not set
one that is turned off
    file agent {tts: {enabled: 0, provider: xai}}
    POST synthesize {"text": "x"} -> 500 ~ disabled
"""


class Stage(Routes):
    def details(self, *words: str) -> None:
        """What `/voice/config` says of the engines in words."""
        answer = self.request("GET", "config", "").json
        assert answer["requirements"]["details"] == " ".join(words)

    def three(self) -> None:
        """The files of the host, of a profile that says something, and of one that does not."""
        self.file("agent", "{tts: {provider: xai}, stt: {provider: xai}}")
        self.file("work", "{tts: {provider: openai, openai: {voice: nova}}}")
        self.file("bare", "{model: x, tts: not a mapping}")

    def xai(self) -> None:
        """xAI speaks."""
        self.file("agent", "{tts: {provider: xai, xai: {voice_id: leo, model: xai-tts, language: en}}}")
        self.key("XAI_API_KEY", "k")

    def long(self, name: str, more: str) -> None:
        """A member that is too long, and what the refusal names."""
        size, word = more.split()
        answer = self.request("POST", "synthesize", json.dumps({"text": "x", name: "x" * int(size)}))
        assert word in failed(answer, 400)


@pytest.mark.parametrize(("title", "lines"), dialogues(DIALOGUES).items())
def test_a_dialogue(title: str, lines: list[str]) -> None:
    play(lines, Stage())


# --- transcribe -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "suffix"),
    [
        (Part(name="audio", data=WAV, content_type="audio/wav"), ".wav"),
        (Part(name="audio", data=WAV, content_type="audio/mp4", filename="voice.mp4"), ".m4a"),
        (Part(name="audio", data=WAV, content_type="audio/webm; codecs=opus", filename="voice.webm"), ".webm"),
        (Part(name="file", data=WAV), ".wav"),
        (Part(name="audio", data=WAV, content_type="application/x-tar"), ".wav"),
    ],
)
def test_a_recording_becomes_text(part: Part, suffix: str) -> None:
    book, puppets = voice_book()
    puppets.local = True
    answer = send(book, form(Part(name="note", data=b"skipped"), part, Part(name="audio", data=b"skipped too")))
    assert (answer.status, answer.json) == (
        200,
        {"success": True, "text": "turn on the lamp", "provider": "local", "profile": None},
    )
    kind = (part.content_type or "").partition(";")[0].lower()
    assert puppets.asked == [(kind, suffix, len(WAV), len(WAV), "", "")]
    assert book.uploads == []


def test_what_the_configuration_says_of_the_engine() -> None:
    said = {"stt": {"provider": "openai", "openai": {"model": "whisper-1", "language": "de"}}}
    book, puppets = voice_book({WORK: put_yaml(said)}, variables={"OPENAI_API_KEY": "k"})
    answer = send(book, form(Part(name="audio", data=WAV)), "?profile=work")
    assert answer.json["profile"] == "work"
    assert answer.json["provider"] == "openai"  # as `/voice/config` names it, wire 3.3
    assert puppets.asked == [("", ".wav", len(WAV), len(WAV), "whisper-1", "de")]


@pytest.mark.parametrize(
    ("body", "kind", "word"),
    [
        (b"{}", b"application/json", "multipart/form-data"),
        (b"RIFF", b"audio/wav", "multipart/form-data"),
        (b"x", b"multipart/form-data", "boundary"),
        (b"", FORM[1], "end"),
        (form(Part(name="audio", data=WAV))[:-20], FORM[1], ""),
        (form(Part(name="note", data=b"no audio")), FORM[1], "no audio file"),
        (form(Part(name="audio", data=b"")), FORM[1], "empty"),
        (b"--xyz--\r\n", FORM[1], "no audio file"),
    ],
)
def test_a_body_without_a_recording(body: bytes, kind: bytes, word: str) -> None:
    book, puppets = voice_book()
    puppets.local = True
    assert word in failed(send(book, body, kind=kind), 400)
    assert (book.uploads, book.node.operations.open_handles, puppets.asked) == ([], 0, [])


def test_too_long_a_recording_is_cut_off_while_it_comes() -> None:
    book, puppets = voice_book()
    answer = send(book, form(Part(name="audio", data=bytes(MAX_UPLOAD + 1))))
    assert str(MAX_UPLOAD) in failed(answer, 413)
    assert (book.uploads, puppets.asked) == ([], [])


def test_the_longest_recording() -> None:
    book, puppets = voice_book()
    puppets.local = True
    assert send(book, form(Part(name="audio", data=bytes(MAX_UPLOAD)))).status == 200
    assert book.uploads == []


@pytest.mark.parametrize("step", [CreateBlob, WriteBlob, FinishBlob])
def test_a_disk_that_does_not_take_it(step: type[object]) -> None:
    book, puppets = voice_book()
    puppets.local = True
    book.refuse = (step,)
    assert "full" in failed(send(book, form(Part(name="audio", data=WAV))), 500)
    assert (book.uploads, book.node.operations.open_handles) == ([], 0)


def test_a_disk_that_is_broken() -> None:
    book, _ = voice_book()
    token = book.pair().token
    book.hold = (WriteBlob,)
    call = book.call("POST", "/voice/transcribe", form(Part(name="audio", data=WAV)), token=token, headers=[FORM])
    (write,) = book.held
    book.feed(Failed(write.op, Failure(FailureKind.INTERNAL)))
    assert "stored" in failed(call.result, 500)
    assert (book.uploads, book.node.operations.open_handles) == ([], 0)


def test_an_engine_that_cannot() -> None:
    book, puppets = voice_book()
    puppets.local = True
    puppets.problem = ProviderError("the file is no WAV")
    answer = send(book, form(Part(name="audio", data=WAV)))
    assert failed(answer, 500) == "the file is no WAV"
    assert answer.json["provider"] == "local"
    assert book.uploads == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, ("No STT provider available", "OPENAI_API_KEY")),
        ({"stt": {"provider": "elevenlabs"}}, ("No STT provider available", "ELEVENLABS_API_KEY")),
        ({"stt": {"enabled": False}}, ("No STT provider available", "disabled")),
    ],
)
def test_no_engine_that_listens(said: object, words: tuple[str, ...]) -> None:
    book, _ = voice_book({AGENT_FILE: put_yaml(said)})
    answer = send(book, form(Part(name="audio", data=WAV)))
    text = failed(answer, 500)
    assert all(word in text for word in words)
    assert answer.json["provider"] is None
    assert book.uploads == []


def test_whoever_goes_away_leaves_nothing_behind() -> None:
    book, puppets = voice_book()
    puppets.local, puppets.takes = True, 5.0
    call = book.call(
        "POST", "/voice/transcribe", form(Part(name="audio", data=WAV)), token=book.pair().token, headers=[FORM]
    )
    assert len(book.uploads) == 1
    call.vanish()
    assert book.uploads == []
    book.after(10.0)
    assert puppets.asked == []


def test_no_more_than_so_many_at_once() -> None:
    book, puppets = voice_book()
    puppets.local, puppets.takes = True, 5.0
    token = book.pair().token
    calls = [book.call("POST", "/voice/synthesize", {"text": "x"}, token=token) for _ in range(MAX_BUSY)]
    answer = send(book, form(Part(name="audio", data=WAV)))
    failed(answer, 503)
    assert b"too many others are speaking" in answer.body
    assert answer.headers.get(b"retry-after") == b"5"
    assert book.uploads == []
    calls[0].vanish()
    again = book.call("POST", "/voice/synthesize", {"text": "x"}, token=token)
    book.after(5.0)
    assert {call.result.status for call in [*calls[1:], again]} == {200}


# --- synthesize -------------------------------------------------------------------------------------------------------


def test_a_text_becomes_a_file() -> None:
    book, puppets = voice_book()
    puppets.local = True
    answer = say(book, {"text": " **Ready** when [you](http://x) are. "})
    assert (answer.status, answer.body) == (200, b"ID3 sound")
    assert answer.headers.get(b"content-type") == b"audio/mpeg"
    assert answer.headers.get(b"cache-control") == b"private, no-store"
    assert answer.headers.get(b"content-disposition") == b'inline; filename="tts.mp3"'
    assert puppets.asked == [SpeechRequest(text="Ready when you are.")]


def test_another_kind_of_file() -> None:
    book, puppets = voice_book()
    puppets.local, puppets.spoken = True, Spoken(b"RIFF", "audio/wav")
    answer = say(book, {"text": "x"})
    assert answer.headers.get(b"content-disposition") == b'inline; filename="tts.wav"'


def test_an_engine_that_fails() -> None:
    book, puppets = voice_book()
    puppets.local, puppets.problem = True, ProviderError("no sound")
    assert failed(say(book, {"text": "x"}), 500) == "TTS failed (local): no sound"
    logged = next(log for log in book.logs if log.event == "voice engine failed")
    assert logged.fields == {"provider": "local", "problem": "TTS failed (local): no sound"}


# --- what the engine refuses ------------------------------------------------------------------------------------------


def test_refusals_of_the_engine_are_for_these_clients_too() -> None:
    book, _ = voice_book()
    token = book.pair().token
    assert failed(book.request("PUT", "/voice/config", token=token), 405)
    head = [(b"content-length", b"%d" % (2 * MAX_UPLOAD)), (b"authorization", b"Bearer " + token.encode())]
    lines = [b"POST /voice/transcribe HTTP/1.1", b"host: x", *(name + b": " + value for name, value in head)]
    assert failed(book.raw(b"\r\n".join([*lines, b"", b""]), peer=REMOTE).result, 413)
