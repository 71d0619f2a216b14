"""Tests of channels over real sockets: bytes both ways, backpressure, half closing, resets."""

import socket

import pytest

from runtimes.host import pump
from runtimes.net import tcp_channel as channel_module
from svc_proto.commands import Abort, CloseWrite, Command, Exit, PauseReading, ResumeReading, Send
from svc_proto.facts import Accepted, ChannelId, Closed, Fact, ReadClosed, Received, Sent
from tests.runtimes.scripted_core import Files, close, connected, read_all, read_exactly, reset, running


def echo(fact: Fact) -> list[Command]:
    if isinstance(fact, Received):
        return [Send(fact.ch, fact.data)]
    if isinstance(fact, ReadClosed):
        return [CloseWrite(fact.ch)]
    return []


def test_echo_and_both_sides_close(runtime: str) -> None:
    with running(runtime, echo) as live:
        sock = live.connect()
        accepted = live.expect(Accepted)
        assert accepted.ch % 2 == 0
        assert (accepted.peer.host, accepted.peer.port) == sock.getsockname()
        assert (accepted.local.host, accepted.local.port) == sock.getpeername()
        assert not accepted.tls
        for n in (1, 1000, 100_000):
            sock.sendall(b"x" * n)
            assert read_exactly(sock, n) == b"x" * n
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock) == b""
        assert live.closed(accepted.ch) == Closed(accepted.ch, "")
        facts = [fact for fact in live.seen if getattr(fact, "ch", None) == accepted.ch]
        assert sum(fact.n for fact in facts if isinstance(fact, Sent)) == 101_001
        assert [type(fact) for fact in facts][-2:] == [ReadClosed, Closed]
        sock.close()


def test_reading_continues_after_our_close(runtime: str, files: Files | None) -> None:
    with connected(runtime, certificate=files) as (live, sock, ch):
        live.order(Send(ch, b"bye"), CloseWrite(ch), CloseWrite(ch), Send(ch, b"never"))
        assert read_all(sock) == b"bye"
        sock.sendall(b"still here")
        assert live.expect(Received) == Received(ch, b"still here")
        close(sock)
        assert live.expect(ReadClosed).ch == ch
        assert live.closed(ch).why == ""


def test_a_slow_reader_gets_everything_and_sent_adds_up(runtime: str, files: Files | None) -> None:
    size = 8 * 1024 * 1024
    with connected(runtime, certificate=files) as (live, sock, ch):
        live.order(Send(ch, b"a" * size), Send(ch, b"b"), Send(ch, b""), CloseWrite(ch))
        assert 0 < live.expect(Sent).n < size
        data = read_all(sock)
        assert len(data) == size + 1
        assert data[-1:] == b"b"
        close(sock)
        assert live.closed(ch).why == ""
        assert sum(fact.n for fact in live.seen if isinstance(fact, Sent)) == size + 1


def test_consecutive_small_writes_are_sent_together(runtime: str) -> None:
    with connected(runtime) as (live, sock, ch):
        live.order(*(Send(ch, b"%02d" % n) for n in range(100)))
        assert read_exactly(sock, 200) == b"".join(b"%02d" % n for n in range(100))
        assert [live.expect(Sent).n, live.expect(Sent).n] == [2, 198]
        size = channel_module.COALESCE_SIZE
        live.order(Send(ch, b"a"), Send(ch, b"b" * size), Send(ch, b"c" * size), Send(ch, b"d"), CloseWrite(ch))
        assert read_all(sock) == b"a" + b"b" * size + b"c" * size + b"d"


def test_low_priority_sent_facts_join_others(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "COALESCE_DELAY", 1000.0)
    with connected(runtime) as (live, sock, ch):
        live.order(Send(ch, b"ab", low_priority=True))
        assert read_exactly(sock, 2) == b"ab"
        live.order(Send(ch, b"c"))
        assert live.expect(Sent) == Sent(ch, 3)
        live.order(Send(ch, b"d", low_priority=True), CloseWrite(ch))
        assert live.expect(Sent) == Sent(ch, 1)
        assert read_all(sock) == b"cd"


def test_many_low_priority_bytes_are_reported_at_once(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "COALESCE_DELAY", 1000.0)
    with connected(runtime) as (live, sock, ch):
        live.order(Send(ch, b"x" * (pump.MAX_LOW_PRIORITY_BYTES - 1), low_priority=True))
        assert len(read_exactly(sock, pump.MAX_LOW_PRIORITY_BYTES - 1)) == pump.MAX_LOW_PRIORITY_BYTES - 1
        live.order(Send(ch, b"x", low_priority=True))
        assert live.expect(Sent) == Sent(ch, pump.MAX_LOW_PRIORITY_BYTES)


@pytest.mark.parametrize("gone", [False, True])
def test_delayed_sent_facts_keep_the_order(runtime: str, gone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "COALESCE_DELAY", 0.0 if not gone else 1000.0)
    with connected(runtime) as (live, sock, ch):
        live.order(Send(ch, b"a", low_priority=True))
        assert read_exactly(sock, 1) == b"a"
        if gone:
            reset(sock)
            assert live.fact() == Sent(ch, 1)
            assert live.closed(ch).ch == ch
        else:
            sock.sendall(b"b")
            assert [live.fact(), live.fact()] == [Sent(ch, 1), Received(ch, b"b")]
            sock.sendall(b"c")
            assert live.fact() == Received(ch, b"c")  # the byte is not reported again


