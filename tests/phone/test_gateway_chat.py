"""The phone's chat against the API's gateway, also with sockets that are lost at any message."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from svc_proto.agent.approval_memory import build_owner_question
from svc_proto.agent.interface import ApprovalRequested, TextDelta
from svc_proto.api.chat.store_requests import BeginTurn, CreateChat, GetChat
from svc_proto.engine.flow import Flow
from svc_proto.phone.gateway_chat import MAX_PROMPTS, ChatAttachment, GatewayChat
from svc_proto.wire.events import Event, TextMessage
from tests.api.gateway_client import GatewayClient, open_gateway, open_socket
from tests.api.scripted_agent import TurnHarness, call_of

CALL = call_of(command="rm x")
APPROVAL = ApprovalRequested(call=CALL, command="rm x", description="Remove", pattern="rm")
FILES = (ChatAttachment("a.png", b"\x89PNG\r\n\x1a\n"), ChatAttachment("note.txt", b"buy tea"))
NEVER = 1_000  # messages, more than a chat has


class _Socket(GatewayClient):
    """Socket that passes `left` messages, sent or received, and drops the rest."""

    chat: GatewayChat | None = None
    left: int = NEVER

    def on_event(self, event: Event) -> None:
        if isinstance(event, TextMessage):
            if self.left <= 0:
                return
            self.left -= 1
        super().on_event(event)
        if isinstance(event, TextMessage) and self.chat is not None:
            self.chat.receive(event.text)

    def text(self, text: str) -> None:
        if self.left > 0:
            self.left -= 1
            super().text(text)


class Phone:
    """A phone's chat on the API's gateway; its first socket passes `lost_after` messages and drops the rest."""

    def __init__(self, book: TurnHarness | None = None, lost_after: int = NEVER) -> None:
        self.book = book or TurnHarness()
        self.told: list[tuple[str, Mapping[str, object]]] = []
        self.closed = 0
        ids = iter(range(NEVER))
        self.chat = GatewayChat(lambda event, fields: self.told.append((event, fields)), lambda: f"m{next(ids)}")
        self.socket = self.connect(lost_after)

    def connect(self, left: int = NEVER) -> _Socket:
        self.socket = open_socket(_Socket, self.book)
        self.socket.chat, self.socket.left = self.chat, left
        self.chat.connect(self.socket.text, self.close)
        return self.socket

    def close(self) -> None:
        self.closed += 1

    def lose(self) -> None:
        self.socket.chat = None
        self.socket.vanish()
        self.chat.disconnect()

    def settle(self) -> None:
        """Replace the socket by a new one if it passes no more messages."""
        if self.socket.left <= 0:
            self.lose()
            self.connect()

    def events(self, kind: str) -> list[Mapping[str, object]]:
        return [fields for event, fields in self.told if event == kind]

    def texts(self) -> list[str]:
        """Return the user's stored prompts."""
        rows = self.book.messages(self.chat.session_id)
        return [str(row["content"]) for row in rows if row["role"] == "user"]

    def ask(self, event: ApprovalRequested) -> None:
        host = self.book.hand.host

        def act() -> Flow[str]:
            return (yield from host.request_approval(event))

        self.book.hand.do(act)


@pytest.fixture
def phone() -> Phone:
    return Phone()


def test_a_turn_is_shown_and_settles(phone: Phone) -> None:
    assert phone.chat.submit("Hi")
    assert phone.chat.unfinished == 1
    phone.book.hand.emit(TextDelta("Hel"))
    phone.book.hand.emit(TextDelta("lo"))
    phone.book.hand.finish()
    assert phone.told == [
        ("answer", {"text": "Hel"}),
        ("answer", {"text": "lo"}),
        ("answered", {"status": "complete", "error": ""}),
        ("settled", {}),
    ]
    assert (phone.chat.unfinished, phone.texts()) == (0, ["Hi"])


