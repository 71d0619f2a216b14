import base64
import json
import wave
from io import BytesIO
from string import Template

import pytest
import yaml

from svc_proto.machines.voice_session import DETACHED_MAX_BYTES
from svc_proto.voice.session import MAX_DELTA
from svc_proto.voice.speech_sessions import SENTENCE
from tests.voice.dialogue import DialogueRun, play, read_dialogues
from tests.voice.harness import SOUND, VoiceHarness, queue_samples, spoken

# --- the golden session: all members of all events
# -------------------------------------------------------------------

VOICE = "provider: stub, model: stub-tone, voice: sine"
SESSION = f"{VOICE}, session_id: $id, sample_rate: 24000, event_log_path: $log, profile: null, config_scope: relay"
SESSION += ", config_path: null, resume_supported: true, resume_ttl_ms: 30000"
OUTPUT = f"""
- {{{SESSION}, success: true, websocket_path: /voice/output/$id, resume_token: $token, protocol: svc.voice.output.v0,
   fallback_to_global: false}}
- {{{SESSION}, type: voice.session.ready, event_id: 1, at_ms: 0, output_mode: streaming_tts_renderer, last_event_id: 0,
   last_audio_event_id: 0}}
- {{type: voice.response.started, {VOICE}, event_id: 2, at_ms: 500, render_mode: verbatim, text_chars: 19,
   output_mode: streaming_tts_renderer}}
- {{type: voice.audio.delta, event_id: 3, audio_event_id: 1, at_ms: 500, byte_count: 1500, sample_rate: 24000,
   channels: 1, sample_width: 2, label: "frames:0-750", peak_level: $peak, rms_level: $rms}}
- {{type: voice.audio.done, event_id: 11, at_ms: 500}}
- {{type: voice.response.done, event_id: 12, at_ms: 500, provider: stub, model: local-tone, voice: sine,
   output_mode: streaming_tts_renderer, event_log_path: $log, audio_path: $wav,
   metadata: {{sample_rate: 24000, duration_seconds: 0.25, frequency_hz: 440}},
   metrics: {{provider: stub, model: local-tone, voice: sine, first_audio_ms: 0, response_done_ms: 0,
     audio_chunk_gap_ms: 0, audio_underruns: 0, speech_pacing: null, tone_consistency: null, emotion_consistency: null,
     voice_drift: null, interrupt_latency: null, pronunciation_quality: null, context_retention: null}}}}
"""


def test_whole_stub_session(rig: VoiceHarness) -> None:
    answer = rig.create(rig.output)
    assert (len(answer["session_id"]), len(answer["resume_token"])) == (24, 43)
    stem = "".join(letter for letter in answer["session_id"] if letter.isalnum())[:12]
    assert answer["event_log_path"] == f"/home/voice-output-runs/voice-output-20270115-080000-{stem}.jsonl"
    client = rig.attach(rig.output, answer)
    assert client.pings_every == 20.0
    rig.after(0.5)
    client.send_event("response.create", text="Ready when you are.")
    events = client.events()
    deltas = events[2:-2]
    assert [event["type"] for event in deltas] == ["voice.audio.delta"] * 8
    assert [event["event_id"] for event in events] == list(range(1, 13))
    assert [event["audio_event_id"] for event in deltas] == list(range(1, 9))
    assert {type(event["at_ms"]) for event in events} == {float}
    first = dict(deltas[0])
    assert len(base64.b64decode(first.pop("audio_base64"), validate=True)) == 1500
    assert 0.17 < first["rms_level"] < first["peak_level"] < 0.2442
    told = [answer, *events[:2], first, *events[-2:]]
    known = {"id": answer["session_id"], "token": answer["resume_token"], "log": answer["event_log_path"]}
    known |= {"wav": known["log"].replace(".jsonl", ".wav"), "peak": first["peak_level"], "rms": first["rms_level"]}
    assert told == yaml.safe_load(Template(OUTPUT).substitute(known))

    client.disconnect(1000)
    lines = rig.log(answer)
    about = ("voice.output.session.created", "voice.output.session.closed")
    assert [line["type"] for line in lines] == [about[0], *(event["type"] for event in events), about[1]]
    for line, event in zip(lines[1:-1], events, strict=True):
        sound = {"audio_base64": "<1500 bytes>"} if event in deltas else {}
        assert line == {**event, **sound, "unix_ms": line["unix_ms"]}
    raw = rig.disk.get(answer["event_log_path"]).decode()
    assert raw.splitlines() == [json.dumps(line, sort_keys=True, separators=(",", ":")) for line in lines]
    with wave.open(BytesIO(rig.disk.get(events[-1]["audio_path"]))) as copy:
        assert copy.getparams()[:4] == (1, 2, 24_000, 6000)
    assert answer["resume_token"] not in raw