@pytest.mark.parametrize("last", [Abort, None])
def test_collected_writes_are_sent_before_the_end(runtime: str, last: type[Abort] | None) -> None:
    with connected(runtime) as (live, sock, ch):
        live.order(Send(ch, b"a"), Send(ch, b"b"), Exit(0) if last is None else last(ch))
        assert live.closed(ch) if last else read_all(sock) == b"ab"


def test_paused_reading_delivers_nothing_until_resumed(runtime: str) -> None:
    with connected(runtime) as (live, sock, ch):
        live.order(PauseReading(ch), PauseReading(ch))
        live.order(Send(ch, b"paused"))
        assert read_exactly(sock, 6) == b"paused"
        sock.sendall(b"early")
        sock.shutdown(socket.SHUT_WR)
        other, other_ch = live.accept()
        other.sendall(b"other")
        assert live.expect(Received) == Received(other_ch, b"other")
        live.order(ResumeReading(ch), ResumeReading(ch))
        assert live.expect(Received) == Received(ch, b"early")
        assert live.expect(ReadClosed) == ReadClosed(ch)
        live.order(PauseReading(ch), ResumeReading(ch))
        live.order(CloseWrite(ch))
        live.closed(ch)
        other.close()


def test_pause_in_answer_to_accepted(runtime: str, files: Files | None) -> None:
    def react(fact: Fact) -> list[Command]:
        return [PauseReading(fact.ch)] if isinstance(fact, Accepted) and fact.ch != 2 else []

    with connected(runtime, react, certificate=files) as (live, sock, ch):
        sock.sendall(b"hello")
        live.order(Send(ch, b"x"))
        assert read_exactly(sock, 1) == b"x"
        assert live.expect(Sent) == Sent(ch, 1)
        assert not any(isinstance(fact, Received) for fact in live.seen)
        live.order(ResumeReading(ch))
        assert live.expect(Received) == Received(ch, b"hello")


def test_abort_resets(runtime: str) -> None:
    with connected(runtime) as (live, sock, ch):
        live.order(Send(ch, b"z" * 4_000_000), Abort(ch), Send(ch, b"after"), Abort(ch))
        assert live.closed(ch).why == "aborted"
        with pytest.raises(ConnectionResetError):
            read_all(sock)


def test_abort_after_a_fin_loses_nothing(runtime: str) -> None:
    with connected(runtime) as (live, sock, ch):
        live.order(Send(ch, b"z" * 10_000), CloseWrite(ch), Abort(ch))
        assert live.closed(ch).why == "aborted"
        assert read_all(sock) == b"z" * 10_000


def test_abort_in_answer_to_accepted_and_received(runtime: str) -> None:
    def react(fact: Fact) -> list[Command]:
        if isinstance(fact, Accepted) and fact.ch == 4:
            return [Abort(fact.ch)]
        return [Abort(fact.ch)] if isinstance(fact, Received) else []

    with running(runtime, react) as live:
        first = socket.socket()
        first.connect_ex(live.control.getpeername())  # the reset may be faster than the return
        live.closed(live.expect(Accepted).ch)
        second, second_ch = live.accept()
        second.sendall(b"x")
        live.closed(second_ch)
        first.close()
        second.close()


def test_the_peer_resets(runtime: str, files: Files | None) -> None:
    with connected(runtime, certificate=files) as (live, sock, ch):
        reset(sock)
        why = live.closed(ch).why
        assert why
        assert "reset" in why or files is not None


def test_a_reset_that_comes_while_data_is_unread(runtime: str) -> None:
    with connected(runtime) as (live, sock, ch):
        live.order(PauseReading(ch), Send(ch, b"paused"))
        assert read_exactly(sock, 6) == b"paused"
        sock.sendall(b"last words")
        reset(sock)
        live.order(ResumeReading(ch))
        assert "reset" in live.closed(ch).why


@pytest.mark.parametrize("closing", [False, True])
def test_writing_to_a_peer_that_has_gone(runtime: str, files: Files | None, closing: bool) -> None:
    with connected(runtime, certificate=files) as (live, sock, ch):
        live.order(PauseReading(ch))
        live.order(Send(ch, b"1"))
        assert read_exactly(sock, 1) == b"1"
        reset(sock)
        commands: list[Command] = [CloseWrite(ch), ResumeReading(ch)]
        live.order(*(commands if closing else [Send(ch, b"2" * 1000), CloseWrite(ch)]))
        assert live.closed(ch).why


def test_a_reset_is_reported_to_a_blocked_writer(runtime: str, files: Files | None) -> None:
    with connected(runtime, certificate=files) as (live, sock, ch):
        live.order(PauseReading(ch), Send(ch, b"z" * 16_000_000))
        read_exactly(sock, 10)
        reset(sock)
        assert live.closed(ch).why


def test_the_outbox_is_limited(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "OUTBOX_LIMIT", 1000)
    with connected(runtime) as (live, _, ch):
        live.order(*[Send(ch, b"z" * 4_000_000)] * 3)
        assert "unsent" in live.closed(ch).why


def test_the_outbox_has_room_again_once_its_bytes_are_sent(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "OUTBOX_LIMIT", 4_000_000)
    with connected(runtime) as (live, sock, ch):
        for _ in range(6):
            live.order(Send(ch, b"z" * 4_000_000))
            read_exactly(sock, 4_000_000)


def test_commands_for_channels_that_are_gone_are_passed_over(runtime: str) -> None:
    gone = ChannelId(4444)
    with running(runtime) as live:
        live.order(Send(gone, b"x"), CloseWrite(gone), Abort(gone), PauseReading(gone), ResumeReading(gone))
        sock, ch = live.accept()
        assert ch == 4
        sock.close()
