"""A model's server that fails in all its ways: which failures are hidden, by how many questions, and what is told."""

from __future__ import annotations

import json
from typing import Any

from attrs import frozen

from fuzz.audit import Audit
from fuzz.audits.heard import Events, Listener
from fuzz.audits.refusals import refused
from fuzz.part import Reply
from fuzz.upstream import SHOWN
from fuzz.world import MODEL_KEY

__all__ = ["TROUBLES"]

CHATS = "/api/sessions"
TRIES = 4
LONGEST = 60.0  # s; a Retry-After beyond that is not waited for
STREAM = "text/event-stream"
NOT_SOON = "999"
Members = dict[str, Any]


def _said(words: str) -> bytes:
    return json.dumps({"error": {"message": words, "type": "x"}}).encode()


def _event(value: object) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def _words(text: str, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None, **more}]}


@frozen
class _Row:
    """A reply, and what comes of it."""

    reply: Reply
    again: bool = False  # it is asked once more, and nobody is told
    tells: tuple[str, ...] = ()  # in the words for people
    partial: str = ""  # said before it failed
    whole: str | None = None  # it is an answer all the same
    without: str = ""  # it is asked again without this
    instead: str = ""  # but with this


REFUSED: tuple[_Row, ...] = (
    *(_Row(Reply(status=each, body=_said("no way")), tells=(str(each), "no way")) for each in (400, 401, 403, 404)),
    *(_Row(Reply(status=each, body=_said("not so")), tells=(str(each), "not so")) for each in (402, 405, 413, 422)),
    *(_Row(Reply(status=each), again=True, tells=(str(each),)) for each in (408, 409, 425, 429, 500, 502, 503, 529)),
    *(_Row(Reply(status=each), tells=(str(each), "redirect")) for each in (301, 302, 307, 308)),
    *(_Row(Reply(status=each, after="7"), again=True, tells=(str(each),)) for each in (429, 503)),
    *(_Row(Reply(status=each, after="60"), again=True, tells=(str(each),)) for each in (429, 500)),
    *(_Row(Reply(status=429, after=each), tells=("429",)) for each in ("61", NOT_SOON)),
    _Row(Reply(status=429, after="soon"), again=True, tells=("429",)),
    _Row(Reply(status=401, body=_said(f"the key {MODEL_KEY} is bad")), tells=("401",)),
    _Row(Reply(status=500, body=b"<html>oh"), again=True, tells=("500",)),
)
BROKEN: tuple[_Row, ...] = (
    _Row(Reply(kind=STREAM, body=_event({"error": {"message": "busy now"}})), again=True, tells=("busy now",)),
    _Row(Reply(kind=STREAM, body=_event(b"{nonsense")), again=True),
    _Row(Reply(kind=STREAM, body=b""), again=True),
    _Row(Reply(kind=STREAM, body=b": hm\n\n", cut=True), again=True),
    _Row(Reply(kind=STREAM, body=_event(_words("half "))), partial="half "),
    _Row(Reply(kind=STREAM, body=_event(_words("half ")) + _event(b"nonsense")), partial="half "),
    _Row(Reply(kind=STREAM, body=_event(_words("half ")), cut=True), partial="half "),
    _Row(
        Reply(kind=STREAM, body=_event(_words("half ")) + _event({"error": {"message": f"no {MODEL_KEY} more"}})),
        partial="half ",
        tells=("more",),
    ),
    _Row(Reply(kind=STREAM, body=_event(_words("whole", finish_reason="stop"))), whole="whole"),
    _Row(Reply(kind=STREAM, body=_event(_words("whole", finish_reason="stop")), cut=True), whole="whole"),
    _Row(Reply(kind=STREAM, body=b": hm\n\nevent: x\n" + _event(_words("whole")) + _event(b"[DONE]")), whole="whole"),
    _Row(Reply(body=b'{"choices":[{"message":{"content":"in one"},"finish_reason":"stop"}]}'), whole="in one"),
    _Row(Reply(body=b'{"choices":[{"message":{"content":[{"type":"text","text":"part"}]}}]}'), whole="part"),
    _Row(Reply(body=b'{"fine":true}')),
    _Row(Reply(kind="text/html", body=b"<p>welcome")),
)
PICKY: tuple[_Row, ...] = (
    *(_Row(Reply(status=each, body=_said("sim does not support tools")), without="tools") for each in (400, 422)),
    _Row(Reply(status=400, body=_said("this model doesn't support function calling")), without="tools"),
    _Row(Reply(status=400, body=_said("unknown member stream_options")), without="stream_options"),
    _Row(
        Reply(status=400, body=_said("use 'max_completion_tokens' instead")),
        without="max_tokens",
        instead="max_completion_tokens",
    ),
)


