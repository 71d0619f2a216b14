"""Selection of the configuration file by the profile that a request names (wire terminal-voice 3.2).

| requested | found                | scope     | fallback | file           |
|-----------|----------------------|-----------|----------|----------------|
| nothing   |                      | `global`  | no       | the root's     |
| `default` |                      | `profile` | no       | the root's     |
| a name    | its file is there    | `profile` | no       | the profile's  |
| a name    | no file, or bad name | `global`  | yes      | the root's     |

A file that cannot be read or parsed counts as empty.
"""

from collections.abc import Mapping

from attrs import field, frozen

from svc_proto.basics.validate import optional, text
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_yaml
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.settings import SettingsScope

__all__ = ["DEFAULT", "ConfigProfile", "find_profile", "profile_of", "profile_path"]

DEFAULT = "default"
MAX_NAME = 100  # characters
MAX_FOLDER = 255  # bytes of the name of a folder, which is the profile's name in UTF-8


@frozen(kw_only=True)
class ConfigProfile:
    """Configuration file that was selected for a profile: its scope, path and content."""

    scope: SettingsScope
    path: str
    data: JsonObject = field(repr=False)  # of the file


def profile_of(query: Mapping[str, str], body: Mapping[str, object] | None = None) -> str | None:
    """Return the profile that a request names, if any; the query overrides the body.

    Raise `Refused` 400 if the query names none and the body's member is no text.
    """
    return query.get("profile", "").strip() or (optional(body or {}, "profile", text) or "").strip() or None


def profile_path(root: str, name: str) -> str | None:
    """Return the path of a profile's file; None for a name that no profile can have."""
    if name == DEFAULT:
        return root
    plain = name.isprintable() and len(name) <= MAX_NAME and name not in (".", "..")
    if not plain or "/" in name or "\\" in name or len(name.encode("utf-8")) > MAX_FOLDER:
        return None
    return f"{root.rpartition('/')[0]}/profiles/{name}/config.yaml"


def find_profile(engine: Engine, root: str, name: str | None) -> Flow[ConfigProfile]:
    """Select and read the configuration file of the profile `name`, or else the agent's own at `root`.

    The agent's own file is used if no profile is named, or the named profile has no file.
    """
    if name is not None and (path := profile_path(root, name)) is not None:
        found = yield from read_yaml(engine, path)
        if name == DEFAULT or not isinstance(found, Failure) or found.kind is not FailureKind.NOT_FOUND:
            data = _usable(engine, path, found)
            return ConfigProfile(
                scope=SettingsScope(config_scope="profile", profile=name, config_path=path), path=path, data=data
            )
    data = _usable(engine, root, (yield from read_yaml(engine, root)))
    scope = SettingsScope(config_scope="global", profile=name, fallback_to_global=name is not None)
    return ConfigProfile(scope=scope, path=root, data=data)


def _usable(engine: Engine, path: str, found: JsonObject | Failure) -> JsonObject:
    if not isinstance(found, Failure):
        return found
    if found.kind is not FailureKind.NOT_FOUND:
        engine.log(Level.WARNING, "configuration not read", path=path, problem=found.kind.value)
    return JsonObject()
