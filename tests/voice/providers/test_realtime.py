"""The realtime languages: what we say, what their events mean, and what a stranger may send."""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.voice.contract import (
    AudioDelta,
    AudioDone,
    FunctionCall,
    ProviderProblem,
    ProviderReady,
    RealtimeOptions,
    ResponseDone,
    ResponseStarted,
    TextDelta,
    TranscriptDelta,
    TranscriptFinal,
)
from svc_proto.voice.providers import realtime
from svc_proto.voice.providers.access import VendorAccess
from svc_proto.voice.providers.realtime import Dialect, OpenAiDialect, XaiDialect

KEY = "sk-abcdefghijklmnop"
TOOL = {"type": "function", "name": "svc_run_task", "parameters": {"type": "object"}}
OPTIONS = RealtimeOptions(
    model="gpt realtime", voice="marin", sample_rate=24_000, instructions="Be short.", tools=(TOOL,)
)


def openai(options: RealtimeOptions = OPTIONS, url: str = "wss://api.openai.com/v1/realtime") -> OpenAiDialect:
    return OpenAiDialect(VendorAccess("OpenAI", url, KEY), options)


def xai(options: RealtimeOptions = OPTIONS) -> XaiDialect:
    return XaiDialect(VendorAccess("xAI", "wss://api.x.ai/v1/realtime?region=eu", KEY), options)


BOTH = pytest.mark.parametrize("make", [openai, xai])


def test_where_and_with_what() -> None:
    assert openai().url == "wss://api.openai.com/v1/realtime?model=gpt%20realtime"
    assert xai().url == "wss://api.x.ai/v1/realtime?region=eu&model=gpt%20realtime"
    assert openai().headers == ((b"authorization", b"Bearer " + KEY.encode()),)
    assert KEY not in repr(openai()._access)


@BOTH
def test_what_is_said_later(make: Any) -> None:
    dialect: Dialect = make()
    assert dialect.append(b"\1\0\2\0") == [{"type": "input_audio_buffer.append", "audio": "AQACAA=="}]
    assert dialect.append(b"\1") == []  # half a sample
    assert dialect.commit() == [{"type": "input_audio_buffer.commit"}]
    assert dialect.append(b"\1\0") == [{"type": "input_audio_buffer.append", "audio": "AQA="}]
    assert dialect.clear() == [{"type": "input_audio_buffer.clear"}]
    content = [{"type": "input_text", "text": "Hi"}]
    item = {"type": "message", "role": "user", "content": content}
    assert dialect.say("Hi") == [{"type": "conversation.item.create", "item": item}]
    output = {"type": "function_call_output", "call_id": "c", "output": "{}"}
    assert dialect.function_output("c", "{}") == [{"type": "conversation.item.create", "item": output}]
    assert dialect.respond() == [{"type": "response.create", "response": {}}]
    assert dialect.respond("Briefly.") == [{"type": "response.create", "response": {"instructions": "Briefly."}}]
    assert dialect.cancel() == [{"type": "response.cancel"}]


def test_openais_setup() -> None:
    sound = {"type": "audio/pcm", "rate": 24_000}
    session: dict[str, Any] = {
        "type": "realtime",
        "model": "gpt realtime",
        "instructions": "Be short.",
        "output_modalities": ["audio"],
        "audio": {
            "input": {"format": sound, "turn_detection": None, "transcription": {"model": "gpt-4o-mini-transcribe"}},
            "output": {"format": sound, "voice": "marin"},
        },
        "tools": [TOOL],
        "tool_choice": "auto",
    }
    assert openai().setup() == [{"type": "session.update", "session": session}]
    bare = openai(RealtimeOptions(model="m", voice="v", sample_rate=16_000, transcribe=False))
    (update,) = bare.setup()
    told: Any = update["session"]
    assert "tools" not in told
    assert told["audio"]["input"]["transcription"] is None
    assert told["audio"]["input"]["format"]["rate"] == 24_000  # it has no other


def test_openai_has_one_rate_whatever_the_session_has() -> None:
    dialect = openai(RealtimeOptions(model="m", voice="v", sample_rate=48_000))
    (append,) = dialect.append(bytes(9_602))
    assert len(b64decode(str(append["audio"]))) == 4_800
    sound = b64encode(bytes(2_402)).decode()
    (heard,) = dialect.parse({"type": "response.output_audio.delta", "response_id": "r", "delta": sound})
    assert isinstance(heard, AudioDelta)
    assert len(heard.data) == 4_800


def test_openai_reads_aloud_what_it_is_instructed_to() -> None:
    (create,) = openai().read_aloud("It is 5.")
    told: Any = create["response"]
    assert create["type"] == "response.create"
    assert told["instructions"].endswith("\n\nIt is 5.")
    assert told["tool_choice"] == "none"