def test_questions_are_answered_once_and_by_their_kind(phone: Phone) -> None:
    chat = phone.chat
    assert not any((chat.decide(allow=True), chat.answer("x"), chat.interrupt()))
    chat.submit("Hi")
    for choice, allow, remember in (("once", True, False), ("always", True, True), ("deny", False, False)):
        phone.ask(APPROVAL)
        assert not chat.answer("words")
        assert chat.decide(allow=allow, remember=remember)
        assert phone.book.hand.answers[-1] == choice
        assert not chat.decide(allow=True)
    for said, heard in ((True, "once"), (False, "deny"), ("At ten", "At ten")):
        phone.ask(build_owner_question("Now?", CALL))
        assert chat.answer(said) if isinstance(said, str) else chat.decide(allow=said)
        assert phone.book.hand.answers[-1] == heard
    assert phone.events("question")[0] == {"question": "rm x", "choices": ["once", "session", "always", "deny"]}
    assert phone.events("question")[-1] == {"question": "Now?", "choices": ["Yes", "No"]}
    assert chat.interrupt()
    assert phone.events("answered")[-1]["status"] == "interrupted"


def test_question_and_turn_are_those_of_the_present_socket(phone: Phone) -> None:
    phone.chat.submit("Hi")
    phone.ask(APPROVAL)
    phone.lose()
    assert not any((phone.chat.decide(allow=True), phone.chat.interrupt()))
    phone.connect()
    assert len(phone.events("question")) == 2
    assert phone.chat.decide(allow=True)
    phone.lose()
    phone.book.hand.finish()
    phone.connect()
    assert not any((phone.chat.decide(allow=True), phone.chat.interrupt()))  # the turn has ended meanwhile


def test_a_socket_that_is_lost_at_any_message_changes_nothing() -> None:
    def run(lost_after: int) -> tuple[list[dict[str, Any]], int, int]:
        phone = Phone(lost_after=lost_after)
        book = phone.book
        phone.chat.submit("Look", FILES)
        phone.settle()
        phone.chat.submit("And then?")
        phone.settle()
        hand = book.hand
        hand.emit(TextDelta("I see."))
        phone.settle()
        hand.store_calls(CALL, text="I see.")
        phone.ask(APPROVAL)
        phone.settle()
        while not hand.answers or hand.answers[-1] != "once":
            assert phone.chat.decide(allow=True)
            phone.settle()
        book.finish_two_turns(CALL, phone.settle)
        assert phone.chat.unfinished == 0
        rows = book.messages(phone.chat.session_id)
        names = ("role", "content", "row_id", "tool_name", "finish_reason")
        used = lost_after - phone.socket.left
        return [{name: row.get(name) for name in names} for row in rows], book.turns, used

    rows, turns, messages = run(NEVER)
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert len(rows[0]["content"]) == 3
    assert (turns, messages > 25) == (2, True)
    for lost_after in range(messages + 1):
        assert run(lost_after)[:2] == (rows, turns), lost_after


def test_a_server_that_was_restarted_gets_what_it_has_not_stored(phone: Phone) -> None:
    for text in ("two", "two", "two", "three"):
        phone.chat.submit(text)
    phone.book.hand.finish()  # the second "two" runs, and two prompts wait
    phone.lose()
    phone.book.api.gateway.sessions.pop(phone.chat.session_id).queue.clear()
    phone.book.hand.finish()
    assert phone.texts() == ["two", "two"]
    phone.connect()
    assert phone.chat.unfinished == 2
    for _ in range(2):
        phone.book.hand.finish()
    assert phone.texts() == ["two", "two", "two", "three"]
    assert phone.chat.unfinished == 0


def test_a_prompt_that_is_stored_with_the_files_of_another_client_is_not_sent_again(phone: Phone) -> None:
    phone.chat.submit("one")
    phone.book.hand.finish()
    other = open_gateway(phone.book)
    other.call("file.attach", session_id=phone.chat.session_id, data_url="data:;base64,YnV5IHRlYQ==", name="note.txt")
    other.close()
    phone.chat.submit("two")
    phone.chat.submit("tw")
    phone.lose()
    phone.book.api.gateway.sessions.pop(phone.chat.session_id).queue.clear()
    phone.connect()
    phone.book.hand.finish()
    phone.book.hand.finish()
    assert [text.count("buy tea") for text in phone.texts()] == [0, 1, 0]
    assert phone.chat.unfinished == 0


