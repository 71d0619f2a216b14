from svc_proto.commands import Abort, PauseReading, ResumeReading, Send
from svc_proto.engine.channel import Channel
from svc_proto.facts import Accepted, ChannelId, Closed, Received, Sent, Stopping
from svc_proto.wire.limits import Limits
from tests.engine.toy_service import ToyPlaybook, open_book
from tests.support.playbook import LOCAL, PEER

FOUR = ChannelId(4)
MARKS = Limits(high_water=10, low_water=4, write_timeout=6.0)


class Echo(Channel):
    """Channel that sends back what it receives."""

    __slots__ = ("pieces",)

    def received(self, data: bytes) -> None:
        self.pieces = [*getattr(self, "pieces", []), data]
        self.mark_dirty()
        self.mark_dirty()

    def read_closed(self) -> None:
        self.abort()

    def stop(self) -> None:
        self.abort()

    def flush(self) -> None:
        if self.drop_if_overrun():
            return
        pieces, self.pieces = self.pieces, []
        for piece in pieces:
            self.write(piece)


def echoing(limits: Limits = MARKS) -> tuple[ToyPlaybook, Echo]:
    book = open_book()
    channel = Echo(book.engine, FOUR, limits)
    book.engine.attach(channel)
    return book, channel


def test_reading_stops_between_the_water_marks() -> None:
    book, channel = echoing()
    book >> Received(FOUR, b"x" * 10) << [Send(FOUR, b"x" * 10)]
    book >> Received(FOUR, b"y") << [Send(FOUR, b"y"), PauseReading(FOUR)]
    book >> Received(FOUR, b"under way") << [Send(FOUR, b"under way")]
    book >> Sent(FOUR, 15) << []
    book >> Sent(FOUR, 1) << [ResumeReading(FOUR)]
    book >> Sent(FOUR, 4) << []
    book.after(9.0).drain_commands()
    assert channel.credit.unsent == 0


def test_holding_and_credit_together() -> None:
    book, channel = echoing()
    channel.set_read_paused(True)
    channel.set_read_paused(True)
    book >> Received(FOUR, b"x" * 11) << [Send(FOUR, b"x" * 11)]
    channel.set_read_paused(False)
    book >> Sent(FOUR, 11) << [ResumeReading(FOUR)]


def test_a_stalled_write_is_dropped_and_progress_helps() -> None:
    book, _ = echoing()
    book >> Received(FOUR, b"xx") << [Send(FOUR, b"xx")]
    book.after(5.0) << []
    book >> Received(FOUR, b"y") << [Send(FOUR, b"y")]
    book >> Sent(FOUR, 1) << []
    book.after(5.9) << []
    book.after(0.1) << [Abort(FOUR)]
    book >> Received(FOUR, b"late") << []
    book >> Closed(FOUR) << []
    book, _ = echoing()
    for piece in (b"xx", b"y"):  # a further write is no progress
        book >> Received(FOUR, piece) << [Send(FOUR, piece)]
        book.after(3.0)
    assert book.drain_commands() == [Abort(FOUR)]


def test_more_than_may_be_unsent_drops_the_peer_and_so_does_the_stop() -> None:
    book, channel = echoing(Limits(max_unsent=10))
    book >> Received(FOUR, b"x" * 10) << [Send(FOUR, b"x" * 10)]
    book >> Received(FOUR, b"y") << [Send(FOUR, b"y")]
    book >> Received(FOUR, b"z") << [Abort(FOUR)]
    assert channel.gone
    book, _ = echoing()
    book >> Stopping(9.0)
    assert Abort(FOUR) in book.drain_commands()
    assert Accepted(FOUR, PEER, LOCAL).alpn is None
