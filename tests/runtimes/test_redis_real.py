"""Tests of the simulator's Redis: answers compared with those of a real one, fences, expiry, and invalid commands."""

import socket
from pathlib import Path

import pytest

from runtimes.sim.redis_server import redis_core
from runtimes.sim.simulation import Simulation
from svc_proto.cluster.leases import DROP, RENEW, TAKE
from svc_proto.cluster.semaphore import ACQUIRE_SCRIPT, RELEASE_SCRIPT, RENEW_SCRIPT
from svc_proto.wire.resp import Push, RespError, RespReader, encode_command
from tests.runtimes.redis_server import PASSWORD, RedisServer, needs_redis
from tests.runtimes.scripted_core import TIMEOUT

WORDS: dict[str, str | bytes] = {  # of `DIALOGUE`, which are sent in another form
    "PASSWORD": PASSWORD,
    "TAKE": TAKE,
    "RENEW": RENEW,
    "DROP": DROP,
    "ACQUIRE": ACQUIRE_SCRIPT,
    "EXTEND": RENEW_SCRIPT,
    "RELEASE": RELEASE_SCRIPT,
    "OTHER": "return 1",
    "BYTES": b"v\xff",
    "MOST": str(2**63 - 1),
    "NEXT": str(2**52),
    "NONE": "",
}
AUTH = "HELLO 3 AUTH default PASSWORD"
DIALOGUE = f"""
PING | HELLO 3 | HELLO 4 | HELLO 3 AUTH default wrong | HELLO 3 NONSENSE | {AUTH} | PING | PING text
SELECT 3 | SELECT 16 | SELECT x
GET k | GET | SET k | SET k BYTES | get k | PTTL k | PTTL none
SET k w NX | SET k w NX GET | SET none w XX | SET k w XX GET
SET k w EX 0 | SET k w EX x | SET k w EX | SET k w EX 5 PX 5 | SET k w NX XX | SET k w NONSENSE | SET k w PX 100000
EXPIRE k 0 | GET k | EXPIRE k 10 | EXPIRE k x | SET k new EX 100 | SET k newer KEEPTTL
GETDEL k | GETDEL k | GETDEL
INCR n | INCR n | SET n x | INCR n | SET n MOST | DEL n n none | DEL
SUBSCRIBE a b | PUBSUB NUMSUB a c | PUBSUB NUMSUB | PUBLISH a text | PUBLISH c text | PUBLISH a | SUBSCRIBE
FLUSHALL | NONSENSE a
SET fence NEXT | EVAL TAKE 2 lease fence me 100000 | EVAL TAKE 2 lease fence me 100000
EVAL TAKE 2 lease fence you 100000 | GET fence | GET lease
EVAL RENEW 2 lease other you 100000 | EVAL RENEW 2 lease other me 100000 | EVAL DROP 1 lease you | EVAL DROP 1 lease me
EVAL ACQUIRE 1 places NONE 2 100000 | EVAL ACQUIRE 1 places a 2 100000 | EVAL ACQUIRE 1 places NONE 2 100000
EVAL ACQUIRE 1 places b 2 100000 | EVAL ACQUIRE 1 places NONE 2 100000 | EVAL ACQUIRE 1 places c 2 100000
EVAL EXTEND 1 places 100000 a d | EVAL ACQUIRE 1 places c 4 100000 | EVAL RELEASE 1 places a b none
EVAL ACQUIRE 1 places NONE 3 100000 | EVAL RELEASE 1 places c d | EVAL RELEASE 1 places c | GET places
EVAL EXTEND 1 places 1 a | EVAL DROP 1 lease me | GET other | EVAL OTHER x | EVAL OTHER 1 | EVAL OTHER
"""


class Real:
    def __init__(self, server: RedisServer) -> None:
        self._sock = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT)
        self._reader = RespReader()

    def ask(self, *words: str | int | bytes) -> list[object]:
        """Send a command and a PING; return the values that the server sends before the PING's answer."""
        self._sock.sendall(encode_command(*words) + encode_command("PING", "the end"))
        found: list[object] = []
        while len(found) < 2 or (found[-1] != b"the end" and _code(found[-1]) != "NOAUTH"):
            found += self._reader.feed(self._sock.recv(65536))
        return found[:-1]

    def close(self) -> None:
        self._sock.close()


