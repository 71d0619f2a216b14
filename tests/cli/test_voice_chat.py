from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from svc_proto.cli import voice_chat
from svc_proto.cli.voice_chat import RECORDER_RATE, VoiceChatRequest, VoiceChatService
from svc_proto.commands import Exit, Signal
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.service_clients.relay_client import RelayClient
from tests.cli.harness import OneShotHarness, as_json

RELAY = RelayClient("the relay", "http://127.0.0.1:8767", token="t0ken-1234")
READY = {"type": "voice.session.ready", "session_id": "v1"}
DONE: dict[str, Any] = {"type": "voice.response.done", "response_id": None}
MADE = as_json({"success": True, "session_id": "v1", "websocket_path": "/voice/realtime-agent/v1"})
SPEECH = bytes(range(256)) * 60  # 15,360 bytes: two chunks and a bit
RECORDER = ("arecord", "-q")
There = OneShotHarness[None]


def event(kind: str, **fields: object) -> dict[str, Any]:
    return {"type": kind, **fields}


class Relay:
    """Relay that answers each message with the next script for its type."""

    def __init__(self, **scripts: Sequence[Sequence[dict[str, Any]]]) -> None:
        self.scripts = {name.replace("__", "."): list(answers) for name, answers in scripts.items()}
        self.heard: list[Mapping[str, Any]] = []

    def __call__(self, message: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
        self.heard.append(message)
        answers = self.scripts.get(str(message["type"]))
        return [*answers.pop(0)] if answers else []


def player(rate: int) -> tuple[str, ...]:
    return ("aplay", str(rate))


def find(engine: Engine) -> Flow[RelayClient]:
    yield from ()
    return RELAY


def talking(
    *script: tuple[float, Callable[[There], None]], relay: Relay | None = None, order: Any = None, **more: Any
) -> There:
    begin = (0.5, lambda w: w.push(READY))
    service = VoiceChatService(find, order or VoiceChatRequest())
    given: dict[str, Any] = {"http": MADE, "socket": relay or Relay(), **more}
    return OneShotHarness(service, stdio=True, script=[begin, *script], **given)


def typed(text: str | None) -> Callable[[There], None]:
    return lambda world: world.keys(None if text is None else f"{text}\n".encode())


def told(world: There) -> list[tuple[str, Mapping[str, object]]]:
    return [(news.event, news.fields) for news in world.told if news.event not in ("doing", "waiting")]


PROMPT = ("prompt", {"records": False})


def test_a_typed_turn() -> None:
    relay = Relay(
        response__create=[
            [
                event("voice.input_transcript.final", text="How full is the disk?"),
                event("voice.response.started"),
                event("svc.run.started"),
                event("svc.tool.started", tool_name="terminal", message="Running."),
                event("hermes.tool.completed", tool_name="terminal", message="Done."),
                event("svc.tool.failed", tool_name="memory", error="no\nroom"),
                event("voice.response.delta", delta="It is "),
                event("voice.response.delta", delta="62 percent."),
                event("voice.response.turn_completed", content="It is 62 percent."),
                event("voice.output_audio.delta", audio_base64="AAAA", sample_rate=24_000),
                DONE,
            ]
        ]
    )
    script = (1, typed("How full is the disk?")), (1.5, lambda w: w.push(DONE)), (2, typed(None))
    there = talking(*script, relay=relay).finished()
    assert told(there) == [
        PROMPT,
        ("heard", {"text": "How full is the disk?"}),
        ("tool", {"line": "→ terminal: Running."}),
        ("tool", {"line": "← terminal: Done."}),
        ("tool", {"line": "✗ memory: no room"}),
        ("text", {"text": "It is "}),
        ("text", {"text": "62 percent."}),
        ("end", {}),
        PROMPT,
    ]
    assert relay.heard == [{"type": "response.create", "text": "How full is the disk?"}]
    assert there.asked[0].path == "/voice/realtime-agent/session"
    assert there.asked[0].json == {}


def test_whole_answer_and_piped_input() -> None:
    whole = [event("voice.response.turn_completed", content="Yes."), DONE, DONE]
    order = VoiceChatRequest(profile="work", session="chat-7")
    there = talking((1, typed("Well?")), (1.1, typed(None)), order=order)
    for each in whole:
        there.script.append((3, lambda w, each=each: w.push(each)))  # type: ignore[misc]
    there.run()
    assert ("text", {"text": "Yes."}) in told(there)
    assert there.asked[0].json == {"profile": "work", "chat_session_id": "chat-7"}


# --- recording ----------------------------------------------------------------------------------------------------


def recorded(relay: Relay, *script: Any, **more: Any) -> There:
    return talking(*script, relay=relay, order=VoiceChatRequest(recorder=RECORDER, player=player), **more)


def heard(relay: Relay) -> bytes:
    pieces = [message for message in relay.heard if message["type"] == "input_audio.append"]
    assert [message["chunk_id"] for message in pieces] == list(range(1, len(pieces) + 1))
    assert all(message["sample_rate"] == RECORDER_RATE for message in pieces)
    assert all(len(b64decode(message["audio_base64"])) == 6_400 for message in pieces[:-1])
    return b"".join(b64decode(message["audio_base64"]) for message in pieces)


def signals(world: There) -> list[str]:
    return [command.signal.value for command in world.commands if isinstance(command, Signal)]


def answer(text: str = "Done.", sound: bytes = b"") -> list[dict[str, Any]]:
    delta = event("voice.output_audio.delta", audio_base64=b64encode(sound).decode(), sample_rate=24_000)
    return [
        event("voice.input_transcript.final", text="turn on the light"),
        event("voice.response.delta", delta=text),
        *([delta] if sound else []),
        event("voice.output_audio.done"),
        DONE,
    ]


def test_enter_starts_and_sends_a_recording() -> None:
    relay, last = Relay(input_audio__commit=[answer()]), list[str]()
    script: Any = [(1, typed("")), (2, lambda w: w.children[0].write_output(SPEECH)), (3, typed(""))]
    script += [(3.5, lambda w: last.extend((relay.heard[-1]["type"], *signals(w)))), (4, typed(None))]
    there = recorded(relay, *script, lasting={"arecord -q"}).finished()
    assert last == ["input_audio.commit", "SIGINT"]  # no other message ended the recording, and the microphone is off
    assert heard(relay) == SPEECH
    assert [message["type"] for message in relay.heard][-1] == "input_audio.commit"
    assert told(there)[:2] == [("prompt", {"records": True}), ("recording", {})]
    assert ("heard", {"text": "turn on the light"}) in told(there)


@pytest.mark.parametrize("speech", [SPEECH, bytes(6_400), bytes(6_401)])
def test_recording_ends_by_itself(speech: bytes) -> None:
    relay = Relay(input_audio__commit=[answer()])
    recorded(relay, (1, typed("")), (4, typed(None)), programs={"arecord -q": speech}).run()
    assert heard(relay) == speech


@pytest.mark.parametrize("how", ["too long", "end of input"])
def test_recording_ended_by_limit_or_end_of_input(how: str) -> None:
    relay = Relay(input_audio__commit=[answer()])
    last = (200.0, typed(None)) if how == "too long" else (5.0, typed(None))
    recorded(relay, (1, typed("")), last, programs={"arecord -q": SPEECH}, lasting={"arecord -q"}).run()
    assert heard(relay) == SPEECH
    assert relay.heard[-1]["type"] == "input_audio.commit"


def test_empty_recording() -> None:
    relay = Relay(input_audio__commit=[answer()])
    there = recorded(relay, (1, typed("")), (3, typed(None)), programs={"arecord -q": b""}).finished()
    problem = ("problem", {"text": "arecord recorded nothing: is there a microphone?"})
    assert told(there)[1:] == [("recording", {}), problem, ("prompt", {"records": True})]
    assert relay.heard == []


def test_empty_recording_after_another() -> None:
    relay = Relay(input_audio__commit=[answer()])
    script: Any = [(1, typed("")), (2, lambda w: w.children[0].write_output(SPEECH)), (3, typed("")), (4, typed(""))]
    script += [(5, lambda w: w.children[1].exit()), (6, typed(None))]
    there = recorded(relay, *script, lasting={"arecord -q"}).finished()
    assert ("problem", {"text": "arecord recorded nothing: is there a microphone?"}) in told(there)
    assert [message["type"] for message in relay.heard].count("input_audio.commit") == 1


def test_without_a_recorder() -> None:
    there = talking((1, typed("")), (2, typed(None))).finished()
    assert told(there)[1:] == [("problem", {"text": "nothing here records (arecord or sox): type instead"}), PROMPT]
    there = recorded(Relay(), (1, typed("")), (2, typed(None))).finished()
    assert told(there)[1] == ("problem", {"text": "arecord cannot be started: not_found"})


# --- playback -----------------------------------------------------------------------------------------------------


def test_each_answer_is_played_to_its_end() -> None:
    relay = Relay(response__create=[answer(sound=b"\1\2" * 100), answer(sound=b"\3\4")])
    script: Any = [(1, typed("Hi")), (8, lambda w: w.children[0].exit())]
    script += [(9, typed("Again")), (10, lambda w: w.children[1].exit()), (11, typed(None))]
    there = recorded(relay, *script, programs={"aplay 24000": b"noise"}, lasting={"aplay 24000"}).finished()
    assert [bytes(child.heard) for child in there.children] == [b"\1\2" * 100, b"\3\4"]
    assert told(there)[-1] == ("prompt", {"records": True})


@pytest.mark.parametrize(
    ("ends", "sent"), [([], ["response.create", "response.cancel"]), ([DONE], ["response.create"])]
)
def test_enter_interrupts(ends: list[dict[str, Any]], sent: list[str]) -> None:
    sound = event("voice.output_audio.delta", audio_base64="AAAA", sample_rate=24_000)
    odd = {**sound, "audio_base64": "no b\u00e4se64"}
    relay = Relay(response__create=[[odd, sound, *ends]], response__cancel=[[DONE], []])
    script = (1, typed("Tell me a story")), (2, typed("")), (3, typed(None))
    there = recorded(relay, *script, lasting={"aplay 24000"}).finished()
    assert [message["type"] for message in relay.heard] == sent
    assert there.now.mono < 1010  # the rest of the sound is not played
    relay = Relay(response__cancel=[[DONE]])  # playback has not started
    talking((1, typed("Hi")), (2, typed("")), (3, typed(None)), relay=relay).run()


def test_line_during_a_turn_is_the_next_turn() -> None:
    relay = Relay(response__create=[[], [DONE]], response__cancel=[[DONE]])
    talking((1, typed("Hi")), (2, typed("and more")), (3, typed("")), (4, typed(None)), relay=relay).run()
    assert [message["type"] for message in relay.heard] == ["response.create", "response.cancel", "response.create"]
    assert relay.heard[-1]["text"] == "and more"


def test_piped_input() -> None:
    """Take every line of a pipe as a turn, also the last one without a line end."""
    relay = Relay(response__create=[answer("One."), answer("Two."), answer("Three.")])
    there = talking((1, lambda w: w.keys(b"first\nsecond\nthi")), (1, lambda w: w.keys(b"rd")), relay=relay)
    there.script.append((1.1, typed(None)))
    there.run()
    assert [message["text"] for message in relay.heard] == ["first", "second", "third"]
    assert [fields["text"] for kind, fields in told(there) if kind == "text"] == ["One.", "Two.", "Three."]


def test_too_many_waiting_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_chat, "MAX_TYPED", 1)
    relay = Relay(response__create=[[], [DONE]])
    there = talking((1, lambda w: w.keys(b"first\nsecond\nthird\n")), (2, lambda w: w.push(DONE)), relay=relay)
    there.script.append((3, typed(None)))
    there.run()
    assert [message["text"] for message in relay.heard] == ["first", "second"]
    assert ("problem", {"text": "too much is waiting to be said: not sent: third"}) in told(there)


