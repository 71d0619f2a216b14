"""Values of enumerations equal their names, with the exceptions listed here."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module

import svc_proto

OTHERWISE = {
    "ApiAccess": {"LOCAL_OR_KEY": "here or key"},
    "ApprovalState": {"EXPIRED": "lapsed"},
    "BudgetTrigger": {"BUDGET_EXCEEDED": "crowd", "BUDGET_AVAILABLE": "room"},
    "ChannelClientState": {"CLOSED": "away", "OPENING": "coming", "OPEN": "here"},
    "ClientState": {"UNAUTHENTICATED": "waiting", "STORING_SESSION": "saving"},
    "ConsentState": {"REQUESTED": "asked", "CODE_ISSUED": "issued", "EXCHANGED": "traded"},
    "ConsentTrigger": {"ISSUE_CODE": "collect", "EXCHANGE": "trade", "EXPIRE": "elapse"},
    "KeepaliveTrigger": {"RECEIVED": "heard"},
    "PhoneState": {"BACKING_OFF": "resting"},
    "RelayConnectionTrigger": {"AUTHENTICATED": "welcomed"},
    "ResponseState": {"STARTED": "heard"},
    "ServiceFault": {"CONNECTION_LOST": "cut", "SERVER_ERROR": "ill", "UNAVAILABLE": "lacking"},
    "TerminalTrigger": {"GRANT_EXPIRED": "lapse"},
    "RelayAccess": {
        "VOICE_CONFIG": "voice:config",
        "VOICE_STT": "voice:stt",
        "VOICE_TTS": "voice:tts",
        "VOICE_REALTIME": "voice:realtime",
        "VOICE_OUTPUT_SOCKET": "voice:tts, while speech output is on",
        "VOICE_REALTIME_SOCKET": "voice:realtime, while realtime is on",
    },
    "AttachmentState": {"UNAVAILABLE": "unavailable card"},
    "AttachmentTrigger": {
        "WAIT_FOR_TAP": "on cellular, auto-fetch off",
        "UNREACHABLE": "relay offline",
        "FORBIDDEN": "sandbox violation",
        "MISSING": "file not found",
    },
    "CodeState": {"NONE": "(none)"},
    "ConfirmationState": {"NONE": "(none)"},
    "MasterTrigger": {"TURN_ON_INACCESSIBLE": "turn on without accessibility", "COMMAND": "any command"},
    "MediaState": {"NONE": "(none)"},
    "RunState": {"WAITING": "waiting_for_approval"},
    "McpServerState": {"DOWN": "not started", "WAITING": "failed"},
    "SignalName": {"HANGUP": "SIGHUP", "INTERRUPT": "SIGINT", "TERMINATE": "SIGTERM", "KILL": "SIGKILL"},
}


def enumerations() -> Iterator[type[Enum]]:
    """Yield the enumerations of the core."""
    for found in pkgutil.walk_packages(svc_proto.__path__, "svc_proto."):
        for kind in vars(import_module(found.name)).values():
            if inspect.isclass(kind) and issubclass(kind, Enum) and kind.__module__ == found.name:
                yield kind


def otherwise(kind: type[Enum]) -> dict[str, str]:
    """Return the members with another value than their name; numbers are ignored."""
    words = {each.name: each.value for each in kind if isinstance(each.value, str)}
    return {name: word for name, word in words.items() if re.sub("[ -]", "_", word).lower() != name.lower()}


def test_member_values_equal_their_names() -> None:
    assert {kind.__name__: found for kind in enumerations() if (found := otherwise(kind))} == OTHERWISE
