from array import array
from base64 import b64decode, b64encode
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.voice.provider_interface import (
    AudioDelta,
    AudioDone,
    FunctionCall,
    ProviderErrorEvent,
    ProviderReady,
    RealtimeOptions,
    ResponseDone,
    ResponseStarted,
    SpokenTextDelta,
    TranscriptDelta,
    TranscriptFinal,
)
from svc_proto.voice.provider_keys import ProviderCredentials
from svc_proto.voice.providers import realtime_dialects
from svc_proto.voice.providers.realtime_dialects import SUMMARIZE, OpenAiDialect, RealtimeDialect, XaiDialect
from svc_proto.voice.realtime import actions

KEY = "sk-abcdefghijklmnop"
TOOL = {"type": "function", "name": "svc_run_task", "parameters": {"type": "object"}}
OPTIONS = RealtimeOptions(
    model="gpt realtime", voice="marin", sample_rate=24_000, instructions="Be short.", tools=(TOOL,)
)


def openai(options: RealtimeOptions = OPTIONS, url: str = "wss://api.openai.com/v1/realtime") -> OpenAiDialect:
    return OpenAiDialect(ProviderCredentials("OpenAI", url, KEY), options)


def xai(options: RealtimeOptions = OPTIONS) -> XaiDialect:
    return XaiDialect(ProviderCredentials("xAI", "wss://api.x.ai/v1/realtime?region=eu", KEY), options)


BOTH = pytest.mark.parametrize("make", [openai, xai])


def test_url_and_headers() -> None:
    assert openai().url == "wss://api.openai.com/v1/realtime?model=gpt%20realtime"
    assert xai().url == "wss://api.x.ai/v1/realtime?region=eu&model=gpt%20realtime"
    assert openai().headers == ((b"authorization", b"Bearer " + KEY.encode()),)
    assert KEY not in repr(openai()._access)


@BOTH
def test_encoding_of_messages(make: Any) -> None:
    dialect: RealtimeDialect = make()
    assert dialect.encode(actions.AppendInput(b"\1\0\2\0")) == {
        "type": "input_audio_buffer.append",
        "audio": "AQACAA==",
    }
    assert dialect.encode(actions.AppendInput(b"\1")) is None  # half a sample
    assert dialect.encode(actions.CommitInput()) == {"type": "input_audio_buffer.commit"}
    assert dialect.encode(actions.AppendInput(b"\1\0")) == {"type": "input_audio_buffer.append", "audio": "AQA="}
    assert dialect.encode(actions.ClearInput()) == {"type": "input_audio_buffer.clear"}
    content = [{"type": "input_text", "text": "Hi"}]
    item = {"type": "message", "role": "user", "content": content}
    assert dialect.encode(actions.SendUserText("Hi")) == {"type": "conversation.item.create", "item": item}
    output = {"type": "function_call_output", "call_id": "c", "output": '{"ok":true}'}
    assert dialect.encode(actions.AnswerCall("c", {"ok": True})) == {"type": "conversation.item.create", "item": output}
    assert dialect.encode(actions.Respond()) == {"type": "response.create", "response": {}}
    response = {"instructions": f"{SUMMARIZE}It is 5."}
    assert dialect.encode(actions.Summarize("It is 5.")) == {"type": "response.create", "response": response}
    assert dialect.encode(actions.CancelResponse()) == {"type": "response.cancel"}


OPENAI = """
type: realtime
model: gpt realtime
instructions: Be short.
output_modalities: [audio]
audio:
  input: {format: &sound {type: audio/pcm, rate: 24000}, turn_detection: null,
    transcription: {model: gpt-4o-mini-transcribe}}
  output: {format: *sound, voice: marin}
tools: [{type: function, name: svc_run_task, parameters: {type: object}}]
tool_choice: auto
"""
XAI = """
voice: marin
instructions: Be short.
turn_detection: null
audio: {input: &sound {format: {type: audio/pcm, rate: 24000}}, output: *sound}
tools: [{type: function, name: svc_run_task, parameters: {type: object}}]
"""
BARE = RealtimeOptions(model="m", voice="v", sample_rate=16_000, transcribe=False)


@pytest.mark.parametrize(("make", "session", "rate"), [(openai, OPENAI, 24_000), (xai, XAI, 16_000)])
def test_the_setup(make: Any, session: str, rate: int) -> None:
    assert make().setup() == {"type": "session.update", "session": yaml.safe_load(session)}
    told = make(BARE).setup()["session"]
    assert not told.keys() & {"tools", "tool_choice"}
    assert told["audio"]["input"].get("transcription") is None
    assert told["audio"]["input"]["format"]["rate"] == rate  # OpenAI supports no other rate


