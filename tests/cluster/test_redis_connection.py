"""A single Redis connection: order of replies, limits, and ends."""

from typing import cast

import pytest

from svc_proto.cluster import redis_connection as module
from svc_proto.cluster.redis_client import RedisClient
from svc_proto.cluster.redis_connection import RedisConnection, Reply
from svc_proto.commands import Abort
from svc_proto.facts import Failure, FailureKind, ReadClosed, Stopping
from svc_proto.wire.limits import DEFAULT_LIMITS
from svc_proto.wire.resp import RespError, encode_command
from tests.cluster.harness import RedisHarness, asking, started_client


def test_replies_are_ordered_and_commands_are_batched(book: RedisHarness[RedisClient]) -> None:
    book.open()
    answers: list[Reply] = []

    def ask() -> None:
        for key in ("a", "b"):
            assert book.made.send("GET", key, take=answers.append)
        assert book.made.send("PUBLISH", "c", b"d")

    book.within(ask)
    assert book.new_commands() == [[b"GET", b"a"], [b"GET", b"b"], [b"PUBLISH", b"c", b"d"]]
    book.answers(b"1", RespError("WRONGTYPE", "no"), 0)
    assert answers == [b"1", Failure(FailureKind.INTERNAL, "Redis says WRONGTYPE")]


def test_unsent_commands_neither_pause_reading_nor_follow_an_abort(book: RedisHarness[RedisClient]) -> None:
    book.open()
    redis = book.made

    def give_up() -> None:
        redis.send("PING")
        cast("RedisConnection", redis._link).abort()

    book.within(give_up)
    assert (book.ordered(Abort), book.new_commands()) == ([Abort(book.ch)], [])
    book = started_client()
    book.open()
    book.within(lambda: book.made.send("SET", "a", "x" * (DEFAULT_LIMITS.high_water + 1)))
    assert not book.commands


def test_too_many_commands_or_bytes_fail(book: RedisHarness[RedisClient], monkeypatch: pytest.MonkeyPatch) -> None:
    book.open()
    most = DEFAULT_LIMITS.max_unsent
    around = len(encode_command("SET", "a", "x" * most)) - most
    assert not asking(book, "SET", "a", "x" * (most - around))
    assert not asking(book, "GET", "b")  # still within the limit
    assert asking(book, "GET", "c") == [module.TOO_MANY_PENDING]
    monkeypatch.setattr(module, "MAX_PENDING", 2)
    book = started_client()
    book.open()
    asking(book, "GET", "a")
    asking(book, "GET", "b")
    assert asking(book, "GET", "c") == [module.TOO_MANY_PENDING]
    book.answers(b"1")
    waits = asking(book, "GET", "c")
    assert not waits


@pytest.mark.parametrize(("data", "problem"), [(b"hello\r\n", "no known type"), (b":1\r\n", "an answer to no command")])
def test_server_without_resp_is_disconnected(book: RedisHarness[RedisClient], data: bytes, problem: str) -> None:
    book.open()
    book.bytes(data)
    assert problem in str(book.logs[-1].fields["problem"])
    assert book.ordered(Abort) == [Abort(book.ch)]
    book.bytes(b"more")  # received before the reset
    assert book.events()[-1] == "cluster speaks no RESP"
    book.close()
    assert not book.made.is_up


def test_ends_of_a_connection(book: RedisHarness[RedisClient]) -> None:
    book.open()
    book.feed(ReadClosed(book.ch))
    assert book.ordered(Abort) == [Abort(book.ch)]
    book.close()
    assert book.events() == ["cluster reached", "cluster lost"]
    book = started_client()
    book.open()
    book.within(book.made.stop)
    book.feed(Stopping(5.0))
    book.after(module.LINGER)
    assert Abort(book.ch) in book.commands
