from typing import Any

import pytest

from svc_proto.api.config_types import find_wrong_types

PERSONALITY = {"agent": {"personalities": {"calm": {"tone": 1}}}}
EXTRA = "platforms.api_server.extra"


def nested(path: str, value: object) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("model", 4, "is a number, not text: put it in quotes"),
        ("model.default", 4.1, "is a number, not text: put it in quotes"),
        ("model.base_url", ["x"], "is a list, not text"),
        ("model.max_tokens", "lots", "is text, not a number"),
        ("model.context_length", True, "is true or false, not a number"),
        ("agent", "x", "is text, not an object"),
        ("agent.personalities.calm", 1, "is a number, not text: put it in quotes"),
        ("agent.personalities.calm.tone", {}, "is an object, not text"),
        ("voice_output.language", False, "is true or false, not text: put it in quotes"),
        ("voice_output.xai.voice", 12, "is a number, not text: put it in quotes"),
        ("voice_output.enabled", "maybe", "is text, not true or false"),
        ("tts", "nope", "is text, not an object"),
        ("mcp_servers.a.args", "y", "is text, not a list"),
        (f"{EXTRA}.key", 1.5, "is a number, not text or a whole number: put it in quotes"),
        (f"{EXTRA}.key", True, "is true or false, not text or a whole number: put it in quotes"),
        (f"{EXTRA}.cors_origins", 5, "is a number, not text or a list"),
    ],
)
def test_wrong_types(path: str, value: object, problem: str) -> None:
    (found,) = find_wrong_types(nested(path, value))
    assert (found.path, found.text) == (tuple(path.split(".")), f"{path} {problem}")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model", "llama3.2"),
        ("model", None),
        ("model.max_tokens", "4096"),
        ("model.context_length", 4096),
        ("agent.personalities.calm", "Be calm."),
        ("voice_output.language", "no"),
        ("voice_output.enabled", "no"),
        ("voice_output.enabled", 1),
        ("voice_output.promotion", 5),
        ("tts.elevenlabs", {"voice_id": "v1"}),
        ("tts.speed", 1.5),
        ("mcp_servers.a", {"command": "x", "args": [1], "env": {"A": 1}, "trust": "yes", "timeout": 5}),
        (f"{EXTRA}.key", 12345),
        (f"{EXTRA}.cors_origins", ["http://a"]),
        (f"{EXTRA}.cors_origins", "http://a"),
        ("terminal.backend", 5),
    ],
)
def test_right_types_and_members_of_other_programs(path: str, value: object) -> None:
    assert find_wrong_types(nested(path, value)) == []
