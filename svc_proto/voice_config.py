"""Voice configuration of the relay as one parsed value (wire terminal-voice 4.1, 4.8, 6.9, 6.12).

Provider keys are variables too. They come from the environment and from `.env` of the service home, never from a
request, and appear in no `repr`.
"""

from collections.abc import Mapping
from typing import Any

from attrs import Factory, field

from svc_proto.basics.brand import SVC, Brand
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.settings import SettingsSource

__all__ = [
    "KEY_VARIABLES",
    "URL_VARIABLES",
    "PROVIDER_ENDPOINTS",
    "ProviderEndpoint",
    "VoiceConfig",
    "parse_voice_config",
]
__all__ += [
    "OPENAI_ENDPOINT",
    "OPENAI_REALTIME_ENDPOINT",
    "XAI_ENDPOINT",
    "XAI_REALTIME_ENDPOINT",
    "ELEVENLABS_ENDPOINT",
    "GROQ_ENDPOINT",
    "MISTRAL_ENDPOINT",
    "DEEPINFRA_ENDPOINT",
]

OUTPUT_PREFIX = "RELAY_VOICE_OUTPUT_"
REALTIME_PREFIX = "RELAY_REALTIME_VOICE_"
SLOW_TOOLS = ("cron", "desktop_", "browser", "execute_code", "terminal", "spawn")  # wire 6.9


@fast_frozen
class ProviderEndpoint:
    """Endpoint of a vendor: its address without a slash at the end, and the names of its key.

    Keys are searched in that order (wire 3.5, 4.10, 6.11).
    """

    name: str
    url: str
    keys: tuple[str, ...]

    @property
    def suggested_variable(self) -> str:
        """Variable that an operator without a key is advised to set."""
        return f"{self.name.upper()}_API_KEY"

    @property
    def url_variable(self) -> str:
        """Variable by which an operator replaces the address."""
        return f"{self.name.upper()}_{'REALTIME' if self.url.startswith('wss:') else 'BASE'}_URL"


OPENAI_ENDPOINT = ProviderEndpoint("OpenAI", "https://api.openai.com/v1", ("OPENAI_API_KEY", "VOICE_TOOLS_OPENAI_KEY"))
OPENAI_REALTIME_ENDPOINT = ProviderEndpoint(
    "OpenAI", "wss://api.openai.com/v1/realtime", ("OPENAI_REALTIME_API_KEY", *OPENAI_ENDPOINT.keys)
)
XAI_ENDPOINT = ProviderEndpoint("xAI", "https://api.x.ai", ("VOICE_TOOLS_XAI_KEY", "XAI_API_KEY", "GROK_API_KEY"))
XAI_REALTIME_ENDPOINT = ProviderEndpoint(
    "xAI", "wss://api.x.ai/v1/realtime", (*XAI_ENDPOINT.keys, "XAI_REALTIME_CLIENT_SECRET", "XAI_EPHEMERAL_TOKEN")
)
ELEVENLABS_ENDPOINT = ProviderEndpoint(
    "ElevenLabs", "https://api.elevenlabs.io", ("ELEVENLABS_API_KEY", "VOICE_TOOLS_ELEVENLABS_KEY")
)
GROQ_ENDPOINT = ProviderEndpoint("Groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",))
MISTRAL_ENDPOINT = ProviderEndpoint("Mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",))
DEEPINFRA_ENDPOINT = ProviderEndpoint("DeepInfra", "https://api.deepinfra.com/v1/openai", ("DEEPINFRA_API_KEY",))
PROVIDER_ENDPOINTS = (
    OPENAI_ENDPOINT,
    OPENAI_REALTIME_ENDPOINT,
    XAI_ENDPOINT,
    XAI_REALTIME_ENDPOINT,
    ELEVENLABS_ENDPOINT,
    GROQ_ENDPOINT,
    MISTRAL_ENDPOINT,
    DEEPINFRA_ENDPOINT,
)
KEY_VARIABLES = tuple(dict.fromkeys(key for endpoint in PROVIDER_ENDPOINTS for key in endpoint.keys))
URL_VARIABLES = tuple(
    endpoint.url_variable for endpoint in PROVIDER_ENDPOINTS
)  # set by the operator, never by a caller


