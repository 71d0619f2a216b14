"""The settings as they are stored: read anew for each request, changed one at a time, comments and order kept.

A change touches its own section of one file, which is replaced as a whole, atomically.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from svc_proto.basics.errors import Refused
from svc_proto.commands import Compute, Level, WriteConfig
from svc_proto.engine.files import read_file, read_yaml
from svc_proto.engine.flow import Flow, ask
from svc_proto.engine.waits import OneAtATime
from svc_proto.facts import Failure, FailureKind
from svc_proto.voice.fields import Rules
from svc_proto.voice.profiles import find_profile
from svc_proto.voice.registry import Registry, canonical_id
from svc_proto.voice.sections import (
    OUTPUT_FAMILY,
    REALTIME_FAMILY,
    SectionFamily,
    laid_over,
    output_settings,
    profile_values,
    realtime_settings,
    with_its_own,
)
from svc_proto.voice.settings import OutputSettings, RealtimeSettings, Scope
from svc_proto.voice_config import VoiceConfig

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["StoredSettings", "checked_change"]


def checked_change(
    family: SectionFamily, rules: Rules, body: Mapping[str, object], providers: Sequence[str]
) -> dict[str, object]:
    """Read the members of a PATCH, `profile` apart. `Refused` 400."""
    wanted = {name: value for name, value in body.items() if name != "profile"}
    unknown = sorted(name for name in wanted if name not in rules)
    if unknown:
        shown = ", ".join(name[:40] for name in unknown[:5])
        raise Refused(400, "voice_refused", f"these settings are not known: {shown}; known: {', '.join(rules)}")
    if not wanted:
        raise Refused(400, "voice_refused", f"nothing to change; settings: {', '.join(rules)}")
    change = {name: rules[name](value, name) for name, value in wanted.items()}
    if "provider" in change:
        change["provider"] = canonical_id(str(change["provider"]), family.kind)
        if change["provider"] not in providers:
            raise Refused(400, "voice_refused", f"provider must be one of {', '.join(providers)}")
    return change


class StoredSettings:
    """`speaks` finds out whether this host can speak by itself; asked only where no provider is named."""

    def __init__(
        self, engine: Engine, config: VoiceConfig, registry: Registry, speaks: Callable[[], Flow[bool]]
    ) -> None:
        self._engine = engine
        self._config = config
        self._registry = registry
        self._speaks = speaks
        self._changing = OneAtATime(engine)

    def output(self, name: str | None) -> Flow[OutputSettings]:
        """Of speech output, for a profile or the relay."""
        base, over, scope, local = yield from self._layers(OUTPUT_FAMILY, name)
        return output_settings(base, over, scope, self._registry, local=local)

    def realtime(self, name: str | None) -> Flow[RealtimeSettings]:
        """Of realtime, for a profile or the relay."""
        base, over, scope, local = yield from self._layers(REALTIME_FAMILY, name)
        return realtime_settings(base, over, scope, self._registry, local=local)

    def path_of(self, family: SectionFamily) -> str:
        """The relay's own file."""
        return self._config.output_path if family is OUTPUT_FAMILY else self._config.realtime_path

    def change(self, family: SectionFamily, name: str | None, change: Mapping[str, object]) -> Flow[str]:
        """Set members of the section of a profile's file, or of the relay's; the path of the file.

        `Refused` 404 for a profile that is not there, or a file that cannot be changed.
        """
        yield from self._changing.enter()
        try:
            return (yield from self._change(family, name, change))
        finally:
            self._changing.leave()

    def _layers(
        self, family: SectionFamily, name: str | None
    ) -> Flow[tuple[dict[str, object], dict[str, object], Scope, bool]]:
        """The relay's settings, what the profile says over them, where that comes from, whether this host speaks."""
        config = self._config
        stored = yield from read_yaml(self._engine, self.path_of(family))
        base = {} if isinstance(stored, Failure) else family.from_file(stored)
        base = laid_over(base, family.from_environment(config.variables))
        over: dict[str, object] = {}
        scope = Scope()
        if name is not None:
            profile = yield from find_profile(self._engine, config.config_path, name)
            over = profile_values(family, profile, self._registry)
            if over:
                path = profile.path if profile.scope == "profile" else None
                scope = Scope(
                    config_scope=profile.scope, profile=name, fallback_to_global=profile.fallback, config_path=path
                )
            else:
                scope = Scope(profile=name, fallback_to_global=True)
        named = "provider" in base or "provider" in over
        local = not named and (yield from self._speaks())
        return base, over, scope, local

    def _change(self, family: SectionFamily, name: str | None, change: Mapping[str, object]) -> Flow[str]:
        engine = self._engine
        path = self.path_of(family)
        shown: Mapping[str, object] = {}
        if name is not None:
            profile = yield from find_profile(engine, self._config.config_path, name)
            if profile.scope != "profile":
                raise Refused(404, "not_found", "there is no such profile")
            path = profile.path
            if "provider" not in change and not family.from_file(profile.data):
                shown = profile_values(family, profile, self._registry)  # of `tts:`, which will not count any more
        text = yield from self._read(path)
        stored = yield from ask(engine, Compute(engine.new_op(), "yaml.load", (text,)))
        whole = with_its_own(family, stored if isinstance(stored, dict) else {}, {**shown, **change}, self._registry)
        edited = yield from ask(engine, Compute(engine.new_op(), "yaml.edit", (text, {family.section: whole})))
        if not isinstance(edited, str):
            raise _unchangeable("is not YAML that can be edited: mend it by hand")
        written = yield from ask(engine, WriteConfig(engine.new_op(), path, edited))
        if isinstance(written, Failure):
            engine.log(Level.ERROR, "voice settings not written", path=path, problem=written.kind.value)
            raise _unchangeable("could not be written")
        engine.log(Level.INFO, "voice settings changed", section=family.section, profile=name, fields=sorted(change))
        return path

    def _read(self, path: str) -> Flow[str]:
        data = yield from read_file(self._engine, path)
        if isinstance(data, Failure):
            if data.kind is FailureKind.NOT_FOUND:
                return ""
            raise _unchangeable("could not be read")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise _unchangeable("is not UTF-8: mend it by hand") from None


def _unchangeable(problem: str) -> Refused:
    return Refused(404, "not_writable", f"the configuration file {problem}")
