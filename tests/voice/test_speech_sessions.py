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
from tests.voice.dialogue import DialogueRun, dialogues, play
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

DIALOGUES = f"""
a stub session of the lab
    create lab
    answered protocol=svc.voice.realtime.v0 resume_token=null
    A comes -> session.ready(at_ms=0.0, provider=stub, voice=sine, sample_rate=24000, event_id=None)
    A puts session.start -> session.ready
    A puts input_audio.append audio_base64=AAAA
        -> input_audio.received(at_ms=0.0, byte_count=3, total_bytes=3, sample_rate=24000)
    A puts input_audio.append audio_base64=AA== sample_rate=16000
        -> input_audio.received(byte_count=1, total_bytes=4, sample_rate=16000)
    A puts response.create tool_scaffold=true
        -> response.started(render_mode=conversation, text_chars={len(SENTENCE)}, input_audio_bytes=4, output_mode=None)
        -> tool.requested(name=svc_run_task, arguments={{"input_audio_bytes": 4}})
        -> tool.completed(name=svc_run_task, result=scaffold-only)
        -> audio.delta(event_id=None, audio_event_id=None)*8 audio.done response.done(output_mode=None)
    A puts response.create text=Again. render_mode=song
        -> response.started(render_mode=song, text_chars=6) audio.delta*8 audio.done response.done
    A puts session.close -> closed(code=1000)
    log audio.delta audio.done response.done realtime.session.closed
    copied 7400
    copied 6000 -2
one response for each session
    spoken
    A puts response.create text=Again. -> error(message=a response is already running in this session)
    speaks sound end -> audio.delta audio.done response.done
    A puts response.create text=Again. -> error(message=a response was already completed in this session)
no second response after a failed one
    spoken
    speaks sound 'the provider is on fire' -> audio.delta
        -> error(event_id=4, message=the provider is on fire, provider=openai_tts, fallback_enabled=true)
    A puts response.create text=Again. -> error(message=a response was already completed in this session)
the client closes the session
    spoken
    A puts session.close -> closed(code=1000)
    are 0
    scripted stopped=true
    A leaves 1000 -> nothing
    reason 'client closed'
who asked for nothing is not waited for
    create provider=openai_tts
    A comes
    A leaves 1006
    are 0
    after 3601
    rests
who leaves by accident finds all that was said
    spoken
    speaks sound end
    A leaves 1006
    are 1 detached
    B comes
    B puts session.resume resume_token=$token -> session.resumed replay.started session.ready response.started
        -> audio.delta audio.done response.done session.detached replay.done
    B leaves
    after 31
    are 0
    after 3601
    rests
a full disk does not stop speech
    disk_full
    spoken
    speaks sound
    after 2
    speaks sound end -> audio.delta audio.done response.done
    after 2
    given_up
another product's names
    brand
    create lab -> nothing
    answered protocol=hermes.voice.realtime.v0
    A comes
    A puts response.create tool_scaffold=true -> response.started tool.requested
        -> tool.completed(name=hermes_run_task) audio.delta*8 audio.done response.done
    create
    answered protocol=hermes.voice.output.v0
    spoken
    speaks no -> error(message=no, fallback_provider=legacy_hermes_tts)
    warned openai_tts no
sound from a piece that was too small
    spoken
    speaks half end -> audio.done response.done
    first_sound null
a slow client makes the provider wait
    spoken
    A stops_reading
    speaks sound sound sound end
    scripted taken=0
    after 300
    scripted taken=0
    A reads
    scripted taken=3
    log audio.delta audio.delta audio.delta audio.done response.done
to come back in the middle
    spoken
    speaks sound sound -> audio.delta(event_id=3, audio_event_id=1) audio.delta(event_id=4, audio_event_id=2)
    A leaves 1001
    speaks sound -> nothing
    after 10
    B comes -> nothing
    B puts session.resume resume_token=$token last_event_id=4 last_audio_event_id=1 last_played_audio_event_id=0
        -> session.resumed(event_id=7, last_event_id=4, last_audio_event_id=1, last_played_audio_event_id=0)
        -> replay.started(event_id=8, from_event_id=4, from_audio_event_id=1, replay_event_count=3)
        -> audio.delta(event_id=4, replayed=true)
        -> session.detached(event_id=5, replayed=true, reason=websocket_disconnected, resume_ttl_ms=30000)
        -> audio.delta(event_id=6, replayed=true) replay.done(event_id=9, replay_event_count=3)
    speaks sound end -> B:audio.delta(event_id=10) B:audio.done(event_id=11) B:response.done(event_id=12)
    B leaves 1000
    log response.done output.session.closed
    copied 960
to come back with the first word
    spoken
    A leaves
    B comes
    B puts session.start resume_token=$token -> session.resumed replay.started session.ready response.started
        -> session.detached replay.done
    B puts session.start resume_token=$token -> session.resumed replay.started session.ready response.started
        -> session.detached replay.done
    B leaves
    C comes
    C puts session.start -> session.resume_failed(reason=invalid_resume_token) closed(code=4003)
a wrong token from the owner
    spoken
    A puts session.resume resume_token=guess -> session.resume_failed closed(code=4003)
    are 1 detached
a cursor that is no number
    spoken
    A leaves
    B comes
    B puts session.resume resume_token=$token last_event_id='"1"' -> error(message=last_event_id must be a whole number)
    B puts session.resume resume_token=$token last_event_id=2 -> session.resumed replay.started session.detached
        -> replay.done
    B puts session.resume resume_token=$token last_audio_event_id=-1 -> error
a second socket takes over
    spoken
    B comes -> nothing
    B puts session.resume resume_token=$token -> A:closed(code=4000) session.resumed replay.started session.ready
        -> response.started replay.done
    A leaves 4000
    speaks sound -> B:audio.delta
    C comes
    C reads
    after 60 -> C:session.resume_failed C:closed(code=4009)
a second socket starts
    spoken
    B comes
    B puts session.start -> session.resume_failed(reason=session_not_claimed) closed(code=4009)
a candidate that makes no sense may try again
    spoken
    B comes
    B sends {{ -> error
    B sends_bytes -> session.resume_failed closed(code=4009)
one response at a time in the lab
    lab
    A puts response.create text=One. -> response.started
    A puts response.create text=Two. -> error
    speaks sound end -> audio.delta transcript.final(text=as it was said) audio.done response.done
    A puts response.create text=Three. -> response.started
    speaks sound 'out of breath' -> audio.delta error(message=out of breath, provider=openai_tts)
    A puts response.create text=Four. -> response.started
a lost socket stops the response and the session may be opened again
    lab
    A puts response.create text=One.
    speaks sound
    A leaves 1000
    scripted stopped=true
    are 1 fresh
    A comes -> session.ready
    A puts response.create text=One. -> response.started
    A leaves
    are 1 fresh
    A comes
    A leaves
    after 121
    are 0
    after 2
    rests
a second socket of the lab takes the place of the first
    lab
    A puts response.create text=One.
    B comes -> A:closed(code=4000) session.ready
    scripted stopped=true
    A leaves 4000
    stop -> B:closed(code=1001)
    reason 'server shutdown'
who may open a socket of the lab
    create lab
    A comes other -> refused(status=403)
    A comes
    A puts session.close
    B comes -> refused(status=404)
a provider of the settings that there is not
    set realtime_voice provider=gone
    create lab -> refused(status=400)
"""


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


@pytest.mark.parametrize(("title", "lines"), dialogues(DIALOGUES).items())
def test_a_dialogue(title: str, lines: list[str]) -> None:
    play(lines, Stage())


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