def test_confirmation_of_the_agent() -> None:
    question = event("svc.confirmation.requested", confirmation_id="c1", message="Really call?")
    other = event("hermes.confirmation.requested", message="And this?")
    drain = event("voice.playback_drain.requested", call_id="k1")
    relay = Relay(response__create=[[question, drain]], svc__confirm=[[other, event("svc.run.progress")], []])
    script: Any = [(1, typed("Call Ann")), (2, typed(" Allow ")), (3, lambda w: w.push(question))]
    script += [(4, typed("")), (5, lambda w: w.push(DONE)), (6, typed(None))]
    there = talking(*script, relay=relay).finished()
    assert ("question", {"text": "Really call?"}) in told(there)
    assert relay.heard[1:] == [
        {"type": "playback.drained", "call_id": "k1"},
        {"type": "svc.confirm", "confirmation_id": "c1", "answer": "allow"},
        {"type": "svc.confirm", "confirmation_id": "c1", "answer": "deny"},
    ]


# --- long tasks ----------------------------------------------------------------------------------------------------

LONGER = ("tool", {"line": "… this takes longer: it goes on in the background"})


def promoted(*, spoken: bool = False, origin: str = "provider_tool_call") -> dict[str, Any]:
    return event("svc.run.promoted", spoken_handoff=spoken, origin=origin)


