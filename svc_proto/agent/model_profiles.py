"""Profiles of model servers, by address, model and configured context size: which requests they accept, and limits.

The profiles are in a state file. A profile older than `PROFILE_TTL` is replaced by an empty one.
"""

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.commands import Level, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import Lock
from svc_proto.facts import Failure
from svc_proto.schema.model_profile import (
    PROFILES_FILE,
    ModelProfile,
    ProfileKey,
    encode_profiles,
    parse_profiles,
)

__all__ = ["PROFILE_TTL", "ModelProfiles"]

MAX_PROFILES = 64  # profiles that are kept; the least recently used is dropped
PROFILE_TTL = 86_400.0  # s after which a profile is learned anew


class ModelProfiles:
    """Profiles of model servers. The state file is read at the first use, and written after a change."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._busy = Lock(engine)
        self._loaded = False
        self._profiles: dict[ProfileKey, ModelProfile] = {}  # the last used is last
        self._stored: dict[ProfileKey, dict[str, object]] = {}  # members in the file

    def find(self, endpoint: ModelEndpoint) -> Flow[ModelProfile]:
        """Return the profile of an endpoint; a default profile if none is known or the known one is too old."""
        if not self._loaded:
            yield from self._load()
        key, now = _key_of(endpoint), self._engine.now.wall
        profile = self._profiles.pop(key, None)
        if profile is None or (profile.learned_at is not None and profile.learned_at + PROFILE_TTL <= now):
            profile = ModelProfile()
        self._profiles[key] = profile
        if len(self._profiles) > MAX_PROFILES:
            del self._profiles[next(iter(self._profiles))]
        return profile

    def save(self, endpoint: ModelEndpoint, profile: ModelProfile) -> None:
        """Write the state file if the profile has changed, without waiting for it."""
        if profile.members() != self._stored.get(_key_of(endpoint), {}):
            if profile.learned_at is None:
                profile.learned_at = self._engine.now.wall
            self._engine.spawn(self._write())

    def forget(self, base_url: str, model: str) -> Flow[None]:
        """Drop the profiles of a model on a server; write the state file if that changes it, without waiting for it."""
        if not self._loaded:
            yield from self._load()
        for key in [key for key in self._profiles if key[:2] == (base_url, model)]:
            del self._profiles[key]
        self._engine.spawn(self._write())

    def _load(self) -> Flow[None]:
        yield from self._busy.acquire()
        try:
            if self._loaded:
                return
            text = yield from read_state(self._engine, PROFILES_FILE)
            if isinstance(text, Failure):
                self._engine.log(Level.WARNING, "model profiles not read", problem=text.kind.value)
                text = None
            self._loaded = True
            self._profiles = parse_profiles(text or "")
            self._stored = self._members()
        finally:
            self._busy.release()

    def _write(self) -> Flow[None]:
        engine = self._engine
        yield from self._busy.acquire()
        try:
            members = self._members()
            if members == self._stored:
                return
            text = encode_profiles(self._profiles)
            written = yield from run_operation(engine, WriteConfig(engine.new_op(), PROFILES_FILE, text))
            if isinstance(written, Failure):
                engine.log(Level.WARNING, "model profiles not stored", problem=written.kind.value)
            else:
                self._stored = members
        finally:
            self._busy.release()

    def _members(self) -> dict[ProfileKey, dict[str, object]]:
        return {key: members for key, profile in self._profiles.items() if (members := profile.members())}


def _key_of(endpoint: ModelEndpoint) -> ProfileKey:
    return endpoint.base_url, endpoint.model, endpoint.context
