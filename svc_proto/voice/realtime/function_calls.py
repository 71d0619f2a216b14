"""The four functions that a realtime provider may call: schemas, arguments and outputs (wire terminal-voice 6.6).

Their names begin with the product's word (0.1); calls with either word are accepted.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from attrs import frozen

from svc_proto.basics import strict_json
from svc_proto.basics.brand import BRANDS
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.realtime.answer_playback import SpokenAnswer
from svc_proto.voice.realtime.run_events import RunEventMapper
from svc_proto.voice.realtime.voice_run import VoiceRun
from svc_proto.wire.limits import MAX_TEXT

__all__ = ["ConversationCall", "CancelCall", "ConfirmCall", "RunTaskCall", "StatusCall", "UnknownCall", "BACKGROUND"]
__all__ += ["BUSY", "completed_output", "ended_output", "function_schemas", "parse_call", "queued_output"]
__all__ += ["status_output", "tool_surface"]

MAX_ARGUMENTS = 32 * 1024  # bytes of JSON
MAX_WORD = 256  # characters of an id or a name
KINDS = ("run_task", "get_status", "cancel", "confirm")
ANSWERS = ("allow", "allow_once", "deny", "cancel")
MODES = ("chat", "run", "background")
RUN_TASK = """\
Hand a task or a question to the agent on the person's own computer, which has tools, files, memory and their phone. \
Use it for everything that needs more than small talk."""
ASIDE = 'Leave out, or "background" when the person does not want to wait for it.'
MAX_SUMMARY = 1_200  # characters
THEN = "You will be asked to speak this result in a moment. Say nothing before that."
HAND_OFF = (
    "The task goes on in the background. Tell the person so in one short sentence, and that you will tell its result. "
    "Do not start it again, and never guess its result."
)
QUEUED = (
    "Another task is under way. This one is kept and begins when that one is done. Tell the person so in one short "
    "sentence. Do not start it again."
)
TOO_MANY = "Too many tasks wait already, and this one was not taken. Tell the person to ask again later."
BACKGROUND = {"ok": True, "status": "running_in_background", "instruction": HAND_OFF}
BUSY = {"ok": False, "error": "busy", "instruction": TOO_MANY}


@frozen(kw_only=True)
class RunTaskCall:
    """Call that starts a task on the API server."""

    call_id: str
    text: str
    profile: str | None = None
    session_id: str | None = None
    background: bool = False  # the user does not wait for it


@frozen
class StatusCall:
    """Call for the status of a run."""

    call_id: str


@frozen
class CancelCall:
    """Call that stops the turn's run and those in the background, and drops queued runs and pending answers."""

    call_id: str


@frozen
class ConfirmCall:
    """Call with the user's answer to a confirmation request of the run."""

    call_id: str
    confirmation_id: str
    answer: str


@frozen
class UnknownCall:
    """Call of an unknown function, or with invalid arguments; `output` has the error."""

    call_id: str
    output: Mapping[str, object]


ConversationCall: TypeAlias = RunTaskCall | StatusCall | CancelCall | ConfirmCall | UnknownCall


def completed_output(run: VoiceRun, answer: SpokenAnswer) -> dict[str, object]:
    """Return the function's output for a completed run."""
    spoken = answer.spoken
    return {
        "ok": True,
        "status": "completed",
        "run_id": answer.run_id,
        "session_id": run.story.session_id,
        "profile": run.profile,
        "text": spoken,
        "answer": spoken,
        "summary": spoken[:MAX_SUMMARY],
        "raw_text_omitted": spoken != answer.text,
        "tool_count": run.story.completed_tool_count,
        "last_tool_name": run.story.last_tool_name,
        "spoken_response": spoken,
        "provider_instruction": THEN,
    }


def ended_output(run: VoiceRun, **why: object) -> dict[str, object]:
    """Return the function's output for a task that has failed (`error`) or was stopped (`cancelled`)."""
    return {"ok": False, **why, "run_id": run.story.run_id, "session_id": run.story.session_id}


def queued_output(position: int) -> dict[str, object]:
    """Return the function's output for a task that waits for another one to end."""
    return {"ok": True, "status": "queued", "position": position, "instruction": QUEUED}


def status_output(run: VoiceRun | None, queued: Sequence[str] = ()) -> dict[str, object]:
    """Return the output of the status function for a run, `idle` without one; `queued` are the tasks that wait."""
    waiting = [{"position": place, "request_preview": text} for place, text in enumerate(queued, 1)]
    story, status = (RunEventMapper("", "", None), "idle") if run is None else (run.story, "starting")
    if run is not None and (run.live or run.answer is not None):
        status = story.status()[0] if run.live else "completed"
    question = story.confirmations.head
    return {
        "ok": True,
        "run_id": story.run_id or None,
        "status": status,
        "session_id": story.session_id,
        "pending_confirmation_id": None if question is None else question.id,
        **story.tools(),
        "last_tool_status": story.last_tool_status,
        "last_tool_message": story.last_tool_message,
        "queued_count": len(waiting),
        "queued_items": waiting,
    }


def tool_surface(word: str) -> list[str]:
    """Return the names of the functions that the model may call."""
    return [f"{word}_{kind}" for kind in KINDS]


def function_schemas(word: str) -> tuple[Mapping[str, object], ...]:
    """Return the function schemas in the form that both providers accept (wire terminal-voice 6.6)."""
    text = {"type": "string"}
    described = {
        "run_task": (
            RUN_TASK,
            {
                "text": {**text, "description": "The whole task in the person's own words, with what it refers to."},
                "profile": {**text, "description": "Leave out unless the person names a profile."},
                "session_id": {**text, "description": "Leave out."},
                "mode": {**text, "enum": list(MODES), "description": ASIDE},
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


def parse_call(call_id: str, name: str, arguments: str, word: str) -> ConversationCall:
    """Parse a function call; invalid input results in an `UnknownCall` with the reason."""
    kind = next((name.removeprefix(f"{brand}_") for brand in BRANDS if name.startswith(f"{brand}_")), "")
    if kind not in KINDS:
        error = f"there is no function {name[:MAX_WORD]!r}"
        return UnknownCall(call_id, {"ok": False, "error": error, "allowed_tools": tool_surface(word)})
    try:
        given = JsonObject.load(arguments or "{}", max_bytes=MAX_ARGUMENTS)
    except strict_json.JsonError as error:
        return _bad(call_id, f"the arguments are no JSON object: {error}")
    match kind:
        case "run_task":
            text = given.first_text("text")
            if not text:
                return _bad(call_id, "text is required")
            session_id, profile = given.first_text("session_id")[:MAX_WORD], given.first_text("profile")[:MAX_WORD]
            return RunTaskCall(
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
            return ConfirmCall(
                call_id, given.first_text("confirmation_id")[:MAX_WORD], given.first_text("answer")[:MAX_WORD]
            )


def _bad(call_id: str, error: str) -> UnknownCall:
    return UnknownCall(call_id, {"ok": False, "error": error})