def _code(value: object) -> str:
    return value.code if isinstance(value, RespError) else ""


class Simulated:
    def __init__(self) -> None:
        self._world = Simulation()
        host = self._world.host("redis")
        host.start(lambda entropy: redis_core(entropy, password=PASSWORD), [6379])
        self._world.run_idle()
        self._wire = self._world.connect(self._world.host("client", "10.0.0.2"), "10.0.0.1", 6379)
        self._reader = RespReader()

    def ask(self, *words: str | int | bytes) -> list[object]:
        self._wire.send(encode_command(*words))
        self._world.run_idle()
        return self._reader.feed(self._wire.receive())


@needs_redis
def test_the_simulated_redis_answers_as_the_real_one(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        real, simulated = Real(server), Simulated()
        try:
            for command in DIALOGUE.strip().replace("\n", " | ").split(" | "):
                words = [WORDS.get(word, word) for word in command.split()]
                expected, found = real.ask(*words), simulated.ask(*words)
                if command == AUTH:
                    assert isinstance(expected[0], dict)
                    assert isinstance(found[0], dict)
                    assert expected[0][b"proto"] == found[0][b"proto"] == 3
                    continue
                assert _essences(found) == _essences(expected), command
        finally:
            real.close()


def _essences(values: list[object]) -> list[object]:
    """Return the comparable form of values, with pushes last.

    Valkey 9 and Redis differ in the order of an answer and a push to the same connection.
    """
    return [*map(_essence, sorted(values, key=lambda value: isinstance(value, Push)))]


def _essence(value: object) -> object:
    """Return the code of an error, a marked tuple for a push, and any other value unchanged."""
    if isinstance(value, RespError):
        return value.code
    return ("push", *value) if isinstance(value, Push) else value


def test_a_fence_is_the_time_in_microseconds_and_never_less_than_the_last() -> None:
    simulated = Simulated()
    simulated.ask("HELLO", 3, "AUTH", "default", PASSWORD)
    assert isinstance(simulated.ask("EVAL", "return 1", 0)[0], RespError)  # no script of the cluster
    earliest = int(simulated._world.wall() * 1e6)
    (taken,) = simulated.ask("EVAL", TAKE, 2, "lease", "fence", "me", 1500)
    assert isinstance(taken, list)
    assert earliest <= int(taken[1]) <= int(simulated._world.wall() * 1e6)
    simulated.ask("SET", "fence", 2**52)  # by a clock that was set back since
    assert simulated.ask("EVAL", TAKE, 2, "lease", "fence", "me", 1500) == [[b"me", b"%d" % (2**52 + 1)]]
    simulated._world.run_for(1.5)
    assert simulated.ask("EVAL", TAKE, 2, "lease", "fence", "you", 1500) == [[b"you", b"%d" % (2**52 + 2)]]


def test_keys_expire_by_simulated_time() -> None:
    simulated = Simulated()
    simulated.ask("HELLO", 3, "AUTH", "default", PASSWORD)
    simulated.ask("SET", "k", "v", "PX", 1500)
    simulated._world.run_for(1.4)
    assert simulated.ask("GET", "k") == [b"v"]
    (left,) = simulated.ask("PTTL", "k")
    assert isinstance(left, int)
    assert 0 < left < 100
    simulated._world.run_for(0.1)
    assert simulated.ask("GET", "k") == [None]
    (time,) = simulated.ask("TIME")
    assert isinstance(time, list)
    assert int(time[0]) == int(simulated._world.wall())


@pytest.mark.parametrize("data", [b"hello\r\n", b"*1\r\n:1\r\n", b"*0\r\n"])
def test_invalid_commands_of_the_simulated_redis(data: bytes) -> None:
    simulated = Simulated()
    simulated._wire.send(data)
    simulated._world.run_idle()
    assert simulated._wire.receive() == b""
    assert simulated._wire.closed is data.startswith(b"h")
