"""The phone that connects to a dashboard, in a simulated network with an API server."""

from collections.abc import Callable
from typing import Any

import pytest

from runtimes.sim.connection import SimConnection
from runtimes.sim.simulation import Simulation
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.commands import Connect, Notify
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.service import Dashboard
from svc_proto.engine.core import Engine
from svc_proto.facts import Failure, FailureKind, Started
from svc_proto.phone.dashboard_phone import HELP, DashboardPhone, DashboardPhoneConfig
from svc_proto.phone.keyboard_control import KEYBOARD
from tests.support.playbook import Playbook

HOME, PASSWORD, KEY = "10.0.0.1", "correct horse", "sk-phone-0123456789"


class World:
    """A simulated home with an API server and a dashboard that requires `wanted`, and a phone that uses `password`."""

    def __init__(self, password: str = PASSWORD, *, wanted: str = PASSWORD) -> None:
        self.news: list[Notify] = []
        self.sim = Simulation()
        self.wanted = wanted
        self.home, self.there = self.sim.host("home", HOME), self.sim.host("phone", "10.0.1.1")
        self.api = self.home.start(self._make_api, [8642], name="api")
        self.dashboard = self.home.start(self._make_dashboard, [9119], name="dashboard")
        config = DashboardPhoneConfig(url=f"http://{HOME}:9119", password=password)
        self.phone = DashboardPhone(config, on_notify=self.news.append)
        self.process = self.there.start(lambda entropy: Engine(self.phone, entropy=entropy))

    def _make_api(self, entropy: Callable[[int], bytes]) -> Engine:
        config = ApiConfig(port=8642, key=KEY, home=self.home.state, config_path=f"{self.home.state}/config.yaml")
        return Engine(Api(config), entropy=entropy)

    def _make_dashboard(self, entropy: Callable[[int], bytes]) -> Engine:
        config = DashboardConfig(host="0.0.0.0", password=self.wanted, api_url="http://127.0.0.1:8642", api_key=KEY)
        return Engine(Dashboard(config, {"index.html": b"<!doctype html>"}), entropy=entropy)

    def wait(self, event: str, count: int = 1) -> dict[str, Any]:
        """Run the simulation until an event has occurred `count` times; return the fields of the last one."""
        self.sim.run_until(lambda: sum(each.event == event for each in self.news) >= count)
        return dict([each for each in self.news if each.event == event][-1].fields)

    def warnings(self) -> list[object]:
        return [line.fields["problem"] for line in self.process.logs if line.event == "not connected"]

    def keyboard(self) -> SimConnection:
        keys = SimConnection(self.sim.network, 0, (self.there, KEYBOARD), (self.there, KEYBOARD))
        self.process.accepted(keys.server)
        return keys

    def type(self, *lines: str) -> SimConnection:
        keys = self.keyboard()
        keys.client.send("".join(f"{line}\n" for line in lines).encode())
        return keys


def test_a_phone_signs_in_and_chats() -> None:
    world = World()
    world.wait("connected")
    keys = world.type("chat /echo me", "say something", "y", "leave", "tap 1")
    assert world.wait("answered")["status"] == "complete"
    notes = [each.fields["text"] for each in world.news if each.event == "note"]
    assert notes == ["there is no question open"] * 2 + ["no turn is under way", HELP]
    assert [each.fields["text"] for each in world.news if each.event == "answer"] == ["me"]
    keys.client.abort()
    world.keyboard()  # one keyboard is enough
    world.process.stop(5.0)
    world.sim.run_until(lambda: not world.process.alive)
    assert world.process.exit_code == 0


def test_a_phone_comes_back_with_its_sign_in_and_its_chat() -> None:
    world = World()
    world.wait("connected")
    world.phone.chat.submit("/count 40")
    world.wait("answer")
    for program in ("api", "dashboard"):
        process = getattr(world, program)
        process.kill()
        world.wait("offline", 1 + sum(each.event == "offline" for each in world.news))
        assert not world.phone.chat.interrupt()  # the turn goes on, and is out of reach
        setattr(world, program, process.restart())
        world.phone.chat.submit(f"/echo {program}")
        world.wait("settled", 1 if program == "api" else 2)
    assert world.phone.chat.unfinished == 0
    assert not [line for line in world.dashboard.logs if line.event == "signed in"]  # the cookies hold


def test_a_phone_whose_sign_in_is_revoked_signs_in_again() -> None:
    world = World()
    world.wait("connected")
    world.dashboard.kill()
    world.home.disk.remove(f"{world.home.state}/dashboard-sessions.json")
    world.dashboard = world.dashboard.restart()
    world.wait("connected", 2)
    assert 401 in world.warnings()


def test_a_wrong_password_ends_the_process() -> None:
    world = World("wrong password")
    world.sim.run_until(lambda: not world.process.alive)
    assert (world.process.exit_code, world.process.exit_reason) == (1, "the dashboard refused the password")


def test_a_dashboard_that_is_not_ready_is_asked_again() -> None:
    world = World()
    world.api.kill()
    world.wait("offline", 2)
    assert world.warnings() == [502, 502]
    world.api = world.api.restart()
    world.wait("connected")
    world.dashboard.kill()
    assert 1.0 <= world.wait("offline", 3)["retry_in"] <= 1.25  # a success resets the pause
    assert 4.0 <= world.wait("offline", 5)["retry_in"] <= 5.0
    assert world.warnings()[-1] == "unreachable"


@pytest.mark.parametrize(("password", "wanted", "status"), [("", PASSWORD, 401), (PASSWORD, "", 403)])
def test_a_phone_and_a_dashboard_of_which_one_has_a_password(password: str, wanted: str, status: int) -> None:
    world = World(password, wanted=wanted)
    world.wait("offline")
    assert world.warnings() == [status]


def test_events_need_no_observer() -> None:
    book = Playbook(Engine(DashboardPhone(DashboardPhoneConfig(url=f"http://{HOME}:9119")), entropy=bytes))
    book >> Started()
    order = book.order(Connect)
    book.answer(order, Failure(FailureKind.UNREACHABLE))
    assert [each.event for each in book.drain_commands() if isinstance(each, Notify)] == ["offline"]
