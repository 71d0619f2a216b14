"""Types of the members that this system reads from its two YAML files (wire api 9, terminal-voice 3.2).

A member of another type counts as absent where it is read. A check at the start reports each, since `voice: 12` looks
as right to its writer as `voice: "12"`. Members of other programs are not checked.
"""

from collections.abc import Mapping
from typing import TypeAlias

from attrs import frozen

from svc_proto.basics.validate import FALSE_WORDS, TRUE_WORDS

__all__ = ["MemberTypeProblem", "find_wrong_types"]

TEXT, NUMBER, SWITCH, LIST, TEXT_OR_LIST = "text", "a number", "true or false", "a list", "text or a list"
IDENTITY = "text or a whole number"
Schema: TypeAlias = "Mapping[str, str | Schema]"
ANY = "*"  # every other name
PLAIN = "="  # type of a value that is no object, where both are allowed

_PROVIDER: Schema = {"voice_id": TEXT, "voice": TEXT, "model": TEXT, "model_id": TEXT, "language": TEXT}
_VOICE: Schema = {
    **_PROVIDER,
    "enabled": SWITCH,
    "provider": TEXT,
    "sample_rate": NUMBER,
    ANY: {PLAIN: "", **_PROVIDER, "sample_rate": NUMBER},
}
_ENDPOINT: Schema = {
    PLAIN: TEXT,
    "default": TEXT,
    "name": TEXT,
    "provider": TEXT,
    "base_url": TEXT,
    "api_key": TEXT,
    "api_mode": TEXT,
    "max_tokens": NUMBER,
    "context_length": NUMBER,
}
_SCHEMA: Schema = {
    "model": _ENDPOINT,
    "agent": {
        "system_prompt": TEXT,
        "personalities": {ANY: {PLAIN: TEXT, "system_prompt": TEXT, "tone": TEXT, "style": TEXT}},
    },
    "display": dict.fromkeys(("personality", "agent_name", "assistant_name", "display_name", "name", "skin"), TEXT),
    "gateway": {"api_server": {"max_concurrent_runs": NUMBER}},
    "platforms": {
        "api_server": {
            "extra": {
                "host": TEXT,
                "port": NUMBER,
                "key": IDENTITY,
                "cors_origins": TEXT_OR_LIST,
                "model_name": TEXT,
                "model_routes": {
                    ANY: {"model": TEXT, "base_url": TEXT, "api_key": TEXT, "context_length": NUMBER},
                },
            }
        }
    },
    "mcp_servers": {
        ANY: {
            "enabled": SWITCH,
            "command": TEXT,
            "args": LIST,
            "env": {},
            "cwd": TEXT,
            "url": TEXT,
            "headers": {},
            "timeout": NUMBER,
            "connect_timeout": NUMBER,
            "trust": SWITCH,
        }
    },
    "tts": _VOICE,
    "stt": _VOICE,
    "voice_output": {
        **_VOICE,
        "codec": TEXT,
        "text_normalization": SWITCH,
        "fallback_enabled": SWITCH,
        "auto_speech_tags": SWITCH,
    },
    "realtime_voice": {**_VOICE, "promotion_enabled": SWITCH, "spoken_handoff": SWITCH},
}


@frozen
class MemberTypeProblem:
    """A member of the wrong type: its path, and what it is and must be, without its value."""

    path: tuple[str, ...]
    text: str


def find_wrong_types(found: Mapping[str, object]) -> list[MemberTypeProblem]:
    """Return the members of a parsed file whose types are wrong, in the file's order; null is right for all."""
    return _problems(found, _SCHEMA, ())


def _problems(found: Mapping[str, object], schema: Schema, path: tuple[str, ...]) -> list[MemberTypeProblem]:
    problems: list[MemberTypeProblem] = []
    for name, value in found.items():
        wanted = schema.get(name, schema.get(ANY, ""))
        if value is None or wanted == "":
            continue
        place = (*path, name)
        if not isinstance(wanted, str):
            if isinstance(value, Mapping):
                problems += _problems(value, wanted, place)
                continue
            wanted = str(wanted.get(PLAIN, "an object"))
        if not _is_of_type(value, wanted):
            quotable = wanted in (TEXT, IDENTITY) and not isinstance(value, Mapping | list)
            hint = ": put it in quotes" if quotable else ""
            problems.append(MemberTypeProblem(place, f"{'.'.join(place)} is {_kind(value)}, not {wanted}{hint}"))
    return problems


def _is_of_type(value: object, wanted: str) -> bool:
    word = str(value).strip().lower()
    if wanted == SWITCH:
        return isinstance(value, bool | str | int) and word in (*TRUE_WORDS, *FALSE_WORDS)
    if wanted == NUMBER:
        whole = isinstance(value, int | float) and not isinstance(value, bool)
        return whole or (isinstance(value, str) and word.isascii() and word.replace(".", "", 1).isdecimal())
    if wanted == TEXT_OR_LIST:
        return isinstance(value, str | list)
    if wanted == LIST:
        return isinstance(value, list)
    if wanted == IDENTITY:
        return isinstance(value, str | int) and not isinstance(value, bool)
    return wanted == "" or (wanted == TEXT and isinstance(value, str))


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "an object"