def test_xais_setup() -> None:
    sound = {"format": {"type": "audio/pcm", "rate": 16_000}}
    options = RealtimeOptions(model="m", voice="eve", sample_rate=16_000, tools=(TOOL,))
    session = {
        "voice": "eve",
        "instructions": "",
        "turn_detection": None,
        "audio": {"input": sound, "output": sound},
        "tools": [TOOL],
    }
    assert xai(options).setup() == [{"type": "session.update", "session": session}]
    assert "tools" not in repr(xai(RealtimeOptions(model="m", voice="v", sample_rate=8_000)).setup())


def test_xai_reads_aloud_without_a_model() -> None:
    item = {"type": "force_message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 5."}]}
    assert xai().read_aloud("It is 5.") == [{"type": "conversation.item.create", "item": item}]


def test_xai_tells_all_that_it_heard_so_far() -> None:
    dialect = xai()

    def updated(text: str) -> tuple[object, ...]:
        kind = "conversation.item.input_audio_transcription.updated"
        return dialect.parse({"type": kind, "item_id": "i", "transcript": text})

    assert updated("turn") == (TranscriptDelta("turn"),)
    assert updated("turn on") == (TranscriptDelta(" on"),)
    assert updated("turn on") == ()
    assert updated("learn on it") == ()  # it thought better of it: the final text says all
    final = {"type": "input_audio_transcription.completed", "item_id": "i", "transcript": "learn on it"}
    assert dialect.parse(final) == (TranscriptFinal("learn on it"),)


# --- what is heard ------------------------------------------------------------------------------------------------

PCM = array("h", [1, 2, 3]).tobytes()
CALL = {"type": "function_call", "id": "i1", "call_id": "c1", "name": "run", "arguments": "{}"}
HEARD: list[tuple[dict[str, Any], tuple[object, ...]]] = [
    ({"type": "session.created", "session": {"model": "gpt-9"}}, (ProviderReady("gpt-9"),)),
    ({"type": "session.updated"}, (ProviderReady(),)),
    ({"type": "conversation.created", "session": 5}, (ProviderReady(),)),
    ({"type": "conversation.item.input_audio_transcription.delta", "delta": "tu"}, (TranscriptDelta("tu"),)),
    ({"type": "input_audio_transcription.delta", "delta": ""}, ()),
    ({"type": "input_audio_transcription.done", "text": " on "}, (TranscriptFinal("on"),)),
    ({"type": "conversation.item.input_audio_transcription.completed", "transcript": "on"}, (TranscriptFinal("on"),)),
    ({"type": "conversation.item.input_audio_transcription.completed"}, (TranscriptFinal(""),)),
    ({"type": "conversation.item.input_audio_transcription.segment"}, ()),
    (
        {"type": "conversation.item.input_audio_transcription.failed", "error": {"message": "no model"}},
        (ProviderProblem("no model"),),
    ),
    ({"type": "response.created", "response": {"id": "r1"}}, (ResponseStarted("r1"),)),
    ({"type": "response.created"}, ()),
    ({"type": "response.output_item.added", "response_id": "r1", "item": {}}, (ResponseStarted("r1"),)),
    ({"type": "response.output_audio_transcript.delta", "response_id": "r", "delta": "a"}, (TextDelta("r", "a"),)),
    ({"type": "response.output_text.delta", "response_id": "r", "delta": "a"}, (TextDelta("r", "a"),)),
    ({"type": "response.text.delta", "response_id": "r", "delta": "a"}, (TextDelta("r", "a"),)),
    ({"type": "response.audio_transcript.delta", "response_id": "r", "delta": "a"}, (TextDelta("r", "a"),)),
    ({"type": "response.text.delta", "response_id": "r", "delta": ""}, ()),
    ({"type": "response.content_part.added", "delta": "a"}, ()),
    (
        {"type": "response.output_audio.delta", "response_id": "r", "delta": b64encode(PCM).decode()},
        (AudioDelta("r", PCM),),
    ),
    ({"type": "response.audio.delta", "response_id": "r", "delta": b64encode(PCM).decode()}, (AudioDelta("r", PCM),)),
    ({"type": "response.output_audio.delta", "response_id": "r", "delta": "AAA"}, ()),
    ({"type": "response.output_audio.delta", "response_id": "r", "delta": "é"}, ()),
    ({"type": "response.output_audio.delta", "response_id": "r"}, ()),
    ({"type": "response.output_audio.done", "response_id": "r"}, (AudioDone("r"),)),
    ({"type": "response.audio.done", "response_id": "r"}, (AudioDone("r"),)),
    ({"type": "response.output_item.done", "response_id": "r", "item": CALL}, (FunctionCall("r", "c1", "run", "{}"),)),
    ({"type": "conversation.item.done", "item": CALL}, (FunctionCall("", "c1", "run", "{}"),)),
    ({"type": "conversation.item.done", "item": {**CALL, "status": "in_progress"}}, ()),
    ({"type": "response.output_item.done", "item": {**CALL, "name": None}}, ()),
    (
        {"type": "response.done", "response": {"id": "r", "output": [7, CALL, CALL]}},
        (FunctionCall("r", "c1", "run", "{}"), ResponseDone("r")),
    ),
    ({"type": "response.done", "response_id": "r", "response": {"status": "odd"}}, (ResponseDone("r"),)),
    (
        {"type": "response.done", "response": {"id": "r", "status": "cancelled", "output": [CALL]}},
        (ResponseDone("r", "cancelled"),),
    ),
    (
        {
            "type": "response.done",
            "response": {"id": "r", "status": "failed", "status_details": {"error": {"message": "Rate limit"}}},
        },
        (ProviderProblem("Rate limit"), ResponseDone("r", "failed")),
    ),
    ({"type": "error", "error": {"message": "Bad voice"}}, (ProviderProblem("Bad voice"),)),
    ({"type": "error", "message": "Bad voice"}, (ProviderProblem("Bad voice"),)),
    ({"type": "error", "error": {"error": "Bad"}}, (ProviderProblem("Bad"),)),
    ({"type": "error", "error": None}, (ProviderProblem("OpenAI reported an error"),)),
    ({"type": "error", "message": f"no such key {KEY}"}, (ProviderProblem("OpenAI reported an error"),)),
    (
        {"type": "error", "error": {"code": "response_cancel_not_active", "message": "x"}},
        (ProviderProblem("x", benign=True),),
    ),
    (
        {"type": "error", "error": {"message": "Cancellation failed: no active response found"}},
        (ProviderProblem("Cancellation failed: no active response found", benign=True),),
    ),
    (
        {"type": "error", "error": {"message": "The session timed out due to inactivity."}},
        (ProviderProblem("The session timed out due to inactivity.", idle=True),),
    ),
    ({"type": "rate_limits.updated"}, ()),
    ({"type": 5}, ()),
    ({}, ()),
]