def test_openai_uses_one_sample_rate() -> None:
    dialect = openai(RealtimeOptions(model="m", voice="v", sample_rate=48_000))
    append: Any = dialect.encode(actions.AppendInput(bytes(9_602)))
    assert len(b64decode(str(append["audio"]))) == 4_800
    (heard,) = dialect.parse({"type": "response.output_audio.delta", **sound("r", bytes(2_402))})
    assert isinstance(heard, AudioDelta)
    assert len(heard.data) == 4_800


def test_a_text_is_read_aloud() -> None:
    create: Any = openai().encode(actions.ReadAloud("It is 5."))
    told = create["response"]
    assert (create["type"], told["tool_choice"]) == ("response.create", "none")
    assert told["instructions"].endswith("\n\nIt is 5.")
    item = {"type": "force_message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 5."}]}
    assert xai().encode(actions.ReadAloud("It is 5.")) == {"type": "conversation.item.create", "item": item}


def test_xai_transcripts_are_cumulative() -> None:
    dialect = xai()

    def heard(kind: str, text: str) -> tuple[object, ...]:
        return dialect.parse({"type": f"input_audio_transcription.{kind}", "item_id": "i", "transcript": text})

    assert heard("updated", "turn") == (TranscriptDelta("turn"),)
    assert heard("updated", "turn on") == (TranscriptDelta(" on"),)
    assert heard("updated", "turn on") == ()
    assert heard("updated", "learn on it") == ()  # the transcript was revised: the final text replaces it
    assert heard("completed", "learn on it") == (TranscriptFinal("learn on it"),)


# --- parsing ---

PCM = array("h", [1, 2, 3]).tobytes()
CALL = {"type": "function_call", "id": "i1", "call_id": "c1", "name": "run", "arguments": "{}"}
RUN = FunctionCall("r", "c1", "run", "{}")
TEXT = {"response_id": "r", "delta": "a"}
FAILED = {"id": "r", "status": "failed", "status_details": {"error": {"message": "Rate limit"}}}
IDLE, NOT_ACTIVE = "The session timed out due to inactivity.", "Cancellation failed: no active response found"


def sound(response: str, data: bytes) -> dict[str, Any]:
    """Return the members of an audio event."""
    return {"response_id": response, "delta": b64encode(data).decode()}


HEARD: list[tuple[object, dict[str, Any], list[object]]] = [
    ("session.created", {"session": {"model": "gpt-9"}}, [ProviderReady("gpt-9")]),
    ("session.updated", {}, [ProviderReady()]),
    ("conversation.created", {"session": 5}, [ProviderReady()]),
    ("conversation.item.input_audio_transcription.delta", {"delta": "tu"}, [TranscriptDelta("tu")]),
    ("input_audio_transcription.delta", {"delta": ""}, []),
    ("input_audio_transcription.done", {"text": " on "}, [TranscriptFinal("on")]),
    ("conversation.item.input_audio_transcription.completed", {"transcript": "on"}, [TranscriptFinal("on")]),
    ("conversation.item.input_audio_transcription.completed", {}, [TranscriptFinal("")]),
    ("conversation.item.input_audio_transcription.segment", {}, []),
    ("input_audio_transcription.failed", {"error": {"message": "no model"}}, [ProviderErrorEvent("no model")]),
    ("response.created", {"response": {"id": "r1"}}, [ResponseStarted("r1")]),
    ("response.created", {"response": {"id": "x" * 256}}, [ResponseStarted("x" * 256)]),
    ("response.created", {"response": {"id": "x" * 257}}, []),
    ("response.created", {}, []),
    ("response.output_item.added", {"response_id": "r1", "item": {}}, [ResponseStarted("r1")]),
    ("response.output_audio_transcript.delta", TEXT, [SpokenTextDelta("r", "a")]),
    ("response.output_text.delta", TEXT, [SpokenTextDelta("r", "a")]),
    ("response.text.delta", TEXT, [SpokenTextDelta("r", "a")]),
    ("response.audio_transcript.delta", TEXT, [SpokenTextDelta("r", "a")]),
    ("response.text.delta", {**TEXT, "delta": ""}, []),
    ("response.content_part.added", TEXT, []),
    ("response.output_audio.delta", sound("r", PCM), [AudioDelta("r", PCM)]),
    ("response.audio.delta", sound("r", PCM), [AudioDelta("r", PCM)]),
    ("response.output_audio.delta", {**TEXT, "delta": "AAA"}, []),
    ("response.output_audio.delta", {**TEXT, "delta": "é"}, []),
    ("response.output_audio.delta", {"response_id": "r"}, []),
    ("response.output_audio.done", {"response_id": "r"}, [AudioDone("r")]),
    ("response.audio.done", {"response_id": "r"}, [AudioDone("r")]),
    ("response.output_item.done", {"response_id": "r", "item": CALL}, [RUN]),
    ("conversation.item.done", {"item": CALL}, [FunctionCall("", "c1", "run", "{}")]),
    ("conversation.item.done", {"item": {**CALL, "status": "in_progress"}}, []),
    ("response.output_item.done", {"item": {**CALL, "name": None}}, []),
    ("response.done", {"response": {"id": "r", "output": [7, CALL, CALL]}}, [RUN, ResponseDone("r")]),
    ("response.done", {"response_id": "r", "response": {"status": "odd"}}, [ResponseDone("r")]),
    (
        "response.done",
        {"response": {"id": "r", "status": "cancelled", "output": [CALL]}},
        [ResponseDone("r", "cancelled")],
    ),
    ("response.done", {"response": FAILED}, [ProviderErrorEvent("Rate limit"), ResponseDone("r", "failed")]),
    ("error", {"error": {"message": "Bad voice"}}, [ProviderErrorEvent("Bad voice")]),
    ("error", {"message": "Bad voice"}, [ProviderErrorEvent("Bad voice")]),
    ("error", {"error": {"error": "Bad"}}, [ProviderErrorEvent("Bad")]),
    ("error", {"error": None}, [ProviderErrorEvent("OpenAI reported an error")]),
    ("error", {"message": f"no such key {KEY}"}, [ProviderErrorEvent("OpenAI reported an error")]),
    ("error", {"message": "x", "code": "response_cancel_not_active"}, [ProviderErrorEvent("x", benign=True)]),
    ("error", {"message": NOT_ACTIVE}, [ProviderErrorEvent(NOT_ACTIVE, benign=True)]),
    ("error", {"message": IDLE}, [ProviderErrorEvent(IDLE, idle=True)]),
    ("rate_limits.updated", {}, []),
    (5, {}, []),
]


