"""`/voice/config`, `/voice/transcribe`, `/voice/synthesize` (wire terminal-voice 3)."""

from __future__ import annotations

import pytest

from svc_proto.commands import CreateBlob, FinishBlob, WriteBlob
from svc_proto.facts import Failed, Failure, FailureKind
from svc_proto.relay.routes.voice_basic import MAX_BUSY
from svc_proto.relay.voice_upload import MAX_UPLOAD
from svc_proto.voice.contract import ProviderError, SpeechRequest, Spoken
from svc_proto.wire.multipart import Part, encode_multipart
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


def config(book: RelayBook, query: str = "") -> dict[str, object]:
    answer = book.request("GET", f"/voice/config{query}", token=book.pair().token)
    assert answer.status == 200, answer
    found: dict[str, object] = answer.json
    return found


def failed(answer: Answer, status: int) -> str:
    """The text of a refusal of these three routes."""
    assert answer.status == status, answer
    assert answer.headers.get(b"content-type") == b"application/json"
    assert answer.json["success"] is False
    return str(answer.json["error"])


# --- config -----------------------------------------------------------------------------------------------------------


def test_nothing_is_configured_and_nothing_is_installed() -> None:
    book, _ = voice_book()
    assert config(book) == {
        "success": True,
        "profile": None,
        "config_scope": "global",
        "config_path": None,
        "fallback_to_global": False,
        "tts": {"provider": None, "voice_id": None, "voice": None, "model": None, "enabled": False, "enhanced": None},
        "stt": {"provider": None, "model": None, "enabled": False},
        "requirements": {
            "available": False,
            "audio_available": False,
            "stt_available": False,
            "missing_packages": ["espeak-ng"],
            "details": "speaks: nothing; listens: nothing; not installed: espeak-ng",
            "environment": {"available": False, "warnings": []},
        },
    }


def test_this_hosts_own_engines_are_the_default() -> None:
    book, puppets = voice_book(variables={"OPENAI_API_KEY": "k"})
    puppets.local = True
    found = config(book)
    assert (found["tts"], found["stt"]) == (
        {"provider": "local", "voice_id": None, "voice": None, "model": None, "enabled": True, "enhanced": None},
        {"provider": "local", "model": None, "enabled": True},
    )
    assert found["requirements"]["details"] == "speaks: local; listens: local"  # type: ignore[index]


def test_else_the_first_vendor_with_a_key() -> None:
    book, _ = voice_book({"/home/svc/.env": "XAI_API_KEY=k\nELEVENLABS_API_KEY=k\n"})
    found = config(book)
    assert found["tts"]["provider"] == found["stt"]["provider"] == "xai"  # type: ignore[index]


def test_what_is_configured_counts() -> None:
    said = {
        "tts": {"provider": "XAI", "xai": {"voice_id": "leo", "model": "xai-tts"}, "openai": {"voice": "x"}},
        "stt": {"provider": "openai", "openai": {"model": "whisper-1"}, "enabled": "off"},
    }
    book, puppets = voice_book({AGENT_FILE: put_yaml(said)})
    puppets.local = True
    found = config(book)
    assert found["tts"] == {
        "provider": "xai",
        "voice_id": "leo",
        "voice": "leo",
        "model": "xai-tts",
        "enabled": True,
        "enhanced": {
            "provider": "xai",
            "supported": True,
            "voices": [],
            "models": [],
            "audio_tag_models": [],
            "audio_tags_enabled": False,
            "audio_tags_label": "",
            "supports_persona": False,
            "supports_language": True,
            "persona_prompt_file": None,
            "overrides": ["voice", "language"],
        },
    }
    assert found["stt"] == {"provider": "openai", "model": "whisper-1", "enabled": False}


BARE = "/home/svc/profiles/bare/config.yaml"
FILES = {
    AGENT_FILE: put_yaml({"tts": {"provider": "xai"}, "stt": {"provider": "xai"}}),
    WORK: put_yaml({"tts": {"provider": "openai", "openai": {"voice": "nova"}}}),
    BARE: put_yaml({"model": "x", "tts": "not a mapping"}),
}


