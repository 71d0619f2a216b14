"""The four functions that a realtime provider may call, and what it is told in return (wire terminal-voice 6.6).

Ids and raw machine text are left out where a model would read them aloud.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from attrs import frozen

from svc_proto.voice.realtime.mouth import SpokenAnswer
from svc_proto.voice.realtime.run import VoiceRun
from svc_proto.voice.realtime.story import RunStory

__all__ = ["Call", "CancelCall", "ConfirmCall", "RunCall", "StatusCall", "UnknownCall", "BACKGROUND"]
__all__ += ["BUSY", "completed_output", "ended_output", "queued_output", "status_output"]

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
class RunCall:
    """A real task."""

    call_id: str
    text: str
    profile: str | None = None
    session_id: str | None = None
    background: bool = False  # nobody wants to wait for it


@frozen
class StatusCall:
    """How far is it?"""

    call_id: str


@frozen
class CancelCall:
    """The model asks for a task to be stopped."""

    call_id: str


@frozen
class ConfirmCall:
    """What the person answered to a question of the run."""

    call_id: str
    confirmation_id: str
    answer: str


@frozen
class UnknownCall:
    """No function of ours, or arguments that make no sense: `output` says so."""

    call_id: str
    output: Mapping[str, object]


Call: TypeAlias = RunCall | StatusCall | CancelCall | ConfirmCall | UnknownCall


def completed_output(run: VoiceRun, answer: SpokenAnswer) -> dict[str, object]:
    """The run has answered."""
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
    """What the model is told of a task that has failed (`error`), or was stopped (`cancelled`)."""
    return {"ok": False, **why, "run_id": run.story.run_id, "session_id": run.story.session_id}


def queued_output(position: int) -> dict[str, object]:
    """What the model is told of a task that waits for another one to end."""
    return {"ok": True, "status": "queued", "position": position, "instruction": QUEUED}


def status_output(run: VoiceRun | None, queued: Sequence[str] = ()) -> dict[str, object]:
    """How far it is; `queued` are the tasks that wait for it."""
    waiting = [{"position": place, "request_preview": text} for place, text in enumerate(queued, 1)]
    story, status = (RunStory("", "", None), "idle") if run is None else (run.story, "starting")
    if run is not None and (run.live or run.answer is not None):
        status = story.status()[0] if run.live else "completed"
    question = story.confirmations.head
    return {
        "ok": True,
        "run_id": story.run_id or None,
        "status": status,
        "session_id": story.session_id,
        "pending_confirmation_id": None if question is None else question.id,
        "active_tool_name": story.active_tool_name,
        "last_tool_name": story.last_tool_name,
        "last_tool_status": story.last_tool_status,
        "last_tool_message": story.last_tool_message,
        "completed_tool_count": story.completed_tool_count,
        "queued_count": len(waiting),
        "queued_items": waiting,
    }
