from typing import Any

import pytest

from svc_proto.cli.voice_chat_io import PendingAnswers, PlayerProcess
from svc_proto.commands import CloseWrite, Send, Spawned
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.facts import ChannelId, Closed, Done, OperationId, Started
from svc_proto.wire.events import BinaryMessage, StreamId, TextMessage
from tests.cli.test_voice_chat import DONE, Relay, There, answer, event, recorded, talking, told, typed
from tests.engine.test_http_client import calling


def test_invalid_events_are_skipped() -> None:
    talking((1, lambda w: push_text(w, "[1]")), (1.1, lambda w: push_text(w, "no JSON")), (2, typed(None))).run()


def push_text(world: There, text: str) -> None:
    line = next(line for line in world.upstreams if line.upgraded)
    line.conn.send(TextMessage(StreamId(1), text))
    line.conn.send(BinaryMessage(StreamId(1), b"x"))
    line.flush()


def test_overlong_line_in_several_reads() -> None:
    def keys(at: float, data: bytes) -> Any:
        return at, lambda world: world.keys(data)

    line = keys(1, b"x" * 6_000), keys(1.1, "ü".encode() * 9_000), keys(1.2, b"x\r\nHi\r\n")
    there = talking(*line, *((at, lambda w: w.push(DONE)) for at in (3, 3.5)), (4, typed(None))).finished()
    assert [message["text"] for message in there.said] == ["Hi"]
    told_of = [fields["text"] for kind, fields in told(there) if kind == "problem"]
    assert told_of == ["a line of more than 5000 characters is not sent"]


LONGEST = "\N{MUSICAL SYMBOL G CLEF}" * 5_000  # exactly the buffer size in bytes


@pytest.mark.parametrize(
    ("at", "line"), [(0.2, b"x" * 6_000), (1, LONGEST.encode())], ids=["before the session is ready", "in two reads"]
)
def test_overlong_line_is_not_sent(at: float, line: bytes) -> None:
    there = talking((at, lambda w: w.keys(line)), (at + 0.1, lambda w: w.keys(b"x\n")), (2, typed(None))).finished()
    assert there.said == []
    assert ("problem", {"text": "a line of more than 5000 characters is not sent"}) in told(there)


def test_the_longest_line() -> None:
    there = talking((1, typed(LONGEST)), (2, lambda w: w.push(DONE)), (3, typed(None))).finished()
    assert [message["text"] for message in there.said] == [LONGEST]


def test_player_ends_early_or_does_not_start() -> None:
    for programs in ({"aplay 24000": b""}, {}):
        relay = Relay(response__create=[[*answer(sound=b"\1\2")[:3], *answer(sound=b"\3\4")]])
        there = recorded(relay, (1, typed("Hi")), (9, typed(None)), programs=programs).finished()
        complaint = ("problem", {"text": "what plays sound here does not start"})
        assert (complaint in told(there)) is not bool(programs)
        assert told(there)[-1] == ("prompt", {"records": True})


def test_audio_is_dropped_without_a_running_player() -> None:

    def flow(engine: Engine) -> Flow[bool]:
        speaker = PlayerProcess(engine)
        speaker.play(b"too early")
        started = yield from speaker.start(("aplay",))
        speaker.play(b"sound")
        yield from sleep(engine, 1.0)
        speaker.play(b"too late")
        return started

    book, caller = calling(flow)
    book >> Started()
    book.drain_commands()
    book >> Done(OperationId(1), Spawned(77)) << [Send(ChannelId(1), b"sound")]
    book >> Closed(ChannelId(1), exit=0) << []
    book.after(1.0) << []
    assert caller.results == [True]


def test_player_plays_to_its_end() -> None:
    def flow(engine: Engine) -> Flow[None]:
        speaker = PlayerProcess(engine)
        yield from speaker.start(("aplay",))
        yield from speaker.finish()

    book, caller = calling(flow)
    book >> Started()
    book.drain_commands()
    book >> Done(OperationId(1), Spawned(77)) << [CloseWrite(ChannelId(1))]
    book.after(60.0) << []
    assert caller.results == []
    book >> Closed(ChannelId(1), exit=0) << []
    assert caller.results == [None]


def test_invalid_audio_is_ignored() -> None:
    odd = [
        event("voice.output_audio.delta", audio_base64="AAA", sample_rate=24_000),
        event("voice.output_audio.delta", audio_base64=5, sample_rate=24_000),
        event("voice.output_audio.delta", audio_base64="AAAA"),
        event("voice.response.delta", delta=7),
        DONE,
    ]
    script = (1, typed("Hi")), (9, typed(None))
    there = recorded(Relay(response__create=[odd]), *script, programs={"aplay 24000": b""}).finished()
    assert there.children == []


# --- answers that the relay owes --------------------------------------------------------------------------------------


def owed(n: int) -> PendingAnswers:
    promises = PendingAnswers()
    for _ in range(n):
        promises.add()
    return promises


def test_answers_are_resolved_separately_or_dropped() -> None:
    promises = owed(0)
    promises.resolve_one()  # no answer is pending
    promises.add()
    promises.add()
    promises.resolve_one()
    assert promises
    promises.resolve_one()
    assert not promises
    promises = owed(3)
    promises.clear()
    assert not promises


def test_failed_task_fails_one_answer_once() -> None:
    promises = owed(1)
    assert not promises.has_failed()
    promises.completed(ok=True)
    assert not promises.has_failed()
    promises.completed(ok=False)
    assert promises.has_failed()
    assert not promises.has_failed()


def test_cancelled_turn_ends_only_cancelled_answers() -> None:
    promises = owed(2)
    promises.turn_cancelled()
    assert promises
    promises.cancel_all()
    assert promises  # the relay may still deliver an answer
    promises.turn_cancelled()
    assert not promises
    promises.add()
    promises.turn_cancelled()
    assert promises
