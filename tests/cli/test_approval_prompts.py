from __future__ import annotations

from typing import Any

import pytest

from svc_proto.cli.approval_prompts import MAX_TEXT, ApprovalPrompts
from svc_proto.cli.voice_chat_io import InputEnded, LineTooLong, TypedLine, VoiceChatEvent
from svc_proto.commands import Notify
from svc_proto.schema.chat_events import ApprovalRequest, parse_event
from svc_proto.schema.json_object import JsonObject

ALL = ["once", "session", "always", "deny"]


class Bench:
    """Approval prompts with the notifications and answers that they cause."""

    def __init__(self) -> None:
        self.now = 100.0
        self.told: list[Notify] = []
        self.answers: list[tuple[str, str]] = []

        def answer(call_id: str, choice: str) -> None:
            self.answers.append((call_id, choice))

        self.questions = ApprovalPrompts(lambda: self.now, self.told.append, answer)

    def shown(self) -> list[dict[str, Any]]:
        told, self.told[:] = self.told[:], []
        assert all(tell.event == "question" for tell in told)
        return [dict(tell.fields) for tell in told]

    def ask(self, call_id: object, **data: object) -> list[dict[str, Any]]:
        members = {"call_id": call_id, "command": f"do {call_id}", "choices": ALL, **data}
        asked = parse_event("approval.request", JsonObject(members))
        assert isinstance(asked, ApprovalRequest)
        self.questions.show(asked)
        return self.shown()

    def type(self, news: VoiceChatEvent | str) -> list[dict[str, Any]]:
        self.questions.answer_line(TypedLine(news) if isinstance(news, str) else news)
        return self.shown()

    def after(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        *((word, "once") for word in ("y", "YES")),
        *((word, word) for word in ("session", "always")),
        *((line, "deny") for line in ("n", "", "yes please", LineTooLong())),
    ],
)
def test_line_answers_the_prompt(typed: VoiceChatEvent | str, choice: str) -> None:
    bench = Bench()
    (shown,) = bench.ask("a", description="Costs\x1b[2Jmoney.")
    assert shown == {"text": "Costs [2Jmoney.\ndo a", "choices": ["once", "session", "always", "deny"]}
    assert bench.type(typed) == []
    assert bench.answers == [("a", choice)]
    assert bench.type("y") == []  # no prompt is open
    assert len(bench.answers) == 1


def test_unoffered_choice_denies() -> None:
    bench = Bench()
    (shown,) = bench.ask("a", choices=["once", "deny"])
    assert shown["choices"] == ["once", "deny"]
    bench.type("always")
    assert len(bench.ask("b", choices="odd")) == 1
    bench.after(2.0)
    bench.type("y")
    assert bench.answers == [("a", "deny"), ("b", "once")]


def test_early_or_late_line_does_not_answer_the_next_prompt() -> None:
    bench = Bench()
    bench.type("y")
    assert len(bench.ask("a")) == 1
    assert bench.ask("b") == []
    bench.questions.resolve("a")  # expired
    assert [shown["text"] for shown in bench.shown()] == ["do b"]
    bench.after(1.9)
    assert [shown["text"] for shown in bench.type("y")] == ["do b"]
    assert bench.answers == []
    bench.after(0.1)
    bench.type("y")
    assert bench.answers == [("b", "once")]
    bench.questions.resolve("b")
    assert bench.shown() == []
    bench.ask("c")
    assert [shown["text"] for shown in bench.type("y")] == ["do c"]
    assert bench.answers == [("b", "once")]


def test_queued_prompt_is_resolved_silently() -> None:
    bench = Bench()
    bench.ask("a")
    bench.ask("b")
    bench.questions.resolve("b")
    assert bench.shown() == []
    bench.type("y")
    assert bench.answers == [("a", "once")]


def test_end_of_input_denies() -> None:
    bench = Bench()
    bench.ask("a")
    bench.ask("b")
    bench.type(InputEnded())
    assert bench.answers == [("a", "deny"), ("b", "deny")]
    assert bench.ask("c") == []
    assert bench.answers[-1] == ("c", "deny")


def test_invalid_prompts() -> None:
    bench = Bench()
    assert bench.ask(7) == []
    (shown,) = bench.ask("a", command="x" * (MAX_TEXT + 1))
    assert len(shown["text"]) == MAX_TEXT