# --- dialogues ------------------------------------------------------------------------------------------------------

DIALOGUES = read_dialogues("voice/speech_sessions", sentence_length=len(SENTENCE))


class Stage(DialogueRun):
    """Dialogue run with comparisons for speech sessions."""

    def answered(self, *words: str) -> None:
        """Compare members of the answer to the creation of the session."""
        for name, value in self._fields(words).items():
            assert self.answer.get(name) == value, name

    def warned(self, provider: str, problem: str) -> None:
        logged = next(log for log in self.rig.logs if log.event == "voice not rendered")
        assert (logged.fields["provider"], logged.fields["problem"]) == (provider, problem)

    def given_up(self) -> None:
        assert self.rig.log(self.answer) == []
        warnings = sorted((log.event, log.fields["problem"]) for log in self.rig.logs if log.level >= 30)
        assert warnings == [("old voice runs not deleted", "no_space"), *[("voice file given up", "no_space")] * 2]

    def first_sound(self, at: str) -> None:
        """Compare the time of the first audio, as the last event reports it; require that its metadata are masked."""
        assert self.heard[-1]["metrics"]["first_audio_ms"] == json.loads(at)
        assert self.heard[-1]["metadata"] == {"api_key": "[redacted]", "rate": 1.5, "none": None}

    def copied(self, frames: str, number: str = "") -> None:
        """Compare the number of frames in the file of a response."""
        path = self.answer["event_log_path"].replace(".jsonl", f"{number}.wav")
        with wave.open(BytesIO(self.rig.disk.get(path))) as copy:
            assert copy.getnframes() == int(frames)


@pytest.mark.parametrize("title", DIALOGUES)
def test_a_dialogue(title: str) -> None:
    play(DIALOGUES[title], Stage())


ANY = """
""
{
[]
null
{"type": 7}
{}
{"type":"unknown.type"}
{"type":"response.create","text":1}
{"type":"response.create","text":"x","expression":[]}
{"type":"input_audio.append"}
"""
OF_OUTPUT = """
{"type":"response.create"}
{"type":"response.create","text":"  "}
{"type":"response.create","text":"```code```"}
{"type":"response.create","text":"x","provider_options":"x"}
{"type":"client.ack","event_id":"1"}
{"type":"client.ack","audio_event_id":1.5}
"""
OF_LAB = """
{"type":"client.ack"}
{"type":"session.resume"}
{"type":"response.cancel"}
{"type":"input_audio.commit"}
{"type":"input_audio.append","audio_base64":"A"}
{"type":"input_audio.append","audio_base64":"ü"}
{"type":"input_audio.append","audio_base64":"A?A*AA"}
{"type":"input_audio.append","audio_base64":"","sample_rate":"x"}
"""


@pytest.mark.parametrize(("way", "texts"), [("create", ANY + OF_OUTPUT), ("create lab", ANY + OF_LAB)])
def test_bad_messages_are_reported_and_the_socket_stays_open(way: str, texts: str) -> None:
    stage = play([way, "A comes"], DialogueRun())
    client = stage.clients["A"]
    client.events()
    bad = ["", *filter(None, texts.splitlines())]
    for text in bad:
        client.send(text)
        (error,) = client.events()
        assert (error["type"], bool(error["message"]), client.closed) == ("voice.error", True, None), text
        assert ("event_id" in error) is (way == "create")
    play(["A sends_bytes -> error"], stage)
    if way == "create":
        number = len(bad) + 2
        play(["A puts client.ack event_id=1 -> nothing"], stage)
        play([f"A puts session.start -> session.ready(event_id={number + 1}, last_event_id={number})"], stage)


def test_detached_session_pauses_the_provider() -> None:
    stage = play(["spoken", "A leaves", f"speaks {'large ' * 200} end"], DialogueRun())
    kept = stage.rig.scripted.taken
    assert 0 < kept * MAX_DELTA * 4 // 3 < DETACHED_MAX_BYTES + MAX_DELTA
    play(["after 29", f"scripted taken={kept}", "B comes", "B puts session.resume resume_token=$token"], stage)
    assert stage.rig.scripted.taken == 200
    ids = [event["audio_event_id"] for event in stage.heard if event["type"] == "voice.audio.delta"]
    assert ids == list(range(1, 201))


def test_provider_bug_is_reported_with_a_reference(rig: VoiceHarness) -> None:
    _, client = spoken(rig)
    queue_samples(rig, SOUND, ZeroDivisionError("oops"))
    assert "bug" in rig.events()
    assert client.events()[-1].items() >= {"type": "voice.error", "message": "internal error, reference bug-1"}.items()