class _Trouble:
    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.text = f"plain: {audit.word()}"
        self.heard = Listener(audit, self.text)

    def play(self, rows: list[_Row], way: str) -> None:
        """One turn whose model's server answers so at first; behind that it is well."""
        audit, upstream = self.audit, self.audit.world.upstream
        upstream.replies[self.text] = [row.reply for row in rows]
        events, path, body = Events(), "/v1/runs", {"input": self.text, "stream": True}
        chat = ""
        if way.startswith("chat"):
            chat = audit.new_chat()
            path, body = f"{CHATS}/{chat}/{way}", {"message": self.text}
        elif way == "completion":
            path, body = "/v1/chat/completions", {"messages": [{"role": "user", "content": self.text}], "max_tokens": 9}
        caller = audit.answer(audit.begin_api("POST", path, body, None if way == "chat" else events), 600.0)
        upstream.replies.pop(self.text)
        self.heard.stop()
        used, end = self.due(rows)
        audit.same(len(self.heard.times), used, f"how often a model is asked: {[row.reply for row in rows]!r:.300}")
        self.check_pauses(rows)
        self.check_members(rows)
        words = f"You said {self.text} " if end is None else end.whole if end.whole is not None else end.partial
        self.check_told(way, caller, events, words, end if end is not None and end.whole is None else None)
        if chat:
            stored = audit.rows_of(chat)
            due = [("user", self.text), *([("assistant", words)] if words else [])]
            audit.same([(row["role"], row["content"]) for row in stored], due, "what is stored")

    def due(self, rows: list[_Row]) -> tuple[int, _Row | None]:
        """How often it is asked, and by which row it ends; None: it is well in the end."""
        for number, row in enumerate(rows, start=1):
            if not row.without and (not row.again or number >= TRIES):
                return number, row
        return len(rows) + 1, None

    def check_pauses(self, rows: list[_Row]) -> None:
        pause = 1.0
        for number, (before, after) in enumerate(zip(self.heard.times, self.heard.times[1:], strict=False)):
            row, waited = rows[number], after - before
            if row.without:
                continue
            asked = row.reply.after or ""
            low, high = (float(asked),) * 2 if asked.isdigit() else (pause / 2, pause)
            if row.reply.cut:
                low, high = low + SHOWN, high + SHOWN
            if not low - 0.01 <= waited <= high + 1.5:
                self.audit.wrong(f"behind {row.reply!r:.120} it is asked after {waited:.2f} s, not {low} to {high}")
            pause *= 2

    def check_members(self, rows: list[_Row]) -> None:
        """Each question is the one before, but for what a server does not take."""
        gone: list[_Row] = []
        first = self.heard.asked[0]
        for number, asked in enumerate(self.heard.asked):
            due = {**first}
            for row in gone:
                value = due.pop(row.without, None)
                due |= {row.instead: value} if row.instead else {}
            self.audit.same(asked, due, f"question {number + 1} of a server that takes less")
            gone += [row for row in rows[number : number + 1] if row.without]

    def check_told(self, way: str, caller: Any, events: Events, words: str, end: _Row | None) -> None:
        audit = self.audit
        problem = ""
        if way == "chat":
            if end is not None and not words:
                refused(audit, caller, 502, "agent_incomplete", None)
                problem = caller.answer.json["error"]["message"]
            else:
                told = audit.right(caller, 200)
                audit.same(told["message"]["content"], words, "an answer")
                audit.same((told["completed"], told["interrupted"]), (end is None, False), "whether it is whole")
                problem = told.get("error", "")
        elif way == "chat/stream":
            audit.right(caller, 200)
            told = "".join(data["delta"] for name, data in events.told if name == "assistant.delta")
            audit.same(told, words, "the words of a stream")
            ends = ["error", "done"] if end is not None else ["assistant.completed", "run.completed", "done"]
            audit.same(events.names[-len(ends) :], ends, "how a stream ends")
            problem = events.told[-2][1]["message"] if end is not None else ""
        elif way == "completion":
            if end is not None and not words:
                refused(audit, caller, 502, "agent_incomplete", None)
                problem = caller.answer.json["error"]["message"]
            else:
                told = audit.right(caller, 200)
                choice = told["choices"][0]
                due = (words, "stop" if end is None else "error")
                audit.same((choice["message"]["content"], choice["finish_reason"]), due, "a completion")
                problem = told["svc"]["error"] if end is not None else ""
        else:
            last = events.told[-1][1]
            told = "".join(data["delta"] for _, data in events.told if data["event"] == "message.delta")
            audit.same((told, last["event"]), (words, "run.failed" if end is not None else "run.completed"), "a run")
            problem = last.get("error", "")
        audit.same(bool(problem), end is not None, f"whether somebody is told of a failure: {problem!r}")
        for each in end.tells if end is not None else ():
            if each not in problem:
                audit.wrong(f"of {end!r:.200} people are told {problem!r}")
        audit.world.refuse_secrets(problem, "what is told of a model's failure")


def troubles(audit: Audit) -> None:
    """Some turns, each with a server that fails in one way, or in several one after another."""
    hidden = [row for row in (*REFUSED, *BROKEN) if row.again]
    for _ in range(audit.rng.randint(5, 8)):
        rows = [audit.pick(hidden) for _ in range(audit.pick((0, 1, 2, 3, 4)))]
        rows += audit.pick(([], [audit.pick((*REFUSED, *BROKEN))], [audit.pick(BROKEN)]))
        way = audit.pick(("chat", "chat/stream", "completion", "run"))
        if audit.chance(0.4):
            picky = audit.pick([row for row in PICKY if way == "completion" or not row.instead])
            rows.insert(audit.rng.randrange(len(rows) + 1), picky)
        _Trouble(audit).play(rows, way)


TROUBLES = (troubles,)
