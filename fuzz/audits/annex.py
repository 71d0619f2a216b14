"""A second relay with other settings, on a host of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuzz.audit import Audit
from fuzz.locks import secret_of
from fuzz.terms import OPEN
from fuzz.world import LIMITS
from runtimes.sim.child import ProgramFactory
from runtimes.sim.host import Host
from svc_proto.basics.entropy import Entropy
from svc_proto.config import RelayConfig
from svc_proto.engine.core import Engine
from svc_proto.relay.service import Relay
from tests.support.sim_http import ServerAddress as Target

__all__ = ["Annex"]

PORT = 8767
EDGE = 1.5  # s
SECRET = "local_secret"
TYPED = ("/type", "/send_sms", "/clipboard")


class Annex(Audit):
    """Who goes through a relay of its own, on a host of its own."""

    def __init__(self, audit: Audit, *, programs: Mapping[str, ProgramFactory] | None = None, **config: Any) -> None:
        super().__init__(audit.crowd, audit.name, audit._pass_until, audit._supervise)
        self.rng, self.outer, self._hosts = audit.rng, audit, 50
        self.home, self.policy = audit.host(), OPEN
        self.home.programs.update(programs or {})
        self.home.spool = f"{self.home.state}/spool"  # as in the house: what is left there goes at the next start
        self.home.disk.folder(self.home.spool)
        address = self.home.address
        self.local = Target("127.0.0.1", PORT, f"127.0.0.1:{PORT}")
        self.remote = Target(address, PORT, f"annex.example:{PORT}")
        state = self.home.state
        common: dict[str, Any] = {"home": state, "config_path": f"{state}/config.yaml", "terminal_tmux": False}
        self.config = RelayConfig(**{**common, **config})
        self.home.rooms = self.config.voice.folders

        def make(entropy: Entropy) -> Engine:
            self.relay = Relay(self.config, limits=LIMITS)
            return Engine(self.relay, entropy=entropy)

        self._make = make
        self.again()

    def again(self) -> None:
        """It starts."""
        self.process = self.home.start(self._make, [PORT], name=f"annex of {self.name}")
        self.wait(lambda: self.process.ready, why="another relay does not start")

    def shown_here(self) -> dict[str, str]:
        """The secret, where there is a proxy."""
        shown = secret_of(self.home)
        return {} if shown is None else dict([shown])

    def host(self) -> Host:
        """The same, of the same row."""
        return self.outer.host()

    def stop(self) -> None:
        """It goes, and nothing was wrong with it."""
        for line in self.process.logs:
            self.world._judge_log(self.process, line)
        self.process.stop(5.0)
        self.wait(lambda: not self.process.alive, 30.0, "another relay does not stop")
        self.same(self.process.exit_code, 0, "how another relay ends")
