"""One WebSocket of a voice session: what it may say, and how long it may be silent."""

from __future__ import annotations

import pytest

from svc_proto.voice.socket import MAX_MESSAGE, PING_EVERY
from tests.voice.rig import Rig, spoken


def test_pings() -> None:
    rig = Rig()
    assert rig.attach(rig.output, rig.create(rig.output)).pings_every == PING_EVERY == 20.0


@pytest.mark.parametrize("letter", ["x", "\U0001f600"])
def test_a_message_that_is_too_large(letter: str) -> None:
    rig = Rig()
    answer, client = spoken(rig)
    fitting = MAX_MESSAGE // len(letter.encode())
    client.send(letter * fitting)
    assert (client.types()[-1], client.closed) == ("voice.error", None)
    client.send(letter * (fitting + 1))
    assert client.closed == 1009
    client.say("session.close")  # is not heard any more
    client.send_binary(b"")
    client.leave(1009)
    rig.attach(rig.output, answer).say("session.resume", resume_token=answer["resume_token"])
    assert rig.output.sessions.sessions()[0].attached


def test_candidates_are_few_and_have_little_time() -> None:
    rig = Rig()
    answer, first = spoken(rig)
    candidates = [rig.attach(rig.output, answer) for _ in range(5)]
    assert [candidate.closed for candidate in candidates] == [4009, None, None, None, None]
    candidates[1].leave()
    rig.after(29.9)
    assert candidates[2].closed is None
    rig.after(0.2)
    assert [candidate.closed for candidate in candidates[2:]] == [4009] * 3
    assert first.closed is None
