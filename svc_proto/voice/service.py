"""Services that the parts of the relay's voice subsystem share."""

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.service_clients.local_api import local_api_key
from svc_proto.voice.principal import Principal
from svc_proto.voice.provider_keys import ProviderKeys
from svc_proto.voice.providers.provider_factory import ProviderFactory
from svc_proto.voice.settings import SettingsT
from svc_proto.voice.settings_store import SettingsSection, SettingsStore
from svc_proto.voice_config import VoiceConfig

__all__ = ["VoiceServices"]


class VoiceServices:
    """Keys, providers and settings of voice; construction reads and connects nothing."""

    def __init__(self, engine: Engine, config: VoiceConfig) -> None:
        self.engine = engine
        self.config = config
        self.keys = ProviderKeys(config.variables)
        self.providers = ProviderFactory(engine, self.keys)
        self.stored = SettingsStore(engine, config, self._can_speak)

    def settings(self, family: SettingsSection[SettingsT], profile: str | None = None) -> Flow[SettingsT]:
        """Return the settings of a section, for a profile or the relay; the keys are read again, too."""
        yield from self.refresh_keys()
        return (yield from self.stored.read(family, profile))

    def refresh_keys(self) -> Flow[None]:
        """Read the keys and addresses of vendors from `.env` of the service home again."""
        yield from self.keys.refresh(self.engine, self.config.service_home)

    def api_credential(self, principal: Principal) -> Flow[str | None]:
        """Return the bearer token for the API server, or None if there is none.

        It is the client's own token for an API client, and the host's key for a paired device.
        """
        if principal.kind == "api":
            return principal.bearer
        config = self.config
        key = yield from local_api_key(
            self.engine, config.config_path, config.service_home, config.api_key, named=config.key_in_environment
        )
        return key or None

    def _can_speak(self) -> Flow[bool]:
        """Report whether this host has programs both for synthesis and for transcription."""
        engines = yield from self.providers.host.engines()
        return bool(engines.speak and engines.listen)
