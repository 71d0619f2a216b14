"""What the broker wants the provider to be told, in the provider's own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from svc_proto.basics import strict_json
from svc_proto.voice.agent.instructions import summary_instructions
from svc_proto.voice.contract import Dialect, Message
from svc_proto.voice.realtime.orders import (
    AnswerCall,
    CancelResponse,
    ClearInput,
    CommitInput,
    ReadAloud,
    Respond,
    SayText,
    Summarize,
)

__all__ = ["ProviderOrder", "provider_words"]

ProviderOrder: TypeAlias = (
    CommitInput | ClearInput | SayText | Respond | ReadAloud | Summarize | CancelResponse | AnswerCall
)


def provider_words(order: ProviderOrder, dialect: Dialect, interface: Mapping[str, object]) -> list[Message]:
    """The messages of an order. The output of a function says what the session is, too (wire terminal-voice 6.6)."""
    match order:
        case CommitInput():
            return dialect.commit()
        case ClearInput():
            return dialect.clear()
        case SayText(text=text):
            return dialect.say(text)
        case Respond():
            return dialect.respond()
        case ReadAloud(text=text):
            return dialect.read_aloud(text)
        case Summarize(text=text):
            return dialect.respond(summary_instructions(text))
        case CancelResponse():
            return dialect.cancel()
        case AnswerCall(call_id=call_id, output=output):
            return dialect.function_output(call_id, strict_json.dumps({**output, "interface": interface}))
        case _:
            assert_never(order)
