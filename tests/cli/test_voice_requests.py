from typing import Any

import pytest

from svc_proto.cli.voice_requests import (
    MAX_RECORDING,
    RecordingFile,
    config_rows,
    fetch_voice_config,
    save_speech,
    transcribe,
)
from svc_proto.commands import Notify
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.wire.events import Headers
from svc_proto.wire.multipart import MultipartDecoder, PartBegin
from tests.cli.harness import OneShotHarness, as_json
from tests.support.http_codec import Response

RELAY = RelayClient("the relay", "http://127.0.0.1:8767", token="t0ken-1234")
UPLOAD, TOO_LARGE = RecordingFile("memo.M4A", b"sound"), RecordingFile("a", bytes(MAX_RECORDING + 1))


def test_recording_is_transcribed() -> None:
    answer = {"success": True, "text": "turn on the lamp", "provider": "local"}
    world = OneShotHarness(lambda engine: transcribe(engine, RELAY, UPLOAD, "my work"), http=as_json(answer))
    assert world.run() == ("turn on the lamp", "local")
    (asked,) = world.asked
    assert asked.path == "/voice/transcribe?profile=my+work"
    assert asked.headers.get(b"authorization") == b"Bearer t0ken-1234"
    decoder = MultipartDecoder(asked.headers.get(b"content-type") or b"")
    decoder.receive_data(asked.body)
    begin = decoder.next_event()
    assert isinstance(begin, PartBegin)
    assert (begin.name, begin.content_type) == ("audio", "audio/mp4")
    assert b"sound" in asked.body


@pytest.mark.parametrize(("name", "kind"), [("a.wav", "wav"), ("a.webm", "webm"), ("a.opus", "ogg"), ("a", "wav")])
def test_recording_media_types(name: str, kind: str) -> None:
    recording = RecordingFile(name, b"x")
    world = OneShotHarness(lambda engine: transcribe(engine, RELAY, recording), http=as_json({"text": ""}))
    assert world.run() == ("", None)
    assert f"audio/{kind}\r\n".encode() in world.asked[0].body


REFUSALS: list[tuple[Any, str]] = [
    (as_json({}, 401), "the relay does not know this session any more: pair again with svc-relay pair"),
    (as_json({"success": False, "error": "no KEY"}, 500), "the relay refuses: no KEY (status 500)"),
    (Failure(FailureKind.UNREACHABLE, "reset"), "the relay at http://127.0.0.1:8767 cannot be reached: reset"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "reason"), REFUSALS)
def test_refusals(answer: Any, reason: str) -> None:
    recording, text = RecordingFile("a.wav", bytes(MAX_RECORDING)), "x" * 5_000  # the maximum sizes
    for flow in (lambda engine: transcribe(engine, RELAY, recording), lambda engine: save_speech(engine, RELAY, text)):
        assert OneShotHarness(flow, http=answer).fails().reason == reason


@pytest.mark.parametrize(
    ("given", "answer", "code", "reason"),
    [
        (RecordingFile("a.wav", b""), None, 2, "a.wav is empty"),
        (TOO_LARGE, None, 2, "a has more than the 26214400 bytes that the relay takes"),
        (UPLOAD, as_json({"text": 5}), 1, "the relay gave no text"),
        (" ", None, 2, "the text is empty"),
        ("x" * 5_001, None, 2, "the text has more than 5000 characters"),
        ("Hi", (200, b""), 1, "the relay gave no sound"),
    ],
)
def test_empty_results(given: RecordingFile | str, answer: Any, code: int, reason: str) -> None:
    def flow(engine: Engine) -> Flow[object]:
        return save_speech(engine, RELAY, given) if isinstance(given, str) else transcribe(engine, RELAY, given)

    world = OneShotHarness(flow, http=answer)
    end = world.fails()
    assert (end.code, end.reason, len(world.asked)) == (code, reason, answer is not None)


@pytest.mark.parametrize(
    ("kind", "name"), [("audio/mpeg", "speech.mp3"), ("audio/wav; x", "speech.wav"), ("odd/kind", "speech.bin")]
)
def test_text_is_saved_as_speech(kind: str, name: str) -> None:
    world = OneShotHarness(
        lambda engine: save_speech(engine, RELAY, "Ready.", profile="work", choice={"voice": "leo"}),
        http=Response(200, Headers([(b"content-type", kind.encode())]), b"sound"),
    )
    assert world.run() == kind.partition(";")[0]
    assert world.told[-1] == Notify("piece", {"data": b"sound", "name": name})
    assert world.asked[0].json == {"text": "Ready.", "profile": "work", "voice": "leo"}


CONFIG = {
    "tts": {"provider": "xai", "model": "grok-voice", "voice": "leo", "enabled": True},
    "stt": {"provider": None, "enabled": False},
    "config_scope": "profile",
    "config_path": "/home/me/config.yaml",
    "requirements": {"missing_packages": ["lameenc", "av"]},
}


def test_configured_engines() -> None:
    world = OneShotHarness(lambda engine: fetch_voice_config(engine, RELAY), http=as_json(CONFIG))
    assert config_rows(world.run()) == [
        ("speaks", "xai, grok-voice, leo"),
        ("listens", "nothing (off)"),
        ("settings", "profile /home/me/config.yaml"),
        ("not installed", "lameenc, av"),
    ]
    assert world.asked[0].path == "/voice/config"


@pytest.mark.parametrize("odd", [{}, {"tts": 5, "stt": [], "requirements": {"missing_packages": "all"}}])
def test_invalid_configuration(odd: dict[str, Any]) -> None:
    nothing = [("speaks", "nothing (off)"), ("listens", "nothing (off)")]
    assert config_rows(JsonObject(odd)) == [*nothing, ("settings", "global")]
    mistyped = "global, since the profile says nothing of speech, or is not there"
    assert config_rows(JsonObject({**odd, "fallback_to_global": True}))[2:] == [("settings", mistyped)]
