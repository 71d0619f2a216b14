"""The client of Redis: greeting, order of the answers, deadlines, what happens at each limit and at each end."""

from __future__ import annotations

import pytest
from attrs import evolve

from svc_proto.cluster import redis as module
from svc_proto.cluster.redis import CONNECT_WITHIN, PATIENCE, PAUSE, Listener, Redis, Reply
from svc_proto.commands import Abort, Cancel, CloseWrite, Connect
from svc_proto.facts import Closed, Failure, FailureKind, ReadClosed, Stopping
from svc_proto.settings import RedisAddress
from svc_proto.wire.limits import DEFAULT_LIMITS
from svc_proto.wire.resp import Push, RespError
from tests.cluster.book import WHERE, RedisBook


class Ear(Listener):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_up(self) -> None:
        self.heard.append("up")

    def on_down(self) -> None:
        self.heard.append("down")

    def on_message(self, channel: str, data: bytes) -> None:
        self.heard.append((channel, data))


def wired(
    where: RedisAddress = WHERE, channels: tuple[str, ...] = (), listener: Listener | None = None
) -> RedisBook[Redis]:
    book = RedisBook(lambda engine: Redis(engine, where, channels, listener))
    book.act(book.made.start)
    return book


def asking(book: RedisBook[Redis], *arguments: str) -> list[Reply]:
    """Ask something in a flow; the list gets what comes."""
    answers: list[Reply] = []
    book.act(lambda: book.engine.spawn(book.made.ask(*arguments), on_done=answers.append))
    return answers


def test_it_says_who_it_is_and_is_up() -> None:
    ear = Ear()
    book = wired(listener=ear)
    assert asking(book, "PING") == [module.GONE]
    assert book.open() == [[b"HELLO", b"3"]]
    assert book.made.is_up
    assert book.made.connections == 1
    assert ear.heard == ["up"]
    assert book.events == ["cluster reached"]


def test_with_a_password_a_number_and_subscriptions() -> None:
    ear = Ear()
    book = wired(evolve(WHERE, password="secret", user="svc", db=3), ("a", "b"), ear)
    hello = [b"HELLO", b"3", b"AUTH", b"svc", b"secret"]
    assert book.open("OK") == [hello, [b"SELECT", b"3"], [b"SUBSCRIBE", b"a", b"b"]]
    book.answers(Push([b"subscribe", b"a", 1]), Push([b"message", b"a", b"text"]), Push([b"later", 1]))
    assert ear.heard == ["up", ("a", b"text")]
    assert "secret" not in str(book.book.logs)


def test_a_password_without_a_name_is_that_of_the_default_user() -> None:
    book = wired(evolve(WHERE, password="secret"))
    assert book.open() == [[b"HELLO", b"3", b"AUTH", b"default", b"secret"]]


@pytest.mark.parametrize("code", ["WRONGPASS", "NOAUTH", "NOPERM", "NOPROTO"])
def test_who_is_refused_tries_again_and_says_so_once(code: str) -> None:
    book = wired(evolve(WHERE, db=1))
    for _ in range(2):
        book.stand()
        book.answers(RespError(code, "no"), RespError("NOAUTH", "no"))
        assert [type(order) for order in book.orders] == [Abort]
        book.close()
        assert not book.made.is_up
        book.after(PAUSE)
    assert book.events == ["cluster not reached"]
    kind = "internal" if code == "NOPROTO" else "denied"
    assert book.book.logs[0].fields == {"problem": kind, "detail": f"Redis says {code}"}


def test_a_server_that_says_nothing_is_left() -> None:
    book = wired()
    book.stand()
    book.after(PATIENCE)
    assert [type(order) for order in book.orders] == [Abort]
    book.close()
    book.after(PAUSE)
    assert book.dialled().port == 6379


def test_a_connection_that_goes_while_it_is_greeted() -> None:
    book = wired(evolve(WHERE, db=1))
    book.stand()
    book.answers({b"proto": 3})
    book.close()
    book.after(PAUSE)
    assert book.open("OK")
    assert book.made.is_up


def test_what_cannot_be_reached_is_tried_again_after_a_pause() -> None:
    book = wired()
    book.refuse()
    book.after(PAUSE - 0.01)
    assert not book.orders
    book.after(0.01)
    assert book.orders
    book.after(CONNECT_WITHIN)  # nobody answers
    dialled, given_up = book.orders
    assert isinstance(dialled, Connect)
    assert given_up == Cancel(dialled.op)