def test_files_are_named_in_the_order_in_which_they_are_attached(phone: Phone) -> None:
    phone.chat.submit("Which is older?", (ChatAttachment("b.txt", b"one"), ChatAttachment("a.txt", b"two")))
    phone.book.hand.finish()
    (text,) = phone.texts()
    assert 0 <= text.index("@file:b.txt") < text.index("@file:a.txt")


def test_prompts_wait_for_a_socket_and_are_bounded(phone: Phone) -> None:
    phone.lose()
    assert [phone.chat.submit(f"{number}") for number in range(MAX_PROMPTS + 1)] == [True] * MAX_PROMPTS + [False]
    phone.connect()
    for _ in range(MAX_PROMPTS):
        phone.book.hand.finish()
    assert phone.texts() == [f"{number}" for number in range(MAX_PROMPTS)]


def test_refused_prompts_do_not_hold_up_the_next(phone: Phone) -> None:
    phone.book.refuse = (CreateChat,)
    phone.chat.submit("one")
    phone.book.refuse = ()
    assert phone.chat.session_id == ""
    phone.chat.submit("two", (ChatAttachment("x.bin", b"\xff\x00"),))
    phone.chat.submit("three")
    phone.book.refuse = (GetChat,)
    phone.book.hand.finish()
    phone.chat.submit("four")
    phone.book.refuse = ()
    assert phone.texts() == ["three"]
    assert [fields["status"] for fields in phone.events("answered")] == ["refused", "refused", "complete", "refused"]
    phone = Phone()
    phone.lose()
    phone.book.refuse = (CreateChat,)
    for text in ("five", "six"):
        phone.chat.submit(text)
    phone.connect()
    assert phone.chat.unfinished == 0


def test_a_chat_that_cannot_be_resumed_is_begun_again_or_kept(phone: Phone) -> None:
    phone.chat.submit("one")
    phone.book.hand.finish()
    first = phone.chat.session_id
    phone.book.request("DELETE", f"/api/sessions/{first}")
    phone.lose()
    phone.connect()
    assert phone.events("note")[-1] == {"text": "the chat cannot be resumed: no such session"}
    phone.chat.submit("one")
    assert phone.chat.session_id not in ("", first)
    phone.lose()
    phone.book.api.gateway.sessions.pop(phone.chat.session_id).queue.clear()
    phone.connect()
    assert (phone.texts(), phone.chat.unfinished) == (["one"], 0)  # that of the first chat does not count
    phone = Phone()
    phone.chat.submit("one")
    phone.lose()
    phone.book.refuse = (GetChat,)
    phone.connect()
    assert (phone.closed, phone.chat.session_id != "") == (1, True)
    phone.book.refuse = ()
    phone.lose()
    phone.connect()
    assert phone.chat.unfinished == 0  # it is stored
    phone.book.hand.finish()
    assert phone.texts() == ["one"]


def test_a_turn_that_fails_before_it_is_stored_is_not_repeated() -> None:
    phone = Phone(lost_after=3)  # the answer to the prompt is lost
    phone.book.refuse = (BeginTurn,)
    phone.chat.submit("one")
    phone.book.refuse = ()
    phone.settle()
    assert (phone.chat.unfinished, phone.book.turns, phone.events("settled")) == (0, 0, [{}])


def test_messages_that_mean_nothing_are_ignored(phone: Phone) -> None:
    phone.chat.submit("Hi")
    session = phone.chat.session_id
    other = open_gateway(phone.book)
    other.call("session.activate", session_id=session)
    told = [*phone.told]
    for message in (
        {"id": 99, "result": {}},
        {"id": "x"},
        {"method": "event", "params": {"type": "message.delta", "session_id": "other", "payload": {"text": "no"}}},
        {"method": "event", "params": {"type": "unknown", "session_id": session}},
    ):
        phone.chat.receive(json.dumps(message))
    phone.chat.receive("nonsense\n\n[]")
    assert phone.told == told
    phone.socket.left = 0
    phone.chat.submit("And?")
    idle = {"type": "session.info", "session_id": session, "payload": {"running": False}}
    phone.chat.receive(json.dumps({"method": "event", "params": idle}))
    assert phone.chat.unfinished == 1  # the prompt that the server has not accepted yet
