import pytest
from attrs import evolve

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.machines.voice_session import VoiceState
from svc_proto.voice.connection import MAX_MESSAGE, RECHECK
from tests.support.playbook import START
from tests.voice.dialogue import DialogueRun, play
from tests.voice.harness import PHONE, VoiceHarness, VoiceTestClient, spoken


@pytest.mark.parametrize("letter", ["x", "\U0001f600"])
def test_too_large_message(rig: VoiceHarness, letter: str) -> None:
    answer, client = spoken(rig)
    fitting = (MAX_MESSAGE - len('""')) // len(letter.encode())
    client.send(f'"{letter * fitting}"')
    assert (client.types()[-1], client.closed) == ("voice.error", None)
    client.send(f'"{letter * (fitting + 1)}"')
    assert client.closed == 1009
    client.send_event("session.close")  # ignored from here on
    client.send_binary(b"")
    client.disconnect(1009)
    rig.attach(rig.output, answer).send_event("session.resume", resume_token=answer["resume_token"])
    assert rig.output.sessions()[0].attached


def test_message_too_slow_to_parse(rig: VoiceHarness) -> None:
    _, client = spoken(rig)
    with pytest.raises(RemoteProtocolError, match="too big") as caught:
        client.send("[" + "{}," * 100_000 + "0]")
    assert caught.value.close_code == 1009


def test_candidates_are_few_and_have_little_time() -> None:
    stage = play(["spoken", "B comes", "C comes", "D comes", "E comes"], DialogueRun())
    play(["F comes -> B:session.resume_failed B:closed(code=4009)", "C leaves", "after 29.9 -> nothing"], stage)
    ends = [f"{name}:session.resume_failed {name}:closed(code=4009)" for name in "DEF"]
    play([f"after 0.2 -> {' '.join(ends)}"], stage)


def granted(rig: VoiceHarness, ends: list[float | None]) -> VoiceTestClient:
    """Attach a client whose grant ends at the last item of `ends`, to which a test may append; None means no end."""
    answer = rig.create(rig.lab, provider="stub")
    return rig.attach(rig.lab, answer, evolve(PHONE, until=lambda: ends[-1]))


def test_a_socket_or_candidate_ends_with_its_grant(rig: VoiceHarness) -> None:
    client = granted(rig, [START.wall + 90.0])
    rig.after(89.9)
    assert [client.closed] == [None]
    rig.after(0.2)
    assert (client.closed, client.reason) == (1008, "the grant has run out")
    assert [session.life.state for session in rig.lab.sessions()] == [VoiceState.FRESH]  # open to another client
    client.send_event("response.create", text="Hello.")  # ignored from here on
    assert client.types() == ["voice.session.ready"]
    answer, owner = spoken(rig)
    candidate = rig.attach(rig.output, answer, evolve(PHONE, until=lambda: START.wall + 5.0))
    rig.after(5.1)
    assert (candidate.closed, owner.closed) == (1008, None)


def test_changed_grant(rig: VoiceHarness) -> None:
    ends: list[float | None] = [None, START.wall + 50.0]
    client = granted(rig, ends)
    ends.append(None)
    rig.within(lambda: rig.lab.recheck(PHONE.bearer_hash))
    rig.after(100.0)
    assert client.closed is None
    ends.append(START.wall + 10.0)
    rig.within(lambda: rig.lab.recheck("another token"))
    assert client.closed is None
    rig.within(lambda: rig.lab.recheck(PHONE.bearer_hash))
    rig.within(lambda: rig.lab.recheck(PHONE.bearer_hash))  # the client has left
    assert client.closed == 1008


def test_clock_set_forward(rig: VoiceHarness) -> None:
    ends: list[float | None] = [START.wall + 3_600.0]
    spoken_to, silent = granted(rig, ends), granted(rig, ends)
    ends.append(START.wall)  # for the socket the same as a clock that jumped
    spoken_to.send_event("response.create", text="Hello.")
    assert spoken_to.closed == 1008
    assert silent.closed is None
    rig.after(RECHECK)
    assert silent.closed == 1008
