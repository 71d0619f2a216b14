"""What the broker of a spoken turn wants done, as values; `svc_proto.voice.agent` carries it out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import field, frozen

__all__ = [
    "AnswerCall",
    "AppendInput",
    "AnswerApproval",
    "FetchApproval",
    "CancelResponse",
    "ClearInput",
    "CloseClient",
]
__all__ += [
    "CommitInput",
    "Emit",
    "EmitAudio",
    "DetachRun",
    "Transcribe",
    "LogEvent",
    "ConversationAction",
    "ProviderAction",
    "ReadAloud",
]
__all__ += ["Render", "Respond", "SendUserText", "StartRun", "StopRendering", "StopRun", "Summarize"]


# --- for the client -----------------------------------------------------------------------------------------------


@frozen
class Emit:
    """Tell the client. The session adds what all events of a kind carry (wire terminal-voice 6.5)."""

    type: str
    fields: Mapping[str, object] = field(factory=dict)


@frozen(kw_only=True)
class EmitAudio:
    """Some of what is spoken, PCM. `label` only for audio that the relay renders."""

    response_id: str | None
    data: bytes = field(repr=False)
    sample_rate: int | None = None  # Hz; None: the session's
    label: str | None = None
    extra: Mapping[str, object] = field(factory=dict)  # `delivery`, `source`


@frozen
class LogEvent:
    """For the event log alone."""

    type: str
    fields: Mapping[str, object] = field(factory=dict)


@frozen
class CloseClient:
    """Close the client's socket."""

    code: int
    reason: str


# --- for the provider ---------------------------------------------------------------------------------------------


@frozen
class AppendInput:
    """What the microphone hears, PCM at the provider's rate."""

    data: bytes = field(repr=False)


@frozen
class CommitInput:
    """The person has finished an utterance."""


@frozen
class ClearInput:
    """Forget audio that was not committed."""


@frozen
class SendUserText:
    """A text turn of the person."""

    text: str


@frozen
class Respond:
    """Ask for one response."""


@frozen
class ReadAloud:
    """Ask for exactly this text."""

    text: str


@frozen
class Summarize:
    """Ask for a spoken summary of this text."""

    text: str


@frozen
class CancelResponse:
    """Stop the response under way."""


@frozen
class AnswerCall:
    """The output of a function call; whoever sends it adds `interface`."""

    call_id: str
    output: Mapping[str, object]


# --- for the API server -------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class StartRun:
    """Begin a chat run. `call_id` names it in everything that is told of it."""

    call_id: str
    text: str
    profile: str | None = None
    session_id: str | None = None


@frozen
class StopRun:
    """Stop a chat run."""

    call_id: str


@frozen
class DetachRun:
    """Have nothing to do any more with a chat run: it goes on, and its answer is in the chat."""

    call_id: str


@frozen(kw_only=True)
class FetchApproval:
    """A tool waits: find out whether it waits for an approval."""

    call_id: str
    run_id: str
    tool_call_id: str
    message: str


@frozen(kw_only=True)
class AnswerApproval:
    """Answer a question of a run: `confirmation_id` is its call. `answer` is what the person said."""

    call_id: str
    run_id: str
    confirmation_id: str
    choice: str
    answer: str


# --- for a renderer, or an engine that listens --------------------------------------------------------------------


@frozen
class Render:
    """Speak this without the conversation."""

    response_id: str
    text: str


@frozen
class Transcribe:
    """Find out what is said in some PCM; `rate` in Hz."""

    sound: bytes = field(repr=False)
    rate: int


@frozen
class StopRendering:
    """Stop what the renderer speaks, or what the engine listens to."""


ProviderAction: TypeAlias = (
    AppendInput
    | CommitInput
    | ClearInput
    | SendUserText
    | Respond
    | ReadAloud
    | Summarize
    | CancelResponse
    | AnswerCall
)
ApiAction: TypeAlias = StartRun | StopRun | DetachRun | FetchApproval | AnswerApproval
ConversationAction: TypeAlias = (
    Emit | EmitAudio | LogEvent | CloseClient | ProviderAction | ApiAction | Render | Transcribe | StopRendering
)
