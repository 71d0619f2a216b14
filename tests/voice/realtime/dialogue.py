"""A native conversation with a clock, and its dialogues for tests.

    the person speaks up [silent]
        answering
        commit                     -> CancelResponse response.done(response_id=r1, cancelled=True) CommitInput
        text r1 and                -> nothing
        response_done r1 cancelled

The first line is a title; brackets in it hold a name of `TALKS`. Each other line is a step: a name of `WAYS`, a word of
`ConversationDialogue.do`, or a method of the conversation with its arguments (`-` is None). Behind the arrow stand all
actions that follow, or `nothing`: the type of an event without `voice.`, with `~` before that of a log event, or the
name of another action.
Brackets hold the compared fields, and `*8` stands for eight in a row. Without an arrow nothing is compared. A line
that begins with an arrow continues the line before it.

The scripts are the files `*.dialogue` below `tests`. In a script, `$name` stands for a value that the test gives.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from string import Template
from typing import Any, Protocol, TypeVar

from attrs import asdict

from svc_proto.machines.confirmations import Confirmation
from svc_proto.schema import chat_events as events
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.provider_interface import (
    AudioDelta,
    AudioDone,
    ProviderErrorEvent,
    ResponseDone,
    ResponseStarted,
    SpokenTextDelta,
    TranscriptFinal,
)
from svc_proto.voice.realtime.actions import ConversationAction, Emit, EmitAudio, LogEvent
from svc_proto.voice.realtime.function_calls import CancelCall, ConfirmCall, RunTaskCall, StatusCall, UnknownCall
from svc_proto.voice.realtime.native_conversation import NativeConversation
from svc_proto.voice.realtime.run_events import ApiRunStarted, ChatSessionBound, ToolEventReceived, VoiceRunEvent
from svc_proto.voice.realtime.turn_taking import TurnTakingState
from svc_proto.voice.realtime.voice_run import FOREGROUND, BackgroundPolicy
from svc_proto.voice.realtime.voice_runs import VoiceRuns

TESTS = Path(__file__).parents[2]
ANSWER = "The disk is 62 percent used."
TALKS: dict[str, dict[str, Any]] = {
    "background": {"rules": BackgroundPolicy(slow_tools=("terminal", "spawn"))},
    "silent": {"rules": BackgroundPolicy(spoken_handoff=False)},
    "progress": {"rules": BackgroundPolicy(promote_after=100.0, progress_after=5.0, progress_repeat=5.0)},
    "background progress": {"rules": BackgroundPolicy(spoken_handoff=False, progress_after=10.0)},
    "early progress": {"rules": BackgroundPolicy(spoken_handoff=False, progress_after=1.0)},
    "nothing spoken": {"result_delivery": "visual_only"},
    "nothing spoken in the background": {"result_delivery": "visual_only", "rules": BackgroundPolicy()},
    "speak_when_idle": {"result_delivery": "speak_when_idle"},
    "notify_then_speak": {"result_delivery": "notify_then_speak"},
    "hermes": {"word": "hermes"},
}
WAYS = {  # steps to a state of a turn, or to a state of the background
    "idle": "",
    "hearing": "commit",
    "answering": "begins r1 'how full is the disk'",
    "consulted": "answering; call r1 status k0; response_done r1",
    "acknowledging": "answering; audio r1; call r1 run k1",
    "working": "answering; call r1 run k1; response_done r1; after 0.75; run_event k1 ApiRunStarted n1",
    "waiting": "working; answers k1",
    "judging": "waiting; on_client_drained k1",
    "rendering": "judging; text r2 'What was the question?'; response_done r2",
    "quiet": "working; after 6; speaks h1",  # one run is in the background
    "unheard": "quiet; answers k1",
    "aside": "quiet; ask k2 ls; after 0.75",
    "queued": "quiet; ask k7 ls background",
    "away": "quiet; on_client_left",
    "answered while away": "away; answers k1",
    # common abbreviations
    "begins": "add_user_text {1!r}; response_started {0}",
    "speaks": "response_started {0}; response_done {0}",
    "ask": "begins r-{0} {1!r}; call r-{0} run {0} {1!r} {2}; response_done r-{0}",
    "answers": "run_event {0} AnswerComplete ANSWER; run_ended {0}",
    "keeps talking": "; ".join(["on_user_speech; after 1.375"] * 8),
    "heard": "on_client_drained -; text {0} ANSWER; response_done {0}",
}
STATES = ("idle", "hearing", "answering", "consulted", "working", "waiting", "judging", "rendering")  # of a turn
CALLS: dict[str, Any] = {
    "run": lambda call, text="df", mode="", profile=None: RunTaskCall(
        call_id=call, text=text, profile=profile, background=mode == "background"
    ),
    "status": StatusCall,
    "cancel": CancelCall,
    "confirm": ConfirmCall,
    "unknown": lambda call: UnknownCall(call, {"ok": False}),
}
RATE = 24_000  # Hz, the provider's sample rate
SAYS: dict[str, Any] = {
    "text": SpokenTextDelta,
    "transcribed": TranscriptFinal,
    "response_started": ResponseStarted,
    "audio_done": AudioDone,
    "response_done": ResponseDone,
}
EVENTS: dict[str, Any] = {
    "ApiRunStarted": ApiRunStarted,
    "ChatSessionBound": ChatSessionBound,
    "MessageBegan": lambda name: events.MessageStarted(JsonObject(id=name)),
    "AnswerDelta": lambda delta: events.AssistantDelta(delta=delta),
    "ThoughtDelta": lambda delta: events.ToolProgress(delta=delta, tool_name=events.THINKING),
    "ApprovalAsked": lambda name: Confirmation(name, "May I?"),
    "ToolBegan": lambda call, name, *more: ToolEventReceived(call, name, events.ToolStarted(**_of_a_command(*more))),
    "ToolWaits": lambda call, name, *more: ToolEventReceived(call, name, events.ToolPending(**_of_a_command(*more))),
    "ToolFailed": lambda call, name: ToolEventReceived(call, name, events.ToolFailed(error="no")),
    "ToolSaid": lambda call, name: ToolEventReceived(call, name, events.ToolProgress(delta="…")),
    "ToolSucceeded": lambda call, name, said=None: ToolEventReceived(
        call, name, events.ToolCompleted(result_preview=said)
    ),
    "AnswerComplete": lambda content: events.AssistantCompleted(content=content),
    "Interrupted": lambda content="": events.AssistantCompleted(content=content, interrupted=True),
}
_TIMES = re.compile(r"([^\s(]+(?:\([^)]*\))?)\*(\d+)(?=\s|$)")
_ORDER = re.compile(r"([^\s(]+)(?:\((.*?)\))?(?=\s|$)")


class DialoguePartner(Protocol):
    """Object under test that performs the lines of a dialogue."""

    def do(self, line: str) -> Sequence[ConversationAction]:
        """Perform one line and return the actions that follow."""
        ...


PartnerT = TypeVar("PartnerT", bound=DialoguePartner)


def names(orders: Sequence[ConversationAction]) -> list[str]:
    """Return the names of actions as a dialogue prints them."""
    return [_name(order) for order in orders]


class ConversationDialogue:
    """Native conversation that performs the lines of a dialogue at given times."""

    def __init__(self, *, word: str = "svc", rules: BackgroundPolicy = FOREGROUND, **more: str) -> None:
        numbers = count(1)
        new_id = lambda: str(next(numbers))  # noqa: E731 - one of many arguments
        about: dict[str, Any] = {"session_id": "c1", "rules": rules, **more}
        runs = VoiceRuns(word=word, speakable=str, **about)
        self.broker = NativeConversation(runs, lambda: self.now, rate=RATE, new_id=new_id)
        self.now = 100.0

    @property
    def state(self) -> str:
        """Return the state of turn-taking, or of playback while an answer is played."""
        floor = self.broker.floor.state
        return self.broker.playback.state.value if floor is TurnTakingState.TELLING else floor.value

    def after(self, seconds: float) -> list[ConversationAction]:
        """Let time pass and call `advance` at each deadline of the conversation."""
        end, orders = self.now + seconds, []
        while (due := self.broker.due) is not None and due <= end:
            self.now = max(self.now, due)
            self.broker.advance()
            orders += self.ordered()
        self.now = end
        return orders

    def ordered(self) -> list[ConversationAction]:
        """Return the actions since the last call."""
        orders = list(self.broker.out)
        self.broker.out.clear()
        return orders

    def do(self, line: str) -> list[ConversationAction]:  # noqa: C901 - one row for each kind of line
        """Perform one line and return the actions that follow."""
        broker = self.broker
        word, *arguments = _words(line)
        told = [None if argument == "-" else argument.replace("ANSWER", ANSWER) for argument in arguments]
        if (way := WAYS.get(line) or WAYS.get(word)) is not None:
            steps = way.format(*arguments, "").split(";")
            return [order for step in steps if step for order in self.do(step.strip())]
        match word:
            case "after":
                return self.after(float(arguments[0]))
            case "audio":
                broker.on_provider_event(
                    AudioDelta(arguments[0], bytes(int(arguments[1])) if arguments[1:] else b"\1\0")
                )
            case _ if word in SAYS:
                broker.on_provider_event(SAYS[word](*told))
            case "problem":
                broker.on_provider_event(ProviderErrorEvent(arguments[0], **dict.fromkeys(arguments[1:], True)))
            case "call":
                broker.call(arguments[0], CALLS[arguments[1]](*told[2:]))
            case "commit":
                broker.uncommitted = 0 if arguments else RATE
                broker.commit(None)
            case "rendered_audio":
                broker.rendered_audio(arguments[0], EmitAudio(response_id="", data=b"\1\0"))
            case "rendered":
                broker.rendered(arguments[0], {}, *arguments[1:])
            case "run_event":
                event: VoiceRunEvent = EVENTS[arguments[1]](*told[2:])
                broker.run_event(arguments[0], event)
            case "run_failed" if arguments[2:]:
                broker.run_failed(arguments[0], arguments[1], error_code=arguments[2])
            case "postpone":
                broker.floor.postpone(float(arguments[0]))
            case "on_user_speech" | "on_client_left" | "on_client_back":  # events of the microphone and of the client
                getattr(broker.runs, word)(self.now)
            case "is":
                over = (broker.due, broker.busy) == (None, False)
                assert over if line == "is over" else self.state == line.removeprefix("is "), (self.state, broker.due)
            case _:
                getattr(broker, word)(*told)
        return self.ordered()


def read_dialogues(*paths: str, **values: object) -> dict[str, list[str]]:
    """Return the dialogues of these scripts below `tests`, without the suffix of the files."""
    texts = [(TESTS / f"{path}.dialogue").read_text("utf-8") for path in paths]
    return dialogues(Template("\n".join(texts)).safe_substitute(values))


def dialogues(text: str) -> dict[str, list[str]]:
    """Return the lines of each dialogue by its title."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        if not line.startswith(" "):
            assert line not in found, line
            found[line] = lines = []
        elif line.lstrip().startswith("->"):
            lines[-1] += line.strip().removeprefix("->") if " ->" in lines[-1] else f" {line.strip()}"
        else:
            lines.append(line.strip())
    return found


