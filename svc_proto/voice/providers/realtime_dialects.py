"""Realtime dialects of OpenAI and xAI: their messages, and the mapping of their events.

Members of a provider's message that are of another type than expected count as absent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Mapping
from typing import ClassVar, TypeVar, assert_never
from urllib.parse import quote

from svc_proto.basics import strict_json
from svc_proto.basics.resampler import Resampler
from svc_proto.engine.http_client import bearer_header
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.provider_interface import (
    AudioDelta,
    AudioDone,
    FunctionCall,
    Message,
    ProviderErrorEvent,
    ProviderEvent,
    ProviderReady,
    RealtimeOptions,
    ResponseDone,
    ResponseStarted,
    SpokenTextDelta,
    TranscriptDelta,
    TranscriptFinal,
)
from svc_proto.voice.provider_keys import ProviderCredentials
from svc_proto.voice.providers.errors import safe_excerpt_of
from svc_proto.voice.realtime import actions
from svc_proto.voice.realtime.actions import ProviderAction

__all__ = ["RealtimeDialect", "OpenAiDialect", "XaiDialect"]

T = TypeVar("T")
MAX_REMEMBERED = 512  # ids of each kind
MAX_ID = 256  # characters; longer ones count as absent
OPENAI_RATE = 24_000  # Hz: its PCM has no other, wire 6.11
TRANSCRIPTION_MODEL = "gpt-4o-mini-transcribe"
READ_ALOUD = (
    "Read the following text aloud, word for word, in the language that it is written in. "
    "Add nothing, leave nothing out, answer nothing in it.\n\n"
)
SUMMARIZE = (
    "The task is done. Tell the person its result now, in one to three plain sentences, with its facts and "
    "figures and nothing else. Call no function. The result:\n\n"
)
BENIGN = ("no active response", "cancellation failed")  # wire 6.5: phones ignore these, too
BENIGN_CODES = ("response_cancel_not_active",)

_READY = ("session.created", "session.updated", "conversation.created")
_HEARD = "input_audio_transcription."
_TEXT = (
    "response.output_audio_transcript.delta",
    "response.output_text.delta",
    "response.text.delta",
    "response.audio_transcript.delta",
)
_STATUSES = ("completed", "cancelled", "failed", "incomplete")


class RealtimeDialect(ABC):
    """Dialect of a provider over its WebSocket, without IO; one object for each socket, since it stores ids."""

    RATE: ClassVar[int] = 0  # Hz of the vendor's PCM; 0: the session's rate

    def __init__(self, access: ProviderCredentials, options: RealtimeOptions) -> None:
        self._access = access
        self._options = options
        self._rate = self.RATE or options.sample_rate
        self._ears = Resampler(options.sample_rate, self._rate)
        self._resamplers: dict[str, Resampler] = {}  # by response
        self._started: dict[str, None] = {}
        self._called: dict[str, None] = {}
        self._names: dict[str, tuple[str, str]] = {}  # call id and name of a function call, by item
        self._told: dict[str, str] = {}  # the transcript so far, by item

    @property
    def url(self) -> str:
        """The URL of the WebSocket, with the model."""
        joint = "&" if "?" in self._access.url else "?"
        return f"{self._access.url}{joint}model={quote(self._options.model, safe='')}"

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """The header fields with the key."""
        return bearer_header(self._access.key)

    # --- messages to the provider -------------------------------------------------------------------------------

    def setup(self) -> Message:
        """Return the first message; turn detection is off, because the client ends the turns."""
        session = self._session()
        if self._options.tools:
            session["tools"] = [dict(tool) for tool in self._options.tools]
        return {"type": "session.update", "session": session}

    def encode(self, order: ProviderAction) -> Message | None:
        """Encode an action as a message; return None for sound of less than a sample.

        The messages for a user's text and for a function's output request no response.
        """
        match order:
            case actions.AppendInput(pcm):
                sound = b64encode(self._ears.feed(pcm)).decode("ascii")
                return {"type": "input_audio_buffer.append", "audio": sound} if sound else None
            case actions.CommitInput() | actions.ClearInput():
                self._ears = Resampler(self._options.sample_rate, self._rate)
                return {"type": f"input_audio_buffer.{'commit' if isinstance(order, actions.CommitInput) else 'clear'}"}
            case actions.SendUserText(text):
                content = [{"type": "input_text", "text": text}]
                return _item({"type": "message", "role": "user", "content": content})
            case actions.AnswerCall(call_id, output):
                words = strict_json.dumps(output)
                return _item({"type": "function_call_output", "call_id": call_id, "output": words})
            case actions.Respond():
                return _create({})
            case actions.ReadAloud(text):
                return self._aloud(text)
            case actions.Summarize(text):
                return _create({"instructions": SUMMARIZE + text})
            case actions.CancelResponse():
                return {"type": "response.cancel"}
            case _:
                assert_never(order)

    # --- events of the provider ---------------------------------------------------------------------------------

    def parse(self, message: Mapping[str, object]) -> tuple[ProviderEvent, ...]:
        """Map a message to events; irrelevant ones give none."""
        message = JsonObject.of(message)
        kind = message.text("type")
        if kind in _READY:
            return (ProviderReady(message.get_object("session").text("model") or None),)
        if _HEARD in kind:
            return self._transcript_event(kind.rpartition(".")[2], message)
        if kind == "error":
            return (self._problem(message.get_object("error") or message),)
        if kind.startswith("response.") or kind == "conversation.item.done":
            return self._response(kind, message)
        return ()

    @abstractmethod
    def _session(self) -> Message:
        """Return the session's set-up without the tools."""

    @abstractmethod
    def _aloud(self, text: str) -> Message:
        """Return the message by which exactly this text is read out, as the provider supports it (wire 6.6 step 5)."""

    def _transcript_event(self, kind: str, message: JsonObject) -> tuple[ProviderEvent, ...]:
        item = _id(message, "item_id")
        match kind:
            case "delta":
                delta = message.text("delta")
                return (TranscriptDelta(delta),) if delta else ()
            case "updated":  # cumulative
                text, before = message.text("transcript"), self._told.get(item, "")
                _remember(self._told, item, text)
                delta = text.removeprefix(before) if text.startswith(before) else ""
                return (TranscriptDelta(delta),) if delta else ()
            case "completed" | "done":
                self._told.pop(item, None)
                return (TranscriptFinal((message.text("transcript", "text")).strip()),)
            case "failed":
                return (self._problem(message.get_object("error")),)
        return ()

    def _response(self, kind: str, message: JsonObject) -> tuple[ProviderEvent, ...]:
        response_id = _id(message, "response_id")
        match kind:
            case "response.created":
                return self._start(_id(message.get_object("response"), "id"))
            case "response.output_item.added":
                self._name(message.get_object("item"))
                return self._start(response_id)
            case "response.output_audio.delta" | "response.audio.delta":
                pcm = self._resampler(response_id).feed(message.binary("delta"))
                return (AudioDelta(response_id, pcm),) if pcm else ()
            case "response.output_audio.done" | "response.audio.done":
                self._resamplers.pop(response_id, None)
                return (AudioDone(response_id),)
            case "response.function_call_arguments.done":
                return self._arguments(response_id, message)
            case "response.output_item.done" | "conversation.item.done":
                return self._call(response_id, message.get_object("item"))
            case "response.done":
                return self._done(message.get_object("response"), response_id)
        if kind in _TEXT and (delta := message.text("delta")):
            return (SpokenTextDelta(response_id, delta),)
        return ()

    def _start(self, response_id: str) -> tuple[ProviderEvent, ...]:
        if not response_id or response_id in self._started:
            return ()
        _remember(self._started, response_id, None)
        return (ResponseStarted(response_id),)

    def _resampler(self, response_id: str) -> Resampler:
        resampler = self._resamplers.get(response_id)
        if resampler is None:
            resampler = Resampler(self._rate, self._options.sample_rate)
            _remember(self._resamplers, response_id, resampler)
        return resampler

    def _name(self, item: JsonObject) -> None:
        call_id, name = _id(item, "call_id"), item.text("name")
        if item.text("type") == "function_call" and call_id and name:
            _remember(self._names, _id(item, "id") or call_id, (call_id, name))

    def _arguments(self, response_id: str, message: JsonObject) -> tuple[ProviderEvent, ...]:
        call_id, name = self._names.get(_id(message, "item_id"), ("", ""))
        call = {"type": "function_call", "call_id": _id(message, "call_id") or call_id}
        call |= {"name": message.text("name") or name, "arguments": message.text("arguments")}
        return self._call(response_id, JsonObject(call))  # a call without a name follows with its item

    def _call(self, response_id: str, item: JsonObject) -> tuple[ProviderEvent, ...]:
        call_id, name = _id(item, "call_id"), item.text("name")
        if item.text("type") != "function_call" or not call_id or not name or call_id in self._called:
            return ()
        if item.get("status") == "in_progress":
            return ()
        _remember(self._called, call_id, None)
        return (FunctionCall(response_id, call_id, name, item.text("arguments")),)

    def _done(self, response: JsonObject, response_id: str) -> tuple[ProviderEvent, ...]:
        response_id = _id(response, "id") or response_id
        self._resamplers.pop(response_id, None)
        status = response.text("status")
        events: list[ProviderEvent] = []
        for item in response.objects("output") if status != "cancelled" else ():
            events += self._call(response_id, item)
        if status == "failed":
            events.append(self._problem(response.get_object("status_details", "error")))
        return (*events, ResponseDone(response_id, status if status in _STATUSES else "completed"))

    def _problem(self, error: JsonObject) -> ProviderErrorEvent:
        said = error.text("message", "error")
        low = said.lower()
        words = safe_excerpt_of(said, self._access.key)
        return ProviderErrorEvent(
            words or f"{self._access.endpoint} reported an error",
            benign=error.text("code") in BENIGN_CODES or any(phrase in low for phrase in BENIGN),
            idle="timed out" in low and "inactivity" in low,
        )


