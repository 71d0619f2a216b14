"""From configuration sections to settings: what is said where, and what follows from what is not said.

The relay's own settings come from the environment, then its file, then defaults. A profile's section is laid over
them (wire terminal-voice 3.2). A model and a voice belong to a provider: whoever names another provider and no model or
voice gets that provider's first. Where no provider is named at all, this host's own engines speak if they are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from attrs import frozen

from svc_proto.schema.members import Members
from svc_proto.voice.fields import FILE_ONLY, OUTPUT, PROMOTION, REALTIME, Rules, lenient
from svc_proto.voice.profiles import Profile
from svc_proto.voice.registry import LOCAL, Registry, canonical_id, is_renderer
from svc_proto.voice.settings import OutputSettings, Promotion, RealtimeSettings, Scope

__all__ = [
    "OUTPUT_FAMILY",
    "REALTIME_FAMILY",
    "SectionFamily",
    "laid_over",
    "output_settings",
    "profile_values",
    "realtime_settings",
    "with_its_own",
]

_ENV_NAMES = {"optimize_streaming_latency": "OPTIMIZE_LATENCY"}  # where it is not the setting's own, wire 4.1
_OF_A_PROVIDER = ("model", "voice", "sample_rate")
_TTS_NAMES = ("provider", "model", "voice", "sample_rate")  # what is taken of `tts:`


@frozen(kw_only=True)
class SectionFamily:
    """One block of settings."""

    section: str  # of a configuration file
    kind: str  # what a vendor's bare name stands for
    prefix: str  # of its variables
    rules: Rules
    default: str  # provider

    def from_environment(self, variables: Mapping[str, str]) -> dict[str, object]:
        """What the environment says."""
        said = {name: variables.get(self.prefix + _ENV_NAMES.get(name, name.upper())) for name in self.rules}
        return self._canonical(lenient(self.rules, said))

    def from_file(self, holder: Mapping[str, object]) -> dict[str, object]:
        """What the section of a file says; empty if there is none."""
        return self._canonical(lenient(self.rules, self._flat(Members.of(holder).inner(self.section))))

    def flat_tts(self, holder: Mapping[str, object]) -> dict[str, object]:
        """What `tts:` says that concerns speech output."""
        found = self._canonical(lenient(self.rules, self._flat(Members.of(holder).inner("tts"))))
        return {name: value for name, value in found.items() if name in _TTS_NAMES}

    def _flat(self, found: Mapping[str, object]) -> dict[str, object]:
        """The block of the provider first, then what stands beside it."""
        provider = found.get("provider")
        flat: dict[str, object] = {}
        if isinstance(provider, str):
            wanted = canonical_id(provider, self.kind)
            for name, value in found.items():  # `openai:` is a block of `openai_tts`, too
                if isinstance(value, dict) and canonical_id(str(name), self.kind) == wanted:
                    flat.update(cast("dict[str, object]", value))
        flat.update({name: value for name, value in found.items() if not isinstance(value, dict)})
        for name in ("model", "voice"):
            if flat.get(name) is None:
                flat[name] = flat.get(f"{name}_id")
        return flat

    def _canonical(self, values: dict[str, object]) -> dict[str, object]:
        if isinstance(provider := values.get("provider"), str):
            values["provider"] = canonical_id(provider, self.kind)
        return values


OUTPUT_FAMILY = SectionFamily(
    section="voice_output",
    kind="tts",
    prefix="RELAY_VOICE_OUTPUT_",
    rules=OUTPUT,
    default="xai_tts",
)
REALTIME_FAMILY = SectionFamily(
    section="realtime_voice",
    kind="realtime",
    prefix="RELAY_REALTIME_VOICE_",
    rules={**REALTIME, **PROMOTION, **FILE_ONLY},
    default="xai_realtime",
)


def profile_values(family: SectionFamily, profile: Profile, registry: Registry) -> dict[str, object]:
    """What a profile says of a family; empty: nothing that can be used."""
    values = family.from_file(profile.data)
    if values or family is not OUTPUT_FAMILY:
        return values
    values = family.flat_tts(profile.data)
    info = registry.find(str(values.get("provider")))
    return values if info is not None and is_renderer(info) else {}


def laid_over(file: Mapping[str, object], variables: Mapping[str, object]) -> dict[str, object]:
    """The relay's own settings: what the environment says over its file."""
    named = file.get("provider")
    other = named is not None and variables.get("provider", named) != named
    kept = {name: value for name, value in file.items() if not (other and name in _OF_A_PROVIDER)}
    return {**kept, **variables}


def with_its_own(
    family: SectionFamily, holder: Mapping[str, object], change: Mapping[str, object], registry: Registry
) -> dict[str, object]:
    """A change of a file's section. One of the provider alone takes along what stands beside the last one's name, and
    what the new one does not know: a voice, a model.
    """
    said = Members.of(holder).inner(family.section)
    info = registry.find(str(change.get("provider")))
    before = said.get("provider")
    if info is None or not isinstance(before, str) or canonical_id(before, family.kind) == info.id:
        return dict(change)
    blocks = {name: value for name, value in said.items() if isinstance(value, dict)}
    own = family.from_file({family.section: {**blocks, "provider": info.id}})
    whole = dict(change)
    for name, known in (("model", info.models), ("voice", info.voices)):
        value = said.get(name) or said.get(f"{name}_id")
        if value is not None and value not in known and name not in change:
            whole[name] = own.get(name, known[0])
    return whole


def output_settings(
    base: Mapping[str, object], over: Mapping[str, object], scope: Scope, registry: Registry, *, local: bool
) -> OutputSettings:
    """Of speech output; `local` is whether this host can speak."""
    values = _complete(OUTPUT_FAMILY, base, over, registry, local=local)
    return OutputSettings(scope=scope, **values)


def realtime_settings(
    base: Mapping[str, object], over: Mapping[str, object], scope: Scope, registry: Registry, *, local: bool
) -> RealtimeSettings:
    """Of the realtime lab and agent."""
    values = _complete(REALTIME_FAMILY, base, over, registry, local=local)
    promotion = {name.removeprefix("promotion_"): values.pop(name) for name in PROMOTION if name in values}
    return RealtimeSettings(scope=scope, promotion=Promotion(**promotion), **values)


def _complete(
    family: SectionFamily, base: Mapping[str, object], over: Mapping[str, object], registry: Registry, *, local: bool
) -> dict[str, Any]:
    values: dict[str, Any] = {**base, **over}
    if "provider" in over and over["provider"] != base.get("provider"):
        for name in _OF_A_PROVIDER:
            if name not in over:
                values.pop(name, None)
    provider = values.setdefault("provider", LOCAL if local else family.default)
    info = registry.find(provider)
    if provider == LOCAL and "language" in values:
        values.setdefault("voice", values["language"])  # a voice of espeak-ng is a language
    if info is not None:
        values.setdefault("model", info.models[0])
        values.setdefault("voice", info.voices[0])
        if "sample_rate" not in values and 24_000 not in info.sample_rates:
            values["sample_rate"] = info.sample_rates[0]
    return values
