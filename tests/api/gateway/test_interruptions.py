"""A chat whose first socket is lost after any number of messages: rows and turns are those of an undisturbed one."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from attrs import define

from svc_proto.agent.interface import ApprovalRequested, TextDelta
from svc_proto.engine.flow import Flow
from svc_proto.wire.events import Event, TextMessage
from tests.api.gateway_client import GatewayClient, open_socket
from tests.api.scripted_agent import TurnHarness, call_of

CALL = call_of(command="rm x")
IMAGE = b64encode(b"\x89PNG\r\n\x1a\n").decode()
NOTE = "data:text/plain;base64,YnV5IHRlYQ=="
NEVER = 1_000  # messages, more than a run has


@define(eq=False)
class _LossySocket(GatewayClient):
    """A client whose socket passes a number of messages, sent or received, and no more."""

    left: int = NEVER

    @property
    def lost(self) -> bool:
        return self.left <= 0

    def on_event(self, event: Event) -> None:
        if isinstance(event, TextMessage):
            if self.lost:
                return
            self.left -= 1
        super().on_event(event)

    def text(self, text: str) -> None:
        if not self.lost:
            self.left -= 1
            super().text(text)


class _Phone:
    """Client that reconnects after the loss of its socket, and repeats a call whose effect it does not find."""

    def __init__(self, book: TurnHarness, lost_after: int) -> None:
        self._book = book
        self.socket = open_socket(_LossySocket, book)
        self.session = self.socket.new_session(source="webui")
        self.socket.left = lost_after

    def act(self, is_done: Callable[[dict[str, Any]], bool], method: str, **params: object) -> None:
        """Perform a call; if no answer arrives, reconnect, and repeat the call unless `is_done` finds its effect."""
        self.settle()
        call = self.socket.begin(method, session_id=self.session, **params)
        if call not in self.socket.answers and not is_done(self._come_back()):
            self.socket.call(method, session_id=self.session, **params)

    def settle(self) -> None:
        """Reconnect if the socket is lost."""
        if self.socket.lost:
            self._come_back()

    def _come_back(self) -> dict[str, Any]:
        self.socket.vanish()
        self.socket = open_socket(_LossySocket, self._book)
        return self.socket.call("session.activate", session_id=self.session)

    def has_no_question(self, snapshot: dict[str, Any]) -> bool:
        """Report whether the server shows no approval request after a reconnect."""
        return "approval.request" not in self.socket.kinds()


def never(snapshot: dict[str, Any]) -> bool:
    """Return False, so that the call is repeated after each loss: the server recognizes a repeated attachment."""
    return False


def has_prompt(text: str) -> Callable[[dict[str, Any]], bool]:
    """Return a check of a session's snapshot: whether a prompt with this text runs or is queued."""

    def check(snapshot: dict[str, Any]) -> bool:
        texts = [(snapshot[member] or {}).get("user", "") for member in ("inflight", "queued")]
        return any(text in each for each in texts)

    return check


def chat(lost_after: int) -> tuple[list[dict[str, Any]], int, int]:
    """Run turns with attachments, an approval and a tool; return the rows and the number of turns.

    The third result is the number of messages if the first socket was not lost; otherwise it has no meaning.
    """
    book = TurnHarness()
    phone = _Phone(book, lost_after)
    phone.act(never, "image.attach_bytes", content_base64=IMAGE, filename="a.png")
    phone.act(never, "file.attach", data_url=NOTE, name="note.txt")
    phone.act(has_prompt("Look"), "prompt.submit", text="Look")
    phone.act(has_prompt("And then?"), "prompt.submit", text="And then?", queued=True)
    hand = book.hand
    for text in ("I ", "see. "):
        hand.emit(TextDelta(text))
        phone.settle()
    hand.store_calls(CALL, text="I see. ")
    asked = ApprovalRequested(call=CALL, command="rm x", description="Remove", pattern="rm")

    def ask() -> Flow[str]:
        return (yield from hand.host.request_approval(asked))

    hand.do(ask)
    phone.act(phone.has_no_question, "approval.respond", choice="once")
    assert hand.answers[-1] == "once"
    book.finish_two_turns(CALL, phone.settle)
    left = phone.socket.left
    assert phone.socket.call("session.activate", session_id=phone.session)["running"] is False
    rows = book.messages(phone.session)
    names = ("role", "content", "row_id", "tool_name", "finish_reason")
    return [{name: row.get(name) for name in names} for row in rows], book.turns, lost_after - left


def test_a_socket_that_is_lost_at_any_message_changes_nothing() -> None:
    rows, turns, messages = chat(NEVER)
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert turns == 2
    assert messages > 25
    for lost_after in range(messages + 1):
        assert chat(lost_after)[:2] == (rows, turns), lost_after