class OpenAiDialect(RealtimeDialect):
    """Dialect of OpenAI's realtime API; PCM at another rate than 24 kHz is resampled here."""

    RATE = OPENAI_RATE

    def _session(self) -> Message:
        options = self._options
        sound: Message = {"type": "audio/pcm", "rate": OPENAI_RATE}
        session: Message = {
            "type": "realtime",
            "model": options.model,
            "instructions": options.instructions,
            "output_modalities": ["audio"],
            "audio": {
                "input": {
                    "format": sound,
                    "turn_detection": None,
                    "transcription": {"model": TRANSCRIPTION_MODEL} if options.transcribe else None,
                },
                "output": {"format": sound, "voice": options.voice},
            },
        }
        return session | ({"tool_choice": "auto"} if options.tools else {})

    def _aloud(self, text: str) -> Message:
        """Return a request with instructions to read the text out: OpenAI has no other means."""
        return _create({"instructions": READ_ALOUD + text, "tool_choice": "none"})


class XaiDialect(RealtimeDialect):
    """Dialect of xAI: PCM at the session's rate, and a message by which a text is read out without the model."""

    def _session(self) -> Message:
        options = self._options
        sound: Message = {"format": {"type": "audio/pcm", "rate": options.sample_rate}}
        return {
            "voice": options.voice,
            "instructions": options.instructions,
            "turn_detection": None,
            "audio": {"input": sound, "output": sound},
        }

    def _aloud(self, text: str) -> Message:
        """Return a `force_message`, which is read out without the model."""
        content = [{"type": "output_text", "text": text}]
        return _item({"type": "force_message", "role": "assistant", "content": content})


def _remember(known: dict[str, T], name: str, value: T) -> None:
    if len(known) >= MAX_REMEMBERED and name not in known:
        del known[next(iter(known))]
    known[name] = value


def _item(item: Message) -> Message:
    return {"type": "conversation.item.create", "item": item}


def _create(response: Message) -> Message:
    return {"type": "response.create", "response": response}


def _id(message: JsonObject, name: str) -> str:
    value = message.text(name)
    return value if len(value) <= MAX_ID else ""
