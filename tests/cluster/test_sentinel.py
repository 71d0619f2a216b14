"""Discovery of the master: one Sentinel after the other, and notifications of a new master."""

import pytest
from attrs import evolve

from svc_proto.cluster.redis_client import PAUSE, RedisClient
from svc_proto.commands import Abort, Command
from svc_proto.facts import Received
from svc_proto.settings import RedisAddress
from svc_proto.wire.resp import Push, RespError, encode_reply
from tests.cluster.harness import RedisHarness, started_client

WHERE = RedisAddress(
    password="master-secret", sentinels=(("one", 26379), ("two", 26380)), master="svc", sentinel_password="secret"
)
HELLO = [b"HELLO", b"3", b"AUTH", b"default", b"secret"]
ASKED = [b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", b"svc"]
MASTER = [b"10.0.0.1", b"65535"]  # the greatest port


class Town:
    """Redis client that finds its server by Sentinels; the test is the Sentinels and the server.

    `listened` is the channel of the Sentinel that was queried last.
    """

    def __init__(self, where: RedisAddress = WHERE) -> None:
        self.book: RedisHarness[RedisClient] = started_client(where)

    def dialled(self, host: str, port: int) -> None:
        order = self.book.dialled()
        assert (order.host, order.port, order.tls) == (host, port, False)
        self.book.commands.append(order)

    def asked(self, answer: object, host: str = "one", port: int = 26379) -> None:
        """Accept the connection to a Sentinel, check its greeting and query, and answer the query."""
        self.dialled(host, port)
        assert self.book.open() == [HELLO, [b"SUBSCRIBE", b"+switch-master"]]
        self.book.answers(Push([b"subscribe", b"+switch-master", 1]))
        assert self.book.new_commands() == [ASKED]
        self.listened = self.book.ch
        self.book.answers(answer)

    def up(self, host: str = "10.0.0.1") -> None:
        """Accept the connection to the master at this address, and answer its greeting."""
        self.dialled(host, 65535)
        assert self.book.open() == [[b"HELLO", b"3", b"AUTH", b"default", b"master-secret"]]
        assert self.book.made.is_up

    def hear(self, text: bytes) -> list[Command]:
        self.publish(text)
        return self.book.ordered(Abort)

    def publish(self, text: bytes) -> None:
        """Publish `+switch-master` with this text, as the last Sentinel."""
        self.book.feed(Received(self.listened, encode_reply(Push([b"message", b"+switch-master", text]))))


@pytest.fixture
def town() -> Town:
    """Return a client that is connected to the master which the first Sentinel has named."""
    town = Town()
    town.asked(MASTER)
    town.up()
    return town


def test_first_knowing_sentinel_names_the_master_and_unrelated_ones_are_ignored(town: Town) -> None:
    assert town.book.logs[0].fields == {"host": "10.0.0.1", "port": 65535}
    assert "secret" not in str(town.book.logs)
    assert town.hear(b"other 10.0.0.1 65535 10.0.0.2 65535") == []
    assert town.hear(b"svc 10.0.0.9 65535 10.0.0.1 65535") == []
    assert town.book.made.is_up
    assert town.hear(b"svc 10.0.0.1 65535 10.0.0.1 6380") == [Abort(town.book.ch)]


@pytest.mark.parametrize(
    "answer", [None, RespError("ERR", "no"), [b"x"], [b"", b"1"], [b"x", b"y"], [b"x", b"0"], [b"x", b"65536"], 7]
)
def test_unknowing_sentinel_is_skipped(answer: object) -> None:
    town = Town()
    town.asked(answer)
    assert [type(order) for order in town.book.commands[:1]] == [Abort]
    town.asked(MASTER, "two", 26380)
    town.up()


def test_a_name_that_is_no_utf8_and_the_smallest_port() -> None:
    town = Town()
    town.asked([b"a\xff", b"1"])
    town.dialled("a\ufffd", 1)


def test_sentinels_are_asked_in_turn() -> None:
    town = Town()
    town.book.turn_away()
    town.asked(MASTER, "two", 26380)
    town.up()
    town.book.close()
    town.book.after(PAUSE)
    town.asked([b"10.0.0.2", b"65535"], "two", 26380)
    town.up("10.0.0.2")
    town = Town()
    town.book.turn_away()
    town.asked(None, "two", 26380)
    assert town.book.events() == ["cluster not reached"]
    assert town.book.logs[0].fields["detail"] == "the Sentinel knows no master of that name"
    town.book.commands.clear()
    town.book.after(PAUSE)
    assert town.book.dialled().host == "one"
    town = Town(evolve(WHERE, tls=True))
    assert town.book.dialled().tls


def test_a_new_master_ends_the_connection_to_the_old_one(town: Town) -> None:
    assert town.hear(b"svc 10.0.0.1 65535 10.0.0.2 65535") == [Abort(town.book.ch)]
    assert town.hear(b"svc 10.0.0.1 65535 10.0.0.2 65535") == []  # published twice
    town.book.close()
    assert town.hear(b"svc 10.0.0.2 65535 10.0.0.3 65535") == []  # no connection to end
    town.book.after(PAUSE)
    assert town.book.commands[0] == Abort(town.listened)
    town.asked([b"10.0.0.3", b"65535"])
    town.up("10.0.0.3")


@pytest.mark.parametrize("text", [b"svc again", b"svc 10.0.0.9 65535 10.0.0.1 port"])
def test_unreadable_switch_message_queries_the_sentinel_again(town: Town, text: bytes) -> None:
    assert town.hear(text) == [Abort(town.book.ch)]
    town.book.close()
    town.book.after(PAUSE)
    town.asked(MASTER)
    town.up()


def test_switches_while_the_master_is_connecting() -> None:
    town = Town()
    town.asked(MASTER)
    town.publish(b"svc 10.0.0.9 65535 10.0.0.1 65535")
    town.up()
    assert town.hear(b"svc 10.0.0.9 65535 10.0.0.1 65535") == []
    assert town.book.made.is_up
    town = Town()
    town.dialled("one", 26379)
    town.book.open()
    town.listened = town.book.ch
    town.publish(b"svc 10.0.0.9 65535 10.0.0.8 65535")
    town.book.answers(MASTER)
    town.up()
    town = Town()
    town.asked(MASTER)
    town.publish(b"svc 10.0.0.1 65535 10.0.0.2 65535")
    town.book.accept_connection()
    town.book.answers({b"role": b"master"})
    assert not town.book.made.is_up
    assert town.book.ordered(Abort) == [Abort(town.book.ch)]
    town.book.close()
    town.book.after(PAUSE)
    town.asked([b"10.0.0.2", b"65535"])
    town.up("10.0.0.2")
