"""How what a renderer says reaches a client."""

from __future__ import annotations

from svc_proto.voice.contract import AudioChunk
from svc_proto.voice.session import MAX_DELTA
from svc_proto.voice.speech import LIFE, SpeechState, SpeechTrigger
from tests.machines.lifecycles import check_table
from tests.voice.rig import SOUND, Rig, give, spoken


def test_the_table_is_that_of_the_document() -> None:
    rows = [
        ("ready", (SpeechTrigger.SPEAK,), "speaking"),
        ("speaking", (SpeechTrigger.REST,), "ready"),
        ("speaking", (SpeechTrigger.END,), "spoken"),
    ]
    check_table(LIFE, SpeechState, SpeechTrigger, rows)


def test_metrics_of_a_slow_provider(rig: Rig) -> None:
    answer, client = spoken(rig)
    for pause in (0.2, 0.005, 0.05, 0.0):
        rig.after(pause)
        give(rig, SOUND)
    rig.after(0.1)
    give(rig, None)
    done = client.events()[-1]
    metrics = done["metrics"]
    assert metrics["first_audio_ms"] == 200.0
    assert metrics["audio_chunk_gap_ms"] == 50.0
    assert metrics["audio_underruns"] == 1
    assert metrics["response_done_ms"] == 355.0
    assert done["metadata"] == {"api_key": "[redacted]", "rate": 1.5, "none": None}
    assert (done["provider"], done["model"], done["voice"]) == ("puppet", "m", "v")
    assert rig.log(answer)[-1]["type"] == "voice.response.done"


def test_nothing_but_silence(rig: Rig) -> None:
    _, client = spoken(rig)
    give(rig, AudioChunk(b"\x01", 24_000), None)
    done = client.events()[-1]
    assert (done["type"], done["metrics"]["first_audio_ms"]) == ("voice.response.done", None)


def test_large_pieces_are_cut(rig: Rig) -> None:
    _, client = spoken(rig)
    client.events()
    give(rig, AudioChunk(bytes(2 * MAX_DELTA + 3), 24_000), None)
    sizes = [event["byte_count"] for event in client.events() if "byte_count" in event]
    assert sizes == [MAX_DELTA, MAX_DELTA, 2]


def test_a_slow_client_makes_the_provider_wait(rig: Rig) -> None:
    answer, client = spoken(rig)
    client.writable = False
    give(rig, SOUND, SOUND, SOUND, None)
    assert rig.puppet.taken == 0
    rig.after(300.0)  # looked after now and then, in vain
    assert rig.puppet.taken == 0
    client.read()
    assert rig.puppet.taken == 3
    assert client.types()[-1] == "voice.response.done"
    assert rig.log(answer)[-1]["type"] == "voice.response.done"
