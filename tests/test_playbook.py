import pytest

from svc_proto.basics.moment import Moment
from svc_proto.commands import Abort, Command, Level, Log, Send
from svc_proto.facts import Fact, Received
from tests.support.playbook import CH, START, Playbook, SendMatcher, accepted, wire_bytes


class Parrot:
    """Core that logs and sends back received bytes, and aborts `CH` at two deadlines."""

    def __init__(self) -> None:
        self.deadlines = [START.mono + 1.0, START.mono + 2.0]

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        match fact:
            case Received(ch=ch, data=data):
                return [Log(Level.INFO, "heard", {}), Send(ch, data)]
            case None if self.deadlines and now.mono >= self.deadlines[0]:
                self.deadlines.pop(0)
                return [Abort(CH)]
        return []

    def next_deadline(self) -> float | None:
        return self.deadlines[0] if self.deadlines else None


def test_a_dialogue() -> None:
    with Playbook(Parrot()) as book:
        book >> accepted() << []
        book >> Received(CH, b"hi") << [Send(CH, b"hi")]
        book >> Received(CH, b"hi") << [SendMatcher(CH, startswith=b"h", contains=b"i")]
        assert wire_bytes(book.drain_commands()) == b"hi"
        assert [log.event for log in book.logs] == ["heard", "heard"]
        book.after(3.0) << [Abort(CH), Abort(CH)]
        assert book.now.mono == START.mono + 3.0
        assert book.now.wall == START.wall + 3.0


def test_a_different_outcome_shows_all_steps() -> None:
    book = Playbook(Parrot())
    with pytest.raises(AssertionError, match=r"another way\n>> Received.*\n<< Send(.*\n)*expected:\ngot:\nSend"):
        book >> Received(CH, b"hi") << []
    with pytest.raises(AssertionError, match="another way"):
        book >> Received(CH, b"hi") << [Send(CH, b"ho")]
    with pytest.raises(AssertionError, match="another way"):
        book >> Received(CH, b"hi") << [SendMatcher(4)]


def test_unchecked_commands_are_reported() -> None:
    book = Playbook(Parrot())
    book >> Received(CH, b"hi")
    with pytest.raises(AssertionError, match="never checked"):
        book >> Received(CH, b"hi")
    with pytest.raises(AssertionError, match="never checked"):
        book.after(1.5)  # past a deadline of the core
    with pytest.raises(AssertionError, match="never checked"), Playbook(Parrot()) as book:
        book >> Received(CH, b"hi")
