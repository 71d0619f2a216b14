"""Tests of an API server that is killed during a turn (wire api 4.5)."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from runtimes.sim.simulation import Simulation as Simulation
from svc_proto.commands import Send
from tests.loops.conftest import open_world
from tests.loops.environment import ApiHandle, Environment
from tests.loops.raw_event_stream import StreamEvent, UnreadStream, chat, open_stream
from tests.loops.session_events import check_turn
from tests.loops.simulated_environment import SimulatedEnvironment, VirtualRelay
from tests.loops.stored_rows import check_history, check_rows, events_in
from tests.support.scenario_plan import some
from tests.support.servers.model_server import ModelAnswer, ScriptedModel, calls, plain

KEY = "sk-kill-a6d3"
REMEMBER = ("memory", {"action": "add", "target": "memory", "content": "likes tea"})
KILLS = 10  # of a real process
EVENTS = 18  # of the turn of `script`, at least
LIVE = "asyncio"  # the loop of the real process


def script() -> list[ModelAnswer]:
    """Return the model's answers for a turn: reasoning, text, and three tool calls of which one fails."""
    skills: tuple[str, dict[str, object]] = ("skills_list", {})
    return [
        calls(REMEMBER, skills, ("demo_fail", {}), text="I note it."),
        plain("Noted. Is there more?", reasoning="That was that."),
    ]


def start(world: Environment) -> tuple[ApiHandle, ScriptedModel]:
    model = ScriptedModel()
    url = world.peer(model)
    return world.api(
        key=KEY, killable=True, model_base_url=f"{url}/v1", model="m", relay_url="http://127.0.0.1:9"
    ), model


def check_life_goes_on(
    world: Environment, api: ApiHandle, model: ScriptedModel, session: str, told: list[StreamEvent], *, asked: str
) -> None:
    """Check a session after a restart: its stored messages, another turn, and the history that the model receives."""
    rows = api.messages(session)
    check_rows(rows, told)
    model.answers[:] = [plain("I am back.")]
    model.seen.clear()
    turn = check_turn(chat(world, api, session, "Are you there?").rest())
    assert turn.text == "I am back."
    after = api.messages(session)
    assert after[: len(rows)] == rows
    assert [(row["role"], row["content"]) for row in after[len(rows) :]] == [
        ("user", "Are you there?"),
        ("assistant", "I am back."),
    ]
    (request,) = model.seen
    check_history(request["messages"])
    users = [message["content"] for message in request["messages"] if message["role"] == "user"]
    assert users == [row["content"] for row in after if row["role"] == "user"]
    (listed,) = [one for one in api.request("GET", "/api/sessions").json["sessions"] if one["id"] == session]
    assert listed["message_count"] == len(after)
    assert users in ([asked, "Are you there?"], ["Are you there?"])


# --- in the simulator -----------------------------------------------------------------------------------------------


@pytest.fixture(params=["sim"])
def traced() -> Iterator[SimulatedEnvironment]:
    world = SimulatedEnvironment(simulation=Simulation(5, trace=True))
    yield world
    world.close()


class Scene:
    """Simulated API server for tests that start a turn, kill the server and restart it."""

    def __init__(self, world: SimulatedEnvironment) -> None:
        self.world = world
        self.api, self.model = start(world)

    def begin(self) -> tuple[str, UnreadStream, int]:
        session = self.api.session()
        self.model.answers[:] = script()
        at = len(self.world.simulation.records)
        path = f"/api/sessions/{session}/chat/stream"
        return session, open_stream(self.world, self.api, "POST", path, {"message": "I like tea"}), at

    def die(self, since: int) -> list[StreamEvent]:
        """Kill and restart the server; return the events that it sent after record `since`, even if undelivered."""
        server = self.api.server
        assert isinstance(server, VirtualRelay)
        name = server.process.name
        server.kill()
        records = self.world.simulation.records[since:]
        sent = [record.what for record in records if record.process == name]
        server.restart()
        return events_in(b"".join(command.data for command in sent if isinstance(command, Send)))


@pytest.mark.parametrize("part", some(range(4), 4))
def test_a_kill_at_each_moment_of_a_turn(traced: SimulatedEnvironment, part: int) -> None:
    """The server is killed after n steps of the simulation, for a fourth of all n; the session goes on."""
    scene = Scene(traced)
    steps, over = part, False
    counts: dict[int, None] = {}
    while not over:
        session, _, at = scene.begin()
        for _ in range(steps):
            traced.simulation.step()
        steps += 4
        told = scene.die(at)
        counts[len(told)] = None
        over = bool(told) and told[-1].name == "done"
        check_life_goes_on(traced, scene.api, scene.model, session, told, asked="I like tea")
    assert len(counts) > 5


def test_a_kill_during_an_approval_request(traced: SimulatedEnvironment) -> None:
    """An approval request ends with the killed run; its tool call counts as interrupted."""
    scene = Scene(traced)
    scene.model.answers[:] = [calls(("demo_ask", {}))]
    session = scene.api.session()
    at = len(traced.simulation.records)
    stream = chat(traced, scene.api, session, "Do it", approvals=True)
    run_id = stream.until("tool.pending").data["run_id"]
    told = scene.die(at)
    gone = scene.api.request("POST", f"/v1/runs/{run_id}/approval", {"choice": "once"})
    assert (gone.status, gone.json["error"]["code"]) == (404, "run_not_found")
    check_life_goes_on(traced, scene.api, scene.model, session, told, asked="Do it")
    results = [message for message in scene.model.seen[0]["messages"] if message["role"] == "tool"]
    assert [message["content"].partition(":")[0] for message in results] == ["interrupted"]


# --- a real process -------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_kills_of_a_real_process(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A real process is killed at random moments behind some events of a turn; the session goes on."""
    rng = Random(4)
    with open_world(LIVE, tmp_path, request) as world:
        api, model = start(world)
        seen: list[int] = []
        for number in range(KILLS):
            model.answers[:] = [answer.slow(0.008) for answer in script()]
            session = api.session()
            path = f"/api/sessions/{session}/chat/stream"
            stream = open_stream(world, api, "POST", path, {"message": "I like tea"})
            if number:
                stream.open()
                for _ in range(number * EVENTS // KILLS):
                    assert stream.event() is not None
            late = b""
            with suppress(TimeoutError):
                late = stream.wire.read_some(rng.uniform(0.0005, 0.02))
            api.server.kill()
            told = events_in(stream.body + late + stream.wire.read_all())
            seen.append(len(told))
            stream.close()
            api.server.restart()
            check_life_goes_on(world, api, model, session, told, asked="I like tea")
        assert len(set(seen)) > 3, seen
