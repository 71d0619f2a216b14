"""Redis in memory, as a core, with the commands that the cluster uses. Its data ends with its process.

    redis = world.host("redis", "10.0.0.9").start(lambda entropy: redis_core(entropy), listen=[6379])

It supports only RESP3, answers in order, expires keys by the core's clock, and delivers messages to the present
subscribers. It refuses unknown commands, as Redis does, so that an untested command never seems to work.
`tests/runtimes/test_redis_real.py` compares it with a real Redis.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf

from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.basics.moment import Moment
from svc_proto.basics.strict_json import loads_trusted
from svc_proto.cluster.leases import DROP, RENEW, TAKE
from svc_proto.cluster.semaphore import ACQUIRE_SCRIPT, RELEASE_SCRIPT, RENEW_SCRIPT
from svc_proto.commands import Ready
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted, ChannelId
from svc_proto.wire.limits import DEFAULT_LIMITS
from svc_proto.wire.resp import Push, RespError, RespReader, encode_reply

__all__ = ["RedisService", "redis_core"]

SYNTAX = RespError("ERR", "syntax error")
NO_NUMBER = RespError("ERR", "value is not an integer or out of range")
READONLY = RespError("READONLY", "You can't write against a read only replica.")
WRITES = (b"SET", b"GETDEL", b"DEL", b"INCR", b"EXPIRE", b"FLUSHALL")
NOAUTH = RespError("NOAUTH", "Authentication required.")
WRONGPASS = RespError("WRONGPASS", "invalid username-password pair or user is disabled.")
MAX_INT = 2**63 - 1
OK = "OK"


def redis_core(entropy: Entropy, *, password: str = "") -> Engine:
    """Build a Redis core, with a password for the user `default` if one is given."""
    return Engine(RedisService(password), entropy=entropy)


class RedisService:
    """Service of a simulated Redis, with its data and subscribers, which tests may inspect."""

    engine: Engine

    def __init__(self, password: str = "") -> None:
        self.password = password.encode()
        self.mode = "standalone"
        self.role = "master"  # or `replica`, when a test makes it one
        self.keys: dict[tuple[int, bytes], tuple[bytes, float]] = {}  # value and expiry (monotonic s)
        self.listeners: dict[bytes, dict[_Client, None]] = {}
        self.served: list[str] = []  # names of the commands so far
        self.commands: dict[bytes, Callable[[_Client, list[bytes]], object]] = {
            b"PING": lambda client, given: given[0] if given else "PONG",
            b"SELECT": self._select,
            b"TIME": self._time,
            b"SET": self._set,
            b"GET": self._get,
            b"GETDEL": self._getdel,
            b"DEL": self._del,
            b"INCR": self._incr,
            b"EXPIRE": self._expire,
            b"PTTL": self._pttl,
            b"PUBLISH": self._publish,
            b"SUBSCRIBE": self._subscribe,
            b"PUBSUB": self._pubsub,
            b"FLUSHALL": self._flushall,
            b"EVAL": self._eval,
        }
        self.scripts: dict[str, Callable[[_Client, list[bytes], list[bytes]], object]] = {
            TAKE: self._take_lease,
            RENEW: self._renew_leases,
            DROP: self._drop_lease,
            ACQUIRE_SCRIPT: self._take_place,
            RENEW_SCRIPT: self._keep_places,
            RELEASE_SCRIPT: self._give_back,
        }

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Implement `Service.bind`: store the engine."""
        self.engine = engine

    def on_started(self) -> None:
        """Report the core as ready: there is nothing to load."""
        self.engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> Channel:
        """Return the channel of the client; no connection is refused."""
        return _Client(self, fact.ch)

    def on_stopping(self) -> None:
        """Do nothing: the engine stops the channels of the clients."""

    # --- commands ---

    def serve(self, client: _Client, words: list[bytes]) -> object:
        """Perform a command and return its reply; `_PUSHED` if it replies by pushes."""
        name, given = words[0].upper(), words[1:]
        self.served.append(name.decode("latin-1"))
        if name == b"HELLO":
            return self._hello(client, given)
        if not client.trusted:
            return NOAUTH
        serve = self.commands.get(name)
        if serve is None:
            shown = words[0].decode("latin-1")
            return RespError("ERR", f"unknown command '{shown}', with args beginning with: ")
        if self.role != "master" and name in WRITES:
            return READONLY
        try:
            return serve(client, given)
        except (ValueError, IndexError):
            return RespError("ERR", f"wrong number of arguments for '{name.decode('latin-1').lower()}' command")

    def publish(self, channel: bytes, data: bytes) -> int:
        """Deliver a message; return the number of its receivers."""
        listening = list(self.listeners.get(channel, ()))
        for listener in listening:
            listener.send_value(Push([b"message", channel, data]))
        return len(listening)

    def forget(self, client: _Client) -> None:
        """Remove a disconnected client's subscriptions."""
        for listening in self.listeners.values():
            listening.pop(client, None)

    @property
    def _now(self) -> Moment:
        return self.engine.now

    def _hello(self, client: _Client, given: list[bytes]) -> object:
        if given[:1] != [b"3"]:
            return RespError("NOPROTO", "unsupported protocol version")
        rest = given[1:]
        if len(rest) == 3 and rest[0].upper() == b"AUTH":
            client.trusted = rest[1] == b"default" and (not self.password or rest[2] == self.password)
            if not client.trusted:
                return WRONGPASS
        elif rest:
            return SYNTAX
        if not client.trusted:
            return RespError("NOAUTH", "HELLO must be called with the client already authenticated")
        who = {b"mode": self.mode.encode(), b"role": self.role.encode()}
        return {b"server": b"redis", b"version": b"7.0.0", b"proto": 3, **who}

    def _select(self, client: _Client, given: list[bytes]) -> object:
        (number,) = given
        if not number.isdigit() or int(number) > 15:
            return RespError("ERR", "DB index is out of range")
        client.db = int(number)
        return OK

    def _time(self, client: _Client, given: list[bytes]) -> object:
        whole = int(self._now.wall * 1e6)
        return [b"%d" % (whole // 1_000_000), b"%d" % (whole % 1_000_000)]

    def _get_live(self, client: _Client, key: bytes) -> tuple[bytes, float] | None:
        place = client.db, key
        found = self.keys.get(place)
        if found is not None and found[1] <= self._now.mono:
            del self.keys[place]
            return None
        return found

    def _set(self, client: _Client, given: list[bytes]) -> object:
        key, value, *options = given
        until, only, old, kept = inf, b"", False, False
        before = self._get_live(client, key)
        while options:
            option = options.pop(0).upper()
            if option in (b"EX", b"PX") and options and until == inf:
                span = options.pop(0)
                if not span.isdigit():
                    return NO_NUMBER
                if not int(span):
                    return RespError("ERR", "invalid expire time in 'set' command")
                until = self._now.mono + int(span) / (1.0 if option == b"EX" else 1000.0)
            elif option in (b"NX", b"XX") and not only:
                only = option
            elif option == b"GET":
                old = True
            elif option == b"KEEPTTL":
                kept = True
            else:
                return SYNTAX
        shown = None if before is None else before[0]
        if only and (only == b"NX") is (before is not None):
            return shown if old else None
        self.keys[client.db, key] = value, before[1] if kept and before is not None else until
        return shown if old else OK

    def _get(self, client: _Client, given: list[bytes]) -> object:
        (key,) = given
        found = self._get_live(client, key)
        return None if found is None else found[0]

    def _getdel(self, client: _Client, given: list[bytes]) -> object:
        found = self._get(client, given)
        self.keys.pop((client.db, given[0]), None)
        return found

    def _del(self, client: _Client, given: list[bytes]) -> object:
        given[0]
        there = [key for key in dict.fromkeys(given) if self._get_live(client, key) is not None]
        for key in there:
            del self.keys[client.db, key]
        return len(there)

    def _incr(self, client: _Client, given: list[bytes]) -> object:
        (key,) = given
        value, until = self._get_live(client, key) or (b"0", inf)
        if not value.removeprefix(b"-").isdigit() or int(value) >= MAX_INT:
            return NO_NUMBER
        self.keys[client.db, key] = b"%d" % (int(value) + 1), until
        return int(value) + 1

    def _expire(self, client: _Client, given: list[bytes]) -> object:
        key, span = given
        if not span.isdigit():
            return NO_NUMBER
        found = self._get_live(client, key)
        if found is None:
            return 0
        self.keys[client.db, key] = found[0], self._now.mono + int(span)
        return 1

    def _pttl(self, client: _Client, given: list[bytes]) -> object:
        (key,) = given
        found = self._get_live(client, key)
        if found is None:
            return -2
        return -1 if found[1] == inf else int(1000 * (found[1] - self._now.mono))

    def _flushall(self, client: _Client, given: list[bytes]) -> object:
        self.keys.clear()
        return OK

    def _eval(self, client: _Client, given: list[bytes]) -> object:
        """Perform one of the cluster's scripts, implemented here again in Python; return its reply or an error."""
        script, count, *rest = given
        if not count.isdigit():
            return NO_NUMBER
        if int(count) > len(rest):
            return RespError("ERR", "Number of keys can't be greater than number of args")
        serve = self.scripts.get(script.decode())
        if serve is None:
            return RespError("ERR", "a script that the simulator does not know")
        return serve(client, rest[: int(count)], rest[int(count) :])

    def _take_lease(self, client: _Client, keys: list[bytes], given: list[bytes]) -> object:
        (lease, fence), (me, span) = keys, given
        owner = self._get(client, [lease])
        if owner not in (None, me):
            return [owner, b"0"]
        before = self._get_live(client, fence) or (b"0", inf)
        number = b"%d" % max(int(before[0]) + 1, int(self._now.wall * 1e6))
        self._set(client, [fence, number])
        self._set(client, [lease, me, b"PX", span])
        return [me, number]

    def _renew_leases(self, client: _Client, keys: list[bytes], given: list[bytes]) -> object:
        me, span = given
        mine = [self._get(client, [lease]) in (None, me) for lease in keys]
        for lease, is_mine in zip(keys, mine, strict=True):
            if is_mine:
                self._set(client, [lease, me, b"PX", span])
        return list(map(int, mine))

    def _drop_lease(self, client: _Client, keys: list[bytes], given: list[bytes]) -> object:
        (lease,), (me,) = keys, given
        return self._del(client, [lease]) if self._get(client, [lease]) == me else 0

    def _take_place(self, client: _Client, keys: list[bytes], given: list[bytes]) -> object:
        (key,), (place, most, span) = keys, given
        places = self._places(client, key)
        if len(places) >= int(most):
            return 0
        if place:
            self._put_places(client, key, {**places, place.decode(): self._now.mono + int(span) / 1000}, span)
        return 1

    def _keep_places(self, client: _Client, keys: list[bytes], given: list[bytes]) -> object:
        (key,), (span, *kept) = keys, given
        until = dict.fromkeys((place.decode() for place in kept), self._now.mono + int(span) / 1000)
        self._put_places(client, key, {**self._places(client, key), **until}, span)
        return 1

    def _give_back(self, client: _Client, keys: list[bytes], given: list[bytes]) -> object:
        (key,), places = keys, self._places(client, keys[0])
        left = {place: until for place, until in places.items() if place.encode() not in given}
        held = self.keys.pop((client.db, key), None)
        if held is not None and left:
            self.keys[client.db, key] = json.dumps(left).encode(), held[1]
        return len(places) - len(left)

    def _places(self, client: _Client, key: bytes) -> dict[str, float]:
        """Return the live members of a sorted set with their expiries; this server stores such a set as JSON."""
        found = self._get_live(client, key)
        known: dict[str, float] = {} if found is None else loads_trusted(found[0])
        return {place: until for place, until in known.items() if until > self._now.mono}

    def _put_places(self, client: _Client, key: bytes, places: dict[str, float], span: bytes) -> None:
        self._set(client, [key, json.dumps(places).encode(), b"PX", span])

    def _publish(self, client: _Client, given: list[bytes]) -> object:
        channel, data = given
        return self.publish(channel, data)

    def _subscribe(self, client: _Client, given: list[bytes]) -> object:
        given[0]
        for channel in given:
            self.listeners.setdefault(channel, {})[client] = None
            count = sum(client in listening for listening in self.listeners.values())
            client.send_value(Push([b"subscribe", channel, count]))
        return _PUSHED

    def _pubsub(self, client: _Client, given: list[bytes]) -> object:
        if given[0].upper() != b"NUMSUB":
            return RespError("ERR", f"unknown subcommand '{given[0].decode('latin-1')}'. Try PUBSUB HELP.")
        return [part for channel in given[1:] for part in (channel, len(self.listeners.get(channel, ())))]


_PUSHED = Push()


class _Client(Channel):
    """Connection of a client."""

    __slots__ = ("_out", "_reader", "_service", "db", "trusted")

    def __init__(self, service: RedisService, ch: ChannelId) -> None:
        super().__init__(service.engine, ch, DEFAULT_LIMITS)
        self._service = service
        self._reader = RespReader()
        self._out: list[bytes] = []
        self.db = 0
        self.trusted = not service.password

    def send_value(self, value: object) -> None:
        """Send a reply or a push."""
        if not self.gone:
            self._out.append(encode_reply(value))
            self.mark_dirty()

    def received(self, data: bytes) -> None:
        """Perform the commands in the bytes and queue the replies; close the connection for bytes that are not RESP."""
        try:
            commands = self._reader.feed(data)
        except RemoteProtocolError:
            self.abort()
            return
        for words in commands:
            if isinstance(words, list) and words and all(isinstance(word, bytes) for word in words):
                answer = self._service.serve(self, words)
                if answer is not _PUSHED:
                    self.send_value(answer)

    def read_closed(self) -> None:
        """Close the connection, because the client has disconnected."""
        self.abort()

    def closed(self, why: str) -> None:
        """Remove the client's subscriptions, because its connection is closed."""
        super().closed(why)
        self._service.forget(self)

    def stop(self) -> None:
        """Close the connection, because the process ends."""
        self.abort()

    def flush(self) -> None:
        """Write all queued replies and pushes at once."""
        if self._out:
            data, self._out = b"".join(self._out), []
            self.write(data)