def _below(name: str) -> Any:
    return field(default=Factory(lambda config: f"{config.home}/{name}", takes_self=True))


@fast_frozen(kw_only=True)
class VoiceConfig:
    """Start configuration of the voice side. Default paths begin with `~`; the relay's program sets absolute ones."""

    home: str = "~/.svc-relay"  # of what the relay owns: its voice settings, recordings, event logs
    service_home: str = "~/.svc"  # holds `.env`
    config_path: str = "~/.svc/config.yaml"  # the agent's; `profiles/<name>/config.yaml` beside it
    webapi_url: str = "http://localhost:8642"
    api_key: str = field(default="", repr=False)  # of the API server, as in `RelayConfig`
    key_in_environment: bool = False
    brand: Brand = SVC
    output_path: str = _below("config.yaml")  # the file with the relay's own `voice_output:`
    realtime_path: str = _below("config.yaml")  # the same for `realtime_voice:`
    output_runs: str = _below("voice-output-runs")  # folders of event logs and recordings
    lab_runs: str = _below("realtime-voice-runs")
    agent_runs: str = _below("realtime-agent-runs")
    resume_ttl: float = 30.0  # s that a detached session is kept
    detached_max: float = 360.0  # s, the same while a run of its agent continues
    background_max: float = 300.0  # s of a run in the background, from its beginning
    slow_tools: tuple[str, ...] = SLOW_TOOLS  # parts of the names of tools that usually take long
    options_cache: float = 600.0  # s that discovered voices are kept; 0: not at all
    variables: Mapping[str, str] = field(factory=dict, repr=False)  # keys, addresses and settings, from the environment

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of the relay's voice files, of event logs and recordings, and of the configuration files."""
        files = (self.output_path, self.realtime_path, self.config_path)
        parents = (path.rpartition("/")[0] for path in files)
        folders = dict.fromkeys((self.home, self.output_runs, self.lab_runs, self.agent_runs, *parents))
        return tuple(folder for folder in folders if folder)  # the root of the file system is never exposed


def parse_voice_config(
    source: SettingsSource, *, service_home: str, config_path: str, webapi_url: str, api_key: str, brand: Brand
) -> VoiceConfig:
    """Parse the settings of the voice side. Raises `ConfigError`."""
    home = (
        source.absolute_path("SVC_RELAY_HOME")
        or source.absolute_path("HERMES_RELAY_HOME")
        or f"{service_home.rstrip('/')}-relay"
    )
    places = {
        "output_path": source.absolute_path("RELAY_VOICE_OUTPUT_CONFIG"),
        "realtime_path": source.absolute_path("RELAY_REALTIME_VOICE_CONFIG"),
        "output_runs": source.absolute_path("RELAY_VOICE_OUTPUT_RUN_DIR"),
        "lab_runs": source.absolute_path("RELAY_REALTIME_VOICE_RUN_DIR"),
        "agent_runs": source.absolute_path("RELAY_REALTIME_VOICE_RUN_DIR"),
    }
    ours = (*KEY_VARIABLES, *URL_VARIABLES)
    return VoiceConfig(
        home=home,
        service_home=service_home,
        config_path=config_path,
        webapi_url=webapi_url,
        api_key=api_key,
        key_in_environment=bool(api_key),
        brand=brand,
        **{name: place for name, place in places.items() if place},
        resume_ttl=source.integer("RELAY_VOICE_RESUME_TTL_MS", 30_000, low=0, high=3_600_000) / 1000,
        detached_max=source.integer("RELAY_VOICE_BACKGROUND_DETACHED_MAX_MS", 360_000, low=0, high=86_400_000) / 1000,
        background_max=source.integer("RELAY_VOICE_BACKGROUND_RUN_MAX_MS", 300_000, low=1000, high=86_400_000) / 1000,
        slow_tools=source.split_list("RELAY_VOICE_LONG_TOOL_HINTS", ",".join(SLOW_TOOLS)),
        options_cache=float(source.integer("RELAY_PROVIDER_OPTIONS_CACHE_SECONDS", 600, low=0, high=86_400)),
        variables={
            name: value.strip()
            for name, value in source.env.items()
            if value.strip() and (name in ours or name.startswith((OUTPUT_PREFIX, REALTIME_PREFIX)))
        },
    )
