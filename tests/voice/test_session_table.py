"""How many voice sessions there may be, and who has to go."""

from __future__ import annotations

import pytest
from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.voice.session_table import MAX_OF_ONE, MAX_SESSIONS
from tests.voice.dialogue import Play, dialogues, play
from tests.voice.rig import OTHER, PHONE, Rig

DIALOGUES = f"""
what nobody listens to makes room
    attended {MAX_OF_ONE - 2}
    spoken
    A leaves
    create
    create
    are {MAX_OF_ONE}
    known fresh
    A comes
    create
    puppet stopped=true
    A comes
    create -> refused(status=503, code=too_many_sessions)
    create other
    are {MAX_OF_ONE + 1}
a token that is accepted no more
    create
    A comes
    create other
    revoke -> closed(code=1008, reason=revoked)
    are 1 fresh
a token of the lab that is accepted no more
    create lab
    revoke
    are 0
another token of the device that is accepted no more
    create provider=openai_tts
    A comes again
    B comes again
    C comes
    A says response.create text=Hello.
    revoke again -> closed(code=1008) B:closed(code=1008)
    puppet stopped=false
    C says session.resume resume_token=$token -> session.resumed replay.started session.ready response.started
        -> session.detached replay.done
"""


class Stage(Play):
    def attended(self, count: str) -> None:
        """So many sessions to which somebody listens."""
        for _ in range(int(count)):
            self.create("provider=openai_tts")
            self.rig.attach(self.family, self.answer)

    def known(self, state: str) -> None:
        """The newest session is there, the one that had to go is known, and another is not."""
        table = self.family.sessions
        newest = table.sessions()[-1]
        assert (newest.life.state.value, newest.id) == (state, self.answer["session_id"])
        assert [table.knows(name) for name in (table.sessions()[0].id, "x")] == [True, False]


@pytest.mark.parametrize(("title", "lines"), dialogues(DIALOGUES).items())
def test_a_dialogue(title: str, lines: list[str]) -> None:
    play(lines, Stage())


def test_who_had_to_go_is_over(rig: Rig) -> None:
    first, *_ = [rig.create(rig.output) for _ in range(MAX_OF_ONE + 1)]
    with pytest.raises(Refused) as refused:
        rig.attach(rig.output, first)
    assert refused.value.status == 410
    assert rig.output.sessions.knows(first["session_id"])


def test_all_callers_together(rig: Rig) -> None:
    for number in range(MAX_SESSIONS):
        rig.create(rig.output, evolve(PHONE, device_id=f"phone {number % 4}"))
    with pytest.raises(Refused) as full:
        rig.create(rig.output, OTHER)
    assert full.value.status == 503
    rig.create(rig.output, evolve(PHONE, device_id="phone 1"))
    assert len(rig.output.sessions) == MAX_SESSIONS
