"""Bad days of the API, in the simulator: connections break, stores fail and dawdle, the model's server comes and goes.

Whatever happened: a stream is the beginning of a right one, what was told is stored, and when it is over every session
goes on, with a history that a model accepts.
"""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from attrs import evolve

from runtimes.sim.faults import Faults
from runtimes.sim.network import Network
from runtimes.sim.world import World as Simulation
from tests.loops.session_events import check_events, check_turn
from tests.loops.stored import check_history, check_rows, events_in
from tests.loops.streams import UnreadStream, chat, open_stream
from tests.loops.virtual import VirtualWorld
from tests.peers.model import Answer, ScriptedModel, calls, plain, refusal
from tests.plan import some

KEY = "sk-storm-8d44"
SEEDS = range(20)
ROUNDS = 16
SESSIONS = 3
CALM = 700.0  # s: twice as long as a model's silence is borne
LASTING = ("run.started", "assistant.completed")  # what is told only if its row is stored; tools go on without
REMEMBER = ("memory", {"action": "add", "target": "memory", "content": "likes tea"})


def answers() -> list[Answer]:
    """What a model says on a bad day, over and over."""
    return [
        plain("one two three", reasoning="so so"),
        calls(REMEMBER, ("demo_wait", {"seconds": 2}), text="Wait."),
        plain("four five").slow(0.7),
        calls(("demo_ask", {}), ("demo_fail", {})),
        plain("six seven").dropped(2),
        refusal(503, "overloaded"),
        plain("eight").stuck(1),
        plain("nine ten"),
    ] * ROUNDS


class Storm:
    """A world with an API whose sessions were made in peace."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self.simulation = Simulation(seed, network=Network(chunking=0.9, jitter=20.0))
        self.world = VirtualWorld(seed, simulation=self.simulation)
        self.model = ScriptedModel(answers())
        url = f"{self.world.peer(self.model)}/v1"
        self.api = self.world.api(
            key=KEY, durable=True, model_base_url=url, model="m", relay_url="http://127.0.0.1:9", max_concurrent_runs=2
        )
        self.sessions = [self.api.session() for _ in range(SESSIONS)]
        self.streams: list[tuple[str, UnreadStream]] = []
        self.simulation.faults = faults

    def act(self, number: int) -> None:
        """Somebody begins a turn, or meddles with the latest."""
        session = self.sessions[number % SESSIONS]
        path = f"/api/sessions/{session}/chat/stream"
        with suppress(ConnectionError, TimeoutError, EOFError):
            if number % 4 == 3 and self.streams:
                self._meddle(number // 4, self.streams[-1][1])
            else:
                stream = open_stream(self.world, self.api, "POST", path, {"message": f"Number {number}"})
                self.streams.append((session, stream))
        self.world.pass_time(self.simulation.rng.uniform(0.0, 8.0))

    def _meddle(self, number: int, stream: UnreadStream) -> None:
        if stream.open(5.0).status != 200:
            return
        run_id = stream.until("run.started", 5.0).data["run_id"]
        match number % 3:
            case 0:
                self.api.ask("POST", f"/v1/runs/{run_id}/stop", timeout=20.0)
            case 1:
                self.api.ask("POST", f"/v1/runs/{run_id}/approval", {"choice": "once"}, timeout=20.0)
            case _:
                stream.wire.abort()

    def kill(self) -> None:
        """End the server, and start it as often as it takes."""
        self.api.server.kill()
        self.world.pass_time(self.simulation.rng.uniform(0.0, 10.0))
        self.world.revive(self.api.server)

    def check(self) -> int:
        """It is over: look at everything. How many events were heard."""
        self.simulation.calm()
        self.model.answers.clear()  # it says something at once from now on
        self.world.pass_time(CALM)
        heard = 0
        for session, stream in self.streams:
            told = events_in(_heard(stream))
            heard += len(told)
            check_events(told)
            check_rows(self.api.messages(session), [event for event in told if event.name in LASTING], stray=True)
        for request in self.model.seen:
            messages = request["messages"]
            asked = max(place for place, row in enumerate(messages) if row["role"] == "user")
            check_history(messages[: asked + 1])
        for session in self.sessions:
            turn = check_turn(chat(self.world, self.api, session, "Are you there?").rest())
            assert turn.said == "The script is over."
        for server in self.world._relays:
            assert not [line for line in server.logs if line.event == "bug"]
            assert server.stop(5.0) == 0
        return heard


def _heard(stream: UnreadStream) -> bytes:
    wire = stream.wire
    with suppress(TimeoutError):
        return stream.body + wire.read_all(1.0)
    return stream.body + bytes(wire._buffer)


def faults(scale: float) -> Faults:
    """A bit of everything; but events are stamped by a clock that goes forward."""
    return evolve(Faults.some(scale), clock_step=0.0)


@pytest.mark.parametrize("seed", some(SEEDS))
def test_after_a_storm(seed: int) -> None:
    storm = Storm(seed, faults(3.0))
    for number in range(ROUNDS):
        storm.act(number)
    assert storm.check() > ROUNDS


@pytest.mark.parametrize("seed", some(range(100, 115)))
def test_kills_in_a_storm(seed: int) -> None:
    storm = Storm(seed, faults(2.0))
    for number in range(ROUNDS):
        storm.act(number)
        if number % 4 == 2:
            storm.kill()
    assert storm.check() > 0


def test_a_storm_can_be_replayed() -> None:
    def digest(seed: int) -> str:
        storm = Storm(seed, faults(3.0))
        for number in range(6):
            storm.act(number)
        return storm.simulation.trace_digest()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_can_be_continued_as_soon_as_it_was_told(stream: bool) -> None:
    """However slow the disk is."""
    storm = Storm(1, Faults.NONE)
    storm.model.answers[:] = [plain("first"), plain("second")]
    storm.simulation.faults = Faults(slow=1.0)
    first = storm.api.ask("POST", "/v1/responses", {"input": "a", "stream": stream}, timeout=120.0)
    found = re.search(rb'"id":"(resp_[0-9a-f]+)"', first.body)
    assert found is not None
    body = {"input": "b", "previous_response_id": found[1].decode()}
    second = storm.api.ask("POST", "/v1/responses", body, timeout=120.0)
    assert second.status == 200, second
    assert [row["content"] for row in storm.model.seen[-1]["messages"][1:]] == ["a", "first", "b"]
    assert storm.check() == 0
