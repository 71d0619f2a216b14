"""Clients that are gone, on the routes of `WAITING` and the gateway; half-closed clients that get their answer.

A FIN alone does not show whether the client still reads. A stream is probed: the host of a client that is gone answers
the probe with a reset. A client that waits for a whole answer cannot be probed, so its FIN ends the request, unless
the request had `Prefer: half-close`. A FIN of a gateway client ends its socket.
"""

from typing import Any

import pytest
from attrs import frozen

from svc_proto.api.chat.store_requests import BeginTurn
from svc_proto.api.runs.subscriber import SubscriberState
from svc_proto.facts import Address
from tests.api.gateway_client import open_gateway
from tests.api.harness import ApiCall
from tests.api.scripted_agent import TurnHarness
from tests.support.http2_client import Http2Client
from tests.support.http_harness import Fields, PeerT

NOTICED_WITHIN = 2.0  # s
PREFER = [(b"prefer", b"half-close")]
HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@frozen
class Waiting:
    """A request whose client waits for a turn. `ends`: the turn ends with its client."""

    path: str
    body: dict[str, Any] | None
    ends: bool

    def begin(self, kind: type[TurnHarness], headers: Fields = ()) -> tuple[TurnHarness, ApiCall]:
        """Send the request that starts the turn; for the events of a run, first start that run.

        Return the harness and the request.
        """
        book = kind()
        path = self.path.replace("SESSION", book.session())
        if path.startswith("/v1/runs"):
            run = book.request("POST", "/v1/runs", {"input": "Hi"}).json["run_id"]
            return book, book.call("GET", f"/v1/runs/{run}/events", headers=headers)
        return book, book.call("POST", path, self.body, headers=headers)


WAITING = {
    "completions": Waiting("/v1/chat/completions", HELLO, ends=True),
    "completions stream": Waiting("/v1/chat/completions", {**HELLO, "stream": True}, ends=True),
    "responses": Waiting("/v1/responses", {"input": "Hi"}, ends=True),
    "responses stream": Waiting("/v1/responses", {"input": "Hi", "stream": True}, ends=True),
    "session": Waiting("/api/sessions/SESSION/chat", {"message": "Hi"}, ends=False),
    "session stream": Waiting("/api/sessions/SESSION/chat/stream", {"message": "Hi"}, ends=False),
    "events of a run": Waiting("/v1/runs/RUN/events", None, ends=False),
}


class Http2Harness(TurnHarness):
    """Harness whose clients use HTTP/2."""

    def connect_http1(self, kind: type[PeerT], address: Address, *, tls: bool = False) -> PeerT:
        """Accept a client that uses HTTP/2, in place of HTTP/1.1."""
        conn = Http2Client(self.client_entropy, deflate=False)
        peer: PeerT = self.accept(lambda node, ch: kind(node, ch, conn=conn), address, tls=tls)
        self.callers.append(peer)
        return peer


transports = pytest.mark.parametrize("kind", [TurnHarness, Http2Harness])
every = pytest.mark.parametrize("waiting", [pytest.param(each, id=name) for name, each in WAITING.items()])


def is_released(book: TurnHarness, call: ApiCall) -> bool:
    """Report whether the client's connection is closed, and nothing reads its run or waits for it."""
    run = book.api.runs.find(book.hand.turn.run_id)
    reads = run.subscriber is not None and run.subscriber.state is not SubscriberState.GONE
    return call.gone and not reads and not run._waiter_count


@transports
@every
@pytest.mark.parametrize("is_reset", [False, True])
def test_client_that_is_gone_is_noticed(waiting: Waiting, kind: type[TurnHarness], *, is_reset: bool) -> None:
    book, call = waiting.begin(kind)
    sent = len(call.body)
    if is_reset:
        call.vanish()
    else:
        call.half_close()
    if not call.gone:
        book.after(NOTICED_WITHIN)
        assert len(call.body) > sent  # the probe, which the client's host answers with a reset
        call.vanish()
    assert is_released(book, call)
    assert book.hand.cancelled is waiting.ends


@transports
@every
def test_half_closed_client_that_said_so_gets_its_answer(waiting: Waiting, kind: type[TurnHarness]) -> None:
    book, call = waiting.begin(kind, PREFER)
    call.half_close()
    book.after(NOTICED_WITHIN)
    book.hand.finish()
    assert call.head.status == 200
    assert len(call.body) > 0


def test_gateway_ends_with_the_fin_of_its_client() -> None:
    book = TurnHarness()
    phone = open_gateway(book)
    phone.call("prompt.submit", session_id=phone.call("session.create")["session_id"], text="Hi")
    phone.half_close()
    assert phone.gone
    assert not book.hand.cancelled


REPEATED = {
    "completions": ("/v1/chat/completions", HELLO),
    "completions stream": ("/v1/chat/completions", {**HELLO, "stream": True}),
    "responses": ("/v1/responses", {"input": "Hi"}),
    "responses stream": ("/v1/responses", {"input": "Hi", "stream": True}),
}


@pytest.mark.parametrize(("path", "body"), REPEATED.values(), ids=REPEATED)
@pytest.mark.parametrize("ends_by", ["FIN", "reset", "nothing"])
def test_retries_with_one_key_queue_no_turn(path: str, body: dict[str, Any], ends_by: str) -> None:
    book = TurnHarness()
    for _ in range(3):
        call = book.call("POST", path, body, headers=[(b"idempotency-key", b"k")])
        live = [hand for hand in book.scripted.hands if not hand.cancelled]
        assert (len(live), book.api.runs.states()["queued"]) == (1, 0)
        if ends_by == "FIN":
            call.half_close()
        elif ends_by == "reset":
            call.vanish()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_retry_runs_anew_while_the_run_of_its_key_is_being_stopped(path: str) -> None:
    book = TurnHarness()
    body, headers = REPEATED["completions" if "chat" in path else "responses"][1], [(b"idempotency-key", b"k")]
    book.hold = (BeginTurn,)  # the first run cannot end while the store has not answered
    first = book.call("POST", path, body, headers=headers)
    first.vanish()
    assert book.api.runs.states()["stopping"] == 1
    second, third = (book.call("POST", path, body, headers=headers) for _ in range(2))
    assert book.api.runs.states()["queued"] == 0
    book.hold = ()
    book.release()
    book.hand.finish()
    assert [call.result.status for call in (second, third)] == [200, 200]
    assert book.turns == 1  # the agent did not begin the first one
