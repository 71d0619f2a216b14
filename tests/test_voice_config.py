from __future__ import annotations

from pathlib import Path

import pytest

from svc_proto.config import ConfigError, RelayConfig, relay_config
from svc_proto.voice_config import VoiceConfig


def read(**env: str) -> VoiceConfig:
    return relay_config(env, home="/home/me/.svc").voice


def test_defaults() -> None:
    assert read() == VoiceConfig(
        home="/home/me/.svc-relay", service_home="/home/me/.svc", config_path="/home/me/.svc/config.yaml"
    )
    config = read()
    assert config.output_path == config.realtime_path == "/home/me/.svc-relay/config.yaml"
    assert config.output_runs == "/home/me/.svc-relay/voice-output-runs"
    assert config.lab_runs == "/home/me/.svc-relay/realtime-voice-runs"
    assert config.agent_runs == "/home/me/.svc-relay/realtime-agent-runs"
    assert (config.resume_ttl, config.detached_max, config.options_cache) == (30.0, 360.0, 600.0)
    assert config.background_max == 300.0
    assert config.slow_tools == ("cron", "desktop_", "browser", "execute_code", "terminal", "spawn")


def test_a_relay_that_was_told_nothing_of_voice() -> None:
    config = RelayConfig(home="/s", config_path="/c/config.yaml", webapi_url="http://x", api_key="k").voice
    assert (config.home, config.service_home, config.config_path) == ("/s-relay", "/s", "/c/config.yaml")
    assert (config.webapi_url, config.api_key) == ("http://x", "k")


def test_the_home_follows_the_services() -> None:
    assert read(SVC_HOME="/srv/svc/").home == "/srv/svc-relay"
    assert read(SVC_RELAY_HOME="/elsewhere").home == "/elsewhere"
    assert read(HERMES_RELAY_HOME="/elsewhere").output_runs == "/elsewhere/voice-output-runs"


def test_files_and_folders_of_their_own() -> None:
    config = read(
        RELAY_VOICE_OUTPUT_CONFIG="/a/output.yaml",
        RELAY_REALTIME_VOICE_CONFIG="/b/realtime.yaml",
        RELAY_VOICE_OUTPUT_RUN_DIR="/runs/output",
        RELAY_REALTIME_VOICE_RUN_DIR="/runs/realtime",
    )
    assert (config.output_path, config.realtime_path) == ("/a/output.yaml", "/b/realtime.yaml")
    assert (config.output_runs, config.lab_runs, config.agent_runs) == (
        "/runs/output",
        "/runs/realtime",
        "/runs/realtime",
    )
    assert config.folders == ("/home/me/.svc-relay", "/runs/output", "/runs/realtime", "/a", "/b", "/home/me/.svc")


def test_nobody_gives_away_the_root_of_the_file_system() -> None:
    assert "" not in VoiceConfig(config_path="/config.yaml").folders
    assert all(Path(folder) != Path("/") for folder in VoiceConfig(output_path="/x.yaml").folders)


def test_times() -> None:
    config = read(
        RELAY_VOICE_RESUME_TTL_MS="1500",
        RELAY_VOICE_BACKGROUND_DETACHED_MAX_MS="2000",
        RELAY_VOICE_BACKGROUND_RUN_MAX_MS="1500",
        RELAY_PROVIDER_OPTIONS_CACHE_SECONDS="0",
    )
    assert config.background_max == 1.5
    assert (config.resume_ttl, config.detached_max, config.options_cache) == (1.5, 2.0, 0.0)


def test_tools_that_are_known_to_take_long() -> None:
    assert read(RELAY_VOICE_LONG_TOOL_HINTS=" build, ,deploy_ ").slow_tools == ("build", "deploy_")
    assert read(RELAY_VOICE_LONG_TOOL_HINTS=",").slow_tools == ()


def test_only_variables_of_voice_are_kept_and_do_not_show() -> None:
    config = read(
        OPENAI_API_KEY=" secret ",
        XAI_BASE_URL="http://x",
        RELAY_VOICE_OUTPUT_VOICE="rex",
        RELAY_REALTIME_VOICE_ENABLED="0",
        GROK_API_KEY="  ",
        PATH="/bin",
        API_SERVER_KEY="also secret",
    )
    assert config.variables == {
        "OPENAI_API_KEY": "secret",
        "XAI_BASE_URL": "http://x",
        "RELAY_VOICE_OUTPUT_VOICE": "rex",
        "RELAY_REALTIME_VOICE_ENABLED": "0",
    }
    assert config.api_key == "also secret"
    assert "secret" not in repr(config)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SVC_RELAY_HOME", "relative"),
        ("RELAY_VOICE_OUTPUT_CONFIG", "relative"),
        ("RELAY_VOICE_RESUME_TTL_MS", "soon"),
        ("RELAY_VOICE_BACKGROUND_DETACHED_MAX_MS", "-1"),
        ("RELAY_VOICE_BACKGROUND_RUN_MAX_MS", "0"),
        ("RELAY_PROVIDER_OPTIONS_CACHE_SECONDS", "-1"),
    ],
)
def test_bad_settings_are_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        read(**{name: value})


def test_the_variables_of_voice() -> None:
    # wire terminal-voice 3.5, 4.10, 6.11, and where the providers are
    names = """
        OPENAI_API_KEY VOICE_TOOLS_OPENAI_KEY OPENAI_REALTIME_API_KEY XAI_API_KEY GROK_API_KEY VOICE_TOOLS_XAI_KEY
        XAI_REALTIME_CLIENT_SECRET XAI_EPHEMERAL_TOKEN ELEVENLABS_API_KEY VOICE_TOOLS_ELEVENLABS_KEY
        OPENAI_BASE_URL OPENAI_REALTIME_URL XAI_BASE_URL XAI_REALTIME_URL ELEVENLABS_BASE_URL
    """
    said = dict.fromkeys(names.split(), "x")
    assert read(**said).variables == said


def test_who_is_told_nothing_has_the_same_defaults() -> None:
    assert relay_config({}).voice == VoiceConfig()


@pytest.mark.parametrize(
    ("variable", "field", "low", "high", "parts"),
    [
        ("RELAY_VOICE_RESUME_TTL_MS", "resume_ttl", 0, 3_600_000, 1000),
        ("RELAY_VOICE_BACKGROUND_DETACHED_MAX_MS", "detached_max", 0, 86_400_000, 1000),
        ("RELAY_VOICE_BACKGROUND_RUN_MAX_MS", "background_max", 1000, 86_400_000, 1000),
        ("RELAY_PROVIDER_OPTIONS_CACHE_SECONDS", "options_cache", 0, 86_400, 1),
    ],
)
def test_the_ends_of_a_range(variable: str, field: str, low: int, high: int, parts: int) -> None:
    for end, beyond in ((low, low - 1), (high, high + 1)):
        assert getattr(read(**{variable: str(end)}), field) == end / parts
        with pytest.raises(ConfigError, match=variable):
            read(**{variable: str(beyond)})