def say(text: str) -> list[dict[str, Any]]:
    sound = event("voice.output_audio.delta", audio_base64=b64encode(b"pcm").decode(), sample_rate=24_000)
    return [event("voice.response.delta", delta=text), sound, DONE]


def push(*events: dict[str, Any]) -> Callable[[There], None]:
    def all_of_them(world: There) -> None:
        for each in events:
            world.push(each)

    return all_of_them


def test_background_task() -> None:
    relay = Relay(response__create=[[promoted()], say("Hello.")])
    there = talking(
        (1, typed("Tidy up")),
        (2, typed("Are you there?")),
        (3, typed(None)),  # the program waits for the pending answer
        (200, push(event("svc.run.background_completed", ok=True), *say("All is tidy."))),
        relay=relay,
    ).finished()
    hello, tidy = ([("text", {"text": text}), ("end", {})] for text in ("Hello.", "All is tidy."))
    assert told(there) == [PROMPT, LONGER, ("end", {}), PROMPT, *hello, PROMPT, *tidy]
    assert there.now.mono >= 1200  # the simulation begins at 1000


def test_text_may_follow_a_promotion() -> None:
    relay = Relay(response__create=[[promoted(spoken=True), *say("It takes a while.")]])
    there = talking((1, typed("Tidy up")), (2, push(*say("Done."))), (3, typed(None)), relay=relay).finished()
    texts = [fields["text"] for name, fields in told(there) if name == "text"]
    assert texts == ["It takes a while.", "Done."]
    assert told(there).count(PROMPT) == 3