@pytest.mark.parametrize(
    ("query", "profile", "scope", "path", "fallback", "tts"),
    [
        ("", None, "global", None, False, "xai"),
        ("?profile=default", "default", "profile", AGENT_FILE, False, "xai"),
        ("?profile=work", "work", "profile", WORK, False, "openai"),
        ("?profile=bare", "bare", "global", None, True, "xai"),
        ("?profile=nobody", "nobody", "global", None, True, "xai"),
        ("?profile=..", "..", "global", None, True, "xai"),
    ],
)
def test_profiles(query: str, profile: str | None, scope: str, path: str | None, fallback: bool, tts: str) -> None:
    book, _ = voice_book(FILES)
    found = config(book, query)
    scoped = (found["profile"], found["config_scope"], found["config_path"], found["fallback_to_global"])
    assert scoped == (profile, scope, path, fallback)
    assert found["tts"]["provider"] == tts  # type: ignore[index]
    assert found["stt"]["provider"] == "xai"  # type: ignore[index]


def test_a_profile_that_names_no_provider() -> None:
    """Wire 3.2: the provider is the section's, else the one in force; what is set of it is the section's."""
    root = {"tts": {"provider": "xai", "xai": {"voice_id": "eve"}, "enabled": False}}
    theirs = {"tts": {"xai": {"voice_id": "leo"}}}
    book, puppets = voice_book({AGENT_FILE: put_yaml(root), WORK: put_yaml(theirs)})
    puppets.local = True
    found = config(book, "?profile=work")
    tts = found["tts"]
    assert isinstance(tts, dict)
    assert (found["config_scope"], tts["provider"], tts["voice"], tts["enabled"]) == ("profile", "xai", "leo", True)
    assert found["stt"] == {"provider": "local", "model": None, "enabled": True}


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


XAI = {"tts": {"provider": "xai", "xai": {"voice_id": "leo", "model": "xai-tts", "language": "en"}}}


@pytest.mark.parametrize(
    ("body", "voice", "language"),
    [
        ({}, "leo", "en"),
        ({"voice": "ara", "language": "de", "model": "other", "base_url": "http://evil"}, "ara", "de"),
        ({"enhanced": {"voice": "ara"}, "language": " "}, "ara", "en"),
        ({"enhanced": 5, "voice": None}, "leo", "en"),
    ],
)
def test_what_a_request_may_choose_of_xai(body: dict[str, object], voice: str, language: str) -> None:
    book, puppets = voice_book({AGENT_FILE: put_yaml(XAI)}, variables={"XAI_API_KEY": "k"})
    assert say(book, {"text": "x", **body}).status == 200
    assert puppets.asked == [SpeechRequest(text="x", model="xai-tts", voice=voice, language=language)]


def test_nothing_can_be_chosen_of_the_others() -> None:
    book, puppets = voice_book(
        {AGENT_FILE: put_yaml({"tts": {"provider": "openai", "openai": {"voice": "nova"}}})},
        variables={"OPENAI_API_KEY": "k"},
    )
    assert say(book, {"text": "x", "voice": 5}).status == 200
    assert puppets.asked == [SpeechRequest(text="x", voice="nova")]


def test_the_profile_of_the_query_beats_the_bodys() -> None:
    book, puppets = voice_book(FILES, variables={"OPENAI_API_KEY": "k", "XAI_API_KEY": "k"})
    assert say(book, {"text": "x", "profile": "work"}).status == 200
    assert say(book, {"text": "x", "profile": "work"}, "?profile=default").status == 200
    assert [request.voice for request in puppets.asked] == ["nova", ""]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        ([], "object"),
        ({}, "string"),
        ({"text": 5}, "string"),
        ({"text": "  "}, "5000"),
        ({"text": "x" * 5001}, "5000"),
        ({"text": "```code```"}, "spoken"),
        ({"text": "x", "profile": 5}, "profile"),
        ({"text": "x", "voice": 5}, "voice"),
        ({"text": "x", "language": "x" * 161}, "language"),
        ({"text": "x", "voice": "a\nb"}, "voice"),
    ],
)
def test_bad_input(body: object, word: str) -> None:
    book, puppets = voice_book({AGENT_FILE: put_yaml(XAI)}, variables={"XAI_API_KEY": "k"})
    assert word in failed(say(book, body), 400)
    assert puppets.asked == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, ("TTS configuration error", "OPENAI_API_KEY")),
        ({"tts": {"provider": "elevenlabs"}}, ("TTS configuration error (elevenlabs): ELEVENLABS_API_KEY not set",)),
        ({"tts": {"enabled": 0, "provider": "xai"}}, ("disabled",)),
    ],
)
def test_no_engine_that_speaks(said: object, words: tuple[str, ...]) -> None:
    book, _ = voice_book({AGENT_FILE: put_yaml(said)})
    text = failed(say(book, {"text": "x"}), 500)
    assert all(word in text for word in words)


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