def test_answers_come_in_order_and_commands_of_one_go_leave_together() -> None:
    book = wired()
    book.open()
    answers: list[Reply] = []

    def ask() -> None:
        for key in ("a", "b"):
            assert book.made.tell("GET", key, take=answers.append)
        assert book.made.tell("PUBLISH", "c", b"d")

    book.act(ask)
    assert book.said() == [[b"GET", b"a"], [b"GET", b"b"], [b"PUBLISH", b"c", b"d"]]
    book.answers(b"1", RespError("WRONGTYPE", "no"), 0)
    assert answers == [b"1", Failure(FailureKind.INTERNAL, "Redis says WRONGTYPE")]


def test_a_flow_waits_for_its_answer() -> None:
    book = wired()
    nothing = asking(book, "GET", "x")
    assert nothing == [module.GONE]
    book.open()
    answers = asking(book, "GET", "x")
    assert not answers
    book.answers(None)
    assert answers == [None]


def test_a_late_answer_takes_the_connection_and_all_that_waits() -> None:
    ear = Ear()
    book = wired(listener=ear)
    book.open()
    first = asking(book, "GET", "a")
    book.after(1.5)
    second = asking(book, "GET", "b")
    book.answers(b"1")
    assert first == [b"1"]
    book.after(1.5)  # the first would be late now; the second is not
    assert not book.ordered(Abort)
    third = asking(book, "GET", "c")
    book.after(0.5)
    assert book.ordered(Abort) == [Abort(book.ch)]
    assert not second
    assert not book.made.tell("GET", "d")
    book.close()
    assert (second, third) == ([module.GONE], [module.GONE])
    assert ear.heard == ["up", "down"]
    book.after(PAUSE)
    book.open()
    assert ear.heard == ["up", "down", "up"]


def test_when_all_is_answered_nothing_is_late() -> None:
    book = wired()
    book.open()
    answers = asking(book, "GET", "a")
    book.answers(b"1")
    assert answers == [b"1"]
    book.after(10 * PATIENCE)
    assert book.made.is_up


def test_too_many_commands_fail_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 2)
    book = wired()
    book.open()
    asking(book, "GET", "a")
    asking(book, "GET", "b")
    assert asking(book, "GET", "c") == [module.FULL]
    book.answers(b"1")
    waits = asking(book, "GET", "c")
    assert not waits


def test_too_many_bytes_fail_at_once() -> None:
    book = wired()
    book.open()
    asking(book, "SET", "a", "x" * (DEFAULT_LIMITS.max_unsent + 1))
    assert asking(book, "GET", "c") == [module.FULL]


@pytest.mark.parametrize("data", [b"hello\r\n", b":1\r\n"], ids=["no RESP", "nobody has asked"])
def test_a_server_that_speaks_otherwise_is_left(data: bytes) -> None:
    book = wired()
    book.open()
    book.bytes(data)
    assert book.ordered(Abort) == [Abort(book.ch)]
    book.bytes(b"more")  # what came before the reset
    assert book.events[-1] == "cluster speaks no RESP"
    book.close()
    assert not book.made.is_up


def test_the_servers_end_is_the_end() -> None:
    book = wired()
    book.open()
    book.feed(ReadClosed(book.ch))
    assert book.ordered(Abort) == [Abort(book.ch)]
    book.close()
    assert book.events == ["cluster reached", "cluster lost"]


def test_it_is_read_however_much_is_unsent() -> None:
    book = wired()
    book.open()
    book.act(lambda: book.made.tell("SET", "a", "x" * (DEFAULT_LIMITS.high_water + 1)))
    assert not book.orders


def test_at_the_stop_the_last_words_are_said() -> None:
    book = wired()
    book.open()
    book.act(book.made.stop)
    book.act(lambda: book.made.tell("PUBLISH", "all", "bye"))
    book.feed(Stopping(5.0))
    assert book.said() == [[b"PUBLISH", b"all", b"bye"]]
    assert CloseWrite(book.ch) in book.orders
    assert not book.made.tell("GET", "a")
    book.answers(1)
    assert not book.said()
    book.feed(Closed(book.ch, "done"))
    assert not book.ordered(Connect)


def test_a_server_that_does_not_go_is_left_at_the_stop() -> None:
    book = wired()
    book.open()
    book.act(book.made.stop)
    book.feed(Stopping(5.0))
    book.after(module.LINGER)
    assert Abort(book.ch) in book.orders


def test_a_stop_before_the_start_is_none() -> None:
    book = RedisBook(lambda engine: Redis(engine, WHERE))
    book.act(book.made.stop)
    assert not book.orders


def test_limits() -> None:
    assert (PATIENCE, CONNECT_WITHIN, PAUSE, module.MAX_PENDING, module.LINGER) == (2.0, 0.5, 0.25, 10_000, 0.5)
