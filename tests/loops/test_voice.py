"""Tests of the voice routes with the speech engines and programs of this host."""

from pathlib import Path
from typing import Any

from svc_proto.wire.multipart import Part, encode_multipart
from tests.loops.environment import Environment, bearer
from tests.loops.voice_client import seconds
from tests.support.http_codec import Response
from tests.voice.recordings import CLEAR_VOICE, SENTENCE, needs_decoder, needs_engines, understood

FORM = "multipart/form-data; boundary=xyz"
LISTENED = 60.0  # s for a transcription, also on a busy machine


def json_of(answer: Response, status: int = 200) -> dict[str, Any]:
    assert answer.status == status, answer
    found: dict[str, Any] = answer.json
    return found


def transcribe(world: Environment, token: str, data: bytes, content_type: str, query: str = "") -> Response:
    body = encode_multipart([Part(name="audio", data=data, content_type=content_type)], "xyz")
    headers = {**bearer(token), "content-type": FORM}
    return world.http("POST", f"/voice/transcribe{query}", headers=headers, body=body, timeout=LISTENED)


def synthesize(world: Environment, token: str, **body: object) -> Response:
    return world.http("POST", "/voice/synthesize", body, headers=bearer(token), timeout=LISTENED)


def nothing_left(world: Environment, folder: Path) -> None:
    """Wait until the relay's spool folder is empty."""
    world.eventually(lambda: not list((folder / "spool").glob("*")))


@needs_engines
@needs_decoder
def test_a_sentence_is_spoken_and_understood_offline(host: Environment, tmp_path: Path) -> None:
    host.write_home("config.yaml", f"tts: {{provider: local, local: {{voice: {CLEAR_VOICE}}}}}\n")
    host.start_relay()
    token = host.pair().token
    config = json_of(host.http("GET", "/voice/config", headers=bearer(token)))
    assert (config["tts"]["provider"], config["stt"]["provider"]) == ("local", "local")
    assert config["requirements"]["available"] is True
    said = synthesize(host, token, text=SENTENCE)
    assert (said.status, said.headers.get(b"content-type")) == (200, b"audio/mpeg"), said
    assert 1.5 < seconds(said.body) < 5.0
    heard = json_of(transcribe(host, token, said.body, "audio/mpeg"))
    assert (heard["success"], heard["provider"]) == (True, "local")
    assert understood(heard["text"]), heard
    nothing_left(host, tmp_path)


def test_a_command_of_the_operators_own(host: Environment, tmp_path: Path) -> None:
    host.write_home(
        "config.yaml",
        "tts: {provider: mine, providers: {mine: {type: command, format: wav, "
        """command: "sh -c 'cat >$0; echo $1 >>$0' {output_path} {voice}", voice: Ann}}}\n"""
        "stt: {provider: ears, providers: {ears: {type: command, command: 'cat {input_path}'}}}\n",
    )
    host.start_relay()
    token = host.pair().token
    said = synthesize(host, token, text="Hello; exit 1")
    assert (said.status, said.headers.get(b"content-type"), said.body) == (200, b"audio/wav", b"Hello; exit 1Ann\n")
    heard = json_of(transcribe(host, token, b" the lamp\n", "audio/wav"))
    assert (heard["text"], heard["provider"]) == ("the lamp", "ears")
    nothing_left(host, tmp_path)
