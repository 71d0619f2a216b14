"""Values of enumerations equal their names, with the exceptions listed here."""

import inspect
import pkgutil
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module

import svc_proto

OTHERWISE = {
    "RelayAccess": {
        "VOICE_CONFIG": "voice:config", "VOICE_STT": "voice:stt", "VOICE_TTS": "voice:tts",
        "VOICE_REALTIME": "voice:realtime", "VOICE_OUTPUT_SOCKET": "voice:tts, while speech output is on",
        "VOICE_REALTIME_SOCKET": "voice:realtime, while realtime is on"
    },
    "AttachmentState": {"UNAVAILABLE": "unavailable card"},
    "AttachmentTrigger": {
        "WAIT_FOR_TAP": "on cellular, auto-fetch off", "UNREACHABLE": "relay offline", "FORBIDDEN": "sandbox violation",
        "MISSING": "file not found"
    },
    "CodeState": {"NONE": "(none)"},
    "ConfirmationState": {"NONE": "(none)"},
    "MasterTrigger": {"TURN_ON_INACCESSIBLE": "turn on without accessibility", "COMMAND": "any command"},
    "MediaState": {"NONE": "(none)"},
    "RunState": {"WAITING": "waiting_for_approval"},
    "McpServerState": {"DOWN": "not started", "WAITING": "failed"},
    "SignalName": {"HANGUP": "SIGHUP", "INTERRUPT": "SIGINT", "TERMINATE": "SIGTERM", "KILL": "SIGKILL"},
}  # fmt: skip


def enumerations() -> Iterator[type[Enum]]:
    """Yield the enumerations of the core."""
    for found in pkgutil.walk_packages(svc_proto.__path__, "svc_proto."):
        for kind in vars(import_module(found.name)).values():
            if inspect.isclass(kind) and issubclass(kind, Enum) and kind.__module__ == found.name:
                yield kind


def otherwise(kind: type[Enum]) -> dict[str, str]:
    """Return the members of an enumeration whose text is not their name; case, blanks and hyphens do not count."""
    words = {each.name: each.value for each in kind if isinstance(each.value, str)}
    return {name: word for name, word in words.items() if re.sub("[ -]", "_", word).lower() != name.lower()}


def test_member_values_equal_their_names() -> None:
    assert {kind.__name__: found for kind in enumerations() if (found := otherwise(kind))} == OTHERWISE


def tables() -> Iterator[tuple[str, set[str], set[str]]]:
    """Yield the modules with a state table in their docstring.

    Each is a tuple of its name, the words of the table, and the members of the module's enumerations.
    """
    for found in pkgutil.walk_packages(svc_proto.__path__, "svc_proto."):
        module = import_module(found.name)
        rows = re.findall(r"^\|([^|]+)\|([^|]+)\|([^|]+)\|", module.__doc__ or "", re.MULTILINE)
        if rows and rows[0][0].strip() == "state":
            words = {word for row in rows[2:] for cell in row for word in re.findall(r"\b[A-Z_]{2,}\b", cell)}
            kinds = [kind for kind in vars(module).values() if inspect.isclass(kind) and issubclass(kind, Enum)]
            yield found.name, words, {name for kind in kinds for name in kind.__members__}


def test_tables_in_docstrings_name_members() -> None:
    found = list(tables())
    assert len(found) > 20
    assert {name: words - members for name, words, members in found if words - members} == {}
