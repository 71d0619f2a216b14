"""The Redis client: greeting, order of replies, deadlines, limits, and ends."""

import pytest
from attrs import evolve

from svc_proto.cluster.redis_client import MAX_PAUSE, PAUSE, RedisClient, RedisHandler
from svc_proto.cluster.redis_connection import CONNECT_TIMEOUT, CONNECTION_LOST, REPLY_TIMEOUT
from svc_proto.commands import Abort, Cancel, CloseWrite, Connect, Level
from svc_proto.facts import Closed, Failure, FailureKind, Stopping
from svc_proto.wire.resp import Push, RespError
from tests.cluster.harness import WHERE, RedisHarness, asking, started_client


class Ear(RedisHandler):
    """`RedisHandler` that records its calls."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_up(self) -> None:
        self.heard.append("up")

    def on_down(self) -> None:
        self.heard.append("down")

    def on_message(self, channel: str, data: bytes) -> None:
        self.heard.append((channel, data))


def test_greetings_have_the_credentials_database_and_subscriptions() -> None:
    ear = Ear()
    book = started_client(listener=ear)
    assert asking(book, "PING") == [CONNECTION_LOST]
    assert book.open() == [[b"HELLO", b"3"]]
    assert book.made.is_up
    assert book.made.connections == 1
    assert ear.heard == ["up"]
    assert book.events() == ["cluster reached"]
    ear = Ear()
    book = started_client(evolve(WHERE, password="secret", user="svc", db=3), ("a", "b"), ear)
    hello = [b"HELLO", b"3", b"AUTH", b"svc", b"secret"]
    assert book.open("OK") == [hello, [b"SELECT", b"3"], [b"SUBSCRIBE", b"a", b"b"]]
    book.answers(Push([b"subscribe", b"a", 1]), Push([b"message", b"a\xff", b"text"]), Push([b"later", 1]))
    assert ear.heard == ["up", ("a\ufffd", b"text")]
    assert "secret" not in str(book.logs)
    book = started_client(evolve(WHERE, db=3))
    for _ in range(2):
        assert book.open("OK") == [[b"HELLO", b"3"], [b"SELECT", b"3"]]
        book.close()
        book.after(PAUSE)
    book = started_client(evolve(WHERE, password="secret"))
    assert book.open() == [[b"HELLO", b"3", b"AUTH", b"default", b"secret"]]


@pytest.mark.parametrize("code", ["WRONGPASS", "NOAUTH", "NOPERM", "NOPROTO"])
def test_refused_greeting_is_retried_and_logged_once(code: str) -> None:
    book = started_client(evolve(WHERE, db=1))
    for _ in range(2):
        book.accept_connection()
        book.answers(RespError(code, "no"), RespError("NOAUTH", "no"))
        assert [type(order) for order in book.commands] == [Abort]
        book.close()
        assert not book.made.is_up
        book.after(PAUSE)
    assert book.events() == ["cluster not reached"]
    kind = "internal" if code == "NOPROTO" else "denied"
    assert book.logs[0].fields == {"problem": kind, "detail": f"Redis says {code}"}


def test_silent_and_lost_servers_are_dialled_again(book: RedisHarness[RedisClient]) -> None:
    book.accept_connection()
    book.after(REPLY_TIMEOUT)
    assert [type(order) for order in book.commands] == [Abort]
    book.close()
    book.after(PAUSE)
    assert book.dialled().port == 6379
    book = started_client(evolve(WHERE, db=1))
    book.accept_connection()
    book.answers({b"proto": 3})
    book.close()
    book.after(PAUSE)
    assert book.open("OK")
    assert book.made.is_up


def test_an_attempt_without_an_answer_is_given_up_and_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    book = started_client()
    monkeypatch.setattr(book.engine, "entropy", lambda size: b"\xff" * size)  # the longest pauses
    for _ in range(4):
        (dialled,) = book.ordered(Connect)
        book.after(CONNECT_TIMEOUT)
        assert Cancel(dialled.op) in book.commands
        book.after(PAUSE)


def pauses(book: RedisHarness[RedisClient], attempts: int, *, lasts: float = 0.0) -> list[float]:
    """Return the pauses before the next attempts, after attempts that were refused.

    With `lasts` each attempt succeeds, and its connection is lost after that many seconds.
    """
    found: list[float] = []
    for _ in range(attempts):
        if lasts:
            book.open()
            book.after(lasts)
            book.close()
        else:
            book.turn_away()
        began = book.now.mono
        while not any(isinstance(order, Connect) for order in book.commands):
            due = book.next_deadline()
            assert due is not None
            book.after(due - book.now.mono)
        found.append(book.now.mono - began)
    return found


@pytest.mark.parametrize(("byte", "jitter"), [(0, 0.5), (255, 1.0)])
def test_pauses_between_attempts_grow_with_jitter(monkeypatch: pytest.MonkeyPatch, byte: int, jitter: float) -> None:
    book = started_client()
    monkeypatch.setattr(book.engine, "entropy", lambda size: bytes([byte]) * size)
    grown = [jitter * pause for pause in (PAUSE, 2 * PAUSE, MAX_PAUSE)]
    assert pauses(book, 3) == grown
    assert pauses(book, 2, lasts=CONNECT_TIMEOUT / 2) == [grown[0]] * 2  # a connection was made
    assert pauses(book, 2) == grown[1:]


def test_flows_wait_for_their_answers_until_one_is_late(book: RedisHarness[RedisClient]) -> None:
    nothing = asking(book, "GET", "x")
    assert nothing == [CONNECTION_LOST]
    book.open()
    answers = asking(book, "GET", "x")
    assert not answers
    book.answers(None)
    assert answers == [None]
    book.after(10 * REPLY_TIMEOUT)
    assert book.made.is_up
    ear = Ear()
    book = started_client(listener=ear)
    book.open()
    first = asking(book, "GET", "a")
    book.after(1.5)
    second = asking(book, "GET", "b")
    book.answers(b"1")
    assert first == [b"1"]
    book.after(1.5)  # the deadline of the first has passed, that of the second has not
    assert not book.ordered(Abort)
    third = asking(book, "GET", "c")
    book.after(0.5)
    assert book.ordered(Abort) == [Abort(book.ch)]
    assert not second
    assert not book.made.send("GET", "d")
    book.close()
    assert (second, third) == ([CONNECTION_LOST], [CONNECTION_LOST])
    assert ear.heard == ["up", "down"]
    book.after(PAUSE)
    book.open()
    assert ear.heard == ["up", "down", "up"]


def test_stop_sends_pending_commands_if_there_are_any(book: RedisHarness[RedisClient]) -> None:
    book.open()
    book.within(book.made.stop)
    waiting = asking(book, "GET", "a")
    book.within(lambda: book.made.send("PUBLISH", "all", "bye"))
    book.feed(Stopping(5.0))
    assert book.new_commands() == [[b"GET", b"a"], [b"PUBLISH", b"all", b"bye"]]
    assert CloseWrite(book.ch) not in book.commands
    book.answers(b"b")
    assert waiting == [b"b"]
    assert CloseWrite(book.ch) in book.commands
    assert not book.made.send("GET", "a")
    book.answers(1)
    assert not book.new_commands()
    up = [book.made.is_up]
    book.feed(Closed(book.ch, "done"))
    assert [*up, book.made.is_up] == [True, False]
    assert not book.ordered(Connect)
    book = RedisHarness(lambda engine: RedisClient(engine, WHERE))
    book.within(book.made.stop)
    assert not book.commands


@pytest.mark.parametrize(
    ("who", "told"),
    [
        ({b"role": b"replica"}, "master or Sentinels"),
        ({b"role": b"slave"}, "master or Sentinels"),
        ({b"mode": b"cluster", b"role": b"master"}, "Redis Cluster"),
    ],
)
def test_replica_is_disconnected_and_logged(who: dict[bytes, bytes], told: str) -> None:
    book = started_client()
    for _ in range(2):
        book.accept_connection()
        book.answers(who)
        assert [type(order) for order in book.commands] == [Abort]
        book.close()
        assert not book.made.is_up
        book.after(PAUSE)
    (line,) = book.logs
    assert (line.level, line.fields["problem"]) == (Level.ERROR, "unsupported")
    assert told in str(line.fields["detail"])


def test_readonly_reply_ends_the_connection(book: RedisHarness[RedisClient]) -> None:
    book.open()
    answers = asking(book, "SET", "a", "b")
    book.answers(RespError("READONLY", "no"))
    assert answers == [Failure(FailureKind.INTERNAL, "Redis says READONLY")]
    assert book.ordered(Abort) == [Abort(book.ch)]
