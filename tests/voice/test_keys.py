from __future__ import annotations

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.voice.keys import Keys
from tests.voice.plans import world_of


def refreshed(environment: dict[str, str], dotenv: str | None) -> Keys:
    keys = Keys(environment)

    def plan(engine: Engine) -> Flow[None]:
        yield from keys.refresh(engine, "/h")

    world_of(plan, {} if dotenv is None else {"/h/.env": dotenv}).run()
    return keys


def test_the_environment_comes_first() -> None:
    keys = refreshed({"XAI_API_KEY": "env"}, "XAI_API_KEY=file\nOPENAI_API_KEY=other\nOPENAI_BASE_URL=http://x\n")
    assert keys.get("XAI_API_KEY") == "env"
    assert keys.get("GROK_API_KEY", "OPENAI_API_KEY") == "other"
    assert keys.get("OPENAI_BASE_URL") == "http://x"
    assert keys.get("GROK_API_KEY") is None
    assert keys.present("OPENAI_API_KEY", "GROK_API_KEY", "XAI_API_KEY") == ["OPENAI_API_KEY", "XAI_API_KEY"]


def test_only_what_concerns_voice_is_kept() -> None:
    keys = refreshed({}, "API_SERVER_KEY=secret\nXAI_API_KEY=very secret\n")
    assert keys.get("API_SERVER_KEY") is None
    assert "secret" not in repr(keys)
    assert refreshed({}, None).present("XAI_API_KEY") == []


def test_the_fingerprint_changes_with_the_keys_alone() -> None:
    first = refreshed({"XAI_API_KEY": "a"}, None).fingerprint()
    assert first == refreshed({}, "XAI_API_KEY=a").fingerprint()
    assert first == refreshed({"XAI_API_KEY": "a"}, "OPENAI_BASE_URL=http://x").fingerprint()
    assert first != refreshed({"XAI_API_KEY": "b"}, None).fingerprint()
    assert first != refreshed({"GROK_API_KEY": "a"}, None).fingerprint()
