"""Steps of the actions of plain sentences: tool calls, reads of the phone, and replies in the sentence's language."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from svc_proto.agent.phone_consent import StatusSource
from svc_proto.agent.sentences import Sentence, SentenceParser
from svc_proto.agent.tools.owner_question import ASK_USER, YES
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject

__all__ = ["SentenceSteps", "ToolRunner"]

ToolRunner: TypeAlias = "Callable[[str, Mapping[str, object]], Flow[str]]"
"""Runs a tool and returns its result; the result of a failed call begins with `error: `."""

FAILED = "error: "


class SentenceSteps:
    """Base class of sentence actions: tool calls, reads of the phone, and replies."""

    def __init__(self, phone: StatusSource, parser: SentenceParser) -> None:
        self._phone = phone
        self.parser = parser

    def _act(
        self,
        sentence: Sentence,
        call: ToolRunner,
        name: str,
        given: Mapping[str, object],
        done: str = "",
    ) -> Flow[str]:
        """Run a tool and return the reply about its failure, else `done`, else the usual reply for a success."""
        problem = yield from self._try(sentence, call, name, given)
        return problem or done or self._reply(sentence, "done")

    def _try(self, sentence: Sentence, call: ToolRunner, name: str, given: Mapping[str, object]) -> Flow[str]:
        """Run a tool; return a reply with the reason of its failure, or an empty text if it succeeded."""
        return self._problem(sentence, (yield from call(name, given)))

    def _problem(self, sentence: Sentence, result: str) -> str:
        """Return a reply with the reason of a tool's failure, or an empty text for the result of a success."""
        if not result.startswith(FAILED):
            return ""
        return self._reply(sentence, "failed", reason=result.removeprefix(FAILED).partition("\n")[0])

    def _rows(self, method: str, path: str, given: Mapping[str, object], key: str) -> Flow[list[JsonObject]]:
        answer = yield from self._phone.call(method, path, given)
        body = JsonObject.of(answer.body)
        if answer.status >= 400:
            raise ToolError(body.text("error") or str(answer.status))
        return body.objects(key)

    def _is_confirmed(self, call: ToolRunner, question: str) -> Flow[bool]:
        """Ask the owner, and report whether the answer is yes."""
        return (yield from call(ASK_USER, {"question": question})) == YES

    def _reply(self, sentence: Sentence, key: str, **values: str) -> str:
        return self.parser.reply(sentence.language, key, **values)
