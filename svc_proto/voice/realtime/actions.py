"""Actions that a conversation wants its session to do, as values; `svc_proto.voice.agent` performs them."""

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
    """Event for the client; the session adds the members that all events have (wire terminal-voice 6.5)."""

    type: str
    fields: Mapping[str, object] = field(factory=dict)


@frozen(kw_only=True)
class EmitAudio:
    """Piece of audio for the client, PCM; `label` is set only for audio that the relay renders."""

    response_id: str | None
    data: bytes = field(repr=False)
    sample_rate: int | None = None  # Hz; None: the session's
    label: str | None = None
    extra: Mapping[str, object] = field(factory=dict)  # `delivery`, `source`


@frozen
class LogEvent:
    """Entry for the event log alone; the client does not receive it."""

    type: str
    fields: Mapping[str, object] = field(factory=dict)


@frozen
class CloseClient:
    """Order to end the session; `code` and `reason` are for the client's socket."""

    code: int
    reason: str


# --- for the provider ---------------------------------------------------------------------------------------------


@frozen
class AppendInput:
    """Microphone audio for the provider, PCM at the session's rate."""

    data: bytes = field(repr=False)


@frozen
class CommitInput:
    """Order to commit the appended audio as one utterance of the user."""


@frozen
class ClearInput:
    """Order to discard audio that was not committed."""


@frozen
class SendUserText:
    """Text of the user for the provider, in place of speech."""

    text: str


@frozen
class Respond:
    """Request for one response of the provider."""


@frozen
class ReadAloud:
    """Request that the provider reads out exactly this text."""

    text: str


@frozen
class Summarize:
    """Request that the provider summarizes this text aloud."""

    text: str


@frozen
class CancelResponse:
    """Order to stop the provider's current response."""


@frozen
class AnswerCall:
    """Output of a function call; `NativeMode` adds `interface`."""

    call_id: str
    output: Mapping[str, object]


# --- for the API server -------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class StartRun:
    """Order to start a chat run; `call_id` identifies the run in later actions and in calls of the conversation."""

    call_id: str
    text: str
    profile: str | None = None
    session_id: str | None = None


@frozen
class StopRun:
    """Order to stop a chat run."""

    call_id: str


@frozen
class DetachRun:
    """Order to stop observing a chat run: the run continues, and its answer is stored in the chat."""

    call_id: str


@frozen(kw_only=True)
class FetchApproval:
    """Order to find out whether a run waits for an approval, which is then taken for one of its pending tool call."""

    call_id: str
    run_id: str
    tool_call_id: str
    message: str


@frozen(kw_only=True)
class AnswerApproval:
    """Answer to a confirmation request of a run.

    `confirmation_id` is the id of the request, usually that of its tool call. `choice` is the answer in the API
    server's form, `answer` that of the client.
    """

    call_id: str
    run_id: str
    confirmation_id: str
    choice: str
    answer: str


# --- for a renderer, or a local provider that transcribes ------------------------------------------------------------


@frozen
class Render:
    """Order to render this text outside the provider's conversation."""

    response_id: str
    text: str


@frozen
class Transcribe:
    """Order to transcribe some PCM; `rate` in Hz."""

    sound: bytes = field(repr=False)
    rate: int


@frozen
class StopRendering:
    """Order to stop the renderer's speech, or the transcription."""


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
