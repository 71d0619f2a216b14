"""The four functions that a realtime model may call: their schemas, and their arguments as the broker takes them.

Names begin with the product's word (wire terminal-voice 0.1); calls are accepted by either.
"""

from __future__ import annotations

from collections.abc import Mapping

from svc_proto.basics import strict_json
from svc_proto.basics.brand import BRANDS
from svc_proto.schema.members import Members
from svc_proto.voice.realtime.calls import Call, CancelCall, ConfirmCall, RunCall, StatusCall, UnknownCall
from svc_proto.wire.limits import MAX_TEXT

__all__ = ["function_schemas", "parse_call", "tool_surface"]

MAX_ARGUMENTS = 32 * 1024  # bytes of JSON
MAX_WORD = 256  # characters of an id or a name
KINDS = ("run_task", "get_status", "cancel", "confirm")
ANSWERS = ("allow", "allow_once", "deny", "cancel")
MODES = ("chat", "run", "background")
RUN_TASK = """\
Hand a task or a question to the agent on the person's own computer, which has tools, files, memory and their phone. \
Use it for everything that needs more than small talk."""
BACKGROUND = 'Leave out, or "background" when the person does not want to wait for it.'


def tool_surface(word: str) -> list[str]:
    """The names of the functions that the model may call."""
    return [f"{word}_{kind}" for kind in KINDS]


def function_schemas(word: str) -> tuple[Mapping[str, object], ...]:
    """What a provider is told of them, in the form that both take (wire terminal-voice 6.6)."""
    text = {"type": "string"}
    described = {
        "run_task": (
            RUN_TASK,
            {
                "text": {**text, "description": "The whole task in the person's own words, with what it refers to."},
                "profile": {**text, "description": "Leave out unless the person names a profile."},
                "session_id": {**text, "description": "Leave out."},
                "mode": {**text, "enum": list(MODES), "description": BACKGROUND},
            },
            ["text"],
        ),
        "get_status": (
            "How far the task is that is under way. Use it when the person asks about its progress.",
            {"run_id": {**text, "description": "Leave out for the current task."}},
            [],
        ),
        "cancel": (
            "Stop the task that is under way. Use it only when the person wants that.",
            {"run_id": {**text, "description": "Leave out for the current task."}},
            [],
        ),
        "confirm": (
            "Pass on the person's answer to a question of the task that is under way. Never answer in their place.",
            {"confirmation_id": text, "answer": {**text, "enum": list(ANSWERS)}},
            ["confirmation_id", "answer"],
        ),
    }
    return tuple(
        {
            "type": "function",
            "name": f"{word}_{kind}",
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
        }
        for kind, (description, properties, required) in described.items()
    )


def parse_call(call_id: str, name: str, arguments: str, word: str) -> Call:
    """What the model calls. What makes no sense is a call too: its output says why."""
    kind = next((name.removeprefix(f"{brand}_") for brand in BRANDS if name.startswith(f"{brand}_")), "")
    if kind not in KINDS:
        error = f"there is no function {name[:MAX_WORD]!r}"
        return UnknownCall(call_id, {"ok": False, "error": error, "allowed_tools": tool_surface(word)})
    try:
        given = Members.load(arguments or "{}", max_bytes=MAX_ARGUMENTS)
    except strict_json.JsonError as error:
        return _bad(call_id, f"the arguments are no JSON object: {error}")
    match kind:
        case "run_task":
            text = given.word("text")
            if not text:
                return _bad(call_id, "text is required")
            session_id, profile = given.word("session_id")[:MAX_WORD], given.word("profile")[:MAX_WORD]
            return RunCall(
                call_id=call_id,
                text=text[:MAX_TEXT],
                profile=profile or None,
                session_id=session_id or None,
                background=given.get("mode") == "background",
            )
        case "get_status":
            return StatusCall(call_id)
        case "cancel":
            return CancelCall(call_id)
        case _:
            return ConfirmCall(call_id, given.word("confirmation_id")[:MAX_WORD], given.word("answer")[:MAX_WORD])


def _bad(call_id: str, error: str) -> UnknownCall:
    return UnknownCall(call_id, {"ok": False, "error": error})
