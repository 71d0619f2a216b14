from pathlib import Path

import pytest
from attrs import asdict

from svc_proto.relay_config import ConfigError, RelayConfig, parse_relay_config
from svc_proto.voice_config import VoiceConfig
from tests.voice.table_rows import rows


def read(**env: str) -> VoiceConfig:
    return parse_relay_config(env, home="/home/me/.svc").voice


# wire terminal-voice 3.5, 4.10, 6.11, and where the providers are
NAMES = """
OPENAI_API_KEY VOICE_TOOLS_OPENAI_KEY OPENAI_REALTIME_API_KEY XAI_API_KEY GROK_API_KEY VOICE_TOOLS_XAI_KEY
XAI_REALTIME_CLIENT_SECRET XAI_EPHEMERAL_TOKEN ELEVENLABS_API_KEY VOICE_TOOLS_ELEVENLABS_KEY
OPENAI_BASE_URL OPENAI_REALTIME_URL XAI_BASE_URL XAI_REALTIME_URL ELEVENLABS_BASE_URL
"""
SAID = """
{} -> {home: /home/me/.svc-relay, service_home: /home/me/.svc, config_path: /home/me/.svc/config.yaml,
    output_path: /home/me/.svc-relay/config.yaml, realtime_path: /home/me/.svc-relay/config.yaml,
    output_runs: /home/me/.svc-relay/voice-output-runs, lab_runs: /home/me/.svc-relay/realtime-voice-runs,
    agent_runs: /home/me/.svc-relay/realtime-agent-runs, resume_ttl: 30, detached_max: 360, background_max: 300,
    options_cache: 600, slow_tools: [cron, desktop_, browser, execute_code, terminal, spawn]}
{SVC_HOME: /srv/svc/} -> {home: /srv/svc-relay}
{SVC_RELAY_HOME: /elsewhere} -> {home: /elsewhere}
{HERMES_RELAY_HOME: /elsewhere} -> {output_runs: /elsewhere/voice-output-runs}
{RELAY_VOICE_OUTPUT_CONFIG: /a/output.yaml, RELAY_REALTIME_VOICE_CONFIG: /b/realtime.yaml}
    -> {output_path: /a/output.yaml, realtime_path: /b/realtime.yaml}
{RELAY_VOICE_OUTPUT_RUN_DIR: /runs/output, RELAY_REALTIME_VOICE_RUN_DIR: /runs/realtime}
    -> {output_runs: /runs/output, lab_runs: /runs/realtime, agent_runs: /runs/realtime}
{RELAY_VOICE_LONG_TOOL_HINTS: " build, ,deploy_ "} -> {slow_tools: [build, deploy_]}
{RELAY_VOICE_LONG_TOOL_HINTS: ","} -> {slow_tools: []}
{OPENAI_API_KEY: " secret ", RELAY_VOICE_OUTPUT_VOICE: rex, RELAY_REALTIME_VOICE_ENABLED: "0", GROK_API_KEY: "  ",
    PATH: /bin, API_SERVER_KEY: also secret} -> {api_key: also secret,
    variables: {OPENAI_API_KEY: secret, RELAY_VOICE_OUTPUT_VOICE: rex, RELAY_REALTIME_VOICE_ENABLED: "0"}}
"""


@pytest.mark.parametrize(("env", "expected"), rows(SAID))
def test_environment_variables(env: dict[str, str], expected: dict[str, object]) -> None:
    config = read(**env)
    assert (
        asdict(config).items()
        >= {name: tuple(value) if isinstance(value, list) else value for name, value in expected.items()}.items()
    )
    assert "secret" not in repr(config)


def test_defaults_without_voice_settings() -> None:
    assert parse_relay_config({}).voice == VoiceConfig()
    config = RelayConfig(home="/s", config_path="/c/config.yaml", webapi_url="http://x", api_key="k").voice
    assert (config.home, config.service_home, config.config_path) == ("/s-relay", "/s", "/c/config.yaml")
    assert (config.webapi_url, config.api_key) == ("http://x", "k")


def test_the_variables_of_voice() -> None:
    said = dict.fromkeys(NAMES.split(), "x")
    assert read(**said).variables == said


def test_the_root_is_never_a_voice_folder() -> None:
    config = read(RELAY_VOICE_OUTPUT_CONFIG="/a/o.yaml", RELAY_VOICE_OUTPUT_RUN_DIR="/o")
    runs = ("/home/me/.svc-relay/realtime-voice-runs", "/home/me/.svc-relay/realtime-agent-runs")
    assert config.folders == ("/home/me/.svc-relay", "/o", *runs, "/a", "/home/me/.svc")
    assert "" not in VoiceConfig(config_path="/config.yaml").folders
    assert all(Path(folder) != Path("/") for folder in VoiceConfig(output_path="/x.yaml").folders)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("SVC_RELAY_HOME", "relative"), ("RELAY_VOICE_OUTPUT_CONFIG", "relative"), ("RELAY_VOICE_RESUME_TTL_MS", "soon")],
)
def test_bad_settings_are_named(variable: str, value: str) -> None:
    with pytest.raises(ConfigError, match=variable):
        read(**{variable: value})


RANGES = """
RELAY_VOICE_RESUME_TTL_MS -> resume_ttl -> 0 -> 3600000 -> 1000
RELAY_VOICE_BACKGROUND_DETACHED_MAX_MS -> detached_max -> 0 -> 86400000 -> 1000
RELAY_VOICE_BACKGROUND_RUN_MAX_MS -> background_max -> 1000 -> 86400000 -> 1000
RELAY_PROVIDER_OPTIONS_CACHE_SECONDS -> options_cache -> 0 -> 86400 -> 1
"""


@pytest.mark.parametrize(("variable", "field", "low", "high", "parts"), rows(RANGES))
def test_the_ends_of_a_range(variable: str, field: str, low: int, high: int, parts: int) -> None:
    for end, beyond in ((low, low - 1), (high, high + 1)):
        assert getattr(read(**{variable: str(end)}), field) == end / parts
        with pytest.raises(ConfigError, match=variable):
            read(**{variable: str(beyond)})
