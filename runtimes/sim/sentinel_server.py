"""Redis Sentinel as a core: returns the address of the master, and publishes a change to subscribers.

    masters = {"svc": ("10.0.9.1", 6379)}
    host.start(lambda entropy: sentinel_core(entropy, masters), [26379])

The test determines the master: it changes the mapping, and makes one Redis a replica and another the master. The
Sentinel does not connect to them.
"""

from collections.abc import Mapping

from runtimes.sim.redis_server import RedisService
from svc_proto.basics.entropy import Entropy
from svc_proto.engine.core import Engine
from svc_proto.wire.resp import RespError

__all__ = ["SentinelService", "sentinel_core"]

LOOK = 0.1  # s between two checks of the mapping


def sentinel_core(entropy: Entropy, masters: Mapping[str, tuple[str, int]], *, password: str = "") -> Engine:
    """Build a Sentinel core, with a password for the user `default` if one is given."""
    return Engine(SentinelService(masters, password), entropy=entropy)


class SentinelService(RedisService):
    """Redis service in Sentinel mode: beside `HELLO`, three commands, of which one returns a master's address."""

    def __init__(self, masters: Mapping[str, tuple[str, int]], password: str = "") -> None:
        super().__init__(password)
        self.mode = "sentinel"
        self._masters = masters
        self._told = dict(masters)
        known = (b"PING", b"SUBSCRIBE")
        self.commands = {**{name: self.commands[name] for name in known}, b"SENTINEL": self._sentinel}

    def on_started(self) -> None:
        """Check now and at intervals whether the addresses of the masters have changed."""
        self._timer = self.engine.timers.timer(self._poll_masters)
        self._poll_masters()
        super().on_started()

    def _poll_masters(self) -> None:
        self._timer.set(self.engine.now.mono + LOOK)
        for name, where in self._masters.items():
            old, self._told[name] = self._told[name], where
            if old != where:
                text = " ".join(map(str, (name, *old, *where)))
                self.publish(b"+switch-master", text.encode())

    def _sentinel(self, client: object, given: list[bytes]) -> object:
        question, name = given
        if question.upper() != b"GET-MASTER-ADDR-BY-NAME":
            return RespError("ERR", "unknown subcommand or wrong number of arguments")
        found = self._masters.get(name.decode("utf-8", "replace"))
        return None if found is None else [found[0].encode(), b"%d" % found[1]]
