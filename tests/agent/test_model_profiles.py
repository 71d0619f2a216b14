import json
from collections.abc import Callable

import pytest
from attrs import evolve

from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.interface import ModelEndpoint
from svc_proto.agent.model_profiles import MAX_PROFILES, PROFILE_TTL, ModelProfiles
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.sync import gather
from svc_proto.schema.model_profile import DEFAULT_PROFILE, PROFILES_FILE, ModelProfile
from tests.agent.harness import HOME, AgentHarness

PATH = f"{HOME}/{PROFILES_FILE}"
ENDPOINT = ModelEndpoint(base_url="http://a/v1", model="m")
LEARNED = ModelProfile(context=4096, tools=False, output_member="max_completion_tokens", density=2.0, probed=True)


def use(world: AgentHarness, plan: Callable[[ModelProfiles, Engine], Flow[object]]) -> None:
    """Run a plan with the model profiles of a new process, and let the process write its state file."""

    def begin(parts: AgentParts, engine: Engine) -> Flow[None]:
        yield from plan(parts.profiles, engine)
        yield from sleep(engine, 1.0)

    world.run(begin, limit=2 * PROFILE_TTL)


def learn(profiles: ModelProfiles, endpoint: ModelEndpoint = ENDPOINT) -> Flow[None]:
    profile = yield from profiles.find(endpoint)
    profile.restore(LEARNED)
    profiles.save(endpoint, profile)


def find(world: AgentHarness, endpoint: ModelEndpoint = ENDPOINT, *, after: float = 0.0) -> ModelProfile:
    """Return the profile that a new process finds after `after` seconds, without the time at which it was learned."""
    found: list[ModelProfile] = []

    def plan(profiles: ModelProfiles, engine: Engine) -> Flow[None]:
        yield from sleep(engine, after)
        found.append((yield from profiles.find(endpoint)))

    use(world, plan)
    return evolve(found[0], learned_at=None)


def test_profile_belongs_to_address_model_and_configured_context() -> None:
    def plan(profiles: ModelProfiles, engine: Engine) -> Flow[None]:
        yield from learn(profiles)
        assert (yield from profiles.find(evolve(ENDPOINT, api_key="other"))).tools is False
        for other in (evolve(ENDPOINT, model="n"), evolve(ENDPOINT, context=8192)):
            assert (yield from profiles.find(other)) == DEFAULT_PROFILE
        for number in range(2 * MAX_PROFILES - 1):
            if number in (0, MAX_PROFILES - 1):
                assert (yield from profiles.find(ENDPOINT)).tools is False  # the least recently used is dropped
            yield from profiles.find(ModelEndpoint(base_url=f"http://{number}/v1", model="m"))
        assert (yield from profiles.find(ENDPOINT)) == DEFAULT_PROFILE

    use(AgentHarness(), plan)


def test_lessons_outlive_the_process_for_a_day(world: AgentHarness) -> None:
    use(world, lambda profiles, engine: learn(profiles))
    (row,) = json.loads(world.disk.get(PATH))["profiles"]
    learned_at = row.pop("learned_at")
    learned = {"context": 4096, "output_member": "max_completion_tokens", "tools": False}
    assert row == {"base_url": "http://a/v1", "model": "m", "configured_context": None, **learned}
    assert find(world) == evolve(LEARNED, density=1.0, probed=False)
    assert json.loads(world.disk.get(PATH))["profiles"][0]["learned_at"] == learned_at
    assert find(world, after=PROFILE_TTL) == DEFAULT_PROFILE


def test_lessons_end_after_a_day() -> None:
    def plan(profiles: ModelProfiles, engine: Engine) -> Flow[None]:
        yield from learn(profiles)
        yield from sleep(engine, PROFILE_TTL)
        assert (yield from profiles.find(ENDPOINT)) == DEFAULT_PROFILE

    use(AgentHarness(), plan)


def test_the_file_is_written_for_new_lessons_only() -> None:
    def plan(profiles: ModelProfiles, engine: Engine) -> Flow[None]:
        profile = yield from profiles.find(ENDPOINT)
        profile.density = 2.0
        profiles.save(ENDPOINT, profile)
        yield from sleep(engine, 1.0)
        assert not world.disk.exists(PATH)
        for _ in range(2):  # both wait for the file
            yield from learn(profiles)
        yield from sleep(engine, 1.0)
        world.disk.put(PATH, b"seen")
        yield from learn(profiles)
        yield from sleep(engine, 1.0)
        assert world.disk.get(PATH) == b"seen"
        profile = yield from profiles.find(ENDPOINT)
        profile.images = False
        profiles.save(ENDPOINT, profile)

    world = AgentHarness()
    use(world, plan)
    assert b'"images":false' in world.disk.get(PATH)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_tested_model_is_learned_anew(restarted: bool) -> None:
    def teach(profiles: ModelProfiles, engine: Engine) -> Flow[None]:
        yield from learn(profiles)
        yield from learn(profiles, evolve(ENDPOINT, model="n"))

    def plan(profiles: ModelProfiles, engine: Engine) -> Flow[None]:
        if not restarted:
            yield from teach(profiles, engine)
        yield from profiles.forget("http://a/v1", "m")

    world = AgentHarness()
    if restarted:
        use(world, teach)
    use(world, plan)
    assert [row["model"] for row in json.loads(world.disk.get(PATH))["profiles"]] == ["n"]


@pytest.mark.parametrize("text", [b"\xff", b"{", b"[]", b'{"profiles": 5}', None])
def test_unreadable_file(text: bytes | None) -> None:
    """An unreadable file counts as empty, and two first turns at the same time read it once."""

    def plan(profiles: ModelProfiles, engine: Engine) -> Flow[None]:
        found = yield from gather(engine, [profiles.find(ENDPOINT), profiles.find(ENDPOINT)])
        assert found == [DEFAULT_PROFILE, DEFAULT_PROFILE]
        yield from learn(profiles)

    world = AgentHarness()
    world.disk.put(PATH, text or b"{}")
    if text is None:
        world.disk.denied.add(PATH)
    use(world, plan)
    assert [name for name, _ in world.logs].count("model profiles not read") == (text in (None, b"\xff"))
    if text is not None:
        assert b'"tools":false' in world.disk.get(PATH)


def test_full_disk_is_logged_and_tried_again(world: AgentHarness) -> None:
    world.disk.fill()

    def plan(profiles: ModelProfiles, engine: Engine) -> Flow[None]:
        yield from learn(profiles)
        yield from sleep(engine, 1.0)
        world.disk.capacity = None
        yield from learn(profiles)

    use(world, plan)
    assert "model profiles not stored" in [name for name, _ in world.logs]
    assert b'"tools":false' in world.disk.get(PATH)
