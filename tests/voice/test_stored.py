"""The settings as they are stored. How routes show and change them is in tests/relay/routes/test_voice_settings.py."""

from __future__ import annotations

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.voice.fields import OUTPUT
from svc_proto.voice.registry import Registry
from svc_proto.voice.sections import OUTPUT_FAMILY, REALTIME_FAMILY
from svc_proto.voice.stored import StoredSettings, checked_change
from tests.voice.plans import CONFIG, world_of

PROVIDERS = ("stub", "xai_tts")


def test_a_change_is_checked() -> None:
    body = {"profile": "work", "provider": "grok", "sample_rate": "16000"}
    assert checked_change(OUTPUT_FAMILY, OUTPUT, body, PROVIDERS) == {"provider": "xai_tts", "sample_rate": 16_000}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "nothing"),
        ({"profile": "work"}, "nothing"),
        ({"x" * 100: 1}, "x" * 40 + ";"),
        ({"provider": "local"}, "one of"),
    ],
)
def test_what_is_no_change(body: dict[str, object], word: str) -> None:
    with pytest.raises(Refused, match=word) as caught:
        checked_change(OUTPUT_FAMILY, OUTPUT, body, PROVIDERS)
    assert caught.value.status == 400


def refused(files: dict[str, object], found: Failure | bytes | None = None, profile: str | None = None) -> Refused:
    def plan(engine: Engine) -> Flow[Refused]:
        stored = StoredSettings(engine, CONFIG, Registry(), _silent)
        with pytest.raises(Refused) as caught:
            yield from stored.change(OUTPUT_FAMILY, profile, {"voice": "rex"})
        return caught.value

    world = world_of(plan, files)
    if found is not None:
        world.files["/r/config.yaml"] = found
    return world.run()


def _silent() -> Flow[bool]:
    yield from ()
    return False


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"/r/config.yaml": "[broken"}, "not YAML"),
        ({"/r/config.yaml": "- a list"}, "not YAML"),
    ],
)
def test_a_file_that_cannot_be_changed(files: dict[str, object], word: str) -> None:
    problem = refused(files)
    assert (problem.status, problem.code) == (404, "not_writable")
    assert word in problem.message


@pytest.mark.parametrize(
    ("found", "word"), [(Failure(FailureKind.DENIED), "could not be read"), (b"voice: \xff\n", "not UTF-8")]
)
def test_a_file_that_cannot_be_read(found: Failure | bytes, word: str) -> None:
    problem = refused({}, found)
    assert (problem.status, problem.code) == (404, "not_writable")
    assert word in problem.message


def test_a_profile_that_is_not_there() -> None:
    problem = refused({}, profile="work")
    assert (problem.status, problem.code, problem.message) == (404, "not_found", "there is no such profile")


def test_where_the_relays_own_settings_are() -> None:
    def plan(engine: Engine) -> Flow[tuple[str, str]]:
        stored = StoredSettings(engine, CONFIG, Registry(), _silent)
        yield from ()
        return stored.path_of(OUTPUT_FAMILY), stored.path_of(REALTIME_FAMILY)

    assert world_of(plan).run() == ("/r/config.yaml", "/r/config.yaml")