def test_queued_task() -> None:
    relay = Relay(response__create=[[promoted()], [event("svc.run.queued"), DONE]])
    first, second = push(*say("One.")), push(promoted(origin="queued"), *say("Two."))
    script = (1, typed("First")), (2, typed("Second")), (2.5, typed(None)), (9, first), (10, second)
    there = talking(*script, relay=relay).finished()
    assert ("tool", {"line": "… this task waits for the one before it"}) in told(there)
    assert [fields["text"] for name, fields in told(there) if name == "text"] == ["One.", "Two."]


def test_confirmation_of_a_background_task() -> None:
    relay = Relay(response__create=[[promoted()]])
    asked = event("svc.confirmation.requested", confirmation_id="c1", message="May I?")
    there = talking((1, typed("Tidy up")), (2, push(asked)), (3, typed("Allow")), (4, typed(None)), relay=relay)
    there.script.append((5, push(event("svc.run.background_completed", ok=True), *say("Tidy."))))
    there.run()
    assert relay.heard[1] == {"type": "svc.confirm", "confirmation_id": "c1", "answer": "allow"}


def test_enter_denies_an_open_question_while_sound_is_played() -> None:
    sound = event("voice.output_audio.delta", audio_base64="AAAA", sample_rate=24_000)
    script: Any = [(1, typed("Hi")), (2, typed("")), (3, lambda w: w.children[0].exit()), (4, typed(None))]
    script += [(5, push(event("svc.run.background_completed", ok=True), *say("Tidy.")))]
    relay = Relay(response__create=[[sound, QUESTION, promoted()]])
    recorded(relay, *script, programs={"aplay 24000": b"noise"}, lasting={"aplay 24000"}).run()
    assert relay.heard[1] == {"type": "svc.confirm", "confirmation_id": "c1", "answer": "deny"}


