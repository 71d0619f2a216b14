"""What every family of voice sessions has in common, by a family that takes its time to begin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.engine.message import Request
from svc_proto.machines.voice_session import Cursor, VoiceState
from svc_proto.voice.contract import ProviderError
from svc_proto.voice.session import MAX_EARLY, VoiceKind, VoiceMode, VoiceSession, problem_of
from svc_proto.voice.session_table import SessionTable
from svc_proto.voice.socket import VoiceSocket
from tests.voice.rig import PHONE, Client, Rig


class SlowMode(VoiceMode):
    """It is ready when a test says so, and keeps whatever happens to its socket."""

    def __init__(self, session: VoiceSession) -> None:
        super().__init__(session)
        self.happened: list[object] = []

    def on_attached(self) -> None:
        self.happened.append("attached")

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        self.happened.append(kind)
        if kind == "bad":
            raise Refused(400, "bad", "this is bad")
        if kind == "end":
            self.session.close("asked to")
        return True

    def on_lost(self) -> None:
        self.happened.append("lost")

    def on_detached(self) -> None:
        self.happened.append("detached")

    def on_resumed(self) -> None:
        self.happened.append("resumed")

    def on_closed(self) -> None:
        self.happened.append("closed")

    def keeps(self, code: int) -> bool:
        return code != 1000


class Family:
    """Finds the one session there is."""

    def __init__(self, table: SessionTable) -> None:
        self.table = table

    def open(self, request: Request, principal: object, session_id: str) -> VoiceSocket:
        """A socket of it."""
        return VoiceSocket(self.table.find(session_id, PHONE))


def made(
    rig: Rig, mode: Callable[[VoiceSession], VoiceMode], **kind: Any
) -> tuple[VoiceSession, Any, dict[str, object]]:
    """A session, its family, and what names it."""
    table = SessionTable(rig.engine)
    what = VoiceKind(name="voice.slow", family="slow", runs="/runs", window=30.0, **kind)
    voice = cast("Any", rig.voice)
    session = rig.do(lambda: VoiceSession(voice, table, PHONE, rig.voice.output, what, mode))
    table.add(session)
    return session, cast("Any", Family(table)), {"session_id": session.id}


def slow(rig: Rig) -> tuple[VoiceSession, list[object], Any, dict[str, object]]:
    """A session that takes its time, what has happened to it, its family, and what names it."""
    session, family, named = made(rig, SlowMode)
    assert isinstance(session.mode, SlowMode)
    return session, session.mode.happened, family, named


def test_messages_from_before_the_session_was_ready_are_not_lost(rig: Rig) -> None:
    session, happened, family, named = slow(rig)
    client = rig.attach(family, named)
    client.say("one")
    client.say("bad")
    client.say("two")
    assert happened == ["attached"]
    assert client.events() == []
    rig.do(session.begin)
    assert happened == ["attached", "one", "bad", "two"]
    ready, error = client.events()
    assert (ready["type"], error["message"]) == ("voice.session.ready", "this is bad")
    client.say("client.ack", event_id=2)
    assert session.life.acked == Cursor(event=2)


def test_a_session_that_ends_while_it_takes_what_was_said(rig: Rig) -> None:
    session, happened, family, named = slow(rig)
    client = rig.attach(family, named)
    for kind in ("end", "two"):
        client.say(kind)
    rig.do(session.begin)
    assert happened == ["attached", "end", "closed"]


def test_too_many_messages_before_the_session_is_ready(rig: Rig) -> None:
    session, happened, family, named = slow(rig)
    client = rig.attach(family, named)
    for _ in range(MAX_EARLY):
        client.say("one")
    assert [client.closed] == [None]
    client.say("one")
    assert client.closed == 1008
    assert happened == ["attached", "lost"]
    assert session.life.state is VoiceState.FRESH
    client.leave(1008)
    rig.attach(family, named)
    rig.do(session.begin)
    assert happened == ["attached", "lost", "attached"]


def test_a_session_that_cannot_begin_may_be_tried_again(rig: Rig) -> None:
    session, _, family, named = slow(rig)
    client = rig.attach(family, named)
    rig.after(500.0)

    def fail() -> None:
        session.error("nobody there", provider="x")
        session.release(1011, "nobody there")

    rig.do(fail)
    assert (client.types(), client.closed) == (["voice.error"], 1011)
    rig.after(100.0)
    again = rig.attach(family, named)
    rig.do(session.begin)
    assert [event["event_id"] for event in again.events()] == [2]
    rig.after(500.0)
    assert session.attached


def test_it_waits_again_for_somebody_after_it_was_let_go(rig: Rig) -> None:
    session, happened, family, named = slow(rig)
    client = rig.attach(family, named)
    client.leave()
    assert happened == ["attached", "lost"]
    rig.after(119.0)
    assert not session.closed
    rig.after(2.0)
    assert session.closed


def test_while_it_begins_nobody_else_may_have_it(rig: Rig) -> None:
    session, _, family, named = slow(rig)
    rig.attach(family, named)
    second = rig.attach(family, named)
    token = session.take_token()
    assert (len(token), session.take_token()) == (43, "")  # it is told once
    second.say("session.resume", resume_token=token)
    assert (second.events()[0]["reason"], second.closed) == ("session_initializing", 1013)
    third = rig.attach(family, named)
    third.say("anything")
    assert (third.events()[0]["reason"], third.closed) == ("session_initializing", 1013)


def test_a_longer_window(rig: Rig) -> None:
    session, happened, family, named = slow(rig)
    client = rig.attach(family, named)
    rig.do(session.begin)
    rig.do(lambda: session.extend(100.0))  # nobody is missing
    assert session.engine.next_deadline() is not None
    client.leave()
    assert happened[-1:] == ["detached"]
    rig.do(lambda: session.extend(360.0))
    rig.after(359.0)
    candidate = rig.attach(family, named)
    rig.after(2.0)
    assert happened[-1] == "closed"
    assert (candidate.events()[0]["reason"], candidate.closed) == ("resume_expired", 4008)


def test_a_candidate_when_the_session_ends_otherwise(rig: Rig) -> None:
    session, happened, family, named = slow(rig)
    owner = rig.attach(family, named)
    candidate = rig.attach(family, named)
    rig.do(lambda: session.close("revoked", code=1008))
    rig.do(lambda: session.close("again"))
    assert (owner.closed, owner.reason) == (1008, "revoked")
    assert (candidate.events()[0]["reason"], candidate.closed) == ("session_closed", 4008)
    assert happened == ["attached", "closed"]
    rig.do(lambda: session.emit("voice.late"))
    assert owner.events() == []
    owner.leave(1008)
    owner.read()


def test_a_socket_that_opens_when_the_session_has_just_ended(rig: Rig) -> None:
    session, _, family, _ = slow(rig)
    handler = family.open(None, PHONE, session.id)
    rig.do(lambda: session.close("over"))
    client = Client(rig, 77, handler)
    assert (client.events()[0]["reason"], client.closed) == ("session_closed", 4008)


def test_a_mode_that_adds_nothing(rig: Rig) -> None:
    session, family, named = made(rig, VoiceMode)
    client = rig.attach(family, named)
    client.say("client.ack")
    client.say("anything")
    assert client.types() == ["voice.session.ready", "voice.error"]
    client.say("session.resume", resume_token=session.take_token())
    assert client.types()[-1] == "voice.replay.done"
    for hook in (session.mode.on_lost, session.mode.on_detached):
        rig.do(hook)
    client.leave()
    assert session.closed


def test_what_a_client_is_told_of_an_error(rig: Rig) -> None:
    assert problem_of(rig.engine, ProviderError("no key")) == "no key"
    with pytest.raises(AssertionError, match="bug"):
        rig.do(lambda: problem_of(rig.engine, KeyError("secret")))


def test_a_log_of_one_session_and_the_sweep_of_others(rig: Rig) -> None:
    table = SessionTable(rig.engine)

    def create(days: int) -> None:
        kind = VoiceKind(name="voice.slow", family="voice", runs="/runs", keep_days=days)
        session = VoiceSession(cast("Any", rig.voice), table, PHONE, rig.voice.output, kind, VoiceMode)
        session.created({})

    for days in (0, 14, 14):
        rig.do(partial(create, days))
    (sweep,) = rig.sweeps
    assert (sweep.name, sweep.prefix, sweep.before) == ("/runs", "voice-", rig.now.wall - 14 * 86_400)
    rig.after(3600.0)
    for days in (0, 1):
        rig.do(partial(create, days))
    assert [round(rig.now.wall - each.before) for each in rig.sweeps[1:]] == [86_400]
