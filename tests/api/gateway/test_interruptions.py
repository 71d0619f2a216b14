"""The socket of a client ends after each message of a turn: the chat equals the undisturbed one."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from svc_proto.agent.interface import ApprovalRequested, TextDelta, ToolCallFinished, ToolCallStarted
from svc_proto.engine.flow import Flow
from tests.api.gateway_client import GatewayClient, open_gateway
from tests.api.scripted_agent import TurnHarness, call_of

CALL = call_of(command="rm x")
IMAGE = b64encode(b"\x89PNG\r\n\x1a\n").decode()
STEPS = 9


class _Phone:
    """A client that loses its socket before one step and comes back."""

    def __init__(self, book: TurnHarness, lost_at: int) -> None:
        self.book = book
        self.lost_at = lost_at
        self.socket = open_gateway(book)
        self.session = self.socket.new_session(source="webui")
        self.step = 0

    def next(self) -> GatewayClient:
        """Return the socket for the next step."""
        if self.step == self.lost_at:
            self.socket.vanish()
            self.socket = open_gateway(self.book)
            self.socket.call("session.activate", session_id=self.session)
        self.step += 1
        return self.socket


def chat(lost_at: int) -> tuple[list[dict[str, Any]], int]:
    """Run a turn with an image, text, an approval and a tool; return its rows and the number of turns."""
    book = TurnHarness()
    phone = _Phone(book, lost_at)
    own = {"session_id": phone.session}
    phone.next().call("image.attach_bytes", content_base64=IMAGE, filename="a.png", **own)
    phone.next().call("prompt.submit", text="Look", **own)
    phone.next().call("prompt.submit", text="And then?", queued=True, **own)
    hand = book.hand
    hand.emit(TextDelta("I see. "))
    phone.next()
    hand.store_calls(CALL, text="I see. ")
    asked = ApprovalRequested(call=CALL, command="rm x", description="Remove", pattern="rm")

    def ask() -> Flow[str]:
        return (yield from hand.host.request_approval(asked))

    hand.do(ask)
    phone.next()
    assert phone.next().call("approval.respond", choice="once", **own) == {"resolved": 1}
    assert hand.answers[-1] == "once"
    hand.emit(ToolCallStarted(CALL))
    hand.store_result(CALL, "done")
    hand.emit(ToolCallFinished(call=CALL, output="done", preview="done"))
    phone.next()
    hand.emit(TextDelta("It is gone."))
    hand.finish()
    phone.next()
    book.hand.emit(TextDelta("Nothing."))
    book.hand.finish()
    assert phone.next().call("session.activate", **own)["running"] is False
    rows = book.messages(phone.session)
    names = ("role", "content", "row_id", "tool_name", "finish_reason")
    return [{name: row.get(name) for name in names} for row in rows], book.turns


@pytest.mark.parametrize("lost_at", range(STEPS))
def test_a_socket_that_is_lost_at_any_step_changes_nothing(lost_at: int) -> None:
    rows, turns = chat(lost_at)
    assert (rows, turns) == chat(-1)
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
