import shlex
from collections.abc import Sequence

import pytest

from svc_proto.voice.realtime.actions import ConversationAction, LogEvent, ReadAloud
from svc_proto.voice.realtime.provider_responses import MAX_IGNORED, MAX_OPEN, MAX_ORPHANS, ProviderResponses
from tests.voice.realtime.dialogue import dialogues, play

DIALOGUES = f"""
one is asked for, and begins once
    give_up
    is none silent
    ask hello -> ReadAloud(text=hello)
    is asked talking
    start r1 -> ~ours
    start r1 -> ~known
    is started talking r1
    finish r1 -> nothing
    is started silent r1
    start r1 -> ~known
    start r2 -> ~stray
    start r2 -> ~ignored
an order waits while the provider is at another
    start r0 -> ~stray
    ask first -> nothing
    is held talking
    due 2.5
    after 1
    ask second -> nothing
    due 3.5
    start r1 -> ~stray
    finish r0 -> nothing
    finish r1 -> ReadAloud(text=second)
    is asked talking
    due -
    start r2 -> ~ours
    finish another -> nothing
a provider that does not say that it is free
    start r0
    ask hello -> nothing
    assume_free -> ReadAloud(text=hello)
    due -
    start r1 -> ~ours
    finish r1
    is started silent r1
what was given up before it started is waited for
    ask dropped
    give_up
    is none silent
    after 5
    ask orphan
    give_up
    ask ours
    start orphan -> ~stray
    start ours -> ~ours
    give_up
    is none talking
    start ours -> ~ignored
    ask waits -> nothing
    give_up
    due -
    finish ours -> nothing
    finish orphan
    ask next
    start next -> ~ours
as many as are under way
    start r0
    each {MAX_OPEN - 1} start a{{}}
    each {MAX_OPEN - 1} finish a{{}}
    is none talking
    each {MAX_OPEN} start b{{}}
    each {MAX_OPEN} finish b{{}}
    is none silent
as many as are known to be given up
    start r0
    each {MAX_IGNORED - 1} start a{{}}
    start r0 -> ~ignored
    start more -> ~stray
    start r0 -> ~stray
as many as may still start
    each {MAX_ORPHANS + 1} orphan
    ask ours
    each {MAX_ORPHANS} start a{{}}
    start ours -> ~ours
"""


class Responses:
    """Dialogue partner for the responses of one provider."""

    def __init__(self) -> None:
        self.all = ProviderResponses()
        self.now = 0.0

    def do(self, line: str) -> Sequence[ConversationAction]:
        """Perform one line; the start of a response returns a log event that names its origin."""
        match shlex.split(line):
            case ["after", seconds]:
                self.now += float(seconds)
            case ["ask", text]:
                return self.all.request(ReadAloud(text), self.now)
            case ["give_up"]:
                self.all.give_up(self.now)
            case ["orphan", *_]:
                self.all.request(ReadAloud("x"), self.now)
                self.all.give_up(self.now)
            case ["start", name]:
                return [LogEvent(self.all.start(name, self.now).value)]
            case ["is", state, talks, *current]:
                told = (self.all.state.value, self.all.talking, self.all.current)
                assert told == (state, talks == "talking", current[0] if current else None)
            case ["due", when]:
                assert self.all.due == (None if when == "-" else float(when))
            case ["each", times, *words]:
                for number in range(int(times)):
                    self.do(" ".join(words).format(number))
            case [word, *names]:
                return getattr(self.all, word)(*names) or []
        return []


@pytest.mark.parametrize(("title", "lines"), dialogues(DIALOGUES).items())
def test_a_dialogue(title: str, lines: list[str]) -> None:
    play(lines, Responses())