@pytest.mark.parametrize(("message", "events"), HEARD)
def test_what_an_event_means(message: dict[str, Any], events: tuple[object, ...]) -> None:
    assert openai().parse(message) == events


def test_a_response_starts_once() -> None:
    dialect = openai()
    assert dialect.parse({"type": "response.created", "response": {"id": "r"}}) == (ResponseStarted("r"),)
    assert dialect.parse({"type": "response.output_item.added", "response_id": "r"}) == ()


def test_a_call_is_told_once_whatever_tells_it_first() -> None:
    added = {"type": "response.output_item.added", "response_id": "r", "item": {**CALL, "arguments": ""}}
    arguments = {
        "type": "response.function_call_arguments.done",
        "response_id": "r",
        "item_id": "i1",
        "arguments": "{}",
    }
    done = {"type": "response.output_item.done", "response_id": "r", "item": CALL}
    over = {"type": "response.done", "response": {"id": "r", "output": [CALL]}}
    call = FunctionCall("r", "c1", "run", "{}")
    dialect = openai()
    assert [dialect.parse(event) for event in (added, arguments, done, over)] == [
        (ResponseStarted("r"),),
        (call,),
        (),
        (ResponseDone("r"),),
    ]
    dialect = openai()  # one that missed the beginning
    assert [dialect.parse(event) for event in (arguments, done, over)] == [(), (call,), (ResponseDone("r"),)]
    named = {**arguments, "call_id": "c1", "name": "run"}
    assert openai().parse(named) == (call,)


def test_sound_cut_in_the_middle_of_a_sample() -> None:
    dialect = openai()

    def delta(response: str, data: bytes) -> tuple[object, ...]:
        sound = b64encode(data).decode()
        return dialect.parse({"type": "response.output_audio.delta", "response_id": response, "delta": sound})

    assert delta("a", b"\1\0\2") == (AudioDelta("a", b"\1\0"),)
    assert delta("b", b"\7\0") == (AudioDelta("b", b"\7\0"),)
    assert delta("a", b"\0") == (AudioDelta("a", b"\2\0"),)


def test_ids_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime, "MAX_REMEMBERED", 2)
    dialect = openai()
    started = [dialect.parse({"type": "response.created", "response": {"id": name}}) for name in "abcab"]
    assert [bool(events) for events in started] == [True] * 5
    assert len(dialect._started) == 2
    assert dialect.parse({"type": "response.created", "response": {"id": "x" * 257}}) == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(sorted({str(message.get("type")) for message, _ in HEARD})) | st.text(max_size=20)
NAMES = ("session", "response", "item", "error", "delta", "response_id", "item_id", "transcript", "message", "status")
INNER = st.dictionaries(
    st.sampled_from(["id", "type", "call_id", "name", "arguments", "status", "output", "status_details", "message"]),
    JSON | st.just("function_call") | st.just("failed"),
    max_size=6,
)


@BOTH
@given(st.lists(st.tuples(KINDS, st.dictionaries(st.sampled_from(NAMES), JSON | INNER, max_size=6)), max_size=5))
def test_nothing_that_a_stranger_sends_raises(make: Any, events: list[tuple[str, dict[str, Any]]]) -> None:
    dialect: Dialect = make()
    for kind, members in events:
        for event in dialect.parse({**members, "type": kind}):
            assert not isinstance(event, AudioDelta) or (event.data and len(event.data) % 2 == 0)
