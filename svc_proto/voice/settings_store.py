"""Store of the settings: files are read again for each request; a change preserves their comments and order.

The relay's own settings come from the environment, then its file, then defaults. A profile's section overrides them
(wire terminal-voice 3.2). Where no provider is named at all, the local provider is used if it is installed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

from attrs import frozen

from svc_proto.basics.errors import Refused
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_yaml, update_yaml
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Lock
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject, as_text
from svc_proto.voice.profiles import ConfigProfile, find_profile
from svc_proto.voice.provider_registry import LOCAL, PROVIDERS, canonical_id, is_renderer
from svc_proto.voice.settings import (
    OUTPUT,
    PROMOTION,
    REALTIME,
    VARIABLES,
    OutputSettings,
    PromotionSettings,
    RealtimeSettings,
    Rules,
    SettingsScope,
    SettingsT,
    rules_of,
    usable_values,
)
from svc_proto.voice_config import VoiceConfig

__all__ = ["OUTPUT_SECTION", "REALTIME_SECTION", "SettingsSection", "SettingsStore", "checked_change", "merge_settings"]
__all__ += ["resolve_settings", "profile_values", "split_shared_values"]

_OF_A_PROVIDER = ("model", "voice", "sample_rate")
_TTS_NAMES = ("provider", *_OF_A_PROVIDER)  # the settings that are read from `tts:`


@frozen(kw_only=True)
class SettingsSection(Generic[SettingsT]):
    """Section of settings in files and the environment."""

    section: str  # of a configuration file
    kind: str  # the meaning of a vendor's bare name
    prefix: str  # of its variables
    rules: Rules
    settings: type[SettingsT]  # the resulting class

    def from_environment(self, variables: Mapping[str, str]) -> dict[str, object]:
        """Return the section's valid settings from environment variables."""
        said = {name: variables.get(self.prefix + VARIABLES.get(name, name.upper())) for name in self.rules}
        return usable_values(self.rules, said)

    def from_file(self, holder: Mapping[str, object], section: str | None = None) -> dict[str, object]:
        """Return the valid settings in the section of a file, or in the named other section; empty if there is none."""
        return usable_values(self.rules, self._flat(JsonObject.of(holder).get_object(section or self.section)))

    def _flat(self, found: Mapping[str, object]) -> dict[str, object]:
        """Return the section with the block of its provider merged in; direct members override the block."""
        provider = as_text(found.get("provider"))
        blocks = _blocks(found)
        flat: dict[str, object] = {}
        if provider is not None:
            wanted = canonical_id(provider, self.kind)
            for name, block in blocks.items():  # `openai:` is a block of `openai_tts`, too
                if canonical_id(str(name), self.kind) == wanted:
                    flat.update(block)
        flat.update({name: value for name, value in found.items() if name not in blocks})
        for name in ("model", "voice"):
            if flat.get(name) is None:
                flat[name] = flat.get(f"{name}_id")
        return flat


OUTPUT_SECTION = SettingsSection(
    section="voice_output", kind="tts", prefix="RELAY_VOICE_OUTPUT_", rules=OUTPUT, settings=OutputSettings
)
REALTIME_SECTION = SettingsSection(
    section="realtime_voice",
    kind="realtime",
    prefix="RELAY_REALTIME_VOICE_",
    rules={**REALTIME, **PROMOTION, **rules_of(RealtimeSettings, file_only=True)},
    settings=RealtimeSettings,
)


def profile_values(family: SettingsSection[Any], profile: ConfigProfile) -> dict[str, object]:
    """Return a profile's settings of a section.

    For speech output without a section of its own, these are members of `tts:`, if its provider renders.
    """
    values = family.from_file(profile.data)
    if values or family is not OUTPUT_SECTION:
        return values
    found = family.from_file(profile.data, "tts")
    values = {name: value for name, value in found.items() if name in _TTS_NAMES}
    info = PROVIDERS.get(str(values.get("provider")))
    return values if info is not None and is_renderer(info) else {}


def _blocks(section: Mapping[str, object]) -> dict[str, JsonObject]:
    return {name: block for name, value in section.items() if (block := JsonObject.of_or_none(value)) is not None}


