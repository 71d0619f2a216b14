"""Voice in the relay: its authorizer and its session managers, loaded with the first voice request."""

from collections.abc import Iterable, Mapping

from attrs import evolve

from svc_proto.relay.voice.access import VoiceAccessPort, VoiceAuthorizer
from svc_proto.voice.agent.agent_session_manager import AgentSessionManager
from svc_proto.voice.provider_options import ProviderCatalogs
from svc_proto.voice.service import VoiceServices
from svc_proto.voice.session_manager import VoiceSessionManager
from svc_proto.voice.speech_sessions import LabSessionManager, OutputSessionManager

__all__ = ["VOICE_SESSION_MANAGERS", "VoiceSubsystem"]

VOICE_SESSION_MANAGERS: Mapping[str, type[VoiceSessionManager]] = {
    "output": OutputSessionManager,
    "lab": LabSessionManager,
    "agent": AgentSessionManager,
}


class VoiceSubsystem:
    """Voice services, provider options, session managers and authorizer of the relay."""

    def __init__(self, relay: VoiceAccessPort) -> None:
        self.voice = voice = VoiceServices(relay.engine, evolve(relay.config.voice, webapi_url=relay.config.api_url))
        self.options = ProviderCatalogs(voice)
        self.sessions = {name: family(voice) for name, family in VOICE_SESSION_MANAGERS.items()}
        self.gate = VoiceAuthorizer(relay, voice)

    def __contains__(self, session_id: str) -> bool:
        """Report whether a manager has a session of this id, or still stores the id of one that has ended."""
        return any(family.is_known(session_id) for family in self.sessions.values())

    def recheck(self, bearer_hash: str) -> None:
        """Close the voice sockets that a token has opened and that its changed grants no longer permit."""
        for family in self.sessions.values():
            family.recheck(bearer_hash)

    def end_bearers(self, holders: Iterable[str], reason: str) -> None:
        """Close the voice sockets that revoked tokens have opened, and end the sessions that they own."""
        for holder in holders:
            for family in self.sessions.values():
                family.revoke_bearer(holder, reason)

    def counts(self) -> dict[str, int]:
        """Return the number of voice sessions of each mode, by `voice:<mode>`."""
        return {f"voice:{name}": len(family.sessions()) for name, family in self.sessions.items()}

    def stop(self) -> None:
        """Stop all session managers."""
        for family in self.sessions.values():
            family.stop()