@pytest.mark.parametrize(("kind", "members", "events"), HEARD)
def test_parsing_of_events(kind: object, members: dict[str, Any], events: list[object]) -> None:
    assert [*openai().parse({**members, "type": kind})] == events


def test_function_calls_and_ids_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    of: dict[str, object] = {"response_id": "r", "item_id": "i1", "arguments": "{}"}
    added = {"type": "response.output_item.added", **of, "item": {**CALL, "arguments": ""}}
    arguments = {"type": "response.function_call_arguments.done", **of}
    done = {"type": "response.output_item.done", **of, "item": CALL}
    over = {"type": "response.done", "response": {"id": "r", "output": [CALL]}}
    start, end = (ResponseStarted("r"),), (ResponseDone("r"),)
    dialect = openai()
    assert [dialect.parse(event) for event in (added, added, arguments, done, over)] == [start, (), (RUN,), (), end]
    dialect = openai()  # a dialect that missed the start
    assert [dialect.parse(event) for event in (arguments, done, over)] == [(), (RUN,), end]
    assert openai().parse({**arguments, "call_id": "c1", "name": "run"}) == (RUN,)
    monkeypatch.setattr(realtime_dialects, "MAX_REMEMBERED", 2)
    dialect = openai()
    started = [dialect.parse({"type": "response.created", "response": {"id": name}}) for name in "abcab"]
    assert [bool(events) for events in started] == [True] * 5
    assert len(dialect._started) == 2


def test_sound_cut_in_the_middle_of_a_sample() -> None:
    dialect = openai()
    for response, data, whole in (("a", b"\1\0\2", b"\1\0"), ("b", b"\7\0", b"\7\0"), ("a", b"\0", b"\2\0")):
        told = dialect.parse({"type": "response.output_audio.delta", **sound(response, data)})
        assert told == (AudioDelta(response, whole),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(sorted({str(kind) for kind, *_ in HEARD})) | st.text(max_size=20)
NAMES = ("session", "response", "item", "error", "delta", "response_id", "item_id", "transcript", "message", "status")
INNER = st.dictionaries(
    st.sampled_from(["id", "type", "call_id", "name", "arguments", "status", "output", "status_details", "message"]),
    JSON | st.just("function_call") | st.just("failed"),
    max_size=6,
)


@BOTH
@given(st.lists(st.tuples(KINDS, st.dictionaries(st.sampled_from(NAMES), JSON | INNER, max_size=6)), max_size=5))
def test_no_provider_message_raises(make: Any, events: list[tuple[str, dict[str, Any]]]) -> None:
    dialect: RealtimeDialect = make()
    for kind, members in events:
        for event in dialect.parse({**members, "type": kind}):
            assert not isinstance(event, AudioDelta) or (event.data and len(event.data) % 2 == 0)