def merge_settings(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Return `below` with the settings of `above` over it.

    Another provider in `above` drops the model, voice and rate of `below`.
    """
    other = "provider" in below and above.get("provider", below["provider"]) != below["provider"]
    kept = {name: value for name, value in below.items() if not (other and name in _OF_A_PROVIDER)}
    return {**kept, **above}


def split_shared_values(
    family: SettingsSection[Any], holder: Mapping[str, object], change: Mapping[str, object]
) -> dict[str, object]:
    """Return a change of a file's section, completed if it changes the provider.

    A model or voice beside the old provider's name that the new provider does not have is replaced, unless
    the change names one."""
    said = JsonObject.of(holder).get_object(family.section)
    info = PROVIDERS.get(str(change.get("provider")))
    before = said.string("provider")
    if info is None or before is None or canonical_id(before, family.kind) == info.id:
        return dict(change)
    own = family.from_file({family.section: {**_blocks(said), "provider": info.id}})
    whole = dict(change)
    for name, known in (("model", info.models), ("voice", info.voices)):
        value = said.get(name) or said.get(f"{name}_id")
        if value is not None and value not in known and name not in change:
            whole[name] = own.get(name, known[0])
    return whole


def resolve_settings(
    family: SettingsSection[SettingsT],
    base: Mapping[str, object],
    over: Mapping[str, object],
    scope: SettingsScope,
    *,
    local: bool,
) -> SettingsT:
    """Return the settings of the relay with a profile over them; `local`: default to the local provider."""
    values: dict[str, Any] = merge_settings({"provider": None, **base}, over)
    provider = values["provider"] = values["provider"] or (LOCAL if local else family.settings().provider)
    info = PROVIDERS.get(provider)
    if provider == LOCAL and "language" in values:
        values.setdefault("voice", values["language"])  # a voice of espeak-ng is a language
    if info is not None:
        values = {**info.default_options(family.settings().sample_rate), **values}
    promotion = {name.removeprefix("promotion_"): values.pop(name) for name in PROMOTION if name in values}
    if promotion:
        values["promotion"] = PromotionSettings(**promotion)
    return family.settings(scope=scope, **values)


def checked_change(rules: Rules, body: Mapping[str, object], providers: Sequence[str]) -> dict[str, object]:
    """Parse the members of a PATCH, except `profile`; raise `Refused` 400 for an invalid one, and if there is none."""
    wanted = {name: value for name, value in body.items() if name != "profile"}
    unknown = sorted(name for name in wanted if name not in rules)
    if unknown:
        shown = ", ".join(name[:40] for name in unknown[:5])
        raise Refused(400, "voice_refused", f"these settings are not known: {shown}; known: {', '.join(rules)}")
    if not wanted:
        raise Refused(400, "voice_refused", f"nothing to change; settings: {', '.join(rules)}")
    change = {name: rules[name](value, name) for name, value in wanted.items()}
    if change.get("provider", providers[0]) not in providers:
        raise Refused(400, "voice_refused", f"provider must be one of {', '.join(providers)}")
    return change


class SettingsStore:
    """Reader and writer of stored settings.

    `speaks` reports whether the local provider is usable; it is called where no provider is named.
    """

    def __init__(self, engine: Engine, config: VoiceConfig, speaks: Callable[[], Flow[bool]]) -> None:
        self._engine = engine
        self._config = config
        self._speaks = speaks
        self._changing = Lock(engine)

    def read(self, family: SettingsSection[SettingsT], name: str | None) -> Flow[SettingsT]:
        """Return the settings of the relay, overridden by those of the profile `name` if there are any."""
        config, over, scope = self._config, dict[str, object](), SettingsScope()
        stored = yield from read_yaml(self._engine, self.path_of(family))
        file = {} if isinstance(stored, Failure) else family.from_file(stored)
        base = merge_settings(file, family.from_environment(config.variables))
        if name is not None:
            profile = yield from find_profile(self._engine, config.config_path, name)
            over = profile_values(family, profile)
            scope = profile.scope if over else SettingsScope(profile=name, fallback_to_global=True)
        named = "provider" in base or "provider" in over
        return resolve_settings(family, base, over, scope, local=not named and (yield from self._speaks()))

    def path_of(self, family: SettingsSection[Any]) -> str:
        """Return the path of the relay's own file with a section."""
        return self._config.output_path if family.settings is OutputSettings else self._config.realtime_path

    def change(self, family: SettingsSection[Any], name: str | None, change: Mapping[str, object]) -> Flow[str]:
        """Set members of the section in a profile's file, or in the relay's; return the path of the file.

        Raise `Refused` 404 for an unknown profile, or a file that cannot be changed.
        """
        yield from self._changing.acquire()
        try:
            return (yield from self._change(family, name, change))
        finally:
            self._changing.release()

    def _change(self, family: SettingsSection[Any], name: str | None, change: Mapping[str, object]) -> Flow[str]:
        engine = self._engine
        path = self.path_of(family)
        shown: Mapping[str, object] = {}
        if name is not None:
            profile = yield from find_profile(engine, self._config.config_path, name)
            if profile.scope.config_scope != "profile":
                raise Refused(404, "not_found", "there is no such profile")
            path = profile.path
            if "provider" not in change and not family.from_file(profile.data):
                shown = profile_values(family, profile)  # from `tts:`, which the new section overrides

        def edits(stored: object) -> dict[str, object]:
            return {family.section: split_shared_values(family, JsonObject.of(stored), {**shown, **change})}

        yield from update_yaml(
            engine, path, edits, _unchangeable, unfit="is not YAML that can be edited: mend it by hand"
        )
        engine.log(Level.INFO, "voice settings changed", section=family.section, profile=name, fields=sorted(change))
        return path


def _unchangeable(problem: str) -> Refused:
    return Refused(404, "not_writable", f"the configuration file {problem}")