def test_confirmation_outlives_the_turn_of_its_task() -> None:
    asked = event("svc.confirmation.requested", confirmation_id="c1", message="May I?")
    relay = Relay(response__create=[[], say("Noon.")])
    there = talking((1, typed("Tidy up")), (2, typed("The time?")), (3, push(asked, promoted())), relay=relay)
    there.script += [(4, typed("Allow")), (5, typed(None)), (6, push(*say("Tidy.")))]
    there.run()
    assert [message["type"] for message in relay.heard] == ["response.create", "response.create", "svc.confirm"]


QUESTION = event("svc.confirmation.requested", confirmation_id="c1", message="Really call?")
LATER = typed("The time?")


@pytest.mark.parametrize(
    ("steps", "sent"),
    [
        ([push(QUESTION), typed("Allow"), LATER, push(DONE)], ["svc.confirm", "response.create"]),
        ([push(QUESTION, DONE), LATER], ["response.create"]),
        ([push(QUESTION, promoted(), event("svc.run.cancelled")), LATER], ["response.create"]),
        (
            [push(QUESTION, promoted(), event("svc.run.background_completed")), LATER, push(*say("Done."))],
            ["response.create"],
        ),
    ],
    ids=["answered", "left open", "cancelled", "done in the background"],
)
def test_question_takes_no_line_once_it_is_over(steps: list[Callable[[There], None]], sent: list[str]) -> None:
    relay = Relay(response__create=[[], say("Noon.")])
    script = [(2.0 + place, step) for place, step in enumerate(steps)]
    talking((1, typed("Call Ann")), *script, (9, typed(None)), relay=relay).run()
    assert [message["type"] for message in relay.heard][1:] == sent


@pytest.mark.parametrize(
    ("ends", "problem"),
    [
        ([event("svc.run.background_completed", ok=False), event("voice.error", message="no room")], "no room"),
        ([event("svc.run.cancelled"), {**DONE, "cancelled": True}], None),
        ([event("svc.run.cancelled")], None),
    ],
)
def test_failed_or_dropped_answers(ends: list[dict[str, Any]], problem: str | None) -> None:
    relay = Relay(response__create=[[promoted()]])
    there = talking((1, typed("Tidy up")), (2, typed(None)), (9, push(*ends)), relay=relay).finished()
    assert [fields["text"] for name, fields in told(there) if name == "problem"] == ([problem] if problem else [])


def test_background_failure_does_not_end_another_turn() -> None:
    ends = [event("svc.run.background_completed", ok=False, error="no room"), event("voice.error", message="no room")]
    relay = Relay(response__create=[[promoted()], [event("voice.response.delta", delta="It "), *ends], say("Three.")])
    there = talking((1, typed("Tidy up")), (2, typed("The time?")), (2.5, typed("And now?")), relay=relay)
    there.script += [(3, typed(None)), (4, push(DONE))]
    there.run()
    assert ("problem", {"text": "no room"}) in told(there)
    assert told(there)[-2:] == [("text", {"text": "Three."}), ("end", {})]


def test_queued_task_begins_with_another_turn() -> None:
    relay = Relay(response__create=[[promoted()], [event("svc.run.queued"), DONE], [promoted(origin="queued")]])
    there = talking((1, typed("First")), (2, typed("Second")), (3, push(*say("One."))), relay=relay)
    there.script += [(4, typed("Third")), (5, typed(None)), (6, push(*say("Three."))), (7, push(*say("Two.")))]
    there.run()
    assert [fields["text"] for name, fields in told(there) if name == "text"] == ["One.", "Three.", "Two."]
    assert len([name for name, _ in told(there) if name == "end"]) == 5


def test_cancel_clears_a_pending_answer() -> None:
    relay = Relay(response__create=[[promoted()], []], response__cancel=[[{**DONE, "cancelled": True}]])
    there = talking((1, typed("Tidy up")), (2, typed("The time?")), relay=relay)
    there.script += [(3, push(event("svc.run.background_completed", ok=True))), (4, typed("")), (5, typed(None))]
    there.run()


