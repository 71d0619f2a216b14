from runtimes.sim.process import SimProcess
from runtimes.sim.simulation import Simulation
from svc_proto.cli.readiness_watch import RESPONSE_TIMEOUT, SOON, ReadinessWatch
from svc_proto.commands import Notify
from svc_proto.engine.core import Engine
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig

EVERY = 15.0


class Supervised:
    """Simulated host with a relay, and a readiness watch over the relay and one more port."""

    def __init__(self, watchdog: float | None = 2 * EVERY) -> None:
        self.world = Simulation(trace=True)
        self.host = self.world.host("home", "10.0.0.1")
        self.relay = self.host.start(
            lambda entropy: Engine(Relay(RelayConfig()), entropy=entropy), [8767], name="relay"
        )
        urls = [f"http://10.0.0.1:{port}" for port in (8767, 8642)]
        self.watch = self.host.start(
            lambda entropy: Engine(ReadinessWatch(urls, watchdog), entropy=entropy), name="watch"
        )

    def start(self, port: int = 8642) -> SimProcess:
        return self.host.start(lambda entropy: Engine(Relay(RelayConfig()), entropy=entropy), [port], name=f"on {port}")

    @property
    def news(self) -> list[str]:
        return [command.event for command in self.watch.commands if isinstance(command, Notify)]


def test_ready_after_all_answer_then_alive() -> None:
    there = Supervised()
    there.world.run_for(60.0)
    assert there.news == []
    api = there.start()
    there.world.run_for(2 * SOON)
    assert there.news == ["ready"]
    there.world.run_for(2 * EVERY + 1.0)
    assert there.news == ["ready", "alive", "alive"]
    api.kill()
    there.world.run_for(4 * EVERY)
    assert there.news == ["ready", "alive", "alive"]
    there.start()
    there.world.run_for(EVERY + 1.0)
    assert there.news == ["ready", "alive", "alive", "alive"]
    there.watch.stop()
    there.world.run_for(1.0)
    assert there.news[-1] == "stopping"
    assert there.watch.exit_code == 0


def test_hanging_server_is_not_ready() -> None:
    there = Supervised()
    there.world.listen(there.host, 8642)  # accepts connections and never answers
    there.world.run_for(3 * RESPONSE_TIMEOUT)
    assert there.news == []


def test_watch_without_watchdog_ends_when_ready() -> None:
    there = Supervised(watchdog=None)
    there.start()
    there.world.run_for(1.0)
    assert there.news == ["ready"]
    assert there.watch.exit_code == 0