def talk_of(title: str) -> ConversationDialogue:
    """Return a conversation with the options that the title names in brackets."""
    return ConversationDialogue(**TALKS.get(title.partition("[")[2].rstrip("]"), {}))


def play(lines: Sequence[str], partner: PartnerT) -> PartnerT:
    """Perform a dialogue and compare the actions of each line that has an arrow; return the partner."""
    for line in lines:
        happens, arrow, expected = line.partition(" ->")
        orders = partner.do(happens)
        expected = _TIMES.sub(lambda times: " ".join([times[1]] * int(times[2])), expected.replace("ANSWER", ANSWER))
        wanted = _ORDER.findall(expected) if expected.strip() != "nothing" else []
        if arrow:
            shown = [_visible_fields(order, fields) for order, (_, fields) in zip(orders, wanted, strict=False)]
            shown += names(orders[len(wanted) :])
            assert shown == [f"{name}({fields})" if fields else name for name, fields in wanted], happens
    return partner


@cache
def _words(line: str) -> tuple[str, ...]:
    return tuple(shlex.split(line))


def _of_a_command(command: str | None = None) -> dict[str, Any]:
    return {} if command is None else {"args": JsonObject(command=command), "preview": command}


def _name(order: ConversationAction) -> str:
    if isinstance(order, Emit | LogEvent):
        return f"{'~' if isinstance(order, LogEvent) else ''}{order.type.removeprefix('voice.')}"
    return type(order).__name__


def _visible_fields(order: ConversationAction, wanted: str) -> str:
    """Return an action with those of its fields that are compared."""
    fields: Mapping[str, Any] = order.fields if isinstance(order, Emit | LogEvent) else asdict(order, recurse=False)
    fields = {**fields, **fields.get("output", {}), **fields.get("extra", {})}
    if not wanted:
        return _name(order)
    listed = (field.partition("=")[0].strip() for field in wanted.split(","))
    return f"{_name(order)}({', '.join(f'{name}={fields.get(name)}' for name in listed)})"
