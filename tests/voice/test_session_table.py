"""How many voice sessions there may be, and who has to go."""

from __future__ import annotations

import pytest
from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.voice.session_table import MAX_OF_ONE, MAX_SESSIONS
from tests.voice.rig import OTHER, PHONE, Client, Rig


def sessions(rig: Rig, count: int, *, attached: bool = True) -> list[Client | None]:
    """So many of the phone."""
    clients: list[Client | None] = []
    for _ in range(count):
        answer = rig.create(rig.output, provider="openai_tts")
        clients.append(rig.attach(rig.output, answer) if attached else None)
    return clients


def test_what_nobody_listens_to_makes_room(rig: Rig) -> None:
    *_, last = sessions(rig, MAX_OF_ONE - 1)
    assert last is not None
    last.say("response.create", text="Hello.")
    last.leave()
    fresh = rig.create(rig.output)
    rig.create(rig.output)  # in place of the fresh one
    assert len(rig.output.sessions) == MAX_OF_ONE
    with pytest.raises(Refused) as refused:
        rig.attach(rig.output, fresh)
    assert refused.value.status == 410
    table = rig.output.sessions
    assert [table.knows(name) for name in (fresh["session_id"], table.sessions()[0].id, "x")] == [True, True, False]
    rig.attach(rig.output, {"session_id": rig.output.sessions.sessions()[-1].id})
    rig.create(rig.output)  # in place of the detached one
    assert rig.puppet.stopped
    rig.attach(rig.output, {"session_id": rig.output.sessions.sessions()[-1].id})
    with pytest.raises(Refused) as full:
        rig.create(rig.output)
    assert (full.value.status, full.value.code) == (503, "too_many_sessions")
    rig.create(rig.output, OTHER)
    assert len(rig.output.sessions) == MAX_OF_ONE + 1


def test_all_callers_together(rig: Rig) -> None:
    for number in range(MAX_SESSIONS):
        rig.create(rig.output, evolve(PHONE, device_id=f"phone {number % 4}"))
    with pytest.raises(Refused) as full:
        rig.create(rig.output, OTHER)
    assert full.value.status == 503
    rig.create(rig.output, evolve(PHONE, device_id="phone 1"))
    assert len(rig.output.sessions) == MAX_SESSIONS


def test_a_token_that_is_accepted_no_more(rig: Rig) -> None:
    (mine,) = sessions(rig, 1)
    rig.create(rig.output, OTHER)
    rig.create(rig.lab)
    rig.do(lambda: rig.output.sessions.end_bearer(PHONE.bearer_hash, "the session was revoked"))
    rig.do(lambda: rig.lab.sessions.end_bearer(PHONE.bearer_hash, "the session was revoked"))
    assert mine is not None
    assert (mine.closed, mine.reason) == (1008, "the session was revoked")
    (left,) = rig.output.sessions.sessions()
    assert left.principal == OTHER
    assert len(rig.lab.sessions) == 0


def test_another_token_of_the_device_that_is_accepted_no_more(rig: Rig) -> None:
    answer = rig.create(rig.output, provider="openai_tts")
    second_token = evolve(PHONE, bearer_hash="c" * 64)
    owner, candidate = (rig.attach(rig.output, answer, second_token) for _ in range(2))
    other = rig.attach(rig.output, answer)
    owner.say("response.create", text="Hello.")
    rig.do(lambda: rig.output.sessions.end_bearer(second_token.bearer_hash, "the session was revoked"))
    assert [client.closed for client in (owner, candidate, other)] == [1008, 1008, None]
    assert not rig.puppet.stopped
    other.say("session.resume", resume_token=answer["resume_token"])
    assert other.types()[-1] == "voice.replay.done"