def test_answer_during_a_recording() -> None:
    relay = Relay(response__create=[[promoted()]], input_audio__commit=[say("Yes.")])
    script: Any = [(1, typed("Tidy up")), (2, typed("")), (3, lambda w: w.children[0].write_output(SPEECH))]
    script += [(4, push(*say("Tidy."))), (5, typed("")), (6, typed(None))]
    there = recorded(relay, *script, programs={"aplay 24000": b""}, lasting={"arecord -q"}).finished()
    assert [fields["text"] for name, fields in told(there) if name == "text"] == ["Tidy.", "Yes."]


def test_input_before_the_session_is_ready() -> None:
    relay = Relay(response__create=[[DONE]])
    there = talking(relay=relay)
    there.script[:] = [(0.1, typed("Hi")), (0.2, typed(None)), (0.5, lambda w: w.push(READY))]
    there.run()
    assert relay.heard == [{"type": "response.create", "text": "Hi"}]


def test_a_refusal_ends_the_turn() -> None:
    relay = Relay(response__create=[[event("voice.error", message="not now")], [DONE]])
    talking((1, typed("Hi")), (2, typed("Hi again")), (3, typed(None)), relay=relay).run()
    assert len(relay.heard) == 2


def test_turn_error_is_shown_and_the_next_turn_follows() -> None:
    relay = Relay(response__create=[[event("voice.error", message="no engine"), event("voice.error"), DONE], [DONE]])
    there = talking((1, typed("Hi")), (2, typed("Again")), (3, typed(None)), relay=relay).finished()
    assert [fields["text"] for kind, fields in told(there) if kind == "problem"] == ["no engine", "no reason given"]


# --- ends ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        ({"http": as_json({"error": "no grant"}, 403)}, "the relay refuses: no grant (status 403)"),
        ({"http": as_json({"websocket_path": 5})}, "the relay made no voice session"),
        ({"socket": None}, "the relay refuses: status 200"),
        ({"dial": None}, "the relay at http://127.0.0.1:8767 cannot be reached: no route"),
    ],
)
def test_session_does_not_open(world: dict[str, Any], reason: str) -> None:
    if "dial" in world:
        times: list[int] = []

        def dial(host: str, port: int) -> Failure | None:
            times.append(port)
            return Failure(FailureKind.UNREACHABLE, "no route") if len(times) > 1 else None

        world = {"dial": dial}
    there = talking(**world)
    there.script.clear()
    assert there.fails().reason == reason


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (lambda w: w.push(event("voice.error", message="KEY not set")), "the relay refuses: KEY not set"),
        (lambda w: w.break_connections(), "the voice session ended: reset"),
        (lambda w: w.push(event("voice.other")), "the voice session does not get ready"),
    ],
)  # fmt: skip
def test_session_does_not_become_ready(happens: Callable[[There], None], reason: str) -> None:
    there = talking()
    there.script[:] = [(0.5, happens)]
    assert there.fails().reason == reason
    lost = talking((1, lambda w: w.break_connections()))  # once it is ready
    assert lost.fails().reason == "the voice session ended: reset"


@pytest.mark.parametrize("relay", [Relay(), Relay(response__create=[[promoted()]])], ids=["turn", "background task"])
def test_silent_agent(relay: Relay) -> None:
    there = talking((1, typed("Tidy up")), (2, typed(None)), relay=relay)
    assert there.fails().reason == "the agent did not answer in time"


@pytest.mark.parametrize(("most", "end"), [(6, Exit(1, "the relay says more than can be taken")), (7, Exit(0, ""))])
def test_undelivered_events_are_limited(most: int, end: Exit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_chat, "MAX_NEWS", most)
    deltas = [event("voice.response.delta", delta="x")] * 5
    relay = Relay(response__create=[[*answer(sound=b"\1\2"), *deltas]])
    script = (1, typed("Hi")), (9, typed(None))
    there = recorded(relay, *script, programs={"aplay 24000": b""})
    there.advance()
    assert there.exit == end


def test_idle_session_stays_open() -> None:
    there = talking((90_000.0, typed(None)))
    there.run(until=100_000.0)
